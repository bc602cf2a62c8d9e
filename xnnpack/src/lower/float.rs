//! Nodes on numbers in floating point: element by element, products of matrices, and means.

use edgepack_executor::delegate::Local;
use edgepack_executor::kernel::KernelError;
use edgepack_format::xnnpack::{
    Datatype, ELU, FullyConnected, KEEP_DIMS, LeakyReLU, Node, Node2x1, NodeUnion, Shape, TRANSPOSE_WEIGHTS,
};

use edgepack_kernels::HARD_SWISH;

use super::values::{Lowered, contiguous};
use super::{Lowering, Made, refused};
use crate::operators::float;

/// Whether elements are computed in floating point.
pub(super) fn is_float(datatype: Datatype) -> bool {
    matches!(datatype, Datatype::FP32 | Datatype::FP16 | Datatype::BF16)
}

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
            NodeUnion::Clamp(_) if !is_float(x.datatype) => return self.clamp_bytes(node, x, made),
            _ if !is_float(x.datatype) => return Err(refused("its input is quantised")),
            _ => {}
        }
        let out = self.values.make(made)?;
        let same = |this: &mut Self, name| this.values.call(name, &[x.local, out.local], this.node);
        match union {
            NodeUnion::Clamp(_) => self.clamp(node.bounds(), x.local, out.local),
            NodeUnion::Softmax(_) => {
                let (dim, half) = (self.values.all().int(-1), self.values.all().bool(false));
                self.values.call("aten::_softmax.out", &[x.local, dim, half, out.local], self.node)
            }
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
            NodeUnion::Square(_) => self.values.call("aten::mul.out", &[x.local, x.local, out.local], self.node),
            NodeUnion::Gelu(_) => {
                let form = self.values.all().text("none");
                self.values.call("aten::gelu.out", &[x.local, form, out.local], self.node)
            }
            NodeUnion::Hardswish(_) => {
                let operator = match x.datatype {
                    Datatype::FP32 => self.values.all().operator(&HARD_SWISH),
                    _ => self.values.own(float::hardswish()),
                };
                self.values.all().call(operator, &[x.local, out.local], self.node);
                Ok(())
            }
            _ => Err(refused("it is not run")),
        }
    }

    pub(super) fn leaky_relu(&mut self, fields: &LeakyReLU, inputs: &[Lowered], made: Made) -> Result<(), KernelError> {
        self.expect_float(inputs)?;
        let out = self.values.make(made)?;
        let slope = self.values.all().double(fields.negative_slope.into());
        self.values.call("aten::leaky_relu.out", &[inputs[0].local, slope, out.local], self.node)
    }

    pub(super) fn elu(&mut self, fields: &ELU, inputs: &[Lowered], made: Made) -> Result<(), KernelError> {
        self.expect_float(inputs)?;
        let out = self.values.make(made)?;
        let all = self.values.all();
        let (alpha, scale, input) = (all.double(fields.alpha.into()), all.double(1.0), all.double(1.0));
        self.values.call("aten::elu.out", &[inputs[0].local, alpha, scale, input, out.local], self.node)
    }

    pub(super) fn expect_float(&self, inputs: &[Lowered]) -> Result<(), KernelError> {
        match inputs.iter().all(|input| is_float(input.datatype)) {
            true => Ok(()),
            false => Err(refused("an input is quantised")),
        }
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

    /// Where a result with an activation goes first: `compute` writes it, and the bounds follow.
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
        compute(self, Lowered { local, writable: true, ..out })?;
        self.clamp(bounds, local, out.local)
    }

    /// A node with two inputs that are broadcast.
    pub(super) fn binary(
        &mut self,
        node: &Node<'_>,
        union: &NodeUnion<'_>,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        if !inputs.iter().all(|input| is_float(input.datatype)) {
            return self.binary_bytes(node, union, inputs, made);
        }
        let (a, b) = (inputs[0].local, inputs[1].local);
        let out = self.values.make(made)?;
        if let NodeUnion::PReLU(_) = union {
            if inputs[0].datatype != Datatype::FP32 {
                return Err(refused("its elements are not in single precision"));
            }
            let operator = self.values.own(float::prelu());
            self.values.all().call(operator, &[a, b, out.local], self.node);
            return Ok(());
        }
        // Bounds of the smaller and the greater are not read.
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
            match union {
                NodeUnion::Add(_) | NodeUnion::Subtract(_) => {
                    let one = this.values.all().int(1);
                    this.values.call(name, &[a, b, one, to.local], this.node)
                }
                _ => this.values.call(name, &[a, b, to.local], this.node),
            }
        })
    }

    /// A product with weights.
    pub(super) fn product(
        &mut self,
        node: &Node<'_>,
        fields: &FullyConnected,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        if fields.flags & TRANSPOSE_WEIGHTS != 0 {
            return Err(refused("its weights are transposed"));
        }
        let (x, w) = (inputs[0], inputs[1]);
        if !is_float(x.datatype) || !is_float(w.datatype) {
            return self.product_bytes(node, inputs, made);
        }
        let w = self.values.as_type(w, x.datatype)?;
        let bias = self.float_bias(inputs)?;
        let out = self.values.make(made)?;
        self.bounded(node, out, |this, to| {
            this.values.call("aten::linear.out", &[x.local, w, bias, to.local], this.node)
        })
    }

    /// The third input as elements of the type of the first, or none.
    pub(super) fn float_bias(&mut self, inputs: &[Lowered]) -> Result<Local, KernelError> {
        match inputs.get(2) {
            Some(bias) => self.values.as_type(*bias, inputs[0].datatype),
            None => Ok(self.values.all().none()),
        }
    }

    /// Products of matrices, batch by batch.
    pub(super) fn batch_product(
        &mut self,
        fields: &Node2x1,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        self.expect_float(inputs)?;
        let (a, b) = (inputs[0], inputs[1]);
        let transposed = fields.flags & TRANSPOSE_WEIGHTS != 0;
        let same_batches = {
            let batches = |shape: &Shape| shape.dims()[..shape.rank().saturating_sub(2)].to_vec();
            batches(&a.shape) == batches(&b.shape)
        };
        if !same_batches || transposed || made.shape.rank() < 2 {
            return Err(refused("its batches differ, or one side is transposed"));
        }
        let out = self.values.make(made)?;
        let [a, b, to] = [a, b, out].map(|value| self.as_batches(value));
        let (a, b, to) = (a?, b?, to?);
        self.values.call("aten::bmm.out", &[a, b, to], self.node)?;
        if out.dynamic && to != out.local {
            return Err(refused("batches of several dimensions change their sizes"));
        }
        Ok(())
    }

    /// A value as `[batch, rows, columns]`.
    fn as_batches(&mut self, value: Lowered) -> Result<Local, KernelError> {
        let dims = value.shape.dims();
        let Some((batches, [rows, columns])) = dims.split_last_chunk::<2>() else {
            return Err(refused("a matrix has two dimensions"));
        };
        if batches.len() == 1 {
            return Ok(value.local);
        }
        if value.dynamic {
            return Err(refused("batches of several dimensions change their sizes"));
        }
        let layout = contiguous(value.datatype, &[batches.iter().product(), *rows, *columns])?;
        match self.values.is_constant(value.index) {
            true => self.values.constant(value.index, layout),
            false => Ok(self.values.all().view(value.local, layout, false)),
        }
    }

    /// The mean of each channel of an image.
    fn mean(&mut self, keep: bool, x: Lowered, made: Made) -> Result<(), KernelError> {
        if !is_float(x.datatype) {
            return self.mean_bytes(x, made);
        }
        let out = self.values.make(made)?;
        let all = self.values.all();
        let (dims, keep, dtype) = (all.ints(&[1, 2]), all.bool(keep), all.none());
        self.values.call("aten::mean.out", &[x.local, dims, keep, dtype, out.local], self.node)
    }
}
