//! Executables without a package, as the wrapper of early 2019 has them under keys 3 and 4.
//!
//! Their layers have the fields of today up to `numerics`; what follows has other numbers and is not read.

use std::io::{self, Write};

use edgepack_format::darwinn::{ExecutableRef, Layer};
use edgepack_format::row::Rows;
use edgepack_format::tflite::{CompiledOp, ModelRef};
use serde::Serialize;

use crate::formats::darwinn::parts::{Float, sha256};
use crate::readable::sound_rows;
use crate::spelling;
use crate::style::{DIM, NAME, TITLE};
use crate::units::{bytes, count};

/// Fields of a layer that early and later executables have in common.
struct EarlyLayer {
    name: String,
    size: i32,
    dims: [i32; 3],
    numbers: Option<(f32, i32)>,
}

fn layers(rows: &Option<Rows<'_, Layer<'_>>>) -> Vec<EarlyLayer> {
    let tables = rows.iter().flat_map(|rows| rows.tables().iter()).filter_map(Result::ok);
    let layer = |table: edgepack_format::wire::Table<'_>| {
        let name = table.get(Layer::NAME).ok()?.unwrap_or_default();
        let dims = [Layer::Y_DIM, Layer::X_DIM, Layer::Z_DIM].map(|slot| table.get(slot).unwrap_or_default());
        let numbers = table.get(Layer::NUMERICS).ok()?.map(|row| (row.dequantization_factor, row.zero_point));
        Some(EarlyLayer { name: name.to_string(), size: table.get(Layer::SIZE_BYTES).ok()?, dims, numbers })
    };
    tables.filter_map(layer).collect()
}

/// Bytes of instructions, and the number of chunks.
fn code(executable: &ExecutableRef<'_>) -> (u64, usize) {
    let chunks = sound_rows(&executable.row().instruction_bitstreams);
    let lens = chunks.iter().filter_map(|chunk| Some(chunk.bitstream.as_ref()?.as_slice().len() as u64));
    (lens.fold(0, u64::saturating_add), chunks.len())
}

fn role(key: &str) -> &'static str {
    if key == "3" { "loads parameters" } else { "main" }
}

/// Prints the bare executables of a model.
pub fn print(model: &ModelRef<'_>, out: &mut dyn Write) -> io::Result<()> {
    for (key, executable) in model.operators().iter().flat_map(|op| &op.bare) {
        let len = bytes(executable.bytes().len() as u64);
        writeln!(out, "\n{TITLE}bare executable{TITLE:#}  key {key}, {}, {len}; the wrapper of early 2019", role(key))?;
        let (code, chunks) = code(executable);
        let parameters = bytes(executable.parameters().len() as u64);
        writeln!(out, "  {DIM}{} in {}, {parameters} of parameters{DIM:#}", bytes(code), count(chunks, "chunk"))?;
        let sides = [("input", &executable.row().input_layers), ("output", &executable.row().output_layers)];
        for (side, rows) in sides {
            for EarlyLayer { name, size, dims: [y, x, z], numbers } in layers(rows) {
                let numbers =
                    numbers.map_or("no scale".to_owned(), |(scale, zero)| format!("scale {scale}, zero {zero}"));
                let size = bytes(u64::try_from(size).unwrap_or(0));
                let name = spelling::name(&name);
                writeln!(out, "  {DIM}{side}{DIM:#}  {NAME}{name}{NAME:#}  [{y} x {x} x {z}]  {numbers}  {size}")?;
            }
        }
    }
    Ok(())
}

/// An executable without a package.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct BareSummary {
    /// Key of the wrapper.
    key: &'static str,
    /// `main`, or `loads parameters`.
    role: &'static str,
    /// Bytes of the executable.
    length: usize,
    /// SHA-256 of the executable.
    sha256: String,
    /// Number of chunks of instructions.
    instruction_bitstream_count: usize,
    /// Bytes of instructions in all.
    instruction_bytes_total: u64,
    /// Bytes of parameters.
    parameters_length: usize,
    /// Bytes of the model that it was compiled from.
    serialized_model_length: usize,
    /// Inputs.
    input_layers: Vec<BareLayer>,
    /// Outputs.
    output_layers: Vec<BareLayer>,
}

/// An input or output of such an executable.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct BareLayer {
    /// Name of the layer.
    name: String,
    /// Bytes that the file states.
    size_bytes: i32,
    /// Rows.
    y_dim: i32,
    /// Columns.
    x_dim: i32,
    /// Channels.
    z_dim: i32,
    /// Scale of quantised numbers.
    dequantization_factor: Option<Float>,
    /// Zero point of quantised numbers.
    zero_point: Option<i32>,
}

/// Describes the bare executables of an operator.
pub fn summaries(op: &CompiledOp<'_>) -> Vec<BareSummary> {
    let side = |rows: &Option<Rows<'_, Layer<'_>>>| {
        let layer = |layer: EarlyLayer| {
            let [y_dim, x_dim, z_dim] = layer.dims;
            BareLayer {
                name: layer.name,
                size_bytes: layer.size,
                y_dim,
                x_dim,
                z_dim,
                dequantization_factor: layer.numbers.map(|(scale, _)| scale.into()),
                zero_point: layer.numbers.map(|(_, zero)| zero),
            }
        };
        layers(rows).into_iter().map(layer).collect()
    };
    let one = |(key, executable): &(&'static str, ExecutableRef<'_>)| {
        let row = executable.row();
        let (code, chunks) = code(executable);
        BareSummary {
            key,
            role: role(key),
            length: executable.bytes().len(),
            sha256: sha256(executable.bytes()),
            instruction_bitstream_count: chunks,
            instruction_bytes_total: code,
            parameters_length: executable.parameters().len(),
            serialized_model_length: row.serialized_model.as_ref().map_or(0, |blob| blob.as_slice().len()),
            input_layers: side(&row.input_layers),
            output_layers: side(&row.output_layers),
        }
    };
    op.bare.iter().map(one).collect()
}
