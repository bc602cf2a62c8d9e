//! Data files, bundles, traces, compiled models, library packages, payloads and exported programs that break one rule
//! each: the files under `hostile/` are what the recipes here make, and the verifiers say about each what its recipe
//! expects.
//!
//! `.ci/generate -p edgepack-tests --test it hostile_data` writes files and manifests again after a
//! recipe was added.

mod bundle;
mod darwinn;
mod exir;
mod mlf;
mod ptd;
mod tflite;
mod trace;
mod xnnpack;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use edgepack_format::extent::FileExtent;
use edgepack_format::finding::{Findings, Rule};
use edgepack_format::limits::Limits;
use edgepack_format::{bundle as bnd, darwinn as dwn, ptd as data, rules, tflite as tfl, trace as trc};
use serde_json::{Value, json};

/// A file and what its verifier says about it.
pub struct Case {
    id: &'static str,
    rule: &'static Rule,
    path: &'static str,
    bytes: Vec<u8>,
    /// True if the file is read with everything accepted that can be.
    accept_all: bool,
    /// Another ceiling for what reading may visit.
    visits: Option<u64>,
    /// Context of the file: named data, and the arguments of a call.
    around: Vec<(&'static str, Value)>,
}

impl Case {
    fn new(id: &'static str, rule: &'static Rule, path: &'static str, bytes: Vec<u8>) -> Self {
        Case { id, rule, path, bytes, accept_all: false, visits: None, around: Vec::new() }
    }

    fn accepting_all(self) -> Self {
        Case { accept_all: true, ..self }
    }

    fn visits(self, visits: u64) -> Self {
        Case { visits: Some(visits), ..self }
    }

    fn around(mut self, key: &'static str, value: Value) -> Self {
        self.around.push((key, value));
        self
    }

    fn limits(&self) -> Limits {
        let mut limits = Limits::hostile();
        limits.visits = self.visits.unwrap_or(limits.visits);
        limits
    }

    fn file(&self, extension: &str) -> String {
        format!("{}.{extension}", self.id)
    }

