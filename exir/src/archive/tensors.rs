//! Tensors of an archive: strided views of storages that stay where they are.
//!
//! Invariant: every element of a [`Weight`] is inside its storage.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use edgepack_builder::content::{Content, Data};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;

use super::Archive;
use super::gather::Gather;
use crate::error::Error;
use crate::graph::{self, Size};
use crate::json::{PayloadConfig, PayloadMeta};

/// A view that repeats elements of its storage may be this large.
const MAX_EXPANDED: usize = 64 << 20;

/// The bytes that tensors are views of.
#[derive(Clone, Debug)]
pub struct Storage<'a> {
    bytes: Bytes<'a>,
    /// Name that distinguishes the storage from others of the same program.
    name: Arc<str>,
}

#[derive(Clone, Debug)]
enum Bytes<'a> {
    Borrowed(&'a [u8]),
    Made(Data<'static>),
    File { path: Arc<PathBuf>, offset: u64, len: u64 },
}

impl<'a> Storage<'a> {
    /// Bytes in memory, under a name that no other storage of the program has.
    pub fn owned(name: impl Into<String>, bytes: Vec<u8>) -> Storage<'static> {
        Storage::made(name, bytes.into())
    }

    /// A content that is read when it is needed, under a name that no other storage of the program has.
    pub fn made(name: impl Into<String>, data: Data<'static>) -> Storage<'static> {
        Storage { bytes: Bytes::Made(data), name: name.into().into() }
    }

    /// Borrows the bytes of the caller, under a name that no other storage of the program has.
    pub fn borrowed(name: impl Into<String>, bytes: &'a [u8]) -> Self {
        Storage { bytes: Bytes::Borrowed(bytes), name: name.into().into() }
    }

    pub(super) fn file(name: &str, path: Arc<PathBuf>, offset: u64, len: u64) -> Storage<'static> {
        Storage { bytes: Bytes::File { path, offset, len }, name: name.into() }
    }

    /// Returns the name of the storage: the record it came from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        match &self.bytes {
            Bytes::Borrowed(bytes) => bytes.len() as u64,
            Bytes::Made(data) => data.len(),
            Bytes::File { len, .. } => *len,
        }
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `len` bytes from `start` on.
    pub fn data(&self, start: u64, len: u64) -> Data<'a> {
        match &self.bytes {
            Bytes::Borrowed(bytes) => Data::from(slice(bytes, start, len)),
            _ => self.own_data(start, len),
        }
    }

    /// The same, borrowing nothing: bytes of the caller are copied.
    pub(crate) fn own_data(&self, start: u64, len: u64) -> Data<'static> {
        match &self.bytes {
            Bytes::Borrowed(bytes) => Data::from(slice(bytes, start, len).to_vec()),
            Bytes::Made(data) if start == 0 && len == data.len() => data.clone(),
            Bytes::Made(data) => Data::new(Part { whole: data.clone(), start, len }),
            Bytes::File { path, offset, .. } => Data::file(path.as_path(), offset.saturating_add(start), len),
        }
    }
}

fn slice(bytes: &[u8], start: u64, len: u64) -> &[u8] {
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let end = start.saturating_add(usize::try_from(len).unwrap_or(usize::MAX));
    bytes.get(start..end).unwrap_or_default()
}

/// A part of a content.
struct Part {
    whole: Data<'static>,
    start: u64,
    len: u64,
}

impl Content for Part {
    fn byte_len(&self) -> u64 {
        self.len
    }

    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.as_slice() {
            Some(bytes) => out.write_all(bytes),
            None => {
                let mut bytes = Vec::new();
                self.append_to(&mut bytes)?;
                out.write_all(&bytes)
            }
        }
    }

    fn append_to(&self, out: &mut Vec<u8>) -> io::Result<()> {
        self.whole.append_part(self.start, self.len, out)
    }

    fn append_part(&self, start: u64, len: u64, out: &mut Vec<u8>) -> io::Result<()> {
        self.whole.append_part(self.start.saturating_add(start), len, out)
    }

    fn as_slice(&self) -> Option<&[u8]> {
        Some(slice(self.whole.as_slice()?, self.start, self.len))
    }

    fn is_computed(&self) -> bool {
        self.whole.is_computed()
    }
}

