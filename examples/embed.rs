//! A program inside the executable: verified when this is compiled, with a struct for each method.
//!
//!     cargo run --example embed

use edgepack::prelude::*;

// A module `mlp_portable`; a file that is broken, or changes its inputs, does not compile.
include_program!("tests/data/corpus/models/mlp_portable.pte");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut forward = mlp_portable::Forward::load(&kernels::registry(), &Options::default())?;
    // Inputs and outputs are arrays of the sizes that the program has: f32[3, 8] to f32[3, 4].
    let scores: &[f32; 12] = forward.run(&[0.5; 24])?;
    println!("{scores:?}");
    assert!(scores.iter().all(|score| score.is_finite()));
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
