//! The dictionaries of `smith/dict` that are made from what they are about: constants of the formats, the table of
//! operators, and the documents that campaigns begin with.
//!
//! `flatbuffers`, `library`, `operator_schema` and `pickle` are written by hand.

use std::collections::BTreeSet;
use std::path::Path;

use edgepack_exir::archive::{Archive, records};
use edgepack_format::header::{DataHeader, ProgramHeader};
use edgepack_format::operators::{Schema, in_programs};
use edgepack_format::pte::backends::KNOWN;
use edgepack_format::pte::metadata::METADATA_PREFIX;
use edgepack_format::{bundle, darwinn, ptd, pte, tflite, trace, xnnpack};
use edgepack_smith::dictionary::{self, write};
use serde_json::Value;

use crate::bodies::body;
use crate::seeds;

/// Longest word: what is longer is seldom found in one piece.
const MOST: usize = 48;

type Words = BTreeSet<Vec<u8>>;

fn words<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Words {
    words.into_iter().map(|word| word.as_ref().to_vec()).filter(|word| word.len() <= MOST).collect()
}

fn seeds_of(name: &str) -> Vec<Vec<u8>> {
    body(name).expect("a body").inputs().expect("readable files")
}

fn program() -> Words {
    let mut found = words([pte::IDENTIFIER, ProgramHeader::MAGIC]);
    for operator in in_programs() {
        let schema = Schema::parse(operator.schema()).expect("a schema of the table");
        found.extend(words([schema.name(), schema.overload()]));
    }
    found.extend(words(KNOWN.iter().map(|backend| backend.id)));
    found.extend(words(["XnnpackBackend", METADATA_PREFIX, "forward"]));
    found.remove(&b""[..]);
    found
}

fn compiled() -> Words {
    let mut found = words([darwinn::IDENTIFIER, tflite::IDENTIFIER]);
    found.extend(words([tflite::OPERATOR, tflite::VARIABLE_SUFFIX]));
    found
}

/// Keys of a document, and its texts that say which case of something follows.
fn keys(document: &Value, is_word: &dyn Fn(&str) -> bool, found: &mut Words) {
    match document {
        Value::Array(items) => items.iter().for_each(|item| keys(item, is_word, found)),
        Value::Object(fields) => {
            for (key, value) in fields {
                let is_case = key == "type" || key == "behavior";
                if let Some(text) = value.as_str().filter(|text| is_case || is_word(text)) {
                    found.extend(words([format!("\"{text}\"")]));
                }
                keys(value, is_word, found);
            }
        }
        _ => {}
    }
}

/// Maps whose keys are names of somebody: nodes, symbols, files, tokens.
const MAPS: [&str; 4] = ["range_constraints", "config", "vocab", "guards_code"];

/// Fields that every document of a kind may have, in quotes: keys that two of them have.
fn fields(documents: &[Value]) -> Words {
    fn own(document: &Value, are_names: bool, found: &mut BTreeSet<String>) {
        match document {
            Value::Array(items) => items.iter().for_each(|item| own(item, false, found)),
            Value::Object(fields) => fields.iter().for_each(|(key, value)| {
                if !are_names && key.parse::<u64>().is_err() {
                    found.insert(key.clone());
                }
                own(value, !are_names && (MAPS.contains(&key.as_str()) || key.ends_with("_values")), found);
            }),
            _ => {}
        }
    }
    let of_each = documents.iter().map(|document| {
        let mut found = BTreeSet::new();
        own(document, false, &mut found);
        found
    });
    repeated(of_each).into_iter().map(|key| [b"\"", key.as_slice(), b"\""].concat()).collect()
}

/// Words that at least two of many have.
fn repeated(many: impl Iterator<Item = BTreeSet<String>>) -> Words {
    let mut once = BTreeSet::new();
    let mut twice = BTreeSet::new();
    for word in many.flatten() {
        if !once.insert(word.clone()) {
            twice.insert(word);
        }
    }
    words(twice)
}

