//! Edge TPU packages made by the builder: one in which every field says something, and small ones that belong together.

use edgepack_builder::darwinn::{Layout, PackageBuilder, SigningKey};
use edgepack_format::darwinn::{
    AnyHint, AnyLayer, DataType, Description, Direction, DmaDescriptorHint, DmaHint, DmaHints, Executable,
    ExecutableType, FenceHint, FieldOffset, InputLayer, InstructionBitstream, InstructionHint, InterruptHint,
    InterruptType, Layer, Meta, NumericsConstants, OutputLayer, OutputLayout, OutputShapeInfo, Position, Range,
    TensorLayout, TensorShape,
};
use edgepack_format::row::Blob;

const INPUT: Description = Description::BASE_ADDRESS_INPUT_ACTIVATION;
const OUTPUT: Description = Description::BASE_ADDRESS_OUTPUT_ACTIVATION;
const PARAMETER: Description = Description::BASE_ADDRESS_PARAMETER;
const SCRATCH: Description = Description::BASE_ADDRESS_SCRATCH;

fn blob(byte: u8, len: usize) -> Option<Blob<'static>> {
    Some(Blob(vec![byte; len].into()))
}

fn meta(desc: Description, name: &'static str, batch: i32, position: Position) -> Option<Meta<'static>> {
    Some(Meta { desc, batch, name: Some(name.into()), position })
}

/// Both halves of an address: the lower in instruction `at`, the upper in the next.
fn fields(desc: Description, name: &'static str, batch: i32, at: i32) -> [FieldOffset<'static>; 2] {
    let field = |position, at: i32| FieldOffset { meta: meta(desc, name, batch, position), offset_bit: at * 128 + 70 };
    [field(Position::LOWER_32BIT, at), field(Position::UPPER_32BIT, at + 1)]
}

fn chunk(instructions: usize, fields: Vec<FieldOffset<'static>>) -> InstructionBitstream<'static> {
    InstructionBitstream { bitstream: blob(0, instructions * 16), field_offsets: Some(fields.into()) }
}

fn moved(desc: Description, name: &'static str, batch: i32, from: i32, bytes: i32) -> DmaHint<'static> {
    let out = desc == OUTPUT;
    DmaHint {
        any_hint: Some(AnyHint::DmaDescriptorHint(DmaDescriptorHint {
            meta: meta(desc, name, batch, Position::LOWER_32BIT),
            offset_in_bytes: from,
            size_in_bytes: bytes,
        })),
        direction: if out { Direction::OUTFEED } else { Direction::INFEED },
    }
}

fn instructions(chunk: i32) -> DmaHint<'static> {
    let hint = AnyHint::InstructionHint(InstructionHint { instruction_chunk_index: chunk });
    DmaHint { any_hint: Some(hint), direction: Direction::INFEED }
}

fn interrupt(kind: InterruptType) -> DmaHint<'static> {
    DmaHint { any_hint: Some(AnyHint::InterruptHint(InterruptHint { kind })), direction: Direction::OUTFEED }
}

fn hints(list: Vec<DmaHint<'static>>) -> Option<DmaHints<'static>> {
    Some(DmaHints { hints: Some(list.into()), fully_deterministic: true })
}

fn shape(ranges: &[(i32, i32)]) -> Option<TensorShape<'static>> {
    let ranges: Vec<Range> = ranges.iter().map(|(start, end)| Range { start: *start, end: *end }).collect();
    Some(TensorShape { dimension: Some(ranges.into()) })
}

fn layer(name: &'static str, [y, x, z]: [i32; 3], size_bytes: i32, kind: AnyLayer<'static>) -> Layer<'static> {
    Layer {
        name: Some(name.into()),
        size_bytes,
        y_dim: y,
        x_dim: x,
        z_dim: z,
        numerics: Some(NumericsConstants { zero_point: 128, dequantization_factor: 0.5 }),
        any_layer: Some(kind),
        ..Layer::default()
    }
}

/// Three rows of three pixels of two channels in four tiles, pixels four elements apart.
fn tiles() -> OutputLayout<'static> {
    OutputLayout {
        y_coordinate_to_linear_tile_id_map: Some(vec![0, 0, 2].into()),
        x_coordinate_to_linear_tile_id_map: Some(vec![0, 0, 1].into()),
        linearized_tile_byte_offset: Some(vec![0, 16, 24, 32].into()),
        x_coordinate_to_local_byte_offset: Some(vec![0, 4, 0].into()),
        y_coordinate_to_local_y_offset: Some(vec![0, 1, 0].into()),
        x_coordinate_to_local_y_row_size: Some(vec![8, 8, 4].into()),
    }
}

fn tiled() -> AnyLayer<'static> {
    AnyLayer::OutputLayer(OutputLayer { layout: Some(tiles()), ..OutputLayer::default() })
}

/// Two rows of two pixels of four channels: a slice per row.
fn slices() -> AnyLayer<'static> {
    let row = |y| TensorLayout { shape: shape(&[(y, y), (0, 1), (0, 3)]), stride: Some(vec![8, 4, 1].into()) };
    let info =
        OutputShapeInfo { slice_layout: Some(vec![row(0), row(1)].into()), slice_offset: Some(vec![0, 8].into()) };
    let layout = OutputLayer { shape_info: Some(info), data_type: DataType::HALF, ..OutputLayer::default() };
    AnyLayer::OutputLayer(layout)
}

