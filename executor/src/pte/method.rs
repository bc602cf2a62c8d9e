//! A loaded method: what loading decides, and what it needs.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use edgepack_compute::threads::Threads;
use edgepack_format::finding::ErrorCode;
use edgepack_format::pte::ExecutionPlan;
use edgepack_loader::{Program, ProgramMethod};

use crate::api::room::grow;
use crate::api::state::{State, Value, ValueId};
use crate::api::storage::{Block, Region};
use crate::pte::arena::Holder;
use crate::pte::error::LoadError;
use crate::pte::expect::expect_program;
use crate::pte::freeze::{FreezeOptions, Plan, Refused, freeze};
use crate::pte::input_slots::{self, InputSlot};
use crate::pte::load::{InitialPiece, delegates, initial_pieces, load, packer_of_constants};
use crate::pte::options::Options;
use crate::pte::output_copies;
use crate::pte::owners;
use crate::pte::plan_graph::{Memory, PlanOperator};
use crate::pte::registry::Registry;
use crate::pte::release::{release_pages, release_unread};
use crate::pte::splice::splice;
use crate::pte::temporaries::place_temporaries;

/// A method ready to run. It owns its memory and keeps its program alive; it can be sent to another thread.
///
/// State lives in it: what a run leaves in mutable buffers the next run finds. [`Method::reset`] goes back to the
/// state after loading.
///
/// ```
/// use edgepack_executor::{Input, Method, Options, Output, Registry};
/// use edgepack_loader::Program;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/models/multimethod_getters_portable.pte");
/// let program = Program::open(path)?;
/// // This method runs no operator; a method that does takes `edgepack_kernels::registry()`.
/// let mut shape = Method::load(&program, "shape", &Registry::new(), &Options::default())?;
/// let outputs = shape.run::<Input>(&[])?;
/// assert!(matches!(outputs.get(0), Some(Output::Int(2))));
///
/// // Loading names everything that is missing at once.
/// let error = Method::load(&program, "encode", &Registry::new(), &Options::default()).err().unwrap();
/// assert!(error.to_string().contains("aten::"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Method {
    pub(crate) program: Program,
    pub(crate) name: String,
    pub(crate) state: State,
    pub(crate) args: Vec<ValueId>,
    pub(crate) inputs: Vec<InputSlot>,
    pub(crate) outputs: Vec<ValueId>,
    /// By output: its copy outside of shared memory.
    pub(crate) copies: Vec<Option<Region>>,
    pub(crate) frozen: Plan,
    /// Ids of their backends.
    pub(crate) delegates: Vec<String>,
    pub(crate) operators: Vec<Arc<str>>,
    /// By operator: its arguments, and those that only receive results ([`OperatorInfo::results`]).
    ///
    /// [`OperatorInfo::results`]: crate::OperatorInfo
    pub(crate) results: Vec<(usize, u128)>,
    pub(crate) initial: Vec<InitialPiece>,
    /// Numbers that instructions write, as they were after loading.
    pub(crate) numbers: Vec<(ValueId, Value)>,
    pub(crate) memory: Memory,
    /// Its name among those that take the locks of shared memories.
    pub(crate) holder: Holder,
    pub(crate) instruction_limit: u64,
    pub(crate) threads: Option<Threads>,
    /// Bytes that kernels may still retain.
    pub(crate) may_retain: u64,
    /// Bytes of weights that backends and kernels packed, or found packed, for the method.
    packed: usize,
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
        #[cfg(feature = "tracing")]
        let _span = tracing::debug_span!(target: "edgepack", "load", method = name).entered();
        let threads = options.threads.map(|count| {
            Threads::new(count).map_err(|error| {
                LoadError::method(ErrorCode::OutOfResources, format!("no pool of {count} threads: {error}"))
            })
        });
        match threads.transpose()? {
            Some(threads) => threads.run(|| Self::load_with(program, name, registry, options, Some(threads.clone()))),
            None => Self::load_with(program, name, registry, options, None),
        }
    }

    /// Loads a method on the threads it will run on.
    fn load_with(
        program: &Program,
        name: &str,
        registry: &Registry,
        options: &Options,
        threads: Option<Threads>,
    ) -> Result<Method, LoadError> {
        let view = program.view()?;
        let plan = view.plan(name).ok_or_else(|| {
            LoadError::Program(edgepack_loader::Error::NotFound { what: "method", name: name.to_owned() })
        })?;
        expect_program(program);
        let limits = options.limits.unwrap_or(*program.limits());
        let loaded = load(program, &view, &plan, registry, options)?;
        let mut graph = loaded.graph;
        let (delegates, packer) = delegates(program, &plan, options, threads.as_ref(), loaded.data)?;
        let packer = packer.map_or_else(OnceCell::new, OnceCell::from);
        let new_packer = || Arc::new(packer_of_constants(program, options));
        let retained = Cell::new(graph.account.left());
        splice(&mut graph, &delegates, !options.no_optimize, &retained)?;
        graph.account.own("what delegates retain", graph.account.left().saturating_sub(retained.get()))?;
        if !options.no_optimize {
            for rewrite in registry.rewrites() {
                rewrite.apply(&mut graph);
            }
            release_unread(&mut graph);
        }
        place_temporaries(&mut graph)?;
        let freeze_options = FreezeOptions { optimize: !options.no_optimize };
        owners::check(&graph, program).map_err(|error| LoadError::method(error.code, error.message))?;
        retained.set(graph.account.left());
        let frozen =
            freeze(&mut graph, &freeze_options, &delegates, &retained, &|| Arc::clone(packer.get_or_init(new_packer)))
                .map_err(|refused| refused_at(&plan, &graph.operators, refused))?;
        if !options.no_optimize {
            release_pages(&mut graph);
        }

        let numbers = numbers(&graph.state, &graph.variable)?;
        let inputs = input_slots::inputs(&graph, &loaded.unplanned, &frozen)?;
        let copies = output_copies::copies(&mut graph)?;
        let initial = initial_pieces(&graph.state, &loaded.initial)?;
        let mut results = Vec::new();
        grow(&mut results, graph.operators.len())?;
        results.extend(graph.operators.iter().map(|operator| (operator.info.arity(), operator.info.results())));
        let mut method = Method {
            program: program.clone(),
            name: name.to_owned(),
            state: graph.state,
            args: graph.args,
            inputs,
            outputs: graph.outputs,
            copies,
            frozen,
            delegates: delegates.into_iter().map(|loaded| loaded.id).collect(),
            operators: graph.operators.into_iter().map(|operator| operator.name).collect(),
            results,
            initial,
            numbers,
            memory: graph.memory,
            holder: Holder::new(),
            instruction_limit: limits.instructions,
            threads,
            packed: packer.get().map_or(0, |packer| packer.charged_bytes()),
            may_retain: retained.get().min(graph.account.left()),
        };
        method.start()?;
        Ok(method)
    }

    /// Returns the name of the method.
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

    /// Returns its memory by purpose. Kernels may pack weights in the first run: before it the figures can be lower.
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
            packed: self.frozen.retained_bytes().saturating_add(self.packed),
            plan: self.state.heap_bytes() + self.frozen.heap_bytes() + size_of_val(self.args.as_slice()),
            program: self.program.flatbuffer().len(),
        }
    }
}

