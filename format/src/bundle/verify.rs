//! The verifier of bundled programs: the bundle, the program in it, and whether the two fit.

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::ToString;

use super::value::{Expected, check_value};
use super::{BundleRef, BundledMethodTestCase, BundledMethodTestSuite, BundledProgram, IDENTIFIER, VERSION, Value};
use crate::check::{Checker, Path, StructureRules};
use crate::extent::FileExtent;
use crate::finding::Findings;
use crate::header::identifier;
use crate::limits::Limits;
use crate::pte::{self, ExecutionPlan, ProgramRef};
use crate::row::{Rows, Scalars, Table as _};
use crate::rules::bundle as rule;
use crate::wire;

const STRUCTURE: StructureRules = StructureRules {
    malformed: &rule::MALFORMED,
    misaligned: &rule::MISALIGNED,
    text: &rule::TEXT,
    limits: &rule::LIMITS,
};

/// Result of verification.
pub struct Verdict<'a> {
    /// Everything found, in the bundle and in its program.
    pub findings: Findings,
    /// The bundle, as far as it could be read at all.
    pub bundle: Option<BundleRef<'a>>,
}

/// Verifies a bundle, the program in it with what is left of the same limits, and each test case against its method.
pub fn verify<'a>(bytes: &'a [u8], limits: &Limits) -> Verdict<'a> {
    let mut out = Checker::new(limits, STRUCTURE);
    let bundle = file(bytes, limits, &mut out);
    out.findings.announce(bytes.len() as u64, announced(bytes));
    Verdict { findings: out.findings, bundle }
}

/// Bytes to the end of the program, if they can be told: a bundle has no header.
pub fn announced(bytes: &[u8]) -> Option<u64> {
    wire::Table::root(bytes).ok()?.announced_end(BundledProgram::PROGRAM.index)
}

fn file<'a>(bytes: &'a [u8], limits: &Limits, out: &mut Checker) -> Option<BundleRef<'a>> {
    let found = identifier(bytes).unwrap_or_default();
    if found != IDENTIFIER {
        let message = format!("the identifier is {}", found.escape_ascii());
        out.report(&rule::IDENTIFIER, &Path::ROOT, None, message);
        return None;
    }
    match wire::Table::root(bytes) {
        Ok(table) => out.table::<BundledProgram<'_>>(table, &Path::ROOT),
        Err(error) => out.unreadable(&Path::ROOT, error),
    }
    // What cannot be read has been reported by the check.
    let bundle = BundleRef::reopen(bytes).ok()?;
    let version = bundle.root().version;
    if version != VERSION {
        let message = format!("version {version}, exporters write {VERSION}");
        out.report(&rule::VERSION, &Path::ROOT.field("version"), None, message);
    }
    if !out.is_spent() {
        let program = program(&bundle, limits, out);
        let plans = program.as_ref().map(Plans::of);
        suites(&bundle, plans.as_ref(), out);
    }
    Some(bundle)
}

/// Verifies the embedded program; the answer is one without errors.
fn program<'a>(bundle: &BundleRef<'a>, limits: &Limits, out: &mut Checker) -> Option<ProgramRef<'a>> {
    let bytes = bundle.program_bytes();
    if bytes.is_empty() {
        let what = if bundle.root().program.is_some() { "empty" } else { "absent" };
        out.report(&rule::PROGRAM, &Path::ROOT.field("program"), None, what.to_string());
        return None;
    }
    let limits = Limits { visits: out.budget().left(), ..*limits };
    let pte::verify::Verdict { findings, program } = pte::verify::verify(bytes, FileExtent::of(bytes), &limits);
    let sound = !findings.has_errors();
    let base = bundle.program_range().start;
    out.findings.extend(findings.moved("program", base));
    program.filter(|_| sound)
}

/// The methods of the embedded program by name; the first of a name counts.
struct Plans<'a> {
    rows: Rows<'a, ExecutionPlan<'a>>,
    by_name: BTreeMap<Cow<'a, str>, usize>,
}

