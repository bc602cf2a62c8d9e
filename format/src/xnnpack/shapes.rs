//! The dimensions of what a node makes, from those of what it reads.
//!
//! Dimensions are physical: those of images are `[N, H, W, C]`, as nodes take them.

use alloc::format;
use alloc::string::{String, ToString};

use super::node::{Fields, NodeUnion};
use super::nodes::{Cat, FullyConnected, NodeConv, StaticConstantPad, StaticReshape, StaticSlice, StaticTranspose};
use super::value::{MAX_RANK, Shape};
use crate::row::Scalars;

/// The flag of products and batch products whose weights are transposed.
pub const TRANSPOSE_WEIGHTS: u32 = 1;

/// The flag of convolutions and pooling that pad by themselves: a result of `ceil(size / stride)`.
pub const SAME_PADDING: u32 = 4;

/// The flag of a mean that keeps its dimensions as 1.
pub const KEEP_DIMS: u32 = 0x40;

/// A node that makes nothing of its inputs.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ShapeError {
    /// Kind of fault; the rule that the node breaks follows from it.
    pub problem: ShapeProblem,
    /// Both sides of it.
    pub message: String,
}

/// A fault of a node or of its inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ShapeProblem {
    /// A list of dimensions does not fit the rank.
    Lists,
    /// A kernel, stride or number of groups is 0.
    Sizes,
    /// Weights do not fit.
    Weights,
    /// A reshape has other elements.
    Reshape,
    /// Inputs do not fit each other or the node.
    Inputs,
    /// A dimension overflows.
    Overflow,
}

type Result<T> = core::result::Result<T, ShapeError>;

fn error<T>(problem: ShapeProblem, message: String) -> Result<T> {
    Err(ShapeError { problem, message })
}

fn dim(number: u64) -> Result<u32> {
    match u32::try_from(number) {
        Ok(dim) => Ok(dim),
        Err(_) => error(ShapeProblem::Overflow, format!("a dimension of {number}")),
    }
}

fn shape<const N: usize>(dims: [u64; N]) -> Result<Shape> {
    let mut shape = Shape::default();
    for number in dims {
        shape = push(shape, dim(number)?)?;
    }
    Ok(shape)
}

fn push(shape: Shape, dim: u32) -> Result<Shape> {
    match shape.push(dim) {
        Some(shape) => Ok(shape),
        None => error(ShapeProblem::Inputs, format!("more than {MAX_RANK} dimensions")),
    }
}

