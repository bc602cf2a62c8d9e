//! Facts about a plan while it is checked.

use alloc::format;
use alloc::vec::Vec;

use crate::check::{Checker, Path};
use crate::finding::Rule;
use crate::notation::ValueName;
use crate::pte::DeviceType;
use crate::row::Scalars;
use crate::wire::Tables;

/// One byte per value: what the other checks want to know about it.
pub(super) mod mark {
    use crate::pte::KernelTypes;

    /// The bits of the kind, numbered as the tags of `KernelTypes`; 0 before the value was looked at.
    pub const KIND: u8 = 0x0f;
    pub const NULL: u8 = KernelTypes::NULL;
    pub const INT: u8 = KernelTypes::INT;
    pub const BOOL: u8 = KernelTypes::BOOL;
    pub const DOUBLE: u8 = KernelTypes::DOUBLE;
    pub const TENSOR: u8 = KernelTypes::TENSOR;
    pub const STRING: u8 = KernelTypes::STRING;
    pub const INT_LIST: u8 = KernelTypes::INT_LIST;
    pub const DOUBLE_LIST: u8 = KernelTypes::DOUBLE_LIST;
    pub const BOOL_LIST: u8 = KernelTypes::BOOL_LIST;
    pub const TENSOR_LIST: u8 = KernelTypes::TENSOR_LIST;
    pub const OPTIONAL_TENSOR_LIST: u8 = KernelTypes::OPTIONAL_TENSOR_LIST;
    pub const LAST_KIND: u8 = OPTIONAL_TENSOR_LIST;
    /// It could not be read, which was reported.
    pub const UNCLEAR: u8 = 15;
    /// It can be a condition.
    pub const TRUTH: u8 = 0x10;
    /// A tensor whose data are part of the file.
    pub const CONSTANT: u8 = 0x40;
    /// It is an input of the plan.
    pub const INPUT: u8 = 0x80;

    /// Returns the name of a kind.
    pub fn name(kind: u8) -> &'static str {
        match kind {
            NULL => "Null",
            INT => "Int",
            BOOL => "Bool",
            DOUBLE => "Double",
            TENSOR => "Tensor",
            STRING => "String",
            INT_LIST => "IntList",
            DOUBLE_LIST => "DoubleList",
            BOOL_LIST => "BoolList",
            TENSOR_LIST => "TensorList",
            OPTIONAL_TENSOR_LIST => "OptionalTensorList",
            _ => "unknown",
        }
    }
}

/// Facts about the plan that is being checked.
pub(super) struct Facts<'a> {
    pub values: Tables<'a>,
    /// One per value.
    pub marks: Vec<u8>,
    /// Bytes of each planned memory, if the plan says.
    pub arenas: Option<Scalars<'a, i64>>,
    /// Device of each planned memory; empty if all are on the CPU.
    pub devices: Vec<(DeviceType, i8)>,
    pub operators: usize,
    pub delegates: usize,
}

impl Facts<'_> {
    /// The mark of a value; reports and answers `None` if there is no such value.
    pub(super) fn mark(
        &self,
        value: i32,
        broken: &'static Rule,
        path: &Path<'_>,
        at: Option<u32>,
        out: &mut Checker,
    ) -> Option<u8> {
        let found = usize::try_from(value).ok().and_then(|value| self.marks.get(value)).copied();
        if found.is_none() {
            out.report(broken, path, at, format!("{value} of {}", self.marks.len(), value = ValueName(value)));
        }
        found
    }
}

impl Facts<'_> {
    #[inline(always)]
    pub(super) fn is_of(&self, value: Option<usize>, kind: u8) -> bool {
        value.and_then(|value| self.marks.get(value)).is_some_and(|known| known & mark::KIND == kind)
    }
}
