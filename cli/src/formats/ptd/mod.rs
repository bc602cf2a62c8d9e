//! Data files: `.ptd` of all generations, and FlatData.

mod extract;
mod open;
mod print;
mod size;
pub(crate) mod summary;

use std::io::{self, Write};

use edgepack_format::FileKind;
use edgepack_format::finding::Findings;
use edgepack_format::limits::Limits;
use edgepack_format::ptd::{Accept, FlatData, FlatTensor, Generation, LegacyFlatTensor, verify};
use edgepack_format::row::Table as _;
use edgepack_format::wire;

use super::inspection::{Inside, Summary, show};
use super::{Format, Head, Piece, Root, Size};
use crate::session::Session;
use crate::status::{Failure, Status};
use summary::DataSummary;

pub use open::open_data;

/// Data files of one kind.
pub struct Ptd {
    kind: FileKind,
    id: &'static str,
}

impl Ptd {
    /// `.ptd`.
    pub const DATA: Ptd = Ptd { kind: FileKind::Data, id: "data" };
    /// FlatData.
    pub const FLAT_DATA: Ptd = Ptd { kind: FileKind::FlatData, id: "flat-data" };

    fn generation(&self, root: &wire::Table<'_>) -> Generation {
        match self.kind {
            FileKind::FlatData => Generation::FlatData,
            _ => Generation::of(root),
        }
    }

    fn summary(&self, head: &Head, root: &wire::Table<'_>) -> DataSummary {
        DataSummary::new(self.generation(root), root, &head.bytes, head.file_len())
    }
}

impl Summary for DataSummary {
    fn print(&self, _all: bool, out: &mut dyn Write) -> io::Result<()> {
        print::print(self, out)
    }
}

impl Format for Ptd {
    fn kind(&self) -> FileKind {
        self.kind
    }

    fn id(&self) -> &'static str {
        self.id
    }

    fn verify(&self, head: &Head, session: &Session) -> Findings {
        verify::verify(&head.bytes, head.file.head.extent, &session.limits, Accept::ALL).findings
    }

    fn root<'a>(&self, head: &'a Head) -> Option<Root<'a>> {
        let root = wire::Table::root(&head.bytes).ok()?;
        let desc = match self.generation(&root) {
            Generation::A | Generation::B => LegacyFlatTensor::DESC,
            Generation::C => FlatTensor::DESC,
            Generation::FlatData => FlatData::DESC,
        };
        Some((root, desc))
    }

    fn is_modest(&self, head: &Head, limits: &Limits) -> bool {
        let Some((root, _)) = self.root(head) else { return true };
        match self.generation(&root) {
            Generation::A | Generation::B => head.unfolds::<LegacyFlatTensor<'_>>(root, limits),
            Generation::C => head.unfolds::<FlatTensor<'_>>(root, limits),
            Generation::FlatData => head.unfolds::<FlatData<'_>>(root, limits),
        }
    }

    fn inspect(&self, head: &Head, all: bool, session: &mut Session) -> Result<Status, Failure> {
        let summary = self.modest_root(head, &session.limits).map(|(root, _)| self.summary(head, &root));
        show(self, head, summary.as_ref(), Inside::default(), all, session)
    }

    fn size(&self, head: &Head, session: &Session) -> Result<Size, Failure> {
        match self.modest_root(head, &session.limits) {
            Some((root, _)) => size::size(head, &self.summary(head, &root)),
            None => Ok(Size::unreadable(head.file_len())),
        }
    }

    fn extract(&self, head: &Head, piece: Piece<'_>, session: &Session) -> Result<Vec<u8>, Failure> {
        let limits = &session.limits;
        let (root, _) = self.modest_root(head, limits).ok_or_else(super::unreadable)?;
        match piece {
            Piece::Segment(index) => extract::segment(head, &self.summary(head, &root), index),
            Piece::Named(key) => extract::named(head, &self.summary(head, &root), key, limits),
            Piece::Delegate(_) | Piece::Weight(..) => Err(self.lacks("delegates")),
            _ => Err(self.lacks("program inside")),
        }
    }
}
