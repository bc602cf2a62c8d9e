//! XNNPACK backend: the parts of a program that its library computes become payloads.
//!
//! [`XnnpackPartitioner`] chooses the parts and [explains](XnnpackPartitioner::explain) what stays; [`XnnpackPreprocess`]
//! writes payloads, whose weights are named data under their digests. [`delegate`] does all of it to the programs of a
//! [`ProgramManager`].
//!
//! - A node of the graph is looked at once: it is a call as the library has it, or there is a reason why not. Partitioner
//!   and preprocessor share that look.
//! - Parts are as few as the order of the program allows.
//! - Batch norms become part of the convolutions they follow; ranges become part of the node before; a permutation is
//!   another name for the same value until a node asks for an order of dimensions, so equal transpositions happen once.
//! - Numbers of 8 bits stay so from the call that quantises to the call that goes back. Rows are quantised at run time once
//!   for all products that read them.
//!
//! Invariant: what the partitioner takes, the preprocessor writes.

mod calibrate;
mod elements;
mod emit;
mod facts;
mod fold;
mod images;
mod movement;
mod op;
mod pads;
mod partition;
mod plan;
mod products;
mod quant;
mod quantise;
mod reason;
mod weights;

pub use calibrate::Bounds;
pub use fold::{FoldBatchNorms, InferSizes, SeparateDequantisations};
pub use pads::QuantizePads;
pub use partition::{Explained, XnnpackPartitioner};
pub use quantise::{Layer, Scheme};
pub use reason::Reason;

use std::collections::BTreeMap;

use edgepack_builder::NamedDataStore;
use edgepack_builder::content::Data;
use edgepack_builder::preprocess::{Preprocess, PreprocessError, Processed, Subgraph};
use edgepack_builder::xnnpack::PayloadBuilder;
use edgepack_format::pte::CompileSpec;

use crate::error::Error;
use crate::graph::ExportedProgram;
use crate::lower::{ByName, ProgramManager};

/// Name of the backend in programs.
pub const BACKEND: &str = "XnnpackBackend";

/// Alignment of weights: what the library's vectors want.
const ALIGNMENT: u64 = 16;

/// Composites that the library computes as one node.
const WHOLE: [&str; 6] = [
    "aten::linear",
    "aten::hardswish",
    "aten::prelu",
    "aten::elu",
    "aten::upsample_bilinear2d.vec",
    "aten::leaky_relu",
];

/// Composite operators that have to stay whole in programs for the partitioner to see them
/// ([`ProgramManager::keep_whole`]).
pub fn whole_operators() -> impl Iterator<Item = &'static str> {
    WHOLE.into_iter().chain(quant::WHOLE)
}

/// Writes payloads.
#[derive(Clone, Debug, Default)]
pub struct XnnpackPreprocess {
    /// Data file that each weight goes to, by tag and name of the weight; without one it stays in the program.
    pub external_weights: ByName<String>,
}

impl<'g> Preprocess<ExportedProgram<'g>> for XnnpackPreprocess {
    fn backend(&self) -> &str {
        BACKEND
    }

    fn preprocess<'d>(
        &self,
        graph: &ExportedProgram<'g>,
        _: &[CompileSpec<'_>],
        store: &mut NamedDataStore<'d>,
    ) -> Result<Data<'d>, PreprocessError> {
        let emit::Emitted { builder, tags } = emit::payload(graph, &self.external_weights)?;
        finish(builder, &tags, store)
    }

    /// Weights of all parts are read together: most parts have one that is much larger than the others.
    fn preprocess_all<'d>(
        &self,
        parts: &[Subgraph<'_, ExportedProgram<'g>>],
        store: &mut NamedDataStore<'d>,
    ) -> Result<Vec<Processed<'d>>, PreprocessError> {
        let mut builders = Vec::with_capacity(parts.len());
        let mut tags = Vec::with_capacity(parts.len());
        for part in parts {
            let emitted = emit::payload(part.graph, &self.external_weights)?;
            builders.push(emitted.builder);
            tags.push(emitted.tags);
        }
        PayloadBuilder::settle(&mut builders)?;
        let each = parts.iter().zip(builders).zip(&tags);
        each.map(|((part, builder), tags)| Ok(part.processed(finish(builder, tags, store)?))).collect()
    }
}

/// Finishes a payload; its weights go into the store.
fn finish<'d>(
    builder: PayloadBuilder,
    tags: &BTreeMap<String, String>,
    store: &mut NamedDataStore<'d>,
) -> Result<Data<'d>, PreprocessError> {
    let built = builder.finish()?;
    for (key, bytes) in built.named {
        store.add(&key, bytes, ALIGNMENT, tags.get(&key).map(String::as_str))?;
    }
    Ok(built.bytes.into())
}

/// Makes the programs of a manager ready to be quantised or delegated: batch norms become part of convolutions, views find
/// their sizes by themselves, padding is quantised with what it surrounds, and each reader of a quantised number takes it back itself.
pub fn prepare(manager: &mut ProgramManager<'_>) -> Result<(), Error> {
    manager.prepare(&[&FoldBatchNorms, &InferSizes, &QuantizePads, &SeparateDequantisations])
}

/// Rounds float weights of every program as a scheme says, and answers with all that could have been, by method.
pub fn quantise(manager: &mut ProgramManager<'_>, scheme: Scheme) -> Result<Vec<(String, Vec<Layer>)>, Error> {
    prepare(manager)?;
    manager.change(|program| quantise::quantise(program, scheme))
}

/// Makes a program of a method that gives, behind its own outputs, the tensors whose ranges [`quantise_static`] asks for,
/// and names them. It is one of the Edge dialect, to be lowered and run on typical inputs.
pub fn watching<'d>(
    manager: &mut ProgramManager<'d>,
    method: &str,
) -> Result<(ExportedProgram<'d>, Vec<String>), Error> {
    prepare(manager)?;
    let program = manager.program(method);
    let program = program.ok_or_else(|| Error::program(format!("method `{method}`"), "there is none of that name"))?;
    Ok(calibrate::watching(program))
}

/// Quantises products, convolutions and what is between them to 8 bits, with the ranges that tensors of each method had.
pub fn quantise_static(
    manager: &mut ProgramManager<'_>,
    ranges: &BTreeMap<String, BTreeMap<String, Bounds>>,
) -> Result<Vec<(String, Vec<Layer>)>, Error> {
    let mut methods: Vec<String> = manager.methods().map(str::to_owned).collect();
    methods.reverse();
    manager.change(|program| {
        let ranges = methods.pop().and_then(|method| ranges.get(&method));
        ranges.map_or(Ok(Vec::new()), |ranges| calibrate::quantise(program, ranges))
    })
}

/// Gives all parts that the library computes to it, in every program of a manager, and says what became of each node, by
/// method. Programs are to be added after [`ProgramManager::keep_whole`] with [`whole_operators`].
pub fn delegate(
    manager: &mut ProgramManager<'_>,
    external_weights: &ByName<String>,
) -> Result<Vec<(String, Vec<Explained>)>, Error> {
    prepare(manager)?;
    let partitioner = XnnpackPartitioner;
    let names: Vec<String> = manager.methods().map(str::to_owned).collect();
    let explain = |name: &String| Some((name.clone(), partitioner.explain(manager.program(name)?)));
    let explained = names.iter().filter_map(explain).collect();
    manager.delegate(&partitioner, &XnnpackPreprocess { external_weights: external_weights.clone() })?;
    Ok(explained)
}
