//! Pages tell the truth about the repository: the checks that promises name exist, links and paths lead somewhere, and
//! the command takes every command line that is shown.
//!
//! `docs/promises.md` says how its tables are written; those of `SECURITY.md` are written alike.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use edgepack_tests::command::{edgepack, split};

use super::structure::{found, names, root};

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Adds the files with this extension in a folder and those inside of it.
fn files(folder: &Path, extension: &str, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extension, all);
        } else if path.extension().is_some_and(|found| found == extension) {
            all.push(path);
        }
    }
}

/// Pages at the root, those of the book, and the readme of every folder with one.
fn pages() -> Vec<PathBuf> {
    let mut all = Vec::new();
    files(&root().join("docs"), "md", &mut all);
    for entry in fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(Some(path.join("README.md")).filter(|page| page.exists())),
            false => all.extend(Some(path).filter(|page| page.extension().is_some_and(|found| found == "md"))),
        }
    }
    assert!(all.len() > 25, "{all:?}");
    all
}

/// Rows of the tables of a page, as cells; without heads and rules.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = page.lines().collect();
    let is_rule = |line: Option<&&str>| line.is_some_and(|line| line.starts_with("| -"));
    let rows = lines
        .iter()
        .enumerate()
        .filter(|(at, line)| line.starts_with("| ") && !line.starts_with("| -") && !is_rule(lines.get(at + 1)));
    rows.map(|(_, line)| line.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// Names of a cell of checks that do not exist. A path, a script with one of its parts, or a fuzz body; behind a path
/// the functions in its file or folder, behind the workflow its jobs.
fn absent(root: &Path, cell: &str) -> Vec<String> {
    let mut lost = Vec::new();
    let mut within = String::new();
    for name in names(cell) {
        let exists = if let Some(body) = name.strip_prefix("fuzz::") {
            root.join("fuzz/fuzz_targets").join(body).with_extension("rs").exists()
        } else if let Some((script, part)) = name.split_once(' ') {
            let text = fs::read_to_string(root.join(script)).unwrap_or_default();
            text.contains(&format!("\n{part}() {{")) || text.contains(&format!(" {part}) "))
        } else if name.contains('/') || name.contains('.') {
            let mut all = Vec::new();
            let path = root.join(name);
            match path.is_dir() {
                true => files(&path, "rs", &mut all),
                false => all.extend(Some(path).filter(|path| path.exists())),
            }
            within = all.iter().map(|path| read(path)).collect();
            root.join(name).exists()
        } else {
            let forms = [format!("fn {name}("), format!("def {name}("), format!("\n  {name}:\n")];
            forms.iter().any(|form| within.contains(form))
        };
        if !exists {
            lost.push(name.to_owned());
        }
    }
    lost
}

#[test]
fn checks_of_promises_exist() {
    let mut count = 0;
    for page in ["SECURITY.md", "docs/promises.md"] {
        for row in rows(&read(&root().join(page))) {
            let [promise, check, ..] = row.as_slice() else { panic!("{page}: {row:?} has no check") };
            assert!(names(check).next().is_some(), "{page}: {promise}: no check is named");
            let lost = absent(&root(), check);
            assert!(lost.is_empty(), "{page}: {promise}: not there: {lost:?}");
            count += 1;
        }
    }
    assert!(count > 60, "{count} promises");
}

#[test]
fn checks_that_do_not_exist_are_noticed() {
    let lost = |cell: &str| absent(&root(), cell);
    assert!(lost("`tests/it/pages.rs` (`checks_of_promises_exist`), `.ci/full wasm`, `.ci/sanitize miri`").is_empty());
    assert!(lost("`.github/workflows/ci.yml` (`fuzz`), `fuzz::run`, `tests/it` (`files`)").is_empty());
    assert_eq!(lost("`tests/it/structure.rs` (`no_such_test`), `tests/it/none.rs` (`x`)").len(), 3);
    assert_eq!(lost("`.ci/full everything`, `.ci/none`, `fuzz::none`, `a_name_alone`").len(), 4);
    assert_eq!(lost("`.github/workflows/ci.yml` (`none`)"), ["none"]);
}

/// Name of a heading in links to it.
fn anchor(heading: &str) -> String {
    let plain = heading.trim_start_matches('#').trim().to_lowercase();
    plain
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn links_lead_somewhere() {
    let mut count = 0;
    for page in pages() {
        let text: String = read(&page).split("```").step_by(2).collect();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (path, place) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => page.clone(),
                path => page.parent().unwrap().join(path),
            };
            assert!(target.exists(), "{}: {link} leads nowhere", page.display());
            let heads = |text: &str| text.lines().any(|line| line.starts_with('#') && anchor(line) == place);
            assert!(place.is_empty() || heads(&read(&target)), "{}: there is no heading {link}", page.display());
            count += 1;
        }
    }
    assert!(count > 30, "{count} links");
}

