//! Recorded runs: reading them, and replaying them on a program.
//!
//! A recording holds inputs and wanted outputs under the keys `METHOD.RUN.in.I` and `METHOD.RUN.out.I`. The runs of a
//! method are replayed in order on one loaded method, so that state carries over as it did when they were recorded.

use std::collections::BTreeMap;

use edgepack_executor::Registry;
use edgepack_executor::{Input, LoadError, Method, Options, RunError};
use edgepack_format::bundle::{self, BundleRef, BundledMethodTestCase, ValueUnion};
use edgepack_format::row::Rows;
use edgepack_format::tensor::{LayoutError, TensorBuf, TensorLayout};
use edgepack_format::wire::ReadError;
use edgepack_loader::{MethodMeta, Program, ValueMeta};

use crate::compare::{Comparison, Tolerance, compare};
use crate::interchange::{self, InterchangeError};
use crate::library::runner::RunnerError;
use crate::notation;
use crate::value::Value;

/// One recorded run. What is not there was `None` or text, which no recording holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Recorded {
    /// Which method.
    pub method: String,
    /// Which of the runs of that method.
    pub run: u64,
    /// What went in.
    pub inputs: BTreeMap<usize, TensorBuf>,
    /// What came out; empty if only running matters.
    pub outputs: BTreeMap<usize, TensorBuf>,
}

/// Why a recording cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum CasesError {
    /// It is no safetensors file.
    Interchange(InterchangeError),
    /// A key is not `METHOD.RUN.in.I` or `METHOD.RUN.out.I`.
    Key(String),
    /// A bundle cannot be read.
    Read(ReadError),
    /// A tensor of a bundle makes no sense.
    Layout(LayoutError),
    /// A value of a bundle is of no known kind.
    Kind,
}

impl std::fmt::Display for CasesError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CasesError::Interchange(error) => error.fmt(f),
            CasesError::Key(key) => write!(f, "the key {key:?} is not METHOD.RUN.in.I or METHOD.RUN.out.I"),
            CasesError::Read(error) => error.fmt(f),
            CasesError::Layout(error) => error.fmt(f),
            CasesError::Kind => f.write_str("a value is of no known kind"),
        }
    }
}

impl std::error::Error for CasesError {}

impl From<ReadError> for CasesError {
    fn from(error: ReadError) -> Self {
        CasesError::Read(error)
    }
}

impl From<LayoutError> for CasesError {
    fn from(error: LayoutError) -> Self {
        CasesError::Layout(error)
    }
}

/// Which side of a run a key is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    In,
    Out,
}

/// The parts of a key, read from the right: names of methods may contain dots.
pub(crate) fn parse_key(key: &str) -> Option<(&str, u64, Side, usize)> {
    let (rest, index) = key.rsplit_once('.')?;
    let (rest, side) = rest.rsplit_once('.')?;
    let (method, run) = rest.rsplit_once('.')?;
    let side = match side {
        "in" => Side::In,
        "out" => Side::Out,
        _ => return None,
    };
    Some((method, run.parse().ok()?, side, index.parse().ok()?))
}

/// The runs of a safetensors file, by method and number.
pub fn from_safetensors(bytes: &[u8]) -> Result<Vec<Recorded>, CasesError> {
    let mut runs: BTreeMap<(String, u64), Recorded> = BTreeMap::new();
    for (key, tensor) in interchange::read_safetensors(bytes).map_err(CasesError::Interchange)? {
        let (method, run, side, index) = parse_key(&key).ok_or_else(|| CasesError::Key(key.clone()))?;
        let recorded = runs.entry((method.to_owned(), run)).or_insert_with(|| Recorded {
            method: method.to_owned(),
            run,
            inputs: BTreeMap::new(),
            outputs: BTreeMap::new(),
        });
        let side = if side == Side::In { &mut recorded.inputs } else { &mut recorded.outputs };
        side.insert(index, tensor);
    }
    Ok(runs.into_values().collect())
}

/// The operators to replay a recording with. Its metadata entry `source` says who computed the outputs: where that is
/// `executorch`, arithmetic follows the stock ExecuTorch kernels, otherwise PyTorch.
pub fn registry_for(recording: &[u8]) -> Registry {
    match interchange::safetensors_metadata(recording, "source").as_deref() {
        Some("executorch") => edgepack_kernels::reference_registry(),
        _ => edgepack_kernels::registry(),
    }
}

