//! Sessions: going back, several over one model, and what a session leaves when something fails.

use edgepack_llm::error::Error;
use edgepack_llm::session::Session;
use proptest::prelude::*;

use crate::support::{difference, open, reference};

/// Forms whose sessions differ in how they treat state.
pub const KINDS: [&str; 8] =
    ["dynamic_last", "positions", "one", "custom", "nocache", "two_methods", "running", "features"];

fn follow(session: &mut Session, tokens: &[u32]) -> Vec<Vec<f32>> {
    tokens.iter().map(|&token| session.decode(token).unwrap().to_vec()).collect()
}

#[test]
fn going_back_gives_what_came_the_first_time() {
    let (tokens, _) = reference();
    for name in KINDS {
        let mut session = open(name).session().unwrap();
        session.prefill(&tokens[..4]).unwrap();
        let first = follow(&mut session, &tokens[4..]);
        // Other tokens in between leave no trace.
        session.rewind(2).unwrap();
        assert!(session.logits().is_none() && session.position() == 2);
        follow(&mut session, &[9, 9, 9, 9, 9, 9]);
        session.rewind(2).unwrap();
        follow(&mut session, &tokens[2..4]);
        assert_eq!(follow(&mut session, &tokens[4..]), first, "{name}");
        session.rewind(9).unwrap();
        assert!(session.logits().is_some(), "nothing was taken away");
        let beyond = session.rewind(10).unwrap_err().to_string();
        assert_eq!(beyond, "position 10: the session has 9 tokens");
        session.reset().unwrap();
        assert_eq!((session.position(), session.room()), (0, 16));
        session.prefill(&tokens[..4]).unwrap();
        assert_eq!(follow(&mut session, &tokens[4..]), first, "{name} after a reset");
    }
}

#[test]
fn interleaved_sessions_are_what_each_is_alone() {
    let texts: [[u32; 8]; 2] = [[1, 5, 9, 13, 17, 21, 2, 6], [3, 3, 8, 0, 23, 11, 4, 4]];
    for name in KINDS {
        let model = open(name);
        let alone = texts.map(|text| follow(&mut model.session().unwrap(), &text));
        assert_ne!(alone[0], alone[1]);
        let mut sessions = [model.session().unwrap(), model.session().unwrap()];
        for at in 0..8 {
            for which in 0..2 {
                let logits = sessions[which].decode(texts[which][at]).unwrap();
                assert_eq!(logits, alone[which][at], "{name}, session {which}, token {at}");
            }
        }
    }
}

#[test]
fn models_and_sessions_go_to_other_threads() {
    fn goes<T: Send>() {}
    fn is_seen<T: Send + Sync>() {}
    goes::<Session>();
    is_seen::<edgepack_llm::model::Model>();
}

#[test]
fn sessions_on_threads_are_what_each_is_alone() {
    let model = open("dynamic_last");
    let text = |start: u32| (0..8).map(move |at| (start * 5 + at * 7) % 24).collect::<Vec<_>>();
    let alone: Vec<_> = (0..4).map(|start| follow(&mut model.session().unwrap(), &text(start))).collect();
    let together: Vec<_> = std::thread::scope(|scope| {
        let model = &model;
        let run = |start| scope.spawn(move || follow(&mut model.session().unwrap(), &text(start)));
        let threads: Vec<_> = (0..4).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(together, alone);
}

/// More than one call takes, up to the last place of the context.
#[test]
fn prompts_are_cut_into_what_calls_take() {
    let text: Vec<u32> = (0..16).map(|at| at * 11 % 24).collect();
    for name in KINDS {
        let model = open(name);
        let each = follow(&mut model.session().unwrap(), &text);
        let mut session = model.session().unwrap();
        let off = difference(session.prefill(&text).unwrap(), &each[15]);
        assert!(off < 1e-5, "{name}: off by {off}");
        assert!(session.chunk() <= 16 && session.room() == 0);
        assert!(matches!(session.decode(1), Err(Error::ContextFull { position: 16, more: 1, limit: 16 })));
        // The last row of all is taken away and added again.
        session.rewind(15).unwrap();
        assert!(difference(session.decode(text[15]).unwrap(), &each[15]) < 1e-5, "{name}");
    }
}

#[test]
fn wrong_tokens_change_nothing() {
    let mut session = open("one").session().unwrap();
    let before = session.prefill(&[1, 2, 3]).unwrap().to_vec();
    let unknown = session.prefill(&[4, 24]).unwrap_err();
    assert_eq!(unknown.to_string(), "token 24: the vocabulary has the tokens 0 to 23");
    assert!(matches!(session.prefill(&[]), Err(Error::Empty)));
    assert!(matches!(session.prefill(&[0; 14]), Err(Error::ContextFull { .. })));
    assert_eq!((session.tokens(), session.logits()), (&[1, 2, 3][..], Some(&before[..])));
    session.prefill(&[0; 13]).unwrap();
    assert_eq!(session.room(), 0);
}

/// A use of a session.
#[derive(Clone, Debug)]
enum Use {
    Prefill(Vec<u32>),
    Rewind(prop::sample::Index),
    Reset,
    Save,
    Restore,
}

fn uses() -> impl Strategy<Value = Vec<Use>> {
    let one = prop_oneof![
        4 => prop::collection::vec(0u32..24, 1..6).prop_map(Use::Prefill),
        2 => any::<prop::sample::Index>().prop_map(Use::Rewind),
        1 => Just(Use::Reset),
        1 => Just(Use::Save),
        1 => Just(Use::Restore),
    ];
    prop::collection::vec(one, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a session went through, it is one of its tokens alone.
    #[test]
    fn a_session_is_what_its_tokens_are(uses in uses()) {
        for name in KINDS {
            let model = open(name);
            let mut session = model.session().unwrap();
            let (mut tokens, mut saved) = (Vec::new(), None);
            for what in &uses {
                match what {
                    Use::Prefill(more) if tokens.len() + more.len() <= 16 => {
                        session.prefill(more).unwrap();
                        tokens.extend_from_slice(more);
                    }
                    Use::Prefill(more) => prop_assert!(session.prefill(more).is_err()),
                    Use::Rewind(to) => {
                        tokens.truncate(to.index(tokens.len() + 1));
                        session.rewind(tokens.len()).unwrap();
                    }
                    Use::Reset => {
                        tokens.clear();
                        session.reset().unwrap();
                    }
                    Use::Save => {
                        let mut image = Vec::new();
                        session.save(&mut image).unwrap();
                        saved = Some((image, tokens.clone()));
                    }
                    Use::Restore => {
                        if let Some((image, then)) = &saved {
                            session.restore(&image[..]).unwrap();
                            tokens.clone_from(then);
                        }
                    }
                }
                prop_assert_eq!(session.tokens(), &tokens[..]);
                if let (Some(logits), false) = (session.logits(), tokens.is_empty()) {
                    let mut fresh = model.session().unwrap();
                    let off = difference(logits, fresh.prefill(&tokens).unwrap());
                    prop_assert!(off < 1e-5, "{}: off by {}", name, off);
                }
            }
        }
    }
}
