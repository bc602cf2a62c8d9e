//! The header is made of the crate, and stored: `EDGEPACK_BLESS=1 cargo test --test it header` writes it.

use std::path::Path;

/// Text before what cbindgen writes.
const OPENING: &str = "\
/*
 * edgepack: on-device model packages, opened, verified, loaded and run.
 *
 * Handles are numbers. Zero stands for none. One that was never given, was closed, or stands for another kind of object is
 * answered with EDGEPACK_CODE_INVALID_ARGUMENT: closing twice and using after closing are errors, not crashes. (After 2^31
 * objects in one place of the table of handles, an old number can stand for a new object.) A call on another thread that uses
 * an object while it is closed is finished first.
 *
 * Functions return EDGEPACK_CODE_OK or the code of an error. Where the last argument is an EdgepackError, it may be null; if
 * it is not, it is zero on success, and otherwise an object that says why, which is the caller's to close. There is no state
 * of threads or of the process to ask for errors.
 *
 * Results are written on success only. Pointers that are null, not aligned to their type, or for more elements than memory
 * can have are answered with an error. That a pointer leads to as many elements as its function says is the caller's promise:
 * the library cannot see it. What the library leads to by pointers is read only, unless it is an EdgepackTensorMut, and is
 * gone as each function says; using it then is the caller's error, which the library cannot see either.
 *
 * Panics of the library end in the function that was called: it returns EDGEPACK_CODE_INTERNAL. A method that panicked answers
 * every later call with EDGEPACK_CODE_INVALID_STATE. Memory that the system does not give for small bookkeeping ends the
 * process, as SECURITY.md says.
 *
 * Every function may be called on any thread, at any time, unless it says otherwise.
 *
 * Made by cbindgen of the crate edgepack-c. Do not edit.
 */
";

/// Writes pointers as C does. In the crate they are types of their own, of which cbindgen makes names like `Out_usize`.
fn plain_pointers(header: &str) -> String {
    let mut pointers: Vec<(String, String)> = Vec::new();
    let mut kept: Vec<&str> = Vec::new();
    for line in header.lines() {
        let declared = line.strip_prefix("typedef ").and_then(|line| line.strip_suffix(';')?.rsplit_once('*'));
        match declared.filter(|(_, name)| name.starts_with("In_") || name.starts_with("Out_")) {
            Some((target, name)) => {
                pointers.push((format!("{name} "), format!("{target}*")));
                // Its comment, and the line between it and what is before.
                while kept.last().is_some_and(|line| line.starts_with("//") || line.is_empty()) {
                    kept.pop();
                }
            }
            None => kept.push(line),
        }
    }
    let mut text = kept.join("\n") + "\n";
    // Longer names first: one may end like another; and again, for pointers to pointers.
    pointers.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    for _ in 0..3 {
        for (name, target) in &pointers {
            text = text.replace(&format!("const {name}*"), &format!("{target}const *")).replace(name, target);
        }
    }
    text
}

#[test]
fn the_header_is_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    let made = cbindgen::Builder::new()
        .with_crate(root)
        .with_config(config)
        .with_header(OPENING.trim_end())
        .generate()
        .expect("a header");
    let mut text = Vec::new();
    made.write(&mut text);
    let text = plain_pointers(&String::from_utf8(text).expect("text"));
    let path = root.join("include/edgepack.h");
    if std::env::var_os("EDGEPACK_BLESS").is_some() {
        std::fs::write(&path, &text).expect("the header");
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == text,
        "include/edgepack.h is not what the crate says: EDGEPACK_BLESS=1 cargo test --test it header"
    );
}

/// Every function says whose its memory is, where it leads to any, and which threads may call it.
#[test]
fn every_function_says_which_threads_may_call_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = std::fs::read_to_string(root.join("include/edgepack.h")).expect("the header");
    let (mut comment, mut functions, mut started) = (String::new(), 0, false);
    for line in header.lines() {
        if let Some(words) = line.strip_prefix("//") {
            if !started {
                comment.clear();
            }
            started = true;
            comment.push_str(words);
            continue;
        }
        started = false;
        if let Some(at) = line.find("edgepack_").filter(|_| !line.starts_with(' ') && line.contains('(')) {
            let name = line[at..].split('(').next().unwrap_or_default();
            functions += 1;
            assert!(comment.contains("hreads"), "{name} does not say which threads may call it");
            let gives = name.ends_with("_new")
                || name.contains("_open") && name != "edgepack_open_handles"
                || name.ends_with("_load");
            assert!(!gives || comment.contains("Ownership"), "{name} does not say whose its result is");
        }
    }
    assert!(functions > 80, "{functions} functions were found");
}
