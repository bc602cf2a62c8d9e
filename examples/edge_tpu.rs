//! The host side of an Edge TPU package: what is in it, where its instructions point, and what a run transfers.
//!
//!     cargo run --example edge_tpu [MODEL_edgetpu.tflite]

use edgepack::executor::darwinn::{Addresses, Extraction, link, transfers};
use edgepack::format::limits::Limits;
use edgepack::format::tflite::ModelRef;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/corpus/edgetpu/left.tflite");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).filter(|path| path.ends_with(".tflite"));
    let bytes = std::fs::read(path.as_deref().unwrap_or(MODEL))?;
    // Verified down to the register fields of the instructions.
    let model = ModelRef::parse(&bytes, &Limits::DEFAULT).map_err(|findings| findings.to_string())?;
    let (_, package) = model.packages().next().ok_or("nothing in it is compiled")?;
    let executable = package.executables().get(package.main().unwrap_or(0)).ok_or("no executable")?;
    println!("{} executables, {} bytes of parameters", package.executables().len(), executable.parameters().len());

    // Where buffers are is known when a run is prepared; instructions get these addresses.
    let layers = |name: &str, at: u64| (name.to_owned(), vec![at]);
    let mut addresses = Addresses { parameter: Some(0x1000), scratch: Some(0x8000), ..Addresses::default() };
    for (place, layer) in executable.row().input_layers.iter().flat_map(|layers| layers.iter()).enumerate() {
        let (name, at) = layers(layer?.name.as_deref().unwrap_or_default(), 0x10_000 + 0x1000 * place as u64);
        addresses.inputs.insert(name, at);
    }
    for (place, layer) in executable.row().output_layers.iter().flat_map(|layers| layers.iter()).enumerate() {
        let (name, at) = layers(layer?.name.as_deref().unwrap_or_default(), 0x20_000 + 0x1000 * place as u64);
        addresses.outputs.insert(name, at);
    }
    let chunks = link(executable.row(), &addresses)?;
    println!("{} chunks of instructions, {} bytes", chunks.len(), chunks.iter().map(Vec::len).sum::<usize>());

    // What a driver moves, in order; `edgepack::executor::darwinn::Runner` does it on a device of yours.
    let steps = transfers(executable.row(), Extraction::Hints, false)?;
    for step in &steps {
        println!("  {}", step.kind());
    }
    assert!(!chunks.is_empty() && !steps.is_empty());
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
