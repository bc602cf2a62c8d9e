//! The runner as a command: what it lists, runs and refuses.

use std::process::{Command, Output};

use edgepack_fuzz::BODIES;

/// Runs it with these words.
fn runner(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_edgepack-fuzz")).args(words).output().unwrap()
}

#[test]
fn bodies_are_listed_with_what_they_promise() {
    let listed = runner(&["list"]);
    assert!(listed.status.success());
    let text = String::from_utf8(listed.stdout).unwrap();
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, BODIES.iter().map(|body| body.name).collect::<Vec<_>>());
    assert!(BODIES.iter().all(|body| text.contains(body.promise)));
}

#[test]
fn a_body_runs() {
    let run = runner(&["run", "pte", "--executions", "50", "--seed", "7"]);
    let said = String::from_utf8([run.stdout, run.stderr].concat()).unwrap();
    assert!(run.status.success() && said.contains("executions") && said.contains(" 0 failures"), "{said}");
}

#[test]
fn unknown_words_are_refused() {
    for words in [&["walk"][..], &["run", "no_such_body"], &["smoke", "--seconds", "soon"], &[]] {
        assert_eq!(runner(words).status.code(), Some(2), "{words:?}");
    }
}
