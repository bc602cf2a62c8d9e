//! The quick decision: values and instructions as exporters write them are found good in one look each.
//!
//! Opening a file costs little more than reading every value once: tables are read through the layouts of the few
//! vtables they share ([`crate::layout`]). Whatever is not plainly good is not decided here but by the walk that
//! reports ([`super::values`], [`super::code`]).
//!
//! Invariant: what is accepted here gives no finding there and the same mark, at the same price.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "positions are below the length of a slice, so below isize::MAX; what is added to them is below 2^17, or \
              was compared with the slice first; everything wider is checked"
)]

use super::data::{Buffers, Data};
use super::plan::{Facts, mark};
use crate::check::Checker;
use crate::layout::{Layouts, Row};
use crate::pte::{
    AllocationDetails, Bool, Double, EValue, Instruction, Int, IntList, KernelCall, Tensor, TensorShapeDynamism,
};
use crate::scalar::ScalarType;
use crate::tensor::{MAX_RANK, is_permutation};
use crate::wire;

/// What visiting a vector costs, as [`crate::limits::Budget::charge_bytes`] has it.
#[inline(always)]
fn price(vector: &[u8]) -> u64 {
    vector.len() as u64 / 64 + 1
}

// Fields by their place in the schemas below.
const TAG: usize = 0;
const VALUE: usize = 1;
const SCALAR_TYPE: usize = 0;
const STORAGE_OFFSET: usize = 1;
const SIZES: usize = 2;
const DIM_ORDER: usize = 3;
const DATA_BUFFER_IDX: usize = 5;
const ALLOCATION: usize = 6;
const DYNAMISM: usize = 8;
const EXTRA: usize = 9;

/// The quick decision, with the layouts of one file.
pub(super) struct Quick<'a> {
    bytes: &'a [u8],
    evalue: Layouts<2, 16>,
    tensor: Layouts<10, 16>,
    allocation: Layouts<3, 8>,
    int: Layouts<1, 8>,
    bool: Layouts<1, 8>,
    double: Layouts<1, 8>,
    list: Layouts<1, 8>,
    instruction: Layouts<2, 4>,
    kernel: Layouts<2, 4>,
}

