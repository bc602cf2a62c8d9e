//! An Edge TPU package made from nothing: an executable with its instructions, layers and transfers, in a model of its own.
//!
//!     cargo run --example edge_tpu_package [OUT.tflite]

use edgepack::builder::darwinn::PackageBuilder;
use edgepack::builder::tflite::wrap;
use edgepack::format::darwinn::{
    AnyHint, AnyLayer, Description, Direction, DmaDescriptorHint, DmaHint, DmaHints, Executable, FieldOffset,
    InputLayer, InstructionBitstream, InstructionHint, InterruptHint, Layer, Meta, NumericsConstants, OutputLayer,
    PackageRef, Position,
};
use edgepack::format::limits::Limits;
use edgepack::format::row::Blob;

const INPUT: Description = Description::BASE_ADDRESS_INPUT_ACTIVATION;
const OUTPUT: Description = Description::BASE_ADDRESS_OUTPUT_ACTIVATION;
const CHANNELS: i32 = 16;

fn meta(desc: Description, name: &'static str, position: Position) -> Option<Meta<'static>> {
    Some(Meta { desc, name: Some(name.into()), position, ..Meta::default() })
}

/// Both halves of an address, in the immediates of two instructions: bits 70 to 101 of 128.
fn address(desc: Description, name: &'static str, instruction: i32) -> [FieldOffset<'static>; 2] {
    [(Position::UPPER_32BIT, instruction), (Position::LOWER_32BIT, instruction + 1)]
        .map(|(position, at)| FieldOffset { meta: meta(desc, name, position), offset_bit: at * 128 + 70 })
}

/// One pixel of as many channels as there are, in unsigned bytes: a real number is half of the stored one less 128.
fn layer(name: &'static str, kind: AnyLayer<'static>) -> Layer<'static> {
    Layer {
        name: Some(name.into()),
        size_bytes: CHANNELS,
        y_dim: 1,
        x_dim: 1,
        z_dim: CHANNELS,
        numerics: Some(NumericsConstants { zero_point: 128, dequantization_factor: 0.5 }),
        any_layer: Some(kind),
        ..Layer::default()
    }
}

fn step(hint: AnyHint<'static>, direction: Direction) -> DmaHint<'static> {
    DmaHint { any_hint: Some(hint), direction }
}

fn moved(desc: Description, name: &'static str) -> AnyHint<'static> {
    let meta = meta(desc, name, Position::LOWER_32BIT);
    AnyHint::DmaDescriptorHint(DmaDescriptorHint { meta, offset_in_bytes: 0, size_in_bytes: CHANNELS })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Six instructions that do nothing: what a compiler would put here is its own.
    let fields = [address(INPUT, "x", 1), address(OUTPUT, "y", 3)].concat();
    let code = InstructionBitstream { bitstream: Some(Blob(vec![0; 96].into())), field_offsets: Some(fields.into()) };
    let run = vec![
        step(AnyHint::InstructionHint(InstructionHint::default()), Direction::INFEED),
        step(moved(INPUT, "x"), Direction::INFEED),
        step(moved(OUTPUT, "y"), Direction::OUTFEED),
        step(AnyHint::InterruptHint(InterruptHint::default()), Direction::OUTFEED),
    ];
    let executable = Executable {
        name: Some("model".into()),
        chip: Some("beagle".into()),
        batch_size: 1,
        instruction_bitstreams: Some(vec![code].into()),
        dma_hints: Some(DmaHints { hints: Some(run.into()), fully_deterministic: true }),
        input_layers: Some(vec![layer("x", AnyLayer::InputLayer(InputLayer {}))].into()),
        output_layers: Some(vec![layer("y", AnyLayer::OutputLayer(OutputLayer::default()))].into()),
        ..Executable::default()
    };

    // The package is verified as it is finished, and so is the model around it.
    let package = PackageBuilder::new().executable(executable).finish()?;
    let model = wrap(&package)?;
    let read = PackageRef::parse(&package, &Limits::DEFAULT).map_err(|findings| findings.to_string())?;
    println!("{} bytes of package, {} of model, {} executable", package.len(), model.len(), read.executables().len());
    if let Some(path) = std::env::args().nth(1).filter(|path| path.ends_with(".tflite")) {
        std::fs::write(path, model)?;
    }
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
