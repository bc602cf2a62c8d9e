//! Nodes that move elements and compute nothing.

use edgepack_executor::kernel::KernelError;
use edgepack_format::row::Scalars;
use edgepack_format::xnnpack::{Cat, Datatype, StaticConstantPad, StaticReshape, StaticSlice, StaticTranspose};

use super::values::{Derived, Lowered, contiguous};
use super::{Lowering, Made, refused};
use crate::operators::relabel;

fn numbers(list: &Option<Scalars<'_, u32>>) -> Vec<u32> {
    list.iter().flat_map(|list| list.iter()).collect()
}

impl Lowering<'_> {
    /// Moving quantised numbers is right only where they mean the same before and after.
    pub(super) fn expect_same_meaning(&self, inputs: &[Lowered], made: Made) -> Result<(), KernelError> {
        let datatype = self.values.datatype(made.id)?;
        if inputs.iter().any(|input| input.datatype != datatype || input.rows.is_some()) {
            return Err(refused("its input and its result are of different types"));
        }
        if datatype.is_float() || datatype == Datatype::INT32 || inputs.is_empty() {
            return Ok(());
        }
        let index = self.values.index_of(made.id)?;
        for input in inputs {
            if !self.values.mean_the_same([input.index, index])? {
                return Err(refused("its input and its result have different scales"));
            }
        }
        Ok(())
    }

    pub(super) fn copy(&mut self, x: Lowered, made: Made) -> Result<(), KernelError> {
        self.expect_same_meaning(&[x], made)?;
        if !self.values.goes_outside(made.id) {
            self.values.put(made.id, x);
            return Ok(());
        }
        let out = self.values.make(made)?;
        let none = self.values.all().none();
        self.values.call("aten::clone.out", &[x.local, none, out.local], self.node)
    }

    pub(super) fn reshape(
        &mut self,
        fields: &StaticReshape<'_>,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        let x = inputs[0];
        self.expect_same_meaning(inputs, made)?;
        if !self.values.goes_outside(made.id) && !x.dynamic {
            let layout = contiguous(x.datatype, made.shape.dims())?;
            let local = match self.values.is_constant(x.index) {
                true => self.values.constant(x.index, layout)?,
                false => self.values.all().view(x.local, layout, false),
            };
            self.values.put(made.id, Lowered { local, shape: made.shape, ..x });
            return Ok(());
        }
        if !x.dynamic {
            // The operator that programs have for it, which rewrites know.
            let out = self.values.make(made)?;
            let sizes: Vec<i64> = made.shape.dims().iter().map(|&size| size as i64).collect();
            let sizes = self.values.all().ints(&sizes);
            return self.values.call("aten::view_copy.out", &[x.local, sizes, out.local], self.node);
        }
        let operator = self.values.own(relabel::reshaped(numbers(&fields.new_shape)));
        let out = match self.values.goes_outside(made.id) || !x.writable {
            true => self.values.make(made)?,
            false => {
                let local = self.values.all().view(x.local, contiguous(x.datatype, made.shape.dims())?, true);
                let out = Lowered { local, shape: made.shape, ..x };
                self.values.put(made.id, out);
                out
            }
        };
        self.values.all().call(operator, &[x.local, out.local], self.node);
        Ok(())
    }

    pub(super) fn transpose(
        &mut self,
        fields: &StaticTranspose<'_>,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        self.expect_same_meaning(inputs, made)?;
        let (x, perm) = (inputs[0].local, numbers(&fields.perm));
        let derived = Derived::Permuted(perm.clone());
        if self.values.again(x, &derived, made) {
            return Ok(());
        }
        let out = self.values.make(made)?;
        self.values.remember(x, derived, out);
        let perm: Vec<i64> = perm.into_iter().map(i64::from).collect();
        let perm = self.values.all().ints(&perm);
        self.values.call("aten::permute_copy.out", &[x, perm, out.local], self.node)
    }

    pub(super) fn concatenate(&mut self, fields: &Cat, inputs: &[Lowered], made: Made) -> Result<(), KernelError> {
        self.expect_same_meaning(inputs, made)?;
        let out = self.values.make(made)?;
        let items: Vec<_> = inputs.iter().map(|input| input.local).collect();
        let all = self.values.all();
        let (items, axis) = (all.tensors(&items), all.int(fields.axis.into()));
        self.values.call("aten::cat.out", &[items, axis, out.local], self.node)
    }

    pub(super) fn slice(
        &mut self,
        fields: &StaticSlice<'_>,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        let x = inputs[0];
        self.expect_same_meaning(inputs, made)?;
        let (offsets, sizes) = (numbers(&fields.offsets), numbers(&fields.sizes));
        let is_whole = |dim: usize| offsets[dim] == 0 && (sizes[dim] == 0 || sizes[dim] >= x.shape.dims()[dim]);
        if (0..x.shape.rank()).all(is_whole) {
            return self.copy(x, made);
        }
        let out = self.values.make(made)?;
        let ends = offsets.iter().zip(&sizes).map(|(offset, size)| match size {
            0 => None,
            size => Some(i64::from(*offset) + i64::from(*size)),
        });
        self.part(x, &offsets, &ends.collect::<Vec<_>>(), out)
    }

    /// Cuts `first` elements off the start and `last` elements off the end of every dimension.
    pub(super) fn cut(&mut self, x: Lowered, first: &[u32], last: &[u32], out: Lowered) -> Result<(), KernelError> {
        let ends: Vec<_> = last.iter().map(|last| (*last > 0).then(|| -i64::from(*last))).collect();
        self.part(x, first, &ends, out)
    }

    /// Elements from `starts` to `ends`, as slices count them; one call for each dimension of which something is cut off, and
    /// for each that has an end where sizes are known only when it runs.
    fn part(&mut self, x: Lowered, starts: &[u32], ends: &[Option<i64>], out: Lowered) -> Result<(), KernelError> {
        let (mut from, mut dims) = (x.local, x.shape.dims().to_vec());
        let is_cut = |dim: usize| starts[dim] != 0 || ends[dim].is_some_and(|end| x.dynamic || end != dims[dim] as i64);
        let cut: Vec<usize> = (0..x.shape.rank()).filter(|&dim| is_cut(dim)).collect();
        for &dim in &cut {
            dims[dim] = out.shape.dims()[dim];
            let to = match Some(&dim) == cut.last() {
                true => out.local,
                false => {
                    let layout = contiguous(x.datatype, &dims)?;
                    self.values.all().temporary(layout, x.dynamic)
                }
            };
            let all = self.values.all();
            let start = all.int(starts[dim].into());
            let end = match ends[dim] {
                Some(end) => all.int(end),
                None => all.none(),
            };
            let (dim, stride) = (all.int(dim as i64), all.int(1));
            self.values.call("aten::slice_copy.Tensor_out", &[from, dim, start, end, stride, to], self.node)?;
            from = to;
        }
        Ok(())
    }

    pub(super) fn pad(
        &mut self,
        fields: &StaticConstantPad<'_>,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        self.expect_same_meaning(inputs, made)?;
        let x = inputs[0];
        let (before, after) = (numbers(&fields.pre_paddings), numbers(&fields.post_paddings));
        // From the last dimension to the first.
        let pads = before.iter().zip(&after).rev().flat_map(|(before, after)| [i64::from(*before), i64::from(*after)]);
        let pads: Vec<i64> = pads.collect();
        let value = match x.datatype {
            datatype if datatype.is_float() => self.values.all().double(fields.padding_value.into()),
            Datatype::INT32 => return Err(refused("its elements are integers, and what it pads with is not one")),
            _ => {
                let (scale, zero) = self.values.per_tensor(x.index)?;
                let quantised = (fields.padding_value / scale + zero as f32).round_ties_even().clamp(-128.0, 127.0);
                self.values.all().int(quantised as i64)
            }
        };
        let out = self.values.make(made)?;
        let pads = self.values.all().ints(&pads);
        self.values.call("aten::constant_pad_nd.out", &[x.local, pads, value, out.local], self.node)
    }
}
