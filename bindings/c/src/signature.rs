//! Inputs, outputs and needs of a method that is not loaded.

use std::ffi::c_char;

use edgepack::format::tensor::TensorLayout;
use edgepack::loader::{MethodMeta, ValueMeta};

use crate::entry;
use crate::error::{EdgepackCode, EdgepackError};
use crate::failure::Failure;
use crate::handles::{close, get, handle, put};
use crate::pointer::{In, Out};
use crate::program::EdgepackProgram;
use crate::text::{EdgepackText, Terminated};
use crate::value::{EdgepackTensor, EdgepackValue};

/// Inputs, outputs and needs of a method.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgepackSignature {
    /// Number of the object; zero for none.
    pub id: u64,
}

handle!(EdgepackSignature, Signature, SignatureObject, "a signature");

/// An input or output of a method.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EdgepackPort {
    /// The kind, the value that the method was traced with, or the layout of a tensor: its data are null, its length is the
    /// number of bytes.
    pub value: EdgepackValue,
    /// 1 if the sizes of a tensor are upper bounds, and smaller ones are taken; 0 otherwise.
    pub dynamic: u32,
    /// Name of a tensor, or empty.
    pub name: EdgepackText,
}

pub(crate) struct SignatureObject {
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    backends: Vec<Terminated>,
    planned_memory: Vec<u64>,
    instructions: usize,
}

enum Port {
    Null,
    Int(i64),
    Bool(bool),
    Double(f64),
    Text(Terminated),
    Tensor { layout: TensorLayout, dynamic: bool, name: Option<Terminated> },
    List(Terminated),
}

impl Port {
    fn of(meta: ValueMeta) -> Port {
        match meta {
            ValueMeta::Null => Port::Null,
            ValueMeta::Int(value) => Port::Int(value),
            ValueMeta::Bool(value) => Port::Bool(value),
            ValueMeta::Double(value) => Port::Double(value),
            ValueMeta::Text(text) => Port::Text(Terminated::new(text)),
            ValueMeta::Tensor(tensor) => {
                Port::Tensor { layout: tensor.layout, dynamic: tensor.dynamic, name: tensor.name.map(Terminated::new) }
            }
            ValueMeta::Other(kind) => Port::List(Terminated::new(kind)),
            _ => Port::List(Terminated::new("unknown")),
        }
    }

    fn told(&self) -> EdgepackPort {
        let plain = |value| EdgepackPort { value, dynamic: 0, name: EdgepackText::EMPTY };
        match self {
            Port::Null => plain(EdgepackValue::NONE),
            Port::Int(value) => plain(EdgepackValue::int(*value)),
            Port::Bool(value) => plain(EdgepackValue::bool(*value)),
            Port::Double(value) => plain(EdgepackValue::double(*value)),
            Port::Text(text) => plain(EdgepackValue::text(text.text())),
            Port::List(kind) => plain(EdgepackValue::list(kind.text())),
            Port::Tensor { layout, dynamic, name } => EdgepackPort {
                value: EdgepackValue::tensor(EdgepackTensor::of_layout(layout)),
                dynamic: (*dynamic).into(),
                name: name.as_ref().map_or(EdgepackText::EMPTY, Terminated::text),
            },
        }
    }
}

impl SignatureObject {
    fn new(meta: MethodMeta) -> Self {
        SignatureObject {
            inputs: meta.inputs.into_iter().map(Port::of).collect(),
            outputs: meta.outputs.into_iter().map(Port::of).collect(),
            backends: meta.backends.into_iter().map(Terminated::new).collect(),
            planned_memory: meta.planned_memory,
            instructions: meta.instructions,
        }
    }
}

/// Numbers of a method.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EdgepackCounts {
    /// Inputs.
    pub inputs: usize,
    /// Outputs.
    pub outputs: usize,
    /// Delegates, each of which needs a backend.
    pub backends: usize,
    /// Planned memories.
    pub memories: usize,
    /// Instructions in all chains.
    pub instructions: usize,
}

/// Looks at a method without loading it.
///
/// Ownership: the signature is the caller's, who closes it; it needs the program no more.
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_signature_of(
    program: EdgepackProgram,
    method: In<c_char>,
    signature: Out<EdgepackSignature>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        signature.check(1, "signature")?;
        let meta = get(program)?.program.method_meta(method.text("the method's name")?)?;
        signature.write(put(SignatureObject::new(meta)), "signature")
    })
}

/// Returns the numbers of a method by `counts`.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_signature_counts(
    signature: EdgepackSignature,
    counts: Out<EdgepackCounts>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let object = get(signature)?;
        let found = EdgepackCounts {
            inputs: object.inputs.len(),
            outputs: object.outputs.len(),
            backends: object.backends.len(),
            memories: object.planned_memory.len(),
            instructions: object.instructions,
        };
        counts.write(found, "counts")
    })
}

/// Writes one of the inputs or outputs; what it leads to lives as long as its signature.
fn write_port(ports: &[Port], what: &str, index: usize, port: Out<EdgepackPort>) -> Result<(), Failure> {
    let found = ports.get(index).ok_or_else(|| Failure::missing(what, index))?;
    port.write(found.told(), "port")
}

/// Returns an input of the method by `port`.
///
/// Ownership: what it leads to is the signature's, until it is closed. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_signature_input(
    signature: EdgepackSignature,
    index: usize,
    port: Out<EdgepackPort>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || write_port(&get(signature)?.inputs, "input", index, port))
}

/// Returns an output of the method by `port`.
///
/// Ownership: what it leads to is the signature's, until it is closed. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_signature_output(
    signature: EdgepackSignature,
    index: usize,
    port: Out<EdgepackPort>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || write_port(&get(signature)?.outputs, "output", index, port))
}

/// Returns the name of the backend of a delegate by `id`.
///
/// Ownership: the text is the signature's, until it is closed. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_signature_backend(
    signature: EdgepackSignature,
    delegate: usize,
    id: Out<EdgepackText>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let object = get(signature)?;
        let found = object.backends.get(delegate).ok_or_else(|| Failure::missing("delegate", delegate))?;
        id.write(found.text(), "id")
    })
}

/// Returns the bytes of a planned memory by `bytes`; the first is 0.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_signature_memory(
    signature: EdgepackSignature,
    index: usize,
    bytes: Out<u64>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let object = get(signature)?;
        let found = object.planned_memory.get(index).ok_or_else(|| Failure::missing("planned memory", index))?;
        bytes.write(*found, "bytes")
    })
}

/// Closes a signature. Zero is closed at any time.
///
/// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if it was closed before.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_signature_close(signature: EdgepackSignature) -> EdgepackCode {
    entry::call(Out::NULL, || close(signature))
}
