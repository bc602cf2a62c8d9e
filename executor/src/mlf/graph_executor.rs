//! The graph executor: memory from storage ids, calls in order.
//!
//! Invariant: the graph obeys every rule, so an entry that is read still holds what its node wrote, results share
//! memory with nothing else of their call, and inputs and parameters survive every run.

use std::collections::HashSet;
use std::fmt;

use edgepack_format::limits::Limits;
use edgepack_format::mlf::{COPY, Graph, NOP, Param, StoragePlan};
use edgepack_format::room;
use edgepack_format::tensor::{TensorView, is_contiguous};
use edgepack_loader::AlignedBytes;
use edgepack_loader::mlf::LibraryModule;

use super::call::{Argument, Call};
use super::error::{Error, FunctionError};
use super::function::{Function, FunctionTable, Signature};
use super::operand::Operand;

/// A graph, ready to run. It owns its memory and can be sent to another thread.
///
/// ```
/// use edgepack_builder::mlf::{GraphBuilder, LibraryParts};
/// use edgepack_executor::mlf::{GraphExecutor, RustFunctions};
/// use edgepack_format::limits::Limits;
/// use edgepack_format::mlf::{DataType, Memory, Module, Targets};
/// use edgepack_format::tensor::TensorView;
/// use edgepack_loader::mlf::Library;
///
/// // A package with one node, made here; usually a compiler made it.
/// let float32: DataType = "float32".parse()?;
/// let mut graph = GraphBuilder::new();
/// let x = graph.argument("x", float32, &[2]);
/// let y = graph.call("tvmgen_double", &[x], &[(float32, &[2])])[0];
/// graph.output(y);
/// let module = Module {
///     name: "model".into(),
///     export_datetime: "2024-01-01 00:00:00Z".into(),
///     executors: vec!["graph".into()],
///     target: Targets::List(vec!["c".into()]),
///     memory: Memory { main: Some(Vec::new()), operators: Some(Vec::new()), ..Memory::default() },
///     ..Module::default()
/// };
/// let mut parts = LibraryParts::new(7);
/// parts.graph_module(module, &graph.finish()?, &[], None)?;
/// let library = Library::from_bytes(parts.finish()?)?;
///
/// // Functions from Rust take the place of the package's compiled code.
/// let functions = RustFunctions::new().with("tvmgen_double", |call| {
///     let x = call.argument(0)?.as_slice::<f32>()?;
///     call.result(0)?.as_slice::<f32>()?.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
///     Ok(())
/// });
/// let mut executor = GraphExecutor::open(&library.module(None)?, &functions, &Limits::default())?;
/// executor.set_input("x", &TensorView::from_slice(&[2], &[1.0f32, 2.0])?.untyped())?;
/// executor.run()?;
/// assert_eq!(executor.output(0)?.typed::<f32>()?.as_slice(), [2.0, 4.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct GraphExecutor {
    operands: Vec<Operand>,
    places: Vec<usize>,
    storages: Vec<AlignedBytes>,
    steps: Vec<Step>,
    args: Vec<Arg>,
    heads: Vec<usize>,
    /// Results of the call that is being made; room for the most of all calls.
    written: Vec<AlignedBytes>,
    has_run: bool,
}

/// A node that calls something.
struct Step {
    node: u32,
    name: String,
    function: String,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    flat: Vec<Operand>,
    /// A `__nop` calls nothing.
    call: Option<Box<dyn Function>>,
}

/// An input or parameter.
struct Arg {
    name: String,
    entry: usize,
    is_set: bool,
    is_param: bool,
}

/// A node that just ran.
pub struct Ran<'a> {
    /// Its number in the graph.
    pub node: u32,
    /// Name of the node.
    pub name: &'a str,
    /// Name of the function that it called.
    pub function: &'a str,
    outputs: &'a [usize],
    executor: View<'a>,
}

