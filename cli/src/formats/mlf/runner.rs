//! A module of a package, ready to run: by the graph executor, or as the one function it was compiled to.

use std::fmt;

use edgepack_executor::mlf::{self, GraphExecutor, Operand};
use edgepack_format::limits::Limits;
use edgepack_format::mlf::DataType;
use edgepack_format::tensor::{LayoutError, TensorBuf, TensorLayout, TensorView};
use edgepack_loader::AlignedBytes;
use edgepack_loader::mlf::LibraryModule;
use edgepack_native::{AotModule, NativeLibrary, Options};

/// A module, ready to run.
#[derive(Debug)]
pub enum Runner {
    /// Module of the graph executor.
    Graph(Box<GraphExecutor>),
    /// Module of the ahead-of-time executor, or of a single operator.
    Aot(AotModule),
}

/// Reason a module cannot run.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunnerError {
    /// The graph executor says no.
    Graph(mlf::Error),
    /// The package's code cannot be compiled or called.
    Native(edgepack_native::Error),
    /// A tensor has a layout that packages do not have.
    Layout(LayoutError),
    /// Too few inputs, too many, or the outputs are unknown.
    Arguments(String),
}

impl fmt::Display for RunnerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunnerError::Graph(error) => error.fmt(f),
            RunnerError::Native(error @ edgepack_native::Error::NotAllowed) => {
                write!(f, "{error}; --allow-native-code allows it")
            }
            RunnerError::Native(error) => error.fmt(f),
            RunnerError::Layout(error) => error.fmt(f),
            RunnerError::Arguments(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for RunnerError {}

impl From<mlf::Error> for RunnerError {
    fn from(error: mlf::Error) -> Self {
        RunnerError::Graph(error)
    }
}

impl From<edgepack_native::Error> for RunnerError {
    fn from(error: edgepack_native::Error) -> Self {
        RunnerError::Native(error)
    }
}

impl From<LayoutError> for RunnerError {
    fn from(error: LayoutError) -> Self {
        RunnerError::Layout(error)
    }
}

/// A layout as packages have it.
pub fn operand(layout: &TensorLayout) -> Option<Operand> {
    let shape: Vec<u64> = layout.sizes().iter().map(|&size| size as u64).collect();
    Operand::new(DataType::from_scalar_type(layout.scalar_type())?, &shape)
}

impl Runner {
    /// Compiles the code of a module, and loads it.
    pub fn open(module: &LibraryModule, options: &Options, limits: &Limits) -> Result<Runner, RunnerError> {
        if module.graph().is_none() {
            return Ok(Runner::Aot(AotModule::compile(module, options)?));
        }
        let functions = NativeLibrary::compile(module, options)?;
        Ok(Runner::Graph(Box::new(GraphExecutor::open(module, &functions, limits)?)))
    }

    /// Names of the inputs and what they look like, as far as the package says.
    pub fn inputs(&self) -> Vec<(String, Option<Operand>)> {
        match self {
            Runner::Graph(graph) => {
                graph.inputs().map(|(name, operand)| (name.to_owned(), Some(operand.clone()))).collect()
            }
            Runner::Aot(aot) => aot.inputs().iter().map(|spec| (spec.name.clone(), spec.operand.clone())).collect(),
        }
    }

    /// Runs the module on inputs in order. `wanted` says what outputs look like, where the package does not.
    pub fn run(&mut self, inputs: &[TensorBuf], wanted: &[TensorLayout]) -> Result<Vec<TensorBuf>, RunnerError> {
        match self {
            Runner::Graph(graph) => {
                let count = graph.inputs().count();
                if inputs.len() != count {
                    return Err(RunnerError::Arguments(format!("{} inputs, the graph has {count}", inputs.len())));
                }
                for (place, input) in inputs.iter().enumerate() {
                    graph.set_input_at(place, &TensorView::new(input.layout().clone(), input.data())?)?;
                }
                graph.run()?;
                (0..graph.output_count()).map(|index| copy(&graph.output(index)?)).collect()
            }
            Runner::Aot(aot) => {
                let memory = || RunnerError::Arguments("there is no memory for inputs and outputs".to_owned());
                let unknown = || RunnerError::Arguments("packages have no tensors of this type".to_owned());
                let operands: Option<Vec<Operand>> = inputs.iter().map(|input| operand(input.layout())).collect();
                let operands = operands.ok_or_else(unknown)?;
                let mut outputs = Vec::new();
                for operand in outputs_of(aot, inputs.len(), wanted)? {
                    let bytes = AlignedBytes::zeroed(operand.byte_len()).ok_or_else(memory)?;
                    outputs.push((operand, bytes));
                }
                let copies: Option<Vec<AlignedBytes>> =
                    inputs.iter().map(|input| AlignedBytes::copy_of(input.data())).collect();
                let copies = copies.ok_or_else(memory)?;
                let given: Vec<(&Operand, &[u8])> =
                    operands.iter().zip(&copies).map(|(operand, bytes)| (operand, &**bytes)).collect();
                aot.run(&given, &mut outputs)?;
                outputs
                    .iter()
                    .map(|(operand, bytes)| Ok(TensorBuf::from_bytes(operand.layout()?, bytes.to_vec())?))
                    .collect()
            }
        }
    }
}

fn copy(view: &TensorView<'_>) -> Result<TensorBuf, RunnerError> {
    Ok(TensorBuf::from_bytes(view.layout().clone(), view.data().to_vec())?)
}

/// Returns the outputs: with the shapes that the package declares, else with those that are wanted. For a single
/// operator these are the arguments that are not given.
fn outputs_of(aot: &AotModule, given: usize, wanted: &[TensorLayout]) -> Result<Vec<Operand>, RunnerError> {
    let named: Option<Vec<Operand>> = wanted.iter().map(operand).collect();
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        return Ok(named);
    }
    let said = match aot.outputs() {
        [] => aot.inputs().get(given..).unwrap_or_default(),
        outputs => outputs,
    };
    let known: Option<Vec<Operand>> = said.iter().map(|spec| spec.operand.clone()).collect();
    known.filter(|known| !known.is_empty()).ok_or_else(|| {
        let message = "the package does not say what its outputs look like; `check` takes that from what is recorded";
        RunnerError::Arguments(message.to_owned())
    })
}
