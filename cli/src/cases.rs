//! Recorded runs, and what became of them when they were replayed.
//!
//! A recording holds inputs and wanted outputs under the keys `METHOD.RUN.in.I` and `METHOD.RUN.out.I`. The runs of a
//! method are replayed in order on one loaded method, so that state carries over as it did when they were recorded.

use std::collections::BTreeMap;

use edgepack_executor::{LoadError, Registry, RunError};
use edgepack_format::tensor::{LayoutError, TensorBuf};
use edgepack_format::wire::ReadError;

use crate::compare::Comparison;
use crate::interchange::{self, InterchangeError, TensorFile};

/// One recorded run. What is not there was `None` or text, which no recording holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Recorded {
    /// Name of the method.
    pub method: String,
    /// Index of the run among the runs of that method.
    pub run: u64,
    /// Input tensors, by index.
    pub inputs: BTreeMap<usize, TensorBuf>,
    /// Expected output tensors, by index; empty if a run only has to succeed.
    pub outputs: BTreeMap<usize, TensorBuf>,
}

/// Reason a recording cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum CasesError {
    /// The file holds no tensors that can be read.
    Interchange(InterchangeError),
    /// The file is one array, without a key.
    Single,
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
            CasesError::Single => f.write_str("one array without a key is not a recording"),
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

/// Side of a run that a key names.
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
    from_named(interchange::read_safetensors(bytes).map_err(CasesError::Interchange)?)
}

/// The runs of a safetensors file or of an archive of NumPy arrays, of which `most` bytes are inflated.
pub fn from_file(bytes: &[u8], most: u64) -> Result<Vec<Recorded>, CasesError> {
    match interchange::read(bytes, most).map_err(CasesError::Interchange)? {
        TensorFile::Named(tensors) => from_named(tensors),
        TensorFile::Single(_) => Err(CasesError::Single),
    }
}

fn from_named(mut tensors: Vec<(String, TensorBuf)>) -> Result<Vec<Recorded>, CasesError> {
    // Of several wrong keys it is always the same that is named.
    tensors.sort_by(|(key, _), (other, _)| key.cmp(other));
    let mut runs: BTreeMap<(String, u64), Recorded> = BTreeMap::new();
    for (key, tensor) in tensors {
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

/// Result of one run.
#[derive(Debug)]
pub struct Replayed {
    /// Name of the method.
    pub method: String,
    /// Index of the run.
    pub run: u64,
    /// The outputs, compared; empty if nothing was wanted.
    pub outputs: Vec<(usize, Comparison)>,
    /// Reason the run failed, if it did.
    pub failure: Option<ReplayError>,
}

impl Replayed {
    /// Returns whether the run succeeded and every output agrees.
    pub fn passes(&self) -> bool {
        self.failure.is_none() && self.outputs.iter().all(|(_, comparison)| comparison.passes())
    }
}

/// Reason a run could not be made.
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
    Module(Box<dyn std::error::Error + Send + Sync>),
}

impl std::fmt::Display for ReplayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplayError::Load(error) => error.fmt(f),
            ReplayError::NotLoaded => f.write_str("the method cannot be loaded"),
            ReplayError::Input(message) => f.write_str(message),
            ReplayError::Run(error) => error.fmt(f),
            ReplayError::Module(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReplayError {}

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