impl NodeUnion<'_> {
    /// The dimensions of every result, which are those of the first for all results. `inputs` are those of
    /// [`NodeUnion::inputs`], without the ones that are absent.
    pub fn result_shape(&self, inputs: &[Shape]) -> Result<Shape> {
        let input = |index: usize| match inputs.get(index) {
            Some(shape) => Ok(shape),
            None => error(ShapeProblem::Inputs, format!("{} inputs", inputs.len())),
        };
        match self.fields() {
            Fields::Unary(node) => match self {
                Self::GlobalAvgPooling2d(_) => {
                    let [n, _, _, c] = image(input(0)?)?;
                    if node.flags & KEEP_DIMS != 0 { shape([n, 1, 1, c]) } else { shape([n, c]) }
                }
                _ => input(0).copied(),
            },
            Fields::Binary(node) => match self {
                Self::BatchMatrixMultiply(_) => {
                    batch_product(input(0)?, input(1)?, node.flags & TRANSPOSE_WEIGHTS != 0)
                }
                _ => broadcast(input(0)?.dims(), input(1)?.dims()),
            },
            Fields::FullyConnected(node) => product(node, input(0)?, input(1)?, inputs.get(2)),
            Fields::Convolution(node) => match self {
                Self::ConvTranspose2d(_) => transposed(node, input(0)?, input(1)?, inputs.get(2)),
                Self::DepthwiseConv2d(_) => convolution(node, true, input(0)?, input(1)?, inputs.get(2)),
                _ => convolution(node, false, input(0)?, input(1)?, inputs.get(2)),
            },
            Fields::Pooling(node) => {
                let is_max = matches!(self, Self::MaxPooling2d(_));
                let window = Window {
                    kernel: [node.pooling_height, node.pooling_width],
                    stride: [node.stride_height, node.stride_width],
                    // Means have none, and exporters write 0.
                    dilation: if is_max { [node.dilation_height, node.dilation_width] } else { [1, 1] },
                    padding: [[node.padding_top, node.padding_bottom], [node.padding_left, node.padding_right]],
                    is_same: node.flags & SAME_PADDING != 0,
                };
                let beyond = window.stride.iter().zip(&window.kernel).any(|(stride, kernel)| stride > kernel);
                if is_max && beyond {
                    let (stride, kernel) = (window.stride, window.kernel);
                    return error(ShapeProblem::Sizes, format!("strides {stride:?} beyond windows of {kernel:?}"));
                }
                pooled(&window, input(0)?)
            }
            Fields::ArgMaxPooling(node) => {
                let kernel = [node.pooling_height, node.pooling_width];
                let window = Window {
                    kernel,
                    stride: kernel,
                    dilation: [1, 1],
                    padding: [[node.padding_top, node.padding_bottom], [node.padding_left, node.padding_right]],
                    is_same: node.flags & SAME_PADDING != 0,
                };
                pooled(&window, input(0)?)
            }
            Fields::Concatenate(node, _) => concatenate(node, inputs),
            Fields::Transpose(node) => permute(node, input(0)?),
            Fields::Reshape(node) => reshape(node, input(0)?),
            Fields::Slice(node) => slice(node, input(0)?),
            Fields::Pad(node) => pad(node, input(0)?),
            Fields::Resize(node) => {
                let [n, _, _, c] = image(input(0)?)?;
                match (node.new_height, node.new_width) {
                    (0, _) | (_, 0) => error(ShapeProblem::Sizes, "an image without pixels".to_string()),
                    (height, width) => shape([n, height.into(), width.into(), c]),
                }
            }
            Fields::LeakyReLU(_) | Fields::ELU(_) => input(0).copied(),
            Fields::Attention(_) => attention(input(0)?, input(1)?, input(2)?),
            Fields::Unknown(tag) => error(ShapeProblem::Inputs, format!("kind {tag} is not known")),
        }
    }

    /// Elements of windows times pixels of the result: entries of a table of places, for nodes that walk over windows.
    pub fn window_entries(&self, result: &Shape) -> Option<u64> {
        let (height, width) = match self.fields() {
            Fields::Convolution(node) => (node.kernel_height, node.kernel_width),
            Fields::Pooling(node) => (node.pooling_height, node.pooling_width),
            Fields::ArgMaxPooling(node) => (node.pooling_height, node.pooling_width),
            _ => return Some(0),
        };
        let cells = u64::from(height).checked_mul(width.into())?;
        let pixels = result.dims().get(1..3).unwrap_or_default();
        pixels.iter().try_fold(cells, |product, size| product.checked_mul(u64::from(*size)))
    }
}

fn image(shape: &Shape) -> Result<[u64; 4]> {
    match shape.dims() {
        [n, h, w, c] => Ok([n, h, w, c].map(|size| u64::from(*size))),
        dims => error(ShapeProblem::Inputs, format!("{dims:?} is not an image")),
    }
}

/// Windows over an image, by height and width.
struct Window {
    kernel: [u32; 2],
    stride: [u32; 2],
    dilation: [u32; 2],
    /// In front and behind.
    padding: [[u32; 2]; 2],
    is_same: bool,
}

impl Window {
    /// Pixels of the result along one dimension.
    fn count(size: u64, kernel: u32, stride: u32, dilation: u32, padding: [u32; 2], is_same: bool) -> Result<u64> {
        if kernel == 0 || stride == 0 || dilation == 0 {
            let message = format!("kernel {kernel}, stride {stride}, dilation {dilation}");
            return error(ShapeProblem::Sizes, message);
        }
        let stride = u64::from(stride);
        if is_same {
            return Ok(size.div_ceil(stride));
        }
        let reach = u64::from(kernel.saturating_sub(1)).saturating_mul(dilation.into()).saturating_add(1);
        let padded = padding.iter().fold(size, |size, padding| size.saturating_add(u64::from(*padding)));
        Ok(padded.saturating_sub(reach).checked_div(stride).unwrap_or(0).saturating_add(1))
    }

