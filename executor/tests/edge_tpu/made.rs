//! Packages of flat layers, made by the builder: what a test says of them is in them, and nothing else.

use edgepack_builder::darwinn::{Layout, PackageBuilder};
use edgepack_format::darwinn::{
    AnyHint, AnyLayer, DataType, Description, Direction, DmaDescriptorHint, DmaHint, DmaHints, Executable,
    ExecutableType, FenceHint, FieldOffset, InputLayer, InstructionBitstream, InstructionHint, InterruptHint, Layer,
    Meta, NumericsConstants, OutputLayer, Position,
};
use edgepack_format::row::Blob;
use edgepack_loader::{Registration, Registry};

/// A flat layer: name, channels, type.
pub type Flat = (&'static str, i32, DataType);

/// Facts of a package.
#[derive(Clone)]
pub struct Made {
    pub token: u64,
    /// Bytes of parameters: those that stay on the chip, and those of every run.
    pub cached: usize,
    pub streamed: usize,
    /// Names, channels and types.
    pub inputs: Vec<Flat>,
    pub outputs: Vec<Flat>,
    pub scratch: i32,
    pub batch: i32,
    pub dram: bool,
    pub is_whole: bool,
    pub layout: Layout,
    /// First byte of the parameters, so that packages differ.
    pub seed: u8,
}

impl Default for Made {
    fn default() -> Self {
        Made {
            token: 7,
            cached: 128,
            streamed: 64,
            inputs: vec![("x", 5, DataType::SIGNED_FIXED_POINT8)],
            outputs: vec![("y", 6, DataType::FIXED_POINT8)],
            scratch: 64,
            batch: 1,
            dram: false,
            is_whole: true,
            layout: Layout::Pages,
            seed: 1,
        }
    }
}

fn blob(seed: u8, len: usize) -> Option<Blob<'static>> {
    Some(Blob((0..len).map(|at| seed.wrapping_mul(31).wrapping_add(at as u8)).collect::<Vec<u8>>().into()))
}

fn hint(hint: AnyHint<'static>, direction: Direction) -> DmaHint<'static> {
    DmaHint { any_hint: Some(hint), direction }
}

fn moved(
    desc: Description,
    name: &'static str,
    batch: i32,
    from: i32,
    len: i32,
    direction: Direction,
) -> DmaHint<'static> {
    let meta = Some(Meta { desc, batch, name: Some(name.into()), position: Position::LOWER_32BIT });
    let descriptor = DmaDescriptorHint { meta, offset_in_bytes: from, size_in_bytes: len };
    hint(AnyHint::DmaDescriptorHint(descriptor), direction)
}

fn instructions() -> DmaHint<'static> {
    hint(AnyHint::InstructionHint(InstructionHint { instruction_chunk_index: 0 }), Direction::INFEED)
}

fn end() -> DmaHint<'static> {
    hint(AnyHint::InterruptHint(InterruptHint::default()), Direction::OUTFEED)
}

fn fence() -> DmaHint<'static> {
    hint(AnyHint::FenceHint(FenceHint {}), Direction::INFEED)
}