    fn entry(&self, extension: &str) -> Value {
        let mut entry = json!({
            "id": self.id,
            "file": self.file(extension),
            "rule": self.rule.id,
            "path": self.path,
            "severity": self.rule.severity,
        });
        if self.accept_all {
            entry["accept"] = "all".into();
        }
        if let Some(visits) = self.visits {
            entry["visits"] = visits.into();
        }
        for (key, value) in &self.around {
            entry[key] = value.clone();
        }
        entry
    }
}

/// Overwrites bytes in place.
pub fn patch(mut bytes: Vec<u8>, at: usize, with: &[u8]) -> Vec<u8> {
    bytes[at..at + with.len()].copy_from_slice(with);
    bytes
}

/// Offset of the first occurrence of `needle`; panics if there is none.
pub fn position(bytes: &[u8], needle: &[u8]) -> usize {
    bytes.windows(needle.len()).position(|window| window == needle).expect("the needle is in the file")
}

fn folder(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/hostile").join(family)
}

/// Every recipe against its file, every file against its verifier, every rule of the family covered.
fn replay(family: &str, extension: &str, cases: &[Case], all: &[&'static Rule], verify: fn(&Case) -> Findings) {
    let folder = folder(family);
    let manifest = Value::Array(cases.iter().map(|case| case.entry(extension)).collect());
    let manifest = serde_json::to_string_pretty(&manifest).unwrap() + "\n";
    if std::env::var_os("EDGEPACK_BLESS").is_some() {
        for case in cases {
            fs::write(folder.join(case.file(extension)), &case.bytes).unwrap();
        }
        fs::write(folder.join("manifest.json"), &manifest).unwrap();
    }
    assert_eq!(fs::read_to_string(folder.join("manifest.json")).unwrap(), manifest, "bless {family}");

    let mut wrong = Vec::new();
    for case in cases {
        let file = fs::read(folder.join(case.file(extension))).unwrap_or_default();
        if file != case.bytes {
            wrong.push(format!("{}: the file is not what the recipe makes", case.id));
        }
        let findings = verify(case);
        if !findings.iter().any(|finding| finding.rule == case.rule && finding.path == case.path) {
            wrong.push(format!("{}: wanted {} {:?}, got\n{findings}", case.id, case.rule.id, case.path));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    let covered: BTreeSet<_> = cases.iter().map(|case| case.rule.id).collect();
    // Rules on a data file for a given program (`X`) take two files and are tested with programs.
    let single = all.iter().map(|rule| rule.id).filter(|id| !id.starts_with("PTD-X"));
    let missing: Vec<_> = single.filter(|id| !covered.contains(id)).collect();
    assert!(missing.is_empty(), "rules without a file: {missing:?}");
    let ids: BTreeSet<_> = cases.iter().map(|case| case.id).collect();
    assert_eq!(ids.len(), cases.len(), "two cases of one id");
}

#[test]
fn data_files() {
    replay("ptd", "ptd", &ptd::cases(), rules::ptd::ALL, |case| {
        let accept = if case.accept_all { data::Accept::ALL } else { data::Accept::default() };
        data::verify::verify(&case.bytes, FileExtent::of(&case.bytes), &case.limits(), accept).findings
    });
}

#[test]
fn bundles() {
    replay("bundle", "bpte", &bundle::cases(), rules::bundle::ALL, |case| {
        bnd::verify::verify(&case.bytes, &case.limits()).findings
    });
}

#[test]
fn traces() {
    replay("trace", "etdp", &trace::cases(), rules::trace::ALL, |case| {
        trc::verify::verify(&case.bytes, &case.limits()).findings
    });
}

fn accept(case: &Case) -> dwn::Accept {
    if case.accept_all { dwn::Accept::ALL } else { dwn::Accept::default() }
}

#[test]
fn packages() {
    replay("darwinn", "dwn", &darwinn::cases(), rules::darwinn::ALL, |case| {
        dwn::verify::verify(&case.bytes, &case.limits(), accept(case)).findings
    });
}

#[test]
fn models() {
    replay("tflite", "tflite", &tflite::cases(), rules::tflite::ALL, |case| {
        tfl::verify::verify(&case.bytes, &case.limits(), accept(case)).findings
    });
}

#[test]
fn payloads() {
    replay("xnnpack", "xnn", &xnnpack::cases(), rules::xnnpack::ALL, |case| {
        edgepack_tests::xnnpack::findings(&case.bytes, &case.limits(), &case.entry("xnn"))
    });
}

#[test]
fn libraries() {
    replay("mlf", "tar", &mlf::cases(), rules::mlf::ALL, |case| {
        edgepack_loader::mlf::verify(&case.bytes, &case.limits()).findings
    });
}

/// Only what keeps an archive from being read; the other rules have programs in the tests of their crate.
#[test]
fn exported_programs() {
    replay("exir", "pt2", &exir::cases(), &[&rules::exir::SIZES, &rules::exir::ARCHIVE], |case| {
        assert!(edgepack_exir::archive::Archive::parse(&case.bytes).and_then(|archive| archive.program()).is_err());
        edgepack_exir::verify::verify_archive(&case.bytes)
    });
}

/// The packages and models that recipes change have no fault of their own.
#[test]
fn what_is_changed_is_good() {
    use edgepack_format::finding::Severity;
    let package = darwinn::good();
    let findings = dwn::verify::verify(&package, &Limits::hostile(), dwn::Accept::default()).findings;
    assert!(findings.iter().all(|finding| finding.rule.severity == Severity::Info), "{findings}");
    for payload in xnnpack::good() {
        let findings = edgepack_tests::xnnpack::findings(&payload, &Limits::hostile(), &Value::Null);
        assert!(findings.is_empty(), "{findings}");
    }
    let findings = edgepack_loader::mlf::verify(&mlf::good(), &Limits::hostile()).findings;
    assert!(findings.is_empty(), "{findings}");
    let findings = edgepack_exir::verify::verify_archive(&exir::good());
    assert!(findings.is_empty(), "{findings}");
}
