//! Indexing by several tensors at once: the elements a list of index tensors selects, read and written.
//!
//! Index tensors broadcast against each other; a mask represents the coordinates of its true elements. The dimensions
//! they select among become those of the broadcast: in place if they are neighbours, else in front. All of that becomes
//! one list of offsets into the tensor, in memory of the caller's; the rest are plain nested loops.

use edgepack_format::tensor::{Dims, MAX_RANK};

use crate::error::{Error, ErrorKind};
use crate::indices::{Indices, place};
use crate::layout::{Layout, broadcast};
use crate::number::{Cast, Compute, Number};
use crate::places::Places;
use crate::walk::{Axis, Cursor, Walk};

/// Elements written at a time.
const BLOCK: usize = 32;

/// An index tensor.
#[derive(Clone, Copy, Debug)]
pub enum Selector<'a> {
    /// Places along one dimension.
    Places(Layout<'a>, Indices<'a>),
    /// A mask over as many dimensions as it has: a byte an element.
    Mask(Layout<'a>, &'a [u8]),
}

/// Index tensors by the dimensions they select among; `None` leaves a dimension as it is.
pub type Selectors<'a> = Dims<Option<Selector<'a>>>;

/// Elements of a tensor that index tensors select: what depends on sizes alone, and how many elements of masks are true.
#[derive(Clone, Copy, Default, Debug)]
pub struct Selection {
    /// Sizes of the broadcast index tensors.
    common: Dims,
    /// Dimensions of the tensor in front of the selected ones, as walked.
    prefix: Dims,
    /// Dimensions of the tensor behind them.
    suffix: Dims,
    /// The sizes of the selected elements.
    sizes: Dims,
    /// True elements of every mask, by its position in the list.
    counts: Dims,
}

fn full() -> Error {
    Error::new(ErrorKind::Unsupported, "the result has more than 16 dimensions")
}

fn data(message: String) -> Error {
    Error::new(ErrorKind::Data, message)
}

/// The walk over some dimensions of a tensor.
fn walk(dims: &[usize], tensor: Layout<'_>) -> Walk {
    let axis = |&dim: &usize| Axis { size: tensor.sizes[dim], stride: tensor.strides[dim] as isize };
    Walk::new(dims.iter().map(axis), 0)
}

impl Selection {
    /// Returns what index tensors select of a tensor of these sizes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Data`] if they do not fit the tensor or each other, [`ErrorKind::Unsupported`] if the result has too
    /// many dimensions.
    ///
    /// ```
    /// use edgepack_compute::indexing::{Selection, Selector, Selectors};
    /// use edgepack_compute::indices::Indices;
    /// use edgepack_compute::layout::Layout;
    ///
    /// let index = [2i64, 0].map(i64::to_ne_bytes).concat();
    /// let layout = Layout { sizes: &[2], strides: &[1], dim_order: &[0] };
    /// let selectors = Selectors::from_slice(&[Some(Selector::Places(layout, Indices::long(&index)))]).unwrap();
    /// let tensor = Layout { sizes: &[3, 2], strides: &[2, 1], dim_order: &[0, 1] };
    /// let selection = Selection::new(tensor.sizes, &selectors)?;
    /// assert_eq!(selection.sizes(), [2, 2]);
    /// let (mut offsets, mut to) = ([0; 2], [0; 4]);
    /// selection.gather(1, (tensor, &[1, 2, 3, 4, 5, 6]), &selectors, &mut offsets, &mut to)?;
    /// assert_eq!(to, [5, 6, 1, 2]);
    /// # Ok::<(), edgepack_compute::Error>(())
    /// ```
    pub fn new(tensor: &[usize], selectors: &Selectors<'_>) -> Result<Selection, Error> {
        let mut all = Selection::default();
        let rank = tensor.len();
        let mut dim = 0;
        // First and last selected dimension, and which: neighbours or not.
        let (mut first, mut last, mut selected) = (usize::MAX, 0, [false; MAX_RANK]);
        for selector in selectors.iter() {
            let count = match selector {
                Some(Selector::Mask(_, bytes)) => bytes.iter().filter(|&&byte| byte != 0).count(),
                _ => 0,
            };
            all.counts.push(count).ok_or_else(full)?;
            let trues = [count];
            let (takes, shape) = match selector {
                None => {
                    dim += 1;
                    continue;
                }
                Some(Selector::Places(layout, _)) => (1, layout.sizes),
                Some(Selector::Mask(layout, _)) => (layout.rank(), &trues[..]),
            };
            let Some(sizes) = tensor.get(dim..dim + takes) else {
                return Err(data(format!("`indices` select among more than the {rank} dimensions of `self`")));
            };
            if let Some(Selector::Mask(layout, _)) = selector
                && sizes != layout.sizes
            {
                let have = layout.sizes;
                return Err(data(format!("a mask in `indices` has sizes {have:?}, `self` has {sizes:?} there")));
            }
            all.common = broadcast(&all.common, shape)
                .ok_or_else(|| data(format!("`indices` of sizes {:?} and {shape:?} do not broadcast", &*all.common)))?;
            first = first.min(dim);
            last = dim + takes;
            selected[dim..dim + takes].fill(true);
            dim += takes;
        }
        if first == usize::MAX {
            return Err(data("`indices` holds no tensor".to_owned()));
        }
        if dim > rank {
            return Err(data(format!("`indices` has more items than the {rank} dimensions of `self`")));
        }
        let neighbours = selected[first..last].iter().all(|&selected| selected);
        for dim in (0..rank).filter(|&dim| !selected[dim]) {
            let side = if neighbours && dim < first { &mut all.prefix } else { &mut all.suffix };
            side.push(dim).ok_or_else(full)?;
        }
        let prefix = all.prefix.iter().map(|&dim| tensor[dim]);
        let suffix = all.suffix.iter().map(|&dim| tensor[dim]);
        all.sizes = Dims::collect(prefix.chain(all.common.iter().copied()).chain(suffix)).ok_or_else(full)?;
        Ok(all)
    }

