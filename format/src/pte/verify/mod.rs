//! The verifier of programs: every rule a file can break, all findings, in linear time.
//!
//! Three stages, one walk each: the head (`header`); the structure of the flatbuffer, by the derived walk, except for
//! values and instructions; then what it all means, where values and instructions get both at once. A stage looks at
//! whatever the stages before it could read, and says nothing again that was said before.

mod code;
mod data;
mod facts;
mod header;
mod operators;
mod plan;
mod quick;
mod tensor;
mod values;

use alloc::format;
use alloc::vec::Vec;

use self::quick::Quick;
use super::program::FileExtent;
use super::{ExecutionPlan, Program, ProgramRef};
use crate::check::{Checker, Path, StructureRules};
use crate::finding::Findings;
use crate::header::announced;
use crate::limits::Limits;
use crate::room;
use crate::rules::pte as rule;
use crate::wire::Table;

/// Result of verification.
pub struct Verdict<'a> {
    /// Everything found.
    pub findings: Findings,
    /// The program, as far as it could be read at all.
    pub program: Option<ProgramRef<'a>>,
}

const STRUCTURE: StructureRules = StructureRules {
    malformed: &rule::MALFORMED,
    misaligned: &rule::MISALIGNED,
    text: &rule::TEXT,
    limits: &rule::LIMITS,
};

/// Rows whose structure is checked together with their meaning.
const LEFT_OUT: &[&str] = &["EValue", "Instruction"];

/// The reference verifier gives up beyond this many tables.
const MANY_TABLES: u64 = 1_000_000;

/// The smallest position of a root table: behind the root word and the identifier.
const FIRST_TABLE: u32 = 8;

impl<'a> ProgramRef<'a> {
    /// Parses and verifies. `head` holds at least the first [`program_len`](crate::pte::program_len) bytes of a file of that extent.
    ///
    /// The errors are all findings, the harmless ones included.
    pub fn parse(head: &'a [u8], extent: FileExtent, limits: &Limits) -> Result<Self, Findings> {
        match verify(head, extent, limits) {
            Verdict { findings, program: Some(program) } if !findings.has_errors() => Ok(program),
            Verdict { findings, .. } => Err(findings),
        }
    }
}

/// Verifies a program: header, structure, semantics.
pub fn verify<'a>(head: &'a [u8], extent: FileExtent, limits: &Limits) -> Verdict<'a> {
    Verdict { findings: findings(head, extent, limits, true), program: ProgramRef::reopen(head).ok() }
}

/// Verifies a program, and every kernel call against the schema of its operator if nothing else is wrong.
pub fn verify_all<'a>(head: &'a [u8], extent: FileExtent, limits: &Limits) -> Verdict<'a> {
    let mut verdict = verify(head, extent, limits);
    if let (false, Some(program)) = (verdict.findings.has_errors(), &verdict.program) {
        let mut out = Checker::new(limits, STRUCTURE);
        operators::check(program.plans().tables(), &mut out);
        verdict.findings.extend(out.findings);
    }
    verdict
}

/// All findings, with the quick decision or by the walk that reports alone.
fn findings(head: &[u8], extent: FileExtent, limits: &Limits, quick: bool) -> Findings {
    let mut out = Checker::new(limits, STRUCTURE).leaving_out(LEFT_OUT);
    if let Some(file) = header::check(head, extent, &mut out) {
        match Table::root(file.bytes) {
            // Without bytes nothing is plainly good.
            Ok(root) => program(&root, &file, limits, Quick::new(if quick { file.bytes } else { &[] }), &mut out),
            Err(error) => out.unreadable(&Path::ROOT, error),
        }
    }
    out.findings.announce(extent.len, announced(head));
    out.findings
}

