//! A backend of one's own: it takes sums and products of floats, and its payload is a list of steps with the weights as
//! named data.
//!
//! usage: backend FROM.pt2 TO.pte

use std::process::ExitCode;

use edgepack_builder::NamedDataStore;
use edgepack_builder::content::Data;
use edgepack_builder::preprocess::{Preprocess, PreprocessError};
use edgepack_exir::Error;
use edgepack_exir::archive::Archive;
use edgepack_exir::graph::{ExportedProgram, InputKind, Node, ValueId};
use edgepack_exir::lower::{ByOperator, Options, ProgramManager};
use edgepack_format::pte::CompileSpec;
use edgepack_format::scalar::ScalarType;

/// The operators that the backend computes, each with its code in payloads.
const OPERATORS: [(&str, u8); 2] = [("aten::add.Tensor", 1), ("aten::mul.Tensor", 2)];

fn code(node: &Node) -> Option<u8> {
    OPERATORS.iter().find(|(name, _)| node.calls(name)).map(|(_, code)| *code)
}

/// Export side of the backend.
struct Calculator;

impl<'g> Preprocess<ExportedProgram<'g>> for Calculator {
    fn backend(&self) -> &str {
        "Calculator"
    }

    /// A payload: the number of slots, then a code and three slots for each step, little-endian. Constants are in the
    /// first slots and under their names in the store; inputs follow, then results.
    fn preprocess<'d>(
        &self,
        part: &ExportedProgram<'g>,
        _: &[CompileSpec<'_>],
        store: &mut NamedDataStore<'d>,
    ) -> Result<Data<'d>, PreprocessError> {
        let mut slots: Vec<ValueId> = Vec::new();
        for spec in &part.inputs {
            let Some(value) = spec.arg.value() else { continue };
            if let (Some(name), true) = (spec.kind.tensor(), spec.kind != InputKind::User) {
                let weight = part.weights.find(name).ok_or_else(|| format!("no tensor `{name}`"))?;
                let order: Vec<u8> = (0..).take(weight.sizes().len()).collect();
                store.add(name, weight.data(&order)?.1.to_vec()?, 16, None)?;
            }
            slots.push(value);
        }
        let mut payload = Vec::new();
        for node in &part.graph.nodes {
            let operands = [node.value_arg("self"), node.value_arg("other")];
            let (Some(code), Some(result), [Some(a), Some(b)]) = (code(node), node.result(), operands) else {
                return Err(format!("node `{}` is not a sum or product of two tensors", node.name).into());
            };
            slots.push(result);
            payload.push(code);
            for value in [a, b, result] {
                let slot = slots.iter().position(|slot| *slot == value).ok_or("a value nobody makes")?;
                payload.extend(u16::try_from(slot)?.to_le_bytes());
            }
        }
        let mut whole = u16::try_from(slots.len())?.to_le_bytes().to_vec();
        whole.append(&mut payload);
        Ok(whole.into())
    }
}

fn main() -> ExitCode {
    let mut paths = std::env::args().skip(1);
    let (Some(from), Some(to)) = (paths.next(), paths.next()) else {
        eprintln!("usage: backend FROM.pt2 TO.pte");
        return ExitCode::from(2);
    };
    match lower(&from, &to) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{from}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn lower(from: &str, to: &str) -> Result<(), Error> {
    let mut manager = ProgramManager::new(Options::default());
    manager.add("forward", Archive::open(from)?.program()?)?;
    // A partitioner of one's own would say which parts; this one takes neighbours that a function names.
    let floats: Vec<String> = manager.program("forward").map(names_of_floats).unwrap_or_default();
    let supports = |node: &Node| code(node).is_some() && node.arg("alpha").is_none() && floats.contains(&node.name);
    manager.delegate(&ByOperator { supports, specs: Vec::new() }, &Calculator)?;
    if let Some(program) = manager.program("forward") {
        println!("{program}");
    }
    std::fs::write(to, manager.finish()?.to_bytes()?)?;
    Ok(())
}

/// Names of the nodes that give tensors of single precision.
fn names_of_floats(program: &ExportedProgram<'_>) -> Vec<String> {
    let float = |node: &&Node| {
        let meta = node.result().and_then(|result| program.graph.tensor(result));
        meta.is_some_and(|meta| meta.scalar_type == ScalarType::FLOAT)
    };
    program.graph.nodes.iter().filter(float).map(|node| node.name.clone()).collect()
}
