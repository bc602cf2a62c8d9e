//! Documents of `--json` and their published schemas: `docs/json` holds what the types give, every document of a transcript
//! fits the schema of its command, and has no field that the schema does not name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use edgepack_cli::documents;
use edgepack_tests::command::edgepack;
use jsonschema::Validator;
use serde_json::{Deserializer, Value, json};

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn published_schemas_are_those_of_the_types() {
    let folder = folder("../docs/json");
    let mut wanted = BTreeMap::new();
    for (command, schema) in documents::schemas() {
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        wanted.insert(format!("{command}.json"), text);
    }
    if std::env::var_os("EDGEPACK_BLESS").is_some() {
        fs::create_dir_all(&folder).unwrap();
        wanted.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
    }
    for (name, text) in &wanted {
        let stored = fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert!(stored == *text, "docs/json/{name} is stale: .ci/generate writes it");
    }
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    for file in files.filter(|file| file.ends_with(".json")) {
        assert!(wanted.contains_key(&file), "docs/json/{file} is of no command");
    }
}

/// Refuses fields without a name in the schema: in the document itself, and in every definition but those of whole
/// documents, which `schema` stands next to.
fn closed(mut schema: Value) -> Value {
    let bodies: Vec<String> = schema["anyOf"].as_array().unwrap().iter().map(reference).collect();
    schema["unevaluatedProperties"] = json!(false);
    for (name, definition) in schema["$defs"].as_object_mut().unwrap() {
        let open = definition.get("additionalProperties").is_some() || definition.get("properties").is_none();
        if !open && !bodies.contains(name) {
            definition["unevaluatedProperties"] = json!(false);
        }
    }
    schema
}

fn reference(body: &Value) -> String {
    body["$ref"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned()
}

/// Validators by the name of a schema.
fn validators() -> BTreeMap<String, (Value, Validator)> {
    let made = documents::schemas().into_iter().map(|(command, schema)| {
        let closed = closed(schema);
        let validator = jsonschema::validator_for(&closed).unwrap_or_else(|error| panic!("{command}: {error}"));
        (format!("edgepack/{command}/1"), (closed, validator))
    });
    made.collect()
}

/// Documents in what a command printed: one, several, an array of them.
fn documents_in(output: &str) -> Vec<Value> {
    let values = Deserializer::from_str(output).into_iter::<Value>().map_while(Result::ok);
    let flat = values.flat_map(|value| match value {
        Value::Array(list) => list,
        value => vec![value],
    });
    flat.filter(Value::is_object).collect()
}

/// Command lines with `--json` of all transcripts, and what they print.
fn transcripts() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder("data/cli")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for part in text.split("\n$ ").skip(1) {
            let (line, rest) = part.split_once('\n').unwrap_or((part, ""));
            if line.contains("--json") {
                let printed = rest.lines().take_while(|line| !line.starts_with("! ") && !line.starts_with("= "));
                found.push((line.to_owned(), printed.collect::<Vec<_>>().join("\n")));
            }
        }
    }
    found
}

