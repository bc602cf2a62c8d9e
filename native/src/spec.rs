//! Inputs and outputs of a module, as far as the package describes them.

use edgepack_executor::mlf::Operand;

/// Facts about an input or output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IoSpec {
    /// Name of the input or output.
    pub name: String,
    /// Its element type and shape, if the package says.
    pub operand: Option<Operand>,
}
