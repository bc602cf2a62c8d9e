//! A loaded method: set inputs, run, look at outputs.

use edgepack_format::finding::ErrorCode;
use edgepack_format::pte::{BackendDelegate, BackendDelegateInlineData, DataLocation, ExecutionPlan};
use edgepack_format::scalar::ScalarType;
use edgepack_loader::{Bytes, MergedData, NamedDataMap, Program, ProgramMethod};
use std::collections::HashMap;
use std::sync::Arc;

use crate::account::{filled, grow};
use crate::delegate::{Delegate, DelegateInit};
use crate::error::{LoadError, RunError};
use crate::freeze::{FreezeOptions, Frozen, Refused, freeze};
use crate::graph::Memory;
use crate::input::{Input, Output, ToInput};
use crate::kept::counted;
use crate::kernel::{KernelError, Registry};
use crate::load::{Initial, load, write_initial_values};
use crate::observer::{Observer, Watcher};
use crate::options::Options;
use crate::release::release_unread;
use crate::state::{Dynamism, ResizeError, State, Value, ValueId};
use crate::storage::{Block, Region};
use crate::tensor::{TensorMeta, TensorRef};

/// A method ready to run. It owns its memory and keeps its program alive; it can be sent to another thread.
///
/// State lives in it: what a run leaves in mutable buffers the next run finds. [`Method::reset`] goes back to the
/// state after loading.
pub struct Method {
    pub(crate) program: Program,
    pub(crate) name: String,
    pub(crate) state: State,
    pub(crate) args: Vec<ValueId>,
    inputs: Vec<InputSlot>,
    outputs: Vec<ValueId>,
    pub(crate) frozen: Frozen,
    pub(crate) delegates: Vec<LoadedDelegate>,
    pub(crate) operators: Vec<Arc<str>>,
    initial: Vec<Initial>,
    /// Numbers that instructions write, as they were after loading.
    numbers: Vec<(ValueId, Value)>,
    pub(crate) memory: Memory,
    pub(crate) instruction_limit: u64,
    pool: Option<Arc<rayon::ThreadPool>>,
    /// Bytes that kernels keep.
    packed: usize,
    /// Bytes that they may keep.
    may_pack: u64,
}

pub(crate) struct LoadedDelegate {
    pub id: String,
    pub delegate: Box<dyn Delegate>,
}

struct InputSlot {
    value: ValueId,
    set: bool,
    /// The tensor's own memory, if the program gives it none: a caller's bytes stand in for it during a run.
    lendable: Option<Region>,
}

/// Loading from the loader's handle of a method.
pub trait LoadMethod {
    /// As [`Method::load`].
    fn load(&self, registry: &Registry, options: &Options) -> Result<Method, LoadError>;
}

impl LoadMethod for ProgramMethod {
    fn load(&self, registry: &Registry, options: &Options) -> Result<Method, LoadError> {
        Method::load(self.program(), self.name(), registry, options)
    }
}

