//! Walks: the elements of a strided input in the order an output is stored in memory, and copies along them.
//!
//! Outputs are always dense, so one walk per input is all that a loop over several tensors needs. Neighbouring
//! dimensions that can be walked as one are merged: equal shapes and dim orders give a single run.

use edgepack_format::tensor::{Dims, MAX_RANK};

use crate::layout::Layout;
use crate::threads::for_each_piece;
use crate::transpose::{TILE, Transpose};

/// One dimension of a walk.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Axis {
    /// Elements along it.
    pub size: usize,
    /// Elements of memory between neighbours; negative to walk backwards, 0 to repeat.
    pub stride: isize,
}

/// Order in which the elements of an input are read: nested dimensions from outermost to innermost, merged.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// Never empty, no dimension of size 1 unless it is the only one.
    axes: Dims<Axis>,
    /// The first element.
    start: usize,
}

impl Walk {
    /// The given dimensions, outermost first, from element `start`.
    pub fn new(axes: impl IntoIterator<Item = Axis>, start: usize) -> Walk {
        let mut merged = [Axis::default(); MAX_RANK];
        let mut len = 0;
        for axis in axes {
            if axis.size == 1 {
                continue;
            }
            // Sizes whose product overflows are next to a size of zero, and stay apart.
            let joined = |outer: &Axis| outer.size.checked_mul(axis.size);
            match merged[..len].last_mut() {
                Some(outer)
                    if outer.stride == axis.stride.wrapping_mul(axis.size as isize) && joined(outer).is_some() =>
                {
                    *outer = Axis { size: joined(outer).unwrap_or_default(), stride: axis.stride };
                }
                _ if len < MAX_RANK => {
                    merged[len] = axis;
                    len += 1;
                }
                _ => {}
            }
        }
        if len == 0 {
            merged[0] = Axis { size: 1, stride: 1 };
            len = 1;
        }
        Walk { axes: Dims::from_slice(&merged[..len]).unwrap_or_default(), start }
    }

    /// `count` elements one after the other.
    pub fn linear(count: usize) -> Walk {
        Walk { axes: Dims::from_slice(&[Axis { size: count, stride: 1 }]).unwrap_or_default(), start: 0 }
    }

