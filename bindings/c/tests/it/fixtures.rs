//! Programs of the examples, made here and stored: `EDGEPACK_BLESS=1 cargo test --test it fixtures` writes them.

use std::path::Path;

use edgepack::prelude::*;

/// Calls `my::leaky.out` on three floats with a slope of a half.
pub fn leaky() -> Vec<u8> {
    let mut program = ProgramBuilder::new();
    program.operator("my::leaky.out(Tensor self, float slope, *, Tensor(a!) out) -> Tensor(a!)").unwrap();
    let mut forward = program.method("forward");
    let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [3])).unwrap();
    let y = forward.call("my::leaky.out", args![x, 0.5], TensorSpec::like(x)).unwrap();
    forward.output(y).unwrap();
    program.finish().unwrap().to_bytes().unwrap()
}

/// Calls a delegate of the backend `Polynomial`, whose payload is 1, 0, 2.
pub fn polynomial() -> Vec<u8> {
    let payload: Vec<u8> = [1.0f32, 0.0, 2.0].iter().flat_map(|coefficient| coefficient.to_le_bytes()).collect();
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [3])).unwrap();
    let delegate = forward.delegate("Polynomial", payload, &[]).unwrap();
    let y = forward.call_delegate(delegate, args![x], TensorSpec::like(x)).unwrap();
    forward.output(y).unwrap();
    program.finish().unwrap().to_bytes().unwrap()
}

#[test]
fn programs_of_examples_are_fresh() {
    for (name, bytes) in [("leaky", leaky()), ("polynomial", polynomial())] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.pte"));
        if std::env::var_os("EDGEPACK_BLESS").is_some() {
            std::fs::write(&path, &bytes).unwrap();
        }
        assert!(std::fs::read(&path).unwrap_or_default() == bytes, "examples/{name}.pte is stale");
    }
}
