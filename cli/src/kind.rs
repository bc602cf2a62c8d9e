//! The kinds of files the commands open: those of the ExecuTorch family.

use edgepack_format::FileKind;

/// A kind of file that commands open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A program, `.pte`.
    Program,
    /// A data file, `.ptd`.
    Data,
    /// A FlatData file.
    FlatData,
    /// A program with recorded runs, `.bpte`.
    Bundle,
    /// A trace, `.etdp`.
    Trace,
}

impl Kind {
    /// Of a file of the family; `None` for files of other families and for what is no package at all.
    pub fn of(kind: FileKind) -> Option<Kind> {
        Some(match kind {
            FileKind::Program => Kind::Program,
            FileKind::Data => Kind::Data,
            FileKind::FlatData => Kind::FlatData,
            FileKind::Bundle => Kind::Bundle,
            FileKind::Trace => Kind::Trace,
            _ => return None,
        })
    }

    /// Its name in JSON documents.
    pub fn id(self) -> &'static str {
        match self {
            Kind::Program => "program",
            Kind::Data => "data",
            Kind::FlatData => "flat-data",
            Kind::Bundle => "bundle",
            Kind::Trace => "trace",
        }
    }

    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Kind::Program => FileKind::Program.name(),
            Kind::Data => FileKind::Data.name(),
            Kind::FlatData => FileKind::FlatData.name(),
            Kind::Bundle => FileKind::Bundle.name(),
            Kind::Trace => FileKind::Trace.name(),
        }
    }
}
