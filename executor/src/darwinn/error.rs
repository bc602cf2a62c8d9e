//! Errors of runs.

use edgepack_format::wire::ReadError;

use super::device::DeviceError;
use super::link::LinkError;
use super::tensor::TensorError;
use super::transfer::{Buffer, TransferError};

/// Reason for which a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A row could not be read: the package was not verified.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The package has no executable that takes inputs.
    #[error("the package has no executable that runs on one chip")]
    NoExecutable,
    /// Only devices that ask for transfers themselves can run it.
    #[error("the list of transfers is not complete, so it takes a device that asks for the rest itself, as over PCIe")]
    Partial,
    /// The tensors are others than the layers.
    #[error("{0}")]
    Tensors(String),
    /// A tensor does not fit.
    #[error("{layer:?}: {error}")]
    Tensor {
        /// Name of the layer.
        layer: String,
        /// The error of its tensor.
        error: TensorError,
    },
    /// An output that is to be an input's next value does not fit it.
    #[error("{output:?} is to be the next value of {input:?} and is not like it: {message}")]
    State {
        /// Name of the output layer.
        output: String,
        /// Name of the input layer.
        input: String,
        /// Description of the difference.
        message: String,
    },
    /// A buffer wants to be in the device's own memory, and [`DramUse::Require`](super::DramUse) was asked for.
    #[error("{buffer} wants {bytes} bytes of the device's own memory, of which {free} are free")]
    Dram {
        /// The buffer.
        buffer: Buffer,
        /// Its bytes.
        bytes: usize,
        /// Bytes that are free.
        free: u64,
    },
    /// Buffers of a run are larger than the limit.
    #[error("the buffers of a run have {bytes} bytes, the limit is {limit} (memory_bytes)")]
    TooLarge {
        /// Bytes of all buffers.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The model has no such thing.
    #[error("{0}")]
    Model(String),
    /// Instructions could not be linked.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// There is no list of transfers.
    #[error(transparent)]
    Transfers(#[from] TransferError),
    /// The device failed. It was reset, and the next run starts from nothing.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
