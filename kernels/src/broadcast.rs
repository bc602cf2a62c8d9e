//! Shapes that fit together: broadcasting, and the walk of an input in the order an output lies in memory.
//!
//! Outputs are always dense, so one walk per input is all that a loop over several tensors needs. Neighbouring
//! dimensions that can be walked as one are merged: equal shapes and dim orders give a single run.

use edgepack_executor::kernel::KernelError;
use edgepack_executor::tensor::TensorShape;
use edgepack_format::tensor::{Dims, MAX_RANK, element_count};

/// The sizes two tensors have in common when dimensions of size 1 stretch; `None` if they do not fit, or if no
/// tensor can have them.
pub fn broadcast(a: &[usize], b: &[usize]) -> Option<Dims> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut sizes = Dims::from_slice(long)?;
    let skip = long.len() - short.len();
    for (size, &other) in sizes[skip..].iter_mut().zip(short) {
        match (*size, other) {
            (have, want) if have == want => {}
            (_, 1) => {}
            (1, want) => *size = want,
            _ => return None,
        }
    }
    // Two shapes of no elements can make one that no tensor has.
    element_count(&sizes).map(|_| sizes)
}

/// An error unless `sizes` stretch to `target`.
pub fn expect_stretch(name: &str, sizes: &[usize], target: &[usize]) -> Result<(), KernelError> {
    if broadcast(sizes, target).is_some_and(|common| *common == *target) {
        return Ok(());
    }
    Err(KernelError::argument(format!("`{name}` has sizes {sizes:?}, which do not broadcast to {target:?}")))
}

/// One dimension of a walk.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Step {
    /// How often.
    pub size: usize,
    /// How far each time, in elements.
    pub stride: isize,
}

/// In which order the elements of an input are read: nested dimensions from outermost to innermost, merged.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// Never empty, no dimension of size 1 unless it is the only one.
    steps: Dims<Step>,
    /// The first element.
    start: usize,
}

impl Walk {
    /// The given dimensions, outermost first, from element `start`.
    pub fn new(steps: impl IntoIterator<Item = Step>, start: usize) -> Walk {
        let mut merged = [Step::default(); MAX_RANK];
        let mut len = 0;
        for step in steps {
            if step.size == 1 {
                continue;
            }
            // Sizes whose product overflows stand beside a size of zero, and stay apart.
            let joined = |outer: &Step| outer.size.checked_mul(step.size);
            match merged[..len].last_mut() {
                Some(outer)
                    if outer.stride == step.stride.wrapping_mul(step.size as isize) && joined(outer).is_some() =>
                {
                    *outer = Step { size: joined(outer).unwrap_or_default(), stride: step.stride };
                }
                _ if len < MAX_RANK => {
                    merged[len] = step;
                    len += 1;
                }
                _ => {}
            }
        }
        if len == 0 {
            merged[0] = Step { size: 1, stride: 1 };
            len = 1;
        }
        Walk { steps: Dims::from_slice(&merged[..len]).unwrap_or_default(), start }
    }

    /// `count` elements one after the other.
    pub fn linear(count: usize) -> Walk {
        Walk { steps: Dims::from_slice(&[Step { size: count, stride: 1 }]).unwrap_or_default(), start: 0 }
    }

    /// An input stretched to the sizes of an output, in the output's memory order. The sizes must fit.
    pub fn stretched(out: &TensorShape<'_>, input: &TensorShape<'_>) -> Walk {
        if input.sizes == out.sizes && input.dim_order == out.dim_order {
            return Walk::linear(out.element_count());
        }
        let skip = out.rank() - input.rank().min(out.rank());
        let steps = out.dim_order.iter().map(|&dim| {
            let dim = dim as usize;
            let stride = match dim.checked_sub(skip) {
                Some(own) if input.sizes[own] != 1 => input.strides[own] as isize,
                _ => 0,
            };
            Step { size: out.sizes[dim], stride }
        });
        Walk::new(steps, 0)
    }

    /// Every element of a tensor, the last dimension fastest, wherever it lies in memory.
    pub fn by_index(tensor: &TensorShape<'_>) -> Walk {
        let step = |(&size, &stride): (&usize, &usize)| Step { size, stride: stride as isize };
        Walk::new(tensor.sizes.iter().zip(tensor.strides).map(step), 0)
    }

    /// Whether the elements lie one after the other.
    pub fn is_linear(&self) -> bool {
        matches!(*self.steps, [Step { stride: 1, .. }])
    }

    /// Whether it is the same element every time.
    pub fn is_constant(&self) -> bool {
        matches!(*self.steps, [Step { stride: 0, .. }] | [Step { size: 1, .. }])
    }

    /// The first element.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The merged dimensions, outermost first.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// A reader at the first element.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor { walk: self, index: [0; MAX_RANK], offset: self.start as isize }
    }

    /// Copies all elements, `width` bytes each, one after the other into `to`.
    pub fn gather(&self, width: usize, from: &[u8], to: &mut [u8]) {
        if self.is_linear() {
            let start = self.start * width;
            to.copy_from_slice(&from[start..start + to.len()]);
        } else {
            self.cursor().gather(width, from, to);
        }
    }
}

/// A place within a walk.
#[derive(Clone, Debug)]
pub struct Cursor<'w> {
    walk: &'w Walk,
    index: [usize; MAX_RANK],
    offset: isize,
}

