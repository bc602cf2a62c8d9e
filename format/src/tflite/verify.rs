//! The verifier of models: structure, compiled operators, their packages, and whether both sides agree.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use super::{
    AppendedZip, CompiledOp, CustomOptions, IDENTIFIER, KEYS, Model, ModelRef, OPERATOR, Operator, OperatorCode,
    OptionsError, SubGraph, Tensor, TensorType, VARIABLE_SUFFIX, ZipError,
};
use crate::check::{Checker, Path, StructureRules};
use crate::darwinn::{self, Accept, DataType, Geometry, Layer, PackageRef};
use crate::finding::{Findings, Rule};
use crate::header::identifier;
use crate::limits::Limits;
use crate::room::{self, NoRoom};
use crate::row::{Rows, Table as _};
use crate::rules::tflite as rule;
use crate::wire;

/// Rules that the structural walk reports under.
pub const STRUCTURE: StructureRules = StructureRules {
    malformed: &rule::MALFORMED,
    misaligned: &rule::MISALIGNED,
    text: &rule::TEXT,
    limits: &rule::LIMITS,
};

/// Result of verification.
pub struct Verdict<'a> {
    /// Everything found, in the model and in its packages.
    pub findings: Findings,
    /// The model, as far as it could be read at all.
    pub model: Option<ModelRef<'a>>,
}

/// Verifies a model and the packages in it, under one budget.
pub fn verify<'a>(bytes: &'a [u8], limits: &Limits, accept: Accept) -> Verdict<'a> {
    let mut out = Checker::new(limits, STRUCTURE);
    let model = file(bytes, accept, &mut out);
    Verdict { findings: out.findings, model }
}

fn file<'a>(bytes: &'a [u8], accept: Accept, out: &mut Checker) -> Option<ModelRef<'a>> {
    let found = identifier(bytes).unwrap_or_default();
    if found != IDENTIFIER {
        out.report(&rule::IDENTIFIER, &Path::ROOT, None, format!("the identifier is {}", found.escape_ascii()));
        return None;
    }
    let table = match wire::Table::root(bytes) {
        Ok(table) => table,
        Err(error) => {
            out.unreadable(&Path::ROOT, error);
            return None;
        }
    };
    out.table::<Model<'_>>(table, &Path::ROOT);
    // What cannot be read has been reported by the check.
    let row = Model::decode(table).ok()?;
    if row.version != 3 {
        let message = format!("version {}", row.version);
        out.report(&rule::VERSION, &Path::ROOT.field("version"), Some(table.offset()), message);
    }
    let zip = AppendedZip::find(bytes).unwrap_or_else(|error| {
        match error {
            ZipError::Directory(end) => {
                let message = format!("the end record at {end:#x} does not lead to a directory of members");
                out.report(&rule::ZIP, &Path::ROOT, u32::try_from(end).ok(), message);
            }
            ZipError::Memory(error) => out.no_room(&Path::ROOT, error),
        }
        None
    });
    let mut model = ModelRef { bytes, row, operators: Vec::new(), zip };
    if !out.is_spent()
        && let Err(error) = operators(&mut model, accept, out)
    {
        out.no_room(&Path::ROOT.field("subgraphs"), error);
    }
    Some(model)
}

/// Returns a flag for each operator code: true for those of compiled operators.
fn compiled(model: &Model<'_>) -> room::Result<Vec<bool>> {
    let codes = model.operator_codes.clone().unwrap_or_default();
    let is_ours = |table: wire::Result<wire::Table<'_>>| {
        let name = table.and_then(|table| table.get(OperatorCode::CUSTOM_CODE));
        matches!(name, Ok(Some(name)) if name == OPERATOR)
    };
    room::collect(codes.tables().iter().map(is_ours))
}

