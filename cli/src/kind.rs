//! The kinds of files the commands open: those of the ExecuTorch family, compiled Edge TPU models, Model
//! Library Format packages and export IR.

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
    /// A TensorFlow Lite model, which may hold Edge TPU packages.
    Model,
    /// A bare Edge TPU package.
    Package,
    /// A Model Library Format package.
    Library,
    /// Export IR.
    Exported,
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
            FileKind::TfLite => Kind::Model,
            FileKind::DarwinnPackage => Kind::Package,
            FileKind::ModelLibrary => Kind::Library,
            FileKind::ExportedProgram => Kind::Exported,
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
            Kind::Model => "tflite",
            Kind::Package => "darwinn",
            Kind::Library => "mlf",
            Kind::Exported => "exir",
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
            Kind::Model => FileKind::TfLite.name(),
            Kind::Package => FileKind::DarwinnPackage.name(),
            Kind::Library => FileKind::ModelLibrary.name(),
            Kind::Exported => FileKind::ExportedProgram.name(),
        }
    }
}
