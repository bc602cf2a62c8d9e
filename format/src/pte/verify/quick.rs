//! The quick decision: values and instructions as exporters write them are found good in one look each.
//!
//! Opening a file costs little more than reading every value once, because tables of one type share few vtables: a
//! [`Layout`] is derived from a vtable when it is first met, and from then on a table is one bounds check and a few
//! loads. Whatever is not plainly good is not decided here but by the walk that reports ([`super::values`],
//! [`super::code`]).
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
use crate::pte::{
    AllocationDetails, Bool, Double, EValue, Instruction, Int, IntList, KernelCall, Tensor, TensorShapeDynamism,
};
use crate::scalar::ScalarType;
use crate::tensor::{MAX_RANK, is_permutation};
use crate::wire;

/// Where the fields of a type of table are, according to one vtable. 0 is an absent field.
#[derive(Clone, Copy)]
struct Layout<const N: usize> {
    /// Position of the vtable, [`NO_VTABLE`] for none yet.
    vtable: u32,
    inline_len: u16,
    fields: [u16; N],
}

/// Odd, so no vtable is there.
const NO_VTABLE: u32 = u32::MAX;

/// Layouts met so far: one type of table, `E` of its vtables, a power of two.
struct Layouts<const N: usize, const E: usize> {
    /// Slot and size of each field.
    schema: [(u16, u16); N],
    known: [Layout<N>; E],
}

/// A table in its inline bytes.
#[derive(Clone, Copy)]
struct Row<'a, 'l, const N: usize> {
    inline: &'a [u8],
    pos: usize,
    fields: &'l [u16; N],
}

#[inline(always)]
fn u32_at(bytes: &[u8], pos: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(pos..)?.first_chunk()?))
}

impl<const N: usize, const E: usize> Layouts<N, E> {
    const fn new(schema: [(u16, u16); N]) -> Self {
        Layouts { schema, known: [Layout { vtable: NO_VTABLE, inline_len: 0, fields: [0; N] }; E] }
    }

    #[inline(always)]
    fn row<'a>(&mut self, bytes: &'a [u8], pos: usize) -> Option<Row<'a, '_, N>> {
        // Both are below 2^31 when the table is good, and then so is the difference.
        let vtable = (pos as u32).wrapping_sub(u32_at(bytes, pos)?);
        let known = self.known.get_mut((vtable as usize / 2) % E)?;
        if known.vtable != vtable {
            *known = Layout::learn(bytes, pos, vtable, &self.schema)?;
        }
        let inline = bytes.get(pos..pos.wrapping_add(known.inline_len as usize))?;
        (pos.is_multiple_of(4)).then_some(Row { inline, pos, fields: &known.fields })
    }
}

impl<const N: usize> Layout<N> {
    /// The layout that a vtable means, from a table that uses it.
    #[cold]
    #[inline(never)]
    fn learn(bytes: &[u8], pos: usize, vtable: u32, schema: &[(u16, u16); N]) -> Option<Self> {
        let table = wire::Table::at(bytes, pos).ok()?;
        // A good vtable is at a multiple of two, so no other position is taken for "none yet" or for a good one.
        if vtable == NO_VTABLE || vtable as usize >= bytes.len() {
            return None;
        }
        let mut fields = [0; N];
        for (field, (slot, size)) in fields.iter_mut().zip(schema) {
            if let Some(at) = table.field(*slot, *size).ok()? {
                *field = at.wrapping_sub(pos) as u16;
                // Tables are at multiples of 4; wider numbers are looked at where they are.
                if !usize::from(*field).is_multiple_of(usize::from(*size).min(4)) {
                    return None;
                }
            }
        }
        Some(Layout { vtable, inline_len: table.inline_len(), fields })
    }
}

impl<'a, const N: usize> Row<'a, '_, N> {
    /// Where a field is; 0 for absent.
    #[inline(always)]
    fn field(&self, index: usize) -> usize {
        self.fields.get(index).map_or(0, |&field| field as usize)
    }

    #[inline(always)]
    fn u8(&self, index: usize) -> u8 {
        match self.field(index) {
            0 => 0,
            at => self.inline.get(at).copied().unwrap_or(0),
        }
    }

    #[inline(always)]
    fn u32(&self, index: usize) -> u32 {
        match self.field(index) {
            0 => 0,
            at => u32_at(self.inline, at).unwrap_or(0),
        }
    }

    /// Position of what the offset in a field points at, and what is there up to the end.
    #[inline(always)]
    fn target(&self, bytes: &'a [u8], index: usize) -> Option<(usize, &'a [u8])> {
        let at = self.field(index);
        // An absent field reads the table's own first word and is told by its place.
        let offset = u32_at(self.inline, at)? as usize;
        let target = self.pos.wrapping_add(at).wrapping_add(offset);
        let tail = bytes.get(target..)?;
        (at != 0 && offset != 0).then_some((target, tail))
    }

    /// The elements of a vector, of `size` bytes each, the first at a multiple of `align`.
    #[inline(always)]
    fn vector(&self, bytes: &'a [u8], index: usize, size: usize, align: usize) -> Option<&'a [u8]> {
        let (at, tail) = self.target(bytes, index)?;
        let (len, tail) = tail.split_first_chunk::<4>()?;
        let len = u64::from(u32::from_le_bytes(*len)).wrapping_mul(size as u64);
        if !at.wrapping_add(4).is_multiple_of(align) {
            return None;
        }
        tail.get(..usize::try_from(len).ok()?)
    }
}

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
    row.field(0) == 0 || (row.pos + row.field(0)).is_multiple_of(8)
}