fn operators<'a>(model: &mut ModelRef<'a>, accept: Accept, out: &mut Checker) -> room::Result<()> {
    let codes = compiled(&model.row)?;
    let subgraphs = model.row.subgraphs.clone().unwrap_or_default();
    let path = Path::ROOT.field("subgraphs");
    for (subgraph, table) in subgraphs.tables().iter().enumerate() {
        let Ok(table) = table else { continue };
        let Ok(Some(list)) = table.tables(SubGraph::OPERATORS.index) else { continue };
        let tensors = table.get(SubGraph::TENSORS).ok().flatten().unwrap_or_default();
        let (path, mut found) = (path.index(subgraph), Vec::new());
        for (operator, table) in list.iter().enumerate() {
            if out.is_spent() {
                return Ok(());
            }
            let Ok(table) = table else { continue };
            let path = path.field("operators");
            let path = path.index(operator);
            let code = table.get(Operator::OPCODE_INDEX).unwrap_or_default();
            match codes.get(code as usize) {
                None => {
                    let message = format!("code {code} of {}", codes.len());
                    out.report(&rule::OPCODE, &path.field("opcode_index"), Some(table.offset()), message);
                }
                Some(false) => {}
                Some(true) => {
                    let Ok(row) = Operator::decode(table) else { continue };
                    let place = options_place(&table, &row, model.bytes.len());
                    let mut op = CompiledOp {
                        subgraph,
                        operator,
                        row,
                        slot: place.as_ref().and_then(|(slot, _)| *slot),
                        range: place.as_ref().map_or(0..0, |(_, range)| range.clone()),
                        options: None,
                        packages: Vec::new(),
                        bare: Vec::new(),
                        tensors: tensors.clone(),
                    };
                    options(&mut op, model.bytes, accept, &path, out)?;
                    sides(&op, &tensors, &path, out)?;
                    room::push(&mut found, op)?;
                }
            }
        }
        room::extend(&mut model.operators, found)?;
    }
    if model.operators.is_empty() {
        out.report(&rule::NO_OPERATOR, &Path::ROOT, None, format!("no operator is called {OPERATOR}"));
    }
    Ok(())
}

/// Returns the place of the offset to the options, and the range of the options.
fn options_place(table: &wire::Table<'_>, row: &Operator<'_>, len: usize) -> Option<(Option<usize>, Range<usize>)> {
    let inline = table.vector(Operator::CUSTOM_OPTIONS.index, 1).ok().flatten().filter(|vector| !vector.is_empty());
    if let Some(vector) = inline {
        let start = vector.offset() as usize;
        let slot = table.field(Operator::CUSTOM_OPTIONS.index, 4).ok().flatten();
        return Some((slot, start..start.saturating_add(vector.len())));
    }
    let start = usize::try_from(row.large_custom_options_offset).ok()?;
    let end = start.checked_add(usize::try_from(row.large_custom_options_size).ok()?)?;
    (start < end && end <= len).then_some((None, start..end))
}

fn options<'a>(
    op: &mut CompiledOp<'a>,
    bytes: &'a [u8],
    accept: Accept,
    path: &Path<'_>,
    out: &mut Checker,
) -> room::Result<()> {
    let path = path.field("custom_options");
    let format = op.row.custom_options_format;
    if format != 0 {
        out.report(&rule::OPTIONS_FORMAT, &path, None, format!("{format}"));
    }
    let start = op.range.start;
    let blob = bytes.get(op.range.clone()).unwrap_or(&[]);
    let Some(options) = check_options(blob, start as u64, &path, out) else { return Ok(()) };
    if PackageRef::bare(options.package.1).is_some() {
        bare(op, &options, &path, out)?;
        op.options = Some(options);
        return Ok(());
    }
    for (index, (at, package)) in options.packages().enumerate() {
        let base = (start as u64).saturating_add(at as u64);
        let package = match index {
            0 => darwinn::verify::verify_within(package, base, accept, &path.field("package"), out),
            _ => {
                let path = path.field("further");
                let path = path.index(index.saturating_sub(1));
                darwinn::verify::verify_within(package, base, accept, &path, out)
            }
        };
        room::extend(&mut op.packages, package)?;
    }
    op.options = Some(options);
    Ok(())
}

/// Takes what wrappers of early 2019 hold: executables without a package, whose layers have other fields.
fn bare<'a>(
    op: &mut CompiledOp<'a>,
    options: &CustomOptions<'a>,
    path: &Path<'_>,
    out: &mut Checker,
) -> room::Result<()> {
    let message = format!("an executable of {} bytes", options.package.1.len());
    let base = (op.range.start as u64).saturating_add(options.package.0 as u64);
    out.within(base, |out| out.report(&rule::BARE, path, Some(0), message));
    let caching = options.separate.map(|one| ("3", one));
    for (key, one) in [("4", options.package.1)].into_iter().chain(caching) {
        if let Some(executable) = PackageRef::bare(one) {
            room::push(&mut op.bare, (key, executable))?;
        }
    }
    Ok(())
}

