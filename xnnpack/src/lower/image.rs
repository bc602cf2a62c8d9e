//! Nodes that walk windows over images `[N, H, W, C]`.

use edgepack_executor::delegate::Local;
use edgepack_executor::kernel::KernelError;
use edgepack_format::finding::ErrorCode;
use edgepack_format::tensor::TensorLayout;
use edgepack_format::xnnpack::{
    Datatype, Node, NodeConv, NodeUnion, Pooling2D, SAME_PADDING, Shape, StaticResizeBilinear2D,
};
use edgepack_loader::AlignedBytes;

use super::float::is_float;
use super::values::{Lowered, scalar_type};
use super::{Lowering, Made, refused};

/// Aligns corners of an image and of the resized one.
const ALIGN_CORNERS: u32 = 8;

impl Lowering<'_> {
    pub(super) fn convolution(
        &mut self,
        node: &Node<'_>,
        union: &NodeUnion<'_>,
        fields: &NodeConv,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        if fields.flags & SAME_PADDING != 0 {
            return Err(refused("it pads by itself"));
        }
        let (x, w) = (inputs[0], inputs[1]);
        if !is_float(x.datatype) || !is_float(w.datatype) {
            return self.convolution_bytes(node, union, fields, inputs, made);
        }
        if x.datatype != w.datatype && (x.datatype, w.datatype) != (Datatype::FP16, Datatype::FP32) {
            return Err(refused("its elements are of several types"));
        }
        let weights = self.weights(union, fields, Lowered { datatype: x.datatype, ..w })?;
        let bias = self.float_bias(inputs)?;
        let transposed = matches!(union, NodeUnion::ConvTranspose2d(_));
        let sides = [[fields.padding_top, fields.padding_bottom], [fields.padding_left, fields.padding_right]];
        let is_even = sides.iter().all(|[before, after]| before == after);
        if transposed && !is_even {
            return Err(refused("its padding differs from side to side"));
        }
        let (x, padding) = match is_even {
            true => (x, [fields.padding_top, fields.padding_left]),
            false => (self.padded(x, sides, 0.0)?, [0, 0]),
        };
        let out = self.values.make(made)?;
        let image = self.values.image(x, self.node)?;
        self.bounded_image(node, out, |this, target| {
            let all = this.values.all();
            let stride = all.ints(&[fields.subsampling_height.into(), fields.subsampling_width.into()]);
            let padding = all.ints(&padding.map(i64::from));
            let dilation = all.ints(&[fields.dilation_height.into(), fields.dilation_width.into()]);
            let is_transposed = all.bool(transposed);
            let adjust = all.ints(&[fields.adjustment_height.into(), fields.adjustment_width.into()]);
            let groups = all.int(fields.groups.into());
            let args = [image, weights, bias, stride, padding, dilation, is_transposed, adjust, groups, target];
            this.values.call("aten::convolution.out", &args, this.node)
        })
    }

    /// Where an image with an activation goes first: `compute` writes it, and the bounds follow. They do so in the order of
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

    /// Weights as the library's convolution takes them; their bytes stay where they are.
    fn weights(&mut self, union: &NodeUnion<'_>, fields: &NodeConv, w: Lowered) -> Result<Local, KernelError> {
        if !self.values.is_constant(w.index) {
            return Err(refused("its weights are not constant"));
        }
        let [a, height, width, d] = w.shape.dims() else { return Err(refused("weights have four dimensions")) };
        let [a, height, width, d] = [a, height, width, d].map(|size| *size as usize);
        let (sizes, order) = match union {
            // `[1, kh, kw, channels]`.
            NodeUnion::DepthwiseConv2d(_) => ([d, 1, height, width], [1, 2, 3, 0]),
            // `[outputs, kh, kw, inputs]`, of which the library takes inputs first.
            NodeUnion::ConvTranspose2d(_) if fields.groups == 1 => ([d, a, height, width], [1, 2, 3, 0]),
            NodeUnion::ConvTranspose2d(_) if w.datatype == Datatype::FP32 => {
                return self.regrouped(fields.groups as usize, w);
            }
            NodeUnion::ConvTranspose2d(_) => {
                return Err(refused("a transposed convolution in groups of half precision"));
            }
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
        let from = self.values.bytes(w.index, layout.byte_len())?;
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
    fn padded(&mut self, x: Lowered, sides: [[u32; 2]; 2], value: f64) -> Result<Lowered, KernelError> {
        let [n, h, w, c] = x.shape.dims() else { return Err(refused("an image has four dimensions")) };
        let [[top, bottom], [left, right]] = sides;
        let add = |sum: u32, more: u32| sum.checked_add(more).ok_or_else(|| refused("padding beyond all sizes"));
        let dims = [*n, add(add(*h, top)?, bottom)?, add(add(*w, left)?, right)?, *c];
        let shape = Shape::new(dims).unwrap_or_default();
        let local = self.values.temporary(x.datatype, &shape, x.dynamic)?;
        let all = self.values.all();
        let pads = all.ints(&[0, 0, left.into(), right.into(), top.into(), bottom.into()]);
        let value = if is_float(x.datatype) { all.double(value) } else { all.int(value as i64) };
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
        if fields.flags & SAME_PADDING != 0 {
            return Err(refused("it pads by itself"));
        }
        let x = inputs[0];
        self.expect_same_meaning(inputs, made)?;
        let is_max = matches!(union, NodeUnion::MaxPooling2d(_));
        let sides = [[fields.padding_top, fields.padding_bottom], [fields.padding_left, fields.padding_right]];
        let is_even = sides.iter().all(|[before, after]| before == after);
        // The library pads by half a window at the most.
        let is_little =
            fields.padding_top <= fields.pooling_height / 2 && fields.padding_left <= fields.pooling_width / 2;
        let (x, padding) = match (is_even && is_little, is_max) {
            (true, _) => (x, [fields.padding_top, fields.padding_left]),
            (false, true) => {
                let least = if is_float(x.datatype) { f64::NEG_INFINITY } else { -128.0 };
                (self.padded(x, sides, least)?, [0, 0])
            }
            (false, false) => return Err(refused("its padding differs from side to side")),
        };
        if !is_max && !is_float(x.datatype) {
            return Err(refused("its input is quantised"));
        }
        let out = self.values.make(made)?;
        let image = self.values.image(x, self.node)?;
        let (kernel, stride) = (
            [fields.pooling_height, fields.pooling_width].map(i64::from),
            [fields.stride_height, fields.stride_width].map(i64::from),
        );
        let compute = |this: &mut Self, to: Lowered| {
            let target = this.values.image_out(to)?;
            let all = this.values.all();
            let (kernel, stride, padding) = (all.ints(&kernel), all.ints(&stride), all.ints(&padding.map(i64::from)));
            let ceil = all.bool(false);
            if is_max {
                let dilation = all.ints(&[fields.dilation_height.into(), fields.dilation_width.into()]);
                let indices = this.values.indices(&to)?;
                let args = [image, kernel, stride, padding, dilation, ceil, target, indices];
                this.values.call("aten::max_pool2d_with_indices.out", &args, this.node)?;
            } else {
                let (counted, divisor) = (all.bool(false), all.none());
                let args = [image, kernel, stride, padding, ceil, counted, divisor, target];
                this.values.call("aten::avg_pool2d.out", &args, this.node)?;
            }
            this.values.image_made(to, target, this.node);
            Ok(())
        };
        match is_float(x.datatype) {
            true => self.bounded(node, out, compute),
            // Bounds are those of the input's numbers.
            false if node.bounds() == (f32::NEG_INFINITY, f32::INFINITY) => compute(self, out),
            false => Err(refused("it is quantised and has bounds")),
        }
    }

    pub(super) fn resize(
        &mut self,
        fields: &StaticResizeBilinear2D,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        let x = inputs[0];
        if x.datatype != Datatype::FP32 && x.datatype != Datatype::FP16 {
            return Err(refused("its input is quantised"));
        }
        if fields.flags & !ALIGN_CORNERS != 0 {
            return Err(refused("corners are not where this library has them"));
        }
        let out = self.values.make(made)?;
        let image = self.values.image(x, self.node)?;
        let target = self.values.image_out(out)?;
        let all = self.values.all();
        let size = all.ints(&[fields.new_height.into(), fields.new_width.into()]);
        let (align, factors) = (all.bool(fields.flags & ALIGN_CORNERS != 0), all.none());
        let args = [image, size, align, factors, target];
        self.values.call("aten::upsample_bilinear2d.vec_out", &args, self.node)?;
        self.values.image_made(out, target, self.node);
        Ok(())
    }
}
