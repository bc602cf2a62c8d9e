//! Several compiled models on one chip: what stays in its memory together, what is sent for every run, and whether
//! segments of a pipeline meet.
//!
//! Invariant: a file is verified before anything of it is compared.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

use edgepack_format::darwinn::{DataType, Layer, PackageRef};
use edgepack_format::limits::Limits;
use edgepack_format::tflite::{ModelRef, Tensor};
use edgepack_format::{FileKind, detect};
use edgepack_loader::Registry;
use serde::Serialize;

use crate::file::name_of;
use crate::formats::darwinn::host::compiled;
use crate::readable::sound_rows;
use crate::session::Session;
use crate::spelling;
use crate::status::{Failure, Status};
use crate::style::{DIM, NAME, TITLE, WARN};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, count};

/// The document of `plan`.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Plan {
    /// True if all parameters that models cache stay on the chip together.
    fits: bool,
    /// True if no input differs from the output that it takes.
    meets: bool,
    /// Bytes of the chip for parameters.
    memory_bytes: u64,
    /// The models, in the order given.
    models: Vec<Planned>,
    /// Models that stay on the chip together, by token.
    sets: Vec<Together>,
}

/// A model of the plan.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Planned {
    /// Bytes of parameters that stay on the chip.
    cached_bytes: u64,
    /// The file.
    file: String,
    /// Inputs that outputs of models before it fill.
    joints: Vec<Joint>,
    /// Bytes that are sent again whenever another set was on the chip before.
    reloaded_bytes: u64,
    /// Bytes of parameters that are sent for every run.
    streamed_bytes: u64,
    /// Caching token in hexadecimal digits.
    token: String,
}

/// Models of one token.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Together {
    /// Bytes of parameters that they cache.
    cached_bytes: u64,
    /// Files of the set.
    files: Vec<String>,
    /// True if that many bytes are on the chip.
    fits: bool,
    /// Caching token in hexadecimal digits.
    token: String,
}

/// An input and the output of the same name of a model before.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Joint {
    /// Differences; empty if both sides meet.
    differences: Vec<String>,
    /// The model with the output.
    from: String,
    /// Name of the tensor.
    name: String,
}

/// One side of a joint.
struct End {
    name: String,
    kind: String,
    shape: Vec<i64>,
    numbers: Option<(f32, i64)>,
}

impl End {
    fn of_tensor(tensor: &Tensor<'_>) -> End {
        let numbers = tensor.quantization.as_ref().and_then(|numbers| {
            let scale = numbers.scale.as_ref()?.get(0)?;
            Some((scale, numbers.zero_point.as_ref().and_then(|list| list.get(0)).unwrap_or(0)))
        });
        End {
            name: tensor.name.as_deref().unwrap_or_default().to_owned(),
            kind: tensor.kind.to_string().to_lowercase(),
            shape: tensor.shape.iter().flat_map(|shape| shape.iter()).map(i64::from).collect(),
            numbers,
        }
    }

    fn of_layer(layer: &Layer<'_>) -> End {
        let kind = match layer.data_type {
            DataType::FIXED_POINT8 => "uint8".to_owned(),
            DataType::SIGNED_FIXED_POINT8 => "int8".to_owned(),
            DataType::FIXED_POINT16 | DataType::SIGNED_FIXED_POINT16 => "int16".to_owned(),
            DataType::SIGNED_FIXED_POINT32 => "int32".to_owned(),
            DataType::HALF => "float16".to_owned(),
            DataType::SINGLE => "float32".to_owned(),
            other => other.to_string().to_lowercase(),
        };
        let numbers = layer.numerics.as_ref().filter(|_| layer.data_type.is_quantized()).map(|numbers| {
            (numbers.dequantization_factor, i64::from(layer.data_type.host_zero_point(numbers.zero_point)))
        });
        End {
            name: layer.name.as_deref().unwrap_or_default().to_owned(),
            kind,
            shape: [layer.y_dim, layer.x_dim, layer.z_dim].map(i64::from).to_vec(),
            numbers,
        }
    }

    /// Lists the differences of an input from the output that fills it.
    fn differences(&self, output: &End) -> Vec<String> {
        let mut found = Vec::new();
        // Packages state three dimensions; ones in front do not change where an element is.
        let dims = |end: &End| end.shape.iter().copied().skip_while(|dim| *dim == 1).collect::<Vec<_>>();
        if dims(self) != dims(output) {
            found.push(format!("shape {:?}, the output has {:?}", self.shape, output.shape));
        }
        if self.kind != output.kind {
            found.push(format!("type {}, the output has {}", self.kind, output.kind));
        }
        if let (Some((scale, zero)), Some((other_scale, other_zero))) = (self.numbers, output.numbers) {
            if scale.to_bits() != other_scale.to_bits() {
                found.push(format!("scale {scale}, the output has {other_scale}"));
            }
            if zero != other_zero {
                found.push(format!("zero point {zero}, the output has {other_zero}"));
            }
        }
        found
    }
}

