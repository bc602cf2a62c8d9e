//! Reading and writing through one index tensor along one dimension: gathers, scatters, and whole slices by index.
//!
//! Tensors are walked in index order, whatever their order in memory. Elements that are only moved are bytes of a width.

use edgepack_format::tensor::Dims;

use crate::element::Scalar;
use crate::error::{Error, ErrorKind};
use crate::indices::{Indices, place};
use crate::layout::Layout;
use crate::number::{Cast, Compute, Number};
use crate::transfer::{Conversion, transfer};
use crate::walk::{Axis, Walk};

/// Size and stride of a dimension; a tensor without dimensions is one element along one.
fn along(layout: Layout<'_>, dim: usize) -> (usize, usize) {
    (layout.sizes.get(dim).copied().unwrap_or(1), layout.strides.get(dim).copied().unwrap_or(0))
}

/// Every index of some sizes in index order, as offsets into tensors of other strides.
struct Places<'p, const N: usize> {
    sizes: &'p [usize],
    strides: [&'p [usize]; N],
    index: Dims,
    left: usize,
}

impl<'p, const N: usize> Places<'p, N> {
    fn new(sizes: &'p [usize], strides: [&'p [usize]; N]) -> Self {
        Places { sizes, strides, index: Dims::filled(0, sizes.len()).unwrap_or_default(), left: sizes.iter().product() }
    }

    /// The next place: its offsets, and its index along `dim`.
    fn next(&mut self, dim: usize) -> Option<([usize; N], usize)> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let offsets =
            self.strides.map(|strides| self.index.iter().zip(strides).map(|(index, stride)| index * stride).sum());
        let along = self.index.get(dim).copied().unwrap_or(0);
        for dim in (0..self.sizes.len()).rev() {
            self.index[dim] += 1;
            if self.index[dim] < self.sizes[dim] {
                break;
            }
            self.index[dim] = 0;
        }
        Some((offsets, along))
    }
}

