//! Results next to each other, in blocks whose sums stay in registers.

/// Lanes of a large block.
pub(crate) const LANES: usize = 64;
/// Lanes of a small block: of fewer results than that, each is found by itself.
const FEW: usize = 16;

/// Results that are found in blocks.
pub(crate) trait InBlocks {
    /// Finds `N` results from one on. Marked `#[inline(always)]`, it is compiled for what it is called from.
    fn block<const N: usize>(&mut self, first: usize);
}

/// Finds so many results: in large blocks, and in small ones, of which the last begins early enough to be whole.
#[inline(always)]
pub(crate) fn in_blocks(count: usize, results: &mut impl InBlocks) {
    let mut first = 0;
    while first < count {
        first += if count - first >= LANES {
            results.block::<LANES>(first);
            LANES
        } else if count >= FEW {
            first = first.min(count - FEW);
            results.block::<FEW>(first);
            FEW
        } else {
            results.block::<1>(first);
            1
        };
    }
}
