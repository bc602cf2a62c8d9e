//! Bad programs: recipes (`edgepack_tests::hostile`) make the files of `tests/data/hostile/pte`, every rule has one, and
//! verifying takes work in proportion to the file.
//!
//! `.ci/generate` writes their files and lines again, keeps lines without a recipe, and writes the page of rules.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, fs};

use edgepack_format::extent::FileExtent;
use edgepack_format::limits::Limits;
use edgepack_format::{pte, rules};
use edgepack_tests::hostile;
use serde_json::{Value, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/hostile")
}

fn blessing() -> bool {
    env::var_os("EDGEPACK_BLESS").is_some()
}

fn manifest(family: &Path) -> Vec<Value> {
    // Tests run side by side; none may read what another is about to write.
    static BLESSED: OnceLock<()> = OnceLock::new();
    BLESSED.get_or_init(|| {
        if blessing() {
            bless()
        }
    });
    lines(family)
}

fn lines(family: &Path) -> Vec<Value> {
    let text = fs::read_to_string(family.join("manifest.json")).unwrap_or_else(|_| "[]".into());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", family.display()))
}

/// The line of a recipe.
fn line(case: &hostile::Case) -> Value {
    let mut line = json!({
        "id": case.id,
        "file": format!("{}.pte", case.id),
        "rule": case.rule.id,
        "path": case.path,
        "severity": case.rule.severity,
    });
    if let Some(visits) = case.visits {
        line["visits"] = visits.into();
    }
    if case.schemas {
        line["schemas"] = true.into();
    }
    line
}

fn bless() {
    let folder = folder().join("pte");
    let cases = hostile::cases();
    let ids: BTreeSet<_> = cases.iter().map(|case| case.id).collect();
    let kept = lines(&folder).into_iter().filter(|line| !line["id"].as_str().is_some_and(|id| ids.contains(id)));
    let lines: Vec<_> = cases.iter().map(line).chain(kept).collect();
    fs::write(folder.join("manifest.json"), serde_json::to_string_pretty(&lines).unwrap() + "\n").unwrap();
    for case in &cases {
        fs::write(folder.join(format!("{}.pte", case.id)), &case.bytes).unwrap();
    }
}

#[test]
fn recipes_and_files_agree() {
    let folder = folder().join("pte");
    let cases = hostile::cases();
    let lines = manifest(&folder);
    for case in &cases {
        assert!(lines.contains(&line(case)), "{}: its line is stale, bless", case.id);
        let file = fs::read(folder.join(format!("{}.pte", case.id))).unwrap_or_default();
        assert!(file == case.bytes, "{}: the file is not what the recipe makes, bless", case.id);
    }
}

#[test]
fn every_rule_for_programs_has_a_file() {
    let covered: BTreeSet<_> = manifest(&folder().join("pte"))
        .iter()
        .map(|line| line["rule"].as_str().unwrap_or_default().to_owned())
        .collect();
    let missing: Vec<_> = rules::pte::ALL.iter().map(|rule| rule.id).filter(|id| !covered.contains(*id)).collect();
    assert!(missing.is_empty(), "rules without a file: {missing:?}");
}

#[test]
fn the_programs_that_recipes_change_are_good() {
    for (name, rows) in [("small", hostile::small()), ("full", hostile::full())] {
        let bytes = rows.write();
        let findings = pte::verify::verify_all(&bytes, FileExtent::of(&bytes), &Limits::hostile()).findings;
        assert!(findings.is_empty(), "{name}:\n{findings}");
    }
}

#[test]
fn the_page_of_rules_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/rules.md");
    if blessing() {
        fs::write(&path, rules::markdown()).unwrap();
    }
    let page = fs::read_to_string(&path).unwrap_or_default();
    assert!(page == rules::markdown(), "docs/rules.md is stale, bless");
}

/// The least number of visits that a file can be read with.
fn visits(bytes: &[u8]) -> u64 {
    let reads = |visits| {
        let mut limits = Limits::default();
        limits.visits = visits;
        !pte::verify::verify(bytes, FileExtent::of(bytes), &limits).findings.has_errors()
    };
    let (mut low, mut high) = (0, Limits::default().visits);
    assert!(reads(high));
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if reads(middle) { high = middle } else { low = middle }
    }
    high
}

#[test]
fn work_grows_with_the_file() {
    for (what, make) in [
        ("values", hostile::many_values as fn(usize) -> Vec<u8>),
        ("plans", hostile::many_plans),
        ("aliased instructions", |count| hostile::aliased(10, count / 10)),
    ] {
        let (one, ten) = (visits(&make(10_000)), visits(&make(100_000)));
        assert!(ten <= 10 * one && ten > 9 * one, "{what}: {one} visits, {ten} for ten times as many");
    }
}

#[test]
fn a_million_values_are_read() {
    let bytes = hostile::many_values(1_000_000);
    let findings = pte::verify::verify(&bytes, FileExtent::of(&bytes), &Limits::default()).findings;
    assert!(!findings.has_errors(), "{findings}");
    // Two tables each: more than the reference verifies, and more than strangers may ask for.
    assert_eq!(findings.iter().map(|finding| finding.rule.id).collect::<Vec<_>>(), ["PTE-S05"]);
    let strange = pte::verify::verify(&bytes, FileExtent::of(&bytes), &Limits::hostile()).findings;
    assert!(strange.iter().any(|finding| finding.rule == &rules::pte::LIMITS));
}
