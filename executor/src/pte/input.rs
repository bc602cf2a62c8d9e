//! Inputs and outputs of a method.

use edgepack_format::notation::TensorType;
use edgepack_format::tensor::{TensorLayout, TensorView};

use crate::api::tensor::TensorRef;

/// An input of one call.
#[derive(Clone, Debug)]
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
    /// A tensor, little-endian; its dim order must be the program's.
    Tensor(TensorView<'a>),
}

impl Input<'_> {
    /// Returns the type as messages name it: `f32[2, 3]`, `an integer`.
    pub(crate) fn type_name(&self) -> String {
        match self {
            Input::Null => "None".to_owned(),
            Input::Int(_) => "an integer".to_owned(),
            Input::Bool(_) => "a bool".to_owned(),
            Input::Double(_) => "a double".to_owned(),
            Input::Text(_) => "text".to_owned(),
            Input::Tensor(view) => {
                let layout = view.layout();
                let (sizes, dim_order) = (layout.sizes(), layout.dim_order());
                TensorType { element: layout.scalar_type(), sizes, dim_order }.to_string()
            }
        }
    }
}

/// Types that can be an input.
pub trait ToInput {
    /// As an input.
    fn to_input(&self) -> Input<'_>;
}

impl ToInput for Input<'_> {
    fn to_input(&self) -> Input<'_> {
        self.clone()
    }
}

impl<T> ToInput for TensorView<'_, T> {
    fn to_input(&self) -> Input<'_> {
        Input::Tensor(self.untyped())
    }
}

impl ToInput for TensorRef<'_> {
    fn to_input(&self) -> Input<'_> {
        let layout = TensorLayout::new(self.dtype, self.sizes, self.dim_order);
        // Every tensor that an executor holds has a layout.
        layout.and_then(|layout| TensorView::new(layout, self.bytes())).map_or(Input::Null, Input::Tensor)
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
    /// Number of an `Int` value, as the run left it.
    Int(i64),
    /// Content of a `Bool` value, as the run left it.
    Bool(bool),
    /// Number of a `Double` value, as the run left it.
    Double(f64),
    /// Text.
    Text(&'a str),
    /// Elements with the sizes that the run gave them.
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