/// A chunk with both halves of the address of each of these.
fn chunk(seed: u8, buffers: &[(Description, &'static str, i32)]) -> InstructionBitstream<'static> {
    let mut fields = Vec::new();
    for (desc, name, batch) in buffers {
        for position in [Position::LOWER_32BIT, Position::UPPER_32BIT] {
            let meta = Some(Meta { desc: *desc, batch: *batch, name: Some((*name).into()), position });
            fields.push(FieldOffset { meta, offset_bit: fields.len() as i32 * 128 + 70 });
        }
    }
    InstructionBitstream { bitstream: blob(seed, fields.len() * 16), field_offsets: Some(fields.into()) }
}

pub fn layer(name: &'static str, z: i32, data_type: DataType, kind: AnyLayer<'static>) -> Layer<'static> {
    let bytes = z * data_type.size().unwrap() as i32;
    let zero_point = if data_type.is_flipped() { 1 << (8 * data_type.size().unwrap() - 1) } else { 10 };
    Layer {
        name: Some(name.into()),
        size_bytes: (bytes + 7) / 8 * 8,
        y_dim: 1,
        x_dim: 1,
        z_dim: z,
        numerics: Some(NumericsConstants { zero_point, dequantization_factor: 0.5 }),
        data_type,
        any_layer: Some(kind),
        ..Layer::default()
    }
}

impl Made {
    /// The executable that runs.
    pub fn running(&self) -> Executable<'static> {
        let input = |(name, z, kind): &Flat| Layer {
            cache_on_dram: self.dram,
            ..layer(name, *z, *kind, AnyLayer::InputLayer(InputLayer {}))
        };
        let output = |(name, z, kind): &Flat| Layer {
            cache_on_dram: self.dram,
            ..layer(name, *z, *kind, AnyLayer::OutputLayer(OutputLayer::default()))
        };
        let (inputs, outputs): (Vec<_>, Vec<_>) =
            (self.inputs.iter().map(input).collect(), self.outputs.iter().map(output).collect());
        let (mut buffers, mut list) = (vec![(Description::BASE_ADDRESS_PARAMETER, "", 0)], vec![instructions()]);
        buffers.push((Description::BASE_ADDRESS_SCRATCH, "", 0));
        if self.streamed > 0 {
            // In two pieces.
            let half = self.streamed as i32 / 2;
            for from in [0, half] {
                list.push(moved(Description::BASE_ADDRESS_PARAMETER, "", 0, from, half, Direction::INFEED));
            }
        }
        for batch in 0..self.batch.min(64) {
            for (layers, desc) in [
                (&inputs, Description::BASE_ADDRESS_INPUT_ACTIVATION),
                (&outputs, Description::BASE_ADDRESS_OUTPUT_ACTIVATION),
            ] {
                for (layer, (name, ..)) in layers.iter().zip(if desc.0 == 1 { &self.inputs } else { &self.outputs }) {
                    buffers.push((desc, name, batch));
                    let direction = if desc.0 == 1 { Direction::INFEED } else { Direction::OUTFEED };
                    list.push(moved(desc, name, batch, 0, layer.size_bytes, direction));
                }
                if self.scratch > 0 && desc.0 == 1 {
                    for direction in [Direction::OUTFEED, Direction::INFEED] {
                        list.push(moved(Description::BASE_ADDRESS_SCRATCH, "", 0, 0, self.scratch, direction));
                        list.push(fence());
                    }
                }
            }
        }
        list.push(end());
        Executable {
            name: Some("model".into()),
            batch_size: self.batch,
            scratch_size_bytes: self.scratch,
            instruction_bitstreams: Some(vec![chunk(self.seed, &buffers)].into()),
            parameters: blob(self.seed, self.streamed),
            dma_hints: Some(DmaHints { hints: Some(list.into()), fully_deterministic: self.is_whole }),
            input_layers: Some(inputs.into()),
            output_layers: Some(outputs.into()),
            chip: Some("beagle".into()),
            kind: if self.cached > 0 { ExecutableType::EXECUTION_ONLY } else { ExecutableType::STAND_ALONE },
            parameter_caching_token: self.token,
            use_tpu_dram_for_parameters: self.dram,
            ..Executable::default()
        }
    }

    fn caching(&self) -> Executable<'static> {
        let list = vec![
            instructions(),
            moved(Description::BASE_ADDRESS_PARAMETER, "", 0, 0, self.cached as i32, Direction::INFEED),
            end(),
        ];
        Executable {
            name: Some("Unknown".into()),
            batch_size: 1,
            instruction_bitstreams: Some(vec![chunk(3, &[(Description::BASE_ADDRESS_PARAMETER, "", 0)])].into()),
            parameters: blob(self.seed.wrapping_add(100), self.cached),
            dma_hints: Some(DmaHints { hints: Some(list.into()), fully_deterministic: true }),
            chip: Some("beagle".into()),
            kind: ExecutableType::PARAMETER_CACHING,
            parameter_caching_token: self.token,
            use_tpu_dram_for_parameters: self.dram,
            ..Executable::default()
        }
    }

    /// The package.
    pub fn package(&self) -> Vec<u8> {
        let mut builder = PackageBuilder::new();
        builder.layout(self.layout).executable(self.running());
        if self.cached > 0 {
            builder.executable(self.caching());
        }
        builder.finish().unwrap()
    }

    pub fn register(&self) -> Registration {
        Registry::new().register(&self.package()).unwrap()
    }
}

/// A recurrent package: `h` is an input, and the output that is its next value comes last.
pub fn recurrent(seed: u8) -> Made {
    Made {
        seed,
        inputs: vec![("x", 5, DataType::SIGNED_FIXED_POINT8), ("h", 3, DataType::SIGNED_FIXED_POINT16)],
        outputs: vec![("y", 6, DataType::FIXED_POINT8), ("h_variable_output", 3, DataType::SIGNED_FIXED_POINT16)],
        ..Made::default()
    }
}
