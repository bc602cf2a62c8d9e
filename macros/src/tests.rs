//! Expansions of `#[kernel]` and `include_program!`, as files: `expansions/NAME.rs` holds uses of the macros, and
//! `NAME.expanded.rs` their expansions. `.ci/generate` writes the latter; adding a case needs no code here.

use std::path::Path;
use std::{env, fs};

use quote::ToTokens;
use syn::{File, Item, Meta};

use crate::{kernel, program};

fn expand(item: Item) -> syn::Result<File> {
    let tokens = match item {
        Item::Fn(mut function) => {
            let attribute = function.attrs.remove(0);
            let Meta::List(list) = attribute.meta else { panic!("the first attribute is that of the macro") };
            kernel::expand(list.tokens, function.into_token_stream())?
        }
        Item::Macro(item) => program::expand(item.mac.tokens)?,
        other => panic!("no macro is called by {}", other.into_token_stream()),
    };
    syn::parse2(tokens)
}

#[test]
fn expansions_are_those_in_the_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("expansions");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.to_str().is_some_and(|name| name.ends_with(".rs") && !name.ends_with(".expanded.rs")));
    files.sort();
    assert!(files.len() >= 4);
    for file in files {
        let items = syn::parse_file(&fs::read_to_string(&file).unwrap()).unwrap().items;
        let name = file.display();
        let expanded = items.into_iter().map(|item| expand(item).unwrap_or_else(|error| panic!("{name}: {error}")));
        // The path of the repository is not part of the expansion.
        let own = env!("CARGO_MANIFEST_DIR");
        let text = expanded.map(|file| prettyplease::unparse(&file)).collect::<Vec<_>>().join("\n").replace(own, "");
        let golden = file.with_extension("expanded.rs");
        if env::var_os("EDGEPACK_BLESS").is_some() {
            fs::write(&golden, &text).unwrap();
        }
        let want = fs::read_to_string(&golden).unwrap_or_default();
        assert!(text == want, "{name} expands to\n{text}");
    }
}

/// The message of a program that is refused, without the repository's own place.
fn refused(input: &str) -> String {
    let error = program::expand(input.parse().unwrap()).unwrap_err();
    error.to_string().replace(env!("CARGO_MANIFEST_DIR"), "HERE")
}

#[test]
fn a_file_that_is_no_good_program_is_refused_with_every_error() {
    assert_eq!(
        refused(r#""../tests/data/hostile/pte/jump_negative.pte""#),
        "../tests/data/hostile/pte/jump_negative.pte is not a valid program:\n\
         error PTE-C08 execution_plan[0].chains[0].instructions[3].instr_args.destination_instruction at 0x2c0: \
         -7 of 5 instructions"
    );
    assert!(refused(r#""no/file.pte""#).starts_with("cannot read HERE/no/file.pte: "));
    let data = r#""../tests/data/corpus/data/one.ptd""#;
    assert_eq!(refused(data), "../tests/data/corpus/data/one.ptd is not a program: ExecuTorch data file");
    assert!(refused(r#""Cargo.toml""#).starts_with("Cargo.toml is not a valid program:\nerror PTE-"));
}

#[test]
fn an_operator_outside_the_list_is_refused_with_its_place() {
    assert_eq!(
        refused(r#""../tests/data/corpus/models/mlp_portable.pte", operators = ["aten::addmm.out", "aten::relu.out"]"#),
        "../tests/data/corpus/models/mlp_portable.pte calls operators that are not listed:\n\
         `aten::permute_copy.out`, first in method `forward` at chains[0].instructions[0]\n\
         `aten::tanh.out`, first in method `forward` at chains[0].instructions[5]"
    );
    assert_eq!(refused(r#""a.pte", operator = []"#), "expected `operators`, `module` or `crate`");
}
