//! Every archive of the corpus: read, printed, written again.

use std::path::PathBuf;

use edgepack_exir::archive::Archive;
use edgepack_exir::graph::{Dialect, ExportedProgram, Graph, TensorMeta};
use edgepack_exir::json;
use edgepack_format::scalar::ScalarType;

/// The archives of the repository's own corpus and of another one, if there is one.
fn archives() -> Vec<PathBuf> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus");
    let other = std::env::var("EDGEPACK_CORPUS").ok();
    let mut found = Vec::new();
    for corpus in [Some(own.to_owned()), other].into_iter().flatten() {
        let Ok(models) = std::fs::read_dir(format!("{corpus}/pt2")) else { continue };
        for model in models {
            for name in ["model.pt2", "model_raw.pt2"] {
                let path = model.as_ref().unwrap().path().join(name);
                found.extend(path.exists().then_some(path));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no archives in the corpus");
    found
}

#[test]
fn archives_are_read_and_written_again() {
    for path in archives() {
        let bytes = std::fs::read(&path).unwrap();
        let archive = Archive::parse(&bytes).unwrap();
        let document = archive.document("model").unwrap();
        let program = archive.program().unwrap();
        // What the document says is what the graph says.
        let mut again = program.to_document();
        again.verifiers.clone_from(&document.verifiers);
        assert_eq!(normal(&again), normal(&document), "{}", path.display());
        assert!(program.to_string().lines().count() > program.graph.nodes.len());

        let mut written = Vec::new();
        program.save(&mut written).unwrap();
        let reread = Archive::parse(&written).unwrap();
        assert_eq!(reread.document("model").unwrap(), program.to_document());
        let weights = reread.weights("model").unwrap();
        for (name, weight) in program.weights.iter() {
            let other = weights.find(name).unwrap();
            let order = weight.dim_order();
            let (layout, data) = weight.data(&order).unwrap();
            let (other_layout, other_data) = other.data(&order).unwrap();
            assert_eq!((layout, data.to_vec().unwrap()), (other_layout, other_data.to_vec().unwrap()), "{name}");
        }
        assert!(reread.records().iter().all(|record| record.offset % 64 == 0));
        // The same from a file.
        let opened = Archive::open(&path).unwrap();
        assert_eq!(opened.records(), archive.records());
    }
}

/// The document with one spelling where there are several for the same.
fn normal(document: &json::ExportedProgram) -> serde_json::Value {
    let mut value = serde_json::to_value(document).unwrap();
    spell(&mut value);
    value
}

fn spell(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::Array(items) => items.iter_mut().for_each(spell),
        Value::Object(fields) => {
            if let (1, Some(Value::Object(inner))) = (fields.len(), fields.get("as_sym_int"))
                && let Some(number) = inner.get("as_int")
            {
                *fields = serde_json::Map::from_iter([("as_int".to_owned(), number.clone())]);
            }
            fields.values_mut().for_each(spell);
        }
        _ => {}
    }
}

/// Readers ask for example inputs and for the nesting of arguments, even if none was recorded.
#[test]
fn programs_made_from_nothing_have_what_readers_ask_for() {
    let meta = || TensorMeta::contiguous(ScalarType::FLOAT, &[2.into()]);
    let mut graph = Graph::default();
    let (x, y) = (graph.add_input("x", meta()), graph.add_input("y", meta()));
    let sum = graph.call("aten::add.Tensor", [("self", x.into()), ("other", y.into())], meta());
    graph.outputs.push(sum.into());
    let program = ExportedProgram::from_graph(graph, Dialect::Aten);
    let mut written = Vec::new();
    program.save(&mut written).unwrap();
    let archive = Archive::parse(&written).unwrap();
    assert_eq!(archive.record("data/sample_inputs/model.pt").unwrap().len, 0);
    let reread = archive.program().unwrap();
    let (arguments, result) = reread.nesting().unwrap();
    let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap();
    let positional = &arguments[1]["children_spec"][0]["children_spec"];
    assert_eq!(positional.as_array().unwrap().len(), 2);
    assert_eq!(result, r#"[1,{"type":null,"context":null,"children_spec":[]}]"#);
}
