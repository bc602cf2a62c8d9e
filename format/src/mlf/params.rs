//! Parameter files: a list of names and a list of tensors, little-endian, without padding. Data are borrowed.
//!
//! Stricter than the runtimes, which take a file whose last bytes are missing for a good one and compute with whatever
//! was in memory.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::data_type::{Class, DataType};
use super::report::Report;
use crate::finding::Findings;
use crate::limits::Limits;
use crate::rules::mlf as rules;
use crate::tensor::{LayoutError, MAX_RANK, TensorLayout, TensorView};

/// The first eight bytes of a parameter file.
pub const LIST_MAGIC: u64 = 0xF7E5_8D4F_0504_9CB7;
/// The first eight bytes of each tensor in it.
pub const TENSOR_MAGIC: u64 = 0xDD5E_40F0_96B4_A13F;
/// The device of every stored tensor: the CPU.
pub const CPU: i32 = 1;

/// The parameters of a module, in the order of the file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Params<'a> {
    /// One per tensor; names are unique in files that verify.
    pub entries: Vec<Param<'a>>,
}

/// A named tensor. Invariant, in files that verify: `data` has [`Param::want_bytes`] bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct Param<'a> {
    /// As the graph names it.
    pub name: &'a str,
    /// The number of the device it was on.
    pub device_id: i32,
    /// Element type.
    pub data_type: DataType,
    /// Row-major shape; none for one element.
    pub shape: Vec<u64>,
    /// Start of the data in the file.
    pub at: usize,
    /// Elements, row by row, little-endian.
    pub data: &'a [u8],
}

impl Param<'_> {
    /// Bytes that shape and type ask for; `None` beyond 63 bits.
    pub fn want_bytes(&self) -> Option<u64> {
        byte_count(&self.shape, self.data_type.stored_bytes())
    }
}

impl<'a> Param<'a> {
    /// The tensor as the rest of the project has it.
    pub fn view(&self) -> Result<TensorView<'a>, LayoutError> {
        TensorView::new(layout(self.data_type, &self.shape)?, self.data)
    }
}

/// A row-major layout of one of the shared element types.
pub fn layout(data_type: DataType, shape: &[u64]) -> Result<TensorLayout, LayoutError> {
    let unknown = LayoutError::ScalarType(crate::scalar::ScalarType(-1));
    if shape.len() > MAX_RANK {
        return Err(LayoutError::Rank(shape.len()));
    }
    let sizes: Result<Vec<usize>, _> = shape.iter().map(|&size| usize::try_from(size)).collect();
    let sizes = sizes.map_err(|_| LayoutError::Overflow)?;
    TensorLayout::contiguous(data_type.scalar_type().ok_or(unknown)?, &sizes)
}

/// Elements times their size; `None` beyond 63 bits.
pub fn byte_count(shape: &[u64], element: u64) -> Option<u64> {
    let elements = shape.iter().try_fold(1u64, |product, &size| product.checked_mul(size))?;
    elements.checked_mul(element).filter(|&bytes| bytes <= i64::MAX as u64)
}

impl<'a> Params<'a> {
    /// Reads a file that breaks no rule.
    pub fn parse(bytes: &'a [u8], limits: &Limits) -> Result<Params<'a>, Findings> {
        let mut report = Report::new(limits);
        match read(bytes, &mut report) {
            Some(params) if !report.findings.has_errors() => Ok(params),
            _ => Err(report.findings),
        }
    }

    /// The tensor of a name.
    pub fn find(&self, name: &str) -> Option<&Param<'a>> {
        self.entries.iter().find(|entry| entry.name == name)
    }
}

/// Verifies a parameter file; the entries are those that can be read.
pub fn verify<'a>(bytes: &'a [u8], limits: &Limits) -> (Findings, Option<Params<'a>>) {
    let mut report = Report::new(limits);
    let params = read(bytes, &mut report);
    (report.findings, params)
}

/// The bytes not yet read.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let end = self.at.checked_add(usize::try_from(len).ok()?)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn i64(&mut self) -> Option<i64> {
        self.u64().map(u64::cast_signed)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take(4)?.first_chunk().map(|bytes| i32::from_le_bytes(*bytes))
    }

    fn left(&self) -> u64 {
        self.bytes.len().saturating_sub(self.at) as u64
    }
}