/// A tensor of the program: a view of a storage. Numbers are in elements.
#[derive(Clone, Debug)]
pub struct Weight<'a> {
    /// True if the tensor is a parameter.
    pub is_param: bool,
    storage: Storage<'a>,
    scalar_type: ScalarType,
    sizes: Vec<usize>,
    strides: Vec<usize>,
    offset: usize,
}

impl<'a> Weight<'a> {
    /// A view of a storage, checked.
    pub fn new(
        storage: Storage<'a>,
        scalar_type: ScalarType,
        sizes: Vec<usize>,
        strides: Vec<usize>,
        offset: usize,
    ) -> Result<Self, Error> {
        let weight = Weight { is_param: false, storage, scalar_type, sizes, strides, offset };
        weight.check().map_err(|message| Error::record(weight.storage.name(), message))?;
        Ok(weight)
    }

    /// A whole storage as a contiguous tensor.
    pub fn contiguous(storage: Storage<'a>, scalar_type: ScalarType, sizes: &[usize]) -> Result<Self, Error> {
        let strides = contiguous_strides(sizes);
        Weight::new(storage, scalar_type, sizes.to_vec(), strides, 0)
    }

    /// Returns the tensor as a parameter.
    pub(super) fn parameter(self) -> Self {
        Weight { is_param: true, ..self }
    }

    /// The storage it is a view of.
    pub fn storage(&self) -> &Storage<'a> {
        &self.storage
    }

    /// Element type.
    pub fn scalar_type(&self) -> ScalarType {
        self.scalar_type
    }

    /// Sizes.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Distances between neighbours.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// The first element.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The order of dimensions in which a program stores it: its own for channels-last, else that of its sizes.
    pub fn dim_order(&self) -> Vec<u8> {
        graph::dim_order_of(&self.sizes, &self.strides)
    }

    /// Layout and bytes with dimensions in this order. Nothing is read before the bytes are written.
    pub fn data(&self, dim_order: &[u8]) -> Result<(TensorLayout, Data<'a>), Error> {
        self.arranged(dim_order, |start, len| self.storage.data(start, len))
    }

    /// The same, borrowing nothing: bytes of the caller are copied.
    pub(crate) fn own_data(&self, dim_order: &[u8]) -> Result<Data<'static>, Error> {
        Ok(self.arranged(dim_order, |start, len| self.storage.own_data(start, len))?.1)
    }

    fn arranged<'x>(
        &self,
        dim_order: &[u8],
        data: impl Fn(u64, u64) -> Data<'x>,
    ) -> Result<(TensorLayout, Data<'x>), Error> {
        let layout = TensorLayout::new(self.scalar_type, &self.sizes, dim_order)
            .map_err(|error| Error::record(self.storage.name(), error))?;
        let item = self.scalar_type.size().unwrap_or(1);
        if self.agrees(&layout) {
            let start = (self.offset as u64).saturating_mul(item as u64);
            return Ok((layout.clone(), data(start, layout.byte_len() as u64)));
        }
        let dims = dim_order.iter().filter_map(|dim| {
            let dim = usize::from(*dim);
            Some((*self.sizes.get(dim)?, *self.strides.get(dim)?))
        });
        let gather = Gather::new(data(0, self.storage.len()), dims, self.offset, item);
        Ok((layout, Data::new(gather)))
    }

    /// Returns whether the elements are contiguous in memory with the dimensions in this order.
    pub(crate) fn is_dense(&self, dim_order: &[u8]) -> bool {
        TensorLayout::new(self.scalar_type, &self.sizes, dim_order).is_ok_and(|layout| self.agrees(&layout))
    }

    fn agrees(&self, layout: &TensorLayout) -> bool {
        let dense = layout.strides();
        let agrees = |(dim, size): (usize, &usize)| *size <= 1 || dense.get(dim) == self.strides.get(dim);
        layout.element_count() == 0 || self.sizes.iter().enumerate().all(agrees)
    }

    /// Returns the bytes with dimensions in another order, or another view of them: `change` is given sizes, strides
    /// and offset. `None` if the result is not a view of the storage.
    pub fn reviewed(
        &self,
        change: impl FnOnce(&mut Vec<usize>, &mut Vec<usize>, &mut usize) -> Option<()>,
    ) -> Option<Self> {
        let mut weight = self.clone();
        change(&mut weight.sizes, &mut weight.strides, &mut weight.offset)?;
        weight.check().ok()?;
        Some(weight)
    }

    fn check(&self) -> Result<(), String> {
        let item = self.scalar_type.size().ok_or_else(|| format!("element type {}", self.scalar_type))?;
        if self.sizes.len() != self.strides.len() || self.sizes.len() > 255 {
            return Err(format!("{} sizes and {} strides", self.sizes.len(), self.strides.len()));
        }
        let order: Vec<u8> = (0..=u8::MAX).take(self.sizes.len()).collect();
        let layout = TensorLayout::new(self.scalar_type, &self.sizes, &order).map_err(|error| error.to_string())?;
        if layout.element_count() == 0 {
            return Ok(());
        }
        let mut last = self.offset;
        for (size, stride) in self.sizes.iter().zip(&self.strides) {
            let reach = size.saturating_sub(1).checked_mul(*stride);
            last = reach.and_then(|reach| last.checked_add(reach)).ok_or("its strides overflow")?;
        }
        let end = last.checked_add(1).and_then(|end| end.checked_mul(item)).ok_or("its strides overflow")?;
        if end as u64 > self.storage.len() {
            return Err(format!("elements up to byte {end} of a storage of {}", self.storage.len()));
        }
        if layout.byte_len() > MAX_EXPANDED && layout.byte_len() as u64 > self.storage.len() {
            return Err(format!("{} bytes made of a storage of {}", layout.byte_len(), self.storage.len()));
        }
        Ok(())
    }
}

