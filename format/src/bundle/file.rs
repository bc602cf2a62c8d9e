//! Bundled programs as a whole: from bytes to a verified view.

use core::fmt;
use core::ops::Range;

use super::verify::{self, Verdict};
use super::{BundledMethodTestCase, BundledMethodTestSuite, BundledProgram};
use crate::finding::Findings;
use crate::limits::Limits;
use crate::pte::ProgramRef;
use crate::row::{Rows, Table as _};
use crate::wire::{self, Vector};

/// The identifier of a bundled program, at byte 4.
pub const IDENTIFIER: [u8; 4] = *b"BP08";

/// The version exporters write.
pub const VERSION: u32 = 2;

/// A bundle whose program and test cases satisfy the rules, and fit each other; borrowed from the whole file.
#[derive(Clone)]
pub struct BundleRef<'a> {
    bytes: &'a [u8],
    root: BundledProgram<'a>,
    program: Option<Vector<'a>>,
}

impl<'a> BundleRef<'a> {
    /// Parses and verifies a whole file, the program in it included.
    ///
    /// The errors are all findings, the harmless ones included; those of the program have paths below `program`.
    pub fn parse(bytes: &'a [u8], limits: &Limits) -> Result<Self, Findings> {
        match verify::verify(bytes, limits) {
            Verdict { findings, bundle: Some(bundle) } if !findings.has_errors() => Ok(bundle),
            Verdict { findings, .. } => Err(findings),
        }
    }

    /// Views bytes that [`BundleRef::parse`] has accepted before, without verifying them again. Other bytes are not
    /// dangerous, every access stays checked, but nothing that parsing promises holds for them.
    pub fn reopen(bytes: &'a [u8]) -> wire::Result<Self> {
        let table = wire::Table::root(bytes)?;
        let program = table.vector(BundledProgram::PROGRAM.index, 1)?;
        Ok(BundleRef { bytes, root: BundledProgram::decode(table)?, program })
    }

    /// Returns the bytes of the file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The root row.
    pub fn root(&self) -> &BundledProgram<'a> {
        &self.root
    }

    /// The program: a complete `.pte` file that starts at a multiple of 32.
    pub fn program_bytes(&self) -> &'a [u8] {
        self.program.map_or(&[], |vector| vector.bytes())
    }

    /// Returns the range of the program in the file.
    pub fn program_range(&self) -> Range<u64> {
        let start = self.program.map_or(0, |vector| u64::from(vector.offset()));
        start..start.saturating_add(self.program_bytes().len() as u64)
    }

    /// The program, which was verified with the bundle.
    pub fn program(&self) -> wire::Result<ProgramRef<'a>> {
        ProgramRef::reopen(self.program_bytes())
    }

    /// The suites, sorted by method name as exporters write them.
    pub fn suites(&self) -> Rows<'a, BundledMethodTestSuite<'a>> {
        self.root.method_test_suites.clone().unwrap_or_default()
    }

    /// The test cases of this method; `None` if the bundle has no suite for it.
    pub fn cases(&self, method: &str) -> Option<Rows<'a, BundledMethodTestCase<'a>>> {
        let suites = self.suites();
        let suite =
            suites.tables().iter().flatten().find(
                |table| matches!(table.get(BundledMethodTestSuite::METHOD_NAME), Ok(Some(name)) if name == method),
            )?;
        Some(suite.get(BundledMethodTestSuite::TEST_CASES).ok()?.unwrap_or_default())
    }
}

impl fmt::Debug for BundleRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BundleRef({} bytes, {} suites)", self.bytes.len(), self.suites().len())
    }
}
