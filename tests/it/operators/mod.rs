//! Every operator of the library, called with examples: the names of the stock runtime's libraries, the page about
//! them, what holds for all, arguments that no exporter writes, and what the stock runtime computed.

mod algebra;
mod hostile;
mod names;
mod oracle;
mod recorded;

use std::path::Path;
use std::{env, fs};

use edgepack_tests::catalogue::page;

#[test]
fn the_page_about_operators_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operators.md");
    let fresh = page(&edgepack_kernels::registry()).unwrap();
    if env::var_os("EDGEPACK_BLESS").is_some() {
        fs::write(&path, &fresh).unwrap();
    }
    let have = fs::read_to_string(&path).unwrap_or_default();
    let line = fresh.lines().zip(have.lines()).find(|(fresh, have)| fresh != have);
    assert!(fresh == have, "docs/operators.md is stale, {line:?}; .ci/generate writes it");
}