impl Method {
    /// Loads a method: resolves operators and delegates, lays out memory, checks and prepares every instruction.
    pub fn load(program: &Program, name: &str, registry: &Registry, options: &Options) -> Result<Method, LoadError> {
        let view = program.view()?;
        let plan = view.plan(name).ok_or_else(|| {
            LoadError::Program(edgepack_loader::Error::NotFound { what: "method", name: name.to_owned() })
        })?;
        let limits = options.limits.unwrap_or(*program.limits());
        let loaded = load(program, &view, &plan, registry, options)?;
        let mut graph = loaded.graph;
        if !options.no_optimize {
            for rewrite in registry.rewrites() {
                rewrite.apply(&mut graph);
            }
            release_unread(&mut graph);
        }
        let pool = options.threads.map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.map(Arc::new).map_err(|error| {
                LoadError::method(ErrorCode::OutOfResources, format!("no pool of {threads} threads: {error}"))
            })
        });
        let pool = pool.transpose()?;
        let delegates = init_delegates(program, &plan, options, pool.as_ref(), loaded.data)?;
        let freeze_options = FreezeOptions { optimize: !options.no_optimize };
        let outputs = |delegate: u32, count: usize| {
            delegates.get(delegate as usize).map_or(0..0, |loaded: &LoadedDelegate| loaded.delegate.outputs(count))
        };
        let mut packed = 0;
        let left = graph.account.left();
        let frozen = counted(&mut packed, left, || freeze(&mut graph, &freeze_options, &outputs))
            .map_err(|refused| refused_at(&plan, &graph.operators, refused))?;

        let numbers = numbers(&graph.state, &graph.variable);
        let lendable = lendable(&graph, &loaded.unplanned)?;
        let mut inputs = Vec::new();
        grow(&mut inputs, graph.inputs.len())?;
        inputs.extend(graph.inputs.iter().map(|&value| InputSlot {
            value,
            set: matches!(graph.state.values[value as usize], Value::Null),
            lendable: match graph.state.values[value as usize] {
                Value::Tensor(tensor) if lendable[value as usize] => Some(graph.state.tensors[tensor as usize].region),
                _ => None,
            },
        }));
        Ok(Method {
            program: program.clone(),
            name: name.to_owned(),
            state: graph.state,
            args: graph.args,
            inputs,
            outputs: graph.outputs,
            frozen,
            delegates,
            operators: graph.operators.into_iter().map(|operator| operator.name).collect(),
            initial: loaded.initial,
            numbers,
            memory: graph.memory,
            instruction_limit: limits.instructions,
            pool,
            packed,
            may_pack: graph.account.left(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The program it is a method of.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Number of inputs.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// Number of outputs.
    pub fn output_count(&self) -> usize {
        self.outputs.len()
    }

    /// What it needs memory for. Kernels may pack weights in the first run: before it the figures can be lower.
    ///
    /// ```
    /// # use edgepack_executor::Method;
    /// # fn demo(method: &Method) {
    /// let memory = method.memory_bytes();
    /// println!("{} bytes of our own, {} of them packed weights", memory.heap(), memory.packed);
    /// println!("{} bytes of constants stay in the file", memory.lent);
    /// # }
    /// ```
    pub fn memory_bytes(&self) -> MemoryBytes {
        let (constants, lent) = self.memory.constant_bytes();
        MemoryBytes {
            planned: self.memory.arenas.iter().map(|arena| arena.len()).sum(),
            private: self.memory.private.iter().map(Block::len).sum(),
            scratch: self.frozen.scratch.len(),
            constants,
            lent,
            packed: self.packed,
            plan: self.state.heap_bytes() + self.frozen.heap_bytes() + size_of_val(self.args.as_slice()),
            program: self.program.flatbuffer_bytes(),
        }
    }

    /// Sets one input; it stays set for later runs. Tensors are copied.
    pub fn set_input(&mut self, index: usize, input: impl ToInput) -> Result<(), RunError> {
        self.bind(index, input.to_input(), false)
    }

    /// Runs with these inputs, all of them, in order. Inputs without planned memory are read where they are.
    pub fn run<I: ToInput>(&mut self, inputs: &[I]) -> Result<Outputs<'_>, RunError> {
        self.run_observed(inputs, None)
    }

    /// The same, watched.
    pub fn run_observed<I: ToInput>(
        &mut self,
        inputs: &[I],
        observer: Option<&mut (dyn Observer + Send + '_)>,
    ) -> Result<Outputs<'_>, RunError> {
        if inputs.len() != self.inputs.len() {
            let message = format!("{} inputs, the method takes {}", inputs.len(), self.inputs.len());
            return Err(input_error(inputs.len().min(self.inputs.len()), ErrorCode::InvalidArgument, message));
        }
        let bound = inputs.iter().enumerate().try_for_each(|(index, input)| self.bind(index, input.to_input(), true));
        let result = bound.and_then(|()| self.execute_observed(observer));
        // Lent bytes are the caller's again, whatever happened.
        for slot in &mut self.inputs {
            if let (Some(own), Value::Tensor(tensor)) = (slot.lendable, self.state.values[slot.value as usize]) {
                let region = &mut self.state.tensors[tensor as usize].region;
                if !region.same_start(&own) {
                    *region = own;
                    slot.set = false;
                }
            }
        }
        result?;
        Ok(self.outputs())
    }

    /// Runs with the inputs set before.
    pub fn execute(&mut self) -> Result<(), RunError> {
        self.execute_observed(None)
    }

    fn execute_observed(&mut self, observer: Watcher<'_, '_>) -> Result<(), RunError> {
        if let Some(index) = self.inputs.iter().position(|slot| !slot.set) {
            return Err(input_error(index, ErrorCode::InvalidArgument, "it was not set".into()));
        }
        for (index, arena) in self.memory.arenas.iter().enumerate() {
            if !arena.acquire() {
                self.memory.arenas[..index].iter().for_each(|arena| arena.release());
                return Err(RunError::Busy { memory_id: index as u32 + 1 });
            }
        }
        let result = match self.pool.clone() {
            Some(pool) => pool.install(|| self.interpret_counted(observer)),
            None => self.interpret_counted(observer),
        };
        self.memory.arenas.iter().for_each(|arena| arena.release());
        result
    }

    fn interpret_counted(&mut self, observer: Watcher<'_, '_>) -> Result<(), RunError> {
        let mut packed = 0;
        let left = self.may_pack.saturating_sub(self.packed as u64);
        let result = counted(&mut packed, left, || self.interpret(observer));
        self.packed += packed;
        result
    }

    /// The outputs of the last run.
    pub fn outputs(&self) -> Outputs<'_> {
        Outputs { method: self }
    }

    /// A tensor of the program by its fully qualified name is found through
    /// [`MethodMeta`](edgepack_loader::MethodMeta); this goes back to the state after loading: planned memory zeroed,
    /// initial values written, numbers as in the file, inputs unset.
    pub fn reset(&mut self) -> Result<(), RunError> {
        for (index, arena) in self.memory.arenas.iter().enumerate() {
            if !arena.acquire() {
                self.memory.arenas[..index].iter().for_each(|arena| arena.release());
                return Err(RunError::Busy { memory_id: index as u32 + 1 });
            }
        }
        for index in 0..self.state.tensors.len() {
            let tensor = &mut self.state.tensors[index];
            tensor.freed = false;
            if !tensor.constant {
                // SAFETY: the method is exclusively borrowed and holds its arenas; no view is alive.
                unsafe { tensor.region.bytes_mut() }.fill(0);
                self.state.restore_bounds(index as u32);
            }
        }
        write_initial_values(&self.state, &self.initial);
        self.memory.arenas.iter().for_each(|arena| arena.release());
        for &(id, value) in &self.numbers {
            self.state.values[id as usize] = value;
        }
        for slot in &mut self.inputs {
            slot.set = matches!(self.state.values[slot.value as usize], Value::Null);
        }
        Ok(())
    }

    /// Sets an input; a tensor without memory of its own may be lent for the current call.
    fn bind(&mut self, index: usize, input: Input<'_>, lend: bool) -> Result<(), RunError> {
        let Some(slot) = self.inputs.get(index) else {
            let message = format!("the method has {}", self.inputs.len());
            return Err(input_error(index, ErrorCode::InvalidArgument, message));
        };
        let (value, lendable) = (slot.value, slot.lendable.filter(|_| lend));
        let fail = |code, message| Err(input_error(index, code, message));
        let traced = |have: String, want: String| {
            fail(ErrorCode::InvalidArgument, format!("{have}, the program was traced with {want}"))
        };
        match (self.state.values[value as usize], input) {
            (Value::Null, Input::Null) => {}
            (Value::Int(want), Input::Int(have)) if want == have => {}
            (Value::Int(want), Input::Int(have)) => return traced(have.to_string(), want.to_string()),
            (Value::Bool(want), Input::Bool(have)) if want == have => {}
            (Value::Bool(want), Input::Bool(have)) => return traced(have.to_string(), want.to_string()),
            (Value::Double(want), Input::Double(have)) if is_traced(have, want) => {}
            (Value::Double(want), Input::Double(have)) => return traced(have.to_string(), want.to_string()),
            (Value::Str(span), Input::Text(have)) => {
                let want = &self.state.text[span.range()];
                if want != have {
                    return traced(format!("{have:?}"), format!("{want:?}"));
                }
            }
            (Value::Tensor(tensor), Input::Tensor { dtype, sizes, dim_order, data }) => {
                let input = TensorInput { dtype, sizes, dim_order, data };
                self.bind_tensor(index, tensor, &input, lendable)?;
            }
            (have, input) => {
                let message = format!("{} given, the program takes a {}", input.kind(), have.kind());
                return fail(ErrorCode::InvalidArgument, message);
            }
        }
        self.inputs[index].set = true;
        Ok(())
    }

    fn bind_tensor(
        &mut self,
        index: usize,
        tensor: u32,
        input: &TensorInput<'_>,
        lendable: Option<Region>,
    ) -> Result<(), RunError> {
        let facts = self.state.tensors[tensor as usize];
        let meta = self.state.meta(&facts);
        let bounds = self.state.bounds(&facts);
        let fail = |code, message| Err(input_error(index, code, message));
        if input.dtype != facts.dtype {
            let message = format!("a {} tensor, the program takes {}", input.dtype, facts.dtype);
            return fail(ErrorCode::InvalidArgument, message);
        }
        let fits = input.sizes.len() == bounds.len()
            && match facts.dynamism {
                Dynamism::Static => input.sizes == bounds,
                Dynamism::Bound => input.sizes.iter().zip(bounds).all(|(size, bound)| size <= bound),
            };
        if !fits {
            let most = if facts.dynamism == Dynamism::Bound { "at most " } else { "" };
            let message = format!("sizes {:?}, the program takes {most}{bounds:?}", input.sizes);
            return fail(ErrorCode::NotSupported, message);
        }
        // Two orders of the same memory: dimensions of one element may stand anywhere.
        if input.dim_order != meta.dim_order && !same_order(input.sizes, input.dim_order, meta.dim_order) {
            let message = format!("dim order {:?}, the program takes {:?}", input.dim_order, meta.dim_order);
            return fail(ErrorCode::InvalidArgument, message);
        }
        let want = input.sizes.iter().product::<usize>() * facts.dtype.size().unwrap_or(0);
        if input.data.len() < want {
            let message = format!("{} bytes of data, the sizes need {want}", input.data.len());
            return fail(ErrorCode::InvalidArgument, message);
        }
        let data = &input.data[..want];
        self.state.resize(tensor, input.sizes).map_err(|error| {
            let message = match error {
                ResizeError::Rank(_) | ResizeError::Static | ResizeError::Bound => "the sizes do not fit".to_owned(),
            };
            input_error(index, ErrorCode::NotSupported, message)
        })?;
        let lent = Region::read_only(data);
        let facts = &mut self.state.tensors[tensor as usize];
        facts.freed = false;
        match lendable {
            Some(_) if lent.is_aligned(facts.dtype.size().unwrap_or(1)) => facts.region = lent,
            own => {
                let region = own.unwrap_or(facts.region);
                facts.region = region;
                // SAFETY: the method is exclusively borrowed, so no view of its memory is alive; `data` is the
                // caller's.
                unsafe { region.copy_from(&lent) };
            }
        }
        Ok(())
    }
}

