//! Summary of the inputs and outputs of an executable.

use edgepack_format::darwinn::{Geometry, Layer, OutputLayout, Range, TensorLayout, Tiles, output_of};
use edgepack_format::row::{Scalars, Structs, Union};
use serde::Serialize;

use super::parts::{Float, owned, sha256};
use crate::readable::sound_rows;

/// An input or output.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LayerSummary {
    /// Name of the layer.
    name: Option<String>,
    /// Bytes that the file states.
    size_bytes: i32,
    /// Rows.
    y_dim: i32,
    /// Columns.
    x_dim: i32,
    /// Channels.
    z_dim: i32,
    /// Number of the element type.
    data_type: i16,
    /// Name of the element type.
    data_type_name: Option<&'static str>,
    /// Bytes of an element.
    bytes_per_element: Option<usize>,
    /// Zero point of quantised numbers.
    zero_point: Option<i32>,
    /// Scale of quantised numbers.
    dequantization_factor: Option<Float>,
    /// Times that it is run for an inference.
    execution_count_per_inference: i32,
    /// It stays in the memory of the device.
    cache_on_dram: bool,
    /// Number of the kind of layer; 0 for none.
    any_layer_type: u8,
    /// First and last index of every dimension.
    shape_inclusive_ranges: Option<Vec<[i32; 2]>>,
    /// Facts of an output alone.
    #[serde(flatten)]
    output: Option<OutputSummary>,
    /// Numbers that follow from the others.
    derived: Derived,
}

/// Facts of an output alone.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct OutputSummary {
    /// Tables of where elements are.
    output_layout: Option<Maps>,
    /// Slices of the output.
    output_shape_info: Option<Vec<Slice>>,
}

/// Numbers that follow from the others.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Derived {
    /// Bytes of all elements.
    actual_size_bytes: Option<usize>,
    /// Bytes that are moved.
    padded_size_bytes: Option<usize>,
    /// Tiles of an output.
    #[serde(flatten)]
    tiles: Option<TilesSummary>,
}

/// Tiles of an output.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct TilesSummary {
    /// Elements from a pixel to the next.
    z_stride_elements: Option<i64>,
    /// Tiles that columns are spread over.
    x_tiles_used: Option<usize>,
    /// Tiles that rows are spread over.
    y_tiles_used: Option<usize>,
}

/// A slice of an output.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Slice {
    /// First and last index of every dimension.
    ranges: Option<Vec<[i32; 2]>>,
    /// Elements from one index to the next, of every dimension.
    stride: Option<Vec<i32>>,
    /// First byte of the slice.
    offset_bytes: Option<i32>,
}

/// Tables of where the elements of an output are.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Maps {
    y_coordinate_to_linear_tile_id_map: Option<Map>,
    x_coordinate_to_linear_tile_id_map: Option<Map>,
    linearized_tile_byte_offset: Option<Map>,
    x_coordinate_to_local_byte_offset: Option<Map>,
    y_coordinate_to_local_y_offset: Option<Map>,
    x_coordinate_to_local_y_row_size: Option<Map>,
}

/// A table of numbers.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Map {
    /// Numbers in it.
    len: usize,
    /// SHA-256 of the numbers, as little-endian words of 32 bits.
    sha256_le_i32: String,
    /// The numbers, of the table that is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<i32>>,
}

impl LayerSummary {
    /// Describes a layer.
    pub fn of(layer: &Layer<'_>, is_output: bool) -> LayerSummary {
        let numerics = layer.numerics.as_ref();
        let geometry = Geometry::of(layer).ok();
        let output = output_of(layer).filter(|_| is_output);
        let layout = output.and_then(|output| output.layout.as_ref());
        let tiles = layout.zip(geometry).and_then(|(layout, geometry)| {
            let tiles = Tiles::new(layout, &geometry).ok()?;
            Some((z_stride(&tiles, &geometry), tiles.used()))
        });
        let slices = output.and_then(|output| output.shape_info.as_ref()).map(|info| {
            let offsets = info.slice_offset.clone().unwrap_or_default();
            let slices = sound_rows(&info.slice_layout);
            let slice = |(index, slice): (usize, &TensorLayout<'_>)| Slice {
                ranges: ranges(slice.shape.as_ref().and_then(|shape| shape.dimension.as_ref())),
                stride: slice.stride.as_ref().map(|list| list.iter().collect()),
                offset_bytes: offsets.get(index),
            };
            slices.iter().enumerate().map(slice).collect()
        });
        LayerSummary {
            name: owned(&layer.name),
            size_bytes: layer.size_bytes,
            y_dim: layer.y_dim,
            x_dim: layer.x_dim,
            z_dim: layer.z_dim,
            data_type: layer.data_type.0,
            data_type_name: layer.data_type.name(),
            bytes_per_element: layer.data_type.size(),
            zero_point: numerics.map(|numerics| numerics.zero_point),
            dequantization_factor: numerics.map(|numerics| numerics.dequantization_factor.into()),
            execution_count_per_inference: layer.execution_count_per_inference,
            cache_on_dram: layer.cache_on_dram,
            any_layer_type: layer.any_layer.as_ref().map_or(0, Union::tag),
            shape_inclusive_ranges: ranges(layer.shape.as_ref().and_then(|shape| shape.dimension.as_ref())),
            output: is_output.then(|| OutputSummary { output_layout: layout.map(maps), output_shape_info: slices }),
            derived: Derived {
                actual_size_bytes: geometry.map(|geometry| geometry.actual_bytes),
                padded_size_bytes: geometry.map(|geometry| geometry.padded_bytes),
                tiles: is_output.then(|| TilesSummary {
                    z_stride_elements: tiles.as_ref().and_then(|(stride, _)| *stride),
                    x_tiles_used: tiles.as_ref().map(|(_, (_, x))| *x),
                    y_tiles_used: tiles.as_ref().map(|(_, (y, _))| *y),
                }),
            },
        }
    }
}

fn ranges(list: Option<&Structs<'_, Range>>) -> Option<Vec<[i32; 2]>> {
    list.map(|list| list.iter().map(|range| [range.start, range.end]).collect())
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

fn maps(layout: &OutputLayout<'_>) -> Maps {
    let map = |list: &Option<Scalars<'_, i32>>, with_values: bool| {
        list.as_ref().map(|list| Map {
            len: list.len(),
            sha256_le_i32: sha256(&list.to_le_bytes()),
            values: with_values.then(|| list.iter().collect()),
        })
    };
    Maps {
        y_coordinate_to_linear_tile_id_map: map(&layout.y_coordinate_to_linear_tile_id_map, false),
        x_coordinate_to_linear_tile_id_map: map(&layout.x_coordinate_to_linear_tile_id_map, false),
        linearized_tile_byte_offset: map(&layout.linearized_tile_byte_offset, true),
        x_coordinate_to_local_byte_offset: map(&layout.x_coordinate_to_local_byte_offset, false),
        y_coordinate_to_local_y_offset: map(&layout.y_coordinate_to_local_y_offset, false),
        x_coordinate_to_local_y_row_size: map(&layout.x_coordinate_to_local_y_row_size, false),
    }
}