/// Verifies custom options that start at `base` of their file, without the packages in them.
pub fn check_options<'a>(blob: &'a [u8], base: u64, path: &Path<'_>, out: &mut Checker) -> Option<CustomOptions<'a>> {
    let options = match CustomOptions::parse(blob) {
        Ok(options) => options,
        Err(error) => {
            let rule: &'static Rule = match error {
                OptionsError::Empty => &rule::OPTIONS,
                OptionsError::Malformed(error) if error.is_memory() => {
                    out.no_room(path, NoRoom { bytes: blob.len() as u64 });
                    return None;
                }
                OptionsError::Malformed(_) => &rule::FLEX,
                OptionsError::NotAMap(_) => &rule::MAP,
                OptionsError::Type { .. } => &rule::VALUE_TYPE,
                OptionsError::NoPackage => &rule::PACKAGE,
                OptionsError::Chips { .. } => &rule::CHIPS,
            };
            out.within(base, |out| out.report(rule, path, Some(0), error.to_string()));
            return None;
        }
    };
    if let Some(further) = options.further.as_ref().map(Vec::len).filter(|further| *further > 0) {
        out.report(&rule::FURTHER, path, None, format!("{further} further packages"));
    }
    if options.separate.is_some() {
        out.report(&rule::SEPARATE, path, None, "key \"3\" is there".to_string());
    }
    if let Some(version) = options.version.filter(|version| *version != 0) {
        out.report(&rule::WRAPPER_VERSION, path, None, format!("{version}"));
    }
    for (key, _) in options.keys.iter().filter(|(key, _)| !KEYS.contains(key)) {
        out.report(&rule::KEY, path, None, format!("key {key:?}"));
    }
    Some(options)
}

/// Compares the operator with the main executable of its package.
fn sides(op: &CompiledOp<'_>, tensors: &Rows<'_, Tensor<'_>>, path: &Path<'_>, out: &mut Checker) -> room::Result<()> {
    let Some(package) = op.packages.first() else { return Ok(()) };
    let Some(main) = package.main().and_then(|index| package.executables().get(index)) else { return Ok(()) };
    let read = |rows: &Option<Rows<'_, Layer<'_>>>| -> room::Result<Vec<Option<(String, SideLayer)>>> {
        let rows = rows.clone().unwrap_or_default();
        room::collect(rows.iter().map(|layer| {
            layer.ok().map(|layer| (String::from(layer.name.as_deref().unwrap_or_default()), layer.into()))
        }))
    };
    let inputs = read(&main.row().input_layers)?;
    let outputs = read(&main.row().output_layers)?;

    let nodes = op.try_inputs()?;
    let at = path.field("inputs");
    if nodes.len() != inputs.len() {
        let message = format!("{} inputs, the executable has {}", nodes.len(), inputs.len());
        out.report(&rule::INPUT_COUNT, &at, None, message);
    }
    for (index, (node, layer)) in nodes.iter().zip(&inputs).enumerate() {
        pair(node, layer.as_ref(), tensors.len(), false, &at.index(index), out)?;
    }

    let nodes = op.try_outputs()?;
    let at = path.field("outputs");
    let is_variable =
        |layer: &Option<(String, SideLayer)>| layer.as_ref().is_some_and(|(name, _)| name.ends_with(VARIABLE_SUFFIX));
    let real = outputs.iter().filter(|layer| !is_variable(layer)).count();
    if real > nodes.len() {
        let message = format!("{} outputs, the executable has {real}", nodes.len());
        out.report(&rule::OUTPUT_COUNT, &at, None, message);
    }
    if let Some(index) = outputs.iter().take(real).position(is_variable) {
        let message = format!("output {index} of the executable is variable, {real} are not");
        out.report(&rule::VARIABLE_ORDER, &at, None, message);
        return Ok(());
    }
    for (index, (node, layer)) in nodes.iter().zip(outputs.iter().take(real)).enumerate() {
        pair(node, layer.as_ref(), tensors.len(), true, &at.index(index), out)?;
    }
    Ok(())
}

/// Properties of a layer that are compared.
struct SideLayer {
    bytes: Option<usize>,
    data_type: DataType,
    is_pixel: bool,
    numerics: Option<(f32, i32)>,
}