/// Copies the slices of a tensor across `dim` that indices name; the output has the sizes of the tensor, and as many slices
/// as there are indices. `scratch` is as for [`transfer`].
///
/// # Errors
///
/// [`ErrorKind::Data`] if an index names no slice, [`ErrorKind::Geometry`] if the scratch is needed and smaller.
pub fn select(
    width: usize,
    dim: usize,
    (tensor, from): (Layout<'_>, &[u8]),
    indices: Indices<'_>,
    (out, to): (Layout<'_>, &mut [u8]),
    scratch: &mut [u8],
) -> Result<(), Error> {
    let ((size, stride), (_, out_stride)) = (along(tensor, dim), along(out, dim));
    // A slice is everything but `dim`, in the memory order of the output.
    let walk = |strides: &[usize], start: usize| {
        let dims = out.dim_order.iter().map(|&own| own as usize).filter(|&own| own != dim);
        Walk::new(dims.map(|own| Axis { size: out.sizes[own], stride: strides[own] as isize }), start)
    };
    let rest: usize = out.sizes.iter().enumerate().filter(|(own, _)| *own != dim).map(|(_, size)| size).product();
    if rest == 0 {
        return Ok(());
    }
    for at in 0..indices.len() {
        let slice = place("index", indices.at(at), size)?;
        let (source, target) = (walk(tensor.strides, slice * stride), walk(out.strides, at * out_stride));
        transfer(Conversion::none(width), (from, &source), (&mut *to, &target), rest, scratch)?;
    }
    Ok(())
}

/// Copies rows of `width` bytes of a table, one for every index.
///
/// # Errors
///
/// [`ErrorKind::Data`] if an index is not a row of the table.
///
/// ```
/// use edgepack_compute::{gather::rows, indices::Indices};
///
/// let mut to = [0; 4];
/// rows(2, &[1, 1, 2, 2], Indices::int(&[1i32, 0].map(i32::to_ne_bytes).concat()), &mut to)?;
/// assert_eq!(to, [2, 2, 1, 1]);
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
pub fn rows(width: usize, table: &[u8], indices: Indices<'_>, to: &mut [u8]) -> Result<(), Error> {
    if width == 0 {
        return Ok(());
    }
    let rows = table.len() / width;
    for (at, to) in to.chunks_exact_mut(width).enumerate() {
        let index = indices.at(at);
        match usize::try_from(index) {
            Ok(row) if row < rows => to.copy_from_slice(&table[row * width..][..width]),
            _ => {
                let message = format!("`indices` holds {index}, `weight` has {rows} rows");
                return Err(Error::new(ErrorKind::Data, message));
            }
        }
    }
    Ok(())
}

/// Copies, for every element of an index tensor, the element of a tensor at its place but for `dim`, where the index
/// counts. The output has the sizes of the index tensor.
///
/// # Errors
///
/// [`ErrorKind::Data`] if an index is outside of the dimension.
pub fn gather(
    width: usize,
    dim: usize,
    (tensor, from): (Layout<'_>, &[u8]),
    (index, indices): (Layout<'_>, Indices<'_>),
    (out, to): (Layout<'_>, &mut [u8]),
) -> Result<(), Error> {
    let (size, stride) = along(tensor, dim);
    let mut places = Places::new(out.sizes, [tensor.strides, index.strides, out.strides]);
    while let Some(([base, at, target], along)) = places.next(dim) {
        let source = base - along * stride + place("index", indices.at(at), size)? * stride;
        to[target * width..][..width].copy_from_slice(&from[source * width..][..width]);
    }
    Ok(())
}

/// A reduction of elements that are scattered to one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// Sum of the elements.
    Sum,
    /// Product of the elements.
    Product,
    /// Mean of the elements; that of integers is rounded down.
    Mean,
    /// Greatest of the elements; NaN if one is NaN.
    Greatest,
    /// Least of the elements; NaN if one is NaN.
    Least,
}

impl Reduction {
    /// The element that changes nothing it is reduced with.
    fn neutral<T: Number>(self) -> T {
        match self {
            Reduction::Sum | Reduction::Mean => T::Compute::ZERO,
            Reduction::Product => T::Compute::ONE,
            Reduction::Greatest => T::Compute::LEAST,
            Reduction::Least => T::Compute::GREATEST,
        }
        .cast()
    }

    fn apply<T: Number>(self, a: T, b: T) -> T {
        let (a, b) = (a.to_compute(), b.to_compute());
        match self {
            Reduction::Sum | Reduction::Mean => a.plus(b),
            Reduction::Product => a.times(b),
            Reduction::Greatest => a.greater_of(b),
            Reduction::Least => a.lesser_of(b),
        }
        .cast()
    }
}

/// Elements to be written to the places of an output that an index tensor says.
#[derive(Clone, Copy, Debug)]
pub struct Scatter<'a> {
    /// The dimension of the output along which the indices count.
    pub dim: usize,
    /// Layout of the index tensor.
    pub index: Layout<'a>,
    /// Integers of the index tensor.
    pub indices: Indices<'a>,
    /// The tensor of elements; `None` if one element goes everywhere.
    pub source: Option<Layout<'a>>,
    /// True if an index, of a list of them, places a whole slice of the source.
    pub slices: bool,
    /// Layout of the output, into which the indices point.
    pub out: Layout<'a>,
}

impl Scatter<'_> {
    /// Writes elements of `width` bytes; of two at one place the later stays.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Data`] if an index is outside of the dimension.
    ///
    /// ```
    /// use edgepack_compute::{gather::Scatter, indices::Indices, layout::Layout};
    ///
    /// let (index, line) = ([2i64, 0], Layout { sizes: &[2], strides: &[1], dim_order: &[0] });
    /// let indices = index.map(i64::to_ne_bytes).concat();
    /// let out = Layout { sizes: &[3], ..line };
    /// let indices = Indices::long(&indices);
    /// let mut to = [0; 3];
    /// Scatter { dim: 0, index: line, indices, source: Some(line), slices: false, out }.replace(1, &[7, 9], &mut to)?;
    /// assert_eq!(to, [9, 0, 7]);
    /// # Ok::<(), edgepack_compute::Error>(())
    /// ```
    pub fn replace(&self, width: usize, source: &[u8], to: &mut [u8]) -> Result<(), Error> {
        self.for_each(|from, target| {
            to[target * width..][..width].copy_from_slice(&source[from * width..][..width]);
        })
    }

    /// Adds elements to those of the output; bytes may have any alignment.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Data`] if an index is outside of the dimension.
    pub fn add<T: Number>(&self, source: &[u8], to: &mut [u8]) -> Result<(), Error> {
        let width = size_of::<T>();
        self.for_each(|from, target| {
            let to = &mut to[target * width..][..width];
            let more: T = bytemuck::pod_read_unaligned(&source[from * width..][..width]);
            let have: T = bytemuck::pod_read_unaligned(to);
            let sum: T = have.to_compute().plus(more.to_compute()).cast();
            to.copy_from_slice(bytemuck::bytes_of(&sum));
        })
    }

    /// Reduces elements with those of the output, or, without `include`, with each other where there are any. `counts` is
    /// room for as many numbers as the output has elements.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Data`] if an index is outside of the dimension, [`ErrorKind::Unsupported`] if there is too little room.
    pub fn reduce<T: Number>(
        &self,
        reduction: Reduction,
        include: bool,
        source: &[T],
        to: &mut [T],
        counts: &mut [u32],
    ) -> Result<(), Error> {
        let Some(counts) = counts.get_mut(..to.len()) else {
            let message = format!("{} elements are more than at load", to.len());
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        counts.fill(u32::from(include));
        self.for_each(|from, target| {
            let before = if counts[target] == 0 { reduction.neutral() } else { to[target] };
            to[target] = reduction.apply(before, source[from]);
            counts[target] += 1;
        })?;
        if reduction == Reduction::Mean {
            for (element, &count) in to.iter_mut().zip(&*counts).filter(|&(_, &count)| count > 1) {
                *element = mean(*element, count);
            }
        }
        Ok(())
    }

    /// Calls `visit` with the places of every element in the source and in the output.
    fn for_each(&self, mut visit: impl FnMut(usize, usize)) -> Result<(), Error> {
        let (size, stride) = along(self.out, self.dim);
        let source = self.source.unwrap_or(self.index);
        // Of slices the index is read by the place along the dimension alone.
        let (sizes, index) =
            if self.slices { (source.sizes, source.strides) } else { (self.index.sizes, self.index.strides) };
        let mut places = Places::new(sizes, [source.strides, index, self.out.strides]);
        while let Some(([from, at, base], along)) = places.next(self.dim) {
            let index = self.indices.at(if self.slices { along } else { at });
            let target = base - along * stride + place("index", index, size)? * stride;
            visit(if self.source.is_some() { from } else { 0 }, target);
        }
        Ok(())
    }
}

/// The mean of so many elements by their sum.
fn mean<T: Number>(sum: T, count: u32) -> T {
    let sum = sum.to_compute();
    if T::Compute::FLOATING {
        return T::from_scalar(Scalar::Double(Cast::<f64>::cast(sum) / f64::from(count)));
    }
    sum.floor_div(T::Compute::from_scalar(Scalar::Int(i64::from(count)))).cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MATRIX: Layout<'_> = Layout { sizes: &[2, 2], strides: &[2, 1], dim_order: &[0, 1] };

    fn longs(indices: &[i64]) -> Vec<u8> {
        indices.iter().flat_map(|index| index.to_ne_bytes()).collect()
    }

    #[test]
    fn gathers_follow_the_index_along_the_dimension() {
        let index = longs(&[1, 0, -1, 1]);
        let mut to = [0; 4];
        gather(1, 0, (MATRIX, &[1, 2, 3, 4]), (MATRIX, Indices::long(&index)), (MATRIX, &mut to)).unwrap();
        assert_eq!(to, [3, 2, 3, 4]);
        let index = longs(&[0, 0, 2, 0]);
        let refused = gather(1, 0, (MATRIX, &[1, 2, 3, 4]), (MATRIX, Indices::long(&index)), (MATRIX, &mut to));
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Data);
    }

    #[test]
    fn slices_are_selected_in_the_order_of_the_output() {
        let columns = Layout { sizes: &[2, 3], strides: &[1, 2], dim_order: &[1, 0] };
        let (index, mut to) = (longs(&[1, 1, 0]), [0; 6]);
        select(1, 1, (MATRIX, &[1, 2, 3, 4]), Indices::long(&index), (columns, &mut to), &mut [0; 8192]).unwrap();
        assert_eq!(to, [2, 4, 2, 4, 1, 3]);
    }

    #[test]
    fn one_element_is_reduced_everywhere() {
        let index = longs(&[0, 0, 0, 1]);
        let scatter =
            Scatter { dim: 1, index: MATRIX, indices: Indices::long(&index), source: None, slices: false, out: MATRIX };
        let mut to = [10i32, 20, 30, 41];
        scatter.reduce(Reduction::Mean, true, &[4], &mut to, &mut [0; 4]).unwrap();
        assert_eq!(to, [6, 20, 17, 22]);
        let mut to = [10i32, 20, 30, 40];
        scatter.reduce(Reduction::Greatest, false, &[-4], &mut to, &mut [0; 4]).unwrap();
        assert_eq!(to, [-4, 20, -4, -4]);
        assert_eq!(
            scatter.reduce(Reduction::Sum, true, &[1], &mut to, &mut [0; 3]).unwrap_err().kind,
            ErrorKind::Unsupported
        );
    }
}
