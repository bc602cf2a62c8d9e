//! Decisions read off an [`Unstructured`], none of which can fail.
//!
//! Input that has ended answers zero, and zero is always the plainest choice, so what is generated is no larger than its
//! input and shrinks with it. [`Unstructured`] itself errs on the other side in places: `ratio` answers true at the end.
//!
//! Invariant: a decision among up to 256 takes one byte, among more two, first the high one. Inputs that are stored
//! (seeds, findings) depend on it.

use arbitrary::Unstructured;

/// Decisions that generators make.
pub trait Decisions {
    /// The next byte; zero after the end.
    fn byte(&mut self) -> u8;

    /// A number below `bound`, at most 65536; 0 if there is none.
    fn below(&mut self, bound: usize) -> usize {
        let number = if bound > 256 { self.byte() as usize * 256 + self.byte() as usize } else { self.byte() as usize };
        number.checked_rem(bound).unwrap_or(0)
    }

    /// True once in `times`, and never after the end unless `times` is 1.
    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == times.saturating_sub(1)
    }

    /// One item of a list.
    ///
    /// # Panics
    ///
    /// If the list is empty.
    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Eight bytes, the high one first.
    fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }
}

impl Decisions for Unstructured<'_> {
    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        // Pads with zeros, and so never fails.
        let _ = self.fill_buffer(&mut byte);
        byte[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_take_what_they_are_said_to_take() {
        let u = &mut Unstructured::new(&[7, 1, 2, 3, 4]);
        assert_eq!((u.below(5), u.below(300), u.below(1), u.len()), (2, 258, 0, 1));
        assert_eq!((u.below(300), u.is_empty()), (4 * 256 % 300, true));
        assert_eq!((u.byte(), u.word(), u.below(0), u.one_in(3), u.pick(&[8, 9])), (0, 0, 0, false, 8));
    }
}
