//! The verifier of packages: every rule at all three levels, under one budget, all findings.
//!
//! Flatbuffers stored as bytes inside another flatbuffer are walked separately, with their own positions; findings have
//! positions in the whole file.

mod context;
mod executable;
mod fields;
mod hints;
mod layers;
mod set;

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::package::{
    Accept, ExecutableRef, IDENTIFIER, MAX_DEPTH, NEWEST_RUNTIME, OLDEST_RUNTIME, PackageRef, is_der_signature,
};
use super::{MultiExecutable, PAGE, Package};
use crate::check::{Checker, Path, StructureRules};
use crate::finding::Findings;
use crate::header::identifier;
use crate::limits::Limits;
use crate::room;
use crate::row::{Slot, Table};
use crate::rules::darwinn as rule;
use crate::wire;

/// Rules that the structural walk reports under.
pub const STRUCTURE: StructureRules = StructureRules {
    malformed: &rule::MALFORMED,
    misaligned: &rule::MISALIGNED,
    text: &rule::TEXT,
    limits: &rule::LIMITS,
};

/// Result of verification.
pub struct Verdict<'a> {
    /// Everything found.
    pub findings: Findings,
    /// The package, as far as it could be read at all.
    pub package: Option<PackageRef<'a>>,
}

impl<'a> PackageRef<'a> {
    /// Parses and verifies a package, all levels included. Bytes behind the last object are allowed.
    ///
    /// The errors are all findings, the harmless ones included.
    pub fn parse(bytes: &'a [u8], limits: &Limits) -> Result<Self, Findings> {
        Self::parse_as(bytes, limits, Accept::default())
    }

    /// The same for packages that `accept` names, too.
    pub fn parse_as(bytes: &'a [u8], limits: &Limits, accept: Accept) -> Result<Self, Findings> {
        match verify(bytes, limits, accept) {
            Verdict { findings, package: Some(package) } if !findings.has_errors() => Ok(package),
            Verdict { findings, .. } => Err(findings),
        }
    }
}

/// Verifies a package.
pub fn verify<'a>(bytes: &'a [u8], limits: &Limits, accept: Accept) -> Verdict<'a> {
    let mut out = Checker::new(limits, STRUCTURE);
    let package = package(bytes, accept, 0, &Path::ROOT, &mut out);
    Verdict { findings: out.findings, package }
}

/// Verifies a package that starts at `base` of the file that `out` looks at.
pub(crate) fn verify_within<'a>(
    bytes: &'a [u8],
    base: u64,
    accept: Accept,
    path: &Path<'_>,
    out: &mut Checker,
) -> Option<PackageRef<'a>> {
    out.under(STRUCTURE, |out| out.within(base, |out| package(bytes, accept, 0, path, out)))
}

/// Returns the start and the bytes of the vector of bytes in this slot.
fn bytes_of<'a, F>(table: &wire::Table<'a>, slot: Slot<F>) -> Option<(usize, &'a [u8])> {
    let vector = table.vector(slot.index, 1).ok()??;
    Some((vector.offset() as usize, vector.bytes()))
}

/// Returns the position in the file of something at `start` of the buffer looked at.
fn inside(out: &Checker, start: usize) -> u64 {
    out.base().saturating_add(start as u64)
}

/// Verifies the structure of a buffer's root and reads its row.
fn root<'a, T: Table<'a>>(bytes: &'a [u8], path: &Path<'_>, out: &mut Checker) -> Option<(wire::Table<'a>, T)> {
    match wire::Table::root(bytes) {
        Ok(table) => {
            out.table::<T>(table, path);
            // What cannot be read has been reported by the check.
            Some((table, T::decode(table).ok()?))
        }
        Err(error) => {
            out.unreadable(path, error);
            None
        }
    }
}

fn package<'a>(
    bytes: &'a [u8],
    accept: Accept,
    depth: usize,
    path: &Path<'_>,
    out: &mut Checker,
) -> Option<PackageRef<'a>> {
    let Some(found) = identifier(bytes) else {
        out.report(&rule::SHORT, path, None, format!("{} bytes", bytes.len()));
        return None;
    };
    if found != IDENTIFIER {
        let rule = if accept.unidentified { &rule::UNIDENTIFIED } else { &rule::IDENTIFIER };
        out.report(rule, path, Some(4), format!("the identifier is {}", found.escape_ascii()));
        if !accept.unidentified {
            return None;
        }
    }
    let (table, row) = root::<Package<'_>>(bytes, path, out)?;
    versions(&row, path, out);
    if !bytes.len().is_multiple_of(PAGE) {
        out.report(&rule::PAGE_LAYOUT, path, None, format!("the package has {} bytes", bytes.len()));
    }
    let mut package = PackageRef { bytes, row, multi: None, executables: Vec::new(), chips: Vec::new() };
    if package.is_multi_chip() {
        chips(&mut package, &table, accept, depth, path, out);
    }
    let path = path.field("serialized_multi_executable");
    match bytes_of(&table, Package::SERIALIZED_MULTI_EXECUTABLE) {
        Some((start, multi)) if !multi.is_empty() => {
            package.multi = Some(start..start.saturating_add(multi.len()));
            if !start.is_multiple_of(PAGE) {
                out.report(&rule::PAGE_LAYOUT, &path, Some(start as u32), format!("starts at byte {start}"));
            }
            let base = inside(out, start);
            package.executables = out.within(base, |out| executables(multi, start, &path, out));
        }
        _ if package.is_multi_chip() => {}
        _ => out.report(&rule::NO_EXECUTABLES, &path, None, "absent or empty".to_string()),
    }
    if !package.executables.is_empty() && !out.is_spent() {
        set::check(&package, &path, out);
    }
    Some(package)
}

