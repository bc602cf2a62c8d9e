//! Named data: of data files and inside of programs.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use edgepack::format::ptd::Accept;
use edgepack::format::tensor::TensorLayout;
use edgepack::loader::{Bytes, DataFile, NamedDataMap, Source};

use crate::borrowed::{EdgepackRelease, Lent};
use crate::entry;
use crate::error::{EdgepackCode, EdgepackError};
use crate::failure::Failure;
use crate::handles::{close, get, handle, put};
use crate::limits::{EdgepackLimits, limits};
use crate::pointer::{In, Out};
use crate::program::{EdgepackProgram, copied_source, file_source};
use crate::text::{EdgepackText, Terminated};
use crate::value::EdgepackTensor;

/// Data by key: a data file (`.ptd` or FlatData), or what is inside of a program.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgepackData {
    /// Number of the object; zero for none.
    pub id: u64,
}

handle!(EdgepackData, Data, DataObject, "named data");

/// Bytes of a key, in memory until they are closed.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgepackBytes {
    /// Number of the object; zero for none.
    pub id: u64,
}

handle!(EdgepackBytes, Bytes, BytesObject, "bytes");

pub(crate) struct DataObject {
    pub map: Arc<dyn NamedDataMap>,
    keys: Vec<Terminated>,
    /// By key: the layout of a tensor.
    layouts: Vec<Option<TensorLayout>>,
}

pub(crate) struct BytesObject(Bytes);

impl DataObject {
    fn new(map: Arc<dyn NamedDataMap>) -> Result<Self, Failure> {
        let (mut keys, mut layouts) = (Vec::new(), Vec::new());
        for key in (0..map.len()).filter_map(|index| map.key(index)) {
            keys.push(Terminated::new(key));
            layouts.push(map.layout(key)?);
        }
        Ok(DataObject { map, keys, layouts })
    }

    fn of_file(source: Arc<dyn Source>, limits: EdgepackLimits) -> Result<Self, Failure> {
        Self::new(Arc::new(DataFile::from_source(source, self::limits(limits)?, Accept::ALL)?))
    }

    fn index(&self, key: &str) -> Result<usize, Failure> {
        let found = self.keys.iter().position(|known| known.as_bytes() == key.as_bytes());
        found.ok_or_else(|| Failure::missing("key", key))
    }

    fn key(&self, index: usize) -> Result<&str, Failure> {
        self.map.key(index).ok_or_else(|| Failure::missing("key", index))
    }
}

/// Opens a data file, which is verified. Data are read when they are asked for; the file has to stay as it is meanwhile.
///
/// Ownership: the data are the caller's, who closes them; options and methods that were given them keep what they need.
/// Threads: any, at any time; data may be used on several threads.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_data_open(
    path: In<c_char>,
    limits: EdgepackLimits,
    data: Out<EdgepackData>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        data.check(1, "data")?;
        data.write(put(DataObject::of_file(file_source(&path)?, limits)?), "data")
    })
}

/// Opens a data file that is in memory, of which a copy is made.
///
/// Ownership and threads: as of edgepack_data_open.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_data_open_copy(
    bytes: In<c_void>,
    len: usize,
    limits: EdgepackLimits,
    data: Out<EdgepackData>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        data.check(1, "data")?;
        data.write(put(DataObject::of_file(copied_source(&bytes, len)?, limits)?), "data")
    })
}

/// Opens a data file that is in memory, and stays there, as edgepack_program_open_borrowed does with a program: `bytes` are
/// neither changed nor freed until `release` is called with `user`.
///
/// Ownership and threads: as of edgepack_data_open.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_data_open_borrowed(
    bytes: In<c_void>,
    len: usize,
    release: EdgepackRelease,
    user: Out<c_void>,
    limits: EdgepackLimits,
    data: Out<EdgepackData>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        data.check(1, "data")?;
        let lent = Arc::new(Lent::new(bytes, len)?);
        let opened = DataObject::of_file(lent.clone(), limits)?;
        lent.release_by(release, user);
        data.write(put(opened), "data")
    })
}

