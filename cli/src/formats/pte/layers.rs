//! Methods to compare layer by layer: what files are to be run, what they say about their instructions, and which layer is
//! to blame for a run that disagrees.

use std::collections::HashMap;

use edgepack_executor::{Method, Options, Registry};
use edgepack_exir::lower::MethodOrigins;
use edgepack_format::pte::{DataLocation, ExecutionPlan};
use edgepack_format::xnnpack::Payload;
use edgepack_loader::Program;

use super::inputs::inputs;
use crate::cases::Recorded as Case;
use crate::layers::recorded::Recorded;
use crate::layers::seen::Affine;
use crate::layers::source::{Facts, Running};
use crate::layers::{Bounds, Relation, Report, compare};
use crate::spelling::cut;
use crate::status::Failure;
use crate::value::Value;

/// The content of a file, one side of a comparison.
pub enum Layered {
    /// A program, and the origins of its instructions if it was lowered here.
    Program(Program, Vec<MethodOrigins>),
    /// The bytes of a trace.
    Trace(Vec<u8>),
}

/// A run of a method.
pub struct Run<'r> {
    /// Program that has it.
    pub program: &'r Program,
    /// Origins of its instructions, if it was lowered here.
    pub origins: &'r [MethodOrigins],
    /// Name of the method.
    pub method: &'r str,
    /// Operators.
    pub registry: &'r Registry,
    /// Options of loading.
    pub options: &'r Options,
    /// Inputs of the runs before.
    pub before: Vec<Vec<Value>>,
    /// Inputs.
    pub inputs: Vec<Value>,
}

impl Run<'_> {
    /// Loads the method, with rewrites or without.
    pub fn load(&self, rewrites: bool) -> Result<Running, Failure> {
        let options = Options { no_optimize: !rewrites, ..self.options.clone() };
        Ok(Running {
            method: Method::load(self.program, self.method, self.registry, &options)?,
            before: self.before.clone(),
            inputs: self.inputs.clone(),
            facts: facts(self.program, self.method, self.origins)?,
        })
    }
}

/// Reads what a program says about the instructions of a method.
fn facts(program: &Program, method: &str, origins: &[MethodOrigins]) -> Result<Facts, Failure> {
    let mut facts = Facts::default();
    let origins = origins.iter().find(|origins| origins.method == method);
    for origin in origins.iter().flat_map(|origins| &origins.instructions) {
        if let Some(node) = &origin.node {
            facts.names.insert((0, origin.index), cut(node));
        }
    }
    let view = program.view()?;
    let Some(plan) = view.plan(method) else { return Ok(facts) };
    facts.sources = sources(&plan);
    for (index, delegate) in plan.delegates.clone().unwrap_or_default().iter().enumerate() {
        let delegate = delegate?;
        if delegate.id.as_deref() != Some("XnnpackBackend") {
            continue;
        }
        let Some(place) = delegate.processed else { continue };
        match place.location {
            DataLocation::SEGMENT => nodes(&program.segment(place.index)?, index, program, &mut facts),
            _ => {
                let list = view.program().backend_delegate_data.clone().unwrap_or_default();
                let data = list.get(place.index as usize)?.data;
                nodes(data.as_ref().map_or(&[], |data| data.as_slice()), index, program, &mut facts);
            }
        }
    }
    Ok(facts)
}

/// Lines of the model's source, of the innermost frames.
fn sources(plan: &ExecutionPlan<'_>) -> HashMap<(usize, usize), String> {
    let mut found = HashMap::new();
    let chains = plan.chains.clone().unwrap_or_default();
    for (chain, row) in chains.iter().enumerate().filter_map(|(chain, row)| Some((chain, row.ok()?))) {
        let traces = row.stacktrace.unwrap_or_default();
        for (instruction, trace) in traces.iter().enumerate().filter_map(|(at, trace)| Some((at, trace.ok()?))) {
            let frames = trace.items.unwrap_or_default();
            let Some(Ok(last)) = frames.len().checked_sub(1).map(|last| frames.get(last)) else { continue };
            let (file, name) = (last.filename.unwrap_or_default(), last.name.unwrap_or_default());
            found.insert((chain, instruction), format!("{}:{} in {}", cut(&file), last.lineno, cut(&name)));
        }
    }
    found
}

/// Adds what a payload says of its nodes. A payload that cannot be read is refused when the method is loaded.
fn nodes(payload: &[u8], delegate: usize, program: &Program, facts: &mut Facts) {
    let Ok(payload) = Payload::parse(payload, program.limits()) else { return };
    for (index, node) in (0u32..).zip(payload.nodes()) {
        facts.handles.insert((delegate, index), node.debug_handle);
        let value = node.outputs().next().and_then(|output| payload.value(output.id));
        if let Some((scale, zero_point)) = value.and_then(|value| value.per_tensor()) {
            let affine = Affine { scale: f64::from(scale), zero_point: f64::from(zero_point) };
            facts.affine.insert((delegate, index), affine);
        }
    }
}

/// A search for the layer that is to blame for a run that disagrees.
#[derive(Debug)]
pub struct Blame {
    /// The method with rewrites compared with itself without them.
    pub rewrites: Result<Report, Failure>,
    /// The method without rewrites compared with a trace of another runtime.
    pub trace: Option<Result<Report, Failure>>,
}

/// Searches for the layer that is to blame for the last of these runs of one method.
pub fn blame(
    program: &Program,
    registry: &Registry,
    options: &Options,
    runs: &[&Case],
    trace: Option<Recorded>,
    bounds: Bounds,
) -> Result<Blame, Failure> {
    let Some((last, before)) = runs.split_last() else { return Err(Failure::usage("there is no run")) };
    let meta = program.method_meta(&last.method)?;
    let values = |case: &Case| inputs(&meta, &case.inputs).map_err(Failure::findings);
    let run = Run {
        program,
        origins: &[],
        method: &last.method,
        registry,
        options,
        before: before.iter().map(|case| values(case)).collect::<Result<_, _>>()?,
        inputs: values(last)?,
    };
    let rewrites = run.load(false).and_then(|mut plain| {
        let mut rewritten = run.load(true)?;
        compare(&mut plain, &mut rewritten, Relation::OneProgram, bounds)
    });
    let trace = trace.map(|mut trace| compare(&mut trace, &mut run.load(false)?, Relation::Record, bounds));
    Ok(Blame { rewrites, trace })
}

/// Runs of one method up to one of them, which state is carried through, by method.
pub fn runs_before(cases: &[Case], last: usize) -> Vec<&Case> {
    let Some(one) = cases.get(last) else { return Vec::new() };
    cases[..=last].iter().filter(|case| case.method == one.method).collect()
}
