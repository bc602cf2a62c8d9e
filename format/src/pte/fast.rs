//! Values and kernel calls as exporters write them, read in one look each.
//!
//! Opening a file costs little more than reading every value once: tables are read through the layouts of the few
//! vtables they share ([`crate::layout`]). The verifier and the loader both read here first. What is not plainly good, is
//! of a rare kind, or uses a slot that this reader does not know is declined (`None`), and the caller reads it again slot
//! by slot, which says what is wrong with it.
//!
//! Invariant: what is returned is what the rows of [`super`] would say, and no field of the table was passed over.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "positions are below the length of a slice, so below isize::MAX; what is added to them is below 2^17"
)]

use super::{
    AllocationDetails, Bool, EValue, Instruction, InstructionArguments, Int, IntList, KernelCall, KernelTypes, Tensor,
    TensorShapeDynamism,
};
use crate::layout::{Layouts, Row};
use crate::scalar::ScalarType;
use crate::tensor::{MAX_RANK, is_permutation};

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

/// A value of a common kind, in its common form.
#[derive(Clone, Copy, Debug)]
pub enum FastValue<'a> {
    /// Number of an `Int` value.
    Int(i64),
    /// Content of a `Bool` value; any byte but 0 is true.
    Bool(bool),
    /// Number of a `Double` value, NaN and infinities included.
    Double(f64),
    /// Metadata of a `Tensor` value; its elements are not looked at.
    Tensor(FastTensor<'a>),
    /// Value indices of integers, little-endian.
    IntList(&'a [[u8; 8]]),
    /// Value indices of tensors, little-endian.
    TensorList(&'a [[u8; 4]]),
}

/// A dense tensor without an offset into its storage and without extra information.
#[derive(Clone, Copy, Debug)]
pub struct FastTensor<'a> {
    /// The element type, one with a size.
    pub scalar_type: ScalarType,
    /// One size per dimension, little-endian, none negative; at most [`MAX_RANK`].
    pub sizes: &'a [[u8; 4]],
    /// The dimension order: a permutation of the dimensions.
    pub dim_order: &'a [u8],
    /// Bytes of all elements, at most `i64::MAX`. The product of the sizes does not overflow if zeros count as ones.
    pub bytes: u64,
    /// Index into the constants; 0 for none.
    pub data_buffer_idx: u32,
    /// Memory id and offset of a planned tensor.
    pub allocation: Option<(u32, u64)>,
    /// True if the sizes are upper bounds.
    pub bound: bool,
}

/// Reads the values of one file; keeps the layouts it met.
pub struct FastValues<'a> {
    bytes: &'a [u8],
    evalue: Layouts<2, 16>,
    tensor: Layouts<10, 16>,
    allocation: Layouts<3, 8>,
    /// `Int` and `Double` alike: eight bytes in the first slot.
    number: Layouts<1, 16>,
    bool: Layouts<1, 8>,
    /// Every list has its items in the first slot.
    list: Layouts<1, 8>,
}

