//! The root row of any file that is taken apart.

use edgepack_format::FileKind;
use edgepack_format::bundle::BundledProgram;
use edgepack_format::ptd::{DataSegment, FlatData, FlatTensor, LegacyFlatTensor};
use edgepack_format::pte::Program;

use super::compiled::{CompiledModel, CompiledPackage};

/// The root row of a file.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "there is one per file")]
pub enum Root<'a> {
    /// Rows of a program.
    Program(Program<'a>),
    /// Rows of a data file.
    Data(FlatTensor<'a>),
    /// Rows of a data file from before June 2025.
    LegacyData(LegacyFlatTensor<'a>),
    /// Rows of a FlatData file.
    FlatData(FlatData<'a>),
    /// Rows of a bundled program.
    Bundle(BundledProgram<'a>),
    /// An Edge TPU package.
    EdgeTpu(Box<CompiledPackage<'a>>),
    /// A TensorFlow Lite model with Edge TPU packages in it.
    Model(Box<CompiledModel<'a>>),
}

impl<'a> Root<'a> {
    /// The kind of file.
    pub fn kind(&self) -> FileKind {
        match self {
            Root::Program(_) => FileKind::Program,
            Root::Data(_) | Root::LegacyData(_) => FileKind::Data,
            Root::FlatData(_) => FileKind::FlatData,
            Root::Bundle(_) => FileKind::Bundle,
            Root::EdgeTpu(_) => FileKind::DarwinnPackage,
            Root::Model(_) => FileKind::TfLite,
        }
    }

    /// The list of segments; `None` if there is none.
    pub fn segments(&self) -> Option<&edgepack_format::row::Rows<'a, DataSegment>> {
        match self {
            Root::Program(root) => root.segments.as_ref(),
            Root::Data(root) => root.segments.as_ref(),
            Root::LegacyData(root) => root.segments.as_ref(),
            Root::FlatData(root) => root.segments.as_ref(),
            Root::Bundle(_) | Root::EdgeTpu(_) | Root::Model(_) => None,
        }
    }

    pub(super) fn set_segments(&mut self, rows: Vec<DataSegment>) {
        let slot = match self {
            Root::Program(root) => &mut root.segments,
            Root::Data(root) => &mut root.segments,
            Root::LegacyData(root) => &mut root.segments,
            Root::FlatData(root) => &mut root.segments,
            Root::Bundle(_) | Root::EdgeTpu(_) | Root::Model(_) => return,
        };
        *slot = Some(rows.into());
    }
}
