//! Edge TPU packages, for people: chip, versions, executables, what is cached and what is streamed, inputs and
//! outputs, and what the CPU still has to do.

use std::io::{self, Write};

use edgepack_format::darwinn::{AnyHint, Description, ExecutableRef, Geometry, Layer, PackageRef, Route};
use edgepack_format::limits::{Budget, Limits};

use crate::readable::sound_rows;
use crate::spelling;
use crate::style::{DIM, NAME, SHAPE, TITLE, WARN};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, count, share};

/// Narrow memory of a tile.
const NARROW: u64 = edgepack_format::darwinn::NARROW_MEMORY as u64;
/// Cycles per second at the highest clock.
const CLOCK: u64 = 500_000_000;

/// Prints packages with the place of each.
pub fn print<'p, 'a: 'p>(
    packages: impl Iterator<Item = (usize, &'p PackageRef<'a>)>,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (index, (at, package)) in packages.enumerate() {
        writeln!(out, "\n{TITLE}package {index}{TITLE:#}  {} at {at:#x}", bytes(package.bytes().len() as u64))?;
        print_package(package, out)?;
    }
    Ok(())
}

fn print_package(package: &PackageRef<'_>, out: &mut dyn Write) -> io::Result<()> {
    let row = package.package();
    let compiler = spelling::name(row.compiler_version.as_deref().unwrap_or("unknown"));
    let signed = match row.signature.as_ref().is_some_and(|blob| !blob.as_slice().is_empty()) {
        true => "signed",
        false => "not signed",
    };
    let runtime = row.min_runtime_version;
    let keys = match row.keypair_version {
        0 => String::new(),
        version => format!(", key pair {version}"),
    };
    let chip = match row.virtual_chip_id {
        0 | -1 => String::new(),
        id => format!(", virtual chip {id}"),
    };
    writeln!(out, "  {DIM}runtime {runtime} or later, compiler {compiler}, {signed}{keys}{chip}{DIM:#}")?;
    if package.is_multi_chip() {
        writeln!(out, "  {WARN}for several chips: {}{WARN:#}", count(package.chips().len(), "package"))?;
    }
    for (index, executable) in package.executables().iter().enumerate() {
        let role = match (package.main() == Some(index), package.caching() == Some(index)) {
            (true, _) => "main",
            (_, true) => "loads parameters",
            _ if package.running().any(|one| one == index) => "runs as well",
            _ => "not used",
        };
        print_executable(executable, role, out)?;
    }
    for chip in package.chips() {
        print_package(chip, out)?;
    }
    Ok(())
}

/// Bytes that the hints move: kinds of buffers and how much of each, and the number of actions.
fn moved(executable: &ExecutableRef<'_>) -> ([u64; 4], usize, usize) {
    let (mut sums, mut fences, mut steps) = ([0u64; 4], 0, 0);
    for hint in executable.row().dma_hints.iter().flat_map(|hints| sound_rows(&hints.hints)) {
        steps += 1;
        match hint.any_hint {
            Some(AnyHint::DmaDescriptorHint(row)) => {
                let desc = row.meta.map_or(Description::default(), |meta| meta.desc);
                let size = u64::try_from(row.size_in_bytes).unwrap_or(0);
                if let Some(sum) = usize::try_from(desc.0).ok().and_then(|at| sums.get_mut(at)) {
                    *sum = sum.saturating_add(size);
                }
            }
            Some(AnyHint::FenceHint(_)) => fences += 1,
            _ => {}
        }
    }
    (sums, fences, steps)
}

