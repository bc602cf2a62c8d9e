//! Operators that are applied element by element, as rows of tables.

use edgepack_compute::pointwise::{Limit, Table};

/// The most operands of a loop.
pub const MAX_INPUTS: usize = 3;

/// An operator that is applied element by element.
pub struct Spec {
    /// Schema of its arguments.
    pub schema: &'static str,
    /// Operands of the loop, in its order.
    pub inputs: &'static [Input],
    /// Positions of the arguments that are further numbers.
    pub params: &'static [usize],
    /// Position of the output.
    pub out: usize,
    /// Rule that finds the type to compute in.
    pub types: Types,
    /// Loops, by the type to compute in.
    pub table: Table,
    /// Index of the input that must not hold an integer 0, if there is one.
    pub divisor: Option<usize>,
}

/// One operand of a loop, and the argument it comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// Tensor at this position; its element type takes part in promotion.
    Tensor(usize),
    /// A tensor read as bools, which has no part in promotion.
    Mask(usize),
    /// Number at this position; it takes part in promotion by its kind.
    Scalar(usize),
    /// A tensor, or the limit if it is `None`.
    TensorOr(usize, Limit),
    /// A number, or the limit if it is `None`.
    ScalarOr(usize, Limit),
}

impl Input {
    /// Returns the position of the argument.
    pub fn arg(self) -> usize {
        match self {
            Input::Tensor(arg) | Input::Mask(arg) | Input::Scalar(arg) => arg,
            Input::TensorOr(arg, _) | Input::ScalarOr(arg, _) => arg,
        }
    }
}

/// Rule that finds the common type of the inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Types {
    /// Promotion over tensors and numbers.
    Promote,
    /// Promotion to a floating type: integers become the floating type of the output, or FLOAT.
    Float,
    /// The type of the first operand; numbers have to fit it.
    First,
    /// Every operand is read as a bool.
    Bools,
}

/// The name of argument `index` in a schema, for messages.
pub fn name(schema: &str, index: usize) -> &str {
    let arguments = schema.trim_start_matches('(').split(") ->").next().unwrap_or_default();
    let argument = arguments.split(", ").filter(|argument| *argument != "*").nth(index).unwrap_or_default();
    let declared = argument.split('=').next().unwrap_or_default();
    declared.rsplit(' ').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn arguments_are_named_by_the_schema() {
        let schema = "(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)";
        assert_eq!((0..5).map(|index| name(schema, index)).collect::<Vec<_>>(), ["self", "other", "alpha", "out", ""]);
    }
}