    /// An input stretched to the sizes of an output, in the output's memory order. The sizes must fit.
    ///
    /// ```
    /// use edgepack_compute::layout::Layout;
    /// use edgepack_compute::walk::Walk;
    ///
    /// let out = Layout { sizes: &[2, 3], strides: &[3, 1], dim_order: &[0, 1] };
    /// let column = Layout { sizes: &[2, 1], strides: &[1, 1], dim_order: &[0, 1] };
    /// let mut bytes = [0; 6];
    /// Walk::stretched(out, column).gather(1, &[7, 9], &mut bytes);
    /// assert_eq!(bytes, [7, 7, 7, 9, 9, 9]);
    /// ```
    pub fn stretched<'a>(out: impl Into<Layout<'a>>, input: impl Into<Layout<'a>>) -> Walk {
        let (out, input) = (out.into(), input.into());
        if input.sizes == out.sizes && input.dim_order == out.dim_order {
            return Walk::linear(out.element_count());
        }
        let skip = out.rank() - input.rank().min(out.rank());
        let axes = out.dim_order.iter().map(|&dim| {
            let dim = dim as usize;
            let stride = match dim.checked_sub(skip) {
                Some(own) if input.sizes[own] != 1 => input.strides[own] as isize,
                _ => 0,
            };
            Axis { size: out.sizes[dim], stride }
        });
        Walk::new(axes, 0)
    }

    /// An input stretched to some sizes, the last dimension fastest. The sizes must fit.
    pub fn stretched_by_index<'a>(sizes: &[usize], input: impl Into<Layout<'a>>) -> Walk {
        let input = input.into();
        let skip = sizes.len() - input.rank().min(sizes.len());
        let axes = sizes.iter().enumerate().map(|(dim, &size)| {
            let own = dim.checked_sub(skip).filter(|&own| input.sizes[own] != 1);
            Axis { size, stride: own.map_or(0, |own| input.strides[own] as isize) }
        });
        Walk::new(axes, 0)
    }

    /// Every element of a tensor, the last dimension fastest, wherever it is in memory.
    pub fn by_index<'a>(tensor: impl Into<Layout<'a>>) -> Walk {
        let tensor = tensor.into();
        let axis = |(&size, &stride): (&usize, &usize)| Axis { size, stride: stride as isize };
        Walk::new(tensor.sizes.iter().zip(tensor.strides).map(axis), 0)
    }

    /// Returns whether the elements are stored one after the other.
    pub fn is_linear(&self) -> bool {
        matches!(*self.axes, [Axis { stride: 1, .. }])
    }

    /// Returns whether every place of the walk is one and the same element.
    pub fn is_constant(&self) -> bool {
        matches!(*self.axes, [Axis { stride: 0, .. }] | [Axis { size: 1, .. }])
    }

    /// Returns after how many elements the same ones come again, in the same order, until the end.
    ///
    /// ```
    /// use edgepack_compute::walk::{Axis, Walk};
    ///
    /// let rows = Axis { size: 4, stride: 0 };
    /// assert_eq!(Walk::new([rows, Axis { size: 3, stride: 1 }], 0).period(), Some(3));
    /// assert_eq!(Walk::linear(12).period(), None);
    /// ```
    pub fn period(&self) -> Option<usize> {
        let (first, rest) = self.axes.split_first()?;
        let period = rest.iter().try_fold(1, |count: usize, axis| count.checked_mul(axis.size));
        period.filter(|_| first.stride == 0 && !rest.is_empty())
    }

    /// Returns how many elements each of its runs has, as [`Cursor::run`] finds them; 0 if there are none.
    ///
    /// ```
    /// use edgepack_compute::walk::{Axis, Run, Walk};
    ///
    /// let channels = Walk::new([Axis { size: 2, stride: 1 }, Axis { size: 9, stride: 0 }], 0);
    /// assert_eq!(channels.run(), 9);
    /// let mut cursor = channels.cursor();
    /// cursor.pass(9);
    /// assert_eq!(cursor.run(), Some(Run { first: 1, len: 9, repeats: true }));
    /// ```
    pub fn run(&self) -> usize {
        self.axes.last().map_or(0, |axis| if matches!(axis.stride, 0 | 1) { axis.size } else { 0 })
    }

    /// The first element.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Returns where an element is that so many are in front of.
    #[inline]
    pub(crate) fn at(&self, place: usize) -> usize {
        let (mut rest, mut at) = (place, self.start as isize);
        for &Axis { size, stride } in self.axes[1..].iter().rev() {
            at += (rest % size) as isize * stride;
            rest /= size;
        }
        (at + rest as isize * self.axes[0].stride) as usize
    }

    /// The merged dimensions, outermost first.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Elements that are best read together: rows or columns of a tile of those that are next to each other.
    pub(crate) fn unit(&self) -> usize {
        if self.is_linear() { TILE } else { self.axes.last().map_or(1, |axis| axis.size).saturating_mul(TILE) }
    }

    /// A reader at the first element.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor { walk: self, index: [0; MAX_RANK], offset: self.start as isize }
    }

    /// Copies all elements, `width` bytes each (1, 2, 4, 8 or 16), one after the other into `to`, on all threads if that is worth
    /// it.
    ///
    /// # Panics
    ///
    /// If the walk leaves `from`, if `to` holds another number of elements, or if slices are not whole elements.
    pub fn gather(&self, width: usize, from: &[u8], to: &mut [u8]) {
        if self.is_linear() {
            let start = self.start * width;
            to.copy_from_slice(&from[start..start + to.len()]);
        } else {
            for_each_piece(to, self.unit().saturating_mul(width), |start, to| {
                let mut cursor = self.cursor();
                cursor.advance(start / width);
                cursor.gather(width, from, to);
            });
        }
    }
}

/// Elements that a walk meets one after the other: neighbours, or one of them again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The first element.
    pub first: usize,
    /// Number of times that the walk meets one.
    pub len: usize,
    /// True if all are the first element.
    pub repeats: bool,
}

/// A place within a walk.
#[derive(Clone, Debug)]
pub struct Cursor<'w> {
    walk: &'w Walk,
    index: [usize; MAX_RANK],
    offset: isize,
}