/// The runs that a bundled program carries.
pub fn from_bundle(bundle: &BundleRef<'_>) -> Result<Vec<Recorded>, CasesError> {
    let mut runs = Vec::new();
    for suite in bundle.suites().iter() {
        let suite = suite?;
        let method = suite.method_name.unwrap_or_default();
        for (run, case) in suite.test_cases.unwrap_or_default().iter().enumerate() {
            let BundledMethodTestCase { inputs, expected_outputs } = case?;
            runs.push(Recorded {
                method: method.to_string(),
                run: run as u64,
                inputs: bundled(inputs)?,
                outputs: bundled(expected_outputs)?,
            });
        }
    }
    Ok(runs)
}

fn bundled(values: Option<Rows<'_, bundle::Value<'_>>>) -> Result<BTreeMap<usize, TensorBuf>, CasesError> {
    let mut list = BTreeMap::new();
    for (index, value) in values.unwrap_or_default().iter().enumerate() {
        let tensor = match value?.val {
            Some(ValueUnion::Tensor(tensor)) => {
                let order: Vec<u8> = tensor.dim_order.iter().flat_map(|order| order.iter()).collect();
                let sizes = tensor.sizes.iter().flat_map(|sizes| sizes.iter());
                let layout = TensorLayout::from_wire(tensor.scalar_type, sizes, &order)?;
                Some(TensorBuf::from_bytes(layout, tensor.data.unwrap_or_default().0.into_owned())?)
            }
            Some(ValueUnion::Int(value)) => Value::Int(value.int_val).to_tensor(),
            Some(ValueUnion::Bool(value)) => Value::Bool(value.bool_val).to_tensor(),
            Some(ValueUnion::Double(value)) => Value::Double(value.double_val).to_tensor(),
            Some(ValueUnion::Unknown(_)) | None => None,
        };
        list.insert(index, tensor.ok_or(CasesError::Kind)?);
    }
    Ok(list)
}

/// What came of one run.
#[derive(Debug)]
pub struct Replayed {
    /// Which method.
    pub method: String,
    /// Which run.
    pub run: u64,
    /// The outputs, compared; empty if nothing was wanted.
    pub outputs: Vec<(usize, Comparison)>,
    /// Why it could not run.
    pub failure: Option<ReplayError>,
}

impl Replayed {
    /// Whether it ran and every output agrees.
    pub fn passes(&self) -> bool {
        self.failure.is_none() && self.outputs.iter().all(|(_, comparison)| comparison.passes())
    }
}

/// Why a run could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// The method cannot be loaded.
    Load(LoadError),
    /// An earlier run of the same method said why the method cannot be loaded.
    NotLoaded,
    /// The recording does not fit the method.
    Input(String),
    /// Running failed.
    Run(RunError),
    /// A module of a package cannot run on this recording.
    Library(RunnerError),
}