/// An executable in which every field has another value than the one that is not written.
pub fn everything() -> Executable<'static> {
    let input = Layer {
        data_type: DataType::SIGNED_FIXED_POINT8,
        execution_count_per_inference: 2,
        cache_on_dram: true,
        ..layer("x", [1, 1, 5], 8, AnyLayer::InputLayer(InputLayer {}))
    };
    let sliced = Layer { shape: shape(&[(0, 1), (0, 1), (0, 3)]), ..layer("s", [2, 2, 4], 16, slices()) };
    let first = [fields(PARAMETER, "", 0, 0), fields(SCRATCH, "", 0, 2)].concat();
    let activations = [("x", INPUT), ("y", OUTPUT), ("s", OUTPUT)];
    let second = activations.iter().enumerate().flat_map(|(index, (name, desc))| {
        let at = index as i32 * 4;
        [fields(*desc, name, 0, at), fields(*desc, name, 1, at + 2)].concat()
    });
    let mut list = vec![instructions(0), moved(PARAMETER, "", 0, 0, 64), moved(PARAMETER, "", 0, 64, 64)];
    list.push(moved(SCRATCH, "", 0, 0, 64));
    list.push(DmaHint { any_hint: Some(AnyHint::FenceHint(FenceHint {})), direction: Direction::INFEED });
    list.push(DmaHint { direction: Direction::OUTFEED, ..moved(SCRATCH, "", 0, 0, 64) });
    list.extend([instructions(1), interrupt(InterruptType::SCALAR_CORE_INT_1)]);
    for batch in [0, 1] {
        list.extend([
            moved(INPUT, "x", batch, 0, 16),
            moved(OUTPUT, "y", batch, 0, 40),
            moved(OUTPUT, "s", batch, 0, 16),
        ]);
    }
    list.push(interrupt(InterruptType::SCALAR_CORE_INT_0));
    Executable {
        version: 1,
        name: Some("model".into()),
        serialized_model: blob(3, 7),
        batch_size: 2,
        scratch_size_bytes: 64,
        instruction_bitstreams: Some(vec![chunk(4, first), chunk(12, second.collect())].into()),
        parameters: blob(9, 128),
        dma_hints: hints(list),
        input_layers: Some(vec![input].into()),
        output_layers: Some(vec![layer("y", [3, 3, 2], 40, tiled()), sliced].into()),
        chip: Some("beagle".into()),
        estimated_cycles: 1000,
        used_narrow_memory_bytes_per_tile: 4096,
        kind: ExecutableType::EXECUTION_ONLY,
        parameter_caching_token: 0x1234_5678_9abc_def0,
        use_tpu_dram_for_parameters: true,
        estimated_cycles_64bit: 1 << 33,
    }
}

fn caching(token: u64, bytes: usize) -> Executable<'static> {
    Executable {
        name: Some("Unknown".into()),
        batch_size: 1,
        instruction_bitstreams: Some(vec![chunk(2, fields(PARAMETER, "", 0, 0).to_vec())].into()),
        parameters: blob(7, bytes),
        dma_hints: hints(vec![
            instructions(0),
            moved(PARAMETER, "", 0, 0, bytes as i32),
            interrupt(InterruptType::SCALAR_CORE_INT_0),
        ]),
        chip: Some("beagle".into()),
        kind: ExecutableType::PARAMETER_CACHING,
        parameter_caching_token: token,
        ..Executable::default()
    }
}

/// A package for one chip with every field, signed by this key.
pub fn complete(key: &SigningKey) -> Vec<u8> {
    let mut builder = PackageBuilder::new();
    let row = everything();
    builder.executable(row.clone()).executable(caching(row.parameter_caching_token, 192));
    builder.compiler_version("cl/1").model_identifier("complete").virtual_chip_id(2).sign(key.clone(), 5);
    builder.finish().expect("a package that verifies")
}

/// A package for several chips with this one for each.
pub fn several(chip: &[u8], count: usize) -> Vec<u8> {
    let mut builder = PackageBuilder::new();
    (0..count).for_each(|_| {
        builder.chip(chip.to_vec());
    });
    builder.finish().expect("a package that verifies")
}

/// A pair of executables that keeps `cached` bytes on the chip and moves `streamed` for every inference; packages of one
/// token share the chip.
pub fn pair(token: u64, cached: usize, streamed: usize) -> Vec<u8> {
    let list = vec![
        instructions(0),
        moved(PARAMETER, "", 0, 0, streamed as i32),
        moved(INPUT, "x", 0, 0, 16),
        moved(OUTPUT, "y", 0, 0, 40),
        interrupt(InterruptType::SCALAR_CORE_INT_0),
    ];
    let all = [fields(PARAMETER, "", 0, 0), fields(INPUT, "x", 0, 2), fields(OUTPUT, "y", 0, 4)].concat();
    let running = Executable {
        name: Some("model".into()),
        batch_size: 1,
        instruction_bitstreams: Some(vec![chunk(6, all)].into()),
        parameters: blob(9, streamed),
        dma_hints: hints(list),
        input_layers: Some(vec![layer("x", [1, 1, 16], 16, AnyLayer::InputLayer(InputLayer {}))].into()),
        output_layers: Some(vec![layer("y", [3, 3, 2], 40, tiled())].into()),
        chip: Some("beagle".into()),
        kind: ExecutableType::EXECUTION_ONLY,
        parameter_caching_token: token,
        estimated_cycles_64bit: 281_520,
        ..Executable::default()
    };
    let mut builder = PackageBuilder::new();
    builder.executable(running).executable(caching(token, cached)).compiler_version("cl/1").layout(Layout::Dense);
    builder.finish().expect("a package that verifies")
}
