//! Nodes that walk windows over images `[N, H, W, C]`.

use edgepack_compute::qconv::Windows;
use edgepack_executor::delegate::Local;
use edgepack_executor::kernel::KernelError;
use edgepack_format::finding::ErrorCode;
use edgepack_format::tensor::TensorLayout;
use edgepack_format::xnnpack::{
    ArgMaxPooling2d, Datatype, Node, NodeConv, NodeUnion, Pooling2D, SAME_PADDING, Shape, StaticResizeBilinear2D,
};
use edgepack_loader::AlignedBytes;

use super::values::{Lowered, scalar_type};
use super::{Lowering, Made, refused};
use crate::operators::pool;
use crate::operators::resize::{Corners, bilinear};

/// Aligns corners of an image and of the resized one.
const ALIGN_CORNERS: u32 = 8;

/// Aligns the first pixels alone.
const LEGACY_CORNERS: u32 = 4;

/// Padding in front and behind, by height and width.
type Sides = [[usize; 2]; 2];

fn pair(height: u32, width: u32) -> [usize; 2] {
    [height as usize, width as usize]
}

/// Windows of a node over an image. A node that pads by itself makes `ceil(size / stride)` pixels, and pads the end with
/// what is odd.
fn windows_over(x: &Lowered, stated: Windows, pads_itself: bool) -> Result<Windows, KernelError> {
    if !pads_itself {
        return Ok(stated);
    }
    if x.dynamic {
        return Err(refused("it pads by itself, and sizes of its input change"));
    }
    let [_, height, width, _] = *x.shape.dims() else { return Err(refused("an image has four dimensions")) };
    let sizes = pair(height, width);
    let padding = [0, 1].map(|side| {
        let reach = (stated.kernel[side] - 1) * stated.dilation[side] + 1;
        let count = sizes[side].div_ceil(stated.stride[side]);
        let all = (count.saturating_sub(1) * stated.stride[side] + reach).saturating_sub(sizes[side]);
        [all / 2, all - all / 2]
    });
    Ok(Windows { padding, ..stated })
}

/// Windows of a pooling node.
fn pooled(x: &Lowered, fields: &Pooling2D, is_max: bool) -> Result<Windows, KernelError> {
    let stated = Windows {
        kernel: pair(fields.pooling_height, fields.pooling_width),
        stride: pair(fields.stride_height, fields.stride_width),
        dilation: if is_max { pair(fields.dilation_height, fields.dilation_width) } else { [1, 1] },
        padding: [pair(fields.padding_top, fields.padding_bottom), pair(fields.padding_left, fields.padding_right)],
        groups: 1,
    };
    windows_over(x, stated, fields.flags & SAME_PADDING != 0)
}

fn is_even(padding: Sides) -> bool {
    padding.iter().all(|[before, after]| before == after)
}

