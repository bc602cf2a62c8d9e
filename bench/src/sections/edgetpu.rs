//! Compiled Edge TPU models: verifying, linking and relayout compared with copying as many bytes.

use std::hint::black_box;

use edgepack_executor::darwinn::{Addresses, Output, link};
use edgepack_format::darwinn::{AnyLayer, Layer, OutputLayer, OutputLayout, PackageRef};
use edgepack_format::limits::Limits;
use edgepack_format::row::{Rows, Scalars};
use edgepack_format::tflite::ModelRef;

use super::BUDGET;
use crate::clock::{Race, timed};

pub fn run() {
    match std::env::var_os("EDGEPACK_CORPUS").map(std::path::PathBuf::from) {
        None => println!("\nedgetpu: EDGEPACK_CORPUS names no folder, only a made output is measured"),
        Some(folder) => {
            for name in ["deeplab_cityscapes_edgetpu", "movenet_lightning_edgetpu", "split_concat_edgetpu"] {
                let path = folder.join("edgetpu").join(name).with_extension("tflite");
                if let Ok(bytes) = std::fs::read(&path) {
                    model(name, &bytes);
                }
            }
        }
    }
    for channels in [1, 3, 19] {
        segmentation(channels);
    }
}

fn layers<'a>(rows: &Option<Rows<'a, Layer<'a>>>) -> Vec<Layer<'a>> {
    rows.iter().flat_map(|rows| rows.iter().flatten().collect::<Vec<_>>()).collect()
}

/// Somewhere for everything that has an address.
fn addresses(package: &PackageRef<'_>) -> Vec<Addresses> {
    let of = |rows| {
        layers(rows).iter().filter_map(|layer| Some((layer.name.as_deref()?.to_owned(), vec![1 << 33]))).collect()
    };
    let all = package.executables().iter().map(|executable| {
        let row = executable.row();
        let (inputs, outputs) = (of(&row.input_layers), of(&row.output_layers));
        Addresses { parameter: Some(1 << 34), scratch: Some(1 << 35), inputs, outputs }
    });
    all.collect()
}

/// One unit is a kilobyte of the file, of its instructions, or of its outputs.
fn model(name: &str, bytes: &[u8]) {
    let parsed = ModelRef::parse(bytes, &Limits::DEFAULT).expect("a valid model");
    let Some((_, package)) = parsed.packages().next() else { return };
    let addresses = addresses(package);
    let linked = || -> Vec<Vec<Vec<u8>>> {
        let rows = package.executables().iter().zip(&addresses);
        rows.map(|(executable, addresses)| link(executable.row(), addresses).expect("all have one")).collect()
    };
    let code: Vec<u8> = linked().concat().concat();
    let mut race = Race::new(format!("{name}: verify {} bytes, link {}", bytes.len(), code.len()));
    race.lane("copy the file", bytes.len() / 1024, || timed(|| bytes.to_vec()));
    race.lane("verify the file", bytes.len() / 1024, || timed(|| ModelRef::parse(bytes, &Limits::DEFAULT).is_ok()));
    race.lane("copy the instructions", code.len() / 1024, || timed(|| code.clone()));
    race.lane("link the instructions", code.len() / 1024, || timed(linked));
    race.print("ns/KiB", BUDGET);

    let outputs = package.executables().iter().flat_map(|executable| layers(&executable.row().output_layers));
    for layer in outputs.filter(|layer| layer.y_dim > 1) {
        relayout(&format!("{name}: output {}", layer.name.as_deref().unwrap_or_default()), &layer);
    }
}

/// An image in tiles, as compilers cut them: four by four, pixels padded to four elements.
fn segmentation(channels: i32) {
    const EDGE: i32 = 513;
    const TILE: i32 = 129;
    let pixel = (channels + 3) / 4 * 4;
    let each = |what: &dyn Fn(i32) -> i32| Some(Scalars::from((0..EDGE).map(what).collect::<Vec<i32>>()));
    let extent = |tile: i32| (EDGE - tile * TILE).min(TILE);
    let mut offsets = vec![0];
    for tile in 0..16 {
        offsets.push(offsets[tile as usize] + extent(tile / 4) * extent(tile % 4) * pixel);
    }
    let size_bytes = offsets[16];
    offsets.truncate(16);
    let layout = OutputLayout {
        y_coordinate_to_linear_tile_id_map: each(&|y| y / TILE * 4),
        x_coordinate_to_linear_tile_id_map: each(&|x| x / TILE),
        linearized_tile_byte_offset: Some(offsets.into()),
        x_coordinate_to_local_byte_offset: each(&|x| x % TILE * pixel),
        y_coordinate_to_local_y_offset: each(&|y| y % TILE),
        x_coordinate_to_local_y_row_size: each(&|x| extent(x / TILE) * pixel),
    };
    let layer = Layer {
        name: Some("segmentation".into()),
        size_bytes,
        y_dim: EDGE,
        x_dim: EDGE,
        z_dim: channels,
        any_layer: Some(AnyLayer::OutputLayer(OutputLayer { layout: Some(layout), ..OutputLayer::default() })),
        ..Layer::default()
    };
    relayout(&format!("segmentation of {EDGE} x {EDGE} x {channels}"), &layer);
}

/// One unit is a kilobyte of the tensor.
fn relayout(title: &str, layer: &Layer<'_>) {
    let output = Output::new(layer).expect("a valid layout");
    if output.is_plain() {
        return;
    }
    let device: Vec<u8> = (0..output.device_bytes()).map(|at| at as u8).collect();
    let mut tensor = vec![0; output.tensor_bytes()];
    output.relayout(&device, &mut tensor).expect("the right lengths");
    let mut slow = vec![0; tensor.len()];
    by_element(layer, &device, &mut slow);
    assert!(slow == tensor, "both ways agree");

    let units = tensor.len() / 1024;
    let (from, mut copied) = (tensor.clone(), vec![0; tensor.len()]);
    let mut race = Race::new(title);
    race.lane("copy as many bytes", units, || timed(|| copied.copy_from_slice(black_box(&from))));
    race.lane("relayout", units, || timed(|| output.relayout(&device, &mut tensor)));
    race.lane("element by element", units, || timed(|| by_element(layer, &device, &mut slow)));
    race.print("ns/KiB", BUDGET);
}

/// The loop that the definition of the maps is, for elements of one byte.
fn by_element(layer: &Layer<'_>, device: &[u8], tensor: &mut [u8]) {
    let Some(AnyLayer::OutputLayer(OutputLayer { layout: Some(layout), .. })) = &layer.any_layer else { return };
    let list = |list: &Option<Scalars<'_, i32>>| -> Vec<usize> {
        list.iter().flat_map(|list| list.iter()).map(|number| number as usize).collect()
    };
    let (y_tile, x_tile) =
        (list(&layout.y_coordinate_to_linear_tile_id_map), list(&layout.x_coordinate_to_linear_tile_id_map));
    let (offset, x_local) =
        (list(&layout.linearized_tile_byte_offset), list(&layout.x_coordinate_to_local_byte_offset));
    let (y_local, row) = (list(&layout.y_coordinate_to_local_y_offset), list(&layout.x_coordinate_to_local_y_row_size));
    let (x_dim, z_dim) = (layer.x_dim as usize, layer.z_dim as usize);
    for y in 0..layer.y_dim as usize {
        for x in 0..x_dim {
            for z in 0..z_dim {
                let at = offset[y_tile[y] + x_tile[x]] + y_local[y] * row[x] + x_local[x] + z;
                tensor[(y * x_dim + x) * z_dim + z] = device[at];
            }
        }
    }
}