impl Cursor<'_> {
    /// Copies the next elements, `width` bytes each (1, 2, 4, 8 or 16), until `to` is full.
    ///
    /// # Panics
    ///
    /// If the walk leaves `from`, or if slices are not whole elements.
    pub fn gather(&mut self, width: usize, from: &[u8], to: &mut [u8]) {
        match width {
            1 => self.gather_as::<[u8; 1]>(from, to),
            2 => self.gather_as::<[u8; 2]>(from, to),
            4 => self.gather_as::<[u8; 4]>(from, to),
            8 => self.gather_as::<[u8; 8]>(from, to),
            _ => self.gather_as::<[u8; 16]>(from, to),
        }
    }

    fn gather_as<T: bytemuck::Pod>(&mut self, from: &[u8], to: &mut [u8]) {
        let (from, mut to): (&[T], &mut [T]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
        let axes = self.walk.axes();
        let inner = axes.len() - 1;
        let Axis { size, stride } = axes[inner];
        while !to.is_empty() {
            let offset = self.offset as usize;
            if let Some(columns) = self.columns(axes).map(|all| all.min(to.len() / size)).filter(|&columns| columns > 0)
            {
                let (tile, rest) = to.split_at_mut(size * columns);
                Transpose { from: &from[offset..], stride: stride as usize, to: tile, rows: size }.run();
                to = rest;
                self.index[inner] = size;
                self.index[inner - 1] += columns - 1;
                self.offset += (columns - 1) as isize + size as isize * stride;
                self.carry(axes);
                continue;
            }
            let count = (size - self.index[inner]).min(to.len());
            let (run, rest) = to.split_at_mut(count);
            match stride {
                1 => run.copy_from_slice(&from[offset..offset + count]),
                0 => run.fill(from[offset]),
                2.. => {
                    let source = from[offset..].iter().step_by(stride as usize);
                    run.iter_mut().zip(source).for_each(|(to, from)| *to = *from);
                }
                _ => {
                    let source = from[..=offset].iter().rev().step_by(stride.unsigned_abs());
                    run.iter_mut().zip(source).for_each(|(to, from)| *to = *from);
                }
            }
            to = rest;
            self.index[inner] += count;
            self.offset += count as isize * stride;
            self.carry(axes);
        }
    }

    /// Returns how many columns are left to read if a matrix is read by columns from here on; `None` if it is not.
    fn columns(&self, axes: &[Axis]) -> Option<usize> {
        let inner = axes.len() - 1;
        let Axis { size, stride } = *axes.get(inner.checked_sub(1)?)?;
        let left = size - self.index[inner - 1];
        let whole = self.index[inner] == 0;
        (whole && stride == 1 && axes[inner].stride > 1 && left > 1 && axes[inner].size > 1).then_some(left)
    }

    /// Copies the elements of `from`, `width` bytes each (1, 2, 4, 8 or 16), to the next places of the walk within `to`.
    ///
    /// # Panics
    ///
    /// If the walk leaves `to`, or if slices are not whole elements.
    pub fn scatter(&mut self, width: usize, from: &[u8], to: &mut [u8]) {
        match width {
            1 => self.scatter_as::<[u8; 1]>(from, to),
            2 => self.scatter_as::<[u8; 2]>(from, to),
            4 => self.scatter_as::<[u8; 4]>(from, to),
            8 => self.scatter_as::<[u8; 8]>(from, to),
            _ => self.scatter_as::<[u8; 16]>(from, to),
        }
    }

    fn scatter_as<T: bytemuck::Pod>(&mut self, from: &[u8], to: &mut [u8]) {
        let (mut from, to): (&[T], &mut [T]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
        let axes = self.walk.axes();
        let inner = axes.len() - 1;
        let Axis { size, stride } = axes[inner];
        while !from.is_empty() {
            let count = (size - self.index[inner]).min(from.len());
            let (run, rest) = from.split_at(count);
            let offset = self.offset as usize;
            if stride == 1 {
                to[offset..offset + count].copy_from_slice(run);
            } else {
                let target = to[offset..].iter_mut().step_by(stride.unsigned_abs().max(1));
                target.zip(run).for_each(|(to, from)| *to = *from);
            }
            from = rest;
            self.index[inner] += count;
            self.offset += count as isize * stride;
            self.carry(axes);
        }
    }

    /// Returns the elements from the next one on that are one element, or next to each other, for all that is left of a run of
    /// them; `None` where they are neither.
    #[inline]
    pub fn run(&self) -> Option<Run> {
        let inner = self.walk.axes.len() - 1;
        let Axis { size, stride } = self.walk.axes[inner];
        let run = Run { first: self.offset as usize, len: size - self.index[inner], repeats: stride == 0 };
        matches!(stride, 0 | 1).then_some(run)
    }

    /// Goes so many elements on, which are left of the run at the least.
    #[inline]
    pub fn pass(&mut self, count: usize) {
        let axes = self.walk.axes();
        let inner = axes.len() - 1;
        self.index[inner] += count;
        self.offset += count as isize * axes[inner].stride;
        self.carry(axes);
    }

    /// Goes so many elements on.
    pub fn advance(&mut self, count: usize) {
        let axes = self.walk.axes();
        let mut rest = count;
        for dim in (0..axes.len()).rev() {
            let (before, Axis { size, stride }) = (self.index[dim], axes[dim]);
            let place = before + rest;
            // Behind the last element the outermost index is as large as its dimension.
            (self.index[dim], rest) = if dim == 0 { (place, 0) } else { (place % size.max(1), place / size.max(1)) };
            self.offset += (self.index[dim] as isize - before as isize) * stride;
        }
    }

    fn carry(&mut self, axes: &[Axis]) {
        for dim in (1..axes.len()).rev() {
            if self.index[dim] < axes[dim].size {
                return;
            }
            self.offset += axes[dim - 1].stride - axes[dim].size as isize * axes[dim].stride;
            self.index[dim] = 0;
            self.index[dim - 1] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_format::scalar::ScalarType;
    use edgepack_format::tensor::TensorLayout;

    fn walked(out: (&[usize], &[u8]), input: (&[usize], &[u8]), block: usize) -> (Vec<u16>, usize) {
        let layout = |(sizes, order)| TensorLayout::new(ScalarType::SHORT, sizes, order).unwrap();
        let (out, input) = (layout(out), layout(input));
        let (out_strides, strides) = (out.strides(), input.strides());
        let (out_order, order) = (out.dim_order(), input.dim_order());
        let out_meta = Layout { sizes: out.sizes(), strides: &out_strides, dim_order: out_order };
        let meta = Layout { sizes: input.sizes(), strides: &strides, dim_order: order };
        let walk = Walk::stretched(out_meta, meta);
        let data: Vec<u16> = (0..meta.element_count() as u16).collect();
        let mut result = vec![0u16; out_meta.element_count()];
        let mut cursor = walk.cursor();
        for chunk in result.chunks_mut(block) {
            cursor.gather(2, bytemuck::cast_slice(&data), bytemuck::cast_slice_mut(chunk));
        }
        // A cursor that was sent on is where one is that has read as much.
        for first in 0..result.len() {
            let (mut cursor, mut rest) = (walk.cursor(), vec![0u16; result.len() - first]);
            cursor.advance(first / 2);
            cursor.advance(first - first / 2);
            cursor.gather(2, bytemuck::cast_slice(&data), bytemuck::cast_slice_mut(&mut rest));
            assert_eq!(rest, result[first..]);
        }
        // The slow twin: every index of the output by itself.
        let skip = out_meta.rank() - meta.rank();
        let mut expected = vec![0u16; result.len()];
        for flat in 0..result.len() {
            let (mut rest, mut to, mut from) = (flat, 0, 0);
            for dim in (0..out_meta.rank()).rev() {
                let index = rest % out_meta.sizes[dim];
                rest /= out_meta.sizes[dim];
                to += index * out_meta.strides[dim];
                if dim >= skip && meta.sizes[dim - skip] != 1 {
                    from += index * meta.strides[dim - skip];
                }
            }
            expected[to] = data[from];
        }
        assert_eq!(result, expected);
        (result, walk.axes().len())
    }

    #[test]
    fn walks_agree_with_indexing() {
        for block in [1, 3, 7, 1000] {
            assert_eq!(walked((&[2, 3, 4], &[0, 1, 2]), (&[2, 3, 4], &[0, 1, 2]), block).1, 1);
            assert_eq!(walked((&[2, 3, 4], &[0, 1, 2]), (&[4], &[0]), block).1, 2);
            assert_eq!(walked((&[2, 3, 4], &[0, 1, 2]), (&[3, 1], &[0, 1]), block).1, 3);
            assert_eq!(walked((&[2, 3, 4, 5], &[0, 2, 3, 1]), (&[2, 3, 4, 5], &[0, 1, 2, 3]), block).1, 3);
            assert_eq!(walked((&[2, 3, 4, 5], &[0, 2, 3, 1]), (&[1, 3, 1, 1], &[0, 1, 2, 3]), block).1, 2);
            assert_eq!(walked((&[5, 1], &[0, 1]), (&[], &[]), block).1, 1);
            assert_eq!(walked((&[3, 37, 21], &[0, 1, 2]), (&[3, 37, 21], &[0, 2, 1]), block).1, 3);
            for few in 2..6 {
                assert_eq!(walked((&[3, 21, few], &[0, 1, 2]), (&[3, 21, few], &[0, 2, 1]), block).1, 3);
            }
            assert_eq!(walked((&[40, 2, 18], &[2, 1, 0]), (&[40, 2, 18], &[0, 1, 2]), block).1, 3);
            walked((&[2, 3, 4, 5], &[3, 1, 0, 2]), (&[3, 4, 1], &[2, 0, 1]), block);
        }
    }

    #[test]
    fn backward_walks_reverse() {
        let walk = Walk::new([Axis { size: 2, stride: 3 }, Axis { size: 3, stride: -1 }], 2);
        let mut to = [0u8; 6];
        walk.gather(1, &[0, 1, 2, 3, 4, 5], &mut to);
        assert_eq!(to, [2, 1, 0, 5, 4, 3]);
    }
}
