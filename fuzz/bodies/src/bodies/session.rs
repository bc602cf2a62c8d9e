//! Saved sessions of language models: any bytes are refused, or become a session that goes on.
//!
//! An input is a saved session without its digests, so that damage is found by what it damages: those of the program and of
//! the content are put in. As it is, with its own digests, it is restored first.

use std::sync::OnceLock;

use edgepack::xnnpack::Xnnpack;
use edgepack_executor::delegate::Backends;
use edgepack_llm::model::{Model, Options};
use edgepack_llm::session::Session;
use edgepack_loader::Program;
use sha2::{Digest, Sha256};

/// Place of the program's digest.
const PROGRAM: std::ops::Range<usize> = 16..48;
/// Bytes of the digest of the content.
const CONTENT: usize = 32;
/// A model whose state is a number, and one with a cache that two methods share.
const PROGRAMS: [&[u8]; 2] = [
    include_bytes!("../../../../llm/tests/programs/running.pte"),
    include_bytes!("../../../../llm/tests/programs/two_methods.pte"),
];

/// The models, loaded once.
fn models() -> &'static [Model] {
    static MODELS: OnceLock<Vec<Model>> = OnceLock::new();
    MODELS.get_or_init(|| {
        let mut options = Options::default();
        options.executor.backends = Backends::new().with(Xnnpack);
        let load = |bytes: &&[u8]| {
            let program = Program::from_bytes(bytes.to_vec()).expect("a program");
            Model::load(&program, &edgepack_kernels::registry(), &options).expect("a language model")
        };
        PROGRAMS.iter().map(load).collect()
    })
}

fn saved(session: &mut Session) -> Vec<u8> {
    let mut bytes = Vec::new();
    session.save(&mut bytes).expect("memory to save to");
    bytes
}

/// Restores what somebody saved, and goes on with it.
fn restore(session: &mut Session, bytes: &[u8]) {
    if session.restore(bytes).is_err() {
        return;
    }
    let again = saved(session);
    assert!(bytes.starts_with(&again), "a session is saved as it was restored");
    let room = session.room().min(2);
    // It runs, or says why not.
    let _ = session.prefill(&[1, 2][..room]);
    let _ = session.rewind(session.position() / 2);
}

/// Restores an input as it is, and with the digests that it should have.
pub fn saved_session(data: &[u8]) {
    for model in models() {
        let mut session = model.session().expect("memory for a session");
        restore(&mut session, data);
        let Some(digest) = saved(&mut session).get(PROGRAM).map(<[u8]>::to_vec) else { continue };
        let mut bytes = data.to_vec();
        let Some(program) = bytes.get_mut(PROGRAM) else { continue };
        program.copy_from_slice(&digest);
        let content = Sha256::digest(&bytes);
        bytes.extend_from_slice(&content);
        restore(&mut session, &bytes);
    }
}

/// Sessions of both models, with no token and with some, without the digest of their content.
pub fn sessions() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for model in models() {
        let mut session = model.session().expect("memory for a session");
        for tokens in [&[][..], &[3, 1, 2]] {
            if tokens.is_empty() || session.prefill(tokens).is_ok() {
                let bytes = saved(&mut session);
                seeds.push(bytes[..bytes.len() - CONTENT].to_vec());
            }
        }
    }
    seeds
}
