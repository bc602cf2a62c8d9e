//! Compatibility of a program with releases of ExecuTorch: the lowest one that loads it, and why.
//!
//! Facts are one table, `releases.txt`: per release what it was the first to load. A program is walked once, and everything
//! in it that is in the table is a [`Need`] with the place of its first use. What old runtimes skip (names, settings, the
//! longer header) is no need. A kernel or backend that no release has must be brought along, whatever the release: it is
//! listed, and does not count. Runtimes are built with fewer operators than a release has, or with more, so the answer is
//! about releases with everything they ship.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use serde::{Serialize, Serializer};

use super::metadata::METADATA_PREFIX;
use super::tables::{DeviceType, ExecutionPlan, KernelTypes, Program, Tensor, TensorDataLocation, TensorShapeDynamism};
use crate::wire::ReadError;

/// The table. A line that begins with white space goes on with the line before.
const TABLE: &str = include_str!("releases.txt");

/// A release of ExecuTorch, without the number of the patch: `1.0`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Release {
    /// First number.
    pub major: u16,
    /// Second number.
    pub minor: u16,
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Text that is no release.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a release is two numbers such as 0.6 or 1.0, a third one does not count")]
pub struct NotARelease;

/// Reads `0.6`, `v0.6` and `0.6.2`.
impl FromStr for Release {
    type Err = NotARelease;

    fn from_str(text: &str) -> Result<Self, NotARelease> {
        let number = |part: Option<&str>| part.and_then(|part| part.parse::<u16>().ok()).ok_or(NotARelease);
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
        let release = Release { major: number(parts.next())?, minor: number(parts.next())? };
        match (parts.next().map(|patch| number(Some(patch))), parts.next()) {
            (Some(Err(error)), _) => Err(error),
            (_, Some(_)) => Err(NotARelease),
            _ => Ok(release),
        }
    }
}

impl Serialize for Release {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "schemas")]
impl schemars::JsonSchema for Release {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "Release".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A release of ExecuTorch, without the number of the patch.",
            "type": "string",
            "pattern": r"^\d+\.\d+$",
        })
    }
}

#[cfg(feature = "schemas")]
impl schemars::JsonSchema for Since {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "Since".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "First release that has it; none if no release has, never if none loads it.",
            "type": "string",
            "pattern": r"^(\d+\.\d+|none|never)$",
        })
    }
}

/// Kinds of facts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NeedKind {
    /// Something of the format.
    Feature,
    /// An element type.
    Type,
    /// An operator.
    Operator,
    /// A backend of delegates.
    Backend,
    /// A kind of node in payloads of XNNPACK.
    Node,
}

/// Answer to the question since when something is loaded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Since {
    /// From this release on.
    Release(Release),
    /// No release has it; who brings a kernel or backend of this name along can load it with any.
    BroughtAlong,
    /// No release loads it.
    Never,
}

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Since::Release(release) => release.fmt(f),
            Since::BroughtAlong => f.write_str("in no release"),
            Since::Never => f.write_str("never"),
        }
    }
}

/// Writes the release as text, the others as `none` and `never`.
impl Serialize for Since {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Since::Release(release) => release.serialize(serializer),
            Since::BroughtAlong => serializer.serialize_str("none"),
            Since::Never => serializer.serialize_str("never"),
        }
    }
}

/// Something that a program needs of a runtime.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Need {
    /// Kind of the need.
    pub kind: NeedKind,
    /// Name of the operator, type, backend or node; a feature in words.
    pub name: String,
    /// First release that has it.
    pub since: Since,
    /// Path of its first use.
    pub place: String,
    /// Number of uses.
    pub uses: usize,
}

