//! The command, by transcripts: `tests/cli/*.txt` hold command lines and everything they print.
//!
//! A case is a text file. Lines of comment at its head are kept; every line `$ COMMAND` is followed by what the command
//! wrote to standard output, then by what it wrote to standard error with `! ` in front, then by `= STATUS`. Commands
//! run inside `tests/corpus`; `TMP` is an empty folder of the case, and `< FILE` at the end is standard input.
//! Besides `edgepack` there are two commands to make broken files: `truncate FILE LENGTH OUT` and
//! `patch FILE OFFSET HEX OUT`. `EDGEPACK_BLESS=1 cargo test -p edgepack-tests --test cli` writes all transcripts anew.

use std::path::{Path, PathBuf};
use std::{env, fs};

use edgepack_tests::command::{Ran, edgepack};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

fn corpus(path: &str) -> PathBuf {
    Path::new(HERE).join("corpus").join(path)
}

/// Runs one line of a case.
fn execute(line: &str, tmp: &Path) -> Result<Ran, String> {
    let line = line.replace("TMP", &tmp.display().to_string());
    let (line, stdin) = match line.split_once(" < ") {
        Some((line, file)) => (line, fs::read(file.trim()).map_err(|error| format!("{file}: {error}"))?),
        None => (line.as_str(), Vec::new()),
    };
    let words: Vec<&str> = line.split_whitespace().collect();
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

/// A folder that is gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = env::temp_dir().join(format!("edgepack-cli-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What remains of it does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn transcripts_are_what_the_command_prints() {
    env::set_current_dir(corpus("")).expect("the corpus");
    let bless = env::var_os("EDGEPACK_BLESS").is_some();
    let mut paths: Vec<PathBuf> = fs::read_dir(Path::new(HERE).join("cli"))
        .expect("tests/cli")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 10, "only {} cases", paths.len());
    let mut stale = Vec::new();
    for path in paths {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let case = fs::read_to_string(&path).expect("a case is text");
        let folder = Folder::new(&name);
        let now = transcript(&case, &folder.0).unwrap_or_else(|error| panic!("{name}: {error}"));
        if now != case {
            if bless {
                fs::write(&path, &now).expect("a case can be written");
            } else {
                let at = now.lines().zip(case.lines()).take_while(|(now, case)| now == case).count();
                let line = |text: &str| text.lines().nth(at).unwrap_or("(end)").to_owned();
                stale.push(format!("{name} line {}:\n  want {}\n  have {}", at + 1, line(&case), line(&now)));
            }
        }
    }
    assert!(stale.is_empty(), "{}\nEDGEPACK_BLESS=1 writes them anew", stale.join("\n"));
}

/// Every file of the corpora, sound or broken: no command panics, and statuses mean what they should.
#[test]
fn every_file_can_be_inspected() {
    let mut folders = vec![corpus(""), Path::new(HERE).join("hostile")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.to_str().expect("a name in UTF-8");
            let verified = edgepack(&["verify", name, "--limits", "hostile", "--json"], Vec::new(), false);
            for args in [&["inspect", name, "--all"][..], &["inspect", name, "--all", "--json"], &["size", name]] {
                let args: Vec<&str> = args.iter().copied().chain(["--limits", "hostile"]).collect();
                let ran = edgepack(&args, Vec::new(), false);
                assert_eq!(ran.status, verified.status, "{args:?}: {}", ran.stderr);
                if args.contains(&"--json") {
                    let document: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("a document");
                    assert_eq!(document["schema"], "edgepack/inspect/1", "{name}");
                }
            }
            seen += 1;
        }
    }
    assert!(seen > 150, "only {seen} files");
}

