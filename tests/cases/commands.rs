//! The command, by transcripts: `tests/data/cli/*.txt` hold command lines and everything they print.
//!
//! A case is a text file. Lines of comment at its head are retained; every line `$ COMMAND` is followed by what the
//! command wrote to standard output, then by what it wrote to standard error with `! ` in front, then by `= STATUS`.
//! Commands run inside `tests/data/corpus`; `TMP` is an empty folder of the case, and `< FILE` at the end is standard
//! input. Besides `edgepack` there are commands that make files: `truncate FILE LENGTH OUT` and
//! `patch FILE OFFSET HEX OUT` broken ones, `lines OUT LINE | LINE` one of text. `.ci/generate` writes transcripts again.

use std::path::{Path, PathBuf};
use std::{env, fs};

use edgepack_tests::command::{Folder, Ran, edgepack, split};
use libtest_mimic::{Failed, Trial};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data");

/// Lists a test per transcript. Commands find files from the folder of the corpus, which becomes that of the process.
pub fn trials() -> Vec<Trial> {
    env::set_current_dir(Path::new(DATA).join("corpus")).expect("the corpus");
    let entries = fs::read_dir(Path::new(DATA).join("cli")).expect("the transcripts");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    assert!(paths.len() >= 10, "only {} transcripts", paths.len());
    let name = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let one = |path: PathBuf| Trial::test(format!("commands::{}", name(&path)), move || replay(&path, &name(&path)));
    let mut trials: Vec<Trial> = paths.into_iter().map(one).collect();
    trials.push(Trial::test("commands::the_tour", || shown("tour", None)));
    trials.push(Trial::test("commands::the_needs", || shown("needs", None)));
    trials.push(Trial::test("commands::why_it_is_wrong", || quoted("wrong")));
    trials.push(Trial::test("commands::the_view", || quoted("view")));
    trials.push(Trial::test("commands::slow_models", || shown("slow", None)));
    trials.push(Trial::test("commands::language_models", || shown("language-models", Some("## A model of your own"))));
    trials
}

/// Every command of a page of `docs` succeeds, in a block or in a cell of a table, down to a heading behind which they are for other files.
fn shown(name: &str, until: Option<&str>) -> Result<(), Failed> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/{name}.md")))?;
    let page = match until {
        Some(heading) => page.split_once(heading).ok_or_else(|| format!("{name}.md has no {heading}"))?.0,
        None => &page,
    };
    let folder = Folder::new(name);
    let lines = page.lines().filter_map(|line| match line.starts_with("| ") {
        true => line.split('`').find(|cell| cell.starts_with("edgepack ")),
        false => Some(line).filter(|line| line.starts_with("edgepack ")),
    });
    let lines: Vec<&str> = lines.map(|line| line.split(" #").next().unwrap_or(line).trim_end()).collect();
    assert!(lines.len() > 10, "only {} commands", lines.len());
    for line in lines {
        let ran = execute(&line.replace("/tmp", "TMP"), folder.path())?;
        if ran.status != 0 {
            return Err(Failed::from(format!("{line}: status {}\n{}", ran.status, ran.stderr)));
        }
    }
    Ok(())
}

/// Every command in a `console` block of a page of `docs` prints the lines below it, in order; `…` stands for any.
fn quoted(name: &str) -> Result<(), Failed> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/{name}.md"));
    let page = fs::read_to_string(&path)?;
    let folder = Folder::new(name);
    let (mut printed, mut failed, mut within, mut commands) = (Vec::new(), Vec::new(), false, 0);
    for line in page.lines() {
        match (line, within) {
            ("```console", _) => within = true,
            ("```", true) => within = false,
            (command, true) if command.starts_with("$ ") => {
                let ran = execute(&command[2..].replace("/tmp", "TMP"), folder.path())?;
                let all = String::from_utf8_lossy(&ran.stdout).into_owned() + &ran.stderr;
                let tmp = folder.path().display().to_string();
                printed = all.lines().map(|line| line.replace(&tmp, "/tmp")).collect::<Vec<_>>();
                printed.reverse();
                commands += 1;
            }
            ("…", true) => {}
            (wanted, true) => {
                while printed.last().is_some_and(|line| line != wanted) {
                    printed.pop();
                }
                if printed.pop().is_none() {
                    failed.push(format!("not printed: {wanted}"));
                }
            }
            _ => {}
        }
    }
    assert!(commands > 4, "only {commands} commands");
    if failed.is_empty() { Ok(()) } else { Err(Failed::from(failed.join("\n"))) }
}

