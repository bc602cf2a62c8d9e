//! Packages as a whole: from bytes to a verified view of all three levels.
//!
//! Invariant: in a [`PackageRef`] that [`PackageRef::parse`] returned every executable has been read, its fields, hints
//! and layouts are inside what they are about, and the kinds of executables belong together.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use super::{Executable, ExecutableType, MultiExecutable, Package, SerializedPackage};
use crate::room;
use crate::row::Table as _;
use crate::wire;

/// The identifier of a package, at byte 4. The levels inside have none.
pub const IDENTIFIER: [u8; 4] = *b"DWN1";

/// The lowest runtime version that is known.
pub const OLDEST_RUNTIME: i32 = 10;

/// Bytes of narrow memory that a tile of the chip has.
pub const NARROW_MEMORY: i32 = 196_608;

/// Tiles of the chip.
pub const TILES: u64 = 16;

/// The version of the last public runtime.
pub const NEWEST_RUNTIME: i32 = 14;

/// Nesting limit of packages for several chips.
pub(super) const MAX_DEPTH: usize = 8;

/// Packages to read besides those that say what they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Accept {
    /// Packages without the identifier, as the driver does.
    pub unidentified: bool,
}

impl Accept {
    /// Everything that can be read.
    pub const ALL: Accept = Accept { unidentified: true };
}

/// A package, borrowed from its bytes.
#[derive(Clone)]
pub struct PackageRef<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) row: Package<'a>,
    pub(super) multi: Option<Range<usize>>,
    pub(super) executables: Vec<ExecutableRef<'a>>,
    pub(super) chips: Vec<PackageRef<'a>>,
}

/// An executable of a package.
#[derive(Clone, Debug)]
pub struct ExecutableRef<'a> {
    pub(super) bytes: &'a [u8],
    /// Offset of the executable in the package.
    pub(super) offset: usize,
    pub(super) row: Executable<'a>,
}

impl<'a> PackageRef<'a> {
    /// Views bytes that [`PackageRef::parse`] has accepted before, without verifying them again. Other bytes are not
    /// dangerous, every access stays checked, but nothing that parsing promises holds for them.
    pub fn reopen(bytes: &'a [u8]) -> wire::Result<Self> {
        Self::reopen_within(bytes, MAX_DEPTH)
    }

    /// Returns whether a file without any identifier is a package all the same: its three levels can be read, and an
    /// executable has instructions.
    pub fn is_unidentified(bytes: &'a [u8]) -> bool {
        let has_code =
            |one: &ExecutableRef<'_>| one.row().instruction_bitstreams.as_ref().is_some_and(|code| !code.is_empty());
        bytes.get(4..8) == Some(&[0; 4])
            && Self::reopen(bytes).is_ok_and(|package| package.executables().iter().any(has_code))
    }

    fn reopen_within(bytes: &'a [u8], depth: usize) -> wire::Result<Self> {
        let table = wire::Table::root(bytes)?;
        let row = Package::decode(table)?;
        let mut package = PackageRef { bytes, row, multi: None, executables: Vec::new(), chips: Vec::new() };
        let multi = table.vector(Package::SERIALIZED_MULTI_EXECUTABLE.index, 1)?;
        if let Some(multi) = multi.filter(|multi| !multi.is_empty()) {
            let start = multi.offset() as usize;
            package.multi = Some(start..start.saturating_add(multi.len()));
            let strings = wire::Table::root(multi.bytes())?.strings(MultiExecutable::SERIALIZED_EXECUTABLES.index)?;
            for index in 0..strings.map_or(0, |strings| strings.len()) {
                let Some(string) = strings.map(|strings| strings.get(index)).transpose()? else { continue };
                let row = Executable::decode(wire::Table::root(string.bytes())?)?;
                let offset = start.saturating_add(string.offset() as usize);
                room::push(&mut package.executables, ExecutableRef { bytes: string.bytes(), offset, row })?;
            }
        }
        let chips = table.tables(Package::MULTI_CHIP_PACKAGE.index)?;
        if let (Some(chips), true, Some(depth)) = (chips, package.is_multi_chip(), depth.checked_sub(1)) {
            for chip in chips.iter() {
                if let Some(inner) = chip?.vector(SerializedPackage::SERIALIZED_PACKAGE.index, 1)? {
                    room::push(&mut package.chips, Self::reopen_within(inner.bytes(), depth)?)?;
                }
            }
        }
        Ok(package)
    }

