//! The flatbuffer of a file: read into memory, its root table found, its rules checked. An archive has none; it is read
//! whole all the same.

use edgepack_format::check::{Checker, Path, StructureRules};
use edgepack_format::extent::FileExtent;
use edgepack_format::finding::Findings;
use edgepack_format::limits::Limits;
use edgepack_format::ptd::{Accept, Generation};
use edgepack_format::row::{Table, TableDesc};
use edgepack_format::rules::pte::{LIMITS, MALFORMED, MISALIGNED, TEXT};
use edgepack_format::{bundle, darwinn, ptd, pte, rules, tflite, trace, wire};
use edgepack_loader::AlignedBytes;

use crate::file::{File, read_head};
use crate::kind::Kind;
use crate::status::Failure;
use crate::summary::bundle::program_bytes;

/// A file's flatbuffer in memory; segments stay where they are.
pub struct Flatbuffer {
    /// Its kind.
    pub kind: Kind,
    /// From the start of the file to the end of the flatbuffer.
    pub head: AlignedBytes,
    /// The file's length.
    pub extent: FileExtent,
}

/// A model with compiled parts, or one such part alone.
pub enum Compiled<'a> {
    /// A model.
    Model(Box<tflite::ModelRef<'a>>),
    /// A bare package.
    Package(Box<darwinn::PackageRef<'a>>),
}

impl<'a> Compiled<'a> {
    /// All packages, with the place of each in the file.
    pub fn packages(&self) -> Vec<(usize, &darwinn::PackageRef<'a>)> {
        match self {
            Compiled::Model(model) => model.packages().collect(),
            Compiled::Package(package) => vec![(0, package)],
        }
    }
}

impl Flatbuffer {
    /// Reads it.
    pub fn read(file: &File, limits: &Limits) -> Result<Flatbuffer, Failure> {
        let len = file.head.len;
        if len > limits.segment_bytes {
            let message =
                format!("{}: {len} bytes to be read at once, {} are allowed", file.name, limits.segment_bytes);
            return Err(Failure::findings(message));
        }
        let head = read_head(&*file.source, len).map_err(|failure| failure.about(&file.name))?;
        Ok(Flatbuffer { kind: file.kind, head, extent: file.head.extent })
    }

    /// Everything the rules of its kind have to say.
    pub fn verify(&self, limits: &Limits) -> Findings {
        let (head, extent) = (&self.head[..], self.extent);
        match self.kind {
            Kind::Program => pte::verify::verify_all(head, extent, limits).findings,
            Kind::Data | Kind::FlatData => ptd::verify::verify(head, extent, limits, Accept::ALL).findings,
            Kind::Bundle => bundle::verify::verify(head, limits).findings,
            Kind::Trace => trace::verify::verify(head, limits).findings,
            Kind::Model => tflite::verify::verify(head, limits, darwinn::Accept::ALL).findings,
            Kind::Package => darwinn::verify::verify(head, limits, darwinn::Accept::ALL).findings,
            Kind::Library => edgepack_loader::mlf::verify(head, limits).findings,
            Kind::Exported => edgepack_exir::verify::verify_archive(head),
        }
    }

    /// The root table with its description, if it can be located at all.
    pub fn root(&self) -> Option<(wire::Table<'_>, &'static TableDesc)> {
        let start = if self.kind == Kind::Trace { trace::PREFIX_LEN } else { 0 };
        let table = wire::Table::root_at(&self.head, start).ok()?;
        let desc = match self.kind {
            Kind::Program => pte::Program::DESC,
            Kind::Data => match Generation::of(&table) {
                Generation::A | Generation::B => ptd::LegacyFlatTensor::DESC,
                Generation::C | Generation::FlatData => ptd::FlatTensor::DESC,
            },
            Kind::FlatData => ptd::FlatData::DESC,
            Kind::Bundle => bundle::BundledProgram::DESC,
            Kind::Trace => trace::ETDump::DESC,
            Kind::Model => tflite::Model::DESC,
            Kind::Package => darwinn::Package::DESC,
            Kind::Library | Kind::Exported => return None,
        };
        Some((table, desc))
    }

    /// The compiled parts, as far as they can be read; `None` for other kinds.
    pub fn compiled(&self, limits: &Limits) -> Option<Compiled<'_>> {
        match self.kind {
            Kind::Model => {
                let verdict = tflite::verify::verify(&self.head, limits, darwinn::Accept::ALL);
                verdict.model.map(|model| Compiled::Model(Box::new(model)))
            }
            Kind::Package => {
                let verdict = darwinn::verify::verify(&self.head, limits, darwinn::Accept::ALL);
                verdict.package.map(|package| Compiled::Package(Box::new(package)))
            }
            _ => None,
        }
    }

    /// Where the bytes of a key of a data file are.
    pub fn data_entry(&self, key: &str) -> Option<std::ops::Range<u64>> {
        let verdict = ptd::verify::verify(&self.head, self.extent, &Limits::DEFAULT, Accept::ALL);
        Some(verdict.data?.lookup(key)?.range)
    }

    /// Whether what is in it can be looked at table by table in a moment. Tables may be shared, so that a few kilobytes
    /// unfold into billions of rows; of such a file only the findings and a bounded walk are shown.
    pub fn is_modest(&self, limits: &Limits) -> bool {
        let Some((root, _)) = self.root() else { return true };
        let limits = &limits.unfolding(self.head.len() as u64);
        match self.kind {
            Kind::Program => unfolds::<pte::Program<'_>>(root, limits),
            Kind::Data => match Generation::of(&root) {
                Generation::A | Generation::B => unfolds::<ptd::LegacyFlatTensor<'_>>(root, limits),
                Generation::C | Generation::FlatData => unfolds::<ptd::FlatTensor<'_>>(root, limits),
            },
            Kind::FlatData => unfolds::<ptd::FlatData<'_>>(root, limits),
            Kind::Bundle => {
                let inside = program_bytes(&root).and_then(|bytes| wire::Table::root(bytes).ok());
                unfolds::<bundle::BundledProgram<'_>>(root, limits)
                    && inside.is_none_or(|program| unfolds::<pte::Program<'_>>(program, limits))
            }
            Kind::Trace => unfolds::<trace::ETDump<'_>>(root, limits),
            Kind::Library | Kind::Exported => true,
            Kind::Model | Kind::Package => {
                // What lies inside as bytes is walked by the verifier under the same budget.
                !self.verify(limits).iter().any(|finding| is_budget(finding.rule.id))
            }
        }
    }
}

/// Whether a rule says that a walk was too long.
fn is_budget(id: &str) -> bool {
    [rules::tflite::LIMITS.id, rules::darwinn::LIMITS.id].contains(&id)
}

/// Whether a walk over everything below a table ends soon.
fn unfolds<'a, T: Table<'a>>(root: wire::Table<'a>, limits: &Limits) -> bool {
    // What is wrong is said elsewhere; here only the length of the walk counts.
    let mut limits = *limits;
    limits.findings = 0;
    let rules = StructureRules { malformed: &MALFORMED, misaligned: &MISALIGNED, text: &TEXT, limits: &LIMITS };
    let mut checker = Checker::new(&limits, rules);
    checker.table::<T>(root, &Path::ROOT);
    !checker.is_spent()
}
