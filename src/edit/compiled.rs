//! Compiled parts as rows: the three levels of an Edge TPU package opened up, and a model as the bytes around packages.
//!
//! Invariant: a package that is written again has the same rows at every level. Its bytes are laid out by our writer, and
//! filled up to the length it had, so that it goes back into its model without moving anything unless it has grown.

use std::ops::Range;

use edgepack_builder::{darwinn, tflite as writer};
use edgepack_format::darwinn::{Accept, Executable, PAGE, Package as Row, PackageRef, SerializedPackage, verify};
use edgepack_format::finding::Findings;
use edgepack_format::limits::Limits;
use edgepack_format::row::{Blob, Rows};
use edgepack_format::tflite::{self, ModelRef};
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::model_rows::ModelRows;

/// An Edge TPU package, level by level.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompiledPackage<'a> {
    /// The outermost row. What `executables` and `chips` hold is absent in it.
    pub row: Row<'a>,
    /// The executables. `None` if there is no multi-executable.
    pub executables: Option<Vec<Executable<'a>>>,
    /// Packages for single chips.
    pub chips: Option<Vec<CompiledPackage<'a>>>,
    /// True if the inner levels and the parameters start at pages, as compilers put them.
    pub paged: bool,
    /// True if the identifier is there.
    pub identified: bool,
    /// Bytes it has at least.
    pub length: u64,
}

/// A TensorFlow Lite model with compiled operators.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompiledModel<'a> {
    /// The file without its packages: one piece more than there are packages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub around: Vec<Blob<'a>>,
    /// The file without its packages in rows, in the place of `around`. They need the places they were read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<Box<ModelRows<'a>>>,
    /// The packages, in the order of their places in the file.
    pub packages: Vec<CompiledPackage<'a>>,
}

/// An empty package, laid out as compilers do.
impl Default for CompiledPackage<'_> {
    fn default() -> Self {
        CompiledPackage {
            row: Row::default(),
            executables: None,
            chips: None,
            paged: true,
            identified: true,
            length: 0,
        }
    }
}

/// Findings after which there are no rows to speak of.
fn unreadable(findings: &Findings) -> bool {
    let rules = [&tflite::verify::STRUCTURE, &verify::STRUCTURE];
    let ids = rules.map(|rules| [rules.malformed.id, rules.misaligned.id, rules.text.id, rules.limits.id]);
    findings.dropped() > 0 || findings.iter().any(|finding| ids.as_flattened().contains(&finding.rule.id))
}

impl<'a> CompiledPackage<'a> {
    /// Opens the levels of a package, as far as its structure allows; wrong contents are no obstacle.
    pub fn open(bytes: &'a [u8], limits: &Limits) -> Result<Self, Error> {
        let verdict = verify::verify(bytes, limits, Accept::ALL);
        match verdict.package {
            Some(package) if !unreadable(&verdict.findings) => Self::of(&package),
            _ => Err(Error::Invalid(verdict.findings)),
        }
    }

    fn of(package: &PackageRef<'a>) -> Result<Self, Error> {
        let mut row = package.package().clone();
        let executables = package.multi_executable().map(|_| {
            row.serialized_multi_executable = None;
            package.executables().iter().map(|one| one.row().clone()).collect()
        });
        let chips = match row.multi_chip_package.as_ref().map(Rows::len) {
            Some(count) if count == package.chips().len() && package.is_multi_chip() => {
                row.multi_chip_package = None;
                Some(package.chips().iter().map(Self::of).collect::<Result<_, _>>()?)
            }
            _ => None,
        };
        let bytes = package.bytes();
        let identified = bytes.get(4..8) == Some(&edgepack_format::darwinn::IDENTIFIER);
        let mut opened = CompiledPackage { row, executables, chips, paged: false, identified, length: 0 };
        // Whole pages are a coincidence only if our writer gives these very bytes without them.
        opened.paged = bytes.len().is_multiple_of(PAGE) && opened.to_bytes()? != bytes;
        opened.length = bytes.len() as u64;
        Ok(opened)
    }