#[derive(Clone, Copy)]
struct View<'a> {
    operands: &'a [Operand],
    places: &'a [usize],
    storages: &'a [AlignedBytes],
}

impl<'a> View<'a> {
    fn tensor(self, entry: usize) -> Argument<'a> {
        let operand = &self.operands[entry];
        Argument { operand, bytes: &self.storages[self.places[entry]][..operand.byte_len()] }
    }
}

impl<'a> Ran<'a> {
    /// Returns the tensors that it wrote. Later nodes may write over them.
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = Argument<'a>> {
        let view = self.executor;
        self.outputs.iter().map(move |&entry| view.tensor(entry))
    }
}

/// `__copy`: between devices elsewhere, between storages here.
struct Copy;

impl Function for Copy {
    fn call(&mut self, call: &mut Call<'_>) -> Result<(), FunctionError> {
        let from = call.argument(0)?.bytes;
        call.result(0)?.bytes.copy_from_slice(from);
        Ok(())
    }
}

impl GraphExecutor {
    /// Plans a graph and finds its functions.
    pub fn new(graph: &Graph, functions: &dyn FunctionTable, limits: &Limits) -> Result<Self, Error> {
        let findings = graph.check(limits);
        if findings.has_errors() {
            return Err(Error::Invalid(findings));
        }
        let plan = StoragePlan::of(graph)?;
        let most = limits.arena_bytes.min(limits.memory_bytes);
        let too_much = || Error::Limit { bytes: plan.bytes(), limit: most };
        if plan.bytes() > most {
            return Err(too_much());
        }
        let mut operands = room::with_room(graph.entries.len())?;
        for entry in &graph.entries {
            operands.push(Operand::of(entry).ok_or_else(too_much)?);
        }
        let mut storages = room::with_room(plan.storages.len())?;
        for storage in &plan.storages {
            let zeros = usize::try_from(storage.bytes).ok().and_then(AlignedBytes::zeroed);
            storages.push(zeros.ok_or_else(|| Error::Memory { bytes: plan.bytes() })?);
        }
        let entry = |reference| graph.entry_id(reference).map(|entry| entry as usize);
        let args = graph.args().map(|(node, name, _)| {
            let entry = graph.outputs_of(node).start as usize;
            Arg { name: name.to_owned(), entry, is_set: false, is_param: false }
        });
        let mut executor = GraphExecutor {
            places: room::collect(plan.of_entry.iter().map(|&place| place as usize))?,
            args: room::collect(args)?,
            heads: room::collect(graph.heads.iter().filter_map(|&head| entry(head)))?,
            operands,
            storages,
            steps: Vec::new(),
            written: Vec::new(),
            has_run: false,
        };
        let (mut missing, mut known) = (Vec::new(), HashSet::new());
        for (node, row, call) in graph.calls() {
            let inputs: Vec<usize> = room::collect(row.inputs.iter().filter_map(|&input| entry(input)))?;
            let outputs: Vec<usize> = room::collect(graph.outputs_of(node).map(|entry| entry as usize))?;
            let both = inputs.iter().chain(&outputs).map(|&entry| &executor.operands[entry]);
            let flat: Vec<Operand> = if call.flatten { room::collect(both.map(Operand::flat))? } else { Vec::new() };
            let step = Step {
                node,
                name: row.name.clone(),
                function: call.function.clone(),
                call: None,
                inputs,
                outputs,
                flat,
            };
            match executor.function(&step, functions)? {
                Some(function) => room::push(&mut executor.steps, Step { call: function, ..step })?,
                None if !known.insert(step.function.clone()) => {}
                None => room::push(&mut missing, step.function)?,
            }
        }
        if !missing.is_empty() {
            return Err(Error::Missing(missing));
        }
        let most = executor.steps.iter().map(|step| step.outputs.len()).max().unwrap_or(0);
        room::grow(&mut executor.written, most)?;
        executor.written.resize_with(most, AlignedBytes::default);
        Ok(executor)
    }

