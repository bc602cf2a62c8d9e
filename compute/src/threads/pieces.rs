//! Lists that are cut into pieces, each of which one thread gets.
//!
//! Invariant: pieces of a list do not overlap, and a caller asks for the piece of each index once.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

/// Pieces of one list: as many whole chunks of a length as it has.
pub struct Read<'a, T>(pub &'a [T], pub usize);

/// Pieces of one list to write: as many whole chunks of a length as it has.
pub struct Write<'a, T>(pub &'a mut [T], pub usize);

/// Pieces of one list to write, the last of which may be shorter.
pub struct WriteAll<'a, T>(pub &'a mut [T], pub usize);

/// Pieces of a matrix to write, in dense rows of a length: some columns of all rows, so many at most.
pub struct WriteColumns<'a, T>(pub &'a mut [T], pub usize, pub usize);

/// Lists that are cut into pieces: [`Read`], [`Write`], [`WriteAll`], [`WriteColumns`], and tuples of them.
pub trait Pieces: sealed::Pieces {}

impl<P: sealed::Pieces> Pieces for P {}

pub(super) mod sealed {
    pub trait Pieces: Sized {
        type Item: Send;
        type Cut: Cut<Item = Self::Item>;
        fn cut(self) -> Self::Cut;
    }

    /// Pieces by index, for several threads.
    pub trait Cut: Sync {
        type Item;

        /// Number of pieces.
        fn count(&self) -> usize;

        /// Borrows piece `index` for as long as the list is.
        ///
        /// # Safety
        ///
        /// `index` is below `count`, and no caller asks for it twice.
        unsafe fn piece(&self, index: usize) -> Self::Item;
    }
}

use sealed::Cut;

impl<'a, T: Sync> sealed::Pieces for Read<'a, T> {
    type Item = &'a [T];
    type Cut = Self;

    fn cut(self) -> Self {
        Read(self.0, self.1.max(1))
    }
}

impl<'a, T: Sync> Cut for Read<'a, T> {
    type Item = &'a [T];

    fn count(&self) -> usize {
        self.0.len() / self.1
    }

    unsafe fn piece(&self, index: usize) -> &'a [T] {
        &self.0[index * self.1..][..self.1]
    }
}

/// A list to write, in chunks; the last one may be shorter.
pub struct Chunks<'a, T> {
    start: *mut T,
    len: usize,
    chunk: usize,
    list: PhantomData<&'a mut [T]>,
}

// SAFETY: of what is behind `start`, a thread gets only disjoint pieces, each once (by the contract of `piece`), so this is
// as sending each piece to the thread that asks for it, which `T: Send` allows.
unsafe impl<T: Send> Sync for Chunks<'_, T> {}

impl<'a, T> Chunks<'a, T> {
    fn new(list: &'a mut [T], chunk: usize) -> Self {
        Chunks { start: list.as_mut_ptr(), len: list.len(), chunk: chunk.max(1), list: PhantomData }
    }
}

impl<'a, T: Send> Cut for Chunks<'a, T> {
    type Item = &'a mut [T];

    fn count(&self) -> usize {
        self.len.div_ceil(self.chunk)
    }

    unsafe fn piece(&self, index: usize) -> &'a mut [T] {
        let first = index * self.chunk;
        assert!(first < self.len, "piece {index} of {}", self.count());
        let len = self.chunk.min(self.len - first);
        // SAFETY: `first + len` is within the list, which is borrowed for `'a` mutably by this alone; pieces of other
        // indices do not overlap this one, and the caller promises that no other thread asks for this index.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(first), len) }
    }
}

impl<'a, T: Send> sealed::Pieces for Write<'a, T> {
    type Item = &'a mut [T];
    type Cut = Chunks<'a, T>;

    fn cut(self) -> Chunks<'a, T> {
        let Write(list, chunk) = self;
        let rest = list.len() % chunk.max(1);
        let whole = list.len() - rest;
        Chunks::new(&mut list[..whole], chunk)
    }
}

impl<'a, T: Send> sealed::Pieces for WriteAll<'a, T> {
    type Item = &'a mut [T];
    type Cut = Chunks<'a, T>;

    fn cut(self) -> Chunks<'a, T> {
        Chunks::new(self.0, self.1)
    }
}

