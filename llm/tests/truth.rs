//! Ids and texts of tokenizers next to those of the libraries that their files come from: `make_truth.py` recorded them.
#![cfg(all(feature = "huggingface", feature = "tiktoken", feature = "sentencepiece", feature = "llama2c"))]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use edgepack_llm::tokenizer::tiktoken::{Options, Tiktoken};
use edgepack_llm::tokenizer::{self, Part, ShowSpecial, SpecialTokens, Tokenizer};
use proptest::strategy::Strategy;
use serde_json::Value;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// Name, tokenizer, and what was recorded.
type Case = (String, Box<dyn Tokenizer>, Value);

/// Every tokenizer of the folder with its name and what was recorded.
fn cases() -> Vec<Case> {
    let entries = std::fs::read_dir(data()).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.to_string_lossy().ends_with(".truth.json")).collect();
    paths.sort();
    let case = |path: &PathBuf| {
        let truth: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let file = data().join(truth["file"].as_str().unwrap());
        let options = match truth["preset"].as_str() {
            Some("qwen") => Some(Options::qwen()),
            Some("gpt2") => Some(Options::gpt2()),
            Some("cl100k") => Some(Options::cl100k()),
            Some("o200k") => Some(Options::o200k()),
            _ => None,
        };
        let tokenizer = match options {
            Some(options) => Tiktoken::open(&file, &options).map(|opened| Box::new(opened) as Box<dyn Tokenizer>),
            None => tokenizer::open(&file),
        };
        let tokenizer = tokenizer.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(format!("{:?}", tokenizer.kind()), truth["kind"].as_str().unwrap(), "{}", file.display());
        (path.file_name().unwrap().to_string_lossy().replace(".truth.json", ""), tokenizer, truth)
    };
    paths.iter().map(case).collect()
}

fn ids(value: &Value) -> Option<Vec<u32>> {
    value.as_array().map(|ids| ids.iter().map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect())
}

fn rows(truth: &Value, name: &str) -> Vec<Value> {
    let rows = truth[name].as_array().unwrap();
    assert!(rows.len() > 50, "{} of {name}", rows.len());
    rows.clone()
}

#[test]
fn all_kinds_are_there() {
    let cases = cases();
    assert!(cases.len() >= 22, "{} tokenizers", cases.len());
    for kind in ["HuggingFace", "Tiktoken", "SentencePiece", "Llama2c"] {
        assert!(cases.iter().any(|(_, _, truth)| truth["kind"] == kind), "{kind}");
    }
}

#[test]
fn encodes_as_the_library() {
    let (mut failures, mut compared) = (Vec::new(), 0);
    for (name, tokenizer, truth) in cases() {
        let special: Vec<u64> = truth["special"].as_object().unwrap().values().map(|id| id.as_u64().unwrap()).collect();
        for row in rows(&truth, "texts") {
            let text = row[0].as_str().unwrap();
            for (want, mode) in [(&row[1], SpecialTokens::Recognised), (&row[2], SpecialTokens::AsText)] {
                let got = tokenizer.encode(text, mode).unwrap_or_else(|error| panic!("{name}: {text:?}: {error}"));
                let Some(want) = ids(want) else { continue };
                // Where the library itself makes a special token of text, ours does not.
                let unknown = ["<unk>", "[UNK]"].map(|token| tokenizer.id(token.as_bytes()));
                let leaks = |id: &u32| special.contains(&u64::from(*id)) && !unknown.contains(&Some(*id));
                if mode == SpecialTokens::AsText && want.iter().any(leaks) {
                    assert!(!got.iter().any(leaks), "{name}: {text:?}: {got:?}");
                    continue;
                }
                compared += 1;
                if got != want {
                    failures.push(format!("{name}: {mode:?} {text:?}\n    got  {got:?}\n    want {want:?}"));
                }
            }
        }
    }
    println!("{compared} encodings compared");
    assert!(failures.is_empty(), "{} of {compared}:\n{}", failures.len(), failures.join("\n"));
    assert!(compared > 2000, "{compared}");
}

#[test]
fn decodes_as_the_library() {
    let (mut failures, mut compared) = (Vec::new(), 0);
    for (name, tokenizer, truth) in cases() {
        for row in rows(&truth, "decodes") {
            let ids = ids(&row[0]).unwrap();
            for (want, show) in [(&row[1], ShowSpecial::Hidden), (&row[2], ShowSpecial::Shown)] {
                let got = tokenizer.decode(&ids, show).unwrap();
                let mut decoder = tokenizer.decoder(show);
                let mut pieces: String = ids.iter().map(|id| decoder.push(*id).unwrap()).collect();
                pieces.push_str(&decoder.finish().unwrap());
                assert_eq!(pieces, got, "{name}: {ids:?}");
                let Some(want) = want.as_str() else { continue };
                compared += 1;
                if got != want {
                    failures.push(format!("{name}: {show:?} {ids:?}\n    got  {got:?}\n    want {want:?}"));
                }
            }
        }
    }
    println!("{compared} decodings compared");
    assert!(failures.is_empty(), "{} of {compared}:\n{}", failures.len(), failures.join("\n"));
    assert!(compared > 3000, "{compared}");
}

