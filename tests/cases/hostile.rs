//! Bad files of every family: whatever a manifest under `tests/data/hostile/` lists is read, and its rule is reported at
//! its path.
//!
//! Adding a case is a file and a line in the manifest of its folder.

use std::fs;
use std::path::{Path, PathBuf};

use edgepack_format::extent::FileExtent;
use edgepack_format::finding::{Findings, Severity};
use edgepack_format::limits::Limits;
use edgepack_format::{bundle, darwinn, ptd, pte, rules, tflite, trace};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;

/// Lists a test per line of every manifest.
pub fn trials() -> Vec<Trial> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/hostile");
    let mut families: Vec<PathBuf> =
        fs::read_dir(folder).expect("the bad files").map(|entry| entry.expect("an entry").path()).collect();
    families.sort();
    let mut trials = Vec::new();
    for path in families {
        let family = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(path.join("manifest.json")).expect("a manifest");
        let lines: Vec<Value> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{family}: {error}"));
        assert!(!lines.is_empty(), "{family} has no bad file");
        for line in lines.into_iter().map(Line) {
            let (path, family) = (path.clone(), family.clone());
            let name = format!("hostile::{family}::{}", line.text("id"));
            trials.push(Trial::test(name, move || line.judge(&family, &path)));
        }
    }
    trials
}

/// A line of a manifest.
struct Line(Value);

impl Line {
    fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_else(|| panic!("`{key}` is missing in {}", self.0))
    }

    /// The reader's limits: those for strangers, but for what may be visited if the line says so.
    fn limits(&self) -> Limits {
        let mut limits = Limits::hostile();
        limits.visits = self.0["visits"].as_u64().unwrap_or(limits.visits);
        limits
    }

    /// Returns the findings of the verifier of the family, and whether the file is refused.
    fn verify(&self, family: &str, bytes: &[u8]) -> (Findings, bool) {
        let (extent, limits) = (FileExtent::of(bytes), self.limits());
        match family {
            "pte" => {
                let findings = pte::verify::verify_all(bytes, extent, &limits).findings;
                // Rules that take the schemas of operators are not asked when a file is opened.
                let refused = match self.0["schemas"].as_bool() {
                    Some(true) => findings.has_errors(),
                    _ => pte::ProgramRef::parse(bytes, extent, &limits).is_err(),
                };
                (findings, refused)
            }
            "ptd" => {
                let all = self.0["accept"] == "all";
                let accept = if all { ptd::Accept::ALL } else { ptd::Accept::default() };
                let findings = ptd::verify::verify(bytes, extent, &limits, accept).findings;
                let refused = findings.has_errors();
                (findings, refused)
            }
            "bundle" => {
                let findings = bundle::verify::verify(bytes, &limits).findings;
                let refused = findings.has_errors();
                (findings, refused)
            }
            "trace" => {
                let findings = trace::verify::verify(bytes, &limits).findings;
                let refused = findings.has_errors();
                (findings, refused)
            }
            "darwinn" | "tflite" => {
                let all = self.0["accept"] == "all";
                let accept = if all { darwinn::Accept::ALL } else { darwinn::Accept::default() };
                let findings = match family {
                    "darwinn" => darwinn::verify::verify(bytes, &limits, accept).findings,
                    _ => tflite::verify::verify(bytes, &limits, accept).findings,
                };
                let refused = findings.has_errors();
                (findings, refused)
            }
            "mlf" => {
                let findings = edgepack_loader::mlf::verify(bytes, &limits).findings;
                let refused = findings.has_errors();
                (findings, refused)
            }
            "xnnpack" => {
                let findings = edgepack_tests::xnnpack::findings(bytes, &limits, &self.0);
                let refused = findings.has_errors();
                (findings, refused)
            }
            "exir" => {
                let findings = edgepack_exir::verify::verify_archive(bytes);
                let refused = findings.has_errors();
                (findings, refused)
            }
            other => panic!("no verifier for `{other}`"),
        }
    }

    /// Checks that the rule is reported at the path, and that the file is refused if the rule is an error.
    fn judge(&self, family: &str, folder: &Path) -> Result<(), Failed> {
        let bytes = fs::read(folder.join(self.text("file")))?;
        let (id, path) = (self.text("rule"), self.text("path"));
        let rule = rules::find(id).ok_or_else(|| format!("there is no rule {id}"))?;
        let (findings, refused) = self.verify(family, &bytes);
        if !findings.iter().any(|finding| finding.rule == rule && finding.path == path) {
            return Err(Failed::from(format!("wanted {id} {path}, got\n{findings}")));
        }
        if self.text("severity") != rule.severity.to_string() || (rule.severity == Severity::Error && !refused) {
            return Err(Failed::from(format!("{id} is {}, refused: {refused}", rule.severity)));
        }
        Ok(())
    }
}
