//! Programs: opened from files, from memory that is copied, and from memory that stays the caller's.

use std::ffi::{c_char, c_void};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use edgepack::loader::{AlignedBytes, FileSource, MemorySource, OpenOptions, Program, Source};

use crate::borrowed::{EdgepackRelease, Lent};
use crate::entry;
use crate::error::{EdgepackCode, EdgepackError};
use crate::failure::Failure;
use crate::file::path;
use crate::handles::{close, get, handle, put};
use crate::limits::{EdgepackLimits, limits};
use crate::pointer::{In, Out};
use crate::text::{EdgepackText, Terminated};

/// A program (`.pte`), opened and verified.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgepackProgram {
    /// Number of the object; zero for none.
    pub id: u64,
}

handle!(EdgepackProgram, Program, ProgramObject, "a program");

pub(crate) struct ProgramObject {
    pub program: Program,
    names: Vec<Terminated>,
}

impl ProgramObject {
    fn new(source: Arc<dyn Source>, limits: EdgepackLimits) -> Result<Self, Failure> {
        let program = OpenOptions { limits: self::limits(limits)? }.open_source(source)?;
        let names = program.method_names()?.into_iter().map(Terminated::new).collect();
        Ok(ProgramObject { program, names })
    }
}

/// A file of the system.
pub(crate) fn file_source(name: &In<c_char>) -> Result<Arc<dyn Source>, Failure> {
    let path = path(name)?;
    let failed = |error: io::Error| edgepack::loader::Error::Io { what: path.display().to_string(), error };
    let source = FileSource::open(&path).map_err(failed)?;
    // A folder can be opened for reading where its length says nothing.
    match path.is_dir() {
        true => Err(failed(io::ErrorKind::IsADirectory.into()).into()),
        false => Ok(Arc::new(source)),
    }
}

/// A copy of bytes, aligned as their readers like it.
pub(crate) fn copied_source(data: &In<c_void>, len: usize) -> Result<Arc<dyn Source>, Failure> {
    let bytes = data.bytes(len, "data")?;
    let copy = AlignedBytes::copy_of(bytes)
        .ok_or_else(|| edgepack::loader::Error::Memory { what: "a copy of the file".to_owned(), bytes: len as u64 })?;
    Ok(Arc::new(MemorySource::new(copy)))
}

/// Bytes that stay the caller's.
impl Source for Lent {
    fn len(&self) -> u64 {
        self.bytes().len() as u64
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(into.len() as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(self.borrow(offset..end).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
    fn borrow(&self, range: Range<u64>) -> Option<&[u8]> {
        self.bytes().get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
    }
    fn name(&self) -> String {
        "bytes in memory".to_owned()
    }
}

/// Opens a program file. Its head is read and verified; weights are read when a method is loaded. The file has to stay as it
/// is meanwhile; if it does not, what is read is an error or other numbers.
///
/// Ownership: the program is the caller's, who closes it; methods that were loaded from it keep what they need of it.
/// Threads: any, at any time; a program may be used on several threads.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_program_open(
    path: In<c_char>,
    limits: EdgepackLimits,
    program: Out<EdgepackProgram>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        program.check(1, "program")?;
        program.write(put(ProgramObject::new(file_source(&path)?, limits)?), "program")
    })
}

/// Opens a program that is in memory, of which a copy is made: `data` is the caller's again when the function returns.
///
/// Ownership and threads: as of edgepack_program_open.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_program_open_copy(
    data: In<c_void>,
    len: usize,
    limits: EdgepackLimits,
    program: Out<EdgepackProgram>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        program.check(1, "program")?;
        program.write(put(ProgramObject::new(copied_source(&data, len)?, limits)?), "program")
    })
}

/// Opens a program that is in memory, and stays there: weights are read where they are. `data` is neither changed nor freed
/// until `release` is called with `user`, once, when the program, its methods and its data are all closed, and on whichever
/// thread closes the last of them. If this function fails, it is not called; and it may be null for memory that is there for
/// as long as the process.
///
/// Ownership and threads: as of edgepack_program_open.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_program_open_borrowed(
    data: In<c_void>,
    len: usize,
    release: EdgepackRelease,
    user: Out<c_void>,
    limits: EdgepackLimits,
    program: Out<EdgepackProgram>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        program.check(1, "program")?;
        let lent = Arc::new(Lent::new(data, len)?);
        let opened = ProgramObject::new(lent.clone(), limits)?;
        lent.release_by(release, user);
        program.write(put(opened), "program")
    })
}

/// Closes a program. Methods and data that were made of it live on. Zero is closed at any time.
///
/// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if it was closed before.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_program_close(program: EdgepackProgram) -> EdgepackCode {
    entry::call(Out::NULL, || close(program))
}

/// Returns the number of methods of a program by `count`.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_program_method_count(
    program: EdgepackProgram,
    count: Out<usize>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || count.write(get(program)?.names.len(), "count"))
}

/// Returns the name of a method by `name`.
///
/// Ownership: the text is the program's, until it is closed. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_program_method_name(
    program: EdgepackProgram,
    index: usize,
    name: Out<EdgepackText>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let object = get(program)?;
        let found = object.names.get(index).ok_or_else(|| Failure::missing("method", index))?;
        name.write(found.text(), "name")
    })
}