    fn counts(&self, height: u64, width: u64) -> Result<[u64; 2]> {
        let ([kh, kw], [sh, sw], [dh, dw], [ph, pw]) = (self.kernel, self.stride, self.dilation, self.padding);
        let rows = Self::count(height, kh, sh, dh, ph, self.is_same)?;
        Ok([rows, Self::count(width, kw, sw, dw, pw, self.is_same)?])
    }
}

fn pooled(window: &Window, input: &Shape) -> Result<Shape> {
    let [n, h, w, c] = image(input)?;
    let [rows, columns] = window.counts(h, w)?;
    shape([n, rows, columns, c])
}

fn product(node: &FullyConnected, input: &Shape, filter: &Shape, bias: Option<&Shape>) -> Result<Shape> {
    let (outputs, inputs) = match filter.dims() {
        [k, n] if node.flags & TRANSPOSE_WEIGHTS != 0 => (*n, *k),
        [n, k] => (*n, *k),
        dims => return error(ShapeProblem::Weights, format!("weights of {dims:?} are not a matrix")),
    };
    let Some((last, rows)) = input.dims().split_last() else {
        return error(ShapeProblem::Inputs, "a number is not a row".to_string());
    };
    if *last != inputs {
        return error(ShapeProblem::Weights, format!("rows of {last}, the weights take {inputs}"));
    }
    bias_of(bias, outputs.into())?;
    let rows = rows.iter().try_fold(Shape::default(), |shape, dim| push(shape, *dim))?;
    push(rows, outputs)
}

fn bias_of(bias: Option<&Shape>, channels: u64) -> Result<()> {
    match bias.map(Shape::dims) {
        Some([have]) if u64::from(*have) == channels => Ok(()),
        Some(dims) => error(ShapeProblem::Weights, format!("a bias of {dims:?} for {channels} channels")),
        None => Ok(()),
    }
}

/// The filter of a convolution, and what it makes of channels.
struct Channels {
    filter: [u64; 4],
    inputs: u64,
    outputs: u64,
}

fn channels(node: &NodeConv, is_depthwise: bool) -> Result<Channels> {
    let numbers = [node.groups, node.group_input_channels, node.group_output_channels];
    let [groups, inputs, outputs] = numbers.map(u64::from);
    if numbers.contains(&0) {
        let message = format!("{groups} groups of {inputs} channels to {outputs}");
        return error(ShapeProblem::Sizes, message);
    }
    let (height, width) = (node.kernel_height.into(), node.kernel_width.into());
    let all_outputs = groups.saturating_mul(outputs);
    if !is_depthwise {
        let all_inputs = groups.saturating_mul(inputs);
        return Ok(Channels { filter: [all_outputs, height, width, inputs], inputs: all_inputs, outputs: all_outputs });
    }
    match (outputs.checked_div(inputs), outputs.checked_rem(inputs)) {
        (Some(multiplier), Some(0)) => {
            let outputs = groups.saturating_mul(multiplier);
            Ok(Channels { filter: [1, height, width, outputs], inputs: groups, outputs })
        }
        _ => error(ShapeProblem::Sizes, format!("{inputs} channels to {outputs} in each group")),
    }
}

fn check_weights(want: &Channels, input: u64, filter: &Shape, bias: Option<&Shape>) -> Result<()> {
    let is_same =
        filter.rank() == 4 && filter.dims().iter().zip(want.filter).all(|(have, want)| u64::from(*have) == want);
    if !is_same {
        let message = format!("weights of {:?}, {:?} are asked for", filter.dims(), want.filter);
        return error(ShapeProblem::Weights, message);
    }
    if input != want.inputs {
        return error(ShapeProblem::Weights, format!("{input} channels, the node takes {}", want.inputs));
    }
    bias_of(bias, want.outputs)
}

fn convolution(
    node: &NodeConv,
    is_depthwise: bool,
    input: &Shape,
    filter: &Shape,
    bias: Option<&Shape>,
) -> Result<Shape> {
    let [n, h, w, c] = image(input)?;
    let want = channels(node, is_depthwise)?;
    let window = Window {
        kernel: [node.kernel_height, node.kernel_width],
        stride: [node.subsampling_height, node.subsampling_width],
        dilation: [node.dilation_height, node.dilation_width],
        padding: [[node.padding_top, node.padding_bottom], [node.padding_left, node.padding_right]],
        is_same: node.flags & SAME_PADDING != 0,
    };
    let [rows, columns] = window.counts(h, w)?;
    check_weights(&want, c, filter, bias)?;
    shape([n, rows, columns, want.outputs])
}

