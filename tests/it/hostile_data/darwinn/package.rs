//! A package without a fault, and functions that change one thing in it.

use edgepack_builder::darwinn::{self, Layout};
use edgepack_format::darwinn::{
    AnyHint, AnyLayer, Description, Direction, DmaDescriptorHint, DmaHint, DmaHints, Executable, ExecutableType,
    FieldOffset, InputLayer, InstructionBitstream, InstructionHint, InterruptHint, Layer, Meta, NumericsConstants,
    OutputLayer, OutputLayout, OutputShapeInfo, Package, Position, Range, TensorLayout, TensorShape,
};
use edgepack_format::row::{Blob, Rows, Table};

/// A place in the first executable.
macro_rules! at {
    ($path:literal) => {
        concat!("serialized_multi_executable.serialized_executables[0]", $path)
    };
}

pub fn rows<'r, T: Table<'static> + Clone>(rows: &'r mut Option<Rows<'static, T>>) -> &'r mut Vec<T> {
    rows.get_or_insert_default().to_mut().unwrap()
}

pub fn meta(desc: Description, name: &'static str, position: Position) -> Meta<'static> {
    Meta { desc, batch: 0, name: Some(name.into()), position }
}

pub fn field(desc: Description, name: &'static str, position: Position, offset_bit: i32) -> FieldOffset<'static> {
    FieldOffset { meta: Some(meta(desc, name, position)), offset_bit }
}

pub fn transfer(desc: Description, name: &'static str, direction: Direction, size_in_bytes: i32) -> DmaHint<'static> {
    let meta = Some(meta(desc, name, Position::LOWER_32BIT));
    let hint = DmaDescriptorHint { meta, offset_in_bytes: 0, size_in_bytes };
    DmaHint { any_hint: Some(AnyHint::DmaDescriptorHint(hint)), direction }
}

pub fn step(hint: AnyHint<'static>, direction: Direction) -> DmaHint<'static> {
    DmaHint { any_hint: Some(hint), direction }
}

pub const INPUT: Description = Description::BASE_ADDRESS_INPUT_ACTIVATION;
pub const OUTPUT: Description = Description::BASE_ADDRESS_OUTPUT_ACTIVATION;
pub const PARAMETER: Description = Description::BASE_ADDRESS_PARAMETER;
pub const SCRATCH: Description = Description::BASE_ADDRESS_SCRATCH;

/// An executable without a fault: input `x` of 16 bytes, output `y` of 3 x 3 x 2 in four tiles, 64 bytes of parameters.
pub fn executable() -> Executable<'static> {
    let numerics = || Some(NumericsConstants { zero_point: 3, dequantization_factor: 0.5 });
    let input = Layer {
        name: Some("x".into()),
        size_bytes: 16,
        y_dim: 1,
        x_dim: 1,
        z_dim: 16,
        numerics: numerics(),
        any_layer: Some(AnyLayer::InputLayer(InputLayer {})),
        ..Layer::default()
    };
    let layout = OutputLayout {
        y_coordinate_to_linear_tile_id_map: Some(vec![0, 0, 2].into()),
        x_coordinate_to_linear_tile_id_map: Some(vec![0, 0, 1].into()),
        linearized_tile_byte_offset: Some(vec![0, 16, 24, 32].into()),
        x_coordinate_to_local_byte_offset: Some(vec![0, 4, 0].into()),
        y_coordinate_to_local_y_offset: Some(vec![0, 1, 0].into()),
        x_coordinate_to_local_y_row_size: Some(vec![8, 8, 4].into()),
    };
    let output = Layer {
        name: Some("y".into()),
        size_bytes: 40,
        y_dim: 3,
        x_dim: 3,
        z_dim: 2,
        numerics: numerics(),
        any_layer: Some(AnyLayer::OutputLayer(OutputLayer { layout: Some(layout), ..OutputLayer::default() })),
        ..Layer::default()
    };
    let fields = vec![
        field(PARAMETER, "", Position::LOWER_32BIT, 70),
        field(PARAMETER, "", Position::UPPER_32BIT, 198),
        field(INPUT, "x", Position::UPPER_32BIT, 326),
        field(INPUT, "x", Position::LOWER_32BIT, 454),
        field(OUTPUT, "y", Position::UPPER_32BIT, 582),
        field(OUTPUT, "y", Position::LOWER_32BIT, 710),
    ];
    let hints = vec![
        step(AnyHint::InstructionHint(InstructionHint::default()), Direction::INFEED),
        transfer(PARAMETER, "", Direction::INFEED, 64),
        transfer(INPUT, "x", Direction::INFEED, 16),
        transfer(OUTPUT, "y", Direction::OUTFEED, 40),
        step(AnyHint::InterruptHint(InterruptHint::default()), Direction::OUTFEED),
    ];
    Executable {
        name: Some("model".into()),
        batch_size: 1,
        instruction_bitstreams: Some(
            vec![InstructionBitstream { bitstream: Some(blob(&[0; 96])), field_offsets: Some(fields.into()) }].into(),
        ),
        parameters: Some(blob(&[9; 64])),
        dma_hints: Some(DmaHints { hints: Some(hints.into()), fully_deterministic: true }),
        input_layers: Some(vec![input].into()),
        output_layers: Some(vec![output].into()),
        chip: Some("beagle".into()),
        ..Executable::default()
    }
}

pub fn blob(bytes: &[u8]) -> Blob<'static> {
    Blob(bytes.to_vec().into())
}

/// An executable that caches parameters for another.
pub fn caching(token: u64) -> Executable<'static> {
    let mut row = executable();
    row.kind = ExecutableType::PARAMETER_CACHING;
    row.parameter_caching_token = token;
    (row.input_layers, row.output_layers) = (None, None);
    rows(&mut rows(&mut row.instruction_bitstreams)[0].field_offsets).truncate(2);
    let hints = hints(&mut row);
    hints.remove(3);
    hints.remove(2);
    row
}

pub fn running(token: u64) -> Executable<'static> {
    Executable { kind: ExecutableType::EXECUTION_ONLY, parameter_caching_token: token, ..executable() }
}

