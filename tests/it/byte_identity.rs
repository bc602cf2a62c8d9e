//! Library packages and compiled models of the corpus come back byte for byte: with their layout through JSON, and as
//! they are opened and written. Each file that cannot is listed with its reason, and there are no other reasons.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use edgepack::edit::{self, Blobs, Opened, build_library, dump_library, library_parts, write_library};
use edgepack_loader::mlf::Library;

/// Files of the corpus of the repository, and of the one that `EDGEPACK_CORPUS` names.
fn corpus(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus");
    let larger = env::var_os("EDGEPACK_CORPUS").filter(|value| !value.is_empty()).map(PathBuf::from);
    let folders = [Some(own), larger].into_iter().flatten().map(|root| root.join(folder)).collect();
    let wanted = |path: &PathBuf| path.extension().is_some_and(|end| endings.iter().any(|wanted| end == *wanted));
    edgepack_tests::files_in(folders).into_iter().filter(wanted).collect()
}

/// Reason a compiled model has no layout that can be kept.
fn reason(error: &edit::Error) -> &'static str {
    match error {
        edit::Error::Invalid(_) => "its tables cannot be read",
        edit::Error::Kind { .. } => "it is not a package",
        edit::Error::Refused { place, .. } if place == "the file" => "it is not a package",
        error if error.to_string().ends_with("a field that is not there") => "a union has a kind and no value",
        error => panic!("another reason: {error}"),
    }
}

fn model(path: &Path) -> Result<bool, edit::Error> {
    let opened = Opened::open(path)?;
    let mut package = opened.package()?;
    package.places = Some(Box::new(opened.places(&package)?));
    let file = std::fs::read(path).unwrap();
    let built = edit::build(&edit::dump(&package)?)?;
    Ok(package.to_bytes()? == file && built.to_bytes()? == file)
}

#[test]
fn compiled_models_come_back() {
    let files = corpus("edgetpu", &["tflite", "dwn"]);
    let (mut same, mut reasons) = (0, BTreeMap::<&str, Vec<String>>::new());
    for path in &files {
        match model(path) {
            Ok(true) => same += 1,
            Ok(false) => panic!("{}: other bytes", path.display()),
            Err(error) => {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                reasons.entry(reason(&error)).or_default().push(name);
            }
        }
    }
    println!("{same} of {} compiled models and packages", files.len());
    reasons.iter().for_each(|(reason, files)| println!("{reason}: {}", files.join(", ")));
    assert_eq!(same + reasons.values().map(Vec::len).sum::<usize>(), files.len());
    let broken = |path: &&PathBuf| path.parent().is_some_and(|folder| folder.ends_with("malformed"));
    let sound = files.iter().filter(|path| !broken(path)).count();
    assert!(same >= sound && sound > 0, "{same} of {sound} sound ones");
}

#[test]
fn library_packages_come_back() {
    let files = corpus("mlf", &["tar"]);
    for path in &files {
        let file = std::fs::read(path).unwrap();
        let library = Library::from_bytes(file.clone()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        library.layout().unwrap_or_else(|reason| panic!("{}: no layout: {reason}", path.display()));
        let parts = library_parts(&library);
        assert!(write_library(&parts).unwrap() == file, "{}: opened and written", path.display());
        let again = build_library(&dump_library(&parts, Blobs::Inline).unwrap(), None).unwrap();
        assert!(write_library(&again).unwrap() == file, "{}: through JSON", path.display());
    }
    // The corpus of the repository has none.
    println!("{} of {} library packages", files.len(), files.len());
    assert!(!files.is_empty() || env::var_os("EDGEPACK_CORPUS").is_none());
}
