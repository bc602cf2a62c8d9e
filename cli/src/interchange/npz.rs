//! Archives of NumPy arrays, `.npz`: a ZIP of `.npy` files, stored or deflated.
//!
//! Invariant: no more bytes are inflated, over all arrays together, than the caller allows, whatever sizes the archive
//! states; every array has the checksum that the directory states.

use std::io::Read;

use edgepack_format::tensor::TensorBuf;
use flate2::bufread::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveWriter};

use super::error::InterchangeError;
use super::npy;

/// The first bytes of an archive, and of one without arrays.
pub const MAGIC: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// The most arrays of an archive.
const MOST_ARRAYS: u64 = 1 << 16;

fn broken(message: impl std::fmt::Display) -> InterchangeError {
    InterchangeError::Npz(message.to_string())
}

/// Reads all arrays with their names (without `.npy`), in the order of the archive; they may have `most` bytes in all.
pub fn read(bytes: &[u8], most: u64) -> Result<Vec<(String, TensorBuf)>, InterchangeError> {
    let archive = ZipArchive::from_slice(bytes).map_err(broken)?;
    let count = archive.entries_hint();
    if count > MOST_ARRAYS {
        return Err(broken(format!("{count} arrays, at most {MOST_ARRAYS} are read")));
    }
    let (mut arrays, mut left): (Vec<(String, TensorBuf)>, u64) = (Vec::new(), most);
    let mut entries = archive.entries();
    for _ in 0..count {
        let entry = entries.next_entry().map_err(broken)?;
        let entry = entry.ok_or_else(|| broken(format!("{} of the {count} arrays are there", arrays.len())))?;
        let path = entry.file_path();
        let path = std::str::from_utf8(path.as_ref()).map_err(|_| broken("the name of an array is not UTF-8"))?;
        let about = |message: String| broken(format!("{path:?}: {message}"));
        let name = path.strip_suffix(".npy").ok_or_else(|| about("this is not an array, .npy".to_owned()))?;
        if arrays.iter().any(|(other, _)| other == name) {
            return Err(about("there are two of that name".to_owned()));
        }
        let (method, stored) = (entry.compression_method(), archive.get_entry(entry.wayfinder()).map_err(broken)?);
        let inflated: Box<dyn Read + '_> = match method {
            CompressionMethod::Store => Box::new(stored.data()),
            CompressionMethod::Deflate => Box::new(DeflateDecoder::new(stored.data())),
            other => return Err(about(format!("compressed by a method that is not read: {other:?}"))),
        };
        let mut content = Vec::new();
        // One byte more than allowed tells an array that is too long from one that just fits.
        stored
            .verifying_reader(inflated)
            .take(left.saturating_add(1))
            .read_to_end(&mut content)
            .map_err(|error| about(error.to_string()))?;
        left = left
            .checked_sub(content.len() as u64)
            .ok_or_else(|| about(format!("with this array more than the {most} bytes allowed")))?;
        let array = npy::read(&content).map_err(|error| about(error.to_string()))?;
        arrays.push((name.to_owned(), array));
    }
    Ok(arrays)
}

/// Writes arrays under their names (without `.npy`), stored.
pub fn write(tensors: &[(String, TensorBuf)]) -> Result<Vec<u8>, InterchangeError> {
    let mut archive = ZipArchiveWriter::new(Vec::new());
    for (name, tensor) in tensors {
        let array = npy::write(tensor)?;
        let path = format!("{name}.npy");
        let file = archive.new_file(&path).compression_method(CompressionMethod::Store);
        let (mut entry, config) = file.start().map_err(broken)?;
        let mut content = config.wrap(&mut entry);
        std::io::Write::write_all(&mut content, &array).map_err(broken)?;
        let (_, descriptor) = content.finish().map_err(broken)?;
        entry.finish(descriptor).map_err(broken)?;
    }
    archive.finish().map_err(broken)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use edgepack_format::scalar::ScalarType;
    use edgepack_format::tensor::TensorLayout;

    use super::*;

    fn tensor(len: usize) -> TensorBuf {
        let layout = TensorLayout::contiguous(ScalarType::BYTE, &[len]).unwrap();
        TensorBuf::from_bytes(layout, vec![7; len]).unwrap()
    }

    /// An archive whose arrays are deflated, as `numpy.savez_compressed` makes them.
    fn deflated(arrays: &[(&str, TensorBuf)]) -> Vec<u8> {
        let mut archive = ZipArchiveWriter::new(Vec::new());
        for (name, tensor) in arrays {
            let file = archive.new_file(name).compression_method(CompressionMethod::Deflate);
            let (mut entry, config) = file.start().unwrap();
            let encoder = flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::best());
            let mut content = config.wrap(encoder);
            content.write_all(&npy::write(tensor).unwrap()).unwrap();
            let (_, descriptor) = content.finish().unwrap();
            entry.finish(descriptor).unwrap();
        }
        archive.finish().unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let arrays = [("in.0".to_owned(), tensor(5)), ("x".to_owned(), tensor(0))];
        assert_eq!(read(&write(&arrays).unwrap(), 1 << 10).unwrap(), arrays);
        assert_eq!(read(&write(&[]).unwrap(), 0).unwrap(), []);
    }

    #[test]
    fn deflated_arrays_are_read_within_their_ceiling() {
        let bytes = deflated(&[("a.npy", tensor(1 << 20)), ("b.npy", tensor(1 << 20))]);
        assert!(bytes.len() < 1 << 14, "{}", bytes.len());
        let most = (2 << 20) + 256;
        assert_eq!(read(&bytes, most).unwrap().len(), 2);
        let error = read(&bytes, most - 1).unwrap_err().to_string();
        assert!(error.contains("\"b.npy\": with this array more than"), "{error}");
    }

    #[test]
    fn broken_archives_are_errors() {
        let good = deflated(&[("a.npy", tensor(300))]);
        assert!(read(&good, 1 << 20).is_ok());
        // Whatever is cut off, or one bit flipped in the content, is noticed; other flips give an error or an array.
        for len in 0..good.len() {
            assert!(read(&good[..len], 1 << 20).is_err(), "{len}");
        }
        let mut flipped = 0;
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            match read(&bytes, 1 << 20) {
                Ok(arrays) => assert!(arrays.iter().all(|(_, array)| *array == tensor(300)), "{bit}"),
                Err(_) => flipped += 1,
            }
        }
        assert!(flipped > good.len());
        for name in ["a.txt", "a"] {
            let error = read(&deflated(&[(name, tensor(1))]), 1 << 20).unwrap_err().to_string();
            assert!(error.contains("not an array"), "{error}");
        }
        let twice = deflated(&[("a.npy", tensor(1)), ("a.npy", tensor(1))]);
        assert!(read(&twice, 1 << 20).unwrap_err().to_string().contains("two of that name"));
    }
}
