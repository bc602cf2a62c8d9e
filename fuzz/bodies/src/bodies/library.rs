//! Library packages, their graphs and parameters: what holding a verified one means.

use std::sync::Arc;

use edgepack_builder::mlf::{LibraryParts, graph_text, params_file};
use edgepack_executor::mlf::{Call, Function, FunctionError, FunctionTable, GraphExecutor, Operand, Signature};
use edgepack_format::limits::Limits;
use edgepack_format::mlf::params;
use edgepack_format::mlf::verify_graph;
use edgepack_format::mlf::{COPY, Graph, NOP};
use edgepack_format::tensor::TensorView;
use edgepack_loader::MemorySource;
use edgepack_loader::mlf::{Archive, Library};

use crate::seeds;

/// Memory of a graph that is run.
const MOST: u64 = 1 << 20;

fn limits() -> Limits {
    let mut limits = Limits::hostile();
    limits.arena_bytes = MOST;
    limits
}

/// See [`BODIES`](super::BODIES).
pub fn library(data: &[u8]) {
    let verdict = edgepack_loader::mlf::verify(data, &limits());
    let said: usize = verdict.findings.iter().map(|finding| finding.to_string().len()).sum();
    assert!(said > 0 || verdict.findings.is_empty());
    let source = Arc::new(MemorySource::new(data));
    let Ok(library) = Library::from_source(source, &limits()) else {
        assert!(verdict.findings.has_errors());
        return;
    };
    for module in library.modules() {
        if let Some(graph) = module.graph() {
            execute(graph);
        }
        module.linked();
        let params = module.params();
        assert!(params.entries.iter().all(|param| param.want_bytes() == Some(param.data.len() as u64)));
    }
    let parts = LibraryParts::of(library.metadata().clone(), &library.members());
    // A path can be longer than archives take when they are written.
    let Ok(written) = parts.finish() else { return };
    let again = Library::from_bytes(written).expect("a written package");
    assert_eq!(again.metadata(), library.metadata());
    assert_eq!(again.members().len(), library.members().len());
    for version in 1..=7 {
        if parts.losses(version).is_empty() {
            parts.to_version(version).expect("nothing is lost");
        }
    }
}

/// See [`BODIES`](super::BODIES).
pub fn parameters(data: &[u8]) {
    let (findings, found) = params::verify(data, &Limits::hostile());
    let Some(found) = found.filter(|_| !findings.has_errors()) else { return };
    let written = params_file(&found.entries).expect("verified parameters");
    // Content that is only unusual is not retained: reserved words, and bytes behind the end.
    if findings.is_empty() {
        assert_eq!(written, data);
    }
    let (findings, again) = params::verify(&written, &Limits::hostile());
    assert!(findings.is_empty(), "{findings}");
    assert_eq!(again.expect("written parameters").entries.len(), found.entries.len());
}

/// See [`BODIES`](super::BODIES).
pub fn graphs(data: &[u8]) {
    let (findings, found) = verify_graph(data, &limits());
    let Some(found) = found.filter(|_| !findings.has_errors()) else { return };
    let written = graph_text(&found);
    let again = Graph::parse(written.as_bytes(), &limits()).expect("a written graph");
    assert_eq!(graph_text(&again), written);
    execute(&found);
}

/// Functions of any name: every byte of a result depends on every byte of the arguments.
struct AnyFunctions;

struct Mix;

fn mix(arguments: &[&[u8]], result: usize, bytes: &mut [u8]) {
    let mut state = 0xcbf2_9ce4_8422_2325u64 ^ result as u64;
    for byte in arguments.iter().flat_map(|argument| *argument) {
        state = (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    for byte in bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (state >> 56) as u8;
    }
}

impl Function for Mix {
    fn call(&mut self, call: &mut Call<'_>) -> Result<(), FunctionError> {
        let arguments = (0..call.argument_count()).map(|index| Ok(call.argument(index)?.bytes));
        let arguments = arguments.collect::<Result<Vec<_>, FunctionError>>()?;
        for (index, result) in call.results().enumerate() {
            mix(&arguments, index, result.bytes);
        }
        Ok(())
    }
}

impl FunctionTable for AnyFunctions {
    fn find(&self, _: &str, _: &Signature<'_>) -> Result<Option<Box<dyn Function>>, FunctionError> {
        Ok(Some(Box::new(Mix)))
    }
}

/// A verified graph gives, on shared storages, what it gives with a memory of its own for every entry; twice.
fn execute(graph: &Graph) {
    let total = graph.entries.iter().try_fold(0u64, |sum, entry| sum.checked_add(entry.bytes()?));
    let reads: usize = graph.nodes.iter().map(|node| node.inputs.len()).sum();
    // One large entry may be read by thousands of nodes.
    if total.is_none_or(|total| total > MOST || total.saturating_mul(reads as u64) > MOST << 6) {
        return;
    }
    let mut executor = GraphExecutor::new(graph, &AnyFunctions, &limits()).expect("a verified graph");
    let mut plain: Vec<Vec<u8>> = graph.entries.iter().map(|entry| vec![0; entry.bytes().unwrap() as usize]).collect();
    for (node, name, entry) in graph.args() {
        let bytes = &mut plain[graph.outputs_of(node).start as usize];
        mix(&[name.as_bytes()], node as usize, bytes);
        let operand = Operand::of(entry).expect("verified bytes");
        // Types that other formats do not have cannot be set from here.
        let Ok(layout) = operand.layout() else { return };
        executor.set_input(name, &TensorView::new(layout, bytes).expect("enough bytes")).expect("a known input");
    }
    for (id, node, call) in graph.calls() {
        let inputs: Vec<usize> = node.inputs.iter().map(|&input| graph.entry_id(input).unwrap() as usize).collect();
        for (index, entry) in graph.outputs_of(id).enumerate() {
            let mut bytes = std::mem::take(&mut plain[entry as usize]);
            let arguments: Vec<&[u8]> = inputs.iter().map(|&input| plain[input].as_slice()).collect();
            match call.function.as_str() {
                NOP | COPY => bytes.copy_from_slice(arguments[0]),
                _ => mix(&arguments, index, &mut bytes),
            }
            plain[entry as usize] = bytes;
        }
    }
    for _ in 0..2 {
        executor.run().expect("every function is there");
        for (index, &head) in graph.heads.iter().enumerate() {
            let Ok(output) = executor.output(index) else { continue };
            assert_eq!(output.data(), plain[graph.entry_id(head).unwrap() as usize], "output {index}");
        }
    }
}

/// Files of the packages among the tests whose path ends like this.
fn files(end: &str) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for path in seeds::corpus(&["tar"]) {
        let bytes = std::fs::read(path).unwrap_or_default();
        let archive = Archive::read(&bytes, &Limits::hostile()).archive;
        found.extend(
            archive
                .members(&bytes)
                .unwrap_or_default()
                .iter()
                .filter(|member| member.path.ends_with(end))
                .map(|one| one.bytes.to_vec()),
        );
    }
    found.sort();
    found.dedup();
    found
}

/// Graphs of the packages among the tests.
pub fn graph_seeds() -> Vec<Vec<u8>> {
    files("/graph.json")
}

/// Parameter files of the packages among the tests.
pub fn params_seeds() -> Vec<Vec<u8>> {
    files(".params")
}