impl From<Layer<'_>> for SideLayer {
    fn from(layer: Layer<'_>) -> Self {
        let zero = |stored| layer.data_type.host_zero_point(stored);
        SideLayer {
            // A batch inside the shape is the tensor's first dimension, which is asked about apart.
            bytes: Geometry::of(&layer).ok().and_then(|geometry| geometry.actual_bytes.checked_div(geometry.batches())),
            data_type: layer.data_type,
            is_pixel: layer.y_dim == 1 && layer.x_dim == 1,
            numerics: layer.numerics.as_ref().map(|one| (one.dequantization_factor, zero(one.zero_point))),
        }
    }
}

/// Returns the type of tensors whose numbers are those of a layer; `None` if the runtime takes none for it.
pub fn tensor_type(layer: DataType) -> Option<TensorType> {
    match layer {
        DataType::FIXED_POINT8 => Some(TensorType::UINT8),
        DataType::SIGNED_FIXED_POINT8 => Some(TensorType::INT8),
        DataType::FIXED_POINT16 | DataType::SIGNED_FIXED_POINT16 => Some(TensorType::INT16),
        DataType::SIGNED_FIXED_POINT32 => Some(TensorType::INT32),
        DataType::HALF => Some(TensorType::FLOAT16),
        DataType::SINGLE => Some(TensorType::FLOAT32),
        _ => None,
    }
}

/// Returns whether the runtime accepts a tensor type for a layer.
fn accepts(layer: &SideLayer, tensor: TensorType, is_output: bool) -> bool {
    tensor_type(layer.data_type) == Some(tensor) || is_converted(layer, tensor, is_output)
}

/// Outputs of one pixel that the runtime itself turns into bytes.
fn is_converted(layer: &SideLayer, tensor: TensorType, is_output: bool) -> bool {
    let wide = matches!(layer.data_type, DataType::FIXED_POINT16 | DataType::SINGLE);
    is_output && wide && layer.is_pixel && tensor == TensorType::UINT8
}

fn pair(
    (index, tensor): &(i32, Option<Tensor<'_>>),
    layer: Option<&(String, SideLayer)>,
    tensors: usize,
    is_output: bool,
    path: &Path<'_>,
    out: &mut Checker,
) -> room::Result<()> {
    let Some(tensor) = tensor else {
        out.report(&rule::TENSOR, path, None, format!("tensor {index} of {tensors}"));
        return Ok(());
    };
    let Some((name, layer)) = layer else { return Ok(()) };
    let tensor_name = tensor.name.as_deref().unwrap_or_default();
    if tensor_name != name {
        out.report(&rule::NAME, path, None, format!("{tensor_name:?}, the layer is called {name:?}"));
    }
    if !accepts(layer, tensor.kind, is_output) {
        out.report(&rule::TYPE, path, None, format!("{}, the layer is {}", tensor.kind, layer.data_type));
    } else if let Some(bytes) = layer.bytes
        && !is_converted(layer, tensor.kind, is_output)
    {
        let shape: Vec<i32> = room::collect(tensor.shape.iter().flat_map(|shape| shape.iter()))?;
        let size = layer.data_type.size().unwrap_or(1);
        let product =
            |dims: &[i32]| dims.iter().try_fold(size, |product, dim| product.checked_mul(usize::try_from(*dim).ok()?));
        let inner = shape.get(1..).and_then(product);
        if product(&shape) != Some(bytes) && inner != Some(bytes) {
            let message = format!("{} elements of {size} bytes, the layer has {bytes} bytes", dims(&shape));
            out.report(&rule::BYTES, path, None, message);
        }
    }
    numbers(tensor, layer, path, out);
    Ok(())
}

fn dims(shape: &[i32]) -> String {
    let dims: Vec<String> = shape.iter().map(|dim| format!("{dim}")).collect();
    dims.join(" x ")
}

fn numbers(tensor: &Tensor<'_>, layer: &SideLayer, path: &Path<'_>, out: &mut Checker) {
    let Some((scale, zero)) = layer.numerics.filter(|_| layer.data_type.is_quantized()) else { return };
    let Some(quantization) = &tensor.quantization else { return };
    let (scales, zeros) = (&quantization.scale, &quantization.zero_point);
    if let Some(found) = scales.as_ref().and_then(|list| list.get(0)).filter(|one| one.to_bits() != scale.to_bits()) {
        out.report(&rule::SCALE, path, None, format!("{found}, that of the layer is {scale}"));
    }
    if let Some(found) = zeros.as_ref().and_then(|list| list.get(0)).filter(|one| *one != i64::from(zero)) {
        let message = format!("{found}, that of the layer is {zero}");
        out.report(&rule::ZERO_POINT, path, None, message);
    }
}