/// Inputs and outputs of a file: those of the model, or of the bare package's main executable.
fn ends(file: &[u8], limits: &Limits) -> Result<[Vec<End>; 2], Failure> {
    if detect(file) == FileKind::TfLite {
        let model = ModelRef::parse(file, limits).map_err(Failure::findings)?;
        let graphs = sound_rows(&model.model().subgraphs);
        let Some(graph) = graphs.first() else { return Ok([Vec::new(), Vec::new()]) };
        let tensors = sound_rows(&graph.tensors);
        let side = |list: &Option<edgepack_format::row::Scalars<'_, i32>>| {
            let found = list.iter().flat_map(|list| list.iter());
            let tensor = |index: i32| tensors.get(usize::try_from(index).ok()?);
            found.filter_map(tensor).map(End::of_tensor).collect::<Vec<_>>()
        };
        return Ok([side(&graph.inputs), side(&graph.outputs)]);
    }
    let package = PackageRef::reopen(file)?;
    let main = package.main().and_then(|index| package.executables().get(index));
    let Some(row) = main.map(|main| main.row()) else { return Ok([Vec::new(), Vec::new()]) };
    let side = |layers: Vec<Layer<'_>>| layers.iter().map(End::of_layer).collect::<Vec<_>>();
    Ok([side(sound_rows(&row.input_layers)), side(sound_rows(&row.output_layers))])
}

/// Says whether models fit the chip together, what is sent, and whether pipeline segments meet.
pub fn plan(files: &[PathBuf], memory: u64, session: &mut Session) -> Result<Status, Failure> {
    let mut registry = Registry::new();
    let mut models = Vec::new();
    let mut outputs: BTreeMap<String, (String, End)> = BTreeMap::new();
    let mut sets: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (index, path) in files.iter().enumerate() {
        let (head, format) = compiled(path, session)?;
        let file = name_of(path);
        let packages = format.packages(&head, &session.limits).len();
        if packages > 1 {
            let message = format!(
                "{file}: a model of one package is wanted here, not of {packages}; `extract --package` takes one out"
            );
            return Err(Failure::usage(message));
        }
        let registration =
            registry.register(&head.bytes).map_err(|error| Failure::cannot_run(format!("{file}: {error}")))?;
        let [into, out] = ends(&head.bytes, &session.limits)?;
        let mut joints = Vec::new();
        for input in &into {
            if let Some((from, output)) = outputs.get(&input.name) {
                let (from, differences) = (from.clone(), input.differences(output));
                joints.push(Joint { differences, from, name: input.name.clone() });
            }
        }
        // Of several outputs of one name the last counts.
        outputs.extend(out.into_iter().map(|end| (end.name.clone(), (file.clone(), end))));
        sets.entry(registration.token()).or_default().push(index);
        models.push(Planned {
            cached_bytes: registration.cached_bytes(),
            file,
            joints,
            reloaded_bytes: registration.cached_bytes(),
            streamed_bytes: registration.streamed_bytes(),
            token: format!("{:#018x}", registration.token()),
        });
    }
    let mut together = Vec::new();
    for (token, members) in &sets {
        // Without a token nothing stays next to another model.
        let alone = members.iter().map(std::slice::from_ref);
        let groups: Vec<&[usize]> = if *token == 0 { alone.collect() } else { vec![members] };
        for group in groups {
            let cached = group.iter().fold(0u64, |sum, index| sum.saturating_add(models[*index].cached_bytes));
            let files = group.iter().map(|index| models[*index].file.clone()).collect();
            together.push(Together {
                cached_bytes: cached,
                files,
                fits: cached <= memory,
                token: format!("{token:#018x}"),
            });
        }
    }
    if let [set] = together.as_slice()
        && set.fits
    {
        models.iter_mut().for_each(|model| model.reloaded_bytes = 0);
    }
    let fits = together.len() == 1 && together.iter().all(|set| set.fits);
    let meets = models.iter().flat_map(|model| &model.joints).all(|joint| joint.differences.is_empty());
    let plan = Plan { fits, meets, memory_bytes: memory, models, sets: together };
    match session.json {
        true => session.document(&plan)?,
        false => print(&plan, session)?,
    }
    Ok(if fits && meets { Status::Fine } else { Status::Findings })
}

fn print(plan: &Plan, session: &mut Session) -> Result<(), Failure> {
    let out = &mut session.out;
    let memory = bytes(plan.memory_bytes);
    for set in &plan.sets {
        let cached = bytes(set.cached_bytes);
        let models = count(set.files.len(), "model");
        match set.fits {
            true => writeln!(out, "{TITLE}{}{TITLE:#}  {models}, {cached} of {memory} cached together", set.token)?,
            false => writeln!(
                out,
                "{TITLE}{}{TITLE:#}  {WARN}{models}, {cached} cached, the chip has {memory}{WARN:#}",
                set.token
            )?,
        }
    }
    let mut columns = Columns::new(2, &[Align::Left, Align::Right, Align::Right, Align::Right]);
    for model in &plan.models {
        columns.row([
            Cell::new(&model.file, NAME),
            format!("{} cached", bytes(model.cached_bytes)).into(),
            format!("{} streamed", bytes(model.streamed_bytes)).into(),
            format!("{} loaded again", bytes(model.reloaded_bytes)).into(),
        ]);
    }
    columns.print(out)?;
    for model in plan.models.iter().filter(|model| !model.joints.is_empty()) {
        let from: BTreeSet<&str> = model.joints.iter().map(|joint| joint.from.as_str()).collect();
        let from = from.into_iter().collect::<Vec<_>>().join(", ");
        writeln!(out, "{NAME}{}{NAME:#}  {DIM}takes from {from}{DIM:#}", model.file)?;
        for joint in &model.joints {
            let name = spelling::name(&joint.name);
            match joint.differences.as_slice() {
                [] => writeln!(out, "  {name}  meets")?,
                differences => writeln!(out, "  {name}  {WARN}{}{WARN:#}", differences.join("; "))?,
            }
        }
    }
    let fits = match plan.fits {
        true => "all stay on the chip together",
        false if plan.sets.len() > 1 => {
            "not together: a model of another set makes the next one load its parameters again"
        }
        false => "not together: more is cached than the chip holds",
    };
    writeln!(out, "{fits}")?;
    Ok(())
}
