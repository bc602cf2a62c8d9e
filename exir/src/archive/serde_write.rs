//! Programs in the layout of `executorch.exir.serde`, which knows the Edge dialect and lowered modules.

use std::collections::BTreeMap;
use std::io::Write;

use edgepack_builder::content::Data;
use serde_json::{Map, Value, json};

use super::saved::type_names;
use super::tensors::Weight;
use super::write::{ArchiveWriter, check_wholes};
use crate::error::Error;
use crate::graph::{ExportedProgram, Expr};
use crate::pickle::{self, Described};

impl ExportedProgram<'_> {
    /// Writes the program as a file that `executorch.exir.serde` reads, lowered modules included. Tensors are held in memory
    /// meanwhile.
    pub fn save_serde(&self, out: impl Write) -> Result<(), Error> {
        check_wholes(self)?;
        let mut writer = ArchiveWriter::new(out, "");
        let text = |bytes: Vec<u8>| Data::from(bytes);
        let document =
            serde_json::to_value(self.document(true)).map_err(|error| Error::program("document", error.to_string()))?;
        writer.record("serialized_exported_program.json", &text(spelled(&old(document, self.dialect.name()))))?;
        for (name, tensors) in
            [("serialized_state_dict.pt", &self.weights.state), ("serialized_constants.pt", &self.weights.constants)]
        {
            writer.record(name, &text(saved(tensors)?))?;
        }
        writer.record("serialized_example_inputs.pt", &text(Vec::new()))?;
        writer.record("version", &Data::from(&b"5.4"[..]))?;
        writer.end()?.flush()?;
        Ok(())
    }
}

/// A file of `torch.save` with tensors by name.
fn saved(tensors: &BTreeMap<String, Weight<'_>>) -> Result<Vec<u8>, Error> {
    let mut keys: BTreeMap<&str, usize> = BTreeMap::new();
    let mut storages: Vec<&Weight<'_>> = Vec::new();
    for weight in tensors.values() {
        keys.entry(weight.storage().name()).or_insert_with(|| {
            storages.push(weight);
            storages.len().saturating_sub(1)
        });
    }
    let described = tensors.iter().map(|(name, weight)| {
        let bytes = weight.storage().len();
        let item = weight.scalar_type().size().filter(|_| has_storage(weight)).unwrap_or(1);
        let is_float = weight.scalar_type().is_floating();
        Described {
            name,
            parameter: weight.is_param.then_some(is_float),
            scalar_type: weight.scalar_type(),
            key: keys.get(weight.storage().name()).copied().unwrap_or_default().to_string(),
            count: bytes.checked_div(item as u64).unwrap_or(0),
            offset: weight.offset(),
            sizes: weight.sizes(),
            strides: weight.strides(),
        }
    });
    let code = pickle::dictionary(described, type_names)
        .map_err(|scalar_type| Error::unsupported("tensors", format!("elements of {scalar_type} in a pickle")))?;
    let mut writer = ArchiveWriter::new(Vec::new(), "archive");
    writer.record("data.pkl", &Data::from(code))?;
    writer.record("byteorder", &Data::from(&b"little"[..]))?;
    for (index, weight) in storages.into_iter().enumerate() {
        writer.record(&format!("data/{index}"), &weight.storage().data(0, weight.storage().len()))?;
    }
    writer.record("version", &Data::from(&b"3\n"[..]))?;
    writer.end()
}

fn has_storage(weight: &Weight<'_>) -> bool {
    type_names(weight.scalar_type()).is_some_and(|(storage, _)| !storage.is_empty())
}

