//! Threads, and sharing loops among them.
//!
//! A loop is shared where its work repays handing parts of it over. Each part is computed as it would be alone, so results
//! do not depend on the number of threads.

use std::sync::Arc;

use rayon::prelude::*;

/// Threads that work is shared among.
///
/// ```
/// use edgepack_compute::threads::{self, Threads};
///
/// let two = Threads::new(2).unwrap();
/// assert_eq!(two.run(threads::current), 2);
/// ```
#[derive(Clone)]
pub struct Threads(Arc<rayon::ThreadPool>);

impl Threads {
    /// Starts this many threads; 0 is as many as the machine has.
    pub fn new(count: usize) -> Result<Threads, StartError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build();
        pool.map(|pool| Threads(Arc::new(pool))).map_err(|error| StartError(error.to_string()))
    }

    /// Returns their number.
    pub fn count(&self) -> usize {
        self.0.current_num_threads()
    }

    /// Runs `work` on one of the threads; loops inside it are shared among all of them.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.0.install(work)
    }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} threads", self.count())
    }
}

/// Threads could not be started.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

/// From so many bytes of results on, handing pieces of them to other threads pays.
const WORTH: usize = 1 << 19;
/// Bytes of a piece, about.
const PIECE: usize = 1 << 16;

/// Returns how many threads a loop that runs here may be shared among.
pub fn current() -> usize {
    rayon::current_num_threads()
}

/// Returns whether results of so many bytes are worth sharing.
pub fn pays(bytes: usize) -> bool {
    bytes >= WORTH && current() > 1
}

/// Calls `f` with pieces of the output and the index at which they start: one piece, or several on several threads.
/// Pieces are as long as a multiple of `unit`, but for the last.
pub fn for_each_piece<T: Send>(out: &mut [T], unit: usize, f: impl Fn(usize, &mut [T]) + Send + Sync) {
    if !pays(size_of_val(out)) {
        return f(0, out);
    }
    let piece = (PIECE / size_of::<T>().max(1)).next_multiple_of(unit.max(1));
    out.par_chunks_mut(piece).enumerate().for_each(|(index, out)| f(index * piece, out));
}

/// Pieces of one list: as many whole chunks of a length as it has.
pub struct Read<'a, T>(pub &'a [T], pub usize);

/// Pieces of one list to write: as many whole chunks of a length as it has.
pub struct Write<'a, T>(pub &'a mut [T], pub usize);

/// Pieces of one list to write, the last of which may be shorter.
pub struct WriteAll<'a, T>(pub &'a mut [T], pub usize);

mod sealed {
    use rayon::iter::IndexedParallelIterator;

    /// Lists that are cut into as many pieces each.
    pub trait Pieces: Sized {
        type Item: Send;
        fn serial(self) -> impl Iterator<Item = Self::Item>;
        fn parallel(self) -> impl IndexedParallelIterator<Item = Self::Item>;
    }
}

/// Lists that are cut into pieces: [`Read`], [`Write`], [`WriteAll`], and tuples of them.
pub trait Pieces: sealed::Pieces {}

impl<P: sealed::Pieces> Pieces for P {}

macro_rules! pieces {
    ($name:ident, $item:ty, $bound:ident, $serial:ident, $parallel:ident) => {
        impl<'a, T: $bound> sealed::Pieces for $name<'a, T> {
            type Item = $item;
            fn serial(self) -> impl Iterator<Item = Self::Item> {
                self.0.$serial(self.1.max(1))
            }
            fn parallel(self) -> impl IndexedParallelIterator<Item = Self::Item> {
                self.0.$parallel(self.1.max(1))
            }
        }
    };
}