/// Bytes of memory of a method, by purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryBytes {
    /// Planned by the exporter.
    pub planned: usize,
    /// Values the program gives no memory, those of instructions that stand for delegates among them, and constants that had
    /// to be realigned, or were copied because they are small and the source is a mapped file.
    pub private: usize,
    /// Scratch of kernels and copies.
    pub scratch: usize,
    /// Constants that were read into memory.
    pub constants: usize,
    /// Constants borrowed from the source: mapped from the file, part of the executable, or bytes of the caller's.
    pub lent: usize,
    /// Memory that kernels retain besides that: packed weights. Plans for one run's shapes are too small to be counted.
    pub packed: usize,
    /// Values and instructions.
    pub plan: usize,
    /// The flatbuffer of the program, which all of its methods share.
    pub program: usize,
}

impl MemoryBytes {
    /// Returns the number of bytes, without those borrowed from the source.
    pub fn heap(&self) -> usize {
        let MemoryBytes { planned, private, scratch, constants, lent: _, packed, plan, program } = *self;
        planned + private + scratch + constants + packed + plan + program
    }
}

/// Numbers that instructions may write, as they are now.
fn numbers(state: &State, variable: &[bool]) -> Result<Vec<(ValueId, Value)>, LoadError> {
    let mut numbers = Vec::new();
    for (id, (value, variable)) in state.values.iter().zip(variable).enumerate() {
        if *variable && !matches!(value, Value::Tensor(_)) {
            grow(&mut numbers, 1)?;
            numbers.push((id as ValueId, *value));
        }
    }
    Ok(numbers)
}

fn refused_at(plan: &ExecutionPlan<'_>, operators: &[PlanOperator<'_>], refused: Refused) -> LoadError {
    let operator = refused.operator.and_then(|index| operators.get(index as usize));
    let what = operator.map_or_else(|| "instruction".to_owned(), |operator| operator.name.to_string());
    let place = crate::pte::place::place(plan, refused.chain, refused.instruction, what);
    LoadError::Instruction { place: Box::new(place), error: refused.error }
}
