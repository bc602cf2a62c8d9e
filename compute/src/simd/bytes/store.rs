//! Writing the first of several results.

/// Writes results of tiles, as many as there is room for.
#[inline(always)]
pub(crate) fn store_tiles<T: Copy, const N: usize, const C: usize>(results: &[[T; N]; C], to: &mut [T]) {
    let all = results.as_flattened();
    if to.len() == all.len() {
        return to.copy_from_slice(all);
    }
    for (results, to) in results.iter().zip(to.chunks_mut(N)) {
        store(results, to);
    }
}

/// Writes results, as many as there is room for.
#[inline(always)]
pub(crate) fn store<T: Copy, const N: usize>(results: &[T; N], to: &mut [T]) {
    if let Some(to) = to.first_chunk_mut::<N>() {
        return *to = *results;
    }
    // Pieces that overlap, rather than a call for a few bytes.
    match to.len() {
        32.. => ends::<T, 32>(results, to),
        16.. => ends::<T, 16>(results, to),
        8.. => ends::<T, 8>(results, to),
        4.. => ends::<T, 4>(results, to),
        2.. => ends::<T, 2>(results, to),
        _ => ends::<T, 1>(results, to),
    }
}

/// Writes `N` to `2 * N` results by their two ends, or none.
#[inline(always)]
fn ends<T: Copy, const N: usize>(results: &[T], to: &mut [T]) {
    if let (Some(from), Some(to)) = (results[..to.len()].last_chunk::<N>(), to.last_chunk_mut::<N>()) {
        *to = *from;
    }
    if let (Some(from), Some(to)) = (results.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
        *to = *from;
    }
}
