//! The record of an export (ETRecord): which module of the model every instruction comes from.
//!
//! It is a ZIP with the exported program, whose nodes have a debug handle and the modules around them, and with the handles
//! of every instruction.

use std::collections::HashMap;
use std::path::Path;

use edgepack_exir::archive::records;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::bounds::NameRoom;
use crate::file::name_of;
use crate::session::Session;
use crate::spelling::short;
use crate::status::Failure;

/// Member that every record has.
const IDENTIFIER: &str = "ETRECORD_V0";
/// Member with the handles of instructions, by method.
const HANDLES: &str = "debug_handle_map";
/// Folder of the programs in the Edge dialect, by method; in older records the program itself.
const PROGRAM: &str = "edge_dialect_exported_program";
/// Members next to a program, which belong to it.
const PARTS: [&str; 3] = ["_state_dict", "_constants", "_example_inputs"];
/// Modules around a node that are shown at most, outermost ones first.
const DEPTH: usize = 32;

/// Debug handles of an instruction.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Handles {
    One(u64),
    Several(Vec<u64>),
}

/// A program, as far as it matters here.
#[derive(Deserialize)]
struct Document {
    graph_module: Module,
}

#[derive(Deserialize)]
struct Module {
    graph: Graph,
}

#[derive(Deserialize)]
struct Graph {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    debug_handle: Option<String>,
    nn_module_stack: Option<String>,
}

/// Modules around an instruction, outermost first.
type Modules = Vec<String>;

/// Record of an export.
pub struct ExportRecord {
    handles: HashMap<String, HashMap<String, Handles>>,
    /// Modules around what has a debug handle, by method; those of a record of one program are for every method.
    modules: HashMap<Option<String>, HashMap<u64, Modules>>,
}

impl ExportRecord {
    /// Reads a record.
    pub fn read(path: &Path, session: &mut Session) -> Result<ExportRecord, Failure> {
        let bytes = session.read_filled(path)?;
        Self::parse(&bytes).map_err(|what| Failure::findings(format!("{}: {what}", name_of(path))))
    }

    fn parse(bytes: &[u8]) -> Result<ExportRecord, String> {
        let members = records(bytes).map_err(|error| error.to_string())?;
        if !members.iter().any(|(name, _)| name == IDENTIFIER) {
            return Err(format!("this is not the record of an export: it has no {IDENTIFIER}"));
        }
        let find = |wanted: &str| members.iter().find(|(name, _)| name == wanted).map(|(_, content)| *content);
        let handles = find(HANDLES).ok_or_else(|| format!("it has no {HANDLES}"))?;
        let mut modules = HashMap::new();
        for (name, content) in &members {
            let method = match name.strip_prefix(PROGRAM) {
                Some("") => None,
                Some(rest) if !PARTS.iter().any(|part| rest.ends_with(part)) => rest.strip_prefix('/'),
                _ => continue,
            };
            modules.insert(method.map(str::to_owned), of_nodes(json(name, content)?));
        }
        Ok(ExportRecord { handles: json(HANDLES, handles)?, modules })
    }

    /// Returns the modules around what has a debug handle.
    pub fn by_handle(&self, method: &str) -> Option<&HashMap<u64, Modules>> {
        self.modules.get(&Some(method.to_owned())).or_else(|| self.modules.get(&None))
    }

    /// Returns the modules around the instructions of a method, by chain and instruction. Around one that comes from
    /// several modules, as a delegate may, are those that they have in common.
    pub fn modules(&self, method: &str) -> Result<HashMap<(usize, usize), Modules>, Failure> {
        let (Some(handles), Some(modules)) = (self.handles.get(method), self.by_handle(method)) else {
            return Ok(HashMap::new());
        };
        let instruction = |(index, handles): (&String, &Handles)| {
            let handles = match handles {
                Handles::One(handle) => std::slice::from_ref(handle),
                Handles::Several(handles) => handles,
            };
            let mut found = handles.iter().filter_map(|handle| modules.get(handle));
            let first = found.next()?.clone();
            // Record keeps one chain.
            Some(((0, index.parse().ok()?), found.fold(first, |common, other| in_common(common, other))))
        };
        let (mut found, mut room) = (HashMap::new(), NameRoom::default());
        for (place, modules) in handles.iter().filter_map(instruction) {
            room.take(&modules)?;
            found.insert(place, modules);
        }
        Ok(found)
    }
}