impl<'a> FastValues<'a> {
    /// Prepares to read values of the file in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        FastValues {
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
            number: Layouts::new([(Int::INT_VAL.index, 8)]),
            bool: Layouts::new([(Bool::BOOL_VAL.index, 1)]),
            list: Layouts::new([(IntList::ITEMS.index, 4)]),
        }
    }

    /// Reads the value whose table is at `pos`.
    #[inline(always)]
    pub fn value(&mut self, pos: usize) -> Option<FastValue<'a>> {
        let bytes = self.bytes;
        let value = self.evalue.row(bytes, pos)?;
        let kind = value.u8(TAG);
        let (target, _) = value.target(bytes, VALUE)?;
        Some(match kind {
            KernelTypes::TENSOR => FastValue::Tensor(self.tensor(target)?),
            KernelTypes::INT => FastValue::Int(self.number(target)? as i64),
            KernelTypes::DOUBLE => FastValue::Double(f64::from_bits(self.number(target)?)),
            KernelTypes::BOOL => FastValue::Bool(self.bool.row(bytes, target)?.u8(0) != 0),
            KernelTypes::INT_LIST => {
                FastValue::IntList(self.list.row(bytes, target)?.vector(bytes, 0, 8, 8)?.as_chunks().0)
            }
            KernelTypes::TENSOR_LIST => {
                FastValue::TensorList(self.list.row(bytes, target)?.vector(bytes, 0, 4, 4)?.as_chunks().0)
            }
            _ => return None,
        })
    }

    #[inline(always)]
    fn number(&mut self, pos: usize) -> Option<u64> {
        let row = self.number.row(self.bytes, pos)?;
        is_aligned(&row).then(|| row.u64(0))
    }

    #[inline(always)]
    fn tensor(&mut self, pos: usize) -> Option<FastTensor<'a>> {
        let row = self.tensor.row(self.bytes, pos)?;
        let scalar_type = ScalarType(row.u8(SCALAR_TYPE) as i8);
        let mut bytes = scalar_type.size()? as u64;
        let sizes = row.vector(self.bytes, SIZES, 4, 4)?.as_chunks::<4>().0;
        let dim_order = row.vector(self.bytes, DIM_ORDER, 1, 4)?;
        let dynamism = row.u8(DYNAMISM);
        if row.u32(STORAGE_OFFSET) != 0
            || row.field(EXTRA) != 0
            || dynamism > TensorShapeDynamism::DYNAMIC_BOUND.0 as u8
            || sizes.len() > MAX_RANK
            || !is_permutation(dim_order, sizes.len())
        {
            return None;
        }
        let mut zero = false;
        for size in sizes {
            let size = i32::from_le_bytes(*size);
            // A zero must not hide an overflow of the others.
            zero |= size == 0;
            bytes = bytes.checked_mul(u64::from(size.max(1) as u32)).filter(|_| size >= 0)?;
        }
        i64::try_from(bytes).ok()?;
        let allocation = match row.field(ALLOCATION) {
            0 => None,
            _ => {
                let place = self.allocation.row(self.bytes, row.target(self.bytes, ALLOCATION)?.0)?;
                Some((place.u32(0), u64::from(place.u32(1)) | u64::from(place.u32(2)) << 32))
            }
        };
        Some(FastTensor {
            scalar_type,
            sizes,
            dim_order,
            bytes: if zero { 0 } else { bytes },
            data_buffer_idx: row.u32(DATA_BUFFER_IDX),
            allocation,
            bound: dynamism != 0,
        })
    }
}

/// Reads the kernel calls of one file; keeps the layouts it met.
pub struct FastCalls<'a> {
    bytes: &'a [u8],
    instruction: Layouts<2, 4>,
    call: Layouts<2, 4>,
}

/// A kernel call.
#[derive(Clone, Copy, Debug)]
pub struct FastCall<'a> {
    /// Index into the operators of the plan, not checked.
    pub operator: u32,
    /// Value indices of the arguments, little-endian, not checked.
    pub args: &'a [[u8; 4]],
}

impl<'a> FastCalls<'a> {
    /// Prepares to read instructions of the file in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        FastCalls {
            bytes,
            instruction: Layouts::new([(Instruction::INSTR_ARGS.index, 1), (Instruction::INSTR_ARGS.index + 1, 4)]),
            call: Layouts::new([(KernelCall::OP_INDEX.index, 4), (KernelCall::ARGS.index, 4)]),
        }
    }

    /// Reads the instruction whose table is at `pos`, if it calls a kernel.
    #[inline(always)]
    pub fn call(&mut self, pos: usize) -> Option<FastCall<'a>> {
        let row = self.instruction.row(self.bytes, pos)?;
        let (target, _) = row.target(self.bytes, VALUE)?;
        if row.u8(TAG) != InstructionArguments::KERNEL_CALL {
            return None;
        }
        let call = self.call.row(self.bytes, target)?;
        Some(FastCall { operator: call.u32(0), args: call.vector(self.bytes, 1, 4, 4)?.as_chunks().0 })
    }
}

/// Returns whether a number of eight bytes is where such numbers may be.
#[inline(always)]
fn is_aligned(row: &Row<'_, '_, 1>) -> bool {
    row.field(0) == 0 || (row.offset() + row.field(0)).is_multiple_of(8)
}
