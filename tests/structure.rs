//! Modules of one crate depend on each other one way.
//!
//! What a file imports from its own crate is an arrow to the module that declares it; arrows between a module and one that
//! it is inside of are left out, since a folder names what is in it. Tests inside of files do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The crates of more than a few modules.
const CRATES: [&str; 12] = [
    "format",
    "memory-plan",
    "compute",
    "builder",
    "loader",
    "executor",
    "kernels",
    "xnnpack",
    "exir",
    "native",
    "smith",
    "cli",
];

type Module = Vec<String>;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The module a file is, from the crate's root.
fn module(root: &Path, file: &Path) -> Module {
    let path = file.strip_prefix(root).unwrap().with_extension("");
    let mut names: Module = path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    // Files of stages are named in the order of the stages.
    names
        .iter_mut()
        .for_each(|name| *name = name.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_').to_owned());
    if names.last().is_some_and(|name| name == "mod" || name == "lib" || name == "main") {
        names.pop();
    }
    names
}

/// Every path that a `use` names, from `crate`, `self` or `super` on.
fn imports(text: &str) -> Vec<Module> {
    let code: String =
        text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    let code = code.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    for (start, _) in code.match_indices("use ") {
        let before = code[..start].trim_end_matches(' ').chars().next_back();
        if !matches!(before, None | Some('\n' | '{' | ';' | ')' | 'b')) {
            continue;
        }
        let Some(end) = code[start..].find(';') else { continue };
        let tree: String = code[start + 4..start + end].chars().filter(|c| !c.is_whitespace()).collect();
        expand(&tree, &[], &mut found);
    }
    found.retain(|path| path.first().is_some_and(|first| matches!(first.as_str(), "crate" | "self" | "super")));
    found
}

/// `a::{b,c::{d,e}}` as paths.
fn expand(tree: &str, prefix: &[String], found: &mut Vec<Module>) {
    match tree.split_once('{') {
        None => {
            // Without spaces `a as b` is `aasb`, which no module is called: the path ends above it.
            found.push(prefix.iter().cloned().chain(tree.split("::").map(str::to_owned)).collect());
        }
        Some((head, rest)) => {
            let mut prefix = prefix.to_vec();
            prefix.extend(head.split("::").filter(|name| !name.is_empty()).map(str::to_owned));
            let inside = rest.strip_suffix('}').unwrap_or(rest);
            let (mut depth, mut from) = (0, 0);
            for (at, c) in inside.char_indices().chain([(inside.len(), ',')]) {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        if from < at {
                            expand(&inside[from..at], &prefix, found);
                        }
                        from = at + 1;
                    }
                    _ => {}
                }
            }
        }
    }
}

/// The longest module that a path begins with.
fn resolve(from: &Module, path: &Module, modules: &BTreeSet<Module>) -> Module {
    let mut whole = match path[0].as_str() {
        "crate" => Vec::new(),
        _ => from.clone(),
    };
    for name in path {
        match name.as_str() {
            "crate" | "self" => {}
            "super" => drop(whole.pop()),
            name => whole.push(name.to_owned()),
        }
    }
    while !modules.contains(&whole) {
        whole.pop();
    }
    whole
}

/// Modules of a crate in circles, each circle once.
fn circles(root: &Path) -> Vec<Vec<String>> {
    let mut files = Vec::new();
    sources(root, &mut files);
    files.retain(|file| {
        !file
            .strip_prefix(root)
            .unwrap()
            .components()
            .any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
    });
    let modules: BTreeSet<Module> = files.iter().map(|file| module(root, file)).chain([Vec::new()]).collect();
    let mut arrows: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for file in &files {
        let from = module(root, file);
        for path in imports(&std::fs::read_to_string(file).unwrap()) {
            let to = resolve(&from, &path, &modules);
            if !from.starts_with(&to) && !to.starts_with(&from) {
                arrows.entry(from.clone()).or_default().insert(to);
            }
        }
    }
    let reach: BTreeMap<&Module, BTreeSet<&Module>> = modules
        .iter()
        .map(|start| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
            while let Some(at) = open.pop() {
                open.extend(arrows.get(at).into_iter().flatten().filter(|next| seen.insert(*next)));
            }
            (start, seen)
        })
        .collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for start in modules.iter().filter(|start| reach[start].contains(start)) {
        let circle = modules.iter().filter(|other| reach[start].contains(other) && reach[other].contains(start));
        found.insert(circle.map(|module| module.join("::")).collect());
    }
    found.into_iter().collect()
}

fn sources_of(name: &str) -> usize {
    let mut files = Vec::new();
    sources(&folder_of(name), &mut files);
    files.len()
}

fn folder_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src")
}

fn of_crate(name: &str) -> Vec<Vec<String>> {
    circles(&folder_of(name))
}

#[test]
fn modules_depend_on_each_other_one_way() {
    assert!(sources_of("cli") > 50, "the sources are not where they were");
    let circles: Vec<_> =
        CRATES.map(|name| (name, of_crate(name))).into_iter().filter(|(_, all)| !all.is_empty()).collect();
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn circles_are_found() {
    let folder = std::env::temp_dir().join(format!("edgepack_structure_{}", std::process::id()));
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod a;\nmod b;\n");
    write("a.rs", "use crate::{b::{self, c::Deep}, d};\n");
    write("b/mod.rs", "pub use self::c::Deep;\n");
    write("b/c.rs", "use super::Up;\n// use crate::a::No;\n");
    assert_eq!(circles(&folder), Vec::<Vec<String>>::new());
    write("b/c.rs", "pub(crate) use crate::a;\n");
    assert_eq!(circles(&folder), [["a", "b::c"]]);
    write("b/c.rs", "#[cfg(test)]\nmod tests { use crate::a; }\n");
    assert_eq!(circles(&folder), Vec::<Vec<String>>::new());
    std::fs::remove_dir_all(folder).unwrap();
}
