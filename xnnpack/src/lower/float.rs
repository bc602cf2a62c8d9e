//! Nodes on numbers in floating point: element by element, products with weights, and means.

use edgepack_executor::delegate::Local;
use edgepack_executor::kernel::KernelError;
use edgepack_format::xnnpack::{
    Datatype, ELU, FullyConnected, KEEP_DIMS, LeakyReLU, Node, NodeUnion, TRANSPOSE_WEIGHTS,
};

use edgepack_kernels::{HARD_SWISH, PRELU};

use super::values::{Lowered, contiguous};
use super::{Lowering, Made, refused};
use crate::operators::float;

impl Lowering<'_> {
    /// A node with one input.
    pub(super) fn unary(
        &mut self,
        node: &Node<'_>,
        union: &NodeUnion<'_>,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        let x = inputs[0];
        match union {
            NodeUnion::Convert(_) => return self.convert(x, made),
            NodeUnion::Copy(_) => return self.copy(x, made),
            NodeUnion::GlobalAvgPooling2d(fields) => return self.mean(fields.flags & KEEP_DIMS != 0, x, made),
            _ if !x.datatype.is_float() => return self.unary_bytes(node, union, x, made),
            _ => {}
        }
        let out = self.values.make(made)?;
        if let NodeUnion::Softmax(_) = union {
            let (dim, half) = (self.values.all().int(-1), self.values.all().bool(false));
            return self.values.call("aten::_softmax.out", &[x.local, dim, half, out.local], self.node);
        }
        let ([from], to) = self.values.element_wise([x], out)?;
        let same = |this: &mut Self, name| this.values.call(name, &[from, to], this.node);
        match union {
            NodeUnion::Clamp(_) => self.clamp(node.bounds(), from, to),
            NodeUnion::Sigmoid(_) => same(self, "aten::sigmoid.out"),
            NodeUnion::Tanh(_) => same(self, "aten::tanh.out"),
            NodeUnion::Exp(_) => same(self, "aten::exp.out"),
            NodeUnion::Log(_) => same(self, "aten::log.out"),
            NodeUnion::Sin(_) => same(self, "aten::sin.out"),
            NodeUnion::Cos(_) => same(self, "aten::cos.out"),
            NodeUnion::Abs(_) => same(self, "aten::abs.out"),
            NodeUnion::Negate(_) => same(self, "aten::neg.out"),
            NodeUnion::Floor(_) => same(self, "aten::floor.out"),
            NodeUnion::Ceiling(_) => same(self, "aten::ceil.out"),
            NodeUnion::SquareRoot(_) => same(self, "aten::sqrt.out"),
            NodeUnion::ReciprocalSquareRoot(_) => same(self, "aten::rsqrt.out"),
            NodeUnion::Square(_) => self.values.call("aten::mul.out", &[from, from, to], self.node),
            NodeUnion::Gelu(_) => {
                let form = self.values.all().text("none");
                self.values.call("aten::gelu.out", &[from, form, to], self.node)
            }
            NodeUnion::Hardswish(_) => {
                let operator = match x.datatype {
                    Datatype::FP32 => self.values.all().operator(&HARD_SWISH),
                    _ => self.values.own(float::hardswish()),
                };
                self.values.all().call(operator, &[from, to], self.node);
                Ok(())
            }
            _ => Err(refused("it is not run")),
        }
    }

    pub(super) fn leaky_relu(
        &mut self,
        node: &Node<'_>,
        union: &NodeUnion<'_>,
        fields: &LeakyReLU,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        if !inputs[0].datatype.is_float() {
            return self.unary_bytes(node, union, inputs[0], made);
        }
        let out = self.values.make(made)?;
        let ([from], to) = self.values.element_wise([inputs[0]], out)?;
        let slope = self.values.all().double(fields.negative_slope.into());
        self.values.call("aten::leaky_relu.out", &[from, slope, to], self.node)
    }

    pub(super) fn elu(
        &mut self,
        node: &Node<'_>,
        union: &NodeUnion<'_>,
        fields: &ELU,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        if !inputs[0].datatype.is_float() {
            return self.unary_bytes(node, union, inputs[0], made);
        }
        let out = self.values.make(made)?;
        let ([from], to) = self.values.element_wise([inputs[0]], out)?;
        let all = self.values.all();
        let (alpha, scale, input) = (all.double(fields.alpha.into()), all.double(1.0), all.double(1.0));
        self.values.call("aten::elu.out", &[from, alpha, scale, input, to], self.node)
    }

    /// Holds numbers within bounds; infinite ones hold nothing.
    pub(super) fn clamp(&mut self, (least, most): (f32, f32), from: Local, to: Local) -> Result<(), KernelError> {
        let all = self.values.all();
        let mut bound = |bound: f32| if bound.is_infinite() { all.none() } else { all.double(bound.into()) };
        let bounds = [bound(least), bound(most)];
        if least.is_infinite() && most.is_infinite() {
            return self.values.call("aten::clone.out", &[from, bounds[0], to], self.node);
        }
        let [least, most] = bounds;
        self.values.call("aten::clamp.out", &[from, least, most, to], self.node)
    }

    /// Lowers a node with an activation: `compute` writes its result, and the bounds follow if there are any.
    pub(super) fn bounded(
        &mut self,
        node: &Node<'_>,
        out: Lowered,
        compute: impl FnOnce(&mut Self, Lowered) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let bounds = node.bounds();
        if bounds == (f32::NEG_INFINITY, f32::INFINITY) {
            return compute(self, out);
        }
        let local = self.values.temporary(out.datatype, &out.shape, out.dynamic)?;
        let free = Lowered { local, writable: true, ..out };
        compute(self, free)?;
        let ([free], out) = self.values.element_wise([free], out)?;
        self.clamp(bounds, free, out)
    }

    /// A node with two inputs that are broadcast.
    pub(super) fn binary(
        &mut self,
        node: &Node<'_>,
        union: &NodeUnion<'_>,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        let is_extreme = matches!(union, NodeUnion::Minimum(_) | NodeUnion::Maximum(_));
        let is_whole = inputs.iter().all(|input| input.datatype == Datatype::INT32);
        if !(inputs.iter().all(|input| input.datatype.is_float()) || is_whole && is_extreme) {
            return self.binary_bytes(node, union, inputs, made);
        }
        let out = self.values.make(made)?;
        if let NodeUnion::PReLU(_) = union {
            return self.prelu(inputs[0], inputs[1], out);
        }
        // Bounds of the smaller and the greater are not read.
        let (a, b) = (inputs[0].local, inputs[1].local);
        match union {
            NodeUnion::Minimum(_) => return self.values.call("aten::minimum.out", &[a, b, out.local], self.node),
            NodeUnion::Maximum(_) => return self.values.call("aten::maximum.out", &[a, b, out.local], self.node),
            _ => {}
        }
        self.bounded(node, out, |this, to| {
            let name = match union {
                NodeUnion::Add(_) => "aten::add.out",
                NodeUnion::Subtract(_) => "aten::sub.out",
                NodeUnion::Multiply(_) => "aten::mul.out",
                NodeUnion::Div(_) => "aten::div.out",
                _ => return Err(refused("it is not run")),
            };
            // A sum of images becomes part of the convolution that computes one of them, and a product with its own sigmoid part
            // of what computes the factor.
            let ([a, b], to) = this.values.element_wise([inputs[0], inputs[1]], to)?;
            match union {
                NodeUnion::Add(_) | NodeUnion::Subtract(_) => {
                    let one = this.values.all().int(1);
                    this.values.call(name, &[a, b, one, to], this.node)
                }
                _ => this.values.call(name, &[a, b, to], this.node),
            }
        })
    }

    /// Numbers that are not greater than zero times a slope, one for all or one for each channel.
    fn prelu(&mut self, x: Lowered, slopes: Lowered, out: Lowered) -> Result<(), KernelError> {
        let operator = self.values.all().operator(&PRELU);
        let (mut from, mut by, mut to) = (x.local, slopes.local, out.local);
        if self.values.is_constant(slopes.index) {
            let count = slopes.shape.dims().iter().try_fold(1u32, |count, dim| count.checked_mul(*dim));
            let count = count.ok_or_else(|| refused("more slopes than can be counted"))?;
            ([from], to) = self.values.element_wise([x], out)?;
            let is_image = from != x.local;
            // Channels are the last dimension, but of an image.
            let dims = if is_image { &[count, 1, 1][..] } else { &[count] };
            by = self.values.constant(slopes.index, contiguous(slopes.datatype, dims)?)?;
        }
        self.values.all().call(operator, &[from, by, to], self.node);
        Ok(())
    }

    /// A product with weights.
    pub(super) fn product(
        &mut self,
        node: &Node<'_>,
        fields: &FullyConnected,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        let transposed = fields.flags & TRANSPOSE_WEIGHTS != 0;
        let (x, w) = (inputs[0], inputs[1]);
        if !x.datatype.is_float() {
            return self.product_bytes(node, inputs, transposed, made);
        }
        // Sums of half the precision are those of single precision here.
        let seen_as = if x.datatype == Datatype::BF16 { Datatype::FP32 } else { x.datatype };
        let w = match (w.datatype.is_float(), self.values.is_constant(w.index)) {
            (true, true) if transposed => self.exchanged(w)?,
            (true, false) if transposed => self.turned(w)?,
            (true, _) => Lowered { local: self.values.as_type(w, seen_as, self.node)?, datatype: seen_as, ..w },
            (false, true) if inputs.len() > 2 => {
                return Err(refused("its weights are quantised, and scales of weights would be those of its bias too"));
            }
            (false, true) if !transposed => Lowered { local: self.dequantized(w, 0)?, datatype: seen_as, ..w },
            _ => return Err(refused("its weights are quantised, and transposed or not constant")),
        };
        if w.datatype != seen_as {
            return Err(refused("its weights are of another type, and transposed"));
        }
        let x = self.values.as_type(x, seen_as, self.node)?;
        let bias = match inputs.get(2) {
            Some(bias) => self.values.as_type(*bias, seen_as, self.node)?,
            None => self.values.all().none(),
        };
        let compute = |this: &mut Self, to: Lowered| {
            this.values.call("aten::linear.out", &[x, w.local, bias, to.local], this.node)
        };
        if seen_as == Datatype::FP16 {
            let out = self.values.make(made)?;
            return self.bounded(node, out, compute);
        }
        self.in_single(made, |this, out| this.bounded(node, out, compute))
    }

    /// The third input as elements of the type of the first, or none.
    pub(super) fn float_bias(&mut self, inputs: &[Lowered]) -> Result<Local, KernelError> {
        match inputs.get(2) {
            Some(bias) => self.values.as_type(*bias, inputs[0].datatype, self.node),
            None => Ok(self.values.all().none()),
        }
    }

    /// The mean of each channel of an image.
    fn mean(&mut self, keep: bool, x: Lowered, made: Made) -> Result<(), KernelError> {
        if !x.datatype.is_float() {
            return self.mean_bytes(x, made);
        }
        let out = self.values.make(made)?;
        let all = self.values.all();
        let (dims, keep, dtype) = (all.ints(&[1, 2]), all.bool(keep), all.none());
        self.values.call("aten::mean.out", &[x.local, dims, keep, dtype, out.local], self.node)
    }
}
