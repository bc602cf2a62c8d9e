//! TensorFlow Lite models, which may hold Edge TPU packages.

mod bare;
mod graph;
mod print;
mod summary;

use std::io::{self, Write};

use edgepack_format::FileKind;
use edgepack_format::darwinn::Accept;
use edgepack_format::finding::Findings;
use edgepack_format::limits::Limits;
use edgepack_format::row::Table as _;
use edgepack_format::tflite::{Model, ModelRef, verify};
use edgepack_format::wire;

use super::inspection::{Inside, Summary, show};
use super::{Format, Head, Piece, Root, Size, darwinn, pte};
use crate::file::File;
use crate::profile::ExportRecord;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::view::Graph;

/// Answer about a model without compiled parts.
const PLAIN: &str = "nothing in this model is compiled for an Edge TPU: `edgetpu_compiler` compiles quantised models, \
    LiteRT runs it as it is, and a PyTorch model is lowered from what torch.export.save writes";

/// Models.
pub struct TfLite;

/// Content of a model.
#[derive(serde::Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Inspected<'m, 'a> {
    #[serde(flatten)]
    document: summary::ModelSummary,
    #[serde(skip)]
    model: &'m ModelRef<'a>,
}

impl Summary for Inspected<'_, '_> {
    fn print(&self, _all: bool, out: &mut dyn Write) -> io::Result<()> {
        print::print(self.model, out)?;
        bare::print(self.model, out)?;
        darwinn::print(self.model.packages(), out)
    }
}

fn model<'a>(head: &'a Head, limits: &Limits) -> Option<ModelRef<'a>> {
    verify::verify(&head.bytes, limits, Accept::ALL).model
}

impl Format for TfLite {
    fn kind(&self) -> FileKind {
        FileKind::TfLite
    }

    fn id(&self) -> &'static str {
        "tflite"
    }

    fn verify(&self, head: &Head, session: &Session) -> Findings {
        verify::verify(&head.bytes, &session.limits, Accept::ALL).findings
    }

    fn root<'a>(&self, head: &'a Head) -> Option<Root<'a>> {
        Some((wire::Table::root(&head.bytes).ok()?, Model::DESC))
    }

    fn is_modest(&self, head: &Head, limits: &Limits) -> bool {
        let limits = limits.unfolding(head.bytes.len() as u64);
        self.root(head).is_none() || darwinn::ends(&verify::verify(&head.bytes, &limits, Accept::ALL).findings)
    }

    fn inspect(&self, head: &Head, all: bool, session: &mut Session) -> Result<Status, Failure> {
        let model = model(head, &session.limits);
        let mut inside = Inside::default();
        for (_, package) in model.iter().filter(|_| all).flat_map(|model| model.packages()) {
            darwinn::package_levels(package, &mut inside.levels);
        }
        let model = model.as_ref().filter(|_| self.modest_root(head, &session.limits).is_some());
        let summary = model.map(|model| Inspected { document: summary::model(model), model });
        show(self, head, summary.as_ref(), inside, all, session)
    }

    fn size(&self, head: &Head, session: &Session) -> Result<Size, Failure> {
        if self.modest_root(head, &session.limits).is_none() {
            return Ok(Size::unreadable(head.file_len()));
        }
        let mut size = Size::new(head.file_len());
        let Some(model) = model(head, &session.limits) else { return Ok(size) };
        let mut packages = 0u64;
        for (index, (_, package)) in model.packages().enumerate() {
            packages = packages.saturating_add(darwinn::package_size(index, package, &mut size));
        }
        let archive = model.zip().map_or(0, |zip| size.bytes.saturating_sub(zip.start as u64));
        size.part("the archive behind the model", archive);
        size.part("the model around", size.bytes.saturating_sub(packages).saturating_sub(archive));
        Ok(size.sorted())
    }

    fn extract(&self, head: &Head, piece: Piece<'_>, session: &Session) -> Result<Vec<u8>, Failure> {
        let limits = &session.limits;
        self.modest_root(head, limits).ok_or_else(super::unreadable)?;
        darwinn::extract(&self.packages(head, limits), piece, self)
    }

    fn graphs(&self, head: &Head, record: Option<ExportRecord>, session: &mut Session) -> Result<Vec<Graph>, Failure> {
        if record.is_some() {
            return Err(self.lacks("record of an export"));
        }
        self.modest_root(head, &session.limits).ok_or_else(super::unreadable)?;
        let model = model(head, &session.limits).ok_or_else(super::unreadable)?;
        Ok(graph::graphs(&model))
    }

    fn packages<'a>(&self, head: &'a Head, limits: &Limits) -> Vec<&'a [u8]> {
        model(head, limits).iter().flat_map(|model| model.packages().map(|(_, package)| package.bytes())).collect()
    }

    fn program(&self, file: &File, limits: &Limits) -> Result<pte::Opened, Failure> {
        let head = Head::read(file.clone(), limits)?;
        match model(&head, limits) {
            Some(model) if model.packages().next().is_none() => {
                Err(Failure::cannot_run(format!("{}: {PLAIN}", file.name)))
            }
            _ => Err(darwinn::no_device(file)),
        }
    }
}
