//! Decisions read off bytes.
//!
//! A tape that has ended answers zero, and zero is always the plainest choice, so what is made from a tape is no larger
//! than the tape and shrinks with it.

/// Bytes, consumed decision by decision.
#[derive(Clone, Default)]
pub struct Tape<'t> {
    bytes: std::slice::Iter<'t, u8>,
}

impl<'t> Tape<'t> {
    /// A tape at its start.
    pub fn new(bytes: &'t [u8]) -> Self {
        Tape { bytes: bytes.iter() }
    }

    /// Whether nothing is left.
    pub fn is_over(&self) -> bool {
        self.bytes.len() == 0
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.bytes.next().copied().unwrap_or(0)
    }

    /// A number below `bound`, at most 65536; 0 if there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        let number = if bound > 256 { self.byte() as usize * 256 + self.byte() as usize } else { self.byte() as usize };
        number.checked_rem(bound).unwrap_or(0)
    }

    /// True once in `times`, and never after the end.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// One of a list.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Eight bytes.
    pub fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }
}
