//! Numbers of places with `unsafe`, by file: a change of these numbers is looked at before it lands.

use std::collections::BTreeMap;
use std::path::Path;

use super::comments::sources;

/// Occurrences of the keyword outside comments and strings that only mention it.
fn count(text: &str) -> usize {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.map(|line| {
        ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"]
            .iter()
            .map(|word| line.matches(word).count())
            .sum::<usize>()
    })
    .sum()
}

#[test]
fn unsafe_stands_only_where_it_is_expected() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut counts = BTreeMap::new();
    for folder in [
        "src",
        "format",
        "memory-plan",
        "compute",
        "macros",
        "builder",
        "loader",
        "executor",
        "kernels",
        "xnnpack",
        "native",
        "exir",
        "llm/src",
        "smith",
        "cli/src",
        "bindings/c/src",
        "bindings/python/src",
    ] {
        let mut files = Vec::new();
        sources(&root.join(folder), &mut files);
        for file in files {
            let number = count(&std::fs::read_to_string(&file).unwrap());
            if number > 0 {
                let name = file.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
                counts.insert(name, number);
            }
        }
    }
    let list: Vec<String> = counts.iter().map(|(file, number)| format!("{file} {number}")).collect();
    insta::assert_snapshot!(list.join("\n"));
}
