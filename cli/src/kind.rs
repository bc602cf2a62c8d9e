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
    const ALL: [Kind; 9] = [
        Kind::Program,
        Kind::Data,
        Kind::FlatData,
        Kind::Bundle,
        Kind::Trace,
        Kind::Model,
        Kind::Package,
        Kind::Library,
        Kind::Exported,
    ];

    /// The kind as detected in a file.
    pub fn file_kind(self) -> FileKind {
        match self {
            Kind::Program => FileKind::Program,
            Kind::Data => FileKind::Data,
            Kind::FlatData => FileKind::FlatData,
            Kind::Bundle => FileKind::Bundle,
            Kind::Trace => FileKind::Trace,
            Kind::Model => FileKind::TfLite,
            Kind::Package => FileKind::DarwinnPackage,
            Kind::Library => FileKind::ModelLibrary,
            Kind::Exported => FileKind::ExportedProgram,
        }
    }

    /// The kind that was detected; `None` if commands do not open it.
    pub fn of(found: FileKind) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.file_kind() == found)
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
        self.file_kind().name()
    }
}
