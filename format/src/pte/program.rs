//! Programs as a whole: from bytes to a verified view.

use core::fmt;

use super::{ExecutionPlan, Program};
use crate::header::{HEAD_LEN, ProgramHeader};
use crate::row::{Rows, Table};
use crate::wire;

pub use crate::extent::FileExtent;

/// The identifier of a program, at byte 4.
pub const IDENTIFIER: [u8; 4] = *b"ET12";

/// Returns the number of bytes, from the start of the file, that hold the flatbuffer: [`ProgramRef::parse`] needs at
/// least these. A head of [`HEAD_LEN`](crate::header::HEAD_LEN) bytes is enough to tell.
pub fn program_len(head: &[u8], extent: FileExtent) -> u64 {
    match ProgramHeader::read(head) {
        // A header that announces less than itself is looked at, too: that is what is wrong with it.
        Ok(header) => header.program_size.max(HEAD_LEN as u64).min(extent.len),
        Err(_) => extent.len,
    }
}

/// A program that satisfies the structural and semantic rules, borrowed from its bytes.
///
/// Segments are not part of it: their ranges are known to be inside the file, their bytes are not touched.
///
/// ```
/// use edgepack_format::extent::FileExtent;
/// use edgepack_format::limits::Limits;
/// use edgepack_format::pte::ProgramRef;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/models/mlp_portable.pte");
/// let bytes = std::fs::read(path)?;
/// let program = ProgramRef::parse(&bytes, FileExtent::of(&bytes), &Limits::DEFAULT).expect("a valid program");
/// let plan = program.plan("forward").expect("the method");
/// assert_eq!(plan.operators.unwrap().len(), 4);
///
/// let findings = ProgramRef::parse(&bytes[..100], FileExtent::of(&bytes[..100]), &Limits::hostile()).err().unwrap();
/// assert!(findings.errors() > 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct ProgramRef<'a> {
    bytes: &'a [u8],
    header: Option<ProgramHeader>,
    program: Program<'a>,
}

impl<'a> ProgramRef<'a> {
    /// Views bytes that [`ProgramRef::parse`] has accepted before, without verifying them again. Other bytes are not
    /// dangerous, every access stays checked, but nothing that parsing promises holds for them.
    pub fn reopen(head: &'a [u8]) -> wire::Result<Self> {
        let header = ProgramHeader::read(head).ok();
        let len = header.map_or(head.len(), |header| usize::try_from(header.program_size).unwrap_or(usize::MAX));
        let bytes = head.get(..len).unwrap_or(head);
        Ok(ProgramRef { bytes, header, program: Program::decode(wire::Table::root(bytes)?)? })
    }

    /// The flatbuffer with the header in it.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The extended header, if the file has one.
    pub fn header(&self) -> Option<ProgramHeader> {
        self.header
    }

    /// The root row.
    pub fn program(&self) -> &Program<'a> {
        &self.program
    }

    /// Methods in the order of the file, each read when it is asked for.
    pub fn plans(&self) -> Rows<'a, ExecutionPlan<'a>> {
        self.program.execution_plan.clone().unwrap_or_default()
    }

    /// The method of this name.
    pub fn plan(&self, name: &str) -> Option<ExecutionPlan<'a>> {
        let plans = self.plans();
        let tables = plans.tables();
        let found = tables
            .iter()
            .flatten()
            .find(|table| matches!(table.get(ExecutionPlan::NAME), Ok(Some(found)) if found == name))?;
        ExecutionPlan::decode(found).ok()
    }

    /// Returns the range of a segment in the file; `None` if there is no such segment or its range overflows. An empty
    /// one is empty wherever it is said to lie.
    pub fn segment_range(&self, index: u32) -> Option<core::ops::Range<u64>> {
        let segments = self.program.segments.as_ref()?;
        let segment = segments.get(index as usize).ok()?;
        let base = self.header.map_or(0, |header| header.segment_base_offset);
        if segment.size == 0 {
            let start = base.saturating_add(segment.offset);
            return Some(start..start);
        }
        let start = base.checked_add(segment.offset)?;
        Some(start..start.checked_add(segment.size)?)
    }
}

impl fmt::Debug for ProgramRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProgramRef({} bytes, {} methods)", self.bytes.len(), self.plans().len())
    }
}
