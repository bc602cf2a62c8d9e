//! Sharing work among the threads of the pool that an instruction runs in.

use rayon::prelude::*;

/// From so many bytes of results on, handing pieces of them to other threads pays.
const WORTH: usize = 1 << 19;
/// Bytes of a piece, about.
const PIECE: usize = 1 << 16;

/// Whether results of so many bytes are worth sharing.
pub fn pays(bytes: usize) -> bool {
    bytes >= WORTH && rayon::current_num_threads() > 1
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_units_and_cover_everything() {
        let mut out = vec![0usize; 100_003];
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        pool.install(|| {
            for_each_piece(&mut out, 7, |start, piece| {
                assert!(start % 7 == 0 && piece.len() < 100_003);
                piece.iter_mut().enumerate().for_each(|(index, x)| *x += start + index);
            });
        });
        assert!(out.iter().enumerate().all(|(index, x)| *x == index));
        for_each_piece(&mut out[..5], 7, |start, piece| assert_eq!((start, piece.len()), (0, 5)));
    }
}
