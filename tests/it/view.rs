//! Graphs of every file there is: of every kind, sound or broken.

use std::path::Path;

use edgepack_tests::command::edgepack;
use serde_json::Value;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data");

fn view(file: &str, more: &[&str]) -> (u8, Vec<u8>, String) {
    let args: Vec<&str> = ["view", file, "--limits", "hostile"].iter().chain(more).copied().collect();
    let ran = edgepack(&args, Vec::new(), false);
    (ran.status, ran.stdout, ran.stderr)
}

/// Indices lead to what is there, and lines from nodes that write to those that read.
fn check(graphs: &[Value], file: &str) {
    for (index, graph) in graphs.iter().enumerate() {
        let list = |value: &Value, field: &str| value[field].as_array().cloned().unwrap_or_default();
        let number = |value: &Value| value.as_u64().unwrap_or(u64::MAX) as usize;
        let (nodes, values, modules) = (list(graph, "nodes"), list(graph, "values"), list(graph, "modules"));
        for (at, node) in nodes.iter().enumerate() {
            assert!(list(node, "outputs").iter().all(|value| number(value) < values.len()), "{file}: {node}");
            assert!(list(node, "inputs").iter().all(|input| number(&input[1]) < values.len()), "{file}: {node}");
            assert!(node["module"].is_null() || number(&node["module"]) < modules.len(), "{file}: {node}");
            let inside = list(node, "graphs");
            assert!(inside.iter().all(|inner| number(inner) > index && number(inner) < graphs.len()), "{file}: {at}");
        }
        for edge in list(graph, "edges") {
            let [from, to, value] = [0, 1, 2].map(|part| number(&edge[part]));
            assert!(from < to && to < nodes.len() && value < values.len(), "{file}: {edge}");
            let reads = list(&nodes[to], "inputs").iter().any(|input| number(&input[1]) == value);
            assert!(reads && !list(&nodes[from], "outputs").is_empty(), "{file}: {edge}");
        }
        for (at, module) in modules.iter().enumerate() {
            assert!(module["parent"].is_null() || number(&module["parent"]) < at, "{file}: {module}");
        }
    }
}

#[test]
fn every_file_can_be_viewed() {
    let folders = vec![Path::new(DATA).join("corpus"), Path::new(DATA).join("hostile")];
    let (mut seen, mut drawn, mut marked) = (0, 0, 0);
    for path in edgepack_tests::files_in(folders) {
        let name = path.to_str().expect("a name in UTF-8");
        let (status, document, said) = view(name, &["--json"]);
        let document: Value = serde_json::from_slice(&document).expect("a document");
        assert_eq!(document["schema"], "edgepack/view/1", "{name}");
        seen += 1;
        let Some(graphs) = document["graphs"].as_array() else {
            assert!(status != 0 && !document["error"]["message"].is_null(), "{name}: {status} {said}");
            continue;
        };
        drawn += 1;
        check(graphs, name);
        for finding in document["findings"].as_array().expect("findings") {
            marked += usize::from(!finding["node"].is_null());
        }
        for form in [&["-o", "-"][..], &["--dot"], &["--model-explorer"], &["--memory"]] {
            let (again, text, said) = view(name, form);
            assert_eq!((again, text.is_empty()), (status, false), "{name} {form:?}: {said}");
        }
    }
    assert!(seen > 900 && drawn > 500 && marked > 60, "{seen} files, {drawn} with graphs, {marked} findings at nodes");
}

/// Methods are what `inspect` says they are.
#[test]
fn every_instruction_is_a_node() {
    for file in ["models/classifier_portable.pte", "models/encoder_xnnpack_dynamic.pte", "llm_demo/story.pte"] {
        let path = Path::new(DATA).join("corpus").join(file);
        let name = path.to_str().expect("a name in UTF-8");
        let document = |command: &str| -> Value {
            let ran = edgepack(&[command, name, "--json"], Vec::new(), false);
            serde_json::from_slice(&ran.stdout).expect("a document")
        };
        let (viewed, inspected) = (document("view"), document("inspect"));
        let graphs = viewed["graphs"].as_array().expect("graphs");
        let calls = |graph: &Value| {
            let nodes = graph["nodes"].as_array().expect("nodes");
            nodes.iter().filter(|node| !node["place"].is_null()).count()
        };
        let methods: Vec<usize> = graphs.iter().filter(|graph| graph["parent"].is_null()).map(calls).collect();
        let wanted = inspected["methods"].as_array().expect("methods").iter();
        let wanted: Vec<usize> =
            wanted.map(|method| method["instructions"].as_u64().expect("a number") as usize).collect();
        assert_eq!(methods, wanted, "{file}");
        let inside: usize = graphs.iter().filter(|graph| !graph["parent"].is_null()).map(calls).sum();
        let payloads = inspected["payloads"].as_array().into_iter().flatten();
        let nodes: usize = payloads.map(|payload| payload["nodes"].as_array().map_or(0, Vec::len)).sum();
        assert_eq!(inside, nodes, "{file}");
    }
}
