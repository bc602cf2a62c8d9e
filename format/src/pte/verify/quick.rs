//! The quick decision: values and instructions as exporters write them are found good in one look each.
//!
//! Tables are read by [`crate::pte::fast`]. Whatever is not plainly good is not decided here but by the walk that reports
//! ([`super::values`], [`super::code`]).
//!
//! Invariant: what is accepted here gives no finding there and the same mark, at the same price.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "lengths of slices over 64 and small constants; everything wider is checked"
)]

use super::data::{Buffers, Data};
use super::facts::{Facts, mark};
use crate::check::Checker;
use crate::pte::fast::{FastCalls, FastTensor, FastValue, FastValues};
use crate::scalar::ScalarType;
use crate::wire;

/// Returns the cost of visiting a vector, as [`crate::limits::Budget::charge_bytes`] has it.
#[inline(always)]
fn price(vector_bytes: usize) -> u64 {
    vector_bytes as u64 / 64 + 1
}

/// The quick decision, with the readers of one file.
pub(super) struct Quick<'a> {
    values: FastValues<'a>,
    calls: FastCalls<'a>,
}

impl<'a> Quick<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Quick { values: FastValues::new(bytes), calls: FastCalls::new(bytes) }
    }

    /// The mark of value `index` if it is good.
    #[inline]
    pub(super) fn value(&mut self, index: usize, plan: &Facts<'a>, data: &Data<'a>, out: &mut Checker) -> Option<u8> {
        let pos = plan.values.position(index).ok()?;
        let (mark, price) = match self.values.value(pos)? {
            FastValue::Tensor(found) => return tensor(&found, plan, data, out),
            FastValue::Int(_) => (mark::INT, 2),
            FastValue::Double(_) => (mark::DOUBLE, 2),
            FastValue::Bool(_) => (mark::BOOL | mark::TRUTH, 2),
            // Values after this one have no kind yet, so an item of the right kind comes before.
            FastValue::IntList(items) => {
                let mut ids = items.iter().map(|item| usize::try_from(u64::from_le_bytes(*item)).ok());
                ids.all(|id| plan.is_of(id, mark::INT)).then_some((mark::INT_LIST, 2 + price(items.len() * 8)))?
            }
            FastValue::TensorList(items) => {
                let mut ids = items.iter().map(|item| Some(u32::from_le_bytes(*item) as usize));
                ids.all(|id| plan.is_of(id, mark::TENSOR)).then_some((mark::TENSOR_LIST, 2 + price(items.len() * 4)))?
            }
        };
        out.pay(price, 2).then_some(mark)
    }

    /// Returns whether instruction `index` is a good kernel call.
    #[inline]
    pub(super) fn instruction(
        &mut self,
        instructions: &wire::Tables<'a>,
        index: usize,
        plan: &Facts<'a>,
        out: &mut Checker,
    ) -> bool {
        self.kernel_call(instructions, index, plan).is_some_and(|price| out.pay(price, 2))
    }

    #[inline(always)]
    fn kernel_call(&mut self, instructions: &wire::Tables<'a>, index: usize, plan: &Facts<'a>) -> Option<u64> {
        let call = self.calls.call(instructions.position(index).ok()?)?;
        // As unsigned numbers, negative indices are greater than any count.
        let largest = call.args.iter().fold(0, |largest, arg| largest.max(u32::from_le_bytes(*arg)));
        let good = (call.operator as usize) < plan.operators
            && (call.args.is_empty() || (largest as usize) < plan.values.len());
        good.then(|| 2 + price(call.args.len() * 4))
    }
}

/// The mark of a tensor if it is good: one planned place or one constant that holds all its bytes.
#[inline(always)]
fn tensor<'a>(tensor: &FastTensor<'a>, plan: &Facts<'a>, data: &Data<'a>, out: &mut Checker) -> Option<u8> {
    let element = tensor.scalar_type.size()? as u64;
    let mut cost = 2 + price(tensor.sizes.len() * 4) + price(tensor.dim_order.len());
    let mut tables = 2;
    let mut found = mark::TENSOR | if tensor.scalar_type == ScalarType::BOOL { mark::TRUTH } else { 0 };
    if let Some((id, offset)) = tensor.allocation {
        let size = plan.arenas.as_ref()?.get(id as usize)?;
        let fits = offset.checked_add(tensor.bytes)? <= u64::try_from(size).ok()?;
        let plain = tensor.data_buffer_idx == 0 && id > 0 && plan.devices.is_empty();
        if !(fits && plain && offset & (element - 1) == 0) {
            return None;
        }
        cost += 1;
        tables += 1;
    } else if tensor.data_buffer_idx > 0 {
        let Buffers::Segment { offsets, size } = &data.constants else { return None };
        let offset = offsets.get(tensor.data_buffer_idx as usize)?;
        if size.checked_sub(offset)? < tensor.bytes || offset & (element - 1) != 0 {
            return None;
        }
        found |= mark::CONSTANT;
    }
    out.pay(cost, tables).then_some(found)
}