fn transposed(node: &NodeConv, input: &Shape, filter: &Shape, bias: Option<&Shape>) -> Result<Shape> {
    let [n, h, w, c] = image(input)?;
    let want = channels(node, false)?;
    let sides = [
        (h, node.kernel_height, node.subsampling_height, node.dilation_height, node.adjustment_height),
        (w, node.kernel_width, node.subsampling_width, node.dilation_width, node.adjustment_width),
    ];
    let paddings = [[node.padding_top, node.padding_bottom], [node.padding_left, node.padding_right]];
    let mut sizes = [0u64; 2];
    for ((size, (input, kernel, stride, dilation, adjust)), padding) in sizes.iter_mut().zip(sides).zip(paddings) {
        if kernel == 0 || stride == 0 || dilation == 0 {
            let message = format!("kernel {kernel}, stride {stride}, dilation {dilation}");
            return error(ShapeProblem::Sizes, message);
        }
        let reach = u64::from(kernel.saturating_sub(1)).saturating_mul(dilation.into());
        let steps = input.saturating_sub(1).saturating_mul(stride.into());
        let whole = steps.saturating_add(adjust.into()).saturating_add(reach).saturating_add(1);
        *size = padding.iter().fold(whole, |size, padding| size.saturating_sub(u64::from(*padding)));
    }
    check_weights(&want, c, filter, bias)?;
    let [rows, columns] = sizes;
    shape([n, rows, columns, want.outputs])
}

fn broadcast(a: &[u32], b: &[u32]) -> Result<Shape> {
    let rank = a.len().max(b.len());
    let at = |dims: &[u32], place: usize| {
        let absent = rank.saturating_sub(dims.len());
        place.checked_sub(absent).and_then(|place| dims.get(place)).copied().unwrap_or(1)
    };
    let mut shape = Shape::default();
    for place in 0..rank {
        let dim = match (at(a, place), at(b, place)) {
            (a, b) if a == b => a,
            (1, dim) | (dim, 1) => dim,
            _ => return error(ShapeProblem::Inputs, format!("{a:?} and {b:?} cannot be broadcast")),
        };
        shape = push(shape, dim)?;
    }
    Ok(shape)
}

fn batch_product(a: &Shape, b: &Shape, is_transposed: bool) -> Result<Shape> {
    let unfit = || error(ShapeProblem::Inputs, format!("{:?} and {:?} cannot be multiplied", a.dims(), b.dims()));
    let (Some((a_batch, [m, k])), Some((b_batch, [rows, columns]))) =
        (a.dims().split_last_chunk::<2>(), b.dims().split_last_chunk::<2>())
    else {
        return unfit();
    };
    let (inner, n) = if is_transposed { (columns, rows) } else { (rows, columns) };
    if k != inner {
        return unfit();
    }
    push(push(broadcast(a_batch, b_batch)?, *m)?, *n)
}

fn attention(query: &Shape, key: &Shape, value: &Shape) -> Result<Shape> {
    match (query.dims(), key.dims(), value.dims()) {
        ([b, h, t, d], [_, _, u, other], [_, _, answers, last]) if d == other && u == answers => {
            shape([b, h, t, last].map(|size| u64::from(*size)))
        }
        dims => error(ShapeProblem::Inputs, format!("{dims:?}")),
    }
}

fn concatenate(node: &Cat, inputs: &[Shape]) -> Result<Shape> {
    let Some(first) = inputs.first() else { return error(ShapeProblem::Inputs, "nothing".to_string()) };
    let axis = usize::try_from(node.axis).unwrap_or(usize::MAX);
    if axis >= first.rank() {
        return error(ShapeProblem::Lists, format!("axis {axis} of {} dimensions", first.rank()));
    }
    let mut sum = 0u64;
    for input in inputs {
        let differs = |(place, (a, b)): (usize, (&u32, &u32))| place != axis && a != b;
        if input.rank() != first.rank() || first.dims().iter().zip(input.dims()).enumerate().any(differs) {
            return error(ShapeProblem::Inputs, format!("{:?} behind {:?}", input.dims(), first.dims()));
        }
        sum = sum.saturating_add(input.dims().get(axis).copied().unwrap_or(0).into());
    }
    let sum = dim(sum)?;
    let dims = first.dims().iter().enumerate().map(|(place, dim)| if place == axis { sum } else { *dim });
    dims.into_iter().try_fold(Shape::default(), push)
}

