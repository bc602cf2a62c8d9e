//! What goes into a method and what comes out.

use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorView;

use crate::api::tensor::TensorRef;

/// An input of one call.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// `None`.
    Null,
    /// An integer. Where instructions read it any will do; one that was traced into the program has to be that.
    Int(i64),
    /// A bool. Where instructions read it any will do; one that was traced into the program has to be that.
    Bool(bool),
    /// A double. Where instructions read it any will do; one that was traced into the program has to be that.
    Double(f64),
    /// Text. Programs are traced with one; another is refused.
    Text(&'a str),
    /// A tensor.
    Tensor {
        /// Element type.
        dtype: ScalarType,
        /// Elements along each dimension.
        sizes: &'a [usize],
        /// Dimensions from outermost to innermost in memory; must be the program's.
        dim_order: &'a [u8],
        /// The elements, little-endian, in memory order.
        data: &'a [u8],
    },
}

impl Input<'_> {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Input::Null => "None",
            Input::Int(_) => "Int",
            Input::Bool(_) => "Bool",
            Input::Double(_) => "Double",
            Input::Text(_) => "String",
            Input::Tensor { .. } => "Tensor",
        }
    }
}

/// What can be an input.
pub trait ToInput {
    /// As an input.
    fn to_input(&self) -> Input<'_>;
}

impl ToInput for Input<'_> {
    fn to_input(&self) -> Input<'_> {
        *self
    }
}

impl<T> ToInput for TensorView<'_, T> {
    fn to_input(&self) -> Input<'_> {
        let layout = self.layout();
        Input::Tensor {
            dtype: layout.scalar_type(),
            sizes: layout.sizes(),
            dim_order: layout.dim_order(),
            data: self.data(),
        }
    }
}

impl ToInput for TensorRef<'_> {
    fn to_input(&self) -> Input<'_> {
        Input::Tensor { dtype: self.dtype, sizes: self.sizes, dim_order: self.dim_order, data: self.bytes() }
    }
}

impl<T: ToInput> ToInput for &T {
    fn to_input(&self) -> Input<'_> {
        (**self).to_input()
    }
}

/// An output of the last run; tensors borrow the method's memory.
#[derive(Clone, Copy, Debug)]
pub enum Output<'a> {
    /// `None`.
    Null,
    /// An integer.
    Int(i64),
    /// A bool.
    Bool(bool),
    /// A double.
    Double(f64),
    /// Text.
    Text(&'a str),
    /// A tensor.
    Tensor(TensorRef<'a>),
    /// A list, by kind; its items are values of the program.
    List(&'static str),
}

impl<'a> Output<'a> {
    /// The tensor, if it is one.
    pub fn tensor(&self) -> Option<TensorRef<'a>> {
        match self {
            Output::Tensor(tensor) => Some(*tensor),
            _ => None,
        }
    }
}
