//! Content of a file: its rows, its segments, and its layout.

use edgepack_format::FileKind;
use edgepack_format::pte::Program;
use serde::{Deserialize, Serialize};

use super::content::Content;
use super::origin::Origin;
use super::places::Places;
use super::root::Root;

/// Layout of a file beyond what its rows say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Length of the extended header as it states it: 24 or 32 in a program, 40 in a data file. `None` for no header,
    /// which a program with segment bytes gets all the same, in the 32-byte form.
    pub header: Option<u32>,
    /// Alignment of the start of the first segment.
    pub segment_alignment: u64,
    /// Alignment of data inside the flatbuffer: a power of two, at least 16.
    pub data_alignment: u64,
}

impl Layout {
    /// Layout that the reference exporter writes today.
    pub const DEFAULT: Layout = Layout { header: None, segment_alignment: 128, data_alignment: 16 };
}

impl Default for Layout {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A file as rows and segments.
#[derive(Clone, Debug)]
pub struct Package<'a> {
    /// The rows. Segments are where their rows say; [`Package::place`] makes new rows after contents have changed.
    pub root: Root<'a>,
    /// The bytes of each segment, in the order of the rows.
    pub segments: Vec<Content>,
    /// Layout of the file.
    pub layout: Layout,
    /// Places of everything, from [`Opened::places`](super::Opened::places). As long as rows and segments fit them, they
    /// are where everything is put; otherwise, and with `None`, the file is laid out by our own writer.
    pub places: Option<Box<Places>>,
    /// The file that this was read from, for whoever wants to know whether it comes back byte for byte.
    pub origin: Option<Origin>,
}

impl<'a> Package<'a> {
    /// A package without segments.
    pub fn new(root: Root<'a>) -> Self {
        let header = match root.kind() {
            FileKind::Data | FileKind::FlatData => Some(edgepack_format::header::DataHeader::LEN),
            _ => None,
        };
        let layout = Layout { header, ..Layout::DEFAULT };
        Package { root, segments: Vec::new(), layout, places: None, origin: None }
    }

    /// The program, if this is one.
    pub fn program(&self) -> Option<&Program<'a>> {
        match &self.root {
            Root::Program(program) => Some(program),
            _ => None,
        }
    }

    /// The program, if this is one, to be changed.
    pub fn program_mut(&mut self) -> Option<&mut Program<'a>> {
        match &mut self.root {
            Root::Program(program) => Some(program),
            _ => None,
        }
    }
}
