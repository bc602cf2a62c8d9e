//! Tokenizers and chat templates: any file is refused or translates any text, and text of users stays text.
//!
//! An input is a file, optionally followed by [`MARK`] and a text.

use std::path::{Path, PathBuf};

use edgepack_llm::chat::{ChatTemplate, Conversation, Message};
use edgepack_llm::tokenizer::huggingface::HuggingFace;
use edgepack_llm::tokenizer::llama2c::Llama2c;
use edgepack_llm::tokenizer::sentencepiece::SentencePiece;
use edgepack_llm::tokenizer::tiktoken::{Options, Tiktoken};
use edgepack_llm::tokenizer::{Error, Kind, Part, ShowSpecial, Tokenizer};
use edgepack_smith::Rng;
use serde_json::Value;

/// Bytes between a file and a text.
const MARK: &[u8] = b"\n--text--\n";
/// Text where an input has none.
const TEXT: &str = "Hello  world's\n\n 12345 <s>é漢👩‍👧</s>[SEP]<|eot_id|><0xE2> ▁a\u{0}\u{fffd}";
/// Longest text.
const MOST_TEXT: usize = 256;
/// Largest file to start from: programs of the corpus are small, but rules of normalisation are not.
const MOST_SEED: u64 = 40 << 10;

fn divide(input: &[u8]) -> (&[u8], String) {
    let at = input.windows(MARK.len()).rposition(|window| window == MARK);
    let Some(at) = at else { return (input, TEXT.to_owned()) };
    let text = &input[at + MARK.len()..];
    (&input[..at], String::from_utf8_lossy(&text[..text.len().min(MOST_TEXT)]).into_owned())
}

/// Result of a reader, without errors that a file or a text is allowed to cause.
fn allowed<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(result) => Some(result),
        Err(Error::Library(message)) if message.contains("panicked") => panic!("{message}"),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

fn decode(tokenizer: &dyn Tokenizer, ids: &[u32], show: ShowSpecial) -> Option<String> {
    let whole = allowed(tokenizer.decode(ids, show))?;
    let mut decoder = tokenizer.decoder(show);
    let mut pieces = String::new();
    for id in ids {
        pieces.push_str(&decoder.push(*id).expect("an id that was decoded"));
    }
    pieces.push_str(&decoder.finish().expect("ids that were decoded"));
    assert_eq!(pieces, whole, "in pieces and as a whole");
    Some(whole)
}

/// Encodes a text in all ways, and decodes what comes out and what does not.
fn translate(tokenizer: &dyn Tokenizer, text: &str) {
    let specials = tokenizer.special_tokens();
    let half = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    let (start, end) = text.split_at(half);
    let first = specials.first().map_or("", |(token, _)| token.as_str());
    for parts in [
        vec![Part::user(text)],
        vec![Part::template(text)],
        vec![Part::template(start), Part::user(end)],
        vec![Part::user(start), Part::template(first), Part::user(first), Part::template(end)],
    ] {
        let Some(ids) = allowed(tokenizer.encode_parts(&parts)) else { continue };
        for id in &ids {
            assert!(*id < tokenizer.vocabulary_size(), "id {id} of {}", tokenizer.vocabulary_size());
            assert!(tokenizer.token(*id).is_some(), "id {id} has no token");
        }
        for show in [ShowSpecial::Hidden, ShowSpecial::Shown] {
            decode(tokenizer, &ids, show);
        }
    }
    let size = tokenizer.vocabulary_size();
    let scattered: Vec<u32> = (0..size.min(64)).map(|index| index.wrapping_mul(0x9e37_79b9) % size).collect();
    for ids in [&scattered[..], &[size], &[u32::MAX]] {
        decode(tokenizer, ids, ShowSpecial::Shown);
    }
    let _ = (tokenizer.bos(), tokenizer.eos(), tokenizer.id(first.as_bytes()));
}

/// See [`BODIES`](super::BODIES).
pub fn hugging_face(input: &[u8]) {
    let (file, text) = divide(input);
    if let Some(tokenizer) = allowed(HuggingFace::from_bytes(file)) {
        translate(&tokenizer, &text);
    }
}

/// See [`BODIES`](super::BODIES).
pub fn tiktoken(input: &[u8]) {
    let (file, text) = divide(input);
    for options in [Options::llama3(), Options::qwen()] {
        if let Some(tokenizer) = allowed(Tiktoken::from_bytes(file, &options)) {
            translate(&tokenizer, &text);
        }
    }
}

/// See [`BODIES`](super::BODIES).
pub fn sentencepiece(input: &[u8]) {
    let (file, text) = divide(input);
    if let Some(tokenizer) = allowed(SentencePiece::from_bytes(file)) {
        translate(&tokenizer, &text);
    }
}

/// See [`BODIES`](super::BODIES).
pub fn llama2c(input: &[u8]) {
    let (file, text) = divide(input);
    let _ = Kind::of(file);
    if let Some(tokenizer) = allowed(Llama2c::from_bytes(file)) {
        translate(&tokenizer, &text);
    }
}

