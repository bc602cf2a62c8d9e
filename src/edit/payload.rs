//! Payloads of the XNNPACK backend as rows: taken apart where writing the rows gives the payload again.

use edgepack_builder::xnnpack::{Container, write};
use edgepack_format::limits::Limits;
use edgepack_format::row::Blob;
use edgepack_format::xnnpack::verify::verify;
use edgepack_format::xnnpack::{Graph, OLD_IDENTIFIER};
use serde::{Deserialize, Serialize};

use super::error::Error;

/// The name of the backend in programs.
pub(super) const BACKEND: &str = "XnnpackBackend";

/// A payload in rows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PayloadRows<'a> {
    container: Form,
    pub(super) graph: Graph<'a>,
    /// The region behind the flatbuffer.
    pub(super) constants: Blob<'a>,
}

/// The bytes around the flatbuffer, as [`Container`] has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    Header,
    OldIdentifier,
    Bare,
}

impl<'a> PayloadRows<'a> {
    /// The rows of a payload of which they say all, to the byte; `None` of any other.
    pub(super) fn canonical(bytes: &'a [u8]) -> Option<Self> {
        let rows = Self::read(bytes)?;
        (rows.to_bytes().ok()? == bytes).then_some(rows)
    }

    /// The rows of a payload that can be read.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let limits = Limits::DEFAULT.unfolding(bytes.len() as u64);
        let payload = verify(bytes, &limits).payload?;
        let is_old = payload.identifier() == OLD_IDENTIFIER;
        let (container, constants) = match payload.header() {
            Some(header) => {
                let region = usize::try_from(header.constants_offset).ok().and_then(|start| bytes.get(start..))?;
                (if is_old { Form::OldIdentifier } else { Form::Header }, region)
            }
            None => (Form::Bare, &[][..]),
        };
        Some(PayloadRows { container, graph: payload.graph().clone(), constants: Blob(constants.into()) })
    }

    /// Returns the payload that these rows make.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let container = match self.container {
            Form::Header => Container::Header,
            Form::OldIdentifier => Container::OldIdentifier,
            Form::Bare => Container::Bare,
        };
        Ok(write(&self.graph, container, self.constants.as_slice())?)
    }
}