#[test]
fn paths_on_pages_exist() {
    let entries = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let folders: BTreeSet<String> = entries.collect();
    let mut count = 0;
    // The changelog names what is gone, pages of formats name what is inside of files.
    let is_about_others = |page: &PathBuf| page.ends_with("CHANGELOG.md") || page.to_string_lossy().contains("formats");
    for page in pages().into_iter().filter(|page| !is_about_others(page)) {
        let text: String = read(&page).split("```").step_by(2).collect();
        for name in names(&text).filter(|name| name.contains('/') && !name.contains([' ', ':', '(', '…'])) {
            // What is made by running something is not there in a checkout.
            let is_made = ["target/", "fuzz/artifacts", "fuzz/corpus", "bindings/wasm/dist"]
                .iter()
                .any(|made| name.starts_with(made));
            if is_made || !folders.contains(name.split('/').next().unwrap_or_default()) {
                continue;
            }
            let is_placeholder = |part: &&str| part.chars().all(|c| c.is_ascii_uppercase());
            let parts: Vec<&str> = name.trim_end_matches('/').split('/').collect();
            let path =
                parts.iter().map(|part| if is_placeholder(part) { "*" } else { part }).collect::<Vec<_>>().join("/");
            let exists = [root(), page.parent().unwrap().to_owned()].iter().any(|from| !found(from, &path).is_empty());
            assert!(exists, "{}: {name} is not there", page.display());
            count += 1;
        }
    }
    assert!(count > 100, "{count} paths");
}

/// Command lines in the blocks of a page, without their comments.
fn command_lines(page: &str) -> Vec<String> {
    let blocks: Vec<&str> = page.split("```").skip(1).step_by(2).collect();
    let lines = blocks.iter().flat_map(|block| block.lines()).map(|line| line.trim_start_matches("$ "));
    let lines = lines.map(|line| line.split(" #").next().unwrap_or(line).trim());
    let lines = lines.map(|line| {
        line.strip_prefix("cargo run --release --bin edgepack -- ")
            .map_or(line.to_owned(), |rest| format!("edgepack {rest}"))
    });
    lines.filter(|line| line.starts_with("edgepack ")).collect()
}

#[test]
fn the_command_takes_every_line_that_is_shown() {
    let mut count = 0;
    for page in pages() {
        for line in command_lines(&read(&page)) {
            // With `--help` at its end a line is taken apart, and nothing runs.
            let words = split(line.split(" < ").next().unwrap_or(&line));
            let words: Vec<&str> = words.iter().skip(1).map(String::as_str).chain(["--help"]).collect();
            let ran = edgepack(&words, Vec::new(), false);
            assert_eq!(ran.status, 0, "{}: {line}\n{}", page.display(), ran.stderr);
            count += 1;
        }
    }
    assert!(count > 40, "{count} command lines");
    assert_ne!(edgepack(&["inspect", "file", "--no-such-option", "--help"], Vec::new(), false).status, 0);
}

/// Names of all commands, as the help lists them.
pub fn commands() -> Vec<String> {
    let help = String::from_utf8(edgepack(&["--help"], Vec::new(), false).stdout).unwrap();
    let list = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    // Lines that go on from the one above are indented further.
    let lines = list.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let commands: Vec<&str> = lines.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 20, "{help}");
    commands.into_iter().filter(|command| *command != "help").map(str::to_owned).collect()
}

#[test]
fn the_page_about_the_command_has_every_command() {
    let page = read(&root().join("docs/commands.md"));
    for command in commands() {
        let shown = [format!("edgepack {command} "), format!("`{command}`"), format!("`{command} ")];
        assert!(shown.iter().any(|shown| page.contains(shown)), "docs/commands.md does not have `{command}`");
    }
}