fn program<'a>(
    root: &Table<'a>,
    file: &header::Envelope<'a>,
    limits: &Limits,
    mut quick: Quick<'a>,
    out: &mut Checker,
) {
    let path = Path::ROOT;
    if root.offset() < FIRST_TABLE {
        out.report(&rule::MALFORMED, &path, Some(0), format!("the root table is at {:#x}", root.offset()));
    }
    out.table::<Program<'_>>(*root, &path);
    if out.is_spent() {
        return;
    }
    if let Ok(version @ 1..) = root.get(Program::VERSION) {
        let message = format!("{version}, only 0 is known");
        out.report(&rule::VERSION, &path.field("version"), Some(root.offset()), message);
    }
    let data = data::Data::check(root, file, out);
    let Some(mut data) = out.roomy(&path, data) else { return };
    let path = path.field("execution_plan");
    match root.tables(Program::EXECUTION_PLAN.index) {
        Ok(Some(plans)) => {
            if plans.is_empty() {
                out.report(&rule::PLANS_EMPTY, &path, None, "it is empty".into());
            }
            let mut names = Vec::new();
            for (index, table) in plans.iter().enumerate() {
                let Ok(table) = table else { continue };
                let path = path.index(index);
                match table.string(ExecutionPlan::NAME.index) {
                    Ok(Some(name)) => {
                        if let Err(error) = room::push(&mut names, (name.bytes(), index)) {
                            return out.no_room(&path, error);
                        }
                    }
                    Ok(None) => {
                        out.report(&rule::PLAN_NAME, &path.field("name"), Some(table.offset()), "there is none".into());
                    }
                    Err(_) => {}
                }
                if let Err(error) = plan::check(&table, &mut data, &mut quick, limits.arena_bytes, &path, out) {
                    out.no_room(&path, error);
                }
                if out.is_spent() {
                    return;
                }
            }
            if out.tables() > MANY_TABLES {
                out.report(&rule::MANY_TABLES, &Path::ROOT, None, format!("{} tables", out.tables()));
            }
            for (name, first, again) in data::duplicates(names) {
                let message = format!("`{}` is the name of plan {first} already", name.escape_ascii());
                out.report(&rule::PLAN_DUPLICATE, &path.index(again).field("name"), None, message);
            }
        }
        Ok(None) => out.report(&rule::PLANS, &path, Some(root.offset()), "there is no list".into()),
        Err(_) => {}
    }
    data.report_unused(out);
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::path::{Path, PathBuf};
    use std::{fs, vec::Vec};

    use super::*;

    fn files(folder: &str) -> Vec<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(folder);
        let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "pte"));
        files.sort();
        files
    }

    fn hostile(name: &str) -> Vec<u8> {
        let file = files("hostile/pte").into_iter().find(|file| file.file_stem().is_some_and(|stem| stem == name));
        fs::read(file.unwrap()).unwrap()
    }

    /// The quick decision changes neither what is found nor what it costs.
    fn agree(bytes: &[u8], limits: &Limits) -> bool {
        let extent = FileExtent::of(bytes);
        findings(bytes, extent, limits, true) == findings(bytes, extent, limits, false)
    }

    #[test]
    fn the_quick_decision_agrees_with_the_walk_that_reports() {
        let mut count = 0;
        for file in files("hostile/pte").into_iter().chain(files("corpus/models")) {
            assert!(agree(&fs::read(&file).unwrap(), &Limits::hostile()), "{}", file.display());
            count += 1;
        }
        assert!(count > 150, "only {count} files");
    }

    #[test]
    fn it_agrees_on_every_byte_that_is_another() {
        for name in ["input_twice", "segment_unused", "dynamism_unbound", "int_list_of_tensor"] {
            let good = hostile(name);
            for at in 0..good.len() {
                for change in [1, 4, 0x80, 0xff] {
                    let mut bytes = good.clone();
                    bytes[at] ^= change;
                    assert!(agree(&bytes, &Limits::hostile()), "{name}, byte {at:#x} ^ {change:#x}");
                }
            }
        }
    }

    #[test]
    fn it_agrees_on_every_cut_and_every_budget() {
        let good = hostile("trailing");
        for len in 0..good.len() {
            assert!(agree(&good[..len], &Limits::hostile()), "{len} bytes");
        }
        for visits in 0..200 {
            let limits = Limits { visits, ..Limits::hostile() };
            assert!(agree(&good, &limits), "{visits} visits");
        }
    }
}
