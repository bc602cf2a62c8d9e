//! Workflows run scripts that exist, with parts that they have, and what releases and fuzzing elsewhere consist of agrees
//! with the manifests and the pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use edgepack_tests::command::split;

use super::structure::{names, root};

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Workflows by the name of their file.
fn workflows() -> BTreeMap<String, String> {
    let folder = root().join(".github/workflows");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    let all: BTreeMap<_, _> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "yml")).map(named).collect();
    assert!(all.len() > 4, "{:?}", all.keys());
    all
}

/// Lines without comments.
fn lines(workflow: &str) -> impl Iterator<Item = &str> {
    workflow
        .lines()
        .map(|line| line.split(" #").next().unwrap_or(line))
        .filter(|line| !line.trim_start().starts_with('#'))
}

/// Values of a key in the lines of a workflow.
fn values<'a>(workflow: &'a str, key: &str) -> Vec<&'a str> {
    let value = |line: &'a str| line.trim_start().trim_start_matches("- ").strip_prefix(key)?.strip_prefix(':');
    lines(workflow).filter_map(value).map(str::trim).collect()
}

/// Calls of scripts: the script, and its part where one is named.
fn calls(workflow: &str) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    for line in lines(workflow).filter(|line| line.contains(".ci/") && !line.contains("paths:")) {
        let words = split(line.trim());
        for at in (0..words.len()).filter(|at| words[*at].starts_with(".ci/")) {
            let part = words.get(at + 1).filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
            found.push((words[at].clone(), part.cloned()));
        }
    }
    found
}

fn has_part(script: &str, part: &str) -> bool {
    let function = format!("\n{}() {{", part.replace('-', "_"));
    script.contains(&function) || script.contains(&format!(" {part})"))
}

#[test]
fn scripts_of_workflows_exist() {
    let mut count = 0;
    for (name, workflow) in workflows() {
        for (script, part) in calls(&workflow) {
            let text = read(&script);
            assert!(text.starts_with("#!/usr/bin/env bash\n"), "{name}: {script}");
            if let Some(part) = part {
                assert!(has_part(&text, &part), "{name}: {script} has no part {part}");
            }
            count += 1;
        }
    }
    assert!(count > 12, "{count} calls of scripts");
    // Parts that a matrix names.
    let ci = read(".github/workflows/ci.yml");
    let listed = |key: &str| -> Vec<String> {
        let list = values(&ci, key).into_iter().find(|value| value.starts_with('[')).expect("a list");
        list.trim_matches(['[', ']']).split(", ").map(str::to_owned).collect()
    };
    for (script, key) in [(".ci/full", "part"), (".ci/sanitize", "tool")] {
        for part in listed(key) {
            assert!(has_part(&read(script), &part), "{script} has no part {part}");
        }
    }
    // What takes long is run by some workflow: the parts of a list, and those with a job of their own.
    let full = read(".ci/full");
    let all = full.split("\nall='").nth(1).and_then(|rest| rest.split('\'').next()).expect("the list of parts");
    for part in all.split(' ') {
        let is_run = listed("part").contains(&part.to_owned()) || ci.contains(&format!(".ci/full {part}"));
        assert!(is_run || part == "book", "no workflow runs .ci/full {part}");
    }
    assert!(!has_part(&full, "everything"));
}

#[test]
fn workflows_are_allowed_little_and_end() {
    for (name, workflow) in workflows() {
        assert!(workflow.contains("\npermissions:\n  contents: read\n"), "{name} does not say that it reads");
        let jobs = workflow.split("\njobs:\n").nth(1).expect("jobs");
        let is_job = |line: &&str| line.starts_with("  ") && !line.starts_with("   ") && line.ends_with(':');
        let count = lines(jobs).filter(is_job).count();
        assert_eq!(values(jobs, "timeout-minutes").len(), count, "{name}: each job says when it is ended");
        for used in values(&workflow, "uses") {
            let (action, version) = used.split_once('@').unwrap_or_else(|| panic!("{name}: {used} has no version"));
            assert!(action.contains('/'), "{name}: {used}");
            let is_version =
                version.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            assert!(is_version, "{name}: {used} is not pinned to a version");
        }
    }
    // What publishes waits for somebody.
    let release = read(".github/workflows/release.yml");
    for job in ["crates", "wheels", "npm"] {
        let text = release.split(&format!("\n  {job}:\n")).nth(1).expect("the job");
        let text = text.split("\n\n").next().unwrap();
        assert!(text.contains("environment: release\n") && text.contains("needs: draft\n"), "{job}");
        assert!(text.contains("if: github.ref_type == 'tag'\n"), "{job}");
    }
}

