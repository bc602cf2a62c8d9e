//! A module, ready to run in this process: by the graph executor, or as the one function it was compiled to.

use edgepack_executor::mlf::{GraphExecutor, Operand};
use edgepack_format::limits::Limits;
use edgepack_format::mlf::DataType;
use edgepack_format::tensor::{TensorBuf, TensorLayout, TensorView};
use edgepack_loader::AlignedBytes;
use edgepack_loader::mlf::LibraryModule;

use crate::aot::AotModule;
use crate::compile::Options;
use crate::error::Error;
use crate::library::NativeLibrary;
use crate::spec::IoSpec;

/// A module, ready to run in this process.
#[derive(Debug)]
#[non_exhaustive]
pub enum InProcess {
    /// Module of the graph executor.
    Graph(Box<GraphExecutor>),
    /// Module of the ahead-of-time executor, or a single function.
    Aot(AotModule),
}

impl InProcess {
    /// Compiles the code of a module and loads it into this process; `function` is one function of it, to be called
    /// alone.
    pub fn open(
        module: &LibraryModule,
        function: Option<&str>,
        options: &Options,
        limits: &Limits,
    ) -> Result<InProcess, Error> {
        let library = NativeLibrary::compile(module, options)?;
        Self::with(module, function, library, limits)
    }

    /// Runs a module on its loaded library.
    pub(crate) fn with(
        module: &LibraryModule,
        function: Option<&str>,
        library: NativeLibrary,
        limits: &Limits,
    ) -> Result<InProcess, Error> {
        match function {
            Some(function) => Ok(InProcess::Aot(AotModule::function(module, function, library)?)),
            None if module.graph().is_some() => {
                Ok(InProcess::Graph(Box::new(GraphExecutor::open(module, &library, limits)?)))
            }
            None => Ok(InProcess::Aot(AotModule::new(module, library)?)),
        }
    }

    /// Returns the inputs, as far as the package says. Of a single operator all arguments.
    pub fn inputs(&self) -> Vec<IoSpec> {
        match self {
            InProcess::Graph(graph) => graph
                .inputs()
                .map(|(name, operand)| IoSpec { name: name.to_owned(), operand: Some(operand.clone()) })
                .collect(),
            InProcess::Aot(aot) => aot.inputs().to_vec(),
        }
    }

    /// Returns the outputs, as far as the package says; none if it says nothing.
    pub fn outputs(&self) -> Vec<IoSpec> {
        match self {
            InProcess::Graph(graph) => {
                let outputs = graph.output_operands().enumerate();
                outputs
                    .map(|(index, operand)| IoSpec { name: index.to_string(), operand: Some(operand.clone()) })
                    .collect()
            }
            InProcess::Aot(aot) => aot.outputs().to_vec(),
        }
    }

    /// Returns the number of calls that a run makes.
    pub fn call_count(&self) -> usize {
        match self {
            InProcess::Graph(graph) => graph.call_count(),
            InProcess::Aot(_) => 1,
        }
    }

    /// Bytes of the storages of a graph.
    pub fn memory_bytes(&self) -> usize {
        match self {
            InProcess::Graph(graph) => graph.memory_bytes(),
            InProcess::Aot(_) => 0,
        }
    }

    /// Runs the module on inputs in order. `wanted` says what outputs look like, where the package does not.
    pub fn run(&mut self, inputs: &[TensorBuf], wanted: &[TensorLayout]) -> Result<Vec<TensorBuf>, Error> {
        match self {
            InProcess::Graph(graph) => {
                let views = inputs.iter().map(|input| TensorView::new(input.layout().clone(), input.data()));
                let outputs = run_graph(graph, &views.collect::<Result<Vec<_>, _>>()?)?;
                outputs.iter().map(copy).collect()
            }
            InProcess::Aot(aot) => {
                let outputs = chosen_outputs(aot.inputs(), aot.outputs(), inputs.len(), wanted)?;
                let copies = inputs.iter().map(|input| AlignedBytes::copy_of(input.data()).ok_or_else(no_memory));
                let copies = copies.collect::<Result<Vec<_>, _>>()?;
                let operands = operands(inputs)?;
                let given: Vec<(&Operand, &[u8])> =
                    operands.iter().zip(&copies).map(|(operand, bytes)| (operand, &**bytes)).collect();
                run_aot(aot, &given, outputs)?
                    .into_iter()
                    .map(|(operand, bytes)| Ok(TensorBuf::from_bytes(operand.layout()?, bytes.to_vec())?))
                    .collect()
            }
        }
    }
}

fn no_memory() -> Error {
    Error::Arguments("there is no memory for inputs and outputs".to_owned())
}

/// Runs a graph on all of its inputs.
pub(crate) fn run_graph<'g>(
    graph: &'g mut GraphExecutor,
    inputs: &[TensorView<'_>],
) -> Result<Vec<TensorView<'g>>, Error> {
    let count = graph.inputs().count();
    if inputs.len() != count {
        return Err(Error::Arguments(format!("{} inputs, the graph has {count}", inputs.len())));
    }
    for (place, input) in inputs.iter().enumerate() {
        graph.set_input_at(place, input)?;
    }
    graph.run()?;
    (0..graph.output_count()).map(|index| Ok(graph.output(index)?)).collect()
}

/// Runs a single function with room for its outputs.
pub(crate) fn run_aot(
    aot: &mut AotModule,
    inputs: &[(&Operand, &[u8])],
    outputs: Vec<Operand>,
) -> Result<Vec<(Operand, AlignedBytes)>, Error> {
    let room = |operand: Operand| {
        let bytes = AlignedBytes::zeroed(operand.byte_len()).ok_or_else(no_memory)?;
        Ok((operand, bytes))
    };
    let mut outputs = outputs.into_iter().map(room).collect::<Result<Vec<_>, Error>>()?;
    aot.run(inputs, &mut outputs)?;
    Ok(outputs)
}

/// Inputs as packages have them.
pub(crate) fn operands(inputs: &[TensorBuf]) -> Result<Vec<Operand>, Error> {
    let unknown = || Error::Arguments("packages have no tensors of this type".to_owned());
    inputs.iter().map(|input| operand(input.layout()).ok_or_else(unknown)).collect()
}

/// A layout as packages have it.
fn operand(layout: &TensorLayout) -> Option<Operand> {
    let shape: Vec<u64> = layout.sizes().iter().map(|&size| size as u64).collect();
    Operand::new(DataType::from_scalar_type(layout.scalar_type())?, &shape)
}

fn copy(view: &TensorView<'_>) -> Result<TensorBuf, Error> {
    Ok(TensorBuf::from_bytes(view.layout().clone(), view.data().to_vec())?)
}

/// Returns the outputs: with the shapes that are wanted, else those that the package declares. For a single
/// operator these are the arguments that are not given.
pub(crate) fn chosen_outputs(
    inputs: &[IoSpec],
    outputs: &[IoSpec],
    given: usize,
    wanted: &[TensorLayout],
) -> Result<Vec<Operand>, Error> {
    let named: Option<Vec<Operand>> = wanted.iter().map(operand).collect();
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        return Ok(named);
    }
    let said = match outputs {
        [] => inputs.get(given..).unwrap_or_default(),
        outputs => outputs,
    };
    let known: Option<Vec<Operand>> = said.iter().map(|spec| spec.operand.clone()).collect();
    known.filter(|known| !known.is_empty()).ok_or_else(|| {
        let message = "the package does not say what its outputs look like; `check` takes that from what is recorded";
        Error::Arguments(message.to_owned())
    })
}
