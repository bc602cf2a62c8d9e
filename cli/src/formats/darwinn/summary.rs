//! Summary of an Edge TPU package: every level, every list, with the places and sums of the tables stored inside as
//! bytes.

use edgepack::builder::content::hex;
use edgepack_format::darwinn::{
    AnyHint, Description, DmaHint, Executable, ExecutableRef, FieldOffset, Geometry, Layer, OutputLayout, PackageRef,
    Position, Range, Tiles, output_of,
};
use edgepack_format::row::{Rows, Scalars, Structs};
use edgepack_format::wire;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::readable::sound_rows;

/// SHA-256 in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// A float with its bits.
pub fn float(value: f32) -> Value {
    json!({ "value": f64::from(value), "bits": format!("{:#010x}", value.to_bits()) })
}

fn root(bytes: &[u8]) -> (Value, Value) {
    match wire::Table::root(bytes) {
        Ok(table) => {
            let ids: Vec<u16> = (0..table.slot_count()).filter(|slot| table.has(*slot)).collect();
            (table.offset().into(), ids.into())
        }
        Err(_) => (Value::Null, Value::Null),
    }
}

fn identifier(bytes: &[u8]) -> &[u8] {
    bytes.get(4..8).unwrap_or(&[])
}

/// Describes a package as JSON: every level and list, and where the tables stored as bytes are.
pub fn package(package: &PackageRef<'_>) -> Value {
    let (bytes, row) = (package.bytes(), package.package());
    let (root_offset, ids) = root(bytes);
    let multi = package.multi_executable_bytes();
    let start = package.multi_executable().map(|range| range.start);
    let executables: Vec<Value> = package
        .executables()
        .iter()
        .enumerate()
        .map(|(index, one)| executable(one, index, one.offset().saturating_sub(start.unwrap_or(0))))
        .collect();
    json!({
        "length": bytes.len(),
        "sha256": sha256(bytes),
        "file_identifier": String::from_utf8_lossy(identifier(bytes)),
        "root_table_offset": root_offset,
        "field_ids_present": ids,
        "min_runtime_version": row.min_runtime_version,
        "keypair_version": row.keypair_version,
        "compiler_version": row.compiler_version,
        "virtual_chip_id": row.virtual_chip_id,
        "multi_chip_package_count": row.multi_chip_package.as_ref().map_or(0, Rows::len),
        "multi_chip_packages": package.chips().iter().map(self::package).collect::<Vec<_>>(),
        "model_identifier": row.model_identifier,
        "signature_length": row.signature.as_ref().map_or(0, |blob| blob.as_slice().len()),
        "serialized_multi_executable": {
            "offset_in_package": start,
            "length": multi.len(),
            "sha256": sha256(multi),
            "root_table_offset": root(multi).0,
            "bytes_4_to_8_hex": hex(identifier(multi)),
        },
        "executable_count": package.executables().len(),
        "executables": executables,
        "driver_view": {
            "main_executable_index": package.main(),
            "parameter_caching_executable_index": package.caching(),
        },
    })
}

