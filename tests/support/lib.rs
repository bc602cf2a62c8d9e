//! Support code of the tests.

pub mod alike;
pub mod assemble;
pub mod built;
pub mod catalogue;
pub mod command;
pub mod edgetpu;
pub mod examples;
pub mod fields;
pub mod hostile;
pub mod lowered;
pub mod mlf;
pub mod operators;
pub mod payload;
pub mod placed;
pub mod programs;
pub mod scale;
pub mod schema_gen;
pub mod xnnpack;

/// Every file with one of these extensions in the corpus of the repository and, if `EDGEPACK_CORPUS` is set, in that one,
/// in a fixed order.
pub fn files(extensions: &[&str]) -> Vec<std::path::PathBuf> {
    let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus")];
    folders.extend(std::env::var_os("EDGEPACK_CORPUS").filter(|value| !value.is_empty()).map(Into::into));
    let mut found = files_in(folders);
    found.retain(|path| path.extension().is_some_and(|have| extensions.iter().any(|want| have == *want)));
    found
}

/// Every file in these folders and the folders in them, in a fixed order. A folder that is not there has none.
pub fn files_in(mut folders: Vec<std::path::PathBuf>) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let list = if path.is_dir() { &mut folders } else { &mut found };
            list.push(path);
        }
    }
    found.sort();
    found
}
