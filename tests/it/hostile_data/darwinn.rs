//! Edge TPU packages that break one rule each.

#[macro_use]
mod package;

use edgepack_builder::darwinn::{self, Layout};
use edgepack_builder::sink::FlatSink;
use edgepack_format::darwinn::{
    AnyHint, AnyLayer, DataType, Description, Direction, Executable, ExecutableType, FenceHint, InputLayer,
    InstructionHint, InterruptHint, InterruptType, OutputShapeInfo, Package, Position, SerializedPackage, TensorLayout,
};
use edgepack_format::row::{Blob, FieldValue, Sink, Table};
use edgepack_format::rules::darwinn as rule;

use crate::hostile_data::{Case, patch, position};

use package::*;
pub use package::{good, with};

pub fn cases() -> Vec<Case> {
    [
        executable_cases(),
        field_cases(),
        hint_cases(),
        layer_cases(),
        layout_cases(),
        slice_cases(),
        package_cases(),
        structure_cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn executable_cases() -> Vec<Case> {
    let list = "serialized_multi_executable.serialized_executables";
    let (first, second) = (at!(""), "serialized_multi_executable.serialized_executables[1]");
    let token = "serialized_multi_executable.serialized_executables[1].parameter_caching_token";
    let kind = "serialized_multi_executable.serialized_executables[1].type";
    let layered = Executable { input_layers: executable().input_layers, ..caching(7) };
    vec![
        Case::new("executables_none", &rule::EXECUTABLES, list, set(&[])),
        Case::new("batch_zero", &rule::BATCH, at!(".batch_size"), with(|row| row.batch_size = 0)),
        Case::new("kind_unknown", &rule::KIND, at!(".type"), with(|row| row.kind = ExecutableType(7))),
        Case::new("kind_twice", &rule::KIND_DUPLICATE, kind, set(&[executable(), executable()])),
        Case::new("combination", &rule::COMBINATION, list, set(&[executable(), caching(7)])),
        Case::new("caching_alone", &rule::CACHING_ALONE, first, set(&[caching(7)])),
        Case::new("token_zero", &rule::TOKEN, token, set(&[running(0), caching(0)])),
        Case::new("tokens_differ", &rule::TOKENS, token, set(&[running(7), caching(8)])),
        Case::new(
            "scratch_negative",
            &rule::SCRATCH,
            at!(".scratch_size_bytes"),
            with(|row| row.scratch_size_bytes = -8),
        ),
        Case::new(
            "chunks_absent",
            &rule::CHUNKS,
            at!(".instruction_bitstreams"),
            with(|row| row.instruction_bitstreams = None),
        ),
        Case::new(
            "chunk_empty",
            &rule::CHUNK,
            at!(".instruction_bitstreams[0].bitstream"),
            with(|row| chunk(row).bitstream = Some(blob(&[]))),
        ),
        Case::new(
            "chunk_odd",
            &rule::CHUNK_LENGTH,
            at!(".instruction_bitstreams[0].bitstream"),
            with(|row| chunk(row).bitstream = Some(blob(&[0; 97]))),
        ),
        Case::new("caching_with_layers", &rule::CACHING_LAYERS, second, set(&[running(7), layered])),
        Case::new(
            "narrow_memory",
            &rule::NARROW_MEMORY,
            at!(".used_narrow_memory_bytes_per_tile"),
            with(|row| row.used_narrow_memory_bytes_per_tile = 196_609),
        ),
        Case::new("running_twice", &rule::RUNNING_SEVERAL, list, set(&[running(7), running(7), caching(7)])),
        Case::new("parameters_unaligned", &rule::PAGES, at!(".parameters"), good()),
    ]
}

fn field_cases() -> Vec<Case> {
    let path = at!(".instruction_bitstreams[0].field_offsets[2]");
    let batch = at!(".instruction_bitstreams[0].field_offsets[2].meta.batch");
    let name = at!(".instruction_bitstreams[0].field_offsets[2].meta.name");
    vec![
        Case::new("field_meta_absent", &rule::FIELD_META, path, with_field(2, |field| field.meta = None)),
        Case::new(
            "field_description",
            &rule::FIELD_DESCRIPTION,
            at!(".instruction_bitstreams[0].field_offsets[2].meta.desc"),
            with_meta(2, |meta| meta.desc = Description(9)),
        ),
        Case::new(
            "field_position",
            &rule::FIELD_POSITION,
            at!(".instruction_bitstreams[0].field_offsets[2].meta.position"),
            with_meta(2, |meta| meta.position = Position(2)),
        ),
        Case::new("field_negative", &rule::FIELD_RANGE, path, with_field(2, |field| field.offset_bit = -1)),
        Case::new("field_one_bit_over", &rule::FIELD_RANGE, path, with_field(2, |field| field.offset_bit = 737)),
        Case::new("field_far", &rule::FIELD_RANGE, path, with_field(2, |field| field.offset_bit = i32::MAX)),
        Case::new("field_batch", &rule::FIELD_BATCH, batch, with_meta(2, |meta| meta.batch = 1)),
        Case::new("field_batch_negative", &rule::FIELD_BATCH, batch, with_meta(2, |meta| meta.batch = -1)),
        Case::new("field_name_absent", &rule::FIELD_NAME, name, with_meta(2, |meta| meta.name = None)),
        Case::new("field_layer", &rule::FIELD_LAYER, name, with_meta(2, |meta| meta.name = Some("y".into()))),
        Case::new("field_overlap", &rule::FIELD_OVERLAP, path, with_field(2, |field| field.offset_bit = 229)),
        Case::new("field_phase", &rule::FIELD_PHASE, path, with_field(2, |field| field.offset_bit = 327)),
        Case::new(
            "field_alone",
            &rule::FIELD_PAIR,
            at!(".instruction_bitstreams[0].field_offsets[0]"),
            with_meta(1, |meta| meta.position = Position::LOWER_32BIT),
        ),
        Case::new(
            "field_linked",
            &rule::FIELD_PLACEHOLDER,
            at!(".instruction_bitstreams[0].field_offsets[0]"),
            with(|row| chunk(row).bitstream = Some(blob(&[[0; 12], [1; 12]].concat().repeat(4)))),
        ),
    ]
}

fn hint_cases() -> Vec<Case> {
    let (list, path, first) = (at!(".dma_hints.hints"), at!(".dma_hints.hints[3]"), at!(".dma_hints.hints[0]"));
    let scratch = || transfer(SCRATCH, "", Direction::OUTFEED, 8);
    let hint = |hint: AnyHint<'static>| step(hint, Direction::OUTFEED);
    let fence = || hint(AnyHint::FenceHint(FenceHint {}));
    vec![
        Case::new("hints_absent", &rule::HINTS, at!(".dma_hints"), with(|row| row.dma_hints = None)),
        Case::new("hints_list_absent", &rule::HINTS, list, with(|row| row.dma_hints.as_mut().unwrap().hints = None)),
        Case::new("hint_none", &rule::HINT, path, with_hints(|hints| hints[3].any_hint = None)),
        Case::new("hint_unknown", &rule::HINT, path, with_hints(|hints| hints[3].any_hint = Some(AnyHint::Unknown(5)))),
        Case::new("hint_meta_absent", &rule::HINT_META, path, with_transfer(|hint| hint.meta = None)),
        Case::new(
            "hint_description",
            &rule::HINT_DESCRIPTION,
            path,
            with_transfer(|hint| hint.meta.as_mut().unwrap().desc = Description(-1)),
        ),
        Case::new(
            "hint_layer",
            &rule::HINT_LAYER,
            path,
            with_transfer(|hint| hint.meta.as_mut().unwrap().name = Some("x".into())),
        ),
        Case::new(
            "hint_name_absent",
            &rule::HINT_LAYER,
            path,
            with_transfer(|hint| hint.meta.as_mut().unwrap().name = None),
        ),
        Case::new("hint_batch", &rule::HINT_BATCH, path, with_transfer(|hint| hint.meta.as_mut().unwrap().batch = 1)),
        Case::new("hint_too_long", &rule::HINT_RANGE, path, with_transfer(|hint| hint.size_in_bytes = 41)),
        Case::new("hint_offset_negative", &rule::HINT_RANGE, path, with_transfer(|hint| hint.offset_in_bytes = -8)),
        Case::new("hint_size_negative", &rule::HINT_RANGE, path, with_transfer(|hint| hint.size_in_bytes = -1)),
        Case::new(
            "hint_range_wraps",
            &rule::HINT_RANGE,
            path,
            with_transfer(|hint| {
                (hint.offset_in_bytes, hint.size_in_bytes) = (i32::MAX, i32::MAX);
            }),
        ),
        Case::new("hint_empty", &rule::HINT_EMPTY, path, with_transfer(|hint| hint.size_in_bytes = 0)),
        Case::new(
            "hint_chunk",
            &rule::HINT_CHUNK,
            first,
            with_hints(|hints| {
                hints[0].any_hint = Some(AnyHint::InstructionHint(InstructionHint { instruction_chunk_index: 1 }));
            }),
        ),
        Case::new(
            "hint_chunk_negative",
            &rule::HINT_CHUNK,
            first,
            with_hints(|hints| {
                hints[0].any_hint = Some(AnyHint::InstructionHint(InstructionHint { instruction_chunk_index: -1 }));
            }),
        ),
        Case::new(
            "hint_interrupt",
            &rule::HINT_INTERRUPT,
            at!(".dma_hints.hints[4]"),
            with_hints(|hints| {
                hints[4] = hint(AnyHint::InterruptHint(InterruptHint { kind: InterruptType(4) }));
            }),
        ),
        Case::new("hint_scratch", &rule::HINT_SCRATCH, first, with_hints(|hints| hints.insert(0, scratch()))),
        Case::new("fence_first", &rule::HINT_FENCE, first, with_hints(|hints| hints.insert(0, fence()))),
        Case::new(
            "fence_twice",
            &rule::HINT_FENCE,
            at!(".dma_hints.hints[2]"),
            with_hints(|hints| {
                hints.insert(1, fence());
                hints.insert(1, fence());
            }),
        ),
        Case::new("no_interrupt", &rule::HINT_END, list, with_hints(|hints| hints.truncate(4))),
        Case::new(
            "direction",
            &rule::HINT_DIRECTION,
            at!(".dma_hints.hints[3].direction"),
            with_hints(|hints| hints[3].direction = Direction::INFEED),
        ),
        Case::new(
            "not_deterministic",
            &rule::HINT_PARTIAL,
            at!(".dma_hints.fully_deterministic"),
            with(|row| row.dma_hints.as_mut().unwrap().fully_deterministic = false),
        ),
        Case::new("output_in_part", &rule::HINT_COVERAGE, list, with_transfer(|hint| hint.size_in_bytes = 32)),
    ]
}

fn layer_cases() -> Vec<Case> {
    let (input, path) = (at!(".input_layers[0]"), at!(".output_layers[0]"));
    let kind = at!(".output_layers[0].any_layer");
    let twice = with(|row| {
        let layer = rows(&mut row.output_layers)[0].clone();
        rows(&mut row.output_layers).push(layer);
    });
    let scale = |scale: f32| with_output(|layer| layer.numerics.as_mut().unwrap().dequantization_factor = scale);
    let factor = at!(".output_layers[0].numerics.dequantization_factor");
    vec![
        Case::new("layer_name", &rule::LAYER_NAME, at!(".input_layers[0].name"), with_input(|layer| layer.name = None)),
        Case::new("layer_twice", &rule::LAYER_DUPLICATE, at!(".output_layers[1].name"), twice),
        Case::new("output_none", &rule::LAYER_KIND, kind, with_output(|layer| layer.any_layer = None)),
        Case::new(
            "output_is_input",
            &rule::LAYER_KIND,
            kind,
            with_output(|layer| layer.any_layer = Some(AnyLayer::InputLayer(InputLayer {}))),
        ),
        Case::new("data_type", &rule::LAYER_TYPE, path, with_output(|layer| layer.data_type = DataType(6))),
        Case::new("dimension_zero", &rule::LAYER_DIMENSION, path, with_output(|layer| layer.y_dim = 0)),
        Case::new("dimension_negative", &rule::LAYER_DIMENSION, input, with_input(|layer| layer.z_dim = -16)),
        Case::new(
            "dimensions_overflow",
            &rule::LAYER_LARGE,
            path,
            with_output(|layer| (layer.y_dim, layer.x_dim, layer.z_dim) = (1 << 16, 1 << 16, 1 << 16)),
        ),
        Case::new(
            "executions_overflow",
            &rule::LAYER_LARGE,
            input,
            with_input(|layer| layer.execution_count_per_inference = 1 << 28),
        ),
        Case::new("size_small", &rule::LAYER_SIZE, path, with_output(|layer| layer.size_bytes = 17)),
        Case::new("size_negative", &rule::LAYER_SIZE, path, with_output(|layer| layer.size_bytes = -40)),
        Case::new(
            "executions_zero",
            &rule::LAYER_EXECUTIONS,
            input,
            with_input(|layer| layer.execution_count_per_inference = 0),
        ),
        Case::new(
            "shape_backwards",
            &rule::LAYER_SHAPE,
            path,
            with_output(|layer| layer.shape = Some(shape(&[(0, 2), (3, 1), (0, 1)]))),
        ),
        Case::new(
            "shape_extremes",
            &rule::LAYER_LARGE,
            path,
            with_output(|layer| layer.shape = Some(shape(&[(i32::MIN, i32::MAX); 5]))),
        ),
        Case::new("shape_empty", &rule::LAYER_SHAPE, path, with_output(|layer| layer.shape = Some(shape(&[])))),
        Case::new(
            "shape_product",
            &rule::LAYER_PRODUCT,
            path,
            with_output(|layer| layer.shape = Some(shape(&[(0, 2), (0, 2), (0, 2)]))),
        ),
        Case::new(
            "numerics",
            &rule::LAYER_NUMERICS,
            at!(".output_layers[0].numerics"),
            with_output(|layer| layer.numerics = None),
        ),
        Case::new(
            "zero_point_above",
            &rule::LAYER_ZERO,
            at!(".output_layers[0].numerics.zero_point"),
            with_output(|layer| layer.numerics.as_mut().unwrap().zero_point = 256),
        ),
        Case::new("scale_zero", &rule::LAYER_SCALE, factor, scale(0.0)),
        Case::new("scale_nan", &rule::LAYER_SCALE, factor, scale(f32::NAN)),
        Case::new(
            "size_unaligned",
            &rule::LAYER_ALIGNMENT,
            at!(".output_layers[0].size_bytes"),
            with_output(|layer| layer.size_bytes = 41),
        ),
        Case::new(
            "input_none",
            &rule::LAYER_UNION,
            at!(".input_layers[0].any_layer"),
            with_input(|layer| layer.any_layer = None),
        ),
    ]
}

fn layout_cases() -> Vec<Case> {
    let (kind, path) = (at!(".output_layers[0].any_layer"), at!(".output_layers[0].any_layer.layout"));
    vec![
        Case::new("layout_absent", &rule::LAYOUT, kind, with_output(|layer| output(layer).layout = None)),
        Case::new(
            "map_short",
            &rule::MAP_LENGTH,
            path,
            with_layout(|layout| layout.x_coordinate_to_local_byte_offset = Some(vec![0, 4].into())),
        ),
        Case::new(
            "map_absent",
            &rule::MAP_LENGTH,
            path,
            with_layout(|layout| layout.y_coordinate_to_local_y_offset = None),
        ),
        Case::new(
            "tile_beyond",
            &rule::MAP_TILE,
            path,
            with_layout(|layout| layout.y_coordinate_to_linear_tile_id_map = Some(vec![0, 0, 3].into())),
        ),
        Case::new(
            "tile_negative",
            &rule::MAP_TILE,
            path,
            with_layout(|layout| layout.y_coordinate_to_linear_tile_id_map = Some(vec![0, 0, -1].into())),
        ),
        Case::new(
            "place_beyond",
            &rule::MAP_PLACE,
            path,
            with_layout(|layout| layout.linearized_tile_byte_offset = Some(vec![0, 16, 24, 39].into())),
        ),
        Case::new(
            "place_negative",
            &rule::MAP_PLACE,
            path,
            with_layout(|layout| layout.x_coordinate_to_local_byte_offset = Some(vec![0, -1, 0].into())),
        ),
        Case::new(
            "place_wraps",
            &rule::MAP_PLACE,
            path,
            with_layout(|layout| {
                layout.x_coordinate_to_local_y_row_size = Some(vec![i32::MAX; 3].into());
                layout.y_coordinate_to_local_y_offset = Some(vec![0, i32::MAX, 0].into());
            }),
        ),
        Case::new(
            "places_shared",
            &rule::MAP_OVERLAP,
            kind,
            with_layout(|layout| layout.linearized_tile_byte_offset = Some(vec![0, 0, 24, 32].into())),
        ),
        Case::new(
            "executions_tiled",
            &rule::UNDEFINED,
            kind,
            with_output(|layer| layer.execution_count_per_inference = 2),
        ),
        Case::new(
            "batch_tiled",
            &rule::UNDEFINED,
            kind,
            with_output(|layer| {
                layer.shape = Some(shape(&[(0, 1), (0, 2), (0, 2), (0, 1)]));
            }),
        ),
    ]
}

fn slice_cases() -> Vec<Case> {
    let info = at!(".output_layers[0].any_layer.shape_info");
    let second = at!(".output_layers[0].any_layer.shape_info.slice_layout[1]");
    let (ranges, strides, _) = BOTTOM;
    let unshaped = with_output(|layer| {
        output(layer).shape_info = Some(OutputShapeInfo { slice_layout: None, slice_offset: None });
    });
    let gap = [(2, 2), (0, 1), (0, 1)];
    let wide = with_output(|layer| {
        (layer.data_type, layer.size_bytes) = (DataType::FIXED_POINT16, 80);
        layer.shape = Some(shape(&[(0, 2), (0, 2), (0, 1)]));
        let layout = TensorLayout { shape: Some(shape(&[(0, 2), (0, 2), (0, 1)])), stride: Some(vec![6, 2, 1].into()) };
        output(layer).shape_info =
            Some(OutputShapeInfo { slice_layout: Some(vec![layout].into()), slice_offset: Some(vec![1].into()) });
    });
    vec![
        Case::new("slices_without_shape", &rule::SLICE_RANK, info, unshaped),
        Case::new("slice_leaves", &rule::SLICE_RANGE, second, sliced(&[TOP, ([(2, 3), (0, 2), (0, 1)], strides, 16)])),
        Case::new(
            "slice_backwards",
            &rule::SLICE_RANGE,
            second,
            sliced(&[TOP, ([(2, 1), (0, 2), (0, 1)], strides, 16)]),
        ),
        Case::new("slice_stride", &rule::SLICE_STRIDE, second, sliced(&[TOP, (ranges, [5, 2, 1], 16)])),
        Case::new("slice_last_stride", &rule::SLICE_STRIDE, second, sliced(&[TOP, (ranges, [12, 4, 2], 16)])),
        Case::new("slice_stride_zero", &rule::SLICE_STRIDE, second, sliced(&[TOP, (ranges, [0, 0, 1], 16)])),
        Case::new("slice_offset_negative", &rule::SLICE_OFFSET, second, sliced(&[TOP, (ranges, strides, -2)])),
        Case::new(
            "slice_offset_odd",
            &rule::SLICE_OFFSET,
            at!(".output_layers[0].any_layer.shape_info.slice_layout[0]"),
            wide,
        ),
        Case::new("slice_beyond", &rule::SLICE_BOUNDS, second, sliced(&[TOP, (ranges, strides, 35)])),
        Case::new("slice_gap", &rule::SLICE_COVER, info, sliced(&[TOP, (gap, strides, 16)])),
        Case::new("slice_shared", &rule::SLICE_COVER, second, sliced(&[TOP, ([(1, 2), (0, 2), (0, 1)], strides, 16)])),
        Case::new("slices_none", &rule::SLICE_COVER, info, sliced(&[])),
    ]
}

fn package_cases() -> Vec<Case> {
    let multi = "serialized_multi_executable";
    let chip = |package: Vec<u8>| SerializedPackage { serialized_package: Some(Blob(package.into())) };
    let several = |chips: Vec<SerializedPackage<'static>>| {
        write(&Package {
            virtual_chip_id: -1,
            min_runtime_version: 13,
            multi_chip_package: Some(chips.into()),
            ..Package::default()
        })
    };
    let nested = (0..10).fold(good(), |package, _| several(vec![chip(package)]));
    let deep = "multi_chip_package[0].serialized_package.multi_chip_package[0].serialized_package.\
                multi_chip_package[0].serialized_package.multi_chip_package[0].serialized_package.\
                multi_chip_package[0].serialized_package.multi_chip_package[0].serialized_package.\
                multi_chip_package[0].serialized_package.multi_chip_package[0].serialized_package.multi_chip_package";
    vec![
        Case::new("empty", &rule::SHORT, "", Vec::new()),
        Case::new("seven_bytes", &rule::SHORT, "", good()[..7].to_vec()),
        Case::new("identifier", &rule::IDENTIFIER, "", patch(good(), 4, b"DWN2")),
        Case::new("unidentified", &rule::UNIDENTIFIED, "", patch(good(), 4, &[0; 4])).accepting_all(),
        Case::new(
            "runtime_15",
            &rule::RUNTIME_NEW,
            "min_runtime_version",
            with_package(|row| row.min_runtime_version = 15),
        ),
        Case::new(
            "runtime_9",
            &rule::RUNTIME_OLD,
            "min_runtime_version",
            with_package(|row| row.min_runtime_version = 9),
        ),
        Case::new("multi_chip", &rule::MULTI_CHIP, "virtual_chip_id", several(vec![chip(good()), chip(good())])),
        Case::new(
            "no_executables",
            &rule::NO_EXECUTABLES,
            multi,
            with_package(|row| row.serialized_multi_executable = None),
        ),
        Case::new("no_packages", &rule::NO_PACKAGES, "multi_chip_package", several(vec![])),
        Case::new(
            "empty_package",
            &rule::NO_PACKAGES,
            "multi_chip_package[1]",
            several(vec![chip(good()), SerializedPackage::default()]),
        ),
        Case::new(
            "broken_chip",
            &rule::BATCH,
            "multi_chip_package[0].serialized_package.serialized_multi_executable.serialized_executables[0].batch_size",
            several(vec![chip(with(|row| row.batch_size = -1))]),
        ),
        Case::new("nested_deep", &rule::DEPTH, deep, nested),
        Case::new(
            "signature",
            &rule::SIGNATURE,
            "signature",
            with_package(|row| row.signature = Some(blob(b"not a signature"))),
        ),
        Case::new("not_pages", &rule::PAGE_LAYOUT, multi, good()),
    ]
}

fn structure_cases() -> Vec<Case> {
    let multi = "serialized_multi_executable";
    let file = good();
    let name = position(&file, b"beagle\0");
    // A table of 1024 hints that are all one hint with one meta.
    let shared = shared_hints();
    vec![
        Case::new("root_beyond", &rule::MALFORMED, "", patch(file.clone(), 0, &[0xff; 4])),
        Case::new("cut", &rule::MALFORMED, multi, file[..file.len() - 8].to_vec()),
        Case::new(
            "multi_noise",
            &rule::MALFORMED,
            multi,
            with_package(|row| row.serialized_multi_executable = Some(blob(&[0xa5; 64]))),
        ),
        Case::new(
            "executable_noise",
            &rule::MALFORMED,
            at!(""),
            with_package(|row| {
                let multi = darwinn::multi_executable(vec![vec![0xa5; 64]], Layout::Dense).unwrap();
                row.serialized_multi_executable = Some(Blob(multi.into()));
            }),
        ),
        Case::new("chip_unterminated", &rule::MALFORMED, at!(".chip"), patch(file.clone(), name + 6, b"x")),
        Case::new(
            "executable_shifted",
            &rule::MISALIGNED,
            at!(""),
            with_package(|row| {
                let shifted = shifted(&darwinn::executable(&executable(), Layout::Dense).unwrap());
                let multi = darwinn::multi_executable(vec![shifted], Layout::Dense).unwrap();
                row.serialized_multi_executable = Some(Blob(multi.into()));
            }),
        ),
        Case::new("chip_not_utf8", &rule::TEXT, at!(".chip"), patch(file, name, b"\xff")),
        Case::new("shared_hints", &rule::LIMITS, at!(".dma_hints.hints[356].any_hint.meta.name"), shared).visits(1_500),
    ]
}

/// A flatbuffer whose objects are all two bytes further on.
fn shifted(bytes: &[u8]) -> Vec<u8> {
    let root = u32::from_le_bytes(bytes[..4].try_into().unwrap()) + 2;
    [&root.to_le_bytes()[..], &[0; 6], &bytes[8..]].concat()
}

fn shared_hints() -> Vec<u8> {
    let mut sink = FlatSink::new().with_most_alignment(16);
    let hint = executable().dma_hints.unwrap().hints.unwrap().get(3).unwrap().encode(&mut sink).unwrap();
    let hints = sink.refs(&[hint; 1024]).unwrap();
    let hints = sink.table(&[(0, FieldValue::Ref(hints))]).unwrap();
    let root = sink.table(&[(7, FieldValue::Ref(hints))]).unwrap();
    let executable = sink.finish_unidentified(root).unwrap();
    with_package(|row| {
        let multi = darwinn::multi_executable(vec![executable], Layout::Dense).unwrap();
        row.serialized_multi_executable = Some(Blob(multi.into()));
    })
}
