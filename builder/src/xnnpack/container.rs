//! Whole payloads from rows as they are: a header, the flatbuffer, the constants.
//!
//! Nothing is checked; the rows may break every rule there is.

use edgepack_format::row::Table as _;
use edgepack_format::xnnpack::{Graph, Header, IDENTIFIER, OLD_IDENTIFIER};

use super::sink::CompilerSink;
use crate::Error;
use crate::envelope::align_up;

/// The bytes around the flatbuffer of a payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Container {
    /// A header and identifier `XN01`, as since release 0.3.
    #[default]
    Header,
    /// A header and identifier `XN00`.
    OldIdentifier,
    /// The flatbuffer alone, identifier `XN00`, as before.
    Bare,
}

/// A payload of this graph. The region of constants is written where there is a header.
pub fn write(graph: &Graph<'_>, container: Container, constants: &[u8]) -> Result<Vec<u8>, Error> {
    let identifier = if container == Container::Header { IDENTIFIER } else { OLD_IDENTIFIER };
    let mut sink = CompilerSink::new();
    let root = graph.encode(&mut sink)?;
    let flatbuffer = sink.finish(root, identifier)?;
    if container == Container::Bare {
        return Ok(flatbuffer);
    }
    let align = Header::ALIGNMENT as usize;
    let start = align_up(Header::LEN.into(), align)?;
    let end = align_up(start.saturating_add(flatbuffer.len() as u64), align)?;
    let number = |number: u64| u32::try_from(number).map_err(|_| Error::Overflow);
    let header = Header {
        length: Header::LEN,
        flatbuffer_offset: number(start)?,
        flatbuffer_size: number(flatbuffer.len() as u64)?,
        constants_offset: number(end)?,
        constants_size: constants.len() as u64,
    };
    let mut out = header.to_bytes().to_vec();
    out.resize(usize::try_from(start).map_err(|_| Error::Overflow)?, 0);
    out.extend_from_slice(&flatbuffer);
    out.resize(usize::try_from(end).map_err(|_| Error::Overflow)?, 0);
    out.extend_from_slice(constants);
    Ok(out)
}