/// A list with a number for every dimension.
fn listed(name: &str, list: &Option<Scalars<'_, u32>>, rank: usize) -> Result<Shape> {
    let have = list.as_ref().map_or(0, Scalars::len);
    match Shape::new(list.iter().flat_map(|list| list.iter())) {
        Some(list) if list.rank() == rank => Ok(list),
        _ => error(ShapeProblem::Lists, format!("{have} {name} for {rank} dimensions")),
    }
}

fn declared_rank(num_dims: u32, rank: usize) -> Result<()> {
    match u64::from(num_dims) == rank as u64 {
        true => Ok(()),
        false => error(ShapeProblem::Lists, format!("num_dims is {num_dims} for {rank} dimensions")),
    }
}

fn permute(node: &StaticTranspose<'_>, input: &Shape) -> Result<Shape> {
    declared_rank(node.num_dims, input.rank())?;
    let perm = listed("perm", &node.perm, input.rank())?;
    let mut seen = [false; MAX_RANK];
    let mut shape = Shape::default();
    for place in perm.dims() {
        let place = usize::try_from(*place).unwrap_or(usize::MAX);
        let (Some(dim), Some(seen)) = (input.dims().get(place), seen.get_mut(place)) else {
            return error(ShapeProblem::Lists, format!("{:?} is not a permutation", perm.dims()));
        };
        if core::mem::replace(seen, true) {
            return error(ShapeProblem::Lists, format!("{:?} is not a permutation", perm.dims()));
        }
        shape = push(shape, *dim)?;
    }
    Ok(shape)
}

fn reshape(node: &StaticReshape<'_>, input: &Shape) -> Result<Shape> {
    let rank = node.new_shape.as_ref().map_or(0, Scalars::len);
    declared_rank(node.num_dims, rank)?;
    let new = listed("new_shape", &node.new_shape, rank)?;
    let unfit = || error(ShapeProblem::Reshape, format!("{:?} to {:?}", input.dims(), new.dims()));
    let open = new.dims().iter().filter(|dim| **dim == 0).count();
    let mut known = new.dims().iter().filter(|dim| **dim != 0);
    let known = known.try_fold(1u64, |product, dim| product.checked_mul((*dim).into()));
    let (Some(elements), Some(known)) = (input.elements(), known) else { return unfit() };
    let left = match open {
        0 if elements == known => return Ok(new),
        1 if elements.checked_rem(known) == Some(0) => elements.checked_div(known).unwrap_or(0),
        _ => return unfit(),
    };
    let left = dim(left)?;
    let dims = new.dims().iter().map(|dim| if *dim == 0 { left } else { *dim });
    dims.into_iter().try_fold(Shape::default(), push)
}

fn slice(node: &StaticSlice<'_>, input: &Shape) -> Result<Shape> {
    declared_rank(node.num_dims, input.rank())?;
    let offsets = listed("offsets", &node.offsets, input.rank())?;
    let sizes = listed("sizes", &node.sizes, input.rank())?;
    let parts = input.dims().iter().zip(offsets.dims()).zip(sizes.dims());
    // Elements beyond the end are cut off.
    let dims = parts.map(|((dim, offset), size)| match (dim.saturating_sub(*offset), size) {
        (left, 0) => left,
        (left, size) => left.min(*size),
    });
    dims.into_iter().try_fold(Shape::default(), push)
}

fn pad(node: &StaticConstantPad<'_>, input: &Shape) -> Result<Shape> {
    let before = listed("pre_paddings", &node.pre_paddings, input.rank())?;
    let after = listed("post_paddings", &node.post_paddings, input.rank())?;
    let mut shape = Shape::default();
    for ((size, before), after) in input.dims().iter().zip(before.dims()).zip(after.dims()) {
        let padded = [*size, *before, *after].iter().fold(0u64, |sum, part| sum.saturating_add((*part).into()));
        shape = push(shape, dim(padded)?)?;
    }
    Ok(shape)
}
