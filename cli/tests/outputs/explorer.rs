//! Graphs for Model Explorer: whole by themselves, and read by the package `ai-edge-model-explorer` where Python has it.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use super::*;

/// Reads documents into the classes of the package, which refuse what they do not know, and prints nodes and lines.
const READ: &str = r"
import json, sys
from dacite import Config, from_dict
from model_explorer import graph_builder
for path in sys.argv[1:]:
    nodes = lines = 0
    for graph in from_dict(graph_builder.GraphCollection, json.load(open(path)), Config(strict=True)).graphs:
        nodes += len(graph.nodes)
        lines += sum(len(node.incomingEdges) for node in graph.nodes)
    print(nodes, lines)
";

const FILES: [&str; 7] = [
    "models/classifier_portable.pte",
    "models/encoder_xnnpack_dynamic.pte",
    "llm_demo/story.pte",
    "edgetpu/left.tflite",
    "edgetpu/alone.dwn",
    "pt2/cond/model.pt2",
    "bundled/mlp_two_cases.bpte",
];

fn list<'d>(document: &'d Value, field: &str) -> &'d [Value] {
    document[field].as_array().unwrap_or_else(|| panic!("{field} of {document}"))
}

fn text<'d>(document: &'d Value, field: &str) -> &'d str {
    document[field].as_str().unwrap_or_else(|| panic!("{field} of {document}"))
}

/// Checks a document; the number of its nodes and of its lines.
fn check(document: &Value) -> (usize, usize) {
    let (mut nodes, mut lines) = (0, 0);
    let graphs = list(document, "graphs");
    let names: BTreeSet<&str> = graphs.iter().map(|graph| text(graph, "id")).collect();
    assert!(names.len() == graphs.len() && !text(document, "label").is_empty(), "names of graphs");
    for graph in graphs {
        let ids: BTreeSet<&str> = list(graph, "nodes").iter().map(|node| text(node, "id")).collect();
        assert_eq!(ids.len(), list(graph, "nodes").len(), "ids of nodes");
        for node in list(graph, "nodes") {
            let inputs = list(node, "inputsMetadata").len();
            for edge in list(node, "incomingEdges") {
                let source = list(graph, "nodes").iter().find(|node| node["id"] == edge["sourceNodeId"]);
                let outputs = list(source.expect("a node"), "outputsMetadata").len();
                let index = |field: &str| text(edge, field).parse::<usize>().expect("an index");
                assert!(index("targetNodeInputId") < inputs && index("sourceNodeOutputId") < outputs, "{edge}");
            }
            let inside = node["subgraphIds"].as_array().into_iter().flatten();
            assert!(inside.clone().all(|id| id.as_str().is_some_and(|id| names.contains(id))), "{node}");
            nodes += 1;
            lines += list(node, "incomingEdges").len();
        }
    }
    (nodes, lines)
}

#[test]
fn model_explorer_reads_its_documents() {
    let folder = Folder::new("explorer");
    let mut counts = Vec::new();
    for (index, file) in FILES.iter().enumerate() {
        let (name, out) = (format!("f{index}"), format!("f{index}.json"));
        folder.take(file, &name);
        done(&folder, &["view", &name, "--model-explorer", "-o", &out]);
        let document: Value = serde_json::from_slice(&folder.read(&out)).expect("JSON");
        counts.push(check(&document));
    }
    assert!(counts.iter().all(|(nodes, lines)| *nodes > 2 && *lines > 1), "{counts:?}");
    let python = env::var("EDGEPACK_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python).args(["-c", "import dacite, model_explorer.graph_builder"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED model_explorer_reads_its_documents: Python has no ai-edge-model-explorer");
        return;
    }
    let documents = (0..FILES.len()).map(|index| folder.path(&format!("f{index}.json")));
    let output = Command::new(&python).args(["-c", READ]).args(documents).output().expect("Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    let want: Vec<String> = counts.iter().map(|(nodes, lines)| format!("{nodes} {lines}")).collect();
    assert_eq!(read, want);
}