/// The tensor case of [`Input`].
struct TensorInput<'a> {
    dtype: ScalarType,
    sizes: &'a [usize],
    dim_order: &'a [u8],
    data: &'a [u8],
}

/// Where the memory of a method goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryBytes {
    /// Planned by the exporter.
    pub planned: usize,
    /// Values the program gives no memory, and constants that had to be realigned.
    pub private: usize,
    /// Scratch of kernels and copies.
    pub scratch: usize,
    /// Constants that were read into memory.
    pub constants: usize,
    /// Constants that the source lends: mapped from the file, part of the executable, or bytes of the caller's.
    pub lent: usize,
    /// What kernels keep beside that: packed weights. Plans of one run's shapes are too small to be counted.
    pub packed: usize,
    /// Values and instructions.
    pub plan: usize,
    /// The flatbuffer of the program, which all of its methods share.
    pub program: usize,
}

impl MemoryBytes {
    /// All but what the source lends.
    pub fn heap(&self) -> usize {
        let MemoryBytes { planned, private, scratch, constants, lent: _, packed, plan, program } = *self;
        planned + private + scratch + constants + packed + plan + program
    }
}

/// The outputs of a run, borrowed from the method.
#[derive(Clone, Copy)]
pub struct Outputs<'m> {
    method: &'m Method,
}

