//! Every form that a step can have gives the logits of the whole text; what cannot be run soundly is refused by name.

use edgepack_llm::error::Error;
use edgepack_llm::model::{Cache, Length, Model, Options, Positions, Rank, Rows};
use edgepack_loader::Program;

use crate::support::{assert_close, open, options, reference, refusal, registry};

/// Names, and how far rounding of the output may take them.
const FORMS: [(&str, f32); 11] = [
    ("dynamic_last", 1e-5),
    ("positions", 1e-5),
    ("one", 1e-5),
    ("one_i32", 1e-5),
    ("one_f16", 1e-3),
    ("one_bf16", 8e-3),
    ("nocache", 1e-5),
    ("nocache_padded", 1e-5),
    ("two_methods", 1e-5),
    ("features", 1e-5),
    ("custom", 1e-5),
];

#[test]
fn every_form_gives_the_logits_of_the_whole_text() {
    let (tokens, logits) = reference();
    for (name, tolerance) in FORMS {
        let model = open(name);
        for cut in [1, 2, 4, 5, 9] {
            let mut session = model.session().unwrap();
            let mut at = 0;
            for piece in tokens.chunks(cut) {
                let have = session.prefill(piece).unwrap();
                at += piece.len();
                assert_close(have, &logits[at - 1], tolerance, &format!("{name} in pieces of {cut}, after {at}"));
            }
            assert_eq!((session.position(), session.tokens()), (9, &tokens[..]));
        }
    }
}

#[test]
fn forms_are_found_out() {
    let of = |name: &str| {
        let model = open(name);
        let form = model.prefill_form().clone();
        (form.length, form.positions, form.rows, model.cache(), model.context())
    };
    use Cache::{Absent, ByPosition, Sequential};
    use Length::{Exactly, UpTo};
    use Positions::{Each, First};
    assert_eq!(of("dynamic_last"), (UpTo(15), First, Rows::Last, ByPosition, 16));
    assert_eq!(of("custom"), (Exactly(1), First, Rows::Last, ByPosition, 16));
    assert_eq!(of("positions"), (UpTo(15), Each, Rows::All, ByPosition, 16));
    assert_eq!(of("one"), (Exactly(1), First, Rows::Last, ByPosition, 16));
    assert_eq!(of("nocache"), (UpTo(16), Positions::Absent, Rows::All, Absent, 16));
    assert_eq!(of("nocache_padded"), (Exactly(16), Positions::Absent, Rows::All, Absent, 16));
    assert_eq!(of("two_methods"), (Exactly(4), First, Rows::Last, ByPosition, 16));
    assert_eq!(of("running"), (Exactly(1), First, Rows::Last, Sequential, 16));
    let features = open("features");
    assert_eq!(features.prefill_form().rank, Rank::Embeddings { width: 8 });
    assert_eq!(features.embedding_form().unwrap().method, "token_embedding");
    let metadata = features.metadata();
    assert_eq!((metadata.bos_id, metadata.eos_ids.as_slice(), metadata.n_layers), (Some(1), &[2, 3][..], Some(1)));
}

#[test]
fn what_cannot_be_run_soundly_is_refused_by_name() {
    let plain = options();
    let wants = |name: &str, part: &str| {
        let message = refusal(name, &plain);
        assert!(message.contains(part), "{name}: {message}");
    };
    wants("four", "method `forward`: every call takes exactly 4 tokens");
    wants("nocache_padded_last", "returns the logits of the last one alone");
    wants("nocache_both_ways", "those that would fill it up change the logits before them");
    wants("two_caches", "method `decode`: it shares no planned memory with `prefill`");
    let named = |prefill: &str| Options { prefill: Some(prefill.to_owned()), ..options() };
    assert!(refusal("one", &named("get_bos_id")).contains("it takes 0 inputs"));
    assert!(refusal("one", &named("absent")).contains("absent"));
    let decode_alone = Options { decode: Some("prefill".to_owned()), ..options() };
    assert!(refusal("two_methods", &decode_alone).contains("every call takes exactly 4 tokens"));
    let other_memory = Options { shared_memory: vec![9], ..options() };
    assert!(refusal("two_methods", &other_memory).contains("has no planned memory 9"));
    let no_backend = Options { prefill: Some("text_decoder".to_owned()), ..options() };
    assert!(refusal("features", &no_backend).contains("f32"));
}

#[test]
fn rows_of_features_are_what_tokens_become() {
    let (tokens, logits) = reference();
    let model = open("features");
    let program = model.program();
    let mut embedding =
        edgepack_executor::Method::load(program, "token_embedding", &registry(), &options().executor).unwrap();
    let ids: Vec<u8> = tokens.iter().flat_map(|&token| i64::from(token).to_le_bytes()).collect();
    let view = edgepack_format::tensor::TensorView::of::<i64>(&[1, 9], &ids).unwrap();
    let outputs = embedding.run(&[view]).unwrap();
    let rows = outputs.get(0).unwrap().tensor().unwrap().as_slice::<f32>().unwrap().to_vec();

    let mut session = model.session().unwrap();
    session.prefill(&tokens[..3]).unwrap();
    assert_close(session.prefill_embeddings(&rows[3 * 8..7 * 8]).unwrap(), &logits[6], 1e-5, "features");
    assert_close(session.prefill(&tokens[7..]).unwrap(), &logits[8], 1e-5, "tokens behind features");
    assert_eq!(session.tokens()[3..7], [edgepack_llm::session::NO_TOKEN; 4]);
    let wrong = session.prefill_embeddings(&rows[..9]).unwrap_err().to_string();
    assert!(wrong.contains("9 numbers are no rows of 8"), "{wrong}");
    let mut bad = [0.0; 16];
    bad[9] = f32::NAN;
    assert_eq!(session.prefill_embeddings(&bad).unwrap_err().to_string(), "embeddings: row 1 has the number NaN");
    assert_eq!(session.position(), 9);
    assert!(matches!(session.prefill_embeddings(&[]), Err(Error::Empty)));
    let tokens_alone = open("one").session().unwrap().prefill_embeddings(&rows).unwrap_err().to_string();
    assert!(tokens_alone.contains("takes tokens"), "{tokens_alone}");
}

#[test]
fn a_smaller_context_can_be_asked_for() {
    let program = Program::open(crate::support::path("one.pte")).unwrap();
    let small = Options { context: Some(3), ..options() };
    let model = Model::load(&program, &registry(), &small).unwrap();
    let mut session = model.session().unwrap();
    session.prefill(&[1, 2]).unwrap();
    let full = session.prefill(&[3, 4]);
    assert!(matches!(full, Err(Error::ContextFull { position: 2, more: 2, limit: 3 })));
    session.decode(5).unwrap();
    assert_eq!(session.decode(6).unwrap_err().to_string(), "1 tokens after 3: the context has room for 3");
    assert_eq!(session.position(), 3);
}
