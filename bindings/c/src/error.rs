//! Errors as objects, and the codes that every function returns.

use edgepack::format::finding::ErrorCode;

use crate::failure::Failure;
use crate::handles::{close, get, handle, put};
use crate::pointer::Out;
use crate::text::{EdgepackText, Terminated};

/// Codes of errors; those of the ExecuTorch runtime, by the numbers that it gives them. `edgepack explain CODE` says what
/// usually causes one.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgepackCode {
    /// Success.
    Ok = 0x00,
    /// Something in the library is broken, or a callback answered with a number that is no code.
    Internal = 0x01,
    /// The object is not in a state in which this call is possible: it is in use, or it failed before and cannot go on.
    InvalidState = 0x02,
    /// There is no further instruction to step through.
    EndOfMethod = 0x03,
    /// The object has been loaded before.
    AlreadyLoaded = 0x04,
    /// The operation is not supported in this context.
    NotSupported = 0x10,
    /// The operation has not been implemented.
    NotImplemented = 0x11,
    /// One or more arguments are invalid.
    InvalidArgument = 0x12,
    /// A value has another type than expected.
    InvalidType = 0x13,
    /// An operator of the program has no kernel.
    OperatorMissing = 0x14,
    /// The kernel table is full.
    RegistrationExceedingMaxKernels = 0x15,
    /// A kernel is registered already.
    RegistrationAlreadyRegistered = 0x16,
    /// The thing asked for does not exist.
    NotFound = 0x20,
    /// Memory could not be had, or is more than the limits allow.
    MemoryAllocationFailed = 0x21,
    /// Data could not be accessed.
    AccessFailed = 0x22,
    /// The program does not follow the format.
    InvalidProgram = 0x23,
    /// A data file does not follow the format or does not match the program.
    InvalidExternalData = 0x24,
    /// A resource is exhausted.
    OutOfResources = 0x25,
    /// A delegate payload is of an incompatible version.
    DelegateInvalidCompatibility = 0x30,
    /// A delegate could not get memory.
    DelegateMemoryAllocationFailed = 0x31,
    /// A delegate handle is stale or wrong.
    DelegateInvalidHandle = 0x32,
}

impl EdgepackCode {
    /// Every code.
    pub const ALL: [EdgepackCode; 21] = [
        EdgepackCode::Ok,
        EdgepackCode::Internal,
        EdgepackCode::InvalidState,
        EdgepackCode::EndOfMethod,
        EdgepackCode::AlreadyLoaded,
        EdgepackCode::NotSupported,
        EdgepackCode::NotImplemented,
        EdgepackCode::InvalidArgument,
        EdgepackCode::InvalidType,
        EdgepackCode::OperatorMissing,
        EdgepackCode::RegistrationExceedingMaxKernels,
        EdgepackCode::RegistrationAlreadyRegistered,
        EdgepackCode::NotFound,
        EdgepackCode::MemoryAllocationFailed,
        EdgepackCode::AccessFailed,
        EdgepackCode::InvalidProgram,
        EdgepackCode::InvalidExternalData,
        EdgepackCode::OutOfResources,
        EdgepackCode::DelegateInvalidCompatibility,
        EdgepackCode::DelegateMemoryAllocationFailed,
        EdgepackCode::DelegateInvalidHandle,
    ];
}

impl From<ErrorCode> for EdgepackCode {
    fn from(code: ErrorCode) -> Self {
        let same = |known: &EdgepackCode| *known as u32 == code.number();
        EdgepackCode::ALL.into_iter().find(same).unwrap_or(EdgepackCode::Internal)
    }
}

/// An error: why a function failed. Zero stands for none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgepackError {
    /// Number of the object; zero for none.
    pub id: u64,
}

handle!(EdgepackError, Error, ErrorObject, "an error");

impl EdgepackError {
    /// No error.
    pub const NONE: EdgepackError = EdgepackError { id: 0 };
}

/// The answers of an error.
pub(crate) struct ErrorObject {
    code: EdgepackCode,
    message: Terminated,
    rule: Option<Terminated>,
    path: Option<Terminated>,
    offset: Option<u64>,
}

/// Puts a failure where C finds it, if it wants to; returns its code.
pub(crate) fn report(failure: Failure, error: Out<EdgepackError>) -> EdgepackCode {
    let code = failure.code.into();
    // A place that cannot be written to is no reason for another error.
    if error.check(1, "error").is_ok() && !error.is_null() {
        let handle: EdgepackError = put(ErrorObject {
            code,
            message: Terminated::new(failure.message),
            rule: failure.rule.map(Terminated::new),
            path: failure.path.map(Terminated::new),
            offset: failure.offset,
        });
        let _ = error.write(handle, "error");
    }
    code
}

/// A text of an error; none of what is no error.
fn text(error: EdgepackError, of: impl FnOnce(&ErrorObject) -> Option<EdgepackText>) -> EdgepackText {
    crate::entry::plain(|| get(error).ok().and_then(|object| of(&object)), None).unwrap_or(EdgepackText::EMPTY)
}

/// Returns the code of an error; EDGEPACK_CODE_OK for zero, EDGEPACK_CODE_INVALID_ARGUMENT for what is no open error.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_error_code(error: EdgepackError) -> EdgepackCode {
    if error == EdgepackError::NONE {
        return EdgepackCode::Ok;
    }
    crate::entry::plain(
        || get(error).map_or(EdgepackCode::InvalidArgument, |object| object.code),
        EdgepackCode::Internal,
    )
}

/// Returns the message of an error, with both sides: what was found and what is wanted. Empty for zero and for what is no
/// open error.
///
/// Ownership: the text is the error's, until it is closed. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_error_message(error: EdgepackError) -> EdgepackText {
    text(error, |object| Some(object.message.text()))
}

/// Returns the id of the rule that a file breaks, such as PTE-HEAD-001; empty if the error is about no rule.
///
/// Ownership: the text is the error's, until it is closed. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_error_rule(error: EdgepackError) -> EdgepackText {
    text(error, |object| object.rule.as_ref().map(Terminated::text))
}

/// Returns the place in the structure of a file, or among the arguments: `execution_plan[0].values[17].sizes`, `inputs[0]`.
/// Empty if there is none.
///
/// Ownership: the text is the error's, until it is closed. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_error_path(error: EdgepackError) -> EdgepackText {
    text(error, |object| object.path.as_ref().map(Terminated::text))
}

/// Writes the offset in the file that an error is about, and returns 1; returns 0 and writes nothing if there is none.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_error_offset(error: EdgepackError, offset: Out<u64>) -> u32 {
    let found = crate::entry::plain(|| get(error).ok().and_then(|object| object.offset), None);
    u32::from(found.is_some_and(|found| offset.write(found, "offset").is_ok()))
}

/// Closes an error, whose texts are gone then. Zero is closed at any time.
///
/// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if it was closed before.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_error_close(error: EdgepackError) -> EdgepackCode {
    crate::entry::call(Out::NULL, || close(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_runtime() {
        assert_eq!(EdgepackCode::ALL.len(), ErrorCode::ALL.len());
        for code in ErrorCode::ALL {
            assert_eq!(EdgepackCode::from(*code) as u32, code.number());
            assert_eq!(format!("{:?}", EdgepackCode::from(*code)), code.name());
        }
    }
}