/// Lines that `.ci/release` prints.
#[cfg(unix)]
fn release(part: &[&str]) -> Vec<String> {
    let ran = std::process::Command::new("bash").arg(root().join(".ci/release")).args(part).output().expect("bash");
    assert!(ran.status.success(), "{part:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn version() -> String {
    let manifest = read("Cargo.toml");
    let package = manifest.split("[workspace.package]\n").nth(1).unwrap();
    package.split('"').nth(1).unwrap().to_owned()
}

#[cfg(unix)]
#[test]
fn releases_are_made_for_what_the_script_lists() {
    let targets: BTreeSet<String> = release(&["targets"]).into_iter().collect();
    assert!(targets.len() >= 7, "{targets:?}");
    let workflow = read(".github/workflows/release.yml");
    let of_job = |job: &str| -> BTreeSet<String> {
        let text = workflow.split(&format!("\n  {job}:\n")).nth(1).unwrap();
        let text = text.split("\n    runs-on:").next().unwrap();
        values(text, "target").into_iter().map(str::to_owned).collect()
    };
    assert_eq!(of_job("command"), targets);
    let not_static: BTreeSet<String> = targets.iter().filter(|target| !target.contains("musl")).cloned().collect();
    assert_eq!(of_job("libraries"), not_static);
    let page = read("docs/releasing.md");
    for target in &targets {
        assert!(page.contains(&format!("`{target}`")), "docs/releasing.md does not have {target}");
    }
}

#[cfg(unix)]
#[test]
fn one_version_is_everywhere() {
    assert_eq!(release(&["check"]).last().map(String::as_str), Some("one version everywhere"));
    let wrong = std::process::Command::new("bash").arg(root().join(".ci/release")).args(["check", "v0.0.0"]).output();
    assert!(!wrong.unwrap().status.success(), "a tag of another version");
}

/// The address and the place of the command in it that `cargo binstall` looks for on a target.
#[cfg(unix)]
#[test]
fn binstall_finds_the_archives() {
    let manifest = read("cli/Cargo.toml");
    let names = release(&["names"]);
    let section =
        |head: &str| manifest.split(&format!("[{head}]\n")).nth(1).map(|rest| rest.split("\n[").next().unwrap());
    let value = |section: &str, key: &str| {
        let line = section.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        line.map(|line| line.trim_end_matches('"').to_owned())
    };
    let meta = section("package.metadata.binstall").expect("what binstall reads");
    let bin = manifest.split("[[bin]]\nname = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let repository =
        read("Cargo.toml").split("\nrepository = \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    for target in release(&["targets"]) {
        let own = section(&format!("package.metadata.binstall.overrides.{target}"));
        let format = own.and_then(|own| value(own, "pkg-fmt")).or_else(|| value(meta, "pkg-fmt")).unwrap();
        let binary_ext = if target.contains("windows") { ".exe" } else { "" };
        let expand = |template: String| {
            [
                ("repo", repository.as_str()),
                ("version", &version()),
                ("target", &target),
                ("bin", bin),
                ("binary-ext", binary_ext),
                ("archive-suffix", &format!(".{format}")),
            ]
            .iter()
            .fold(template, |text, (name, value)| text.replace(&format!("{{ {name} }}"), value))
        };
        let address = expand(value(meta, "pkg-url").unwrap());
        let file = address.strip_prefix(&format!("{repository}/releases/download/v{}/", version())).expect("a release");
        assert!(names.iter().any(|name| name == file), "{file} is not a file of a release");
        let stem = file.rsplit_once('.').unwrap().0;
        assert_eq!(expand(value(meta, "bin-dir").unwrap()), format!("{stem}/edgepack{binary_ext}"));
    }
}

/// The Rust of every manifest is the one on the page about platforms.
#[test]
fn oldest_toolchains_are_those_of_the_manifests() {
    let page = read("docs/platforms.md");
    let workspace = read("Cargo.toml");
    let stated =
        |text: &str| text.split("\nrust-version = \"").nth(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    let floor = stated(&workspace).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `edgepack"));
    let mut of_page: BTreeMap<String, String> = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let rust = cells[2].split(';').next().unwrap().to_owned();
        of_page.extend(names(cells[1]).map(|name| (name.to_owned(), rust.clone())));
    }
    assert!(page.contains(&format!("from {floor} on")), "the page says from which Rust on macros are built");
    let mut count = 0;
    for (name, rust) in &of_page {
        let folder = name.strip_prefix("edgepack-").unwrap_or(".");
        let manifest = read(&format!("{folder}/Cargo.toml"));
        // That of the root has the floor of the workspace before its own.
        let own = manifest.rsplit("\n[package]\n").next().unwrap();
        let wanted = stated(&format!("\n{own}")).unwrap_or_else(|| floor.clone());
        assert_eq!(rust, &wanted, "docs/platforms.md and the manifest of {name}");
        count += 1;
    }
    assert!(count > 12, "{count} crates");
    let policy = read("docs/versions.md");
    for rust in of_page.values().chain([&floor]) {
        assert!(policy.contains(rust.as_str()), "docs/versions.md does not have {rust}");
    }
}

/// Engines elsewhere build what cargo-fuzz lists here, from files that exist.
#[test]
fn fuzzing_elsewhere_builds_every_target() {
    let build = read("fuzz/oss-fuzz/build.sh");
    assert!(build.contains("cargo fuzz list") && build.contains("EDGEPACK_SEEDS="));
    for (image, context) in [("fuzz/oss-fuzz/Dockerfile", "fuzz/oss-fuzz"), (".clusterfuzzlite/Dockerfile", ".")] {
        let text = read(image);
        let copied = text.lines().filter_map(|line| line.strip_prefix("COPY ")?.split(' ').next());
        let copied: Vec<&str> = copied.collect();
        assert!(!copied.is_empty() && text.contains("base-builder-rust"), "{image}");
        for file in copied {
            assert!(root().join(context).join(file).exists(), "{image}: {file} is not there");
        }
    }
    for description in ["fuzz/oss-fuzz/project.yaml", ".clusterfuzzlite/project.yaml"] {
        assert!(read(description).contains("language: rust\n"), "{description}");
    }
    let manifest = read("fuzz/Cargo.toml");
    for body in edgepack_fuzz::BODIES {
        assert!(manifest.contains(&format!("\nname = \"{}\"\n", body.name)), "{} has no target", body.name);
        assert!(root().join(format!("fuzz/fuzz_targets/{}.rs", body.name)).exists(), "{}", body.name);
    }
}
