//! Tensors over storages that they share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use edgepack_format::scalar::ScalarType;

use super::EagerError;

/// The most elements a tensor may have here.
const MOST_ELEMENTS: i64 = 1 << 28;

/// Elements of a tensor, one after the other.
#[derive(Clone, PartialEq, Debug)]
pub struct Dense {
    /// Element type.
    pub scalar_type: ScalarType,
    /// Sizes.
    pub sizes: Vec<i64>,
    /// Elements in the machine's order of bytes.
    pub bytes: Vec<u8>,
}

/// Memory that tensors share.
#[derive(Debug, Default)]
pub(super) struct Storage {
    bytes: RefCell<Vec<u8>>,
    written: Cell<bool>,
}

/// A tensor: places in a storage that other tensors may see too.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    storage: Rc<Storage>,
    pub(super) scalar_type: ScalarType,
    pub(super) sizes: Vec<i64>,
    pub(super) strides: Vec<i64>,
    /// In elements.
    pub(super) offset: i64,
}

pub(super) fn contiguous(sizes: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; sizes.len()];
    for dim in (1..sizes.len()).rev() {
        strides[dim - 1] = strides[dim] * sizes[dim].max(1);
    }
    strides
}

/// Number of elements, refused where it is out of reach.
pub(super) fn numel(sizes: &[i64]) -> Result<i64, EagerError> {
    let product = sizes.iter().try_fold(1i64, |all, size| all.checked_mul((*size).max(0)));
    product.filter(|count| *count <= MOST_ELEMENTS).ok_or_else(|| EagerError::new("a tensor of too many elements"))
}

/// Visits the place of every element in order.
fn each_place(sizes: &[i64], strides: &[i64], offset: i64, mut visit: impl FnMut(i64)) {
    if sizes.iter().any(|size| *size <= 0) {
        return;
    }
    let mut index = vec![0i64; sizes.len()];
    let mut place = offset;
    loop {
        visit(place);
        let mut dim = sizes.len();
        loop {
            if dim == 0 {
                return;
            }
            dim -= 1;
            index[dim] += 1;
            place += strides[dim];
            if index[dim] < sizes[dim] {
                break;
            }
            place -= strides[dim] * sizes[dim];
            index[dim] = 0;
        }
    }
}

impl Tensor {
    /// A tensor with a storage of its own, laid out by these strides if they are dense, in order otherwise.
    pub(super) fn new(dense: &Dense, strides: Option<Vec<i64>>) -> Result<Tensor, EagerError> {
        let count = numel(&dense.sizes)?;
        let width = dense.scalar_type.size().unwrap_or(1);
        let strides =
            strides.filter(|strides| is_dense(&dense.sizes, strides)).unwrap_or_else(|| contiguous(&dense.sizes));
        let tensor = Tensor::over(vec![0; count as usize * width], dense.scalar_type, dense.sizes.clone(), strides);
        tensor.write(dense)?;
        tensor.storage.written.set(false);
        Ok(tensor)
    }

    /// A tensor over these bytes.
    pub(super) fn over(bytes: Vec<u8>, scalar_type: ScalarType, sizes: Vec<i64>, strides: Vec<i64>) -> Tensor {
        let storage = Rc::new(Storage { bytes: RefCell::new(bytes), written: Cell::new(false) });
        Tensor { storage, scalar_type, sizes, strides, offset: 0 }
    }

    /// Returns whether anything was written into its storage.
    pub(super) fn is_written(&self) -> bool {
        self.storage.written.get()
    }

    fn width(&self) -> usize {
        self.scalar_type.size().unwrap_or(1)
    }

    /// The elements one after the other.
    pub(super) fn read(&self) -> Result<Dense, EagerError> {
        let width = self.width();
        let storage = self.storage.bytes.borrow();
        let mut bytes = Vec::with_capacity(numel(&self.sizes)? as usize * width);
        let mut outside = false;
        each_place(&self.sizes, &self.strides, self.offset, |place| {
            let start = usize::try_from(place).unwrap_or(usize::MAX).saturating_mul(width);
            match storage.get(start..start.saturating_add(width)) {
                Some(element) => bytes.extend_from_slice(element),
                None => outside = true,
            }
        });
        match outside {
            true => Err(EagerError::new("a view reaches beyond its storage")),
            false => Ok(Dense { scalar_type: self.scalar_type, sizes: self.sizes.clone(), bytes }),
        }
    }

    /// Writes elements, repeated to the tensor's sizes, where they are.
    pub(super) fn write(&self, from: &Dense) -> Result<(), EagerError> {
        let width = self.width();
        if from.scalar_type != self.scalar_type {
            return Err(EagerError::new("elements of another type are written"));
        }
        let wide = broadcast(from, &self.sizes)?;
        self.storage.written.set(true);
        let mut storage = self.storage.bytes.borrow_mut();
        let mut elements = wide.bytes.chunks_exact(width);
        let mut outside = false;
        each_place(&self.sizes, &self.strides, self.offset, |place| {
            let start = usize::try_from(place).unwrap_or(usize::MAX).saturating_mul(width);
            match (storage.get_mut(start..start.saturating_add(width)), elements.next()) {
                (Some(to), Some(element)) => to.copy_from_slice(element),
                _ => outside = true,
            }
        });
        if outside { Err(EagerError::new("a view reaches beyond its storage")) } else { Ok(()) }
    }

