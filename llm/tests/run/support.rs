//! Programs of the tests, and comparisons.

use std::path::PathBuf;

use edgepack_executor::Registry;
use edgepack_executor::delegate::Backends;
use edgepack_llm::error::Error;
use edgepack_llm::model::{Model, Options};
use edgepack_loader::Program;
use safetensors::SafeTensors;

/// A file of `tests/programs`.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

pub fn file(name: &str) -> Vec<u8> {
    let path = path(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All operators, and XNNPACK.
pub fn registry() -> Registry {
    edgepack_kernels::registry()
}

pub fn options() -> Options {
    let mut options = Options::default();
    options.executor.backends = Backends::new().with(edgepack_xnnpack::Xnnpack);
    options
}

pub fn load(bytes: Vec<u8>) -> Result<Model, Error> {
    Model::load(&Program::from_bytes(bytes)?, &registry(), &options())
}

pub fn open(name: &str) -> Model {
    load(file(&format!("{name}.pte"))).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The message of a program that is refused.
pub fn refusal(name: &str, options: &Options) -> String {
    let program = Program::from_bytes(file(&format!("{name}.pte"))).unwrap();
    match Model::load(&program, &registry(), options) {
        Ok(_) => panic!("{name} was not refused"),
        Err(error) => error.to_string(),
    }
}

pub fn numbers<T, const N: usize>(bytes: &[u8], read: fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|chunk| read(*chunk)).collect()
}

/// Nine tokens, and the logits after each of them, as the exporter computed them without a cache.
pub fn reference() -> (Vec<u32>, Vec<Vec<f32>>) {
    let bytes = file("reference.safetensors");
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let tokens = numbers(tensors.tensor("tokens").unwrap().data(), i64::from_le_bytes);
    let logits = tensors.tensor("logits").unwrap();
    let row = logits.shape()[1];
    let logits = numbers(logits.data(), f32::from_le_bytes);
    (tokens.iter().map(|&token| token as u32).collect(), logits.chunks(row).map(<[f32]>::to_vec).collect())
}

pub fn argmax(logits: &[f32]) -> usize {
    (0..logits.len()).fold(0, |best, at| if logits[at] > logits[best] { at } else { best })
}

/// The largest difference, as a share of the largest logit.
pub fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let scale = a.iter().chain(b).fold(0.0f32, |most, x| most.max(x.abs()));
    a.iter().zip(b).fold(0.0f32, |most, (a, b)| most.max((a - b).abs())) / scale
}

/// Asserts logits to be equal but for rounding, with the same likeliest token.
#[track_caller]
pub fn assert_close(have: &[f32], want: &[f32], tolerance: f32, what: &str) {
    let off = difference(have, want);
    assert!(off <= tolerance, "{what}: off by {off}");
    assert_eq!(argmax(have), argmax(want), "{what}");
}
