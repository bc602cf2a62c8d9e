//! Calls as the library computes them: operands as values of the graph, everything else as numbers.

use crate::graph::ValueId;

/// Scale and zero point of a whole tensor of 8-bit numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Params {
    pub(super) scale: f64,
    pub(super) zero_point: i32,
}

/// Meaning of the numbers of a filter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Scales {
    /// They are floats.
    None,
    /// 8-bit numbers with one scale.
    Tensor(f64),
    /// 8-bit numbers, or 4-bit ones in bytes, with a constant scale for each output channel.
    Channel { scales: ValueId, four_bits: bool },
    /// 4-bit numbers in bytes, with a constant scale for each block of a row.
    Group { scales: ValueId, size: usize },
}

/// A constant that a product or convolution multiplies with.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Filter {
    pub(super) value: ValueId,
    pub(super) scales: Scales,
}

/// First operand of a product or convolution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Input {
    /// Floats.
    Float(ValueId),
    /// 8-bit numbers with parameters that are known.
    Static(ValueId),
    /// Floats that are quantised row by row before.
    Dynamic(ValueId),
}

impl Input {
    /// Returns the value that the node reads.
    pub(super) fn value(self) -> ValueId {
        match self {
            Input::Float(value) | Input::Static(value) | Input::Dynamic(value) => value,
        }
    }
}

/// A convolution of one or two dimensions.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Conv {
    pub(super) input: Input,
    pub(super) filter: Filter,
    pub(super) bias: Option<ValueId>,
    /// Sizes of the filter as the graph has it, with height 1 if there is one dimension.
    pub(super) sizes: [usize; 4],
    pub(super) flat: bool,
    pub(super) stride: [u32; 2],
    pub(super) padding: [u32; 2],
    pub(super) dilation: [u32; 2],
    pub(super) transposed: bool,
    pub(super) adjustment: [u32; 2],
    pub(super) groups: usize,
}

impl Conv {
    /// Returns whether every group has one input channel.
    pub(super) fn is_depthwise(&self) -> bool {
        !self.transposed && self.sizes[1] == 1
    }
}

/// A product with a constant matrix.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Linear {
    pub(super) input: Input,
    pub(super) filter: Filter,
    /// True if the constant has a row for each input channel, instead of each output channel.
    pub(super) by_input: bool,
    pub(super) bias: Option<ValueId>,
}

/// Windows of an image.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Windows {
    pub(super) x: ValueId,
    pub(super) size: [u32; 2],
    pub(super) stride: [u32; 2],
    /// Rows above and columns to the left.
    pub(super) before: [u32; 2],
    /// Rows below and columns to the right.
    pub(super) after: [u32; 2],
    pub(super) dilation: [u32; 2],
}

/// A function of one number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Unary {
    Abs,
    Ceiling,
    Cos,
    Elu(f32),
    Exp,
    Floor,
    Gelu,
    Hardswish,
    Leaky(f32),
    Log,
    Negate,
    ReciprocalSquareRoot,
    Sigmoid,
    Sin,
    Square,
    SquareRoot,
    Tanh,
}

/// A function of two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Binary {
    Add,
    Divide,
    Maximum,
    Minimum,
    Multiply,
    Subtract,
}

/// Part of a tensor along one dimension.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Range {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// A call.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Op {
    Conv(Conv),
    Linear(Linear),
    /// Product of two batches of matrices.
    Product(ValueId, ValueId),
    Greatest(Windows),
    Average(Windows),
    /// Mean over both dimensions of an image.
    Mean(ValueId),
    Unary(Unary, ValueId),
    Binary(Binary, ValueId, ValueId),
    /// Numbers held to a range.
    Clamp(ValueId, f32, f32),
    /// Numbers below 0 times a slope for each channel.
    Slopes(ValueId, ValueId),
    /// Batch norm with fixed moments: input, weight, bias, mean, variance, epsilon.
    Norm {
        x: ValueId,
        weight: Option<ValueId>,
        bias: Option<ValueId>,
        mean: ValueId,
        variance: ValueId,
        epsilon: f64,
    },
    Softmax {
        x: ValueId,
        dim: usize,
    },
    Cat {
        items: Vec<ValueId>,
        dim: usize,
    },
    /// One part for each result.
    Slice {
        x: ValueId,
        dim: usize,
        parts: Vec<Range>,
    },
    Permute {
        x: ValueId,
        dims: Vec<usize>,
    },
    /// Other dimensions of the same elements in the same order.
    Reshape(ValueId),
    /// One index along a dimension, which is gone.
    Select {
        x: ValueId,
        dim: usize,
        index: u32,
    },
    /// Elements before and after, by dimension.
    Pad {
        x: ValueId,
        before: Vec<u32>,
        after: Vec<u32>,
        value: f32,
    },
    Resize {
        x: ValueId,
        align_corners: bool,
    },
    /// Same tensor.
    Same(ValueId),
    Quantize(ValueId, Params),
    Dequantize(ValueId, Params),
    /// Part of a pattern that the reader of its result computes.
    Inside,
}

impl Op {
    /// Returns whether the call moves no numbers: alone it is no work for a delegate.
    pub(super) fn is_view(&self) -> bool {
        matches!(self, Op::Reshape(_) | Op::Same(_) | Op::Inside)
    }

    /// Returns the operands of a call that computes on 8-bit numbers as well as on floats.
    pub(super) fn quantizable(&self) -> Option<Vec<ValueId>> {
        Some(self.clone().quantizable_mut()?.into_iter().map(|value| *value).collect())
    }

    /// Returns the operands of a call that computes on 8-bit numbers as well as on floats, to be changed.
    pub(super) fn quantizable_mut(&mut self) -> Option<Vec<&mut ValueId>> {
        Some(match self {
            Op::Greatest(windows) => vec![&mut windows.x],
            Op::Binary(Binary::Add | Binary::Subtract | Binary::Multiply, a, b) => vec![a, b],
            Op::Cat { items, .. } => items.iter_mut().collect(),
            Op::Clamp(x, ..)
            | Op::Mean(x)
            | Op::Slice { x, .. }
            | Op::Select { x, .. }
            | Op::Permute { x, .. }
            | Op::Reshape(x)
            | Op::Pad { x, .. }
            | Op::Same(x) => vec![x],
            _ => return None,
        })
    }

    /// Returns whether 8-bit operands and results must have the same parameters.
    pub(super) fn copies_numbers(&self) -> bool {
        !matches!(self, Op::Binary(..) | Op::Mean(_) | Op::Conv(_) | Op::Linear(_))
    }

    /// Returns whether the node has bounds of its own for its result.
    pub(super) fn has_bounds(&self) -> bool {
        matches!(
            self,
            Op::Conv(_)
                | Op::Linear(_)
                | Op::Binary(Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide, ..)
        )
    }
}