fn print_executable(executable: &ExecutableRef<'_>, role: &str, out: &mut dyn Write) -> io::Result<()> {
    let row = executable.row();
    let chip = spelling::name(row.chip.as_deref().unwrap_or("unknown chip"));
    writeln!(out, "  {NAME}{}{NAME:#}  {role}, {chip}, {}", row.kind, bytes(executable.bytes().len() as u64))?;
    let mut facts = Columns::new(4, &[]);
    let mut fact = |name: &str, text: String| facts.row([Cell::new(name, DIM), text.into()]);
    let chunks = sound_rows(&row.instruction_bitstreams);
    let code: u64 = chunks.iter().filter_map(|chunk| Some(chunk.bitstream.as_ref()?.as_slice().len() as u64)).sum();
    fact("instructions", format!("{} in {}, {} of 16 bytes", bytes(code), count(chunks.len(), "chunk"), code / 16));
    let held = match role {
        "loads parameters" => "stay on the chip",
        _ => "moved for every inference",
    };
    fact("parameters", format!("{} {held}", bytes(executable.parameters().len() as u64)));
    if row.parameter_caching_token != 0 {
        fact("caching token", format!("{:#018x}", row.parameter_caching_token));
    }
    if let Some(model) = row.serialized_model.as_ref().filter(|blob| !blob.as_slice().is_empty()) {
        fact("model inside", bytes(model.as_slice().len() as u64));
    }
    if row.scratch_size_bytes > 0 {
        fact("scratch", bytes(row.scratch_size_bytes as u64));
    }
    if row.batch_size != 1 {
        fact("batch", row.batch_size.to_string());
    }
    let narrow = u64::try_from(row.used_narrow_memory_bytes_per_tile).unwrap_or(0);
    if narrow > 0 {
        fact(
            "tile memory",
            format!("{} of the {} of each tile, {}", bytes(narrow), bytes(NARROW), share(narrow, NARROW)),
        );
    }
    if let Some(cycles) = executable.estimated_cycles() {
        let micros = cycles.saturating_mul(1_000_000) / CLOCK;
        fact("estimate", format!("{cycles} cycles, {}.{:03} ms at 500 MHz", micros / 1000, micros % 1000));
    }
    let ([outputs, inputs, parameters, scratch], fences, steps) = moved(executable);
    let whole = match row.dma_hints.as_ref().is_some_and(|hints| hints.fully_deterministic) {
        true => "the whole run",
        false => "in part; not over USB",
    };
    let moves = format!(
        "{} ({whole}): {} in, {} out, {} parameters",
        count(steps, "step"),
        bytes(inputs),
        bytes(outputs),
        bytes(parameters)
    );
    let scratch =
        if scratch > 0 { format!(", {} scratch, {}", bytes(scratch), count(fences, "fence")) } else { String::new() };
    fact("transfers", moves + &scratch);
    facts.print(out)?;
    print_layers("inputs", &sound_rows(&row.input_layers), false, out)?;
    print_layers("outputs", &sound_rows(&row.output_layers), true, out)
}

fn print_layers(title: &str, layers: &[Layer<'_>], is_output: bool, out: &mut dyn Write) -> io::Result<()> {
    if layers.is_empty() {
        return Ok(());
    }
    writeln!(out, "    {DIM}{title}{DIM:#}")?;
    let mut columns = Columns::new(6, &[Align::Left, Align::Left, Align::Left, Align::Right, Align::Left]);
    for layer in layers {
        let dims = format!("{}[{} x {} x {}]", layer.data_type, layer.y_dim, layer.x_dim, layer.z_dim);
        let numbers = match &layer.numerics {
            Some(numerics) => {
                let zero = layer.data_type.host_zero_point(numerics.zero_point);
                format!("scale {}, zero {zero}", numerics.dequantization_factor)
            }
            None => "no scale".to_owned(),
        };
        let mut notes = Vec::new();
        if let Ok(geometry) = Geometry::of(layer) {
            if geometry.padded_bytes > geometry.actual_bytes {
                notes.push(format!("{} padding", bytes((geometry.padded_bytes - geometry.actual_bytes) as u64)));
            }
            if geometry.executions > 1 {
                notes.push(format!("{} executions", geometry.executions));
            }
        }
        if is_output {
            match Route::of(layer, &mut Budget::new(&Limits::hostile())) {
                Ok(route) if route.is_plain() => {}
                Ok(Route::Tiles(tiles)) => {
                    let (y, x) = tiles.used();
                    notes.push(format!("{y} x {x} tiles"));
                }
                Ok(Route::Slices(slices)) => notes.push(count(slices.slices.len(), "slice")),
                Ok(Route::Chunks { count, .. }) => notes.push(format!("{count} chunks")),
                Err(_) => notes.push("no layout that can be read".to_owned()),
            }
        }
        columns.row([
            Cell::new(spelling::name(layer.name.as_deref().unwrap_or("?")), NAME),
            Cell::new(dims, SHAPE),
            numbers.into(),
            bytes(u64::try_from(layer.size_bytes).unwrap_or(0)).into(),
            Cell::new(notes.join(", "), DIM),
        ]);
    }
    columns.print(out)
}