    /// Returns a tensor of the same bytes as elements of another type.
    pub(super) fn of_type(self, scalar_type: ScalarType) -> Tensor {
        Tensor { scalar_type, ..self }
    }

    /// Returns a tensor of the same storage with other sizes, strides and offset.
    pub(super) fn seen(&self, sizes: Vec<i64>, strides: Vec<i64>, offset: i64) -> Tensor {
        Tensor { sizes, strides, offset, ..self.clone() }
    }
}

/// Returns whether strides put the elements of these sizes one behind the other in some order.
fn is_dense(sizes: &[i64], strides: &[i64]) -> bool {
    let mut dims: Vec<(i64, i64)> =
        sizes.iter().copied().zip(strides.iter().copied()).filter(|(size, _)| *size != 1).collect();
    dims.sort_by_key(|(_, stride)| *stride);
    let mut step = 1;
    sizes.len() == strides.len()
        && dims.iter().all(|(size, stride)| {
            let fits = *stride == step;
            step *= (*size).max(1);
            fits
        })
}

/// Elements repeated to these sizes.
pub(super) fn broadcast(from: &Dense, sizes: &[i64]) -> Result<Dense, EagerError> {
    if from.sizes == sizes {
        return Ok(from.clone());
    }
    let wrong = || EagerError::new("elements that do not fit are written");
    let ahead = sizes.len().checked_sub(from.sizes.len()).ok_or_else(wrong)?;
    let own = contiguous(&from.sizes);
    let mut strides = vec![0; sizes.len()];
    for (dim, (size, stride)) in from.sizes.iter().zip(&own).enumerate() {
        match (*size, sizes[ahead + dim]) {
            (size, wanted) if size == wanted => strides[ahead + dim] = *stride,
            (1, _) => {}
            _ => return Err(wrong()),
        }
    }
    let width = from.scalar_type.size().unwrap_or(1);
    let mut bytes = Vec::with_capacity(numel(sizes)? as usize * width);
    each_place(sizes, &strides, 0, |place| {
        let start = place as usize * width;
        bytes.extend_from_slice(from.bytes.get(start..start + width).unwrap_or_default());
    });
    Ok(Dense { scalar_type: from.scalar_type, sizes: sizes.to_vec(), bytes })
}

/// The strides under which a tensor can be seen with other sizes, if it can: from the innermost dimension on, stretches
/// of memory without gaps are cut into the new sizes.
pub(super) fn restride(sizes: &[i64], strides: &[i64], wanted: &[i64]) -> Option<Vec<i64>> {
    if sizes.contains(&0) {
        return Some(contiguous(wanted));
    }
    let mut found = vec![1; wanted.len()];
    let mut at = wanted.len();
    let mut base = strides.last().copied().unwrap_or(1);
    let (mut stretch, mut cut) = (1i64, 1i64);
    for dim in (0..sizes.len()).rev() {
        stretch *= sizes[dim];
        let ends = dim == 0 || sizes[dim - 1] != 1 && strides[dim - 1] != stretch * base;
        if !ends {
            continue;
        }
        while at > 0 && (cut < stretch || wanted[at - 1] == 1) {
            at -= 1;
            found[at] = cut * base;
            cut *= wanted[at];
        }
        if cut != stretch {
            return None;
        }
        if dim > 0 {
            (base, stretch, cut) = (strides[dim - 1], 1, 1);
        }
    }
    wanted[..at].iter().all(|size| *size == 1).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_the_same_memory() {
        assert_eq!(restride(&[4, 6], &[6, 1], &[24]), Some(vec![1]));
        assert_eq!(restride(&[6, 4], &[1, 6], &[24]), None);
        assert_eq!(restride(&[6, 4], &[1, 6], &[3, 2, 4]), Some(vec![2, 1, 6]));
        assert_eq!(restride(&[4, 2], &[6, 1], &[8]), None);
        assert_eq!(restride(&[], &[], &[1, 1]), Some(vec![1, 1]));
    }

    #[test]
    fn writes_are_seen_through_every_tensor() {
        let dense = Dense { scalar_type: ScalarType::BYTE, sizes: vec![2, 3], bytes: (0..6).collect() };
        let tensor = Tensor::new(&dense, Some(vec![1, 2])).unwrap();
        assert_eq!(tensor.read().unwrap(), dense);
        let row = tensor.seen(vec![3], vec![2], 1);
        assert_eq!(row.read().unwrap().bytes, [3, 4, 5]);
        row.write(&Dense { scalar_type: ScalarType::BYTE, sizes: vec![], bytes: vec![9] }).unwrap();
        assert_eq!(tensor.read().unwrap().bytes, [0, 1, 2, 9, 9, 9]);
    }
}
