//! Edge TPU packages.

mod graph;
pub mod host;
mod layers;
mod levels;
pub mod parts;
pub mod plan;
mod print;
mod size;
pub mod summary;

use std::io::{self, Write};

use edgepack_format::FileKind;
use edgepack_format::darwinn::{Accept, Package, PackageRef, verify};
use edgepack_format::finding::Findings;
use edgepack_format::limits::Limits;
use edgepack_format::row::Table as _;
use edgepack_format::{rules, wire};

use super::inspection::{Inside, Summary, show};
use super::{Format, Head, Piece, Root, Size, pte};
use crate::file::File;
use crate::profile::ExportRecord;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::units::amount;
use crate::view::Graph;

pub use graph::graphs as package_graphs;
pub use levels::add_package as package_levels;
pub use print::print;
pub use size::add as package_size;

/// Packages.
pub struct Darwinn;

/// Content of a package.
#[derive(serde::Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Inspected<'p, 'a> {
    /// Compiled packages, level by level.
    packages: Vec<summary::PackageSummary>,
    #[serde(skip)]
    package: &'p PackageRef<'a>,
}

impl Summary for Inspected<'_, '_> {
    fn print(&self, _all: bool, out: &mut dyn Write) -> io::Result<()> {
        print(std::iter::once((0, self.package)), out)
    }
}

fn package<'a>(head: &'a Head, limits: &Limits) -> Option<PackageRef<'a>> {
    verify::verify(&head.bytes, limits, Accept::ALL).package
}

/// The package of that number, as bytes.
pub fn extract(packages: &[&[u8]], piece: Piece<'_>, format: &dyn Format) -> Result<Vec<u8>, Failure> {
    let index = match piece {
        Piece::Package(index) => index,
        Piece::Member(path) => return member(packages, path),
        _ => return Err(format.lacks("such pieces; take a package, with --package, or a field, with --member")),
    };
    match packages.get(index) {
        Some(package) => Ok(package.to_vec()),
        None => Err(Failure::usage(format!(
            "there is no package {index}; the file has {}",
            amount(packages.len(), "package")
        ))),
    }
}

/// A field of a package, by its path: `packages[0].signature`, `packages[0].executables[1].serialized_model`. Numbers
/// are text.
fn member(packages: &[&[u8]], path: &str) -> Result<Vec<u8>, Failure> {
    let wrong = || {
        let form = "packages[I].FIELD or packages[I].executables[J].FIELD";
        let fields = "signature, keypair_version, virtual_chip_id; serialized_model, parameters";
        Failure::usage(format!("there is nothing at {path:?}; fields are at {form}: {fields}"))
    };
    let numbered =
        |part: &str, name: &str| part.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?.parse::<usize>().ok();
    let parts: Vec<&str> = path.split('.').collect();
    let index = parts.first().and_then(|part| numbered(part, "packages")).ok_or_else(wrong)?;
    let package = PackageRef::reopen(packages.get(index).ok_or_else(wrong)?)?;
    let blob = |blob: &Option<edgepack_format::row::Blob<'_>>| {
        blob.as_ref().map_or(Vec::new(), |blob| blob.as_slice().to_vec())
    };
    let row = package.package();
    match parts.as_slice() {
        [_, "signature"] => Ok(blob(&row.signature)),
        [_, "keypair_version"] => Ok(format!("{}\n", row.keypair_version).into_bytes()),
        [_, "virtual_chip_id"] => Ok(format!("{}\n", row.virtual_chip_id).into_bytes()),
        [_, executable, field @ ("serialized_model" | "parameters")] => {
            let index = numbered(executable, "executables").ok_or_else(wrong)?;
            let row = package.executables().get(index).ok_or_else(wrong)?.row();
            Ok(blob(if *field == "parameters" { &row.parameters } else { &row.serialized_model }))
        }
        _ => Err(wrong()),
    }
}

/// Returns whether the verifier, which walks the tables stored inside under the same budget, finished.
pub fn ends(findings: &Findings) -> bool {
    let budget = [rules::tflite::LIMITS.id, rules::darwinn::LIMITS.id];
    !findings.iter().any(|finding| budget.contains(&finding.rule.id))
}

/// The failure of who wants to run what is compiled for an Edge TPU.
pub fn no_device(file: &File) -> Failure {
    let message = "this is compiled for an Edge TPU, and this build drives none; \
                   `edgepack darwinn` does what the host does";
    Failure::cannot_run(message).about(&file.name)
}

impl Format for Darwinn {
    fn kind(&self) -> FileKind {
        FileKind::DarwinnPackage
    }

    fn id(&self) -> &'static str {
        "darwinn"
    }

    fn verify(&self, head: &Head, session: &Session) -> Findings {
        verify::verify(&head.bytes, &session.limits, Accept::ALL).findings
    }

    fn root<'a>(&self, head: &'a Head) -> Option<Root<'a>> {
        Some((wire::Table::root(&head.bytes).ok()?, Package::DESC))
    }

    fn is_modest(&self, head: &Head, limits: &Limits) -> bool {
        let limits = limits.unfolding(head.bytes.len() as u64);
        self.root(head).is_none() || ends(&verify::verify(&head.bytes, &limits, Accept::ALL).findings)
    }

    fn inspect(&self, head: &Head, all: bool, session: &mut Session) -> Result<Status, Failure> {
        let package = package(head, &session.limits);
        let mut inside = Inside::default();
        if let Some(package) = package.as_ref().filter(|_| all) {
            levels::add(package, &mut inside.levels);
        }
        let package = package.as_ref().filter(|_| self.modest_root(head, &session.limits).is_some());
        let summary = package.map(|package| Inspected { packages: vec![summary::package(package)], package });
        show(self, head, summary.as_ref(), inside, all, session)
    }

    fn size(&self, head: &Head, session: &Session) -> Result<Size, Failure> {
        if self.modest_root(head, &session.limits).is_none() {
            return Ok(Size::unreadable(head.file_len()));
        }
        let mut size = Size::new(head.file_len());
        if let Some(package) = package(head, &session.limits) {
            package_size(0, &package, &mut size);
        }
        Ok(size.sorted())
    }

    fn extract(&self, head: &Head, piece: Piece<'_>, session: &Session) -> Result<Vec<u8>, Failure> {
        let limits = &session.limits;
        self.modest_root(head, limits).ok_or_else(super::unreadable)?;
        extract(&self.packages(head, limits), piece, self)
    }

    fn graphs(&self, head: &Head, record: Option<ExportRecord>, session: &mut Session) -> Result<Vec<Graph>, Failure> {
        if record.is_some() {
            return Err(self.lacks("record of an export"));
        }
        self.modest_root(head, &session.limits).ok_or_else(super::unreadable)?;
        let package = package(head, &session.limits).ok_or_else(super::unreadable)?;
        let mut graphs = Vec::new();
        package_graphs(&package, "package", "", None, &mut graphs);
        Ok(graphs)
    }

    fn packages<'a>(&self, head: &'a Head, limits: &Limits) -> Vec<&'a [u8]> {
        package(head, limits).map(|package| package.bytes()).into_iter().collect()
    }

    fn program(&self, file: &File, _limits: &Limits) -> Result<pte::Opened, Failure> {
        Err(no_device(file))
    }
}
