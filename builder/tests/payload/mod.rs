//! Arguments of a delegate call that are results, as XNNPACK payloads say it themselves.
//!
//! A payload counts the arguments of its call as external values; those of its values that are external say by their
//! flags whether they are read or written.

use std::collections::BTreeSet;

use edgepack_format::pte::{BackendDelegate, DataLocation, ProgramRef};
use edgepack_format::row::{Rows, Table, Union};
use edgepack_format::wire;

#[derive(Clone, PartialEq, Debug, Default, Table)]
struct Graph<'a> {
    #[slot(2)]
    xvalues: Option<Rows<'a, XValue>>,
}

#[derive(Clone, PartialEq, Debug, Default, Table)]
struct XValue {
    #[slot(0)]
    xvalue_union: Option<XValueUnion>,
}

#[derive(Clone, PartialEq, Debug, Union)]
enum XValueUnion {
    #[tag(1)]
    Plain(TensorValue),
    #[tag(2)]
    Quantized(QuantizedTensorValue),
    #[unknown]
    Unknown(u8),
}

#[derive(Clone, PartialEq, Debug, Default, Table)]
struct TensorValue {
    #[slot(4)]
    external_id: u32,
    #[slot(5)]
    flags: u32,
}

#[derive(Clone, PartialEq, Debug, Default, Table)]
struct QuantizedTensorValue {
    #[slot(0)]
    tensor_value: Option<TensorValue>,
}

const EXTERNAL_OUTPUT: u32 = 2;
/// In front of the flatbuffer there may be a header: its magic number, and where it says the flatbuffer starts.
const MAGIC: (usize, &[u8]) = (4, b"XH00");
const START: usize = 10;

/// The places of a call's arguments that this delegate writes; `None` if the backend is another.
pub fn results(file: &[u8], program: &ProgramRef<'_>, delegate: &BackendDelegate<'_>) -> Option<BTreeSet<usize>> {
    if delegate.id.as_deref() != Some("XnnpackBackend") {
        return None;
    }
    let at = delegate.processed.as_ref().unwrap();
    let inline;
    let payload = match at.location {
        DataLocation::SEGMENT => {
            let range = program.segment_range(at.index).unwrap();
            &file[range.start as usize..range.end as usize]
        }
        _ => {
            inline = program.program().backend_delegate_data.as_ref().unwrap().get(at.index as usize).unwrap();
            inline.data.as_ref().unwrap().as_slice()
        }
    };
    let start = match payload[MAGIC.0..].starts_with(MAGIC.1) {
        true => u32::from_le_bytes(payload[START..START + 4].try_into().unwrap()) as usize,
        false => 0,
    };
    let graph = Graph::decode(wire::Table::root(&payload[start..]).unwrap()).unwrap();
    let values = graph.xvalues.unwrap();
    let tensors = values.iter().filter_map(|value| match value.unwrap().xvalue_union? {
        XValueUnion::Plain(tensor) => Some(tensor),
        XValueUnion::Quantized(tensor) => tensor.tensor_value,
        XValueUnion::Unknown(tag) => panic!("a value of kind {tag}"),
    });
    let written = tensors.filter(|tensor| tensor.flags & EXTERNAL_OUTPUT != 0);
    Some(written.map(|tensor| tensor.external_id as usize).collect())
}