/// Some columns of a matrix to write.
pub struct Columns<'a, T> {
    start: *mut T,
    rows: usize,
    row: usize,
    columns: usize,
    matrix: PhantomData<&'a mut [T]>,
}

impl<'a, T> Columns<'a, T> {
    /// All columns of a matrix in dense rows of a length.
    pub fn all(matrix: &'a mut [T], row: usize) -> Self {
        let rows = matrix.len().checked_div(row).unwrap_or(0);
        Columns { start: matrix.as_mut_ptr(), rows, row, columns: row, matrix: PhantomData }
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of rows.
    #[inline(always)]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Some columns of some rows.
    #[inline(always)]
    pub fn part(&mut self, rows: Range<usize>, columns: Range<usize>) -> Columns<'_, T> {
        assert!(rows.start <= rows.end && rows.end <= self.rows, "rows {rows:?} of {}", self.rows);
        assert!(columns.start <= columns.end && columns.end <= self.columns, "columns {columns:?} of {}", self.columns);
        // A place of the matrix, or what is behind it where there are no rows or no columns.
        let start = self.start.wrapping_add(rows.start * self.row + columns.start);
        Columns { start, rows: rows.len(), row: self.row, columns: columns.len(), matrix: PhantomData }
    }

    /// The columns of a row.
    #[inline(always)]
    pub fn row(&mut self, index: usize) -> &mut [T] {
        assert!(index < self.rows, "row {index} of {}", self.rows);
        // SAFETY: the row is one of the matrix, whose columns from `start` on, so many, are borrowed by this alone, and
        // through `&mut self` by one row at a time; nothing wraps within the matrix.
        unsafe { std::slice::from_raw_parts_mut(self.start.wrapping_add(index.wrapping_mul(self.row)), self.columns) }
    }
}

// SAFETY: this is the one borrow of its elements, as `&mut [T]` is, which may be sent if `T` may.
unsafe impl<T: Send> Send for Columns<'_, T> {}

/// A matrix to write, cut between columns.
pub struct CutColumns<'a, T> {
    matrix: Columns<'a, T>,
    each: usize,
}

// SAFETY: as that of `Chunks`: a thread gets only disjoint columns, each once, and nothing else of the matrix.
unsafe impl<T: Send> Sync for CutColumns<'_, T> {}

impl<'a, T: Send> Cut for CutColumns<'a, T> {
    type Item = Columns<'a, T>;

    fn count(&self) -> usize {
        self.matrix.columns.div_ceil(self.each)
    }

    unsafe fn piece(&self, index: usize) -> Columns<'a, T> {
        let first = index * self.each;
        assert!(first < self.matrix.columns, "piece {index} of {}", self.count());
        let columns = self.each.min(self.matrix.columns - first);
        // SAFETY: `first` is a column of the matrix; if it has no rows, nothing is read through the pointer, which then
        // stays where it is.
        let start = unsafe { self.matrix.start.add(if self.matrix.rows == 0 { 0 } else { first }) };
        Columns { start, columns, ..self.matrix }
    }
}

impl<'a, T: Send> sealed::Pieces for WriteColumns<'a, T> {
    type Item = Columns<'a, T>;
    type Cut = CutColumns<'a, T>;

    fn cut(self) -> CutColumns<'a, T> {
        let WriteColumns(matrix, row, each) = self;
        CutColumns { matrix: Columns::all(matrix, row), each: each.max(1) }
    }
}

macro_rules! tuple {
    ($($name:ident $index:tt),*) => {
        impl<$($name: sealed::Pieces),*> sealed::Pieces for ($($name,)*) {
            type Item = ($($name::Item,)*);
            type Cut = ($($name::Cut,)*);

            fn cut(self) -> Self::Cut {
                ($(self.$index.cut(),)*)
            }
        }

        impl<$($name: Cut),*> Cut for ($($name,)*) {
            type Item = ($($name::Item,)*);

            fn count(&self) -> usize {
                [$(self.$index.count()),*].into_iter().min().unwrap_or(0)
            }

            unsafe fn piece(&self, index: usize) -> Self::Item {
                // SAFETY: `index` is below the least of the counts, and by the caller asked for once.
                ($(unsafe { self.$index.piece(index) },)*)
            }
        }
    };
}

tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