pieces!(Read, &'a [T], Sync, chunks_exact, par_chunks_exact);
pieces!(Write, &'a mut [T], Send, chunks_exact_mut, par_chunks_exact_mut);
pieces!(WriteAll, &'a mut [T], Send, chunks_mut, par_chunks_mut);

macro_rules! zip {
    ($how:ident $all:ident 0 1) => {
        $all.0.$how().zip($all.1.$how())
    };
    ($how:ident $all:ident 0 1 2) => {
        $all.0.$how().zip($all.1.$how()).zip($all.2.$how()).map(|((a, b), c)| (a, b, c))
    };
    ($how:ident $all:ident 0 1 2 3) => {
        $all.0.$how().zip($all.1.$how()).zip($all.2.$how()).zip($all.3.$how()).map(|(((a, b), c), d)| (a, b, c, d))
    };
}

macro_rules! tuple {
    ($($name:ident $index:tt),*) => {
        impl<$($name: sealed::Pieces),*> sealed::Pieces for ($($name,)*) {
            type Item = ($($name::Item,)*);
            fn serial(self) -> impl Iterator<Item = Self::Item> {
                zip!(serial self $($index)*)
            }
            fn parallel(self) -> impl IndexedParallelIterator<Item = Self::Item> {
                zip!(parallel self $($index)*)
            }
        }
    };
}

tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

/// Calls `f` with each piece and its number, on all threads if that is worth it.
///
/// ```
/// use edgepack_compute::threads::{Read, Write, for_each};
///
/// let (rows, mut sums) = ([1, 2, 3, 4], [0, 0]);
/// for_each(false, (Read(&rows, 2), Write(&mut sums, 1)), |_, (row, sum)| sum[0] = row.iter().sum());
/// assert_eq!(sums, [3, 7]);
/// ```
pub fn for_each<P: Pieces>(share: bool, pieces: P, f: impl Fn(usize, P::Item) + Send + Sync) {
    if share && current() > 1 {
        pieces.parallel().enumerate().for_each(|(index, item)| f(index, item));
    } else {
        pieces.serial().enumerate().for_each(|(index, item)| f(index, item));
    }
}

/// Calls `f` as [`for_each`] does until it fails, and returns one of the errors if there are any.
pub fn try_for_each<P: Pieces, E: Send>(
    share: bool,
    pieces: P,
    f: impl Fn(usize, P::Item) -> Result<(), E> + Send + Sync,
) -> Result<(), E> {
    if share && current() > 1 {
        pieces.parallel().enumerate().try_for_each(|(index, item)| f(index, item))
    } else {
        pieces.serial().enumerate().try_for_each(|(index, item)| f(index, item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_units_and_cover_everything() {
        let mut out = vec![0usize; 100_003];
        Threads::new(2).unwrap().run(|| {
            for_each_piece(&mut out, 7, |start, piece| {
                assert!(start % 7 == 0 && piece.len() < 100_003);
                piece.iter_mut().enumerate().for_each(|(index, x)| *x += start + index);
            });
        });
        assert!(out.iter().enumerate().all(|(index, x)| *x == index));
        for_each_piece(&mut out[..5], 7, |start, piece| assert_eq!((start, piece.len()), (0, 5)));
    }

    #[test]
    fn pieces_of_several_lists_go_together() {
        for share in [false, true] {
            Threads::new(2).unwrap().run(|| {
                let (a, mut b, mut c) = ([1u32, 2, 3, 4, 5], [0u32; 3], [0u8; 7]);
                for_each(share, (Read(&a, 2), Write(&mut b, 1), Write(&mut c, 2)), |index, (a, b, c)| {
                    b[0] = a.iter().sum();
                    c.fill(index as u8 + 1);
                });
                assert_eq!((b, c), ([3, 7, 0], [1, 1, 2, 2, 0, 0, 0]));
                for_each(share, WriteAll(&mut c, 4), |index, c| c.fill((index * 10 + c.len()) as u8));
                assert_eq!(c, [4, 4, 4, 4, 13, 13, 13]);
                let failed = try_for_each(share, Read(&a, 2), |index, _| if index == 1 { Err(index) } else { Ok(()) });
                assert_eq!(failed, Err(1));
            });
        }
    }
}
