//! Seeds that campaigns begin with: the corpus, the hostile files, and findings of earlier campaigns.

use std::path::{Path, PathBuf};

/// Files larger than this slow a campaign down more than they bring. Archives hold their programs as text, which takes
/// five times the room.
const MAX_SEED: u64 = 16 << 10;
const MAX_ARCHIVE: u64 = 80 << 10;

/// Folder of the findings of a body.
pub fn findings_path(body: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../findings").join(body)
}

/// Files of the tests with one of these extensions, small enough to mutate, sorted by path.
pub fn corpus(extensions: &[&str]) -> Vec<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let mut out: Vec<PathBuf> =
        ["corpus", "hostile"].iter().flat_map(|folder| below(&tests.join(folder), extensions)).collect();
    out.sort();
    out
}

/// Files below a folder with one of these extensions, small enough to mutate, sorted by path.
pub fn below(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut out = Vec::new();
    visit(folder, &mut out);
    out.retain(|path| {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let most = if matches!(extension, "pt2" | "etrecord") { MAX_ARCHIVE } else { MAX_SEED };
        extensions.contains(&extension) && path.metadata().is_ok_and(|meta| meta.len() <= most)
    });
    out.sort();
    out
}

/// Findings of one body, sorted by path.
pub fn findings(body: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    visit(&findings_path(body), &mut out);
    out.sort();
    out
}

fn visit(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { visit(&path, out) } else { out.push(path) }
    }
}