/// Reads as far as the file is good.
pub(super) fn read<'a>(bytes: &'a [u8], report: &mut Report) -> Option<Params<'a>> {
    let mut cursor = Cursor { bytes, at: 0 };
    let mut params = Params::default();
    let complete = list(&mut cursor, &mut params, report);
    if complete == Some(true) && cursor.left() > 0 {
        let message = format!("{} bytes follow the last tensor", cursor.left());
        report.add(&rules::PARAMS_TRAILING, "", cursor.at, message);
    }
    complete.map(|_| params)
}

/// `None` if it is not a parameter file at all, `false` if it was left early.
fn list<'a>(cursor: &mut Cursor<'a>, params: &mut Params<'a>, report: &mut Report) -> Option<bool> {
    let short = |report: &mut Report, at: usize, what: &str| {
        report.add(&rules::PARAMS_SHORT, "", at, format!("the file ends at {at:#x}, inside {what}"));
    };
    let end = cursor.bytes.len();
    match cursor.u64() {
        Some(LIST_MAGIC) => {}
        Some(magic) => {
            report.add(&rules::PARAMS_MAGIC, "", 0, format!("{magic:#018x}, not {LIST_MAGIC:#018x}"));
            return None;
        }
        None => {
            short(report, end, "its magic");
            return None;
        }
    }
    let Some((reserved, count)) = cursor.u64().zip(cursor.u64()) else {
        short(report, end, "its head");
        return Some(false);
    };
    if reserved != 0 {
        report.add(&rules::PARAMS_RESERVED, "", 8, format!("the reserved word is {reserved:#x}"));
    }
    // Eight bytes of length for each name, at the least.
    if count > cursor.left() / 8 {
        let message = format!("{count} names in {} bytes", cursor.left());
        report.add(&rules::PARAMS_SHORT, "", 16, message);
        return Some(false);
    }
    let mut names: Vec<Option<&'a str>> = Vec::new();
    let mut seen = alloc::collections::BTreeSet::new();
    for index in 0..count {
        if report.budget.charge(1, 0).is_err() {
            report.add(&rules::LIMITS, "", cursor.at, "more parameters than the limits allow".to_string());
            return Some(false);
        }
        let at = cursor.at;
        let Some(name) = cursor.u64().and_then(|len| cursor.take(len)) else {
            short(report, end, "a name");
            return Some(false);
        };
        let name = core::str::from_utf8(name).ok();
        match name {
            None => {
                let message = format!("name {index} is not UTF-8");
                report.add(&rules::PARAMS_NAME, format_args!("[{index}]"), at, message);
            }
            Some(name) if !seen.insert(name) => {
                let message = format!("{name:?} is the name of an earlier one");
                report.add(&rules::PARAMS_REPEATED, format_args!("[{index}]"), at, message);
            }
            Some(_) => {}
        }
        if !report.push(&mut names, name) {
            return Some(false);
        }
    }
    let at = cursor.at;
    match cursor.u64() {
        Some(tensors) if tensors == count => {}
        Some(tensors) => {
            report.add(&rules::PARAMS_COUNT, "", at, format!("{count} names, {tensors} tensors"));
            return Some(false);
        }
        None => {
            short(report, end, "the number of tensors");
            return Some(false);
        }
    }
    for (index, name) in names.into_iter().enumerate() {
        match tensor(cursor, index, name, report) {
            Step::Read(param) => {
                if !report.push(&mut params.entries, param) {
                    return Some(false);
                }
            }
            Step::Skipped => {}
            Step::Short(what) => {
                short(report, end, what);
                return Some(false);
            }
            Step::Lost => return Some(false),
        }
    }
    Some(true)
}