impl<'m> Outputs<'m> {
    /// Number of outputs.
    pub fn len(&self) -> usize {
        self.method.outputs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.method.outputs.is_empty()
    }

    /// Output `index`, if there is one.
    pub fn get(&self, index: usize) -> Option<Output<'m>> {
        let state = &self.method.state;
        let value = &state.values[*self.method.outputs.get(index)? as usize];
        Some(match value {
            Value::Null => Output::Null,
            Value::Int(value) => Output::Int(*value),
            Value::Bool(value) => Output::Bool(*value),
            Value::Double(value) => Output::Double(*value),
            Value::Str(span) => Output::Text(&state.text[span.range()]),
            Value::Tensor(tensor) => {
                let tensor = &state.tensors[*tensor as usize];
                let meta: TensorMeta<'m> = state.meta(tensor);
                // SAFETY: the memory belongs to the method or its program, and nothing writes to it while `Outputs`
                // borrows the method. A shared arena may be written by another method; what is read then is that
                // method's data, which is what sharing means, and callers run such methods one after the other.
                Output::Tensor(TensorRef::new(meta, unsafe { tensor.region.prefix(meta.byte_len()).bytes() }))
            }
            other => Output::List(other.kind()),
        })
    }

    /// All outputs in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Output<'m>> + use<'m> {
        let this = *self;
        (0..this.len()).map(move |index| this.get(index).unwrap_or(Output::Null))
    }
}