impl Cursor<'_> {
    /// Copies the next elements, `width` bytes each, until `to` is full.
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
        let steps = self.walk.steps();
        let inner = steps.len() - 1;
        let Step { size, stride } = steps[inner];
        while !to.is_empty() {
            let offset = self.offset as usize;
            if let Some(columns) = self.columns(steps).filter(|columns| size * columns <= to.len()) {
                let (tile, rest) = to.split_at_mut(size * columns);
                transpose(&from[offset..], stride as usize, tile, size);
                to = rest;
                (self.index[inner], self.index[inner - 1]) = (size, columns - 1);
                self.offset += (columns - 1) as isize + size as isize * stride;
                self.carry(steps);
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
            self.carry(steps);
        }
    }

    /// How many columns are read one after the other if a matrix is read by columns from here on.
    fn columns(&self, steps: &[Step]) -> Option<usize> {
        let inner = steps.len() - 1;
        let Step { size, stride } = *steps.get(inner.checked_sub(1)?)?;
        let whole = self.index[inner] == 0 && self.index[inner - 1] == 0;
        (whole && stride == 1 && steps[inner].stride > 1 && size > 1 && steps[inner].size > 1).then_some(size)
    }

    /// Copies the elements of `from`, `width` bytes each, to the next places of the walk within `to`.
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
        let steps = self.walk.steps();
        let inner = steps.len() - 1;
        let Step { size, stride } = steps[inner];
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
            self.carry(steps);
        }
    }

    fn carry(&mut self, steps: &[Step]) {
        for dim in (1..steps.len()).rev() {
            if self.index[dim] < steps[dim].size {
                return;
            }
            self.offset += steps[dim - 1].stride - steps[dim].size as isize * steps[dim].stride;
            self.index[dim] = 0;
            self.index[dim - 1] += 1;
        }
    }
}

/// Rows and columns that are read and written together: few enough that their lines of memory stay in the cache.
const TILE: usize = 16;

/// Writes the columns of a matrix, of `rows` elements each, one after the other.
fn transpose<T: Copy>(from: &[T], stride: usize, to: &mut [T], rows: usize) {
    for (first, columns) in to.chunks_mut(rows * TILE).enumerate() {
        for top in (0..rows).step_by(TILE) {
            let tall = TILE.min(rows - top);
            for (column, out) in columns.chunks_exact_mut(rows).enumerate() {
                let source = from[top * stride + first * TILE + column..].iter().step_by(stride);
                out[top..][..tall].iter_mut().zip(source).for_each(|(to, from)| *to = *from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_format::scalar::ScalarType;
    use edgepack_format::tensor::TensorLayout;

    #[test]
    fn sizes_stretch_from_the_right() {
        assert_eq!(broadcast(&[2, 1, 3], &[4, 1]).as_deref(), Some(&[2, 4, 3][..]));
        assert_eq!(broadcast(&[], &[0]).as_deref(), Some(&[0][..]));
        assert_eq!(broadcast(&[1], &[0]).as_deref(), Some(&[0][..]));
        assert!(broadcast(&[2], &[3]).is_none() && broadcast(&[2], &[0]).is_none());
        assert!(expect_stretch("src", &[2, 3], &[3]).is_err());
    }

    fn walked(out: (&[usize], &[u8]), input: (&[usize], &[u8]), block: usize) -> (Vec<u16>, usize) {
        let layout = |(sizes, order)| TensorLayout::new(ScalarType::SHORT, sizes, order).unwrap();
        let (out, input) = (layout(out), layout(input));
        let (out_strides, strides) = (out.strides(), input.strides());
        let meta = |layout: &'static TensorLayout, strides: &'static [usize]| TensorShape {
            dtype: ScalarType::SHORT,
            sizes: layout.sizes(),
            strides,
            dim_order: layout.dim_order(),
        };
        let (out_meta, meta) = (
            meta(Box::leak(Box::new(out)), Box::leak(out_strides.to_vec().into_boxed_slice())),
            meta(Box::leak(Box::new(input)), Box::leak(strides.to_vec().into_boxed_slice())),
        );
        let walk = Walk::stretched(&out_meta, &meta);
        let data: Vec<u16> = (0..meta.element_count() as u16).collect();
        let mut result = vec![0u16; out_meta.element_count()];
        let mut cursor = walk.cursor();
        for chunk in result.chunks_mut(block) {
            cursor.gather(2, bytemuck::cast_slice(&data), bytemuck::cast_slice_mut(chunk));
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
        (result, walk.steps().len())
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
            assert_eq!(walked((&[40, 2, 18], &[2, 1, 0]), (&[40, 2, 18], &[0, 1, 2]), block).1, 3);
            walked((&[2, 3, 4, 5], &[3, 1, 0, 2]), (&[3, 4, 1], &[2, 0, 1]), block);
        }
    }

    #[test]
    fn backward_walks_reverse() {
        let walk = Walk::new([Step { size: 2, stride: 3 }, Step { size: 3, stride: -1 }], 2);
        let mut to = [0u8; 6];
        walk.gather(1, &[0, 1, 2, 3, 4, 5], &mut to);
        assert_eq!(to, [2, 1, 0, 5, 4, 3]);
    }
}