impl Lowering<'_> {
    pub(super) fn convolution(
        &mut self,
        node: &Node<'_>,
        union: &NodeUnion<'_>,
        fields: &NodeConv,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        let (x, w) = (inputs[0], inputs[1]);
        let transposed = matches!(union, NodeUnion::ConvTranspose2d(_));
        let pads_itself = fields.flags & SAME_PADDING != 0;
        if transposed && pads_itself {
            return Err(refused("it is transposed and pads by itself"));
        }
        let stated = Windows {
            kernel: pair(fields.kernel_height, fields.kernel_width),
            stride: pair(fields.subsampling_height, fields.subsampling_width),
            dilation: pair(fields.dilation_height, fields.dilation_width),
            padding: [pair(fields.padding_top, fields.padding_bottom), pair(fields.padding_left, fields.padding_right)],
            groups: fields.groups as usize,
        };
        let windows = windows_over(&x, stated, pads_itself)?;
        if !x.datatype.is_float() || !w.datatype.is_float() {
            return self.convolution_bytes(node, union, fields, windows, inputs, made);
        }
        if x.datatype != w.datatype && (x.datatype, w.datatype) != (Datatype::FP16, Datatype::FP32) {
            return Err(refused("its elements are of several types"));
        }
        let weights = self.weights(union, fields, Lowered { datatype: x.datatype, ..w })?;
        let bias = self.float_bias(inputs)?;
        let (from, padding) = match (is_even(windows.padding), transposed) {
            (false, false) => (self.padded(x, windows.padding, 0.0)?, [0, 0]),
            _ => (x, windows.padding.map(|[before, after]| before.min(after))),
        };
        let out = self.values.make(made)?;
        let image = self.values.image(from, self.node)?;
        let call = Convolution { image, weights, bias, padding, windows, fields, transposed };
        match is_even(windows.padding) || !transposed {
            true => self.bounded_image(node, out, |this, target| this.convolved(&call, target)),
            false => self.bounded(node, out, |this, to| this.trimmed(&call, to)),
        }
    }

    /// Lowers an image with an activation: `compute` writes it, and the bounds follow. They do so in the order of
    /// the image, so that they may become part of what computes it.
    fn bounded_image(
        &mut self,
        node: &Node<'_>,
        out: Lowered,
        compute: impl FnOnce(&mut Self, Local) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let bounds = node.bounds();
        if !out.dynamic && bounds != (f32::NEG_INFINITY, f32::INFINITY) {
            let image = self.values.temporary_image(out)?;
            compute(self, image)?;
            let target = self.values.image_out(out)?;
            return self.clamp(bounds, image, target);
        }
        self.bounded(node, out, |this, to| {
            let target = this.values.image_out(to)?;
            compute(this, target)?;
            this.values.image_made(to, target, this.node);
            Ok(())
        })
    }

    /// Calls the library's convolution.
    fn convolved(&mut self, call: &Convolution<'_>, target: Local) -> Result<(), KernelError> {
        let numbers = |pair: [usize; 2]| pair.map(|number| number as i64);
        let all = self.values.all();
        let (stride, padding) = (all.ints(&numbers(call.windows.stride)), all.ints(&numbers(call.padding)));
        let dilation = all.ints(&numbers(call.windows.dilation));
        let is_transposed = all.bool(call.transposed);
        let adjust = all.ints(&[call.fields.adjustment_height.into(), call.fields.adjustment_width.into()]);
        let groups = all.int(call.fields.groups.into());
        let (image, weights, bias) = (call.image, call.weights, call.bias);
        let args = [image, weights, bias, stride, padding, dilation, is_transposed, adjust, groups, target];
        self.values.call("aten::convolution.out", &args, self.node)
    }

    /// A transposed convolution that is cut more on one side than on the other: the rest is cut off its result.
    fn trimmed(&mut self, call: &Convolution<'_>, to: Lowered) -> Result<(), KernelError> {
        let [n, height, width, c] = *to.shape.dims() else { return Err(refused("an image has four dimensions")) };
        let more = call.windows.padding.map(|[before, after]| before.abs_diff(after) as u32);
        let add = |size: u32, more: u32| size.checked_add(more).ok_or_else(|| refused("padding beyond all sizes"));
        let shape = Shape::new([n, add(height, more[0])?, add(width, more[1])?, c]).unwrap_or_default();
        let local = self.values.temporary(to.datatype, &shape, to.dynamic)?;
        let whole = Lowered { local, shape, writable: true, ..to };
        let target = self.values.image_out(whole)?;
        self.convolved(call, target)?;
        self.values.image_made(whole, target, self.node);
        let first = call.windows.padding.map(|[before, after]| before.saturating_sub(after) as u32);
        let last = call.windows.padding.map(|[before, after]| after.saturating_sub(before) as u32);
        self.cut(whole, &[0, first[0], first[1], 0], &[0, last[0], last[1], 0], to)
    }

    /// Weights as the library's convolution takes them; their bytes stay where they are.
    fn weights(&mut self, union: &NodeUnion<'_>, fields: &NodeConv, w: Lowered) -> Result<Local, KernelError> {
        self.expect_constant(w)?;
        let [a, height, width, d] = w.shape.dims() else { return Err(refused("weights have four dimensions")) };
        let [a, height, width, d] = [a, height, width, d].map(|size| *size as usize);
        let (sizes, order) = match union {
            // `[1, kh, kw, channels]`.
            NodeUnion::DepthwiseConv2d(_) => ([d, 1, height, width], [1, 2, 3, 0]),
            // `[outputs, kh, kw, inputs]`, of which the library takes inputs first.
            NodeUnion::ConvTranspose2d(_) if fields.groups == 1 => ([d, a, height, width], [1, 2, 3, 0]),
            NodeUnion::ConvTranspose2d(_) => return self.regrouped(fields.groups as usize, w),
            _ => ([a, d, height, width], [0, 2, 3, 1]),
        };
        let layout = TensorLayout::new(scalar_type(w.datatype)?, &sizes, &order);
        self.values.constant(w.index, layout.map_err(|error| refused(error.to_string()))?)
    }

    /// Weights `[groups * Co, kh, kw, Ci]` of a transposed convolution as the library takes them:
    /// `[groups * Ci, Co, kh, kw]`. No order of dimensions says both, so they are copied.
    fn regrouped(&mut self, groups: usize, w: Lowered) -> Result<Local, KernelError> {
        let [all, height, width, inputs] = w.shape.dims() else { return Err(refused("weights have four dimensions")) };
        let [all, height, width, inputs] = [all, height, width, inputs].map(|size| *size as usize);
        let outputs = all.checked_div(groups).ok_or_else(|| refused("no groups"))?;
        let dtype = scalar_type(w.datatype)?;
        let size = dtype.size().unwrap_or(1);
        let layout = TensorLayout::contiguous(dtype, &[groups * inputs, outputs, height, width]);
        let layout = layout.map_err(|error| refused(error.to_string()))?;
        let from = self.values.elements(w.index, &layout)?;
        self.values.reserve(layout.byte_len())?;
        let to = AlignedBytes::zeroed(layout.byte_len());
        let mut to = to.ok_or_else(|| KernelError::new(ErrorCode::MemoryAllocationFailed, "no memory for weights"))?;
        let bytes = to.as_mut_slice();
        let taps = height * width;
        for (row, elements) in from.chunks_exact((taps * inputs * size).max(1)).enumerate() {
            let (group, output) = (row / outputs, row % outputs);
            for (place, element) in elements.chunks_exact(size).enumerate() {
                let (tap, input) = (place / inputs, place % inputs);
                let at = (((group * inputs + input) * outputs + output) * taps + tap) * size;
                bytes[at..at + size].copy_from_slice(element);
            }
        }
        Ok(self.values.all().constant(layout, to.into()))
    }

    /// An image with a number around it.
    fn padded(&mut self, x: Lowered, sides: Sides, value: f64) -> Result<Lowered, KernelError> {
        let [n, h, w, c] = x.shape.dims() else { return Err(refused("an image has four dimensions")) };
        let add = |sum: u32, more: usize| {
            let sum = u32::try_from(more).ok().and_then(|more| sum.checked_add(more));
            sum.ok_or_else(|| refused("padding beyond all sizes"))
        };
        let [[top, bottom], [left, right]] = sides;
        let dims = [*n, add(add(*h, top)?, bottom)?, add(add(*w, left)?, right)?, *c];
        let shape = Shape::new(dims).unwrap_or_default();
        let local = self.values.temporary(x.datatype, &shape, x.dynamic)?;
        let all = self.values.all();
        let pads = all.ints(&[0, 0, left as i64, right as i64, top as i64, bottom as i64]);
        let value = if x.datatype.is_float() { all.double(value) } else { all.int(value as i64) };
        self.values.call("aten::constant_pad_nd.out", &[x.local, pads, value, local], self.node)?;
        Ok(Lowered { local, shape, writable: true, index: usize::MAX, ..x })
    }

    pub(super) fn pooling(
        &mut self,
        node: &Node<'_>,
        union: &NodeUnion<'_>,
        fields: &Pooling2D,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        let x = inputs[0];
        self.expect_same_meaning(inputs, made)?;
        let is_max = matches!(union, NodeUnion::MaxPooling2d(_));
        if !is_max && !x.datatype.is_float() {
            return Err(refused("its input is quantised"));
        }
        let windows = pooled(&x, fields, is_max)?;
        if !x.datatype.is_float() {
            let bounds = self.bounds_of(node, self.values.per_tensor(x.index)?);
            let out = self.values.make(made)?;
            let operator = self.values.own(pool::greatest_bytes(windows, bounds.map(|bound| bound as i8)));
            self.values.all().call(operator, &[x.local, out.local], self.node);
            return Ok(());
        }
        // The library pads by half a window at the most.
        let is_little = (0..2).all(|side| windows.padding[side][0] <= windows.kernel[side] / 2);
        let (from, padding) = match (is_even(windows.padding) && is_little, is_max) {
            (true, _) => (x, windows.padding.map(|[before, _]| before)),
            (false, true) => (self.padded(x, windows.padding, f64::NEG_INFINITY)?, [0, 0]),
            (false, false) => return self.uneven_means(node, windows, x, made),
        };
        let out = self.values.make(made)?;
        let image = self.values.image(from, self.node)?;
        let compute = |this: &mut Self, to: Lowered| this.pooled(image, &windows, padding, is_max, to);
        self.bounded(node, out, compute)
    }

    /// Calls the library's pooling.
    fn pooled(
        &mut self,
        image: Local,
        windows: &Windows,
        padding: [usize; 2],
        is_max: bool,
        to: Lowered,
    ) -> Result<(), KernelError> {
        let target = self.values.image_out(to)?;
        let all = self.values.all();
        let mut numbers = |pair: [usize; 2]| all.ints(&pair.map(|number| number as i64));
        let (kernel, stride, padding) = (numbers(windows.kernel), numbers(windows.stride), numbers(padding));
        let dilation = numbers(windows.dilation);
        let ceil = all.bool(false);
        if is_max {
            let indices = self.values.indices(&to)?;
            let args = [image, kernel, stride, padding, dilation, ceil, target, indices];
            self.values.call("aten::max_pool2d_with_indices.out", &args, self.node)?;
        } else {
            let (counted, divisor) = (all.bool(false), all.none());
            let args = [image, kernel, stride, padding, ceil, counted, divisor, target];
            self.values.call("aten::avg_pool2d.out", &args, self.node)?;
        }
        self.values.image_made(to, target, self.node);
        Ok(())
    }

    fn uneven_means(&mut self, node: &Node<'_>, windows: Windows, x: Lowered, made: Made) -> Result<(), KernelError> {
        let out = self.values.make(made)?;
        self.bounded(node, out, |this, to| {
            let operator = this.values.own(pool::means(windows));
            this.values.all().call(operator, &[x.local, to.local], this.node);
            Ok(())
        })
    }

    /// Greatest elements, and their places.
    pub(super) fn greatest(
        &mut self,
        fields: &ArgMaxPooling2d,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        let x = inputs[0];
        let kernel = pair(fields.pooling_height, fields.pooling_width);
        let padding =
            [pair(fields.padding_top, fields.padding_bottom), pair(fields.padding_left, fields.padding_right)];
        let stated = Windows { kernel, stride: kernel, dilation: [1, 1], padding, groups: 1 };
        let windows = windows_over(&x, stated, fields.flags & SAME_PADDING != 0)?;
        let out = self.values.make(made)?;
        let places = self.values.make(Made { id: fields.output_index_id, ..made })?;
        let operator = self.values.own(pool::greatest(windows));
        self.values.all().call(operator, &[x.local, out.local, places.local], self.node);
        Ok(())
    }

    pub(super) fn resize(
        &mut self,
        fields: &StaticResizeBilinear2D,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        let x = inputs[0];
        self.expect_same_meaning(inputs, made)?;
        let corners = match fields.flags {
            0 => Corners::Squares,
            ALIGN_CORNERS => Corners::Both,
            LEGACY_CORNERS => Corners::First,
            _ => return Err(refused("its flags are not known")),
        };
        let out = self.values.make(made)?;
        if !x.datatype.is_float() || corners == Corners::First {
            let operator = self.values.own(bilinear(pair(fields.new_height, fields.new_width), corners));
            self.values.all().call(operator, &[x.local, out.local], self.node);
            return Ok(());
        }
        let image = self.values.image(x, self.node)?;
        let target = self.values.image_out(out)?;
        let all = self.values.all();
        let size = all.ints(&[fields.new_height.into(), fields.new_width.into()]);
        let (align, factors) = (all.bool(corners == Corners::Both), all.none());
        let args = [image, size, align, factors, target];
        self.values.call("aten::upsample_bilinear2d.vec_out", &args, self.node)?;
        self.values.image_made(out, target, self.node);
        Ok(())
    }
}

/// A call of the library's convolution.
struct Convolution<'c> {
    image: Local,
    weights: Local,
    bias: Local,
    padding: [usize; 2],
    windows: Windows,
    fields: &'c NodeConv,
    transposed: bool,
}