    /// Writes the package with all its levels, filled up to the length it had.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let layout = if self.paged { darwinn::Layout::Pages } else { darwinn::Layout::Dense };
        let mut row = self.row.clone();
        if let Some(executables) = &self.executables {
            let written = executables.iter().map(|row| darwinn::executable(row, layout));
            let multi = darwinn::multi_executable(written.collect::<Result<_, _>>()?, layout)?;
            row.serialized_multi_executable = Some(Blob(multi.into()));
        }
        if let Some(chips) = &self.chips {
            let chip = |chip: &CompiledPackage<'_>| {
                Ok(SerializedPackage { serialized_package: Some(Blob(chip.to_bytes()?.into())) })
            };
            row.multi_chip_package = Some(chips.iter().map(chip).collect::<Result<Vec<_>, Error>>()?.into());
        }
        let mut bytes = darwinn::package(&row, layout)?;
        if !self.identified
            && let Some(place) = bytes.get_mut(4..8)
        {
            place.fill(0);
        }
        // A length that no writer here could have left is a mistake, not a reason to fill memory.
        let most = (bytes.len() as u64).saturating_mul(2).saturating_add(FILL);
        if self.length > most {
            let message = format!("{} for {} bytes, at most {most} are filled up", self.length, bytes.len());
            return Err(Error::refused("package.length", message));
        }
        bytes.resize(bytes.len().max(self.length as usize), 0);
        Ok(bytes)
    }

    /// Visits what can be large in it.
    pub(super) fn each_blob(
        &mut self,
        path: &str,
        visit: &mut dyn FnMut(String, &mut Blob<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for (index, executable) in self.executables.iter_mut().flatten().enumerate() {
            let path = format!("{path}.executables[{index}]");
            if let Some(blob) = &mut executable.parameters {
                visit(format!("{path}.parameters"), blob)?;
            }
            for rows in executable.instruction_bitstreams.iter_mut() {
                for (index, chunk) in rows.to_mut()?.iter_mut().enumerate() {
                    let Some(blob) = &mut chunk.bitstream else { continue };
                    visit(format!("{path}.instruction_bitstreams[{index}].bitstream"), blob)?;
                }
            }
        }
        for (index, chip) in self.chips.iter_mut().flatten().enumerate() {
            chip.each_blob(&format!("{path}.chips[{index}]"), visit)?;
        }
        Ok(())
    }
}

/// Ceiling of the bytes that a package may have beyond its rows: compilers leave a few pages.
const FILL: u64 = 1 << 20;

/// Returns the places of the packages of a model, in the order of the file; operators may share one.
fn places(model: &ModelRef<'_>) -> Vec<Range<usize>> {
    let of = |op: &tflite::CompiledOp<'_>| {
        let (at, package) = op.options.as_ref()?.package;
        let start = op.range.start.checked_add(at)?;
        Some(start..start.checked_add(package.len())?)
    };
    let mut places: Vec<Range<usize>> =
        model.operators().iter().filter(|op| op.bare.is_empty()).filter_map(of).collect();
    places.sort_by_key(|place| (place.start, place.end));
    places.dedup();
    places
}

impl<'a> CompiledModel<'a> {
    /// Takes a model apart, as far as its structure allows.
    pub fn open(bytes: &'a [u8], limits: &Limits) -> Result<Self, Error> {
        let verdict = tflite::verify::verify(bytes, limits, Accept::ALL);
        let model = match verdict.model {
            Some(model) if !unreadable(&verdict.findings) => model,
            _ => return Err(Error::Invalid(verdict.findings)),
        };
        let mut opened = CompiledModel::default();
        let mut from = 0;
        for place in places(&model) {
            let (Some(before), Some(package)) = (bytes.get(from..place.start), bytes.get(place.clone())) else {
                return Err(Error::refused(format!("the package at {:#x}", place.start), "it is inside another one"));
            };
            opened.around.push(Blob(before.into()));
            opened.packages.push(CompiledPackage::open(package, limits)?);
            from = place.end;
        }
        opened.around.push(Blob(bytes.get(from..).unwrap_or_default().into()));
        Ok(opened)
    }

    /// The model with its packages. What has grown goes to the end, as [`embed`](writer::embed) has it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let [first, rest @ ..] = self.around.as_slice() else {
            return Err(Error::refused("model.around", "there is nothing around the packages"));
        };
        if rest.len() != self.packages.len() {
            let message = format!("{} pieces around {} packages", self.around.len(), self.packages.len());
            return Err(Error::refused("model.around", message));
        }
        let mut bytes = first.as_slice().to_vec();
        let mut grown = Vec::new();
        for (package, after) in self.packages.iter().zip(rest) {
            let mut written = package.to_bytes()?;
            let room = usize::try_from(package.length).unwrap_or(usize::MAX);
            if written.len() > room {
                grown.push((bytes.len(), written.clone()));
                written.truncate(room);
            }
            bytes.extend_from_slice(&written);
            bytes.extend_from_slice(after.as_slice());
        }
        for (start, package) in grown {
            bytes = replaced(bytes, start, &package)?;
        }
        Ok(bytes)
    }
}

/// The file with another package for every operator whose package starts there.
fn replaced(mut bytes: Vec<u8>, start: usize, package: &[u8]) -> Result<Vec<u8>, Error> {
    let missing = || Error::refused("model.around", format!("no operator has its package at {start:#x}"));
    let mut done = false;
    loop {
        // Half of a package is not a valid one; what is around it still says where it is.
        let Some(model) = tflite::verify::verify(&bytes, &Limits::DEFAULT, Accept::ALL).model else {
            return Err(missing());
        };
        let here = |op: &tflite::CompiledOp<'_>| {
            op.options.as_ref().is_some_and(|options| op.range.start.saturating_add(options.package.0) == start)
        };
        match model.operators().iter().position(here) {
            Some(operator) => bytes = writer::embed(&model, operator, package).map_err(built)?,
            None if done => return Ok(bytes),
            None => return Err(missing()),
        }
        done = true;
    }
}

fn built(error: edgepack_builder::BuildError) -> Error {
    match error {
        edgepack_builder::BuildError::Write(error) => Error::Write(error),
        other => Error::refused("model", other.to_string()),
    }
}
