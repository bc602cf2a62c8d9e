//! Inputs and outputs: names, sizes, numbers, and where the elements of outputs are.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::check::{Checker, Path};
use crate::darwinn::{
    Executable, Geometry, GeometryError, Layer, Route, RouteError, SliceError, SliceFault, TileError, output_of,
};
use crate::finding::Rule;
use crate::room;
use crate::row::{Rows, Slot, Table as _};
use crate::rules::darwinn as rule;
use crate::wire::{self, ReadError, ReadErrorKind};

/// Names with padded bytes; `None` if the sizes are wrong.
pub type Sizes = Vec<(String, Option<usize>)>;

/// Verifies both lists.
pub fn check(table: &wire::Table<'_>, path: &Path<'_>, out: &mut Checker) -> (Sizes, Sizes) {
    let inputs = list(table, Executable::INPUT_LAYERS, false, &path.field("input_layers"), out);
    let outputs = list(table, Executable::OUTPUT_LAYERS, true, &path.field("output_layers"), out);
    (inputs, outputs)
}

fn list<'a>(
    table: &wire::Table<'a>,
    slot: Slot<Option<Rows<'a, Layer<'a>>>>,
    is_output: bool,
    path: &Path<'_>,
    out: &mut Checker,
) -> Sizes {
    let Ok(Some(tables)) = table.tables(slot.index) else { return Vec::new() };
    let (mut sizes, mut names) = (Sizes::new(), BTreeSet::new());
    for (index, table) in tables.iter().enumerate() {
        if out.is_spent() {
            break;
        }
        let Ok(table) = table else { continue };
        let (path, at) = (path.index(index), Some(table.offset()));
        let Ok(layer) = Layer::decode(table) else { continue };
        match layer.name.as_deref() {
            None => out.report(&rule::LAYER_NAME, &path.field("name"), at, "absent".to_string()),
            Some(name) if !names.insert(name.to_string()) => {
                let message = format!("another layer is called {name:?}");
                out.report(&rule::LAYER_DUPLICATE, &path.field("name"), at, message);
            }
            Some(_) => {}
        }
        let padded = one(&layer, &table, is_output, &path, out);
        let named = (layer.name.as_deref().unwrap_or_default().to_string(), padded);
        if let Err(error) = room::push(&mut sizes, named) {
            out.no_room(&path, error);
        }
    }
    sizes
}

/// Checks a layer and answers its padded bytes.
fn one(
    layer: &Layer<'_>,
    table: &wire::Table<'_>,
    is_output: bool,
    path: &Path<'_>,
    out: &mut Checker,
) -> Option<usize> {
    let at = Some(table.offset());
    numerics(layer, path, at, out);
    // Decoding takes an absent value for an empty one; here the difference counts.
    let union = table.union(Layer::ANY_LAYER.index).ok().flatten();
    let has_value = matches!(union, Some((_, Some(_))));
    if is_output && (!has_value || output_of(layer).is_none()) {
        let tag = union.map_or(0, |(tag, _)| tag);
        let message = format!("its kind is {tag}, {} value", if has_value { "with a" } else { "without a" });
        out.report(&rule::LAYER_KIND, &path.field("any_layer"), at, message);
    } else if !is_output && !matches!(union, Some((2, Some(_)))) {
        let message = format!("its kind is {}", union.map_or(0, |(tag, _)| tag));
        out.report(&rule::LAYER_UNION, &path.field("any_layer"), at, message);
    }
    let geometry = match Geometry::of(layer) {
        Ok(geometry) => geometry,
        Err(error) => {
            out.report(rule_of(&error), path, at, error.to_string());
            return None;
        }
    };
    if !geometry.execution_padded.is_multiple_of(8) {
        let message = format!("{} bytes", geometry.execution_padded);
        out.report(&rule::LAYER_ALIGNMENT, &path.field("size_bytes"), at, message);
    }
    if is_output && output_of(layer).is_some() {
        places(layer, &geometry, &path.field("any_layer"), at, out);
    }
    Some(geometry.padded_bytes)
}

