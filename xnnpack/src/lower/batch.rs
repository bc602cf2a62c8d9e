//! Products of matrices, batch by batch, and attention, which is two of them.

use edgepack_executor::delegate::Local;
use edgepack_executor::kernel::KernelError;
use edgepack_format::xnnpack::{Datatype, Node, Node2x1, Quantization, Shape, TRANSPOSE_WEIGHTS};
use edgepack_kernels::BMM_IN_ORDER;

use super::values::{Lowered, contiguous};
use super::{Lowering, Made, refused};
use crate::operators::{batch, relabel};

impl Lowering<'_> {
    /// Products of matrices, batch by batch.
    pub(super) fn batch_product(
        &mut self,
        node: &Node<'_>,
        fields: &Node2x1,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        let (a, b) = (inputs[0], inputs[1]);
        let transposed = fields.flags & TRANSPOSE_WEIGHTS != 0;
        match (a.datatype.is_float(), b.datatype.is_float()) {
            (true, true) => {
                let b = if transposed { self.turned(b)? } else { b };
                let out = self.values.make(made)?;
                self.product_of_batches(a, b, out)
            }
            (true, false) if !transposed => {
                self.expect_constant(b)?;
                let local = self.dequantized(b, b.shape.rank() - 1)?;
                let b = Lowered { local, datatype: Datatype::FP32, index: usize::MAX, ..b };
                let out = self.values.make(made)?;
                self.product_of_batches(a, b, out)
            }
            (true, false) => {
                self.expect_constant(b)?;
                let local = self.dequantized(b, b.shape.rank() - 2)?;
                let b = self.turned(Lowered { local, datatype: Datatype::FP32, index: usize::MAX, ..b })?;
                let out = self.values.make(made)?;
                self.product_of_batches(a, b, out)
            }
            (false, _) => self.batch_product_bytes(node, transposed, a, b, made),
        }
    }

    fn batch_product_bytes(
        &mut self,
        node: &Node<'_>,
        transposed: bool,
        a: Lowered,
        b: Lowered,
        made: Made,
    ) -> Result<(), KernelError> {
        if let Some(params) = a.rows {
            self.expect_constant(b)?;
            let Some((batches, _)) = b.shape.dims().split_last_chunk::<2>() else {
                return Err(refused("a matrix has two dimensions"));
            };
            if batches.iter().any(|size| *size != 1) {
                return Err(refused("weights of several batches"));
            }
            let channel = b.shape.rank() - 1 - usize::from(transposed);
            let scales: Vec<f32> = match (b.datatype, self.values.quantization(b.index)?) {
                (Datatype::QCINT8, Quantization::PerChannel { channel_dim, scales, .. })
                    if channel_dim as usize == channel =>
                {
                    scales.iter().collect()
                }
                _ => return Err(refused("its weights are quantised in another form")),
            };
            return self.in_single(made, |this, out| {
                let operator = this.values.own(batch::product_of_rows(scales, transposed, node.bounds()));
                this.values.all().call(operator, &[a.local, params, b.local, out.local], this.node);
                Ok(())
            });
        }
        let weighted = self.requantize(node, a, b, 0, made)?;
        if weighted.zero != 0 {
            return Err(refused("its right side has a zero point"));
        }
        let out = self.values.make(made)?;
        let operator = self.values.own(batch::product(weighted.how, transposed));
        self.values.all().call(operator, &[a.local, b.local, out.local], self.node);
        Ok(())
    }

    /// `a @ b` with batches that are broadcast.
    fn product_of_batches(&mut self, a: Lowered, b: Lowered, out: Lowered) -> Result<(), KernelError> {
        let Some((batches, _)) = out.shape.dims().split_last_chunk::<2>() else {
            return Err(refused("a matrix has two dimensions"));
        };
        let batches = batches.to_vec();
        let (a, b) = (self.repeated(a, &batches)?, self.repeated(b, &batches)?);
        let [left, right] = [self.as_batches(a)?, self.as_batches(b)?];
        let product = self.values.all().operator(&BMM_IN_ORDER);
        if batches.len() == 1 || !out.dynamic {
            let to = self.as_batches(out)?;
            self.values.all().call(product, &[left, right, to], self.node);
            return Ok(());
        }
        let layout = self.batches_of(&out)?;
        let to = self.values.all().temporary(layout, true);
        self.values.all().call(product, &[left, right, to], self.node);
        let operator = self.values.own(relabel::unbatched());
        self.values.all().call(operator, &[a.local, to, out.local], self.node);
        Ok(())
    }

    /// A value whose matrices are repeated until there are so many.
    fn repeated(&mut self, value: Lowered, batches: &[u32]) -> Result<Lowered, KernelError> {
        let Some((own, [rows, columns])) = value.shape.dims().split_last_chunk::<2>() else {
            return Err(refused("a matrix has two dimensions"));
        };
        if own == batches {
            return Ok(value);
        }
        if value.dynamic {
            return Err(refused("batches are broadcast, and their sizes change"));
        }
        let shape = Shape::new(batches.iter().copied().chain([*rows, *columns]));
        let shape = shape.ok_or_else(|| refused("more than six dimensions"))?;
        let local = self.values.temporary(value.datatype, &shape, false)?;
        let sizes: Vec<i64> = shape.dims().iter().map(|dim| i64::from(*dim)).collect();
        let all = self.values.all();
        let (sizes, implicit) = (all.ints(&sizes), all.bool(false));
        self.values.call("aten::expand_copy.out", &[value.local, sizes, implicit, local], self.node)?;
        Ok(Lowered { local, shape, writable: true, index: usize::MAX, ..value })
    }

    fn batches_of(&self, value: &Lowered) -> Result<edgepack_format::tensor::TensorLayout, KernelError> {
        let Some((batches, [rows, columns])) = value.shape.dims().split_last_chunk::<2>() else {
            return Err(refused("a matrix has two dimensions"));
        };
        let count = batches.iter().try_fold(1u32, |count, size| count.checked_mul(*size));
        let count = count.ok_or_else(|| refused("more matrices than a dimension can say"))?;
        contiguous(value.datatype, &[count, *rows, *columns])
    }

    /// A value as `[batch, rows, columns]`.
    fn as_batches(&mut self, value: Lowered) -> Result<Local, KernelError> {
        if value.shape.rank() == 3 {
            return Ok(value.local);
        }
        let layout = self.batches_of(&value)?;
        if !value.dynamic {
            return match self.values.is_constant(value.index) {
                true => self.values.constant(value.index, layout),
                false => Ok(self.values.all().view(value.local, layout, false)),
            };
        }
        let to = self.values.all().temporary(layout, true);
        let operator = self.values.own(relabel::batched());
        self.values.all().call(operator, &[value.local, to], self.node);
        Ok(to)
    }

    /// A value with its last two dimensions exchanged.
    pub(super) fn turned(&mut self, value: Lowered) -> Result<Lowered, KernelError> {
        let mut dims = value.shape.dims().to_vec();
        let [.., rows, columns] = &mut dims[..] else { return Err(refused("a matrix has two dimensions")) };
        std::mem::swap(rows, columns);
        let shape = Shape::new(dims).unwrap_or_default();
        let local = self.values.temporary(value.datatype, &shape, value.dynamic)?;
        let mut order: Vec<i64> = (0..shape.rank() as i64).collect();
        let last = order.len() - 1;
        order.swap(last - 1, last);
        let order = self.values.all().ints(&order);
        self.values.call("aten::permute_copy.out", &[value.local, order, local], self.node)?;
        Ok(Lowered { local, shape, writable: true, index: usize::MAX, ..value })
    }

    /// `softmax(q * scale @ k^T + mask) @ v` for `[B, H, T, D]`: what releases 0.3 to 0.6 ran.
    pub(super) fn attention(&mut self, inputs: &[Lowered], made: Made) -> Result<(), KernelError> {
        let [query, key, value, scale, mask] = *inputs else { return Err(refused("it has five inputs")) };
        if !inputs.iter().all(|input| input.datatype == query.datatype && input.datatype.is_float()) {
            return Err(refused("its elements are of several types"));
        }
        if inputs.iter().any(|input| input.dynamic) {
            return Err(refused("sizes of its inputs change"));
        }
        let made_of = |this: &mut Self, shape: Shape| {
            let local = this.values.temporary(query.datatype, &shape, false)?;
            Ok::<_, KernelError>(Lowered { local, shape, writable: true, index: usize::MAX, ..query })
        };
        let [batch, heads, rows, _] = *query.shape.dims() else { return Err(refused("it has four dimensions")) };
        let [_, _, columns, depth] = *key.shape.dims() else { return Err(refused("it has four dimensions")) };
        let (of_scale, of_mask) = (scale.shape.dims(), mask.shape.dims());
        if of_scale != [depth] || of_mask != [rows, columns] {
            return Err(refused(format!("a scale of {of_scale:?} and a mask of {of_mask:?}")));
        }
        let scaled = made_of(self, query.shape)?;
        self.values.call("aten::mul.out", &[query.local, scale.local, scaled.local], self.node)?;
        let turned = self.turned(key)?;
        let shape = Shape::new([batch, heads, rows, columns]).unwrap_or_default();
        let (scores, masked, parts) = (made_of(self, shape)?, made_of(self, shape)?, made_of(self, shape)?);
        self.product_of_batches(scaled, turned, scores)?;
        let one = self.values.all().int(1);
        self.values.call("aten::add.out", &[scores.local, mask.local, one, masked.local], self.node)?;
        let (dim, half) = (self.values.all().int(-1), self.values.all().bool(false));
        self.values.call("aten::_softmax.out", &[masked.local, dim, half, parts.local], self.node)?;
        let out = self.values.make(made)?;
        self.product_of_batches(parts, value, out)
    }
}
