//! Payloads of delegates: what a backend wrote at export, decoded by whoever knows the backend.
//!
//! A program says of a delegate the name of its backend and where its bytes are; what they mean is the backend's own. A
//! [`PayloadFormat`] is the decoder of one backend, [`Payloads`] a list of them. A payload whose backend is in the list is
//! verified and described in its place in the program; any other stays bytes. Decoders read under the budget of the walk
//! that found the payload, so that a program cannot have its payloads looked at without end.

mod description;
mod file;
mod named;
mod walk;

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::check::{Checker, Path, StructureRules};
use crate::finding::Findings;
use crate::limits::{Budget, Limits};
use crate::pte::{CompileSpec, KernelTypes};
use crate::row::TableDesc;
use crate::wire;

pub use description::{Description, Node, Place, Value, Weight};
pub use file::{DataFiles, PayloadFile, RangeReader};
pub use named::NamedEntries;
pub use walk::{Found, Holder};

/// The decoder of one backend's payloads.
pub trait PayloadFormat: Send + Sync {
    /// The name of the backend in programs.
    fn backend(&self) -> &str;

    /// The rules its structure is reported under.
    fn rules(&self) -> StructureRules;

    /// Verifies a payload. `path` is its place in the program, and offsets that are reported count from its first byte:
    /// findings name places in the whole file. [`Checker::table`] does what a flatbuffer needs.
    fn verify(&self, payload: &Payload<'_>, path: &Path<'_>, out: &mut Checker);

    /// Describes a payload, which may be broken: what can be read, or why nothing can.
    fn describe(&self, payload: &Payload<'_>, budget: &mut Budget) -> wire::Result<Description>;

    /// The root table of a payload that is a flatbuffer, for those who show every field.
    fn root<'p>(&self, _payload: &Payload<'p>) -> Option<(wire::Table<'p>, &'static TableDesc)> {
        None
    }
}

/// A payload, with all of the program that its decoder may look at.
#[derive(Clone, Copy)]
pub struct Payload<'p> {
    /// Bytes that the backend wrote.
    pub bytes: &'p [u8],
    /// Options given at export; those that cannot be read are left out.
    pub options: &'p [CompileSpec<'p>],
    /// Calls of the delegate in the order of instructions.
    pub calls: &'p [Call<'p>],
    /// Data that a payload names by key: of the program, and of the data files at hand.
    pub named_data: &'p NamedEntries<'p>,
}

/// Arguments of one call of a delegate.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Call<'p> {
    /// The values in order; `None` for one that cannot be read.
    pub args: Vec<Option<KernelTypes<'p>>>,
    /// The numbers of these values in the method.
    pub values: Vec<i32>,
}

/// The decoders that are known.
#[derive(Clone, Default)]
pub struct Payloads {
    formats: Vec<Arc<dyn PayloadFormat>>,
}

impl Payloads {
    /// None: every payload is bytes.
    pub fn new() -> Payloads {
        Payloads::default()
    }

    /// Adds one; it goes before an earlier one of the same backend.
    pub fn with(mut self, format: impl PayloadFormat + 'static) -> Payloads {
        self.formats.insert(0, Arc::new(format));
        self
    }

    /// The decoder of a backend.
    pub fn find(&self, backend: &str) -> Option<&dyn PayloadFormat> {
        self.formats.iter().find(|format| format.backend() == backend).map(|format| &**format)
    }

    /// Everything that the decoders have to say about the payloads of a program. What is wrong with the program around
    /// them is for [`pte::verify`](crate::pte::verify).
    pub fn verify(&self, file: &PayloadFile<'_>, limits: &Limits) -> Findings {
        self.visit(file, limits, &mut |found, path, out| {
            out.within(found.offset, |out| {
                out.under(found.format.rules(), |out| found.format.verify(&found.payload, path, out));
            });
        })
    }
}