fn input_error(index: usize, code: ErrorCode, message: String) -> RunError {
    RunError::Input { index, code, message }
}

/// Whether a double is the one the program was traced with, as the reference compares them.
fn is_traced(have: f64, want: f64) -> bool {
    have == want || (have.is_nan() && want.is_nan()) || (have - want).abs() <= 1e-4 + 1e-5 * want.abs()
}

/// Whether two dim orders put the elements of these sizes in the same places.
fn same_order(sizes: &[usize], a: &[u8], b: &[u8]) -> bool {
    let long = |order: &[u8]| -> Vec<u8> {
        order.iter().copied().filter(|&dim| sizes.get(dim as usize).is_none_or(|&size| size != 1)).collect()
    };
    a.len() == b.len() && long(a) == long(b)
}

/// By value: whether an input may be read where the caller has it. It may if the program gives it no memory, nothing
/// writes it, and it is no output.
fn lendable(graph: &crate::graph::Graph<'_>, unplanned: &[u32]) -> Result<Vec<bool>, LoadError> {
    let mut used_elsewhere = graph.written()?;
    for &output in &graph.outputs {
        used_elsewhere[output as usize] = true;
    }
    let mut is_unplanned = filled(false, graph.state.tensors.len())?;
    for &tensor in unplanned {
        is_unplanned[tensor as usize] = true;
    }
    for (value, used) in graph.state.values.iter().zip(&mut used_elsewhere) {
        *used = matches!(value, Value::Tensor(tensor) if !*used && is_unplanned[*tensor as usize]);
    }
    Ok(used_elsewhere)
}

/// Numbers that instructions may write, as they are now.
fn numbers(state: &State, variable: &[bool]) -> Vec<(ValueId, Value)> {
    let values = state.values.iter().zip(variable).enumerate();
    values
        .filter(|(_, (value, variable))| **variable && !matches!(value, Value::Tensor(_)))
        .map(|(id, (value, _))| (id as ValueId, *value))
        .collect()
}

