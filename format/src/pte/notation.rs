//! Words for what values of methods are, as [`crate::notation`] has those for types.
//!
//! Invariant: the text of a program reads every word that is written here.

use core::fmt::{self, Display};

use super::{KernelTypes, TensorShapeDynamism};

/// Dynamism of sizes as a word: `bounded`, `unbounded`, `static`, or `dynamism#5` for a number that names none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dynamism(pub TensorShapeDynamism);

impl Display for Dynamism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            TensorShapeDynamism::STATIC => f.write_str("static"),
            TensorShapeDynamism::DYNAMIC_BOUND => f.write_str("bounded"),
            TensorShapeDynamism::DYNAMIC_UNBOUND => f.write_str("unbounded"),
            other => write!(f, "dynamism#{}", other.0),
        }
    }
}

/// The kind of a value of a method, as a word: `tensor`, `ints`.
pub fn kind(value: &KernelTypes<'_>) -> &'static str {
    match value {
        KernelTypes::Null(_) => "none",
        KernelTypes::Int(_) => "int",
        KernelTypes::Bool(_) => "bool",
        KernelTypes::Double(_) => "double",
        KernelTypes::Tensor(_) => "tensor",
        KernelTypes::String(_) => "text",
        KernelTypes::IntList(_) => "ints",
        KernelTypes::DoubleList(_) => "doubles",
        KernelTypes::BoolList(_) => "bools",
        KernelTypes::TensorList(_) => "tensors",
        KernelTypes::OptionalTensorList(_) => "optional_tensors",
        KernelTypes::Unknown(_) => "unknown",
    }
}
