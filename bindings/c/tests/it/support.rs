//! Calls of the interface, shortened.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};

use edgepack_c::error::{
    EdgepackCode, EdgepackError, edgepack_error_close, edgepack_error_code, edgepack_error_message,
    edgepack_error_path, edgepack_error_rule,
};
use edgepack_c::file::EdgepackFile;
use edgepack_c::limits::EdgepackLimits;
use edgepack_c::method::{EdgepackMethod, edgepack_method_load};
use edgepack_c::options::EdgepackOptions;
use edgepack_c::pointer::{In, Out};
use edgepack_c::program::{EdgepackProgram, edgepack_program_open_copy};
use edgepack_c::text::EdgepackText;
use edgepack_c::value::{EdgepackDtype, EdgepackKind, EdgepackTensor, EdgepackValue};

/// The folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of the repository.
pub fn file(path: &str) -> Vec<u8> {
    let path = root().join(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A model of the corpus.
pub fn model(name: &str) -> Vec<u8> {
    file(&format!("tests/data/corpus/models/{name}.pte"))
}

/// A pointer to elements, which live longer than whatever it is given to.
pub fn to<T>(elements: &[T]) -> In<T> {
    // SAFETY: it leads to these elements. Tests say no greater number of them.
    unsafe { In::new(elements.as_ptr()) }
}

/// A pointer to bytes.
pub fn bytes(bytes: &[u8]) -> In<c_void> {
    // SAFETY: as above.
    unsafe { In::new(bytes.as_ptr().cast()) }
}

/// A pointer to a text.
pub fn text(text: &CStr) -> In<c_char> {
    // SAFETY: it ends with a zero byte.
    unsafe { In::new(text.as_ptr()) }
}

/// A pointer to a place.
pub fn out<T>(place: &mut T) -> Out<T> {
    // SAFETY: there is memory for one.
    unsafe { Out::new(place) }
}

/// A pointer to places.
pub fn outs<T>(places: &mut [T]) -> Out<T> {
    // SAFETY: it leads to these places. Tests say no greater number of them.
    unsafe { Out::new(places.as_mut_ptr()) }
}

/// A pointer to room for bytes.
pub fn room(bytes: &mut [u8]) -> Out<c_void> {
    // SAFETY: as above.
    unsafe { Out::new(bytes.as_mut_ptr().cast()) }
}

/// A text of the library, copied.
pub fn read(text: EdgepackText) -> String {
    // SAFETY: the library says so many bytes, and its handle is open in tests that read one.
    let bytes = unsafe { std::slice::from_raw_parts(text.data.as_ptr().cast::<u8>(), text.len + 1) };
    let (end, bytes) = bytes.split_last().expect("a zero byte");
    assert_eq!(*end, 0);
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// The bytes of a tensor of the library, copied.
pub fn data(tensor: &EdgepackTensor) -> Vec<u8> {
    if tensor.len == 0 {
        return Vec::new();
    }
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts(tensor.data.as_ptr().cast::<u8>(), tensor.len) }.to_vec()
}

/// The floats of a tensor of the library, copied.
pub fn floats(tensor: &EdgepackTensor) -> Vec<f32> {
    assert_eq!(tensor.dtype, EdgepackDtype::Float as i32);
    data(tensor).as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// The sizes of a tensor of the library, copied.
pub fn sizes(tensor: &EdgepackTensor) -> Vec<usize> {
    if tensor.rank == 0 {
        return Vec::new();
    }
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts(tensor.sizes.as_ptr(), tensor.rank) }.to_vec()
}

/// An error, taken apart and closed.
#[derive(Debug)]
pub struct Told {
    pub code: EdgepackCode,
    pub message: String,
    pub rule: String,
    pub path: String,
}

/// Calls a function that gives an error, and takes that apart.
pub fn call(function: impl FnOnce(Out<EdgepackError>) -> EdgepackCode) -> Result<(), Told> {
    // Nothing that an error starts with matters.
    let mut error = EdgepackError { id: u64::MAX };
    let code = function(out(&mut error));
    if code == EdgepackCode::Ok {
        assert_eq!(error, EdgepackError::NONE);
        return Ok(());
    }
    let told = Told {
        code,
        message: read(edgepack_error_message(error)),
        rule: read(edgepack_error_rule(error)),
        path: read(edgepack_error_path(error)),
    };
    assert_eq!(edgepack_error_code(error), code);
    assert!(!told.message.is_empty(), "an error has a message");
    assert_eq!(edgepack_error_close(error), EdgepackCode::Ok);
    assert_eq!(edgepack_error_close(error), EdgepackCode::InvalidArgument);
    Err(told)
}

/// Calls a function that is refused because of its arguments.
pub fn refused(function: impl FnOnce(Out<EdgepackError>) -> EdgepackCode) -> String {
    let told = call(function).expect_err("this is refused");
    assert_eq!(told.code, EdgepackCode::InvalidArgument, "{told:?}");
    told.message
}

/// Limits of the machine.
pub const MACHINE: EdgepackLimits = EdgepackLimits { id: 0 };

/// No options.
pub const PLAIN: EdgepackOptions = EdgepackOptions { id: 0 };

/// Opens a program.
pub fn open(file: &[u8]) -> Result<EdgepackProgram, Told> {
    let mut program = EdgepackProgram { id: 0 };
    call(|error| edgepack_program_open_copy(bytes(file), file.len(), MACHINE, out(&mut program), error))?;
    Ok(program)
}

/// Loads a method.
pub fn load(program: EdgepackProgram, name: &str, options: EdgepackOptions) -> Result<EdgepackMethod, Told> {
    let mut method = EdgepackMethod { id: 0 };
    let name = CString::new(name).expect("a name");
    call(|error| edgepack_method_load(program, text(&name), options, out(&mut method), error))?;
    Ok(method)
}

/// A contiguous tensor as an input; what it leads to lives longer.
pub fn tensor(dtype: EdgepackDtype, sizes: &[usize], data: &[u8]) -> EdgepackValue {
    EdgepackValue {
        kind: EdgepackKind::Tensor as u32,
        tensor: EdgepackTensor {
            dtype: dtype as i32,
            rank: sizes.len(),
            sizes: to(sizes),
            dim_order: In::NULL,
            data: bytes(data),
            len: data.len(),
        },
        ..nothing()
    }
}

/// A value of nothing.
pub fn nothing() -> EdgepackValue {
    EdgepackValue {
        kind: EdgepackKind::None as u32,
        integer: 0,
        number: 0.0,
        text: EdgepackText { data: In::NULL, len: 0 },
        tensor: EdgepackTensor { dtype: 0, rank: 0, sizes: In::NULL, dim_order: In::NULL, data: In::NULL, len: 0 },
    }
}

/// A file in memory.
pub fn in_memory(file: &[u8]) -> EdgepackFile {
    EdgepackFile { path: In::NULL, data: bytes(file), len: file.len() }
}

/// Bytes of floats.
pub fn le(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|float| float.to_le_bytes()).collect()
}
