//! The side of the tools: what a payload means, for `edgepack verify`, `inspect`, `size`, `ops` and `dump`.
//!
//! A command that knows it is `edgepack_cli::run_with(args, io, edgepack::payloads().with(FusedMlpFormat))`.

use edgepack::format::check::{Checker, Path, StructureRules};
use edgepack::format::finding::{Rule, Severity};
use edgepack::format::limits::Budget;
use edgepack::format::payload::{Description, Node, Payload, PayloadFormat, Place, Value, Weight};
use edgepack::format::pte::KernelTypes;
use edgepack::format::row::{Table, TableDesc};
use edgepack::format::wire;

use super::export::BACKEND;
use super::payload::{Block, Layer};

/// Declares a rule that payloads are refused for.
const fn rule(id: &'static str, title: &'static str, explanation: &'static str) -> Rule {
    Rule { id, severity: Severity::Error, title, explanation, code: None }
}

static MALFORMED: Rule = rule("MLP-S01", "tables can be read", "What points nowhere was cut off or damaged.");
static ALIGNED: Rule = rule("MLP-S02", "values are aligned", "Flatbuffers align every value to its size.");
static TEXT: Rule = rule("MLP-S03", "keys are text", "Keys of named data are UTF-8.");
static BUDGET: Rule = rule("MLP-S04", "the payload is small enough to be looked at", "Tables may be shared.");
static WIDTHS: Rule = rule(
    "MLP-L01",
    "layers fit each other and the call",
    "A layer takes as many numbers as the one before gives, the first as many as the argument has.",
);
static DATA: Rule = rule("MLP-L02", "named data has the size of its layer", "Weights and biases are 32-bit floats.");

/// The decoder of `FusedMlp` payloads.
pub struct FusedMlpFormat;

/// The type and bytes of the data under a layer's keys.
fn data_of<'l>(layer: &'l Layer<'_>) -> [(&'static str, &'l str, String, u64); 2] {
    let (inputs, outputs) = (u64::from(layer.inputs), u64::from(layer.outputs));
    let size = |count: u64| count.saturating_mul(4);
    [
        ("weight", layer.weight.as_deref().unwrap_or(""), format!("f32[{inputs}, {outputs}]"), size(inputs * outputs)),
        ("bias", layer.bias.as_deref().unwrap_or(""), format!("f32[{outputs}]"), size(outputs)),
    ]
}

/// The numbers in a row of the first argument, as the calls have it.
fn row_of_call(payload: &Payload<'_>) -> Option<u32> {
    match payload.calls.first()?.args.first()?.as_ref()? {
        KernelTypes::Tensor(tensor) => u32::try_from(tensor.sizes.as_ref()?.iter().last()?).ok(),
        _ => None,
    }
}

impl PayloadFormat for FusedMlpFormat {
    fn backend(&self) -> &str {
        BACKEND
    }

    fn rules(&self) -> StructureRules {
        StructureRules { malformed: &MALFORMED, misaligned: &ALIGNED, text: &TEXT, limits: &BUDGET }
    }

    fn verify(&self, payload: &Payload<'_>, path: &Path<'_>, out: &mut Checker) {
        let root = match wire::Table::root(payload.bytes) {
            Ok(root) => root,
            Err(error) => return out.unreadable(path, error),
        };
        out.table::<Block<'_>>(root, path);
        let Ok(Some(layers)) = root.get(Block::LAYERS) else { return };
        let mut before = row_of_call(payload);
        let path = path.field("layers");
        for (index, table) in layers.tables().iter().enumerate() {
            let Ok((table, layer)) = table.and_then(|table| Ok((table, Layer::decode(table)?))) else { continue };
            let path = path.index(index);
            if let Some(before) = before.filter(|before| *before != layer.inputs) {
                let message = format!("{} inputs, {before} numbers come in", layer.inputs);
                out.report(&WIDTHS, &path.field("inputs"), Some(table.offset()), message);
            }
            before = Some(layer.outputs);
            for (field, key, _, want) in data_of(&layer) {
                // What the program does not have is in a data file.
                let Some(have) = payload.named_data.size(key).filter(|have| *have != want) else { continue };
                let message = format!("{key:?} has {have} bytes, the layer asks for {want}");
                out.report(&DATA, &path.field(field), Some(table.offset()), message);
            }
        }
    }

    fn describe(&self, payload: &Payload<'_>, budget: &mut Budget) -> wire::Result<Description> {
        let block = Block::decode(wire::Table::root(payload.bytes)?)?;
        let mut description = Description { about: "fused layers".to_owned(), ..Description::default() };
        let mut name = "x".to_owned();
        for (index, layer) in block.layers.unwrap_or_default().iter().enumerate() {
            budget.charge(1, 0)?;
            let layer = layer?;
            let value = |name: String, width: u32, role: &str| Value {
                name,
                kind: format!("f32[_, {width}]"),
                role: role.to_owned(),
                weight: None,
            };
            if index == 0 {
                description.values.push(value(name.clone(), layer.inputs, "input 0"));
            }
            let out = format!("h{index}");
            description.values.push(value(out.clone(), layer.outputs, ""));
            let [weight, bias] = data_of(&layer);
            let operator = if layer.relu { "linear_relu" } else { "linear" };
            description.nodes.push(Node {
                operator: operator.to_owned(),
                text: format!("{out} = {operator}({name}, {:?}, {:?})", weight.1, bias.1),
                types: vec!["f32".to_owned()],
                fused: None,
                // The input is the first value, and every layer makes the next.
                inputs: vec![(String::new(), index)],
                outputs: vec![index + 1],
            });
            for (_, key, kind, bytes) in [weight, bias] {
                let place = Place::Key(key.to_owned());
                description.weights.push(Weight { name: key.to_owned(), kind, bytes, place });
            }
            name = out;
        }
        if let Some(last) = description.values.last_mut() {
            last.role = "output 0".to_owned();
        }
        Ok(description)
    }

    fn root<'p>(&self, payload: &Payload<'p>) -> Option<(wire::Table<'p>, &'static TableDesc)> {
        Some((wire::Table::root(payload.bytes).ok()?, Block::DESC))
    }
}