/// A feature: its words, and the release that brought it.
type Feature = (&'static str, Since);

/// Facts by kind and name.
struct Facts {
    since: BTreeMap<(NeedKind, &'static str), Since>,
    features: BTreeMap<&'static str, Feature>,
    releases: Vec<Release>,
}

impl Facts {
    fn read() -> Facts {
        let mut facts = Facts { since: BTreeMap::new(), features: BTreeMap::new(), releases: Vec::new() };
        let (mut since, mut kind) = (Since::Never, NeedKind::Operator);
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let begins = !line.starts_with(' ');
            let (head, rest) = line.split_once(' ').filter(|_| begins).unwrap_or(("", line));
            kind = match head {
                "release" => {
                    since = rest.parse().map_or(Since::Never, Since::Release);
                    facts.releases.extend(rest.parse::<Release>());
                    continue;
                }
                "feature" => {
                    if let Some((name, words)) = rest.split_once(' ') {
                        facts.features.insert(name, (words, since));
                    }
                    continue;
                }
                "type" => NeedKind::Type,
                "backend" => NeedKind::Backend,
                "node" => NeedKind::Node,
                "operator" => NeedKind::Operator,
                _ => kind,
            };
            facts.since.extend(rest.split_whitespace().map(|name| ((kind, name), since)));
        }
        facts
    }
}

/// Returns the releases of the table, oldest first.
pub fn releases() -> Vec<Release> {
    Facts::read().releases
}

/// Needs of a program, and the releases that meet them.
pub struct Compatibility {
    facts: Facts,
    needs: BTreeMap<(NeedKind, String), Need>,
}

impl Compatibility {
    /// Collects what a program needs, except for what is in payloads.
    ///
    /// # Errors
    /// A row that cannot be read: programs that were verified have none.
    pub fn of(program: &Program<'_>) -> Result<Self, ReadError> {
        let mut report = Compatibility { facts: Facts::read(), needs: BTreeMap::new() };
        let constants = program.constant_segment.as_ref().and_then(|list| list.offsets.as_ref());
        if constants.is_some_and(|offsets| offsets.len() > 1) {
            report.feature("constant-segment", || "constant_segment".to_owned());
        }
        let mut delegates = 0usize;
        for (index, plan) in program.execution_plan.iter().flat_map(|plans| plans.iter()).enumerate() {
            let plan = plan?;
            delegates = delegates.saturating_add(plan.delegates.as_ref().map_or(0, |delegates| delegates.len()));
            report.plan(&format!("execution_plan[{index}]"), &plan)?;
        }
        // Nobody but a delegate asks for named data; settings are for whoever calls the program.
        for (index, entry) in program.named_data.iter().flat_map(|entries| entries.iter()).enumerate() {
            let entry = entry?;
            if delegates > 0 && !entry.key.as_deref().unwrap_or_default().starts_with(METADATA_PREFIX) {
                report.feature("named-data", || format!("named_data[{index}]"));
            }
        }
        Ok(report)
    }

    fn plan(&mut self, path: &str, plan: &ExecutionPlan<'_>) -> Result<(), ReadError> {
        for (index, operator) in plan.operators.iter().flat_map(|operators| operators.iter()).enumerate() {
            let operator = operator?;
            let name = operator.name.as_deref().unwrap_or_default();
            let name = match operator.overload.as_deref().unwrap_or_default() {
                "" => name.to_owned(),
                overload => format!("{name}.{overload}"),
            };
            self.add(NeedKind::Operator, &name, Since::BroughtAlong, || format!("{path}.operators[{index}]"));
        }
        for (index, delegate) in plan.delegates.iter().flat_map(|delegates| delegates.iter()).enumerate() {
            let delegate = delegate?;
            let id = delegate.id.as_deref().unwrap_or_default();
            self.add(NeedKind::Backend, id, Since::BroughtAlong, || format!("{path}.delegates[{index}]"));
        }
        for (index, value) in plan.values.iter().flat_map(|values| values.iter()).enumerate() {
            if let Some(KernelTypes::Tensor(tensor)) = value?.val {
                self.tensor(&tensor, &|| format!("{path}.values[{index}]"));
            }
        }
        for (index, device) in plan.non_const_buffer_device.iter().flat_map(|devices| devices.iter()).enumerate() {
            if device?.device_type != DeviceType::CPU {
                self.feature("devices", || format!("{path}.non_const_buffer_device[{index}]"));
            }
        }
        Ok(())
    }

    fn tensor(&mut self, tensor: &Tensor<'_>, place: &dyn Fn() -> String) {
        let scalar_type = tensor.scalar_type;
        let name = scalar_type.name().map_or_else(|| scalar_type.to_string(), ToOwned::to_owned);
        self.add(NeedKind::Type, &name, Since::Never, place);
        if tensor.shape_dynamism == TensorShapeDynamism::DYNAMIC_UNBOUND {
            self.feature("unbound-shapes", place);
        }
        if tensor.storage_offset != 0 {
            self.feature("storage-offset", place);
        }
        if let Some(planned) = &tensor.allocation_info {
            if planned.memory_offset_high != 0 {
                self.feature("planned-offset-64", place);
            }
            if tensor.data_buffer_idx > 0 {
                self.feature("initial-values", place);
            }
        }
        let Some(info) = &tensor.extra_tensor_info else { return };
        if info.location == TensorDataLocation::EXTERNAL {
            self.feature("external-tensors", place);
        }
        if info.device_type != DeviceType::CPU {
            self.feature("devices", place);
        }
    }

    /// Adds a node in the payload of a delegate: `Conv2d`, with the path of the payload.
    pub fn node(&mut self, name: &str, place: &str) {
        self.add(NeedKind::Node, name, Since::Never, || place.to_owned());
    }

    fn feature(&mut self, name: &str, place: impl FnOnce() -> String) {
        let (words, since) = self.facts.features.get(name).copied().unwrap_or(("", Since::Never));
        self.count(NeedKind::Feature, words, since, place);
    }

    fn add(&mut self, kind: NeedKind, name: &str, unknown: Since, place: impl FnOnce() -> String) {
        let since = self.facts.since.get(&(kind, name)).copied().unwrap_or(unknown);
        self.count(kind, name, since, place);
    }

    fn count(&mut self, kind: NeedKind, name: &str, since: Since, place: impl FnOnce() -> String) {
        let new = || Need { kind, name: name.to_owned(), since, place: place(), uses: 0 };
        let need = self.needs.entry((kind, name.to_owned())).or_insert_with(new);
        need.uses = need.uses.saturating_add(1);
    }

    /// Returns the lowest release that loads the program; `None` if none of the table does.
    pub fn lowest(&self) -> Option<Release> {
        let mut lowest = *self.facts.releases.first()?;
        for need in self.needs.values() {
            match need.since {
                Since::Release(release) => lowest = lowest.max(release),
                Since::BroughtAlong => {}
                Since::Never => return None,
            }
        }
        Some(lowest)
    }

    /// Returns whether a release loads the program, what must be brought along aside.
    pub fn loads_in(&self, release: Release) -> bool {
        self.lowest().is_some_and(|lowest| lowest <= release)
    }

    /// Returns the needs that releases differ in, the latest first: those that not even the first release of the table has.
    pub fn reasons(&self) -> Vec<&Need> {
        let first = self.facts.releases.first().copied().map(Since::Release);
        let mut reasons: Vec<&Need> = self.needs.values().filter(|need| Some(need.since) != first).collect();
        // Equal ones stay in the order of kinds and names.
        reasons.sort_by_key(|need| core::cmp::Reverse(need.since));
        reasons
    }

    /// Returns all needs, by kind and name.
    pub fn needs(&self) -> impl Iterator<Item = &Need> {
        self.needs.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pte::{
        AllocationDetails, BackendDelegate, EValue, ExtraTensorInfo, NamedData, Operator, SubsegmentOffsets,
    };
    use crate::row::Union;
    use crate::scalar::ScalarType;
    use crate::xnnpack::NodeUnion;
    use alloc::vec;

    #[test]
    fn the_table_is_in_order_and_says_nothing_twice() {
        let facts = Facts::read();
        assert!(facts.releases.is_sorted() && facts.releases.len() >= 12);
        let names = TABLE.lines().filter(|line| line.starts_with(' ') || !line.starts_with(['#', 'r', 'f']));
        let names: usize = names.map(|line| line.split_whitespace().filter(|word| !KINDS.contains(word)).count()).sum();
        assert_eq!(names, facts.since.len());
        assert!(facts.features.len() >= 8);
        for (name, scalar_type) in ScalarType::NAMED {
            assert!(facts.since.contains_key(&(NeedKind::Type, *name)), "{scalar_type:?}");
        }
        for (_, name, _) in <NodeUnion<'_> as Union<'_>>::DESC.variants {
            assert!(facts.since.contains_key(&(NeedKind::Node, *name)), "{name}");
        }
    }

    const KINDS: [&str; 4] = ["type", "backend", "node", "operator"];

    #[test]
    fn releases_are_read_as_people_write_them() {
        let release = |text: &str| text.parse::<Release>().map(|release| release.to_string());
        for (text, want) in [("0.6", "0.6"), ("v1.0", "1.0"), ("1.3.1", "1.3")] {
            assert_eq!(release(text).as_deref(), Ok(want));
        }
        for text in ["", "1", "1.x", "1.2.3.4", "1.2.", "-1.2"] {
            assert_eq!(release(text), Err(NotARelease), "{text}");
        }
    }

    fn lowest(program: &Program<'_>) -> Option<String> {
        Compatibility::of(program).unwrap().lowest().map(|release| release.to_string())
    }

    fn program(tensor: Tensor<'static>) -> Program<'static> {
        let values = vec![EValue { val: Some(KernelTypes::Tensor(tensor)) }];
        let plan = ExecutionPlan { values: Some(values.into()), ..Default::default() };
        Program { execution_plan: Some(vec![plan].into()), ..Default::default() }
    }

    #[test]
    fn each_feature_needs_its_release() {
        let of = |scalar_type| Tensor { scalar_type, ..Default::default() };
        let plain = of(ScalarType::FLOAT);
        let planned = |memory_offset_high| AllocationDetails { memory_id: 1, memory_offset_low: 0, memory_offset_high };
        let with = |info| Tensor { extra_tensor_info: Some(info), ..of(ScalarType::FLOAT) };
        let external = ExtraTensorInfo { location: TensorDataLocation::EXTERNAL, ..Default::default() };
        let device = ExtraTensorInfo { device_type: DeviceType::CUDA, ..Default::default() };
        for (tensor, want) in [
            (plain.clone(), Some("0.1")),
            (of(ScalarType::UINT16), Some("0.5")),
            (of(ScalarType(77)), None),
            (Tensor { allocation_info: Some(planned(0)), ..plain.clone() }, Some("0.1")),
            (Tensor { allocation_info: Some(planned(1)), ..plain.clone() }, Some("0.2")),
            (Tensor { allocation_info: Some(planned(0)), data_buffer_idx: 1, ..plain.clone() }, Some("0.4")),
            (with(external), Some("0.6")),
            (with(device), Some("1.3")),
            // A name is skipped by runtimes that do not know it.
            (with(ExtraTensorInfo { fully_qualified_name: Some("w".into()), ..Default::default() }), Some("0.1")),
            (Tensor { shape_dynamism: TensorShapeDynamism::DYNAMIC_UNBOUND, ..plain.clone() }, None),
            (Tensor { storage_offset: 4, ..plain.clone() }, None),
        ] {
            assert_eq!(lowest(&program(tensor.clone())).as_deref(), want, "{tensor:?}");
        }
    }

    #[test]
    fn the_latest_need_decides_and_is_named_first() {
        let operator = |name: &'static str, overload: &'static str| Operator {
            name: Some(name.into()),
            overload: Some(overload.into()),
        };
        let operators = vec![operator("aten::add", "out"), operator("aten::topk", "values"), operator("mine::op", "")];
        let delegate = BackendDelegate { id: Some("XnnpackBackend".into()), ..Default::default() };
        let named = |key: &'static str| NamedData { key: Some(key.into()), segment_index: 0 };
        let mut program = Program::default();
        let plan = |delegates: Vec<BackendDelegate<'static>>| ExecutionPlan {
            operators: Some(operators.clone().into()),
            delegates: Some(delegates.into()),
            ..Default::default()
        };
        program.execution_plan = Some(vec![plan(vec![])].into());
        program.constant_segment = Some(SubsegmentOffsets { segment_index: 0, offsets: Some(vec![0, 0].into()) });
        // Without a delegate nobody asks for named data, and settings are for nobody in the runtime.
        program.named_data = Some(vec![named("metadata.a"), named("w")].into());
        assert_eq!(lowest(&program).as_deref(), Some("0.4"));
        program.execution_plan = Some(vec![plan(vec![delegate])].into());
        let mut report = Compatibility::of(&program).unwrap();
        report.node("Tanh", "execution_plan[0].delegates[0].processed");
        assert_eq!(report.lowest(), Some(Release { major: 0, minor: 7 }));
        assert!(report.loads_in(Release { major: 1, minor: 0 }) && !report.loads_in(Release { major: 0, minor: 6 }));
        let reasons: Vec<_> = report.reasons().iter().map(|need| (need.name.clone(), need.since.to_string())).collect();
        let reasons: Vec<_> = reasons.iter().map(|(name, since)| (name.as_str(), since.as_str())).collect();
        assert_eq!(reasons[0], ("mine::op", "in no release"));
        assert_eq!(reasons[1], ("Tanh", "0.7"));
        assert_eq!((reasons[2].1, reasons[3]), ("0.6", ("aten::topk.values", "0.4")));
        assert_eq!((reasons[4].1, reasons.len()), ("0.2", 5));
        assert_eq!(report.needs().count(), 8 - 1);
    }
}
