//! The command on every file there is, and what transcripts cannot show.

use std::fs;
use std::path::{Path, PathBuf};

use edgepack_tests::command::{Folder, edgepack};

use super::pages;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data");

fn corpus(path: &str) -> PathBuf {
    Path::new(DATA).join("corpus").join(path)
}

/// Every file of the corpora, sound or broken: no command panics, and statuses mean what they should.
#[test]
fn every_file_can_be_inspected() {
    let folders = vec![corpus(""), Path::new(DATA).join("hostile")];
    let mut seen = 0;
    for path in edgepack_tests::files_in(folders) {
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
    for entry in fs::read_dir(Path::new(DATA).join("hostile/pte")).expect("broken programs") {
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
    let path = folder.path().to_str().expect("a name in UTF-8");
    assert_eq!(edgepack(&["man", "--output", path], Vec::new(), false).status, 0);
    assert!(folder.path().join("edgepack-inspect.1").is_file());
}

/// With `--json` a command prints one document, called after it, also where it fails. Four commands have none, and
/// refuse the option.
#[test]
fn documents_are_called_after_their_commands() {
    let folder = Folder::new("documents");
    let lines = [
        "inspect MLP",
        "inspect TMP/nothing",
        "verify MLP",
        "ops MLP",
        "size MLP",
        "run MLP",
        "check MLP RUNS",
        "bench MLP --time 0.01",
        "profile MLP --runs 1",
        "extract MLP --segment 0 -o TMP/segment.bin",
        "dump MLP -o TMP/dump.json",
        "build TMP/dump.json -o TMP/built.pte",
        "print MLP -o TMP/text.txt",
        "parse TMP/text.txt -o TMP/parsed.pte",
        "diff MLP TMP/parsed.pte",
        "split MLP -o TMP/small.pte --data-out TMP/weights.ptd",
        "join TMP/small.pte --data TMP/weights.ptd -o TMP/joined.pte",
        "convert TMP/weights.ptd TMP/weights.safetensors",
        "merge TMP/weights.ptd TMP/weights.ptd -o TMP/merged.ptd",
        "list TMP/merged.ptd",
        "digest MLP TMP/merged.ptd",
        "verify MLP --against TMP/manifest",
        "lower EXPORTED -o TMP/lowered.pte",
        "explain PTE-D01",
        "smith --seed 1 -o TMP/made.pte",
        "mutate MLP --seed 2 -o TMP/broken.pte",
        "shrink MLP --test true -o TMP/shrunk.pte",
        "completions bash",
        "man",
    ];
    let path = |name: &str| corpus(name).to_str().expect("a name in UTF-8").to_owned();
    // Elsewhere there is no command that says yes to everything.
    for line in lines.into_iter().filter(|line| cfg!(unix) || !line.starts_with("shrink")) {
        let line = line.replace("TMP", folder.path().to_str().expect("a name in UTF-8"));
        let line = line.replace("MLP", &path("models/mlp_portable.pte"));
        let line = line.replace("RUNS", &path("models/mlp_portable.safetensors"));
        let line = line.replace("EXPORTED", &path("pt2/add/model.pt2"));
        let words: Vec<&str> = line.split_whitespace().chain(["--json"]).collect();
        let ran = edgepack(&words, Vec::new(), false);
        if ["dump", "print", "smith", "mutate"].contains(&words[0]) {
            assert!(ran.stdout.is_empty() && ran.status == 2, "{line}: {}", ran.stderr);
            assert!(ran.stderr.contains("has no JSON document"), "{line}: {}", ran.stderr);
            let ran = edgepack(&words[..words.len() - 1], Vec::new(), false);
            assert!(ran.stdout.is_empty() && ran.status == 0, "{line}: {}", ran.stderr);
            continue;
        }
        let document: serde_json::Value =
            serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(document["schema"], format!("edgepack/{}/1", words[0]), "{line}");
    }
}

/// The missing end of a file comes before the findings that follow from it, whatever the command.
#[test]
fn every_command_says_that_a_file_is_cut_short() {
    let folder = Folder::new("cut_short");
    let path = |name: &str| folder.path().join(name).to_str().expect("a name in UTF-8").to_owned();
    let model = corpus("models/mlp_portable.pte");
    let cut = path("cut.pte");
    fs::write(&cut, &fs::read(&model).unwrap()[..2000]).unwrap();
    let (model, data, out) = (model.to_str().unwrap(), corpus("data/one.ptd"), path("out"));
    let data = data.to_str().unwrap();
    for args in [
        &["inspect", &cut][..],
        &["verify", &cut],
        &["ops", &cut],
        &["size", &cut],
        &["run", &cut, "--zeros"],
        &["bench", &cut],
        &["profile", &cut],
        &["dump", &cut],
        &["print", &cut],
        &["diff", &cut, model],
        &["list", &cut],
        &["digest", "--parts", &cut],
        &["split", &cut, "-o", &out, "--data-out", &out],
        &["join", &cut, "--data", data, "-o", &out],
        &["view", &cut, "-o", &out],
    ] {
        let ran = edgepack(args, Vec::new(), false);
        let said = String::from_utf8_lossy(&ran.stdout) + &*ran.stderr;
        assert!(said.contains("cut short: 2 000 of 4 752 bytes"), "{args:?}: {said}");
        assert_eq!(ran.status, 1, "{args:?}");
    }
}

/// Transcripts of mistakes have ten of every command, each refused.
#[test]
fn every_command_has_its_ten_usual_mistakes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/cli");
    let mut refused: Vec<String> = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("mistakes")) {
            let text = fs::read_to_string(&path).unwrap();
            let mut last = None;
            for line in text.lines() {
                match (line.strip_prefix("$ edgepack "), line.strip_prefix("= ")) {
                    (Some(command), _) => last = Some(command.to_owned()),
                    (_, Some(status)) if status != "0" => refused.extend(last.take()),
                    _ => {}
                }
            }
        }
    }
    refused.sort_unstable();
    refused.dedup();
    for command in pages::commands() {
        let count = refused.iter().filter(|line| line.split(' ').next() == Some(command.as_str())).count();
        assert!(count >= 10, "{count} mistakes with `{command}`");
    }
}