fn versions(row: &Package<'_>, path: &Path<'_>, out: &mut Checker) {
    let version = row.min_runtime_version;
    let at = path.field("min_runtime_version");
    if version > NEWEST_RUNTIME {
        out.report(&rule::RUNTIME_NEW, &at, None, format!("{version}, the newest is {NEWEST_RUNTIME}"));
    } else if version < OLDEST_RUNTIME {
        out.report(&rule::RUNTIME_OLD, &at, None, format!("{version}, the oldest is {OLDEST_RUNTIME}"));
    }
    if let Some(signature) = row.signature.as_ref().map(|blob| blob.as_slice())
        && !signature.is_empty()
        && !is_der_signature(signature)
    {
        let message = format!("{} bytes that are not two integers in DER", signature.len());
        out.report(&rule::SIGNATURE, &path.field("signature"), None, message);
    }
}

fn chips<'a>(
    package: &mut PackageRef<'a>,
    table: &wire::Table<'a>,
    accept: Accept,
    depth: usize,
    path: &Path<'_>,
    out: &mut Checker,
) {
    out.report(&rule::MULTI_CHIP, &path.field("virtual_chip_id"), None, "-1".to_string());
    let path = path.field("multi_chip_package");
    let tables = match table.tables(Package::MULTI_CHIP_PACKAGE.index) {
        Ok(Some(tables)) if !tables.is_empty() => tables,
        _ => return out.report(&rule::NO_PACKAGES, &path, None, "absent or empty".to_string()),
    };
    if depth >= MAX_DEPTH {
        return out.report(&rule::DEPTH, &path, None, format!("{depth} packages are around it"));
    }
    for (index, chip) in tables.iter().enumerate() {
        if out.is_spent() {
            return;
        }
        let path = path.index(index);
        let Ok(chip) = chip else { continue };
        match bytes_of(&chip, super::SerializedPackage::SERIALIZED_PACKAGE) {
            Some((start, bytes)) if !bytes.is_empty() => {
                let base = inside(out, start);
                let chip = out.within(base, |out| {
                    self::package(bytes, accept, depth.saturating_add(1), &path.field("serialized_package"), out)
                });
                if let Err(error) = room::extend(&mut package.chips, chip) {
                    return out.no_room(&path, error);
                }
            }
            _ => out.report(&rule::NO_PACKAGES, &path, Some(chip.offset()), "absent or empty".to_string()),
        }
    }
}

/// Verifies the executables of a multi-executable that starts at `start` of its package.
fn executables<'a>(bytes: &'a [u8], start: usize, path: &Path<'_>, out: &mut Checker) -> Vec<ExecutableRef<'a>> {
    let mut found = Vec::new();
    let Some((table, _)) = root::<MultiExecutable<'_>>(bytes, path, out) else { return found };
    let path = path.field("serialized_executables");
    let strings = match table.strings(MultiExecutable::SERIALIZED_EXECUTABLES.index) {
        Ok(Some(strings)) if !strings.is_empty() => strings,
        Ok(_) => {
            out.report(&rule::EXECUTABLES, &path, None, "absent or empty".to_string());
            return found;
        }
        // Reported by the structural check.
        Err(_) => return found,
    };
    for index in 0..strings.len() {
        if out.is_spent() {
            break;
        }
        let Ok(string) = strings.get(index) else { continue };
        let (path, at, bytes) = (path.index(index), string.offset() as usize, string.bytes());
        if !at.is_multiple_of(PAGE) || !bytes.len().is_multiple_of(PAGE) {
            let message = format!("{} bytes at byte {at}", bytes.len());
            out.report(&rule::PAGE_LAYOUT, &path, Some(string.offset()), message);
        }
        let base = inside(out, at);
        let executable = out.within(base, |out| executable::check(bytes, start.saturating_add(at), &path, out));
        if let Err(error) = room::extend(&mut found, executable) {
            out.no_room(&path, error);
        }
    }
    found
}