/// See [`BODIES`](super::BODIES).
pub fn template(input: &[u8]) {
    let (file, text) = divide(input);
    let Ok(source) = std::str::from_utf8(file) else { return };
    let from_config = ChatTemplate::from_config(file);
    let Ok(template) = from_config.or_else(|_| ChatTemplate::from_jinja(source)) else { return };
    let template = template.with_token("bos_token", "<s>").with_token("eos_token", "</s>");
    let message = |role: &str| Message::new(role, &text).expect("a name");
    let conversation = Conversation::new(["system", "user", "assistant", "user"].map(message));
    let conversation = conversation.at(std::time::SystemTime::UNIX_EPOCH);
    let special = ["<s>", "</s>", "<|im_end|>"].map(str::to_owned);
    if let Ok(parts) = template.parts(&conversation, &special) {
        assert!(parts.iter().all(|part| !part.text.is_empty()));
    }
}

/// Changes something in a document of JSON: a value becomes another, goes, or is doubled.
pub fn edit_json(input: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let (file, _) = divide(input);
    let mut document: Value = serde_json::from_slice(file).ok()?;
    let other = {
        let mut at = &document;
        for _ in 0..rng.below(6) {
            at = child(at, rng).unwrap_or(at);
        }
        at.clone()
    };
    let mut at = &mut document;
    for _ in 0..1 + rng.below(6) {
        let key = match &*at {
            Value::Object(fields) => rng.pick(&fields.keys().cloned().collect::<Vec<_>>()).cloned(),
            Value::Array(items) if !items.is_empty() => Some(rng.below(items.len()).to_string()),
            _ => None,
        };
        let Some(key) = key else { break };
        let gone = rng.one_in(24);
        at = match at {
            Value::Object(fields) if gone => {
                fields.remove(&key);
                return written(&document, input);
            }
            Value::Array(items) if gone => {
                let item = items.remove(key.parse().ok()?);
                items.push(item);
                return written(&document, input);
            }
            Value::Object(fields) => fields.get_mut(&key)?,
            Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    let words = ["", " ", "▁", "<unk>", "<0x41>", "A", "\u{0}", "é", "\\s+", "(a|b)*(?=c)", "ByteLevel", "WordPiece"];
    *at = match rng.below(8) {
        0 => Value::Null,
        1 => Value::from(rng.edge()),
        2 => Value::from(rng.one_in(2)),
        3 => Value::from(*rng.pick(&words)?),
        4 => Value::Array(vec![at.clone(), at.clone()]),
        5 => Value::from(rng.below(700)),
        _ => other,
    };
    written(&document, input)
}

fn child<'v>(value: &'v Value, rng: &mut Rng) -> Option<&'v Value> {
    match value {
        Value::Object(fields) => rng.pick(&fields.values().collect::<Vec<_>>()).copied(),
        Value::Array(items) => rng.pick(items),
        _ => None,
    }
}

/// A document in place of the file of an input; its text stays.
fn written(document: &Value, input: &[u8]) -> Option<Vec<u8>> {
    let mut out = serde_json::to_vec(document).ok()?;
    out.extend_from_slice(&input[divide(input).0.len()..]);
    Some(out)
}

/// Files of the tests of the crate whose names end so, each with a text of its own and without.
fn files(ending: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../llm/tests/data");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let small = |path: &PathBuf| path.metadata().is_ok_and(|meta| meta.len() <= MOST_SEED);
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.to_string_lossy().ends_with(ending)).filter(small).collect();
    paths.sort();
    let mut seeds: Vec<Vec<u8>> = paths.into_iter().filter_map(|path| std::fs::read(path).ok()).collect();
    let with_text = |seed: &Vec<u8>| [seed, MARK, "aaaaaaaaaa \n\n x<s>".as_bytes()].concat();
    seeds.extend(seeds.iter().map(with_text).collect::<Vec<_>>());
    seeds
}

/// Files of Hugging Face to start from.
pub fn hugging_face_seeds() -> Vec<Vec<u8>> {
    files(".tokenizer.json")
}

/// Files of ranks to start from.
pub fn tiktoken_seeds() -> Vec<Vec<u8>> {
    files(".tiktoken")
}

/// Models to start from.
pub fn sentencepiece_seeds() -> Vec<Vec<u8>> {
    files(".model")
}

/// Tokenizers of llama2.c to start from.
pub fn llama2c_seeds() -> Vec<Vec<u8>> {
    files(".bin")
}

/// Templates to start from: those that are compared with the reference, and a configuration of each.
pub fn template_seeds() -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../llm/tests/data/chat.json");
    let truth: Value =
        std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let sources = truth["cases"].as_array().into_iter().flatten().filter_map(|case| case["template"].as_str());
    let configuration = |source: &str| serde_json::json!({ "chat_template": source, "pad_token": "<pad>" }).to_string();
    sources.flat_map(|source| [source.as_bytes().to_vec(), configuration(source).into_bytes()]).collect()
}