pub(crate) fn contiguous_strides(sizes: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; sizes.len()];
    let mut step = 1usize;
    for (size, stride) in sizes.iter().zip(&mut strides).rev() {
        *stride = step;
        step = step.saturating_mul((*size).max(1));
    }
    strides
}

/// The tensors of a program, by fully qualified name.
#[derive(Clone, Debug, Default)]
pub struct Weights<'a> {
    /// Parameters and persistent buffers.
    pub state: BTreeMap<String, Weight<'a>>,
    /// Constants and buffers that are not persistent.
    pub constants: BTreeMap<String, Weight<'a>>,
    /// Weights that consist of several tensors, such as quantised ones: programs ask for the tensors inside.
    pub subclasses: BTreeMap<String, Subclass<'a>>,
}

/// A tensor that consists of others.
#[derive(Clone, Debug)]
pub struct Subclass<'a> {
    /// The name of its class.
    pub class: String,
    /// True if the weight is a parameter.
    pub is_param: bool,
    /// The tensors inside, by attribute.
    pub tensors: BTreeMap<String, Weight<'a>>,
}

impl<'a> Weights<'a> {
    /// The tensor of this name.
    pub fn find(&self, name: &str) -> Option<&Weight<'a>> {
        self.state.get(name).or_else(|| self.constants.get(name))
    }

    /// Explains why there is no tensor of this name.
    pub(crate) fn missing(&self, name: &str) -> String {
        match self.subclasses.get(name) {
            Some(whole) => format!("`{name}` is a {} that is used as a whole, not by its parts", whole.class),
            None => format!("no tensor `{name}`"),
        }
    }

    /// All tensors.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Weight<'a>)> {
        self.state.iter().chain(&self.constants).map(|(name, weight)| (name.as_str(), weight))
    }
}

