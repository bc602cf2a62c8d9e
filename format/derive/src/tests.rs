//! Expansions of each derive, as files: `expansions/DERIVE_NAME.rs` is expanded by the derive its name starts with and
//! compared with `DERIVE_NAME.expanded.rs`. `.ci/generate` writes the latter; adding a case needs no code here.

use std::path::{Path, PathBuf};
use std::{env, fs};

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::{Shape, named, spec, table, union};

fn expand(derive: &str, input: &DeriveInput) -> syn::Result<TokenStream> {
    match derive {
        "table" => table::derive(input, &Shape::of(input)?),
        "union" => union::derive(input, &Shape::of(input)?),
        "named" => named::derive(input),
        "spec" => spec::derive(input),
        other => panic!("no derive {other}"),
    }
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("expansions");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.to_str().is_some_and(|name| !name.ends_with(".expanded.rs")));
    files.sort();
    files
}

#[test]
fn expansions_are_those_in_the_files() {
    let mut seen = Vec::new();
    for file in cases() {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let derive = name.split('_').next().unwrap();
        let input = syn::parse_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let expanded = expand(derive, &input).unwrap_or_else(|error| panic!("{name}: {error}"));
        let text = prettyplease::unparse(&syn::parse2(expanded).unwrap());
        let golden = file.with_extension("expanded.rs");
        if env::var_os("EDGEPACK_BLESS").is_some() {
            fs::write(&golden, &text).unwrap();
        }
        let want = fs::read_to_string(&golden).unwrap_or_default();
        assert!(text == want, "{name} expands to\n{text}");
        seen.push(derive.to_owned());
    }
    seen.dedup();
    assert_eq!(seen, ["named", "spec", "table", "union"]);
}