/// Outcome of one tensor.
enum Step<'a> {
    Read(Param<'a>),
    /// Reported; the next one can be read.
    Skipped,
    /// The file ends inside it.
    Short(&'static str),
    /// Reported; the place of the next one is unknown.
    Lost,
}

fn tensor<'a>(cursor: &mut Cursor<'a>, index: usize, name: Option<&'a str>, report: &mut Report) -> Step<'a> {
    let start = cursor.at;
    let place = format!("[{index}]");
    let head = (|| {
        let (magic, reserved) = (cursor.u64()?, cursor.u64()?);
        let (device_type, device_id, rank) = (cursor.i32()?, cursor.i32()?, cursor.i32()?);
        let &[code, bits, low, high] = cursor.take(4)?.first_chunk()?;
        Some((magic, reserved, device_type, device_id, rank, code, bits, u16::from_le_bytes([low, high])))
    })();
    let Some((magic, reserved, device_type, device_id, rank, code, bits, lanes)) = head else {
        return Step::Short("the head of a tensor");
    };
    if magic != TENSOR_MAGIC {
        let message = format!("{magic:#018x}, not {TENSOR_MAGIC:#018x}");
        report.add(&rules::PARAMS_MAGIC, place, start, message);
        return Step::Lost;
    }
    if reserved != 0 {
        let message = format!("the reserved word is {reserved:#x}");
        report.add(&rules::PARAMS_RESERVED, &place, start.saturating_add(8), message);
    }
    if device_type != CPU {
        let message = format!("the device is of type {device_type}");
        report.add(&rules::PARAMS_DEVICE, &place, start.saturating_add(16), message);
    }
    let Some(rank) = u64::try_from(rank).ok().filter(|&rank| rank <= cursor.left() / 8) else {
        let message = format!("{rank} dimensions in {} bytes", cursor.left());
        report.add(&rules::PARAMS_SHAPE, place, start.saturating_add(24), message);
        return Step::Lost;
    };
    let mut shape = Vec::new();
    for dim in 0..rank {
        let size = cursor.i64().unwrap_or(-1);
        match u64::try_from(size) {
            Ok(size) => {
                if !report.push(&mut shape, size) {
                    return Step::Lost;
                }
            }
            Err(_) => {
                let message = format!("size {size} in dimension {dim}");
                report.add(&rules::PARAMS_SHAPE, place, cursor.at.saturating_sub(8), message);
                return Step::Lost;
            }
        }
    }
    let Some(size) = cursor.i64() else { return Step::Short("the head of a tensor") };
    let at = cursor.at;
    let size = u64::try_from(size).unwrap_or(u64::MAX);
    let data_type = Class::from_code(code).and_then(|class| DataType::new(class, bits, lanes));
    let mut good = name.is_some();
    match data_type {
        None => {
            let message = format!("class {code}, {bits} bits, {lanes} lanes");
            report.add(&rules::PARAMS_TYPE, &place, start.saturating_add(28), message);
            good = false;
        }
        Some(data_type) => {
            let want = byte_count(&shape, data_type.stored_bytes());
            if want != Some(size) {
                let want = want.map_or("beyond 63 bits".to_string(), |want| want.to_string());
                let message = format!("{size} bytes, {data_type} of shape {shape:?} has {want}");
                report.add(&rules::PARAMS_SIZE, &place, at.saturating_sub(8), message);
                good = false;
            }
        }
    }
    let Some(data) = cursor.take(size) else { return Step::Short("the data of a tensor") };
    match (name, data_type) {
        (Some(name), Some(data_type)) if good => Step::Read(Param { name, device_id, data_type, shape, at, data }),
        _ => Step::Skipped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn file() -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(LIST_MAGIC.to_le_bytes());
        bytes.extend(0u64.to_le_bytes());
        bytes.extend(1u64.to_le_bytes());
        bytes.extend(2u64.to_le_bytes());
        bytes.extend(b"p0");
        bytes.extend(1u64.to_le_bytes());
        bytes.extend(TENSOR_MAGIC.to_le_bytes());
        bytes.extend(0u64.to_le_bytes());
        for word in [CPU, 0, 1] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([2, 32, 1, 0]);
        bytes.extend(2i64.to_le_bytes());
        bytes.extend(8i64.to_le_bytes());
        bytes.extend([1, 2, 3, 4, 5, 6, 7, 8]);
        bytes
    }

    #[test]
    fn a_file_is_its_tensors() {
        let bytes = file();
        let params = Params::parse(&bytes, &Limits::hostile()).unwrap();
        let param = params.find("p0").unwrap();
        assert_eq!((param.data_type.to_string().as_str(), param.shape.as_slice()), ("float32", &[2][..]));
        assert_eq!(param.view().unwrap().data(), &bytes[bytes.len() - 8..]);
        assert_eq!(param.want_bytes(), Some(8));
    }

    #[test]
    fn every_shorter_file_is_refused() {
        let bytes = file();
        for len in 0..bytes.len() {
            assert!(Params::parse(&bytes[..len], &Limits::hostile()).is_err(), "{len} bytes");
        }
        let longer = [bytes, vec![0]].concat();
        let (findings, params) = verify(&longer, &Limits::hostile());
        assert_eq!(findings.as_slice()[0].rule, &rules::PARAMS_TRAILING);
        assert_eq!(params.unwrap().entries.len(), 1);
    }
}
