//! A pipeline of compiled segments on the simulated Edge TPU: three models of one caching token share the chip, the tensors
//! of one go into the next by name, and the device checks every transfer.
//!
//!     cargo run --example edge_tpu_pipeline

use edgepack::builder::darwinn::PackageBuilder;
use edgepack::builder::tflite::wrap;
use edgepack::executor::darwinn::{Chip, Fault, Model, Simulator, Work};
use edgepack::format::darwinn::{
    AnyHint, AnyLayer, Description, Direction, DmaDescriptorHint, DmaHint, DmaHints, Executable, ExecutableType,
    FieldOffset, InputLayer, InstructionBitstream, InstructionHint, InterruptHint, Layer, Meta, NumericsConstants,
    OutputLayer, Position,
};
use edgepack::format::row::Blob;
use edgepack::loader::Registry;

/// Models that were compiled together have this number in common.
const TOKEN: u64 = 0x5e67_3e27;
/// Stored numbers of all tensors and weights: real value 0, and the distance to the next.
const ZERO: i32 = 128;
const SCALE: f32 = 1.0 / 16.0;

const INPUT: Description = Description::BASE_ADDRESS_INPUT_ACTIVATION;
const OUTPUT: Description = Description::BASE_ADDRESS_OUTPUT_ACTIVATION;
const PARAMETER: Description = Description::BASE_ADDRESS_PARAMETER;