/// Compares a transcript with what its commands print now.
fn replay(path: &Path, name: &str) -> Result<(), Failed> {
    let case = fs::read_to_string(path)?;
    let folder = Folder::new(name);
    let now = transcript(&case, folder.path())?;
    if now == case {
        return Ok(());
    }
    if env::var_os("EDGEPACK_BLESS").is_some() {
        return Ok(fs::write(path, &now)?);
    }
    let at = now.lines().zip(case.lines()).take_while(|(now, case)| now == case).count();
    let line = |text: &str| text.lines().nth(at).unwrap_or("(end)").to_owned();
    Err(Failed::from(format!("line {}:\n  want {}\n  have {}", at + 1, line(&case), line(&now))))
}

/// Runs one line of a case.
fn execute(line: &str, tmp: &Path) -> Result<Ran, String> {
    let line = line.replace("TMP", &tmp.display().to_string());
    let (line, stdin) = match line.split_once(" < ") {
        Some((line, file)) => (line, fs::read(file.trim()).map_err(|error| format!("{file}: {error}"))?),
        None => (line.as_str(), Vec::new()),
    };
    let words = split(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = || Ran { stdout: Vec::new(), stderr: String::new(), status: 0 };
    let read = |file: &str| fs::read(file).map_err(|error| format!("{file}: {error}"));
    match words.as_slice() {
        ["edgepack", args @ ..] => Ok(edgepack(args, stdin, false)),
        ["truncate", file, len, out] => {
            let mut bytes = read(file)?;
            bytes.truncate(len.parse().map_err(|error| format!("{len}: {error}"))?);
            fs::write(out, bytes).map_err(|error| error.to_string())?;
            Ok(done())
        }
        ["patch", file, offset, hex, out] => {
            let mut bytes = read(file)?;
            let offset: usize = offset.parse().map_err(|error| format!("{offset}: {error}"))?;
            for (index, pair) in hex.as_bytes().chunks(2).enumerate() {
                let digits = std::str::from_utf8(pair).map_err(|error| error.to_string())?;
                bytes[offset + index] = u8::from_str_radix(digits, 16).map_err(|error| error.to_string())?;
            }
            fs::write(out, bytes).map_err(|error| error.to_string())?;
            Ok(done())
        }
        ["lines", out, text @ ..] => {
            fs::write(out, text.join(" ").replace(" | ", "\n")).map_err(|error| error.to_string())?;
            Ok(done())
        }
        _ => Err(format!("no such command: {line}")),
    }
}

/// The transcript of a case: its head, and every command with what it prints now.
fn transcript(case: &str, tmp: &Path) -> Result<String, String> {
    let mut out = String::new();
    for line in case.lines().take_while(|line| !line.starts_with("$ ")) {
        out.push_str(&format!("{line}\n"));
    }
    for line in case.lines().filter(|line| line.starts_with("$ ")) {
        let ran = execute(&line[2..], tmp)?;
        out.push_str(&format!("{line}\n{}", String::from_utf8_lossy(&ran.stdout)));
        if !ran.stdout.is_empty() && !ran.stdout.ends_with(b"\n") {
            out.push('\n');
        }
        for complaint in ran.stderr.lines() {
            out.push_str(format!("! {complaint}").trim_end());
            out.push('\n');
        }
        out.push_str(&format!("= {}\n", ran.status));
    }
    Ok(out.replace(&tmp.display().to_string(), "TMP"))
}