fn archive() -> Words {
    let (mut documents, mut names) = (Vec::new(), Vec::new());
    for bytes in seeds_of("pt2") {
        let Ok(archive) = Archive::parse(&bytes) else { continue };
        names.push(archive.records().iter().map(|record| record.name.clone()).collect());
        let inside = records(&bytes).unwrap_or_default();
        documents.extend(inside.iter().filter_map(|(_, bytes)| serde_json::from_slice::<Value>(bytes).ok()));
    }
    assert!(documents.len() > 10, "{} documents", documents.len());
    let mut found = fields(&documents);
    found.extend(repeated(names.into_iter()));
    let is_callee = |text: &str| text.starts_with("torch.ops.") || text.starts_with("_operator.");
    documents.iter().for_each(|document| keys(document, &is_callee, &mut found));
    found
}

/// Names in a text: letters, digits and underscores.
fn names(text: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(text);
    let parts = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    parts.filter(|part| part.len() > 1 && !part.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned).collect()
}

fn element_types() -> Words {
    let mut found = words(seeds_of("exir_text").iter().flat_map(|text| names(text)));
    found.extend(words([" // ", " % ", "**", "Integer(-1)", "9223372036854775807", "integer=True"]));
    found
}

fn tokenizer() -> Words {
    let documents: Vec<Value> =
        seeds_of("tokenizer_json").iter().filter_map(|bytes| serde_json::from_slice(bytes).ok()).collect();
    assert!(documents.len() > 2, "{} tokenizers", documents.len());
    let mut found = fields(&documents);
    documents.iter().for_each(|document| keys(document, &|_| false, &mut found));
    found
}

fn chat_template() -> Words {
    let expressions = seeds_of("chat_template").into_iter().map(|template| {
        let text = String::from_utf8_lossy(&template).into_owned();
        let inside = text.split(['{', '}']).skip(1).filter(|part| part.starts_with(['%', ' ', '-']));
        names(inside.collect::<Vec<_>>().join(" ").as_bytes())
    });
    let mut found = repeated(expressions);
    found.extend(words(["{%", "{%-", "%}", "-%}", "{{", "}}", "{#", "#}", "[::-1]", "|", "~", "**"]));
    found
}

#[test]
fn dictionaries_are_those_of_the_formats() {
    let magics = |all: &[[u8; 4]]| words(all);
    let made = [
        ("archive", archive()),
        ("bundle", magics(&[bundle::IDENTIFIER])),
        ("chat_template", chat_template()),
        ("compiled", compiled()),
        ("data", magics(&[ptd::IDENTIFIER, ptd::FLAT_DATA_IDENTIFIER, DataHeader::MAGIC])),
        ("element_types", element_types()),
        ("payload", magics(&[xnnpack::IDENTIFIER, xnnpack::OLD_IDENTIFIER, xnnpack::Header::MAGIC])),
        ("program", program()),
        ("tokenizer", tokenizer()),
        ("trace", magics(&[trace::IDENTIFIER])),
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../smith/dict");
    for (name, words) in made {
        let path = folder.join(format!("{name}.dict"));
        let want = format!("# Written by `.ci/generate -p edgepack-fuzz`.\n{}", write(&words));
        if std::env::var_os("EDGEPACK_BLESS").is_some() {
            std::fs::write(&path, &want).expect("a file that can be written");
        }
        let have = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(have, want, "{} is stale: .ci/generate -p edgepack-fuzz writes it again", path.display());
    }
    let files = std::fs::read_dir(&folder).expect("the dictionaries").flatten().map(|entry| entry.path());
    let files: BTreeSet<String> =
        files.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    assert_eq!(files, dictionary::ALL.iter().map(|(name, _)| (*name).to_owned()).collect());
}

/// Bodies whose inputs are decisions of a generator, or formats of numbers alone.
const WITHOUT: [&str; 13] = [
    "kernels",
    "operators",
    "named_data",
    "compile_specs",
    "child_answers",
    "builder",
    "xnnpack_run",
    "xnnpack_lower",
    "packed_entry",
    "tiktoken",
    "sentencepiece",
    "llama2c",
    "saved_session",
];

#[test]
fn every_body_has_words_or_is_known_to_have_none() {
    for body in crate::BODIES {
        assert_eq!(body.words().is_empty(), WITHOUT.contains(&body.name), "{}", body.name);
        assert!(!body.inputs().expect("readable files").is_empty(), "{} has nothing to start from", body.name);
    }
}

#[test]
fn large_files_are_no_seeds() {
    assert!(seeds::corpus(&["pte"]).len() > 40);
    assert!(seeds_of("pte").iter().all(|seed| seed.len() <= 64 << 10));
}