fn executable(executable: &ExecutableRef<'_>, index: usize, offset: usize) -> Value {
    let (bytes, row) = (executable.bytes(), executable.row());
    let (root_offset, ids) = root(bytes);
    let place = wire::Table::root(bytes).and_then(|table| table.vector(Executable::PARAMETERS.index, 1)).ok().flatten();
    let chunks = sound_rows(&row.instruction_bitstreams);
    let lens: Vec<usize> =
        chunks.iter().map(|chunk| chunk.bitstream.as_ref().map_or(0, |b| b.as_slice().len())).collect();
    let mut total = Map::new();
    let streams: Vec<Value> = chunks
        .iter()
        .zip(&lens)
        .map(|(chunk, len)| {
            let fields = sound_rows(&chunk.field_offsets);
            let mut kinds = Map::new();
            for field in &fields {
                count(&mut kinds, kind_of(field));
                count(&mut total, kind_of(field));
            }
            let bytes = chunk.bitstream.as_ref().map_or(&[][..], |blob| blob.as_slice());
            json!({
                "length": len,
                "sha256": sha256(bytes),
                "field_offset_count": fields.len(),
                "field_offsets_by_description": kinds,
                "field_offsets": fields.iter().map(field).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "index": index,
        "offset_in_multi_executable": offset,
        "length": bytes.len(),
        "sha256": sha256(bytes),
        "root_table_offset": root_offset,
        "bytes_4_to_8_hex": hex(identifier(bytes)),
        "field_ids_present": ids,
        "version": row.version,
        "name": row.name,
        "serialized_model_length": row.serialized_model.as_ref().map_or(0, |blob| blob.as_slice().len()),
        "batch_size": row.batch_size,
        "scratch_size_bytes": row.scratch_size_bytes,
        "chip": row.chip,
        "type": row.kind.0,
        "type_name": row.kind.name(),
        "estimated_cycles": row.estimated_cycles,
        "estimated_cycles_64bit": row.estimated_cycles_64bit,
        "used_narrow_memory_bytes_per_tile": row.used_narrow_memory_bytes_per_tile,
        "parameter_caching_token": format!("{:#018x}", row.parameter_caching_token),
        "use_tpu_dram_for_parameters": row.use_tpu_dram_for_parameters,
        "parameters": place.map(|place| json!({
            "offset_in_executable": place.offset(),
            "length": place.len(),
            "sha256": sha256(place.bytes()),
        })),
        "instruction_bitstream_count": chunks.len(),
        "instruction_bytes_total": lens.iter().sum::<usize>(),
        "field_offsets_by_description_total": total,
        "instruction_bitstreams": streams,
        "dma_hints": hints(row),
        "input_layers": sound_rows(&row.input_layers).iter().map(|row| layer(row, false)).collect::<Vec<_>>(),
        "output_layers": sound_rows(&row.output_layers).iter().map(|row| layer(row, true)).collect::<Vec<_>>(),
    })
}

fn count(counts: &mut Map<String, Value>, key: String) {
    let count = counts.get(&key).and_then(Value::as_u64).unwrap_or(0);
    counts.insert(key, (count + 1).into());
}

/// The name without what all of them begin with.
pub fn description(desc: Description) -> String {
    desc.to_string().trim_start_matches("BASE_ADDRESS_").to_owned()
}

fn kind_of(field: &FieldOffset<'_>) -> String {
    let meta = field.meta.as_ref();
    let (desc, position) = meta.map_or_else(Default::default, |meta| (meta.desc, meta.position));
    format!("{}/{}", description(desc), Position(position.0))
}

fn field(field: &FieldOffset<'_>) -> Value {
    let meta = field.meta.as_ref();
    json!({
        "offset_bit": field.offset_bit,
        "desc": meta.map(|meta| description(meta.desc)),
        "position": meta.map(|meta| meta.position.to_string()),
        "batch": meta.map(|meta| meta.batch),
        "name": meta.and_then(|meta| meta.name.as_deref()),
    })
}

fn hints(row: &Executable<'_>) -> Value {
    let Some(hints) = &row.dma_hints else { return Value::Null };
    let list = sound_rows(&hints.hints);
    let mut kinds = Map::new();
    let sequence: Vec<Value> = list
        .iter()
        .map(|one| {
            let (kind, value) = hint(one);
            count(&mut kinds, kind.to_owned());
            value
        })
        .collect();
    json!({
        "count": list.len(),
        "fully_deterministic": hints.fully_deterministic,
        "by_kind": kinds,
        "sequence": sequence,
    })
}

fn hint(hint: &DmaHint<'_>) -> (&'static str, Value) {
    let direction = hint.direction.to_string();
    match &hint.any_hint {
        Some(AnyHint::DmaDescriptorHint(row)) => {
            let meta = row.meta.as_ref();
            (
                "dma",
                json!({
                    "kind": "dma",
                    "desc": meta.map(|meta| description(meta.desc)),
                    "name": meta.and_then(|meta| meta.name.as_deref()),
                    "batch": meta.map(|meta| meta.batch),
                    "offset_in_bytes": row.offset_in_bytes,
                    "size_in_bytes": row.size_in_bytes,
                    "direction": direction,
                }),
            )
        }
        Some(AnyHint::InstructionHint(row)) => (
            "instruction",
            json!({ "kind": "instruction", "chunk": row.instruction_chunk_index, "direction": direction }),
        ),
        Some(AnyHint::InterruptHint(row)) => {
            ("interrupt", json!({ "kind": "interrupt", "type": row.kind.0, "direction": direction }))
        }
        Some(AnyHint::FenceHint(_)) => ("fence", json!({ "kind": "fence", "direction": direction })),
        _ => ("none", json!({ "kind": "none", "direction": direction })),
    }
}

fn ranges(list: Option<&Structs<'_, Range>>) -> Value {
    list.map(|list| list.iter().map(|range| [range.start, range.end]).collect::<Vec<_>>()).into()
}

fn layer(layer: &Layer<'_>, is_output: bool) -> Value {
    let numerics = layer.numerics.as_ref();
    let mut out = json!({
        "name": layer.name,
        "size_bytes": layer.size_bytes,
        "y_dim": layer.y_dim,
        "x_dim": layer.x_dim,
        "z_dim": layer.z_dim,
        "data_type": layer.data_type.0,
        "data_type_name": layer.data_type.name(),
        "bytes_per_element": layer.data_type.size(),
        "zero_point": numerics.map(|numerics| numerics.zero_point),
        "dequantization_factor": numerics.map(|numerics| float(numerics.dequantization_factor)),
        "execution_count_per_inference": layer.execution_count_per_inference,
        "cache_on_dram": layer.cache_on_dram,
        "any_layer_type": layer.any_layer.as_ref().map_or(0, edgepack_format::row::Union::tag),
        "shape_inclusive_ranges": ranges(layer.shape.as_ref().and_then(|shape| shape.dimension.as_ref())),
    });
    let geometry = Geometry::of(layer).ok();
    let mut derived = json!({
        "actual_size_bytes": geometry.map(|geometry| geometry.actual_bytes),
        "padded_size_bytes": geometry.map(|geometry| geometry.padded_bytes),
    });
    if is_output {
        let output = output_of(layer);
        let layout = output.and_then(|output| output.layout.as_ref());
        let tiles = layout.zip(geometry).and_then(|(layout, geometry)| {
            let tiles = Tiles::new(layout, &geometry).ok()?;
            Some((z_stride(&tiles, &geometry), tiles.used()))
        });
        derived["z_stride_elements"] = tiles.as_ref().and_then(|(stride, _)| *stride).into();
        derived["x_tiles_used"] = tiles.as_ref().map(|(_, (_, x))| *x).into();
        derived["y_tiles_used"] = tiles.as_ref().map(|(_, (y, _))| *y).into();
        out["output_layout"] = layout.map_or(Value::Null, maps);
        out["output_shape_info"] = output.and_then(|output| output.shape_info.as_ref()).map_or(Value::Null, |info| {
            let offsets = info.slice_offset.clone().unwrap_or_default();
            let slices = sound_rows(&info.slice_layout);
            let slice = |(index, slice): (usize, &edgepack_format::darwinn::TensorLayout<'_>)| {
                json!({
                    "ranges": ranges(slice.shape.as_ref().and_then(|shape| shape.dimension.as_ref())),
                    "stride": slice.stride.as_ref().map(|list| list.iter().collect::<Vec<_>>()),
                    "offset_bytes": offsets.get(index),
                })
            };
            slices.iter().enumerate().map(slice).collect::<Vec<_>>().into()
        });
    }
    out["derived"] = derived;
    out
}

/// Elements from the first pixel to the next in its row, or in its column if the row has one pixel.
fn z_stride(tiles: &Tiles<'_>, geometry: &Geometry) -> Option<i64> {
    let place = |y: usize, x: usize| {
        let run = tiles.runs().iter().rfind(|run| run.x <= x)?;
        let first = i64::try_from(tiles.start(y, run)?).ok()?;
        Some(first + run.stride * i64::try_from(x - run.x).ok()?)
    };
    match (geometry.x > 1, geometry.y > 1) {
        (true, _) => Some(place(0, 1)? - place(0, 0)?),
        (false, true) => Some(place(1, 0)? - place(0, 0)?),
        (false, false) => None,
    }
}

fn maps(layout: &OutputLayout<'_>) -> Value {
    let map = |list: &Option<Scalars<'_, i32>>, with_values: bool| {
        let Some(list) = list else { return Value::Null };
        let mut out = json!({ "len": list.len(), "sha256_le_i32": sha256(&list.to_le_bytes()) });
        if with_values {
            out["values"] = list.iter().collect::<Vec<_>>().into();
        }
        out
    };
    json!({
        "y_coordinate_to_linear_tile_id_map": map(&layout.y_coordinate_to_linear_tile_id_map, false),
        "x_coordinate_to_linear_tile_id_map": map(&layout.x_coordinate_to_linear_tile_id_map, false),
        "linearized_tile_byte_offset": map(&layout.linearized_tile_byte_offset, true),
        "x_coordinate_to_local_byte_offset": map(&layout.x_coordinate_to_local_byte_offset, false),
        "y_coordinate_to_local_y_offset": map(&layout.y_coordinate_to_local_y_offset, false),
        "x_coordinate_to_local_y_row_size": map(&layout.x_coordinate_to_local_y_row_size, false),
    })
}
