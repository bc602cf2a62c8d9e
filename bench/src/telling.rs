//! A language model that is measured: opened, given a prompt, and asked for single tokens.

use std::path::Path;

use edgepack_kernels::registry;
use edgepack_llm::model::{Model, Options};
use edgepack_llm::session::Session;

use crate::programs;

/// Tokens of the shortest prompt.
pub const FIRST: usize = 16;
/// Single tokens that are measured behind a prompt.
pub const SINGLE: usize = 32;

/// Opens a model, and takes a prompt and single tokens.
pub fn tell(path: &Path) -> Result<impl Sized, String> {
    let model = open(path, 1)?;
    let mut session = model.session().map_err(|error| error.to_string())?;
    let tokens = tokens(FIRST, 256);
    prefill(&mut session, &tokens);
    tokens.iter().cycle().take(SINGLE).for_each(|&token| decode(&mut session, token));
    Ok((session, model))
}

/// Opens a model from a mapped file.
pub fn open(path: &Path, threads: usize) -> Result<Model, String> {
    let program = programs::open(path, true).map_err(|error| error.to_string())?;
    let mut options = Options::default();
    options.executor.threads = Some(threads);
    options.executor.backends = edgepack::backends();
    Model::load(&program, &registry(), &options).map_err(|error| error.to_string())
}

/// Takes a prompt, from the start.
pub fn prefill(session: &mut Session, tokens: &[u32]) {
    session.rewind(0).expect("every session goes back");
    session.prefill(tokens).expect("a prompt that fits");
}

/// Takes a token.
pub fn decode(session: &mut Session, token: u32) {
    session.decode(token).expect("a token that fits");
}

/// Arbitrary tokens; `reference.py` makes the same ones.
pub fn tokens(count: usize, vocabulary: usize) -> Vec<u32> {
    (0..count).map(|at| ((at * 7919 + 13) % vocabulary.max(1)) as u32).collect()
}