fn refused_at(plan: &ExecutionPlan<'_>, operators: &[crate::graph::GraphOperator<'_>], refused: Refused) -> LoadError {
    let operator = refused.operator.and_then(|index| operators.get(index as usize));
    let what = operator.map_or_else(|| "instruction".to_owned(), |operator| operator.name.to_string());
    let place = crate::place::place(plan, refused.chain, refused.instruction, what);
    LoadError::Instruction { place, error: refused.error }
}

fn init_delegates(
    program: &Program,
    plan: &ExecutionPlan<'_>,
    options: &Options,
    pool: Option<&Arc<rayon::ThreadPool>>,
    data: MergedData,
) -> Result<Vec<LoadedDelegate>, LoadError> {
    let rows = plan.delegates.clone().unwrap_or_default();
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let inside: Arc<dyn NamedDataMap> = Arc::new(program.named_data()?);
    let outside: Arc<dyn NamedDataMap> = Arc::new(data);
    let named_data: Arc<dyn NamedDataMap> = Arc::new(MergedData::new([inside, outside])?);
    let mut loaded = Vec::new();
    grow(&mut loaded, rows.len())?;
    // Payloads that several delegates name are read once; the others are given back at once.
    let mut held: HashMap<u32, (usize, Option<Bytes>)> = HashMap::new();
    for row in rows.iter() {
        if let Some(at) = row?.processed.filter(|at| at.location == DataLocation::SEGMENT) {
            held.entry(at.index).or_default().0 += 1;
        }
    }
    for (index, row) in rows.iter().enumerate() {
        let row = row?;
        let id = row.id.clone().unwrap_or_default().into_owned();
        let refused = |error: KernelError| LoadError::Delegate { delegate: index, backend: id.clone(), error };
        let processed = processed(program, &row, &mut held).map_err(|error| match error {
            Some(error) => LoadError::Program(error),
            None => refused(KernelError::new(ErrorCode::NotFound, "its processed bytes are not in the file")),
        })?;
        let mut compile_specs = Vec::new();
        for spec in row.compile_specs.unwrap_or_default().iter() {
            let spec = spec?;
            let value = spec.value.map(|value| value.as_slice().to_vec()).unwrap_or_default();
            compile_specs.push((spec.key.unwrap_or_default().into_owned(), value));
        }
        let backend = options.backends.find(&id).ok_or_else(|| {
            LoadError::Missing(crate::error::Missing { backends: vec![id.clone()], ..Default::default() })
        })?;
        let method = plan.name.as_deref().unwrap_or_default();
        let named_data = Arc::clone(&named_data);
        let init = DelegateInit { processed, compile_specs, named_data, cache: &options.cache, pool, method };
        let delegate = backend.init(init).map_err(refused)?;
        loaded.push(LoadedDelegate { id, delegate });
    }
    Ok(loaded)
}

/// A delegate's bytes; `Err(None)` if the file does not have them.
fn processed(
    program: &Program,
    row: &BackendDelegate<'_>,
    held: &mut HashMap<u32, (usize, Option<Bytes>)>,
) -> Result<Bytes, Option<edgepack_loader::Error>> {
    let reference = row.processed.ok_or(None)?;
    match reference.location {
        DataLocation::SEGMENT => {
            let (uses, known) = held.entry(reference.index).or_default();
            *uses = uses.saturating_sub(1);
            let bytes = match known.take() {
                Some(bytes) => bytes,
                None => program.segment(reference.index).map_err(Some)?,
            };
            *known = (*uses > 0).then(|| bytes.clone());
            Ok(bytes)
        }
        DataLocation::INLINE => {
            let view = program.view().map_err(Some)?;
            let list = view.program().backend_delegate_data.clone().ok_or(None)?;
            let row: BackendDelegateInlineData<'_> = list.get(reference.index as usize).map_err(|_| None)?;
            Ok(row.data.map(|data| data.as_slice().to_vec()).unwrap_or_default().into())
        }
        _ => Err(None),
    }
}
