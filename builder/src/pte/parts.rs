//! Parts of a method: values, instructions in chains, delegates. Plain data; [`MethodBuilder`](super::MethodBuilder)
//! keeps its invariants.

use std::collections::BTreeMap;

use edgepack_format::pte::{CompileSpec, DataLocation, DeviceType, Frame};

use super::args::Owner;
use super::values::{Role, Value};

/// All of a method.
pub(crate) struct Method {
    pub(crate) owner: Owner,
    pub(crate) name: String,
    pub(crate) values: Vec<Value>,
    /// The value of each constant of the program that is used here.
    pub(crate) constants: BTreeMap<usize, usize>,
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
    pub(crate) operators: Vec<(String, String)>,
    pub(crate) delegates: Vec<Delegate>,
    pub(crate) chains: Vec<Chain>,
    pub(crate) frames: Option<Vec<Frame<'static>>>,
    pub(crate) containers: (Option<String>, Option<String>),
    pub(crate) plan_inputs: bool,
    pub(crate) plan_outputs: bool,
    /// Devices of the memories that tensors name.
    pub(crate) memories: BTreeMap<u32, (DeviceType, i8)>,
}

impl Method {
    pub(crate) fn new(name: &str) -> Self {
        Method {
            owner: Owner::next(),
            name: name.to_owned(),
            values: Vec::new(),
            constants: BTreeMap::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            operators: Vec::new(),
            delegates: Vec::new(),
            chains: vec![Chain::default()],
            frames: None,
            containers: (None, None),
            plan_inputs: true,
            plan_outputs: true,
            memories: BTreeMap::new(),
        }
    }

    pub(crate) fn is_constant(&self, index: usize) -> bool {
        matches!(self.values.get(index), Some(Value::Tensor(tensor)) if matches!(tensor.role, Role::Constant(_)))
    }

    pub(crate) fn tag(&self, index: usize) -> u8 {
        self.values.get(index).map_or(0, Value::tag)
    }

    /// The chain that instructions are added to.
    pub(crate) fn chain_mut(&mut self) -> Option<&mut Chain> {
        self.chains.last_mut()
    }

    /// Maps each value that is an input or an output to two flags: is an input, is an output.
    pub(crate) fn boundary(&self) -> BTreeMap<usize, (bool, bool)> {
        let mut found: BTreeMap<usize, (bool, bool)> = BTreeMap::new();
        for index in &self.inputs {
            found.entry(*index).or_default().0 = true;
        }
        for index in &self.outputs {
            found.entry(*index).or_default().1 = true;
        }
        found
    }
}

/// One instruction.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Kernel { operator: usize, args: Vec<usize> },
    Delegate { delegate: usize, args: Vec<usize> },
    Move { from: usize, to: usize },
    JumpFalse { condition: usize, label: usize },
    Free { value: usize },
}

/// A sequence of instructions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
    /// Each with the stack trace it was given.
    pub(crate) steps: Vec<(Step, Option<Vec<Frame<'static>>>)>,
    /// Instruction index of each label, once it has been placed.
    pub(crate) labels: Vec<Option<usize>>,
}

/// A delegate of a method.
#[derive(Clone, Debug)]
pub(crate) struct Delegate {
    pub(crate) backend: String,
    pub(crate) location: DataLocation,
    /// Among the payloads of its location.
    pub(crate) payload: usize,
    pub(crate) specs: Vec<CompileSpec<'static>>,
}