/// Everything a text inspection can say of a program is in the document, too: every field of the schema by name.
#[test]
fn no_field_is_forgotten() {
    use edgepack_format::pte::Program;
    use edgepack_format::row::{FieldKind, Table as _, TableDesc};

    fn names(desc: &'static TableDesc, found: &mut Vec<&'static str>) {
        for field in desc.fields {
            found.push(field.name);
            match field.kind {
                FieldKind::Table(below) | FieldKind::Rows(below) => names(below, found),
                FieldKind::Union(union) => union.variants.iter().for_each(|(_, _, below)| names(below, found)),
                _ => {}
            }
        }
    }
    let mut wanted = Vec::new();
    names(Program::DESC, &mut wanted);
    let (mut text, mut json) = (String::new(), String::new());
    for entry in fs::read_dir(corpus("models")).expect("the corpus") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "pte") {
            let name = path.to_str().expect("a name in UTF-8");
            text += &String::from_utf8_lossy(&edgepack(&["inspect", "--all", name], Vec::new(), false).stdout);
            json +=
                &String::from_utf8_lossy(&edgepack(&["inspect", "--all", "--json", name], Vec::new(), false).stdout);
        }
    }
    for entry in fs::read_dir(Path::new(HERE).join("hostile/pte")).expect("broken programs") {
        let path = entry.expect("an entry").path();
        let name = path.to_str().expect("a name in UTF-8");
        json += &String::from_utf8_lossy(
            &edgepack(&["inspect", "--all", "--json", name, "--limits", "hostile"], Vec::new(), false).stdout,
        );
    }
    let missing: Vec<_> = wanted.iter().filter(|name| !json.contains(&format!("\"{name}\""))).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let fields = Program::DESC.fields.iter().filter(|field| !text.contains(&format!("\n  {} ", field.name)));
    assert_eq!(fields.count(), 0);
}

#[test]
fn bench_measures_and_no_binary_goes_to_a_terminal() {
    let model = corpus("models/mlp_portable.pte");
    let model = model.to_str().expect("a name in UTF-8");
    let ran = edgepack(&["bench", model, "--time", "0.01", "--json"], Vec::new(), false);
    let document: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("a document");
    assert_eq!(document["schema"], "edgepack/bench/1");
    assert!(document["steady"]["median_ns"].as_u64().is_some_and(|time| time > 0));
    assert!(document["memory"]["planned_bytes"].as_u64().is_some_and(|bytes| bytes > 0));

    let extract = ["extract", model, "--segment", "0", "-o", "-"];
    let ran = edgepack(&extract, Vec::new(), true);
    assert_eq!((ran.status, ran.stdout.len()), (2, 0));
    let ran = edgepack(&extract, Vec::new(), false);
    assert_eq!((ran.status, ran.stdout.len()), (0, 1936));
}

#[test]
fn data_files_and_tolerances_are_heeded() {
    let path = |name: &str| corpus(name).to_str().expect("a name in UTF-8").to_owned();
    let (model, cases) = (path("models/external_portable.pte"), path("models/external_portable.safetensors"));
    let data = path("models/external_portable._default_external_constant.ptd");
    let check = |more: &[&str]| {
        let args: Vec<&str> = ["check", &model, &cases].iter().chain(more).copied().collect();
        edgepack(&args, Vec::new(), false)
    };
    assert_eq!(check(&["--data", &data]).status, 0);
    assert_eq!(check(&[]).status, 4);
    assert_eq!(check(&["--data", &model]).status, 2);
    // The runs of one input against the outputs of another: different by far, equal for a tolerance that allows all.
    let other = path("models/mutated_input_portable.safetensors");
    assert_eq!(edgepack(&["check", &model, &other, "--data", &data], Vec::new(), false).status, 1);
    let strict = check(&["--data", &data, "--rtol", "0", "--atol", "0", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&strict.stdout).expect("a document");
    let output = &document["runs"][0]["outputs"][0];
    assert_eq!(output["pass"], output["max_abs"] == 0.0);
}

#[test]
fn completions_and_manual_are_written() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = edgepack(&["completions", shell], Vec::new(), false);
        assert!(ran.status == 0 && String::from_utf8_lossy(&ran.stdout).contains("inspect"), "{shell}");
    }
    let ran = edgepack(&["man"], Vec::new(), false);
    assert!(ran.status == 0 && String::from_utf8_lossy(&ran.stdout).contains(".TH edgepack 1"));
    let folder = Folder::new("man");
    let path = folder.0.to_str().expect("a name in UTF-8");
    assert_eq!(edgepack(&["man", "--output", path], Vec::new(), false).status, 0);
    assert!(folder.0.join("edgepack-inspect.1").is_file());
}
