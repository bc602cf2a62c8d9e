//! Lowers what `torch.export` saved, checks the result call by call, and runs it.
//!
//!     cargo run --features exir --example lower [MODEL.pt2]

use edgepack::exir::archive::Archive;
use edgepack::exir::lower::{Options as Lowering, lower};
use edgepack::prelude::*;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/corpus/pt2/add/model.pt2");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).filter(|path| path.ends_with(".pt2"));
    let exported = Archive::open(path.as_deref().unwrap_or(MODEL))?.program()?;
    println!("{exported}");
    let lowered = lower(vec![("forward".to_owned(), exported)], &Lowering::default())?;

    let program = Program::from_bytes(lowered.to_bytes()?)?;
    let meta = program.method_meta("forward")?;
    println!("{} instructions, {} bytes of planned memory", meta.instructions, meta.planned_memory.iter().sum::<u64>());
    let mut forward = program.method("forward")?.load(&kernels::registry(), &Options::default())?;
    let ones = |tensor: &TensorLayout| 1f32.to_le_bytes().repeat(tensor.element_count());
    let layouts: Vec<TensorLayout> = meta.inputs.iter().filter_map(|x| Some(x.tensor()?.layout.clone())).collect();
    let data: Vec<Vec<u8>> = layouts.iter().map(ones).collect();
    let inputs = layouts.iter().zip(&data).map(|(layout, data)| TensorView::new(layout.clone(), data));
    let outputs = forward.run(&inputs.collect::<Result<Vec<_>, _>>()?)?;
    for output in outputs.iter() {
        println!("{output:?}");
    }
    assert!(!outputs.is_empty());
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
