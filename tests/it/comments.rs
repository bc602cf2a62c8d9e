//! Comments on items open with a verb or a noun, never with a question.

use std::path::{Path, PathBuf};

/// Rust files below a folder, but for those of builds.
pub fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with(".git") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// First lines of the comments on items and modules that open with a question word.
fn questions(text: &str) -> Vec<&str> {
    let comment = |line: &str| {
        let line = line.trim_start();
        ["///", "//!"].iter().find_map(|mark| line.strip_prefix(mark)).map(|text| text.trim_start().to_owned())
    };
    let asks = |line: &str| ["What ", "Where ", "How ", "Which "].iter().any(|word| line.starts_with(word));
    let mut before = None;
    let mut found = Vec::new();
    for line in text.lines() {
        let here = comment(line);
        if before.is_none() && here.as_deref().is_some_and(asks) {
            found.push(line.trim());
        }
        before = here;
    }
    found
}

#[test]
fn comments_open_with_a_verb_or_a_noun() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut files);
    assert!(files.len() > 1000, "{}: the sources are not where they were", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        found.extend(questions(&text).into_iter().map(|line| format!("{}: {line}", file.display())));
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn questions_are_found() {
    let text =
        "//! How it works.\n\n/// Number of\n/// What comes later.\nfn f() {}\n    /// Which of them.\n    x: u8,\n";
    assert_eq!(questions(text), ["//! How it works.", "/// Which of them."]);
}
