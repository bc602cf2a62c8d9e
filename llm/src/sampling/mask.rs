//! Sets of tokens that may be chosen.

/// Tokens that may be chosen, one bit each.
#[derive(Clone, Debug)]
pub struct Mask {
    words: Vec<u64>,
    len: usize,
}

impl Mask {
    /// All tokens allowed; `None` if there is no memory.
    pub(super) fn new(len: usize) -> Option<Self> {
        let mut words = Vec::new();
        words.try_reserve_exact(len.div_ceil(64)).ok()?;
        words.resize(len.div_ceil(64), u64::MAX);
        Some(Mask { words, len })
    }

    /// Number of tokens in the vocabulary.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the vocabulary has no tokens; it always has some.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Allows every token.
    pub fn allow_all(&mut self) {
        self.words.fill(u64::MAX);
    }

    /// Allows none.
    pub fn forbid_all(&mut self) {
        self.words.fill(0);
    }

    /// Allows a token; nothing happens if the vocabulary does not have it.
    pub fn allow(&mut self, token: u32) {
        if let Some(word) = self.words.get_mut(token as usize / 64) {
            *word |= 1 << (token % 64);
        }
    }

    /// Forbids a token; nothing happens if the vocabulary does not have it.
    pub fn forbid(&mut self, token: u32) {
        if let Some(word) = self.words.get_mut(token as usize / 64) {
            *word &= !(1 << (token % 64));
        }
    }

    /// Returns whether a token is in the vocabulary and allowed.
    pub fn is_allowed(&self, token: u32) -> bool {
        let word = self.words.get(token as usize / 64).filter(|_| (token as usize) < self.len);
        word.is_some_and(|word| word >> (token % 64) & 1 == 1)
    }

    /// Visits the tokens that are not allowed.
    pub(super) fn each_forbidden(&self, mut visit: impl FnMut(usize)) {
        for (index, &word) in self.words.iter().enumerate() {
            let mut out = !word;
            while out != 0 {
                let token = index * 64 + out.trailing_zeros() as usize;
                if token < self.len {
                    visit(token);
                }
                out &= out - 1;
            }
        }
    }
}

/// Constrained decoding: says which tokens may come next, as a grammar does.
///
/// ```
/// use edgepack_llm::sampling::{Constraint, Mask, Sampler, Settings};
///
/// /// Even and odd tokens in turn.
/// struct Turns;
/// impl Constraint for Turns {
///     fn mask(&mut self, tokens: &[u32], mask: &mut Mask) {
///         mask.forbid_all();
///         (0..mask.len() as u32).filter(|token| *token as usize % 2 == tokens.len() % 2).for_each(|token| mask.allow(token));
///     }
/// }
///
/// # fn main() -> Result<(), edgepack_llm::sampling::SampleError> {
/// let mut sampler = Sampler::new(3, Settings::default())?;
/// assert_eq!(sampler.sample_constrained(&[0.0, 9.0, 1.0], &[], &mut Turns)?, 2);
/// # Ok(())
/// # }
/// ```
pub trait Constraint {
    /// Forbids what may not come after `tokens`, the text so far. In `mask` every token is allowed.
    fn mask(&mut self, tokens: &[u32], mask: &mut Mask);
}
