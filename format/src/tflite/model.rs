//! Models as a whole: from bytes to the compiled operators and their packages.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use super::verify::{self, Verdict};
use super::{AppendedZip, CustomOptions, Model, Operator, Tensor};
use crate::darwinn::{Accept, ExecutableRef, PackageRef};
use crate::finding::Findings;
use crate::limits::Limits;
use crate::room;
use crate::row::{Rows, Scalars};

/// The identifier of a model, at byte 4.
pub const IDENTIFIER: [u8; 4] = *b"TFL3";

/// Name of compiled operators. The runtime finds them by this name alone.
pub const OPERATOR: &str = "edgetpu-custom-op";

/// Outputs with this ending have no tensor: they are the next value of the input that is called the rest.
pub const VARIABLE_SUFFIX: &str = "_variable_output";

/// A model whose compiled operators have been found, borrowed from the whole file.
#[derive(Clone)]
pub struct ModelRef<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) row: Model<'a>,
    pub(super) operators: Vec<CompiledOp<'a>>,
    pub(super) zip: Option<AppendedZip>,
}

/// Tensors with their numbers; `None` for numbers that are no tensor's.
pub type NumberedTensors<'a> = Vec<(i32, Option<Tensor<'a>>)>;

/// A compiled operator.
#[derive(Clone, Debug)]
pub struct CompiledOp<'a> {
    /// Index of the subgraph that holds it.
    pub subgraph: usize,
    /// Index of the operator in its subgraph.
    pub operator: usize,
    /// Row of the operator.
    pub row: Operator<'a>,
    /// Position in the file of the offset to the custom options; `None` if they are behind the flatbuffer.
    pub slot: Option<usize>,
    /// Range of the custom options.
    pub range: Range<usize>,
    /// Content of the options.
    pub options: Option<CustomOptions<'a>>,
    /// The packages in them, as far as they can be read: the first, then the further ones.
    pub packages: Vec<PackageRef<'a>>,
    /// Executables without a package, each with its key: what wrappers of early 2019 hold.
    pub bare: Vec<(&'static str, ExecutableRef<'a>)>,
    pub(super) tensors: Rows<'a, Tensor<'a>>,
}

impl<'a> ModelRef<'a> {
    /// Parses and verifies a whole file, the packages in it included, and compares both sides.
    ///
    /// The errors are all findings, the harmless ones included. A model without compiled operators is fine.
    pub fn parse(bytes: &'a [u8], limits: &Limits) -> Result<Self, Findings> {
        Self::parse_as(bytes, limits, Accept::default())
    }

    /// The same with packages that `accept` names, too.
    pub fn parse_as(bytes: &'a [u8], limits: &Limits, accept: Accept) -> Result<Self, Findings> {
        match verify::verify(bytes, limits, accept) {
            Verdict { findings, model: Some(model) } if !findings.has_errors() => Ok(model),
            Verdict { findings, .. } => Err(findings),
        }
    }

    /// Returns the bytes of the file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The root row.
    pub fn model(&self) -> &Model<'a> {
        &self.row
    }

    /// The compiled operators, in the order of the file.
    pub fn operators(&self) -> &[CompiledOp<'a>] {
        &self.operators
    }

    /// All packages with the place of each in the file.
    pub fn packages(&self) -> impl Iterator<Item = (usize, &PackageRef<'a>)> {
        self.operators.iter().flat_map(|operator| {
            let places = operator.options.iter().flat_map(|options| options.packages());
            places.zip(&operator.packages).map(|((at, _), package)| (operator.range.start.saturating_add(at), package))
        })
    }

    /// The archive behind the flatbuffer.
    pub fn zip(&self) -> Option<&AppendedZip> {
        self.zip.as_ref()
    }
}

impl fmt::Debug for ModelRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelRef({} bytes, {} compiled operators)", self.bytes.len(), self.operators.len())
    }
}

impl<'a> CompiledOp<'a> {
    /// The tensors that go in, with their numbers; `None` for numbers that are no tensor's.
    pub fn inputs(&self) -> NumberedTensors<'a> {
        self.tensors_of(self.row.inputs.as_ref()).collect()
    }

    /// The tensors that come out.
    pub fn outputs(&self) -> NumberedTensors<'a> {
        self.tensors_of(self.row.outputs.as_ref()).collect()
    }

    pub(super) fn try_inputs(&self) -> room::Result<NumberedTensors<'a>> {
        room::collect(self.tensors_of(self.row.inputs.as_ref()))
    }

    pub(super) fn try_outputs(&self) -> room::Result<NumberedTensors<'a>> {
        room::collect(self.tensors_of(self.row.outputs.as_ref()))
    }

    fn tensors_of(&self, list: Option<&Scalars<'a, i32>>) -> impl Iterator<Item = (i32, Option<Tensor<'a>>)> {
        let tensor = |index: i32| self.tensors.get(usize::try_from(index).ok()?).ok();
        list.into_iter().flat_map(|list| list.iter()).map(move |index| (index, tensor(index)))
    }
}