/// A segment that multiplies a vector by a matrix.
struct Segment {
    input: (&'static str, usize),
    output: (&'static str, usize),
    /// One stored number per output and input.
    weights: Vec<u8>,
}

impl Segment {
    fn new(input: (&'static str, usize), output: (&'static str, usize)) -> Self {
        let weight = |at: usize| (ZERO + (at * 7 % 11) as i32 - 5) as u8;
        Segment { input, output, weights: (0..input.1 * output.1).map(weight).collect() }
    }

    /// A model around the package of two executables: one puts the weights on the chip, one runs.
    fn model(&self) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
        let layer = |(name, len): (&'static str, usize), any_layer| Layer {
            name: Some(name.into()),
            size_bytes: len.next_multiple_of(8) as i32,
            y_dim: 1,
            x_dim: 1,
            z_dim: len as i32,
            numerics: Some(NumericsConstants { zero_point: ZERO, dequantization_factor: SCALE }),
            any_layer: Some(any_layer),
            ..Layer::default()
        };
        let (input, output) = (
            layer(self.input, AnyLayer::InputLayer(InputLayer {})),
            layer(self.output, AnyLayer::OutputLayer(OutputLayer::default())),
        );
        let mut weights = self.weights.clone();
        weights.resize(weights.len().next_multiple_of(64), 0);
        let moved = [(INPUT, self.input.0, input.size_bytes), (OUTPUT, self.output.0, output.size_bytes)];
        let running = Executable {
            input_layers: Some(vec![input].into()),
            output_layers: Some(vec![output].into()),
            kind: ExecutableType::EXECUTION_ONLY,
            ..executable(&moved)
        };
        let caching = Executable {
            kind: ExecutableType::PARAMETER_CACHING,
            parameters: Some(Blob(weights.clone().into())),
            ..executable(&[(PARAMETER, "", weights.len() as i32)])
        };
        let mut package = PackageBuilder::new();
        package.executable(running).executable(caching);
        Ok(wrap(&package.finish()?)?)
    }

    /// The segment on the device's numbers, with the weights that are on the chip.
    fn compute(&self, work: &Work<'_>) -> Vec<u8> {
        let x = &work.input(self.input.0)[..self.input.1];
        let mut y: Vec<u8> = work.cached()[..self.weights.len()].chunks(x.len()).map(|row| product(row, x)).collect();
        y.resize(work.bytes, 0);
        y
    }
}

fn product(row: &[u8], x: &[u8]) -> u8 {
    let sum: i32 = row.iter().zip(x).map(|(w, x)| (i32::from(*w) - ZERO) * (i32::from(*x) - ZERO)).sum();
    ((sum as f32 * SCALE).round() as i32 + ZERO).clamp(0, 255) as u8
}

/// An executable that moves whole buffers in this order: its instructions have a place for each address, its list a
/// transfer for each buffer.
fn executable(buffers: &[(Description, &'static str, i32)]) -> Executable<'static> {
    let meta = |desc, name: &'static str, position| Some(Meta { desc, batch: 0, name: Some(name.into()), position });
    let (mut fields, mut hints) = (Vec::new(), Vec::new());
    hints.push((AnyHint::InstructionHint(InstructionHint::default()), Direction::INFEED));
    for (desc, name, size_in_bytes) in buffers {
        for position in [Position::LOWER_32BIT, Position::UPPER_32BIT] {
            // The number inside an instruction of 128 bits.
            fields.push(FieldOffset { meta: meta(*desc, name, position), offset_bit: 128 * fields.len() as i32 + 70 });
        }
        let meta = meta(*desc, name, Position::LOWER_32BIT);
        let direction = if *desc == OUTPUT { Direction::OUTFEED } else { Direction::INFEED };
        let hint = DmaDescriptorHint { meta, offset_in_bytes: 0, size_in_bytes: *size_in_bytes };
        hints.push((AnyHint::DmaDescriptorHint(hint), direction));
    }
    hints.push((AnyHint::InterruptHint(InterruptHint::default()), Direction::OUTFEED));
    let chunk = InstructionBitstream {
        bitstream: Some(Blob(vec![0; 16 * fields.len()].into())),
        field_offsets: Some(fields.into()),
    };
    let hints = hints.into_iter().map(|(hint, direction)| DmaHint { any_hint: Some(hint), direction });
    Executable {
        batch_size: 1,
        instruction_bitstreams: Some(vec![chunk].into()),
        dma_hints: Some(DmaHints { hints: Some(hints.collect::<Vec<_>>().into()), fully_deterministic: true }),
        chip: Some("beagle".into()),
        parameter_caching_token: TOKEN,
        ..Executable::default()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ends = [("image", 12), ("edges", 9), ("shapes", 6), ("scores", 3)];
    let segments: Vec<Segment> = ends.windows(2).map(|ends| Segment::new(ends[0], ends[1])).collect();

    // Packages are registered once: verified, and their weights put where the device can fetch them.
    let mut registry = Registry::new();
    let models = segments.iter().map(|segment| Ok(registry.register_model(&segment.model()?)?));
    let models = models.collect::<Result<Vec<_>, Box<dyn std::error::Error>>>()?;
    for (token, members) in registry.sharing() {
        let bytes: u64 = members.iter().map(|one| one.cached_bytes()).sum();
        println!("{} packages of token {token:#x}: {bytes} bytes stay on the chip", members.len());
    }

    // One device, and a runner per model on it. A driver of yours takes the simulator's place.
    let chip = Chip::new(Simulator::new());
    let mut stages = Vec::new();
    for (segment, model) in segments.iter().zip(&models) {
        let compute = Segment { weights: segment.weights.clone(), ..*segment };
        let package = &model.operators()[0].packages()[0].1;
        chip.with_device(|device| device.compute(package, move |work| compute.compute(work)));
        stages.push(Model::new(&chip, model)?);
    }

    for frame in 0..4u8 {
        let image: Vec<u8> = (0..12).map(|at| 118 + (at * 5 + frame * 3) % 21).collect();
        if frame == 2 {
            // A device that is reset in the middle: the run fails, and the next starts from nothing.
            chip.with_device(|device| device.inject(4, Fault::Reset));
            let error = run(&mut stages, &ends, &image).expect_err("it was reset");
            println!("frame {frame}: {error}; again");
        }
        let scores = run(&mut stages, &ends, &image)?;
        let wanted = segments
            .iter()
            .fold(image, |x, segment| segment.weights.chunks(x.len()).map(|row| product(row, &x)).collect::<Vec<u8>>());
        assert_eq!(scores, wanted);
        let values: Vec<f32> = scores.iter().map(|number| (f32::from(*number) - ZERO as f32) * SCALE).collect();
        println!("frame {frame}: {values:?}");
    }
    // Three loads before the first frame, and three after the reset.
    assert_eq!(chip.with_device(|device| device.loads()), 6);
    Ok(())
}

/// One frame through all segments.
fn run(
    stages: &mut [Model<'_, Simulator>],
    ends: &[(&str, usize)],
    image: &[u8],
) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut tensor = image.to_vec();
    for (stage, ends) in stages.iter_mut().zip(ends.windows(2)) {
        let mut made = stage.run(&[(ends[0].0, &tensor)])?;
        tensor = made.remove(ends[1].0).ok_or("the segments do not meet")?;
    }
    Ok(tensor)
}

#[test]
fn runs() {
    main().unwrap();
}
