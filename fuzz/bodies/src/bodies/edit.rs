//! Files taken apart: what is written again, printed and parsed, or dumped and built is the same.

use std::sync::Arc;

use edgepack::edit::{DiffOptions, Opened, build, diff, dump};
use edgepack::text;
use edgepack_format::limits::Limits;
use edgepack_loader::MemorySource;

const EXACT: DiffOptions = DiffOptions { rtol: 0.0, atol: 0.0, exact: true };

/// Beyond this a file of shared tables may unfold into a text that only takes time.
const MOST: usize = 64 << 10;

fn open(data: &[u8]) -> Option<Opened> {
    let source = Arc::new(MemorySource::new(data.to_vec()));
    Opened::from_source(source, Limits::hostile()).ok().filter(|_| data.len() <= MOST)
}

/// See [`BODIES`](super::BODIES).
pub fn edit(data: &[u8]) {
    let Some(file) = open(data) else { return };
    let Ok(package) = file.package() else { return };
    // Contents at places where no file has bytes cannot be written.
    let Ok(written) = package.to_bytes() else { return };
    assert!(package.to_bytes().expect("a second time") == written);
    let json = dump(&package).expect("what can be written can be dumped");
    let built = build(&json).unwrap_or_else(|error| panic!("{error}"));
    assert!(diff(&package, &built, &EXACT).expect("readable").is_empty(), "dump and build differ");
    assert!(built.to_bytes().expect("writable") == written, "dump and build write other bytes");
    if let Ok(places) = file.places(&package) {
        let mut package = package.clone();
        package.places = Some(Box::new(places));
        let json = dump(&package).expect("what can be written can be dumped");
        let built = build(&json).unwrap_or_else(|error| panic!("{error}"));
        assert!(built.to_bytes().expect("writable") == data, "with its layout the file is another one");
    }
    if package.program().is_some() {
        let printed = text::print(&package).expect("what can be written can be printed");
        let parsed = text::parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
        assert!(diff(&package, &parsed, &EXACT).expect("readable").is_empty(), "print and parse differ");
    }
}

/// See [`BODIES`](super::BODIES).
pub fn text(data: &[u8]) {
    let Ok(input) = std::str::from_utf8(data) else { return };
    match text::parse(input) {
        Ok(package) => {
            let printed = text::print(&package).expect("what was parsed can be printed");
            let again = text::parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
            assert!(diff(&package, &again, &EXACT).expect("readable").is_empty(), "printed and parsed, it differs");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Err(error) = build(input) {
        assert!(!error.to_string().is_empty());
    }
}

/// Texts of small programs.
pub fn texts() -> Vec<Vec<u8>> {
    let files = crate::seeds::corpus(&["pte"]);
    let texts = files.iter().filter_map(|path| {
        let file = open(&std::fs::read(path).ok()?)?;
        text::print(&file.package().ok()?).ok()
    });
    texts.filter(|text| text.len() < 4096).take(24).map(String::into_bytes).collect()
}
