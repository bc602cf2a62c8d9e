//! Cases of a corpus folder `edgetpu/`: compiled models and bare packages with facts and goldens next to them, broken
//! packages, custom options, and packages on which a literal reading of the format and the stock driver differ.
//!
//! `facts` and `goldens` were computed by programs that have nothing in common with this project.

mod facts;
mod golden;
mod lists;
pub mod made;
mod running;

use std::path::{Path, PathBuf};

use edgepack_format::darwinn::{Accept, PackageRef};
use edgepack_format::limits::Limits;
use edgepack_format::tflite::ModelRef;

pub use facts::{document, facts, report};
pub use golden::{goldens, rebuild, reembed};
pub use lists::{Listed, broken, differing, options, signatures};
pub use running::{runs, sharing};

/// Result of a case: nothing, or what differs.
pub type Answer = Result<(), String>;

/// Models and bare packages of a folder that have a file with this extension next to them, sorted by path.
pub fn beside(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let list = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let all = list(folder.to_owned()).chain(list(folder.join("synthetic")));
    let mut found: Vec<PathBuf> = all
        .filter(|path| path.extension().is_some_and(|found| found == "tflite" || found == "dwn"))
        .filter(|path| path.with_extension(extension).is_file())
        .collect();
    found.sort();
    found
}

/// Reads a JSON file.
pub fn json(path: &Path) -> Result<serde_json::Value, String> {
    let text = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Calls back with every package of a file: those of a model, or the file itself.
fn with_packages(bytes: &[u8], visit: impl FnOnce(&[&PackageRef<'_>]) -> Answer) -> Answer {
    let limits = Limits::default();
    if edgepack_format::detect(bytes) == edgepack_format::FileKind::TfLite {
        let model = ModelRef::parse(bytes, &limits).map_err(|findings| findings.to_string())?;
        let packages: Vec<_> = model.packages().map(|(_, package)| package).collect();
        return visit(&packages);
    }
    let package = PackageRef::parse_as(bytes, &limits, Accept::ALL).map_err(|findings| findings.to_string())?;
    visit(&[&package])
}

/// SHA-256 in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// As many pseudo-random bytes as asked: splitmix64, eight bytes at a time.
pub fn splitmix(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        out.extend((z ^ (z >> 31)).to_le_bytes());
    }
    out.truncate(len);
    out
}

fn same<T: PartialEq + std::fmt::Debug>(what: impl std::fmt::Display, ours: T, theirs: T) -> Answer {
    if ours == theirs { Ok(()) } else { Err(format!("{what}: {ours:?}, wanted {theirs:?}")) }
}
