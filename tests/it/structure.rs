//! Crates depend on each other as CONTRIBUTING.md draws it, modules of one crate in one direction, and the paths that
//! page names exist.
//!
//! An import of a file from its own crate is an arrow to the module that declares the item; arrows between a module and
//! one that it is inside of are left out, since a folder names what is in it. Tests inside of files do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::comments::sources;

type Module = Vec<String>;

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

/// The folder of the repository.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn contributing() -> String {
    std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap()
}

/// Texts between backticks.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Dependencies of every published crate, by folder: the rows of the table of crates with one crate each, in their
/// order. The crate at the root is called `edgepack`.
fn drawn() -> Vec<(String, BTreeSet<String>)> {
    let page = contributing();
    let cells = |row: &str| row.split('|').map(str::to_owned).collect::<Vec<_>>();
    let rows = page.lines().filter(|line| line.starts_with("| `")).map(cells);
    let one = rows.filter(|cells| cells.len() == 5 && names(&cells[1]).count() == 1);
    one.map(|cells| {
        let name = names(&cells[1]).next().unwrap().to_owned();
        (name, names(&cells[3]).map(str::to_owned).collect())
    })
    .collect()
}

fn manifest(folder: &str) -> String {
    let path = root().join(if folder == "edgepack" { "." } else { folder }).join("Cargo.toml");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Folders of the crates of ours that a crate is built with; those of its tests do not count.
fn needs(manifest: &str) -> BTreeSet<String> {
    let mut inside = false;
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]") && !line.contains("dev-") && !line.contains("workspace");
        }
        let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
        if inside && name.starts_with("edgepack") {
            found.insert(match name.strip_prefix("edgepack-") {
                None => name.to_owned(),
                Some("format-derive") => "format/derive".to_owned(),
                Some("fuzz") => "fuzz/bodies".to_owned(),
                Some(folder) => folder.to_owned(),
            });
        }
    }
    found
}

/// Folders of the packages of the workspace.
fn members() -> BTreeSet<String> {
    let manifest = manifest("edgepack");
    let list = manifest.split("\nmembers = [").nth(1).unwrap();
    let list = list.split(']').next().unwrap();
    list.split('"')
        .skip(1)
        .step_by(2)
        .map(|folder| if folder == "." { "edgepack" } else { folder }.to_owned())
        .collect()
}

#[test]
fn crates_depend_on_each_other_as_drawn() {
    let drawn = drawn();
    let published: BTreeSet<String> =
        members().into_iter().filter(|folder| !manifest(folder).contains("\npublish = false")).collect();
    assert!(published.len() > 10, "{published:?}");
    assert_eq!(drawn.iter().map(|(folder, _)| folder.clone()).collect::<BTreeSet<_>>(), published);
    let mut above: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (folder, arrows) in &drawn {
        assert_eq!(&needs(&manifest(folder)), arrows, "{folder}, beside its row in CONTRIBUTING.md");
        let mut all: BTreeSet<&str> = BTreeSet::new();
        for arrow in arrows {
            let further = above.get(arrow.as_str()).unwrap_or_else(|| panic!("{folder} needs {arrow} from below it"));
            all.insert(arrow);
            all.extend(further);
        }
        above.insert(folder, all);
    }
    // A file is the only thing that passes between them.
    assert!(!above["builder"].contains("loader") && !above["loader"].contains("builder"));
    for numbers in ["memory-plan", "compute", "format"] {
        assert!(!above[numbers].contains("executor"), "{numbers}");
    }
}

#[test]
fn paths_that_contributing_names_exist() {
    let page = contributing();
    let text: String = page.split("```").step_by(2).collect();
    let paths: Vec<&str> = names(&text)
        .filter(|name| name.contains('/') || name.ends_with(".md") || name.ends_with(".rs"))
        .filter(|name| !name.contains([' ', ':', '(']))
        .collect();
    assert!(paths.len() > 40, "{paths:?}");
    let lost: Vec<&&str> = paths.iter().filter(|path| found(&root(), path.trim_end_matches('/')).is_empty()).collect();
    assert!(lost.is_empty(), "not there: {lost:?}");
}

/// Files and folders at a path, in which `*` and `FAMILY` match any name or part of one.
pub(super) fn found(folder: &Path, path: &str) -> Vec<PathBuf> {
    let mut all = vec![folder.to_owned()];
    for part in path.split('/') {
        let pattern = part.replace("FAMILY", "*");
        all = match pattern.split_once('*') {
            None => all.into_iter().map(|folder| folder.join(part)).filter(|path| path.exists()).collect(),
            Some((start, end)) => all
                .iter()
                .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten())
                .filter(|entry| {
                    let name = entry.file_name().into_string().unwrap();
                    name.len() > start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
                })
                .map(|entry| entry.path())
                .collect(),
        };
    }
    all
}

/// No C or C++ compiler and no Python is needed to build what the lock file lists. `.ci/run` asks what is built of it.
#[test]
fn everything_is_compiled_from_rust() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let packages: BTreeSet<&str> =
        lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).collect();
    assert!(packages.contains("edgepack") && packages.len() > 100, "{packages:?}");
    // Listed, and compiled by nobody: for Haiku alone, and because a library that we use could be asked to use it.
    let spared = ["iana-time-zone-haiku", "ring"];
    let users =
        lock.split("[[package]]").filter(|package| package.contains("\n \"cc\",") || package.contains("\n \"cc "));
    let users: BTreeSet<&str> = users.filter_map(|package| package.split('"').nth(1)).collect();
    assert_eq!(users, BTreeSet::from(spared));
    for tool in ["autotools", "aws-lc-sys", "bindgen", "cmake", "cxx-build", "nasm-rs", "pkg-config", "pyo3", "vcpkg"] {
        assert!(!packages.contains(tool), "{tool}");
    }
}

#[test]
fn modules_depend_on_each_other_one_way() {
    let mut modules = 0;
    for folder in members().iter().filter(|folder| *folder != "tests") {
        let sources_of = root().join(if folder == "edgepack" { "." } else { folder }).join("src");
        let mut files = Vec::new();
        sources(&sources_of, &mut files);
        modules += files.len();
        let circles = circles(&sources_of);
        assert!(circles.is_empty(), "{folder}: {circles:#?}");
    }
    assert!(modules > 700, "{modules}: the sources are not where they were");
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