#[test]
fn documents_of_all_commands_fit_their_schemas() {
    let validators = validators();
    let mut outputs = transcripts();
    assert!(outputs.len() > 50, "only {} command lines", outputs.len());
    let corpus = folder("data/corpus");
    let at = |name: &str| corpus.join(name).display().to_string();
    let made = tempfile::tempdir().unwrap();
    let out = |name: &str| made.path().join(name).display().to_string();
    let mut answer = |args: &[&str], stdin: &str| {
        let ran = edgepack(args, stdin.into(), false);
        assert!(!ran.stdout.is_empty(), "{args:?}: {}", ran.stderr);
        outputs.push((args.join(" "), String::from_utf8(ran.stdout).unwrap()));
    };
    let (story, tokenizer) = (at("llm_demo/story.pte"), at("llm_demo/tokenizer.json"));
    let template = at("llm_demo/tokenizer_config.json");
    let chat = ["chat", &story, "-t", &tokenizer, "--template", &template, "-n", "2", "--quiet", "--json"];
    answer(&chat, "Where does the owl live?\n");
    let mut run = |args: &[&str]| answer(args, "");
    for args in [
        &["explain", "--json"][..],
        &["explain", "PTE-D01", "--json"],
        &["explain", "NotFound", "--json"],
        &["completions", "bash", "--json"],
        &["man", "--json"],
        &["bench", &at("models/mlp_portable.pte"), "--time", "0.01", "--json"],
        &["bench", &at("models/mlp_portable.pte"), "--time", "0.01", "--roofline", "--json"],
        &["profile", &at("models/mlp_xnnpack.pte"), "--runs", "1", "--json"],
        &["compare", &at("models/mlp_portable.pte"), "--rewrites", "--json"],
        &["view", &at("models/mlp_xnnpack.pte"), "--json"],
        &["digest", "--parts", &at("data/tensors.ptd"), "--json"],
        &["list", &at("models/mlp_portable.pte"), "--json"],
        &["verify", "-r", &corpus.display().to_string(), "--json"],
        // Those whose results are files.
        &["convert", &at("data/tensors.ptd"), &out("tensors.safetensors"), "--json"],
        &["split", &at("models/mlp_portable.pte"), "-o", &out("s.pte"), "--data-out", &out("s.ptd"), "--json"],
        &["join", &out("s.pte"), "--data", &out("s.ptd"), "-o", &out("joined.pte"), "--json"],
        &["lower", &at("pt2/add/model.pt2"), "-o", &out("lowered.pte"), "--json"],
        &["shrink", &at("models/mlp_portable.pte"), "--test", "test -s", "-o", &out("least.pte"), "--json"],
        &["perplexity", &story, "-t", &tokenizer, &at("llm_demo/sample.txt"), "--json"],
    ] {
        run(args);
    }
    // Every family, and many files of each; a larger corpus where there is one.
    let mut folders = vec![corpus.clone()];
    folders.extend(std::env::var_os("EDGEPACK_CORPUS").map(PathBuf::from));
    for folder in folders {
        let folder = folder.display().to_string();
        run(&["inspect", "-r", &folder, "--json"]);
        run(&["ops", "-r", &folder, "--json"]);
        run(&["ops", "-r", &folder, "--releases", "--json"]);
        run(&["size", "-r", &folder, "--json"]);
    }
    run(&["inspect", "--all", &at("models/mlp_xnnpack.pte"), &at("bundled/mlp_two_cases.bpte"), "--json"]);

    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (line, output) in outputs {
        let mut last = None;
        for document in documents_in(&output) {
            // Lines of text that is made while it is printed have the schema of the first.
            let schema = document["schema"].as_str().map(str::to_owned).or(last);
            last = schema.clone();
            let Some(schema) = schema else { continue };
            if schema.starts_with("edgepack/dump") || document.get("execution_plan").is_some() {
                continue;
            }
            let failed = document.get("error").is_some_and(Value::is_object);
            match validators.get(&schema) {
                None if failed => {}
                None => wrong.push(format!("{line}: {schema} has no schema")),
                Some((_, validator)) => {
                    if let Some(error) = validator.iter_errors(&document).next() {
                        let error = error.to_string();
                        let error: String = error.chars().take(600).collect();
                        wrong.push(format!("{line}: {schema} of {}: {error}", document["file"]));
                    }
                    *seen.entry(schema).or_default() += usize::from(!failed);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} documents: {:#?}", wrong.len(), &wrong[..wrong.len().min(12)]);
    let unseen: Vec<&String> =
        validators.keys().filter(|schema| seen.get(*schema).copied().unwrap_or(0) == 0).collect();
    assert!(unseen.is_empty(), "no document of {unseen:?}; documents: {seen:?}");
}

#[test]
fn a_document_with_another_field_does_not_fit() {
    let validators = validators();
    let (_, validator) = &validators["edgepack/join/1"];
    let fits = |document: Value| validator.is_valid(&document);
    assert!(fits(json!({ "schema": "edgepack/join/1", "bytes": 4, "output": "o.pte" })));
    assert!(fits(json!({ "schema": "edgepack/join/1", "error": { "message": "m", "status": 3 } })));
    assert!(!fits(json!({ "schema": "edgepack/join/1", "bytes": 4, "output": "o.pte", "more": 1 })));
    assert!(!fits(json!({ "schema": "edgepack/join/1", "bytes": "4", "output": "o.pte" })));
    assert!(!fits(json!({ "schema": "edgepack/merge/1", "bytes": 4, "output": "o.pte" })));
    assert!(!fits(json!({ "schema": "edgepack/join/1", "output": "o.pte" })));
}
