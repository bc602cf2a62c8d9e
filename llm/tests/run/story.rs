//! The model of `tests/data/corpus/llm_demo`, by the example that embeds it, and how well it foretells a text.

#[path = "../../examples/two_sessions/application.rs"]
mod application;

use std::ops::ControlFlow;
use std::path::PathBuf;

use edgepack_llm::generate::Cancel;
use edgepack_llm::model::Model;
use edgepack_llm::score;
use edgepack_llm::text::End;
use edgepack_llm::tokenizer::{self, SpecialTokens};

use super::support::{options, registry};
use application::Application;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/data/corpus/llm_demo")
}

const STORY: &str = " there was a little red fox named Ruby. Ruby lived under the old oak and liked to eat berries. \
                     One sunny day Ruby met Otis the owl.";

#[test]
fn the_example_streams_a_story_to_its_end() {
    let mut out = Vec::new();
    let application = Application::open(&folder()).unwrap();
    let made = application.stream("Once upon a time", Cancel::new(), &mut out).unwrap();
    assert_eq!(made.text.as_bytes(), out);
    assert!(made.text.starts_with(STORY) && made.text.ends_with("The end."), "{}", made.text);
    assert!(matches!(made.end, End::StopToken(_)), "{:?}", made.end);
}

#[test]
fn the_example_stops_a_text_from_another_thread() {
    let application = Application::open(&folder()).unwrap();
    let (read, made) = application.one_sentence("Once upon a time").unwrap();
    assert_eq!(read, " there was a little red fox named Ruby.");
    assert_eq!(made.end, End::Cancelled);
    assert!(made.text.starts_with(&read) && made.text.len() < read.len() + 30, "{}", made.text);
}

#[test]
fn the_example_writes_two_texts_in_turn() {
    let application = Application::open(&folder()).unwrap();
    let prompts = ["Once upon a time", "Long ago"];
    let [first, second] = application.in_turn(prompts, 0.0, 30).unwrap();
    for (prompt, text) in prompts.into_iter().zip([first, second]) {
        let alone = application.stream(prompt, Cancel::new(), &mut std::io::sink()).unwrap();
        assert!(text.len() > 30 && alone.text.starts_with(&text), "{text}");
    }
}

#[test]
fn the_sample_is_foretold_well() {
    let model = Model::open(folder().join("story.pte"), &registry(), &options()).unwrap();
    let tokenizer = tokenizer::open(folder().join("tokenizer.json")).unwrap();
    let text = std::fs::read_to_string(folder().join("sample.txt")).unwrap();
    let perplexity = |text: &str| {
        let ids = tokenizer.encode(text, SpecialTokens::AsText).unwrap();
        let mut session = model.session().unwrap();
        let scored = score::score(&mut session, &ids, tokenizer.bos(), |_| ControlFlow::Continue(())).unwrap();
        scored.perplexity().unwrap()
    };
    let whole = perplexity(text.trim_end());
    assert!((1.0..1.5).contains(&whole), "{whole}");
    let backwards = text.split_whitespace().rev().collect::<Vec<_>>().join(" ");
    assert!(perplexity(&backwards) > 20.0 * whole, "{whole}");
}
