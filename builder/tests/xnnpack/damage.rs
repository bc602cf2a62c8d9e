//! Damaged payloads are refused, or read to their last line.

use edgepack_builder::xnnpack::{Container, write};
use edgepack_format::limits::Limits;
use edgepack_format::xnnpack::Payload;

use crate::corpus;

/// The payload of a program of the repository.
fn payload(program: &str) -> Vec<u8> {
    let found = corpus::payloads().into_iter().find(|found| found.folder == "repository" && found.name == program);
    found.unwrap_or_else(|| panic!("no {program}")).bytes
}

/// Returns whether a payload is accepted; then everything in it can be shown and written.
fn read(bytes: &[u8]) -> bool {
    let payload = match Payload::parse(bytes, &Limits::hostile()) {
        Ok(payload) => payload,
        Err(findings) => {
            assert!(findings.has_errors() && findings.first_error().is_some());
            return false;
        }
    };
    let constants = payload.constants(|_| Ok::<_, ()>(Some(bytes))).unwrap();
    for value in payload.values() {
        assert!(!payload.line(value).to_string().is_empty());
        let _ = value.quantization(&constants);
    }
    assert!(payload.nodes().iter().all(|node| !node.to_string().is_empty()));
    assert_eq!(payload.order().len(), payload.nodes().len());
    write(payload.graph(), Container::Header, &[]).unwrap();
    true
}

/// Cut at every place, and with every bit flipped in turn.
fn damage(whole: &[u8]) {
    assert!(read(whole));
    for len in 0..whole.len() {
        assert!(!read(&whole[..len]), "{len} of {} bytes are accepted", whole.len());
    }
    let mut bytes = whole.to_vec();
    let mut refused = 0;
    for at in 0..whole.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            refused += usize::from(!read(&bytes));
            bytes[at] ^= 1 << bit;
        }
    }
    let flips = whole.len() * 8;
    println!("{refused} of {flips} flips are refused");
    // Keys, padding, names that nothing refers to, and numbers that only change what is computed may change freely.
    assert!(refused * 3 > flips, "only {refused} of {flips}");
}

#[test]
fn a_static_payload() {
    damage(&payload("mlp_xnnpack_int8:forward.0"));
}

#[test]
fn a_dynamic_payload() {
    damage(&payload("cache_xnnpack_dynamic:forward.0"));
}
