//! Places of groups of four inputs under a window.

use arrayvec::ArrayVec;

/// Groups that are found one by one, at most.
const MOST: usize = 256;

/// The places of groups of four inputs, from the first input under a window on.
///
/// Invariant: each place is at least four before `reach`.
#[derive(Clone, Default)]
pub(crate) struct Offsets {
    places: ArrayVec<u32, MOST>,
    reach: usize,
}

impl Offsets {
    /// Adds the next group; `None` if there are too many.
    pub fn push(&mut self, place: usize) -> Option<()> {
        self.places.try_push(u32::try_from(place).ok()?).ok()?;
        self.reach = self.reach.max(place + 4);
        Some(())
    }

    /// The places, in order.
    #[inline(always)]
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// Inputs that a window has, at least.
    #[inline(always)]
    pub fn reach(&self) -> usize {
        self.reach
    }
}