fn numerics(layer: &Layer<'_>, path: &Path<'_>, at: Option<u32>, out: &mut Checker) {
    match &layer.numerics {
        None => out.report(&rule::LAYER_NUMERICS, &path.field("numerics"), at, "absent".to_string()),
        Some(numerics) => {
            let scale = numerics.dequantization_factor;
            if layer.data_type.is_quantized() && !(scale.is_finite() && scale > 0.0) {
                let path = path.field("numerics");
                out.report(&rule::LAYER_SCALE, &path.field("dequantization_factor"), at, format!("{scale}"));
            }
            let zero = numerics.zero_point;
            if let Some(most) = layer.data_type.highest_zero_point()
                && !(0..=most).contains(&zero)
            {
                let path = path.field("numerics");
                out.report(&rule::LAYER_ZERO, &path.field("zero_point"), at, format!("{zero}, the most is {most}"));
            }
        }
    }
}

fn rule_of(error: &GeometryError) -> &'static Rule {
    match error {
        GeometryError::DataType(_) => &rule::LAYER_TYPE,
        GeometryError::Dimension(_) => &rule::LAYER_DIMENSION,
        GeometryError::Executions(_) => &rule::LAYER_EXECUTIONS,
        GeometryError::Shape { .. } => &rule::LAYER_SHAPE,
        GeometryError::ShapeProduct { .. } => &rule::LAYER_PRODUCT,
        GeometryError::TooLarge => &rule::LAYER_LARGE,
        GeometryError::Size { .. } => &rule::LAYER_SIZE,
    }
}

/// Checks where an output's elements are, by the form that counts: with slices, maps are not looked at.
fn places(layer: &Layer<'_>, geometry: &Geometry, path: &Path<'_>, at: Option<u32>, out: &mut Checker) {
    match Route::of(layer, out.budget()) {
        Ok(Route::Tiles(tiles)) => {
            let overlap = tiles.overlap(geometry, out.budget());
            if let Some(Some(element)) = out.roomy(path, overlap) {
                out.report(&rule::MAP_OVERLAP, path, at, format!("two pixels have element {element}"));
            }
        }
        Ok(_) => {}
        Err(RouteError::Tiles(error)) => tiles(&error, path, at, out),
        Err(RouteError::Slices(error)) => slices(&error, path, at, out),
        Err(error @ RouteError::NoLayout) => out.report(&rule::LAYOUT, path, at, error.to_string()),
        Err(error @ RouteError::Undefined { .. }) => out.report(&rule::UNDEFINED, path, at, error.to_string()),
        // Both have been reported before.
        Err(RouteError::NotAnOutput | RouteError::Geometry(_)) => {}
    }
}

fn tiles(error: &TileError, path: &Path<'_>, at: Option<u32>, out: &mut Checker) {
    if let TileError::Budget(error @ ReadError { kind: ReadErrorKind::Memory, .. }) = error {
        return out.unreadable(path, *error);
    }
    let rule = match error {
        TileError::Length { .. } => &rule::MAP_LENGTH,
        TileError::Tile { .. } => &rule::MAP_TILE,
        TileError::Place { .. } => &rule::MAP_PLACE,
        TileError::Budget(_) => &rule::LIMITS,
    };
    out.report(rule, &path.field("layout"), at, error.to_string());
}

fn slices(error: &SliceError, path: &Path<'_>, at: Option<u32>, out: &mut Checker) {
    if let SliceFault::Budget(error @ ReadError { kind: ReadErrorKind::Memory, .. }) = error.fault {
        return out.unreadable(path, error);
    }
    let rule = match error.fault {
        SliceFault::Rank => &rule::SLICE_RANK,
        SliceFault::Range => &rule::SLICE_RANGE,
        SliceFault::Stride => &rule::SLICE_STRIDE,
        SliceFault::Offset => &rule::SLICE_OFFSET,
        SliceFault::Bounds => &rule::SLICE_BOUNDS,
        SliceFault::Cover => &rule::SLICE_COVER,
        SliceFault::Budget(_) => &rule::LIMITS,
    };
    let path = path.field("shape_info");
    match error.slice {
        Some(index) => out.report(rule, &path.field("slice_layout").index(index), at, error.message.clone()),
        None => out.report(rule, &path, at, error.message.clone()),
    }
}