    /// Returns the bytes of the package.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The root row.
    pub fn package(&self) -> &Package<'a> {
        &self.row
    }

    /// Returns the range of the multi-executable in the package. A signature is over these bytes.
    pub fn multi_executable(&self) -> Option<Range<usize>> {
        self.multi.clone()
    }

    /// The bytes of the multi-executable.
    pub fn multi_executable_bytes(&self) -> &'a [u8] {
        self.multi.clone().and_then(|range| self.bytes.get(range)).unwrap_or(&[])
    }

    /// The executables, in the order of the file.
    pub fn executables(&self) -> &[ExecutableRef<'a>] {
        &self.executables
    }

    /// The packages of single chips inside a package for several.
    pub fn chips(&self) -> &[PackageRef<'a>] {
        &self.chips
    }

    /// Returns whether the package is for several chips.
    pub fn is_multi_chip(&self) -> bool {
        self.row.virtual_chip_id == -1
    }

    /// The executable that takes inputs and gives outputs: the `STAND_ALONE` one if there is one, else the one that
    /// runs with cached parameters, else the only one.
    pub fn main(&self) -> Option<usize> {
        let of = |kind| self.executables.iter().position(|executable| executable.row.kind == kind);
        let alone = of(ExecutableType::STAND_ALONE).or_else(|| of(ExecutableType::EXECUTION_ONLY));
        alone.or(if self.executables.len() == 1 { Some(0) } else { None })
    }

    /// The executable that loads parameters for the main one, or for all that run with cached ones. Next to one that
    /// stands alone it is not used.
    pub fn caching(&self) -> Option<usize> {
        let of = |kind| self.executables.iter().position(|executable| executable.row.kind == kind);
        match (of(ExecutableType::STAND_ALONE), of(ExecutableType::EXECUTION_ONLY)) {
            (None, Some(_)) => of(ExecutableType::PARAMETER_CACHING),
            _ => None,
        }
    }

    /// The executables that take inputs and give outputs: the main one, or all that run with the parameters of one.
    pub fn running(&self) -> impl Iterator<Item = usize> {
        let several = self.caching().is_some();
        let main = self.main();
        self.executables.iter().enumerate().filter_map(move |(index, one)| {
            (main == Some(index) || several && one.row.kind == ExecutableType::EXECUTION_ONLY).then_some(index)
        })
    }

    /// Returns the executable that these bytes are without a package around it, as wrappers of early 2019 have them;
    /// `None` of a package and of anything else.
    pub fn bare(bytes: &'a [u8]) -> Option<ExecutableRef<'a>> {
        if bytes.get(4..8) == Some(&IDENTIFIER) {
            return None;
        }
        let row = Executable::decode(wire::Table::root(bytes).ok()?).ok()?;
        let has_code = row.instruction_bitstreams.as_ref().is_some_and(|chunks| {
            !chunks.is_empty()
                && chunks
                    .iter()
                    .all(|chunk| chunk.is_ok_and(|chunk| chunk.bitstream.is_some_and(|code| !code.0.is_empty())))
        });
        has_code.then_some(ExecutableRef { bytes, offset: 0, row })
    }
}

impl fmt::Debug for PackageRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PackageRef({} bytes, {} executables)", self.bytes.len(), self.executables.len())
    }
}

impl<'a> ExecutableRef<'a> {
    /// Returns the bytes of the flatbuffer.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the offset of the executable in the package.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the row of the executable.
    pub fn row(&self) -> &Executable<'a> {
        &self.row
    }

    /// The weights; empty if there are none.
    pub fn parameters(&self) -> &[u8] {
        self.row.parameters.as_ref().map_or(&[], |blob| blob.as_slice())
    }

    /// Returns the compiler's estimate of a run in cycles, if it gave one.
    pub fn estimated_cycles(&self) -> Option<u64> {
        let wide = u64::try_from(self.row.estimated_cycles_64bit).ok().filter(|cycles| *cycles > 0);
        wide.or_else(|| u64::try_from(self.row.estimated_cycles).ok().filter(|cycles| *cycles > 0))
    }
}

/// Returns whether these bytes are two integers in DER, as an ECDSA signature is.
pub fn is_der_signature(bytes: &[u8]) -> bool {
    let Some((content, [])) = der(bytes, 0x30) else { return false };
    let Some((first, rest)) = der(content, 0x02) else { return false };
    let Some((second, [])) = der(rest, 0x02) else { return false };
    !first.is_empty() && !second.is_empty()
}

/// The content of the element of this tag, and what follows it.
fn der(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let [found, len, rest @ ..] = bytes else { return None };
    let (len, rest) = match (len, rest) {
        (0..=0x7f, rest) => (usize::from(*len), rest),
        (0x81, [len, rest @ ..]) => (usize::from(*len), rest),
        _ => return None,
    };
    if *found != tag { None } else { rest.split_at_checked(len) }
}