impl<'a> Quick<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Quick {
            bytes,
            evalue: Layouts::new([(EValue::VAL.index, 1), (EValue::VAL.index + 1, 4)]),
            tensor: Layouts::new([
                (Tensor::SCALAR_TYPE.index, 1),
                (Tensor::STORAGE_OFFSET.index, 4),
                (Tensor::SIZES.index, 4),
                (Tensor::DIM_ORDER.index, 4),
                (Tensor::REQUIRES_GRAD.index, 1),
                (Tensor::DATA_BUFFER_IDX.index, 4),
                (Tensor::ALLOCATION_INFO.index, 4),
                (Tensor::LAYOUT.index, 1),
                (Tensor::SHAPE_DYNAMISM.index, 1),
                (Tensor::EXTRA_TENSOR_INFO.index, 4),
            ]),
            allocation: Layouts::new([
                (AllocationDetails::MEMORY_ID.index, 4),
                (AllocationDetails::MEMORY_OFFSET_LOW.index, 4),
                (AllocationDetails::MEMORY_OFFSET_HIGH.index, 4),
            ]),
            int: Layouts::new([(Int::INT_VAL.index, 8)]),
            bool: Layouts::new([(Bool::BOOL_VAL.index, 1)]),
            double: Layouts::new([(Double::DOUBLE_VAL.index, 8)]),
            list: Layouts::new([(IntList::ITEMS.index, 4)]),
            instruction: Layouts::new([(Instruction::INSTR_ARGS.index, 1), (Instruction::INSTR_ARGS.index + 1, 4)]),
            kernel: Layouts::new([(KernelCall::OP_INDEX.index, 4), (KernelCall::ARGS.index, 4)]),
        }
    }

    /// The mark of value `index` if it is good.
    #[inline]
    pub(super) fn value(&mut self, index: usize, plan: &Facts<'a>, data: &Data<'a>, out: &mut Checker) -> Option<u8> {
        let pos = plan.values.position(index).ok()?;
        let value = self.evalue.row(self.bytes, pos)?;
        let (kind, (target, _)) = (value.u8(TAG), value.target(self.bytes, VALUE)?);
        match kind {
            mark::TENSOR => self.tensor(target, plan, data, out),
            mark::INT => {
                let row = self.int.row(self.bytes, target)?;
                (aligned(&row) && out.pay(2, 2)).then_some(kind)
            }
            mark::DOUBLE => {
                let row = self.double.row(self.bytes, target)?;
                (aligned(&row) && out.pay(2, 2)).then_some(kind)
            }
            mark::BOOL => {
                self.bool.row(self.bytes, target)?;
                out.pay(2, 2).then_some(kind | mark::TRUTH)
            }
            mark::INT_LIST => {
                let items = self.list.row(self.bytes, target)?.vector(self.bytes, 0, 8, 8)?;
                let good = items.as_chunks::<8>().0.iter().all(|item| {
                    let known = usize::try_from(u64::from_le_bytes(*item)).ok().and_then(|item| plan.marks.get(item));
                    known.is_some_and(|known| known & mark::KIND == mark::INT)
                });
                (good && out.pay(2 + price(items), 2)).then_some(kind)
            }
            mark::TENSOR_LIST => {
                let items = self.list.row(self.bytes, target)?.vector(self.bytes, 0, 4, 4)?;
                // Values after this one have no kind yet, so an item that is a tensor comes before.
                let good = items.as_chunks::<4>().0.iter().all(|item| {
                    let known = plan.marks.get(u32::from_le_bytes(*item) as usize);
                    known.is_some_and(|known| known & mark::KIND == mark::TENSOR)
                });
                (good && out.pay(2 + price(items), 2)).then_some(kind)
            }
            _ => None,
        }
    }

    #[inline(always)]
    fn tensor(&mut self, pos: usize, plan: &Facts<'a>, data: &Data<'a>, out: &mut Checker) -> Option<u8> {
        let row = self.tensor.row(self.bytes, pos)?;
        let scalar_type = ScalarType(row.u8(SCALAR_TYPE) as i8);
        let element = scalar_type.size()? as u64;
        let sizes = row.vector(self.bytes, SIZES, 4, 4)?;
        let order = row.vector(self.bytes, DIM_ORDER, 1, 4)?;
        let rank = order.len();
        if row.u32(STORAGE_OFFSET) != 0
            || row.u8(DYNAMISM) > TensorShapeDynamism::DYNAMIC_BOUND.0 as u8
            || row.field(EXTRA) != 0
            || rank > MAX_RANK
            || sizes.len() != rank * 4
            || !is_permutation(order, rank)
        {
            return None;
        }
        let mut bytes = element;
        let mut zero = false;
        for size in sizes.as_chunks::<4>().0 {
            let size = i32::from_le_bytes(*size);
            // Negative sizes become large and overflow. A zero must not hide an overflow of the others.
            zero |= size == 0;
            bytes = bytes.checked_mul(u64::from(size.max(1) as u32)).filter(|_| size >= 0)?;
        }
        i64::try_from(bytes).ok()?;
        let bytes = if zero { 0 } else { bytes };

        let mut price = 2 + price(sizes) + price(order);
        let mut tables = 2;
        let index = row.u32(DATA_BUFFER_IDX);
        let mut found = if scalar_type == ScalarType::BOOL { mark::TENSOR | mark::TRUTH } else { mark::TENSOR };
        if row.field(ALLOCATION) != 0 {
            let allocation = self.allocation.row(self.bytes, row.target(self.bytes, ALLOCATION)?.0)?;
            let (id, low, high) = (allocation.u32(0), allocation.u32(1), allocation.u32(2));
            let offset = u64::from(low) | u64::from(high) << 32;
            let size = plan.arenas.as_ref()?.get(id as usize)?;
            let fits = offset.checked_add(bytes)? <= u64::try_from(size).ok()?;
            let plain = index == 0 && id > 0 && plan.devices.is_empty();
            if !(fits && plain && offset & (element - 1) == 0) {
                return None;
            }
            price += 1;
            tables += 1;
        } else if index > 0 {
            let Buffers::Segment { offsets, size } = &data.constants else { return None };
            let offset = offsets.get(index as usize)?;
            if size.checked_sub(offset)? < bytes || offset & (element - 1) != 0 {
                return None;
            }
            found |= mark::CONSTANT;
        }
        out.pay(price, tables).then_some(found)
    }

    /// Whether instruction `index` is a good kernel call.
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
        let row = self.instruction.row(self.bytes, instructions.position(index).ok()?)?;
        let (kind, (target, _)) = (row.u8(TAG), row.target(self.bytes, VALUE)?);
        if kind != 1 {
            return None;
        }
        let call = self.kernel.row(self.bytes, target)?;
        let args = call.vector(self.bytes, 1, 4, 4)?;
        // As unsigned numbers, negative indices are greater than any count.
        let largest = args.as_chunks::<4>().0.iter().fold(0, |largest, arg| largest.max(u32::from_le_bytes(*arg)));
        let good = (call.u32(0) as usize) < plan.operators && (largest as usize) < plan.values.len();
        (good || (args.is_empty() && (call.u32(0) as usize) < plan.operators)).then(|| 2 + price(args))
    }
}

/// Whether a single number of eight bytes is where such numbers may be.
#[inline(always)]
fn aligned(row: &Row<'_, '_, 1>) -> bool {
    row.field(0) == 0 || (row.offset() + row.field(0)).is_multiple_of(8)
}