impl<'a> Plans<'a> {
    fn of(program: &ProgramRef<'a>) -> Self {
        let rows = program.plans();
        let mut by_name = BTreeMap::new();
        for (index, table) in rows.tables().iter().enumerate() {
            if let Ok(Some(name)) = table.and_then(|table| table.get(ExecutionPlan::NAME)) {
                by_name.entry(name).or_insert(index);
            }
        }
        Plans { rows, by_name }
    }

    fn find(&self, name: &str) -> Option<ExecutionPlan<'a>> {
        self.rows.get(*self.by_name.get(name)?).ok()
    }
}

fn suites(bundle: &BundleRef<'_>, plans: Option<&Plans<'_>>, out: &mut Checker) {
    let mut seen = BTreeSet::new();
    let mut last: Option<Cow<'_, str>> = None;
    for (index, table) in bundle.suites().tables().iter().enumerate() {
        let list = Path::ROOT.field("method_test_suites");
        let path = list.index(index);
        let Ok(table) = table else { continue };
        let at = Some(table.offset());
        let name = match table.get(BundledMethodTestSuite::METHOD_NAME) {
            Ok(Some(name)) => Some(name),
            Ok(None) => {
                out.report(&rule::METHOD_NAME, &path.field("method_name"), at, "absent".to_string());
                None
            }
            Err(_) => None,
        };
        let plan = name.as_deref().and_then(|name| plans?.find(name));
        if let (Some(name), Some(_), None) = (&name, plans, &plan) {
            out.report(&rule::METHOD_UNKNOWN, &path, at, format!("the program has no method {name:?}"));
        }
        if let Some(name) = name {
            if !seen.insert(name.clone()) {
                out.report(&rule::METHOD_DUPLICATE, &path, at, format!("there is a suite for {name:?} already"));
            } else if let Some(last) = last.as_ref().filter(|last| **last > name) {
                out.report(&rule::METHOD_ORDER, &path, at, format!("{name:?} comes after {last:?}"));
            }
            last = Some(name);
        }
        if let Ok(Some(cases)) = table.get(BundledMethodTestSuite::TEST_CASES) {
            for (index, case) in cases.tables().iter().enumerate() {
                if let Ok(case) = case.and_then(BundledMethodTestCase::decode) {
                    check_case(&case, plan.as_ref(), &path.field("test_cases").index(index), out);
                }
            }
        }
    }
}

fn check_case(case: &BundledMethodTestCase<'_>, plan: Option<&ExecutionPlan<'_>>, path: &Path<'_>, out: &mut Checker) {
    let inputs = case.inputs.clone().unwrap_or_default();
    if let Some(want) = plan.map(|plan| plan.inputs.as_ref().map_or(0, Scalars::len)).filter(|n| *n != inputs.len()) {
        let message = format!("{} inputs, the method takes {want}", inputs.len());
        out.report(&rule::INPUT_COUNT, &path.field("inputs"), None, message);
    }
    values(&inputs, plan, Expected::Input, &path.field("inputs"), out);

    let outputs = case.expected_outputs.clone().unwrap_or_default();
    let path = path.field("expected_outputs");
    if outputs.is_empty() {
        out.report(&rule::NO_EXPECTATION, &path, None, "the case can only be run".to_string());
        return;
    }
    if let Some(want) = plan.map(|plan| plan.outputs.as_ref().map_or(0, Scalars::len)).filter(|n| *n != outputs.len()) {
        let message = format!("{} outputs, the method gives {want}", outputs.len());
        out.report(&rule::OUTPUT_COUNT, &path, None, message);
    }
    values(&outputs, plan, Expected::Output, &path, out);
}

fn values(
    list: &Rows<'_, Value<'_>>,
    plan: Option<&ExecutionPlan<'_>>,
    side: Expected,
    path: &Path<'_>,
    out: &mut Checker,
) {
    for (index, table) in list.tables().iter().enumerate() {
        let Ok(table) = table else { continue };
        let declared = plan.and_then(|plan| {
            let indices = match side {
                Expected::Input => plan.inputs.as_ref()?,
                Expected::Output => plan.outputs.as_ref()?,
            };
            let value = usize::try_from(indices.get(index)?).ok()?;
            plan.values.as_ref()?.get(value).ok()?.val
        });
        check_value(&table, declared.as_ref(), side, &path.index(index), out);
    }
}
