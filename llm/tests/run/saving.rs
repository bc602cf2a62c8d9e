//! Saved sessions: restored they go on as the session would have, damaged they are refused.

use edgepack_llm::session::Session;
use sha2::{Digest, Sha256};

use crate::sessions::KINDS;
use crate::support::{open, options, reference, registry};

fn saved(session: &mut Session) -> Vec<u8> {
    let mut bytes = Vec::new();
    session.save(&mut bytes).unwrap();
    bytes
}

fn rest(session: &mut Session, tokens: &[u32]) -> Vec<Vec<f32>> {
    tokens.iter().map(|&token| session.decode(token).unwrap().to_vec()).collect()
}

#[test]
fn a_restored_session_goes_on_as_the_saved_one() {
    let (tokens, _) = reference();
    for name in KINDS {
        let model = open(name);
        let mut session = model.session().unwrap();
        let logits = session.prefill(&tokens[..5]).unwrap().to_vec();
        let bytes = saved(&mut session);
        let want = rest(&mut session, &tokens[5..]);
        // Into a session of another load, one with other tokens in it.
        let mut other = open(name).session().unwrap();
        other.prefill(&[7; 8]).unwrap();
        let mut reader = [&bytes[..], b"more"].concat();
        other.restore(&mut &reader[..]).unwrap();
        assert_eq!((other.tokens(), other.logits()), (&tokens[..5], Some(&logits[..])), "{name}");
        assert_eq!(saved(&mut other), bytes, "{name}");
        assert_eq!(rest(&mut other, &tokens[5..]), want, "{name}");
        // What follows is left to its reader.
        let mut left = &mut &reader[..];
        other.restore(&mut left).unwrap();
        assert_eq!(left, b"more");
        reader.clear();
        // Back to before what was saved.
        other.rewind(2).unwrap();
        other.prefill(&tokens[2..5]).unwrap();
        assert_eq!(rest(&mut other, &tokens[5..]), want, "{name}");
    }
}

#[test]
fn an_empty_session_is_saved_too() {
    let model = open("one");
    let bytes = saved(&mut model.session().unwrap());
    let mut session = model.session().unwrap();
    session.prefill(&[1, 2]).unwrap();
    session.restore(&bytes[..]).unwrap();
    assert_eq!((session.position(), session.logits()), (0, None));
}

/// Every flipped bit and every truncation: refused, and the session as before.
#[test]
fn damaged_sessions_are_refused_and_change_nothing() {
    let (tokens, _) = reference();
    for name in ["two_methods", "running", "nocache"] {
        let model = open(name);
        let mut session = model.session().unwrap();
        session.prefill(&tokens[..5]).unwrap();
        let bytes = saved(&mut session);
        let mut victim = model.session().unwrap();
        victim.prefill(&[4, 8, 15]).unwrap();
        let before = saved(&mut victim);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(victim.restore(&damaged[..]).is_err(), "{name}: byte {at}");
            assert!(victim.restore(&bytes[..at]).is_err(), "{name}: {at} bytes");
        }
        assert_eq!(saved(&mut victim), before, "{name}");
    }
}

/// Damage whose author knew the digest: refused, or a session that runs.
#[test]
fn damage_behind_a_fitting_digest_is_refused_or_harmless() {
    let (tokens, _) = reference();
    for name in ["two_methods", "running", "dynamic_last"] {
        let model = open(name);
        let mut session = model.session().unwrap();
        session.prefill(&tokens[..5]).unwrap();
        let bytes = saved(&mut session);
        let body = bytes.len() - 32;
        let mut victim = model.session().unwrap();
        let (mut refused, mut restored) = (0, 0);
        for at in 0..body {
            for change in [1u8, 0x80] {
                let mut damaged = bytes[..body].to_vec();
                damaged[at] ^= change;
                let digest = Sha256::digest(&damaged);
                damaged.extend_from_slice(&digest);
                match victim.restore(&damaged[..]) {
                    Ok(()) => restored += 1,
                    Err(_) => refused += 1,
                }
                // It runs, or says why not.
                let room = victim.room().min(2);
                if victim.prefill(&[1, 2][..room]).is_err() {
                    victim.reset().unwrap();
                    victim.prefill(&[1, 2]).unwrap();
                }
                victim.rewind(1).unwrap();
            }
        }
        assert!(refused > 100 && restored > 100, "{name}: {refused} refused, {restored} restored");
    }
}

#[test]
fn sessions_of_other_programs_and_other_options_are_refused() {
    let mut one = open("one").session().unwrap();
    one.prefill(&[1, 2, 3]).unwrap();
    let bytes = saved(&mut one);
    let message = open("one_i32").session().unwrap().restore(&bytes[..]).unwrap_err().to_string();
    assert_eq!(message, "the saved session: it is of another program");
    let program = edgepack_loader::Program::open(crate::support::path("one.pte")).unwrap();
    let small = edgepack_llm::model::Options { context: Some(2), ..options() };
    let model = edgepack_llm::model::Model::load(&program, &registry(), &small).unwrap();
    let message = model.session().unwrap().restore(&bytes[..]).unwrap_err().to_string();
    assert_eq!(message, "the saved session: 3 tokens, the model has 2");
}