pub fn row(executables: &[Executable<'static>]) -> Package<'static> {
    let written = executables.iter().map(|row| darwinn::executable(row, Layout::Dense).unwrap()).collect();
    let multi = darwinn::multi_executable(written, Layout::Dense).unwrap();
    Package {
        min_runtime_version: 13,
        serialized_multi_executable: Some(Blob(multi.into())),
        compiler_version: Some("cl/1".into()),
        ..Package::default()
    }
}

pub fn write(row: &Package<'_>) -> Vec<u8> {
    darwinn::package(row, Layout::Dense).unwrap()
}

/// A package without a fault.
pub fn good() -> Vec<u8> {
    write(&row(&[executable()]))
}

pub fn set(executables: &[Executable<'static>]) -> Vec<u8> {
    write(&row(executables))
}

/// A package with something changed.
pub fn with_package(change: impl FnOnce(&mut Package<'static>)) -> Vec<u8> {
    let mut row = row(&[executable()]);
    change(&mut row);
    write(&row)
}

/// A package whose executable has something changed.
pub fn with(change: impl FnOnce(&mut Executable<'static>)) -> Vec<u8> {
    let mut executable = executable();
    change(&mut executable);
    set(&[executable])
}

pub fn chunk<'r>(row: &'r mut Executable<'static>) -> &'r mut InstructionBitstream<'static> {
    &mut rows(&mut row.instruction_bitstreams)[0]
}

pub fn with_field(index: usize, change: impl FnOnce(&mut FieldOffset<'static>)) -> Vec<u8> {
    with(|row| change(&mut rows(&mut chunk(row).field_offsets)[index]))
}

pub fn with_meta(index: usize, change: impl FnOnce(&mut Meta<'static>)) -> Vec<u8> {
    with_field(index, |field| change(field.meta.as_mut().unwrap()))
}

pub fn hints<'r>(row: &'r mut Executable<'static>) -> &'r mut Vec<DmaHint<'static>> {
    rows(&mut row.dma_hints.as_mut().unwrap().hints)
}

pub fn with_hints(change: impl FnOnce(&mut Vec<DmaHint<'static>>)) -> Vec<u8> {
    with(|row| change(hints(row)))
}

/// The hint that moves the output, with something changed.
pub fn with_transfer(change: impl FnOnce(&mut DmaDescriptorHint<'static>)) -> Vec<u8> {
    with_hints(|hints| match &mut hints[3].any_hint {
        Some(AnyHint::DmaDescriptorHint(hint)) => change(hint),
        other => panic!("{other:?}"),
    })
}

pub fn with_input(change: impl FnOnce(&mut Layer<'static>)) -> Vec<u8> {
    with(|row| change(&mut rows(&mut row.input_layers)[0]))
}

pub fn with_output(change: impl FnOnce(&mut Layer<'static>)) -> Vec<u8> {
    with(|row| change(&mut rows(&mut row.output_layers)[0]))
}

pub fn output<'l>(layer: &'l mut Layer<'static>) -> &'l mut OutputLayer<'static> {
    match &mut layer.any_layer {
        Some(AnyLayer::OutputLayer(output)) => output,
        other => panic!("{other:?}"),
    }
}

pub fn with_layout(change: impl FnOnce(&mut OutputLayout<'static>)) -> Vec<u8> {
    with_output(|layer| change(output(layer).layout.as_mut().unwrap()))
}

pub fn shape(ranges: &[(i32, i32)]) -> TensorShape<'static> {
    let ranges: Vec<Range> = ranges.iter().map(|(start, end)| Range { start: *start, end: *end }).collect();
    TensorShape { dimension: Some(ranges.into()) }
}

pub type Box3 = [(i32, i32); 3];

/// The output as slices of a 3 x 3 x 2 tensor.
pub fn sliced(slices: &[(Box3, [i32; 3], i32)]) -> Vec<u8> {
    with_output(|layer| {
        layer.shape = Some(shape(&[(0, 2), (0, 2), (0, 1)]));
        let layouts: Vec<_> = slices
            .iter()
            .map(|(ranges, stride, _)| TensorLayout {
                shape: Some(shape(ranges)),
                stride: Some(stride.to_vec().into()),
            })
            .collect();
        let offsets: Vec<i32> = slices.iter().map(|(.., offset)| *offset).collect();
        output(layer).shape_info =
            Some(OutputShapeInfo { slice_layout: Some(layouts.into()), slice_offset: Some(offsets.into()) });
    })
}

pub const TOP: (Box3, [i32; 3], i32) = ([(0, 1), (0, 2), (0, 1)], [6, 2, 1], 0);
pub const BOTTOM: (Box3, [i32; 3], i32) = ([(2, 2), (0, 2), (0, 1)], [6, 2, 1], 16);