/// The document in the words of that format.
fn old(mut document: Value, dialect: &str) -> Value {
    let mut module = document.get_mut("graph_module").map(Value::take).unwrap_or_default();
    if let Some(graph) = module.get_mut("graph") {
        graph_in_old_words(graph);
    }
    keep(&mut module, &["graph", "signature", "module_call_graph"]);
    for call in items(module.get_mut("module_call_graph")) {
        if let Some(signature) = call.get_mut("signature") {
            keep(signature, &["inputs", "outputs", "in_spec", "out_spec"]);
        }
    }
    if let Some(signature) = module.get_mut("signature") {
        words(signature, false);
    }
    for range in
        document.get_mut("range_constraints").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
    {
        for (name, word) in [("min_val", "-Infinity"), ("max_val", "Infinity")] {
            if let Some(end @ Value::Null) = range.get_mut(name) {
                *end = word.into();
            }
        }
    }
    json!({
        "graph_module": module,
        "opset_version": document.get("opset_version").cloned().unwrap_or_else(|| json!({})),
        "range_constraints": document.get("range_constraints").cloned().unwrap_or_else(|| json!({})),
        "schema_version": { "major": 5, "minor": 4 },
        "dialect": "",
        "verifiers": [dialect],
    })
}

fn items(value: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    value.and_then(Value::as_array_mut).into_iter().flatten()
}

/// Leaves only these fields: what reads that format refuses any other.
fn keep(value: &mut Value, names: &[&str]) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, _| names.contains(&name.as_str()));
    }
}

fn graph_in_old_words(graph: &mut Value) {
    keep(
        graph,
        &[
            "inputs",
            "outputs",
            "nodes",
            "tensor_values",
            "sym_int_values",
            "sym_bool_values",
            "is_single_tensor_return",
            "custom_obj_values",
        ],
    );
    for node in items(graph.get_mut("nodes")) {
        if node.get("is_hop_single_tensor_return") == Some(&Value::Bool(false)) {
            // A tuple of one is a list.
            let one = node.pointer("/outputs/0/as_tensor").filter(|_| node.pointer("/outputs/1").is_none()).cloned();
            if let (Some(one), Some(outputs)) = (one, node.get_mut("outputs")) {
                *outputs = json!([{ "as_tensors": [one] }]);
            }
        }
        keep(node, &["name", "target", "inputs", "outputs", "metadata"]);
        for input in items(node.get_mut("inputs")) {
            keep(input, &["name", "arg"]);
            match input.pointer_mut("/arg/as_graph/graph") {
                Some(inner) => graph_in_old_words(inner),
                None => words(input, false),
            }
        }
        if let Some(outputs) = node.get_mut("outputs") {
            words(outputs, false);
        }
    }
    for name in ["inputs", "outputs"] {
        if let Some(arguments) = graph.get_mut(name) {
            words(arguments, false);
        }
    }
    for name in ["tensor_values", "sym_int_values", "sym_bool_values"] {
        for meta in graph.get_mut(name).and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
            words(meta, name == "tensor_values");
        }
    }
}

/// Old words for nothing, for element types, and for formulas.
fn words(value: &mut Value, described: bool) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| words(item, described)),
        Value::Object(fields) => {
            for (name, field) in fields {
                match (name.as_str(), &mut *field) {
                    ("as_none", _) => *field = json!([]),
                    ("as_scalar_type" | "dtype", Value::Number(number)) if described || name == "as_scalar_type" => {
                        if let Some(old) = super::older::old_type(number.as_i64()) {
                            *field = old.into();
                        }
                    }
                    ("expr_str", Value::String(text)) => {
                        if let Ok(formula) = Expr::parse(text) {
                            *text = formula.plain();
                        }
                    }
                    _ => words(field, described),
                }
            }
        }
        _ => {}
    }
}

/// The text of a document, with floats that are not finite as bare words.
fn spelled(document: &Value) -> Vec<u8> {
    let mut text = document.to_string();
    for name in ["as_float", "min_val", "max_val"] {
        for word in ["-Infinity", "Infinity", "NaN"] {
            text = text.replace(&format!("\"{name}\":\"{word}\""), &format!("\"{name}\":{word}"));
        }
    }
    text.into_bytes()
}