/// Returns the named data inside of a program, without reading them.
///
/// Ownership: the data are the caller's, who closes them; the program may be closed before. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_data_of_program(
    program: EdgepackProgram,
    data: Out<EdgepackData>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        data.check(1, "data")?;
        data.write(put(DataObject::new(Arc::new(get(program)?.program.named_data()?))?), "data")
    })
}

/// Returns the number of keys by `count`.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_data_count(
    data: EdgepackData,
    count: Out<usize>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || count.write(get(data)?.keys.len(), "count"))
}

/// Returns a key by `key`.
///
/// Ownership: the text is that of the data, until they are closed. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_data_key(
    data: EdgepackData,
    index: usize,
    key: Out<EdgepackText>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let object = get(data)?;
        let found = object.keys.get(index).ok_or_else(|| Failure::missing("key", index))?;
        key.write(found.text(), "key")
    })
}

/// Returns the index of a key by `index`; EDGEPACK_CODE_NOT_FOUND if there is none.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_data_find(
    data: EdgepackData,
    key: In<c_char>,
    index: Out<usize>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || index.write(get(data)?.index(key.text("the key")?)?, "index"))
}

/// Returns the layout of a tensor by `tensor`, whose data are null and whose length is the number of bytes;
/// EDGEPACK_CODE_INVALID_TYPE if it is no tensor.
///
/// Ownership: what it leads to is that of the data, until they are closed. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_data_layout(
    data: EdgepackData,
    index: usize,
    tensor: Out<EdgepackTensor>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let object = get(data)?;
        match object.layouts.get(index) {
            Some(Some(layout)) => tensor.write(EdgepackTensor::of_layout(layout), "tensor"),
            Some(None) => Err(Failure::new(
                edgepack::format::finding::ErrorCode::InvalidType,
                format!("key {index} has no layout of a tensor"),
            )),
            None => Err(Failure::missing("key", index)),
        }
    })
}

/// Reads the data of a key, of which there have to be `len` bytes. If that fails, what `into` has is not specified.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_data_read(
    data: EdgepackData,
    index: usize,
    mut into: Out<c_void>,
    len: usize,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let object = get(data)?;
        let key = object.key(index)?;
        Ok(object.map.load_into(key, into.bytes(len, "into")?)?)
    })
}

/// Returns the data of a key as bytes that stay in memory until they are closed; borrowed where the file is in memory, else
/// read now.
///
/// Ownership: the bytes are the caller's, who closes them; the data may be closed before. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_data_bytes(
    data: EdgepackData,
    index: usize,
    bytes: Out<EdgepackBytes>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        bytes.check(1, "bytes")?;
        let object = get(data)?;
        let key = object.key(index)?;
        let found = object.map.data(key)?.ok_or_else(|| Failure::missing("key", key))?;
        bytes.write(put(BytesObject(found)), "bytes")
    })
}

/// Returns where bytes are by `data`, and how many by `len`.
///
/// Ownership: they are those of the handle, until it is closed. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_bytes_view(
    bytes: EdgepackBytes,
    data: Out<In<c_void>>,
    len: Out<usize>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        len.check(1, "len")?;
        let object = get(bytes)?;
        data.write(In::to(object.0.as_ptr().cast()), "data")?;
        len.write(object.0.len(), "len")
    })
}

/// Closes bytes. Zero is closed at any time.
///
/// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if they were closed before.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_bytes_close(bytes: EdgepackBytes) -> EdgepackCode {
    entry::call(Out::NULL, || close(bytes))
}

/// Closes named data. Options and methods that were given them keep what they need. Zero is closed at any time.
///
/// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if they were closed before.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_data_close(data: EdgepackData) -> EdgepackCode {
    entry::call(Out::NULL, || close(data))
}
