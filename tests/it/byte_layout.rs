//! Files that come back byte for byte through JSON: those of the corpora, those nobody's writer made, and those that were
//! edited, which are laid out again when they no longer fit.

use std::fs;

use edgepack::edit::{self, Likeness, Opened, Package};
use edgepack_tests::files;
use serde_json::Value;

/// The JSON with the layout of a file.
fn dumped(file: &Opened) -> String {
    let mut package = file.package().unwrap();
    package.places = Some(Box::new(file.places(&package).unwrap()));
    package.origin = Some(file.origin(&package).unwrap());
    edit::dump(&package).unwrap()
}

fn built(json: &str) -> (Package<'static>, Vec<u8>) {
    let package = edit::build(json).unwrap();
    let bytes = package.to_bytes().unwrap();
    (package, bytes)
}

#[test]
fn every_file_comes_back_byte_for_byte() {
    let (mut count, mut other) = (0, 0);
    for path in files(&["pte", "ptd", "bpte"]) {
        let bytes = fs::read(&path).unwrap();
        let file = Opened::from_bytes(bytes.clone()).unwrap();
        let json = dumped(&file);
        let (package, found) = built(&json);
        let ready = package.ready().unwrap();
        assert_eq!(ready.unplaced(), None, "{}", path.display());
        assert!(found == bytes, "{}", path.display());
        assert_eq!(package.origin.as_ref().unwrap().likeness(&ready).unwrap(), Likeness::Bytes);

        // Without the layout the content is the same, and it is known whether the bytes are.
        let mut package = file.package().unwrap();
        package.origin = Some(file.origin(&package).unwrap());
        let package = edit::build(&edit::dump(&package).unwrap()).unwrap();
        let likeness = package.origin.as_ref().unwrap().likeness(&package.ready().unwrap()).unwrap();
        let same = package.to_bytes().unwrap() == bytes;
        assert_eq!(likeness, if same { Likeness::Bytes } else { Likeness::Content }, "{}", path.display());
        other += usize::from(!same);
        count += 1;
    }
    println!("{count} of {count} files byte for byte; without the layout {} of {count}", count - other);
    assert!(count > 90, "only {count} files");
}