    /// Returns the sizes of the selected elements.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Returns how many offsets reading and writing need room for.
    pub fn offsets(&self) -> usize {
        self.common.iter().product()
    }

    /// Copies the selected elements of a tensor, `width` bytes each, one after the other.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Data`] if an index is outside of its dimension, [`ErrorKind::Geometry`] if there is too little room for
    /// offsets.
    pub fn gather(
        &self,
        width: usize,
        (tensor, from): (Layout<'_>, &[u8]),
        selectors: &Selectors<'_>,
        offsets: &mut [u64],
        to: &mut [u8],
    ) -> Result<(), Error> {
        let offsets = self.offsets_into(tensor, selectors, offsets)?;
        let walk = self.rest(tensor);
        let count = self.suffix.iter().map(|&dim| tensor.sizes[dim]).product::<usize>();
        if count * width == 0 {
            return Ok(());
        }
        if walk.is_linear() {
            let front = self.front(tensor);
            Places { offsets, run: count * width, width }.gather(|place| front.at(place), from, to);
            return Ok(());
        }
        let mut places = to.chunks_exact_mut(count * width);
        self.for_each_place(tensor, offsets, |offset| {
            if let Some(to) = places.next() {
                walk.gather(width, &from[offset * width..], to);
            }
        });
        Ok(())
    }

    /// Replaces the selected elements of a tensor, `width` bytes each, by values that stretch to their sizes; of two at one
    /// place the later stays.
    ///
    /// # Errors
    ///
    /// As of [`Selection::gather`].
    pub fn scatter(
        &self,
        width: usize,
        values: (Layout<'_>, &[u8]),
        selectors: &Selectors<'_>,
        offsets: &mut [u64],
        tensor: (Layout<'_>, &mut [u8]),
    ) -> Result<(), Error> {
        self.write(width, values, selectors, offsets, tensor, |place, chunk, to| place.scatter(width, chunk, to))
    }

    /// Adds values that stretch to the sizes of the selected elements to these.
    ///
    /// # Errors
    ///
    /// As of [`Selection::gather`].
    pub fn scatter_add<T: Number>(
        &self,
        values: (Layout<'_>, &[u8]),
        selectors: &Selectors<'_>,
        offsets: &mut [u64],
        tensor: (Layout<'_>, &mut [u8]),
    ) -> Result<(), Error> {
        let width = size_of::<T>();
        self.write(width, values, selectors, offsets, tensor, |place, chunk, to| {
            // The sum of the present elements and the new ones is written back in their place.
            let mut present = [T::default(); BLOCK];
            let (present, more) = (&mut present[..chunk.len() / width], bytemuck::cast_slice::<u8, T>(chunk));
            place.clone().gather(width, to, bytemuck::cast_slice_mut(present));
            for (sum, more) in present.iter_mut().zip(more) {
                *sum = sum.to_compute().plus(more.to_compute()).cast();
            }
            place.scatter(width, bytemuck::cast_slice(present), to);
        })
    }

    /// Hands over the values block by block, each with its place in the tensor.
    fn write(
        &self,
        width: usize,
        (shape, values): (Layout<'_>, &[u8]),
        selectors: &Selectors<'_>,
        offsets: &mut [u64],
        (tensor, to): (Layout<'_>, &mut [u8]),
        put: impl Fn(&mut Cursor<'_>, &[u8], &mut [u8]),
    ) -> Result<(), Error> {
        let offsets = self.offsets_into(tensor, selectors, offsets)?;
        let source = Walk::stretched_by_index(&self.sizes, shape);
        let mut source = source.cursor();
        let walk = self.rest(tensor);
        let count: usize = self.suffix.iter().map(|&dim| tensor.sizes[dim]).product();
        // The widest elements are two words.
        let mut block = [0u64; 2 * BLOCK];
        self.for_each_place(tensor, offsets, |offset| {
            let mut place = walk.cursor();
            let mut left = count;
            while left > 0 {
                let len = left.min(BLOCK);
                let chunk = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut block)[..len * width];
                source.gather(width, values, chunk);
                put(&mut place, chunk, &mut to[offset * width..]);
                left -= len;
            }
        });
        Ok(())
    }

    /// The walk over the dimensions behind the selected ones.
    fn rest(&self, tensor: Layout<'_>) -> Walk {
        walk(&self.suffix, tensor)
    }

    /// Calls `visit` with the offset of every place in front of the suffix, in the order of the result.
    fn for_each_place(&self, tensor: Layout<'_>, offsets: &[u64], mut visit: impl FnMut(usize)) {
        // Sizes of no elements can be enormous, and there would be nothing to do at any of the places.
        if offsets.is_empty() || tensor.sizes.contains(&0) {
            return;
        }
        let count: usize = self.prefix.iter().map(|&dim| tensor.sizes[dim]).product();
        let front = self.front(tensor);
        for base in (0..count).map(|place| front.at(place)) {
            for &offset in offsets {
                visit(base + offset as usize);
            }
        }
    }

    /// The walk over the dimensions in front of the selected ones.
    fn front(&self, tensor: Layout<'_>) -> Walk {
        walk(&self.prefix, tensor)
    }

    /// Adds up, for every element of the broadcast, the distance to which the indices lead in a tensor.
    fn offsets_into<'s>(
        &self,
        tensor: Layout<'_>,
        selectors: &Selectors<'_>,
        room: &'s mut [u64],
    ) -> Result<&'s [u64], Error> {
        let Some(offsets) = room.get_mut(..self.offsets()) else {
            return Err(Error::new(ErrorKind::Geometry, "the scratch memory is smaller than asked for"));
        };
        offsets.fill(0);
        let mut dim = 0;
        for (selector, &count) in selectors.iter().zip(&*self.counts) {
            match selector {
                None => dim += 1,
                Some(Selector::Mask(mask, bytes)) => {
                    self.add_mask(*mask, bytes, &tensor.strides[dim..], count, offsets);
                    dim += mask.rank();
                }
                Some(Selector::Places(layout, indices)) => {
                    let along = (tensor.sizes[dim], tensor.strides[dim] as u64);
                    self.add_places(*layout, *indices, along, offsets)?;
                    dim += 1;
                }
            }
        }
        Ok(offsets)
    }

    /// Adds the distances of places along a dimension of this size and stride.
    fn add_places(
        &self,
        layout: Layout<'_>,
        indices: Indices<'_>,
        (size, stride): (usize, u64),
        offsets: &mut [u64],
    ) -> Result<(), Error> {
        let walk = Walk::stretched_by_index(&self.common, layout);
        let mut cursor = walk.cursor();
        let mut block = [0i64; 64];
        for offsets in offsets.chunks_mut(block.len()) {
            let block = &mut block[..offsets.len()];
            match indices {
                Indices::Long(all) => cursor.gather(8, all.as_flattened(), bytemuck::cast_slice_mut(block)),
                Indices::Int(all) => {
                    let mut ints = [0i32; 64];
                    let ints = &mut ints[..offsets.len()];
                    cursor.gather(4, all.as_flattened(), bytemuck::cast_slice_mut(ints));
                    block.iter_mut().zip(ints).for_each(|(long, int)| *long = i64::from(*int));
                }
            }
            for (offset, &index) in offsets.iter_mut().zip(&*block) {
                *offset += place("indices", index, size)? as u64 * stride;
            }
        }
        Ok(())
    }

    /// Adds the coordinates of the true elements, in index order, to every row of offsets.
    fn add_mask(&self, mask: Layout<'_>, bytes: &[u8], strides: &[usize], count: usize, offsets: &mut [u64]) {
        let Some(&last) = self.common.last() else { return };
        for row in offsets.chunks_mut(last.max(1)) {
            let mut place = 0;
            for flat in 0..mask.element_count() {
                let (mut rest, mut at, mut offset) = (flat, 0, 0);
                for dim in (0..mask.rank()).rev() {
                    let index = rest % mask.sizes[dim];
                    rest /= mask.sizes[dim];
                    at += index * mask.strides[dim];
                    offset += index * strides[dim];
                }
                if bytes[at] == 0 {
                    continue;
                }
                if count == 1 {
                    row.iter_mut().for_each(|to| *to += offset as u64);
                } else if let Some(to) = row.get_mut(place) {
                    *to += offset as u64;
                }
                place += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MATRIX: Layout<'_> = Layout { sizes: &[2, 3], strides: &[3, 1], dim_order: &[0, 1] };

    fn longs(indices: &[i64]) -> Vec<u8> {
        indices.iter().flat_map(|index| index.to_ne_bytes()).collect()
    }

    fn line(len: &[usize; 1]) -> Layout<'_> {
        Layout { sizes: len, strides: &[1], dim_order: &[0] }
    }

    #[test]
    fn places_along_any_dimension_select_at_every_place_in_front() {
        let sizes = [3, 5, 40];
        for (strides, dim_order) in [([200, 40, 1], [0, 1, 2]), ([200, 1, 5], [0, 2, 1]), ([1, 3, 15], [2, 1, 0])] {
            let tensor = Layout { sizes: &sizes, strides: &strides, dim_order: &dim_order };
            let from: Vec<u16> = (0..600).collect();
            for dim in 0..3 {
                let size = sizes[dim] as i64;
                // A padding that reflects, whose last places count from the end, then any places.
                let reflected = (-1..=size).map(|at| if at < size { at.abs() } else { -2 });
                let all: Vec<i64> = reflected.chain((0..50).map(|at| at * 7 % (2 * size) - size)).collect();
                let (index, len) = (longs(&all), [all.len()]);
                let mut selectors = Selectors::filled(None, dim).unwrap();
                selectors.push(Some(Selector::Places(line(&len), Indices::long(&index)))).unwrap();
                let selection = Selection::new(&sizes, &selectors).unwrap();
                let mut to = vec![0u16; selection.sizes().iter().product()];
                let (bytes, offsets) = (bytemuck::cast_slice(&from), &mut vec![0; all.len()]);
                let room = bytemuck::cast_slice_mut(&mut to);
                selection.gather(2, (tensor, bytes), &selectors, offsets, room).unwrap();
                let (height, width) = (selection.sizes()[1], selection.sizes()[2]);
                for (at, have) in to.iter().enumerate() {
                    let mut place = [at / (height * width), at / width % height, at % width];
                    place[dim] = all[place[dim]].rem_euclid(size) as usize;
                    let want: usize = place.iter().zip(strides).map(|(place, stride)| place * stride).sum();
                    assert_eq!(usize::from(*have), want, "{strides:?}, dimension {dim}, {at}");
                }
            }
        }
    }

    #[test]
    fn masks_and_places_select_together() {
        let (mask, index) = ([1u8, 0], longs(&[2, -3]));
        let selectors =
            [Some(Selector::Mask(line(&[2]), &mask)), Some(Selector::Places(line(&[2]), Indices::long(&index)))];
        let selectors = Selectors::from_slice(&selectors).unwrap();
        let selection = Selection::new(MATRIX.sizes, &selectors).unwrap();
        let (mut offsets, mut to) = ([0; 2], [0u8; 2]);
        selection.gather(1, (MATRIX, &[1, 2, 3, 4, 5, 6]), &selectors, &mut offsets, &mut to).unwrap();
        assert_eq!(to, [3, 1]);
        let refused = selection.gather(1, (MATRIX, &[1, 2, 3, 4, 5, 6]), &selectors, &mut [0], &mut to);
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Geometry);
    }

    #[test]
    fn sums_meet_at_one_place_and_indices_are_checked() {
        let index = longs(&[1, 1, 0]);
        let list = |bytes| Selectors::from_slice(&[None, Some(Selector::Places(line(&[3]), bytes))]).unwrap();
        let selectors = list(Indices::long(&index));
        let selection = Selection::new(MATRIX.sizes, &selectors).unwrap();
        let (mut offsets, mut tensor) = ([0; 3], [0i16; 6]);
        let values = [1i16, 2, 3];
        let bytes = bytemuck::cast_slice_mut(&mut tensor);
        let values = (line(&[3]), bytemuck::cast_slice(&values));
        selection.scatter_add::<i16>(values, &selectors, &mut offsets, (MATRIX, bytes)).unwrap();
        assert_eq!(tensor, [3, 3, 0, 3, 3, 0]);
        let beyond = longs(&[0, 3, 0]);
        let bytes = bytemuck::cast_slice_mut(&mut tensor);
        let refused = selection.scatter(2, values, &list(Indices::long(&beyond)), &mut offsets, (MATRIX, bytes));
        assert_eq!(refused.unwrap_err().message, "`indices` is 3, the dimension has 3 elements");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let bytes = longs(&[0]);
        let places = Some(Selector::Places(line(&[1]), Indices::long(&bytes)));
        for selectors in [&[None, None, places][..], &[None, None], &[Some(Selector::Mask(line(&[3]), &[0; 3]))]] {
            let selectors = Selectors::from_slice(selectors).unwrap();
            assert_eq!(Selection::new(MATRIX.sizes, &selectors).unwrap_err().kind, ErrorKind::Data);
        }
    }
}