fn json<T: DeserializeOwned>(name: &str, content: &[u8]) -> Result<T, String> {
    serde_json::from_slice(content).map_err(|error| format!("{}: {error}", short(name)))
}

/// Modules around the nodes of a program, by debug handle.
fn of_nodes(program: Document) -> HashMap<u64, Modules> {
    let mut modules: HashMap<u64, Modules> = HashMap::new();
    for Node { metadata } in program.graph_module.graph.nodes {
        let handle = metadata.debug_handle.and_then(|handle| handle.parse().ok());
        let (Some(handle), Some(stack)) = (handle, metadata.nn_module_stack) else { continue };
        let around = read_stack(&stack);
        let around = match modules.remove(&handle) {
            // Nodes of one handle are made of one node of the model.
            Some(known) => in_common(known, &around),
            None => around,
        };
        modules.insert(handle, around);
    }
    modules
}

/// The first modules, as long as both have them.
fn in_common(mut modules: Modules, others: &[String]) -> Modules {
    let same = modules.iter().zip(others).take_while(|(module, other)| module == other).count();
    modules.truncate(same);
    modules
}

/// Reads `key,path,class;key,path,class`, outermost first: `Net`, `blocks.0 Block`, `norm LayerNorm`.
pub fn read_stack(stack: &str) -> Vec<String> {
    let mut above = String::new();
    let module = |entry: &str| {
        let (rest, class) = entry.rsplit_once(',')?;
        let (_, path) = rest.split_once(',')?;
        let class = class.rsplit('.').next().unwrap_or(class);
        let own = path.strip_prefix(&above).unwrap_or(path).trim_start_matches('.');
        let label = if own.is_empty() { class.to_owned() } else { format!("{own} {class}") };
        path.clone_into(&mut above);
        Some(short(&label))
    };
    stack.split(';').take(DEPTH).filter_map(module).collect()
}

#[cfg(test)]
mod tests {
    use edgepack_exir::archive::write_records;

    use super::*;

    const STACK: &str = "L__self__,,__main__.Net;1400,blocks.0,__main__.Block;1401,blocks.0.norm,torch.nn.LayerNorm";

    fn record(handles: &str, program: &str) -> Result<ExportRecord, String> {
        let members: [(&str, &[u8]); 3] = [
            (IDENTIFIER, b""),
            (HANDLES, handles.as_bytes()),
            ("edge_dialect_exported_program/forward", program.as_bytes()),
        ];
        ExportRecord::parse(&write_records(members).unwrap())
    }

    fn program(nodes: &[(&str, &str)]) -> String {
        let node = |(handle, stack): &(&str, &str)| serde_json::json!({ "metadata": { "debug_handle": handle, "nn_module_stack": stack, "torch_fn": "f" } });
        let nodes: Vec<_> = nodes.iter().map(node).collect();
        serde_json::json!({ "graph_module": { "graph": { "nodes": nodes } }, "dialect": "EDGE" }).to_string()
    }

    #[test]
    fn modules_are_named_below_those_around_them() {
        assert_eq!(read_stack(STACK), ["Net", "blocks.0 Block", "norm LayerNorm"]);
        assert_eq!(read_stack(""), [""; 0]);
        assert_eq!(read_stack("a;b,c"), [""; 0]);
    }

    #[test]
    fn instructions_have_the_modules_of_their_handles() {
        let other = STACK.replace("blocks.0.norm", "blocks.0.up").replace("LayerNorm", "Linear");
        let program = program(&[("1", STACK), ("2", &other), ("x", STACK)]);
        let record = record(r#"{"forward": {"0": 1, "3": [1, 2], "4": 9, "x": 1}}"#, &program).unwrap();
        let modules = record.modules("forward").unwrap();
        assert_eq!(modules.len(), 2);
        assert_eq!(modules[&(0, 0)], ["Net", "blocks.0 Block", "norm LayerNorm"]);
        assert_eq!(modules[&(0, 3)], ["Net", "blocks.0 Block"]);
        assert!(record.modules("backward").unwrap().is_empty());
    }

    #[test]
    fn broken_records_are_told() {
        let says = |record: Result<ExportRecord, String>| record.err().unwrap();
        assert!(says(ExportRecord::parse(b"PK")).len() > 5);
        let no_record = write_records([("a", &b""[..])]).unwrap();
        assert!(says(ExportRecord::parse(&no_record)).contains("ETRECORD_V0"));
        assert!(says(record("[]", &program(&[]))).starts_with("debug_handle_map: "));
        assert!(says(record("{}", "{}")).contains("graph_module"));
    }
}
