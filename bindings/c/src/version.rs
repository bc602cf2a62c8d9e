//! Versions of the library and of its interface.

use std::ffi::{CStr, c_char};

use crate::handles::open_count;
use crate::pointer::In;

/// Number of this interface. It is raised where a program that was compiled with an earlier header would not work, and
/// edgepack_abi_version returns that of the library.
pub const EDGEPACK_ABI_VERSION: u32 = 1;

/// Returns the number of the interface of the library that is linked: EDGEPACK_ABI_VERSION of its header.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_abi_version() -> u32 {
    EDGEPACK_ABI_VERSION
}

/// Returns the version of the library: `0.1.0`.
///
/// Ownership: the text is there for as long as the process. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_version() -> In<c_char> {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has a zero byte"),
    };
    In::to(VERSION.as_ptr())
}

/// Returns the number of handles that are open in the process, of all kinds: for tests of programs that close what they
/// open.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_open_handles() -> usize {
    crate::entry::plain(open_count, 0)
}
