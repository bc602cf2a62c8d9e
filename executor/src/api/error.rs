//! Errors of kernels and backends.

use std::borrow::Cow;

use edgepack_compute::ErrorKind;
use edgepack_format::finding::ErrorCode;

/// Reason for which a kernel refuses an instruction or fails while running it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message} ({code})")]
pub struct KernelError {
    /// The ExecuTorch error this corresponds to.
    pub code: ErrorCode,
    /// Message with both sides: the value that was found and the value that is needed.
    pub message: Cow<'static, str>,
}

impl KernelError {
    /// An error with a code.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        KernelError { code, message: message.into() }
    }

    /// An argument has a value the operator does not allow.
    pub fn argument(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message)
    }

    /// An argument is of another kind than the schema says.
    pub fn kind(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::InvalidType, message)
    }

    /// The operator does not do this (yet, or on principle).
    pub fn unsupported(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::NotSupported, message)
    }
}

impl From<edgepack_compute::Error> for KernelError {
    fn from(error: edgepack_compute::Error) -> Self {
        let code = match error.kind {
            ErrorKind::Unsupported => ErrorCode::NotSupported,
            ErrorKind::Memory => ErrorCode::MemoryAllocationFailed,
            ErrorKind::Data => ErrorCode::InvalidArgument,
            _ => ErrorCode::Internal,
        };
        KernelError { code, message: error.message }
    }
}