/// The tensors of a model in an archive that stores them as they are.
pub(super) fn read<'a>(archive: &Archive<'a>, model: &str) -> Result<Weights<'a>, Error> {
    let mut weights = Weights::default();
    for folder in ["weights", "constants"] {
        let config = format!("data/{folder}/{model}_{folder}_config.json");
        if archive.record(&config).is_none() {
            // As early archives of this layout have them.
            let pickled = format!("data/{folder}/{model}.pt");
            if archive.record(&pickled).is_some() {
                archive.saved(&pickled)?.tensors(&mut weights, folder == "weights")?;
            }
            continue;
        }
        let payloads: PayloadConfig = archive.json(&config)?;
        for (name, payload) in payloads.config {
            let path = format!("data/{folder}/{}", payload.path_name);
            if payload.use_pickle {
                if payload.tensor_meta.is_none() {
                    return Err(Error::Pickle { record: path, what: format!("`{name}`") });
                }
                let subclass = archive.saved(&path)?.subclass(payload.is_param)?;
                weights.subclasses.insert(name, subclass);
                continue;
            }
            let weight = tensor(archive, &name, &payload, &path)?;
            if folder == "weights" { &mut weights.state } else { &mut weights.constants }.insert(name, weight);
        }
    }
    Ok(weights)
}

fn tensor<'a>(archive: &Archive<'a>, name: &str, payload: &PayloadMeta, path: &str) -> Result<Weight<'a>, Error> {
    let record = archive.record(path).ok_or_else(|| Error::NoRecord(path.to_owned()))?;
    let about = |message: String| Error::record(path, format!("`{name}`: {message}"));
    let meta = payload.tensor_meta.as_ref().ok_or_else(|| about("it is not described".to_owned()))?;
    let meta = graph::TensorMeta::from_document(meta).map_err(|error| match error {
        Error::Size { message, .. } => Error::Size { place: format!("{path}: `{name}`"), message },
        other => about(other.to_string()),
    })?;
    if !meta.is_strided() {
        return Err(about(format!("layout {}, only strided tensors are read", meta.layout)));
    }
    let known = |size: &Size| size.known().and_then(|size| usize::try_from(size).ok());
    let numbers = |sizes: &[Size], what: &str| {
        let numbers = sizes.iter().map(known).collect::<Option<Vec<_>>>();
        numbers.ok_or_else(|| about(format!("its {what} are no numbers")))
    };
    let offset = known(&meta.storage_offset).ok_or_else(|| about("its offset is not a number".to_owned()))?;
    let (sizes, strides) = (numbers(&meta.sizes, "sizes")?, numbers(&meta.strides, "strides")?);
    let weight = Weight::new(archive.storage(record), meta.scalar_type, sizes, strides, offset)
        .map_err(|error| about(error.to_string()))?;
    Ok(Weight { is_param: payload.is_param, ..weight })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(count: u8) -> Storage<'static> {
        Storage::owned("w", (0..count).flat_map(|number| f32::from(number).to_le_bytes()).collect())
    }

    fn values(weight: &Weight<'_>, order: &[u8]) -> Vec<f32> {
        let bytes = weight.data(order).unwrap().1.to_vec().unwrap();
        bytes.chunks(4).map(|chunk| f32::from_le_bytes(chunk.try_into().unwrap())).collect()
    }

    #[test]
    fn views_are_written_in_the_order_asked_for() {
        let weight = Weight::new(floats(8), ScalarType::FLOAT, vec![2, 3], vec![1, 2], 1).unwrap();
        assert_eq!(values(&weight, &[0, 1]), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
        assert_eq!(values(&weight, &[1, 0]), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let scalar = Weight::new(floats(2), ScalarType::FLOAT, vec![], vec![], 1).unwrap();
        assert_eq!(values(&scalar, &[]), [1.0]);
        let spread = Weight::new(floats(2), ScalarType::FLOAT, vec![3], vec![0], 1).unwrap();
        assert_eq!(values(&spread, &[0]), [1.0, 1.0, 1.0]);
    }

    #[test]
    fn views_beyond_their_storage_are_refused() {
        for (sizes, strides, offset) in [
            (vec![9], vec![1], 0),
            (vec![2], vec![1], 7),
            (vec![2, 2], vec![1], 0),
            (vec![2], vec![usize::MAX], 0),
            (vec![1 << 40], vec![0], 0),
        ] {
            assert!(Weight::new(floats(8), ScalarType::FLOAT, sizes, strides, offset).is_err());
        }
        assert!(Weight::new(floats(0), ScalarType::FLOAT, vec![0, 5], vec![5, 1], 3).is_ok());
        assert!(Weight::new(floats(8), ScalarType(99), vec![1], vec![1], 0).is_err());
    }
}