    /// Plans the graph of a module and sets its parameters.
    pub fn open(module: &LibraryModule, functions: &dyn FunctionTable, limits: &Limits) -> Result<Self, Error> {
        let graph = module.graph().ok_or_else(|| Error::NoGraph(module.info().name.clone()))?;
        let mut executor = Self::new(graph, functions, limits)?;
        executor.set_params(&module.wanted_params()?)?;
        Ok(executor)
    }

    /// Finds the function that a node calls: `Some(None)` for no operation, `None` if the table does not have it.
    fn function(&self, step: &Step, functions: &dyn FunctionTable) -> Result<Option<Option<Box<dyn Function>>>, Error> {
        match step.function.as_str() {
            NOP => return Ok(Some(None)),
            COPY => return Ok(Some(Some(Box::new(Copy)))),
            _ => {}
        }
        let operand = |place: usize, entry: usize| step.flat.get(place).unwrap_or(&self.operands[entry]);
        let arguments = step.inputs.iter().enumerate().map(|(place, &entry)| operand(place, entry)).collect();
        let results = step.outputs.iter().enumerate();
        let results = results.map(|(place, &entry)| operand(step.inputs.len() + place, entry)).collect();
        let found = functions.find(&step.function, &Signature { arguments, results });
        let found =
            found.map_err(|error| Error::Function { node: step.node, function: step.function.clone(), error })?;
        Ok(found.map(Some))
    }

