//! NumPy arrays, `.npy`: a magic, a version, a header that is a Python dictionary, and the elements.

use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorBuf, TensorLayout};

use super::error::InterchangeError;

/// The first bytes.
pub const MAGIC: &[u8] = b"\x93NUMPY";

fn broken(message: &str) -> InterchangeError {
    InterchangeError::Npy(message.to_owned())
}

/// Reads an array. A Fortran-ordered one keeps its order.
pub fn read(bytes: &[u8]) -> Result<TensorBuf, InterchangeError> {
    let short = || broken("the header is cut off");
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| broken("the magic is missing"))?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or_else(short)?;
    let (len, rest) = match version[0] {
        1 => rest.split_first_chunk::<2>().map(|(len, rest)| (u16::from_le_bytes(*len).into(), rest)),
        _ => rest.split_first_chunk::<4>().map(|(len, rest)| (u32::from_le_bytes(*len) as usize, rest)),
    }
    .ok_or_else(short)?;
    let (header, data) = rest.split_at_checked(len).ok_or_else(short)?;
    let header = std::str::from_utf8(header).map_err(|_| broken("the header is not text"))?;

    let descr = field(header, "descr").and_then(quoted).ok_or_else(|| broken("no single element type"))?;
    let (order, code) = descr.split_at_checked(1).ok_or_else(|| broken("no element type"))?;
    let found = ScalarType::called(|names| names.numpy == Some(code));
    let scalar_type = found.ok_or_else(|| InterchangeError::Type(descr.to_owned()))?;
    let fortran = match field(header, "fortran_order") {
        Some(value) if value.starts_with("False") => false,
        Some(value) if value.starts_with("True") => true,
        _ => return Err(broken("no fortran_order")),
    };
    let shape = field(header, "shape").and_then(|value| value.strip_prefix('(')?.split(')').next());
    let shape = shape.ok_or_else(|| broken("no shape"))?;
    let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
    let sizes: Result<Vec<usize>, _> = sizes.map(str::parse).collect();
    let sizes = sizes.map_err(|_| broken("the shape is not made of numbers"))?;

    let rank = u8::try_from(sizes.len()).map_err(|_| broken("too many dimensions"))?;
    let dim_order: Vec<u8> = if fortran { (0..rank).rev().collect() } else { (0..rank).collect() };
    let layout = TensorLayout::new(scalar_type, &sizes, &dim_order)?;
    let data = data.get(..layout.byte_len()).ok_or_else(|| broken("the elements are cut off"))?;
    let mut data = data.to_vec();
    if order == ">" {
        // A complex number is two numbers.
        let size = scalar_type.part().size().unwrap_or(1);
        data.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    Ok(TensorBuf::from_bytes(layout, data)?)
}

/// Returns the text behind the colon of a key.
fn field<'h>(header: &'h str, key: &str) -> Option<&'h str> {
    let at = [format!("'{key}'"), format!("\"{key}\"")]
        .into_iter()
        .find_map(|key| header.split_once(&*key).map(|split| split.1))?;
    at.trim_start().strip_prefix(':').map(str::trim_start)
}

fn quoted(value: &str) -> Option<&str> {
    let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    value.get(1..)?.split(quote).next()
}

/// Writes an array; its elements are in index order.
pub fn write(tensor: &TensorBuf) -> Result<Vec<u8>, InterchangeError> {
    let tensor = tensor.contiguous()?;
    let layout = tensor.layout();
    let code = layout.scalar_type().names().and_then(|names| names.numpy);
    let code = code.ok_or_else(|| InterchangeError::Type(layout.scalar_type().to_string()))?;
    let order = if layout.scalar_type().size() == Some(1) { '|' } else { '<' };
    let shape: String = layout.sizes().iter().map(|size| format!("{size}, ")).collect();
    let mut header = format!("{{'descr': '{order}{code}', 'fortran_order': False, 'shape': ({}), }}", shape.trim_end());
    // The elements start at a multiple of 64; the header ends with a line feed.
    let end = (MAGIC.len() + 4 + header.len() + 1).next_multiple_of(64);
    header.extend(std::iter::repeat_n(' ', end - (MAGIC.len() + 4 + header.len() + 1)));
    header.push('\n');
    let mut out = [MAGIC, &[1, 0]].concat();
    // At most sixteen sizes of twenty digits: far below 64 KiB.
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.bytes());
    out.extend(tensor.data());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes()].concat();
        bytes.extend(header.bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        for sizes in [&[][..], &[3], &[2, 3], &[0, 4]] {
            let layout = TensorLayout::contiguous(ScalarType::SHORT, sizes).unwrap();
            let tensor = TensorBuf::from_bytes(layout.clone(), (0..layout.byte_len() as u8).collect()).unwrap();
            let bytes = write(&tensor).unwrap();
            assert_eq!((bytes.len() - layout.byte_len()) % 64, 0);
            assert_eq!(read(&bytes).unwrap(), tensor);
        }
    }

    #[test]
    fn orders_and_byte_orders_are_understood() {
        let big = array("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", &[1, 2, 3, 4]);
        assert_eq!(read(&big).unwrap().data(), [2, 1, 4, 3]);
        let fortran = array("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }", &[1, 2, 3, 4]);
        assert_eq!(read(&fortran).unwrap().contiguous().unwrap().data(), [1, 3, 2, 4]);
    }

    #[test]
    fn broken_arrays_are_errors() {
        let bad = [
            array("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", &[0; 7]),
            array("{'descr': '<x4', 'fortran_order': False, 'shape': (2,), }", &[0; 8]),
            array("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", &[0; 8]),
            array("{'fortran_order': False}", &[]),
            MAGIC.to_vec(),
        ];
        for bytes in bad {
            assert!(read(&bytes).is_err());
        }
    }
}