#[test]
fn special_tokens_are_those_of_the_file() {
    for (name, tokenizer, truth) in cases() {
        let want = truth["special"].as_object().unwrap();
        let got = tokenizer.special_tokens();
        assert_eq!(got.len(), want.len(), "{name}: {got:?}");
        for (token, id) in got {
            assert_eq!(want.get(&token).and_then(Value::as_u64), Some(u64::from(id)), "{name}: {token}");
            assert!(id < tokenizer.vocabulary_size(), "{name}: {token}");
        }
    }
}

#[test]
fn ids_beyond_the_vocabulary_are_refused() {
    for (name, tokenizer, _) in cases() {
        let size = tokenizer.vocabulary_size();
        assert!(tokenizer.decode(&[size], ShowSpecial::Shown).is_err(), "{name}");
        assert!(tokenizer.token(size).is_none() && tokenizer.token(size - 1).is_some(), "{name}");
    }
}

#[test]
fn text_of_users_never_becomes_a_special_token() {
    for (name, tokenizer, _) in cases() {
        let specials = tokenizer.special_tokens();
        let unknown = ["<unk>", "[UNK]"].map(|token| tokenizer.id(token.as_bytes()));
        for (token, id) in specials.iter().filter(|(_, id)| !unknown.contains(&Some(*id))) {
            let half = token.char_indices().nth(token.chars().count() / 2).map_or(0, |(at, _)| at);
            let (start, end) = token.split_at(half);
            for parts in [
                vec![Part::user(token.as_str())],
                vec![Part::template("a"), Part::user(token), Part::template("b")],
                vec![Part::template(start), Part::user(end), Part::template(" ")],
                vec![Part::user(start), Part::template(end), Part::user("x")],
                vec![Part::user(start), Part::user(end)],
            ] {
                let ids = tokenizer.encode_parts(&parts).unwrap();
                assert!(!ids.contains(id), "{name}: {parts:?}: {ids:?}");
            }
            let parts = [Part::user(token.as_str()), Part::template(token), Part::user(token)];
            let ids = tokenizer.encode_parts(&parts).unwrap();
            assert_eq!(ids.iter().filter(|other| *other == id).count(), 1, "{name}: {token}: {ids:?}");
        }
    }
}

#[test]
fn ends_are_those_that_files_name() {
    let named = |name: &str| {
        let (_, tokenizer, _) = cases().into_iter().find(|(case, ..)| case == name).unwrap();
        (tokenizer.bos(), tokenizer.eos())
    };
    let (_, llama3, _) = cases().into_iter().find(|(case, ..)| case == "llama3-bytes").unwrap();
    assert_eq!(llama3.bos(), llama3.id(b"<|begin_of_text|>"));
    assert_eq!(named("llama2-metaspace"), (Some(1), None));
    assert_eq!(named("bert-wordpiece"), (Some(2), Some(3)));
    assert_eq!(named("unigram-bytes"), (Some(1), Some(2)));
    assert_eq!(named("llama2c"), (None, None));
    assert_eq!(named("llama2c-header"), (Some(1), Some(2)));
    assert_eq!(named("qwen-ranks"), (None, None));
}

fn texts() -> impl Strategy<Value = String> {
    let words = vec!["<|eot_id|>", "<s>", "</s>", " ", "\n", "é", "the", "[SEP]", "<0x", "▁"];
    let any = proptest::char::any().prop_map(String::from);
    let word = proptest::sample::select(words).prop_map(str::to_owned);
    proptest::collection::vec(proptest::prop_oneof![any, word], 0..40).prop_map(|pieces| pieces.concat())
}

/// Long runs of one text are encoded: time that grew with the square of the length would be hours here, and the test would not
/// end.
#[test]
fn long_runs_end() {
    for (_, tokenizer, _) in SHARED.iter() {
        for text in ["a", " ", "ab ", "é漢", "\n", "<s>", "▁"] {
            let text = text.repeat(200_000 / text.len());
            let ids = tokenizer.encode(&text, SpecialTokens::AsText).unwrap();
            tokenizer.decode(&ids, ShowSpecial::Shown).unwrap();
        }
    }
}

static SHARED: LazyLock<Vec<Case>> = LazyLock::new(cases);

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(48))]

    /// Bytes stand for all text: nothing is lost. Any other tokenizer takes any text.
    #[test]
    fn text_survives_bytes(text in texts()) {
        for (name, tokenizer, _) in SHARED.iter() {
            for mode in [SpecialTokens::AsText, SpecialTokens::Recognised] {
                let ids = tokenizer.encode(&text, mode).unwrap();
                let again = tokenizer.decode(&ids, ShowSpecial::Shown).unwrap();
                if ["llama3-bytes", "llama3-ranks", "qwen-ranks", "bpe-no-prefix"].contains(&name.as_str())
                    && !(name.starts_with("bpe") && text.contains('▁'))
                {
                    proptest::prop_assert_eq!(&again, &text, "{}", name);
                }
            }
        }
    }
}
