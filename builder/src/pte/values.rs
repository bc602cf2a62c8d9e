//! The values of a method as the builder holds them: plain data, with indices for what they refer to.

use edgepack_format::pte::{DeviceType, KernelTypes, Tensor as TensorRow, TensorShapeDynamism};
use edgepack_format::tensor::{LayoutError, TensorLayout};

use crate::build_error::BuildError;

/// A value of a method.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Bool(bool),
    Double(f64),
    Text(String),
    Ints(Vec<usize>),
    Bools(Vec<bool>),
    Doubles(Vec<f64>),
    Tensors(Vec<usize>),
    OptionalTensors(Vec<Option<usize>>),
    Tensor(Box<Tensor>),
}

impl Value {
    pub(crate) fn tag(&self) -> u8 {
        match self {
            Value::Null => KernelTypes::NULL,
            Value::Int(_) => KernelTypes::INT,
            Value::Bool(_) => KernelTypes::BOOL,
            Value::Double(_) => KernelTypes::DOUBLE,
            Value::Text(_) => KernelTypes::STRING,
            Value::Ints(_) => KernelTypes::INT_LIST,
            Value::Bools(_) => KernelTypes::BOOL_LIST,
            Value::Doubles(_) => KernelTypes::DOUBLE_LIST,
            Value::Tensors(_) => KernelTypes::TENSOR_LIST,
            Value::OptionalTensors(_) => KernelTypes::OPTIONAL_TENSOR_LIST,
            Value::Tensor(_) => KernelTypes::TENSOR,
        }
    }
}

/// A tensor of a method.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) layout: TensorLayout,
    pub(crate) dynamism: TensorShapeDynamism,
    pub(crate) place: Place,
    pub(crate) role: Role,
}

/// Purpose of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// A constant of the program.
    Constant(usize),
    /// Computed, or given by the caller.
    Plain,
    /// The bytes of another tensor under another shape.
    View(usize),
    /// State with this name.
    State { name: String, initial: Initial },
}

/// Initial content of state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Initial {
    /// Whatever the memory holds; zeros with the usual runtimes.
    None,
    /// A buffer of one of the lists.
    Buffer { list: u64, buffer: usize },
    /// The entry of its name in a data file.
    External,
}

/// All about a tensor but its layout.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Place {
    /// `None` if it is not said.
    pub(crate) dynamism: Option<TensorShapeDynamism>,
    /// `None` where the method decides.
    pub(crate) planned: Option<bool>,
    pub(crate) memory: Option<u32>,
    pub(crate) offset: Option<u64>,
    pub(crate) device: (DeviceType, i8),
    /// Fields of the row that follow from nothing else; they go into the file as they are.
    pub(crate) row: TensorRow<'static>,
}

/// Sizes are `i32` in a file.
pub(crate) fn check_sizes(place: &str, layout: &TensorLayout) -> Result<(), BuildError> {
    match layout.sizes().iter().all(|size| i32::try_from(*size).is_ok()) {
        true => Ok(()),
        false => Err(BuildError::Layout { place: place.to_owned(), source: LayoutError::Overflow }),
    }
}