impl std::fmt::Display for ReplayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplayError::Load(error) => error.fmt(f),
            ReplayError::NotLoaded => f.write_str("the method cannot be loaded"),
            ReplayError::Input(message) => f.write_str(message),
            ReplayError::Run(error) => error.fmt(f),
            ReplayError::Library(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReplayError {}

/// Replays recorded runs in order, each method loaded once. What goes wrong with one run is in its report.
pub fn replay(
    program: &Program,
    recorded: &[Recorded],
    registry: &Registry,
    options: &Options,
    tolerance: Tolerance,
) -> Vec<Replayed> {
    let mut loaded: BTreeMap<&str, Option<Loaded>> = BTreeMap::new();
    let mut reports = Vec::new();
    for case in recorded {
        let mut report = Replayed { method: case.method.clone(), run: case.run, outputs: Vec::new(), failure: None };
        if !loaded.contains_key(case.method.as_str()) {
            let method = load(program, &case.method, registry, options);
            let method = method.map_err(|error| report.failure = Some(ReplayError::Load(error))).ok();
            loaded.insert(&case.method, method);
        }
        match loaded.get_mut(case.method.as_str()) {
            Some(Some(loaded)) => match replay_one(loaded, case, tolerance) {
                Ok(outputs) => report.outputs = outputs,
                Err(error) => report.failure = Some(error),
            },
            _ => {
                report.failure.get_or_insert(ReplayError::NotLoaded);
            }
        }
        reports.push(report);
    }
    reports
}

/// A method that is replayed.
struct Loaded {
    method: Method,
    meta: MethodMeta,
    /// The outputs that are inputs, which the method changes and gives back.
    given_back: Vec<usize>,
}

fn load(program: &Program, name: &str, registry: &Registry, options: &Options) -> Result<Loaded, LoadError> {
    let method = Method::load(program, name, registry, options)?;
    let meta = program.method_meta(name)?;
    let mut given_back = Vec::new();
    for plan in program.view()?.plans().iter() {
        let plan = plan?;
        if plan.name.as_deref() != Some(name) {
            continue;
        }
        let inputs: Vec<i32> = plan.inputs.iter().flat_map(|inputs| inputs.iter()).collect();
        let outputs = plan.outputs.iter().flat_map(|outputs| outputs.iter());
        given_back.extend(outputs.enumerate().filter(|(_, id)| inputs.contains(id)).map(|(index, _)| index));
    }
    Ok(Loaded { method, meta, given_back })
}

fn replay_one(
    loaded: &mut Loaded,
    case: &Recorded,
    tolerance: Tolerance,
) -> Result<Vec<(usize, Comparison)>, ReplayError> {
    let values = inputs(&loaded.meta, &case.inputs).map_err(ReplayError::Input)?;
    let inputs: Vec<Input<'_>> = values.iter().filter_map(Value::input).collect();
    let outputs = loaded.method.run(&inputs).map_err(ReplayError::Run)?;
    if case.outputs.is_empty() {
        return Ok(Vec::new());
    }
    let past = case.outputs.keys().next_back().map_or(0, |last| last + 1);
    // Runs may be recorded without the inputs that are changed: then what is left over is left out.
    let without = past + loaded.given_back.len() == outputs.len();
    let counted: Vec<usize> =
        (0..outputs.len().max(past)).filter(|index| !without || !loaded.given_back.contains(index)).collect();
    let mut comparisons = Vec::new();
    for (index, at) in counted.into_iter().enumerate() {
        let have = match outputs.get(at).map(Value::of) {
            Some(value) => value.map_err(|error| ReplayError::Input(error.to_string()))?,
            None => Value::Null,
        };
        match case.outputs.get(&index) {
            Some(want) => comparisons.push((index, compare(&have, want, tolerance))),
            // None and text are not recorded.
            None if have.to_tensor().is_none() => {}
            None => {
                let problem = format!("the output is {}", have.kind());
                comparisons.push((index, Comparison::impossible("None".to_owned(), problem)));
            }
        }
    }
    Ok(comparisons)
}

/// The inputs of a method: recorded tensors in the order the method wants, numbers as such, and for what is not
/// recorded the value the program was traced with.
pub fn inputs(meta: &MethodMeta, recorded: &BTreeMap<usize, TensorBuf>) -> Result<Vec<Value>, String> {
    if let Some((last, _)) = recorded.last_key_value()
        && *last >= meta.inputs.len()
    {
        return Err(format!("there is an input {last}, the method takes {}", meta.inputs.len()));
    }
    let one = |(index, wanted): (usize, &ValueMeta)| match (wanted, recorded.get(&index)) {
        (ValueMeta::Tensor(wanted), Some(tensor)) => {
            let ordered = tensor.in_order(wanted.layout.dim_order());
            ordered.map(Value::Tensor).map_err(|error| format!("input {index}: {error}"))
        }
        (_, Some(tensor)) => match Value::of_scalar(tensor) {
            Some(number) => Ok(number),
            None => Err(format!("input {index}: {} for what is no tensor", notation::layout(tensor.layout()))),
        },
        (ValueMeta::Null, None) => Ok(Value::Null),
        (ValueMeta::Int(value), None) => Ok(Value::Int(*value)),
        (ValueMeta::Bool(value), None) => Ok(Value::Bool(*value)),
        (ValueMeta::Double(value), None) => Ok(Value::Double(*value)),
        (ValueMeta::Text(text), None) => Ok(Value::Text(text.clone())),
        (ValueMeta::Tensor(wanted), None) => {
            Err(format!("input {index} is missing: {}", notation::layout(&wanted.layout)))
        }
        _ => Err(format!("input {index} is of a kind that cannot be given")),
    };
    meta.inputs.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_the_right() {
        assert_eq!(parse_key("forward.0.in.1"), Some(("forward", 0, Side::In, 1)));
        assert_eq!(parse_key("a.1.in.2.3.out.4"), Some(("a.1.in.2", 3, Side::Out, 4)));
        for bad in ["forward.0.in", "forward.x.in.0", "forward.0.inn.0", "in.0", "forward.0.in.-1"] {
            assert_eq!(parse_key(bad), None, "{bad}");
        }
    }
}
