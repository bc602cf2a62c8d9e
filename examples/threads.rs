//! One program, many threads: the bytes are shared, every thread has a method with memory of its own.
//!
//!     cargo run --release --example threads

use std::thread;

use edgepack::prelude::*;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/corpus/models/mlp_portable.pte");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let program = Program::open(MODEL)?; // a clone is a handle
    let registry = kernels::registry();
    // One thread for each method: the loops inside of it are not divided any further.
    let options = Options { threads: Some(1), ..Options::default() };
    let sums: Vec<f32> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|index| {
                // A method is `Send`: it may as well be loaded here and moved over.
                let (program, registry, options) = (program.clone(), &registry, &options);
                scope.spawn(move || sum(&program, registry, options, index as f32))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread")).collect::<Result<_, _>>()
    })
    .map_err(|error: String| error)?;
    println!("{sums:?}");
    assert_eq!(sums.len(), 4);
    // The same input gives the same bits on any thread.
    assert_eq!(sum(&program, &registry, &options, 2.0)?.to_bits(), sums[2].to_bits());
    Ok(())
}

fn sum(program: &Program, registry: &edgepack::executor::Registry, options: &Options, x: f32) -> Result<f32, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let mut forward = Method::load(program, "forward", registry, options).map_err(|error| text(&error))?;
    let input = [x; 24];
    let input = TensorView::from_slice(&[3, 8], &input).map_err(|error| text(&error))?;
    let outputs = forward.run(&[input.untyped()]).map_err(|error| text(&error))?;
    let y = outputs.get(0).and_then(|output| output.tensor()).ok_or("no tensor")?;
    Ok(y.as_slice::<f32>().map_err(|error| text(&error))?.iter().sum())
}

#[test]
fn runs() {
    main().unwrap();
}