    /// Inputs in the order of the graph: their names and what they look like. Parameters that were set are none.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &Operand)> {
        self.args.iter().filter(|arg| !arg.is_param).map(|arg| (arg.name.as_str(), &self.operands[arg.entry]))
    }

    /// Outputs: what they look like.
    pub fn output_operands(&self) -> impl ExactSizeIterator<Item = &Operand> {
        self.heads.iter().map(|&entry| &self.operands[entry])
    }

    /// Bytes of all storages.
    pub fn memory_bytes(&self) -> usize {
        self.storages.iter().map(|storage| storage.len()).sum()
    }

    /// Returns the number of calls that a run makes.
    pub fn call_count(&self) -> usize {
        self.steps.iter().filter(|step| step.call.is_some()).count()
    }

    fn set(&mut self, index: usize, have: &Operand, bytes: &[u8], is_param: bool) -> Result<(), Error> {
        let arg = &mut self.args[index];
        let want = &self.operands[arg.entry];
        if have != want || bytes.len() != want.byte_len() {
            return Err(Error::Mismatch { name: arg.name.clone(), have: have.to_string(), want: want.to_string() });
        }
        self.storages[self.places[arg.entry]].as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
        arg.is_set = true;
        arg.is_param |= is_param;
        Ok(())
    }

    /// Sets parameters; every one must be an argument of the graph, of its type and shape.
    pub fn set_params(&mut self, params: &[Param<'_>]) -> Result<(), Error> {
        let by_name: std::collections::HashMap<String, usize> =
            self.args.iter().enumerate().map(|(index, arg)| (arg.name.clone(), index)).collect();
        for param in params {
            let index = *by_name.get(param.name).ok_or_else(|| Error::NoInput(param.name.to_owned()))?;
            let operand = Operand::new(param.data_type, &param.shape);
            let operand = operand.ok_or(edgepack_format::tensor::LayoutError::Overflow)?;
            self.set(index, &operand, param.data, true)?;
        }
        Ok(())
    }

    /// Sets an input by name. Element type and shape must be those of the graph.
    pub fn set_input(&mut self, name: &str, tensor: &TensorView<'_>) -> Result<(), Error> {
        let index = self.args.iter().position(|arg| arg.name == name);
        self.set_tensor(index.ok_or_else(|| Error::NoInput(name.to_owned()))?, tensor)
    }

    /// Sets an input by its place among [`GraphExecutor::inputs`].
    pub fn set_input_at(&mut self, place: usize, tensor: &TensorView<'_>) -> Result<(), Error> {
        let mut inputs = self.args.iter().enumerate().filter(|(_, arg)| !arg.is_param).map(|(index, _)| index);
        self.set_tensor(inputs.nth(place).ok_or_else(|| Error::NoInput(place.to_string()))?, tensor)
    }

    fn set_tensor(&mut self, index: usize, tensor: &TensorView<'_>) -> Result<(), Error> {
        let layout = tensor.layout();
        let arg = &self.args[index];
        let want = &self.operands[arg.entry];
        let same = want.layout().is_ok_and(|want| want == *layout) && is_contiguous(layout.dim_order());
        if !same {
            return Err(Error::Mismatch { name: arg.name.clone(), have: layout.to_string(), want: want.to_string() });
        }
        let want = want.clone();
        self.set(index, &want, tensor.data(), false)
    }

    /// Runs every node.
    pub fn run(&mut self) -> Result<(), Error> {
        self.run_with(&mut |_| {})
    }

    /// Runs every node, and tells about each that made a call when it is done.
    pub fn run_with(&mut self, hook: &mut dyn FnMut(Ran<'_>)) -> Result<(), Error> {
        let unset: Vec<String> = self.args.iter().filter(|arg| !arg.is_set).map(|arg| arg.name.clone()).collect();
        if !unset.is_empty() {
            return Err(Error::Unset(unset));
        }
        self.has_run = false;
        let GraphExecutor { operands, places, storages, steps, written, .. } = self;
        for step in steps {
            let Some(function) = &mut step.call else { continue };
            let result = {
                let lifted = Lifted::new(written, storages, places, &step.outputs);
                function.call(&mut Call {
                    operands,
                    places,
                    storages: lifted.storages,
                    inputs: &step.inputs,
                    outputs: &step.outputs,
                    written: &mut lifted.written[..step.outputs.len()],
                    flat: &step.flat,
                })
            };
            if let Err(error) = result {
                return Err(Error::Function { node: step.node, function: step.function.clone(), error });
            }
            hook(Ran {
                node: step.node,
                name: &step.name,
                function: &step.function,
                outputs: &step.outputs,
                executor: View { operands, places, storages },
            });
        }
        self.has_run = true;
        Ok(())
    }

    /// Returns the number of outputs.
    pub fn output_count(&self) -> usize {
        self.heads.len()
    }

    /// An output of the last run.
    pub fn output(&self, index: usize) -> Result<TensorView<'_>, Error> {
        if !self.has_run {
            return Err(Error::NotRun);
        }
        let entry = *self.heads.get(index).ok_or(Error::NoOutput(index))?;
        let view = View { operands: &self.operands, places: &self.places, storages: &self.storages };
        let Argument { operand, bytes } = view.tensor(entry);
        Ok(TensorView::new(operand.layout()?, bytes)?)
    }
}

/// Results of a call, taken out of the list of storages while they are written, so that nothing else borrows them.
/// Dropping it puts them back, after a panic too.
struct Lifted<'a> {
    written: &'a mut [AlignedBytes],
    storages: &'a mut [AlignedBytes],
    places: &'a [usize],
    outputs: &'a [usize],
}

impl<'a> Lifted<'a> {
    fn new(
        written: &'a mut [AlignedBytes],
        storages: &'a mut [AlignedBytes],
        places: &'a [usize],
        outputs: &'a [usize],
    ) -> Self {
        let mut lifted = Lifted { written, storages, places, outputs };
        lifted.swap();
        lifted
    }

    fn swap(&mut self) {
        for (slot, &entry) in self.written.iter_mut().zip(self.outputs) {
            std::mem::swap(slot, &mut self.storages[self.places[entry]]);
        }
    }
}

impl Drop for Lifted<'_> {
    fn drop(&mut self) {
        self.swap();
    }
}

impl fmt::Debug for GraphExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GraphExecutor of {} nodes in {} bytes", self.steps.len(), self.memory_bytes())
    }
}
