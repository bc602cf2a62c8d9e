//! Random numbers for mutation: splitmix64, the same from the same seed everywhere.

/// A stream of random numbers.
#[derive(Clone)]
pub struct Rng(u64);

impl Rng {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// The next number.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.word() >> 32).checked_rem(bound as u64).unwrap_or(0) as usize
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of a list, if it has any.
    pub fn pick<'l, T>(&mut self, list: &'l [T]) -> Option<&'l T> {
        list.get(self.below(list.len()))
    }

    /// A number that programs get wrong: around zero, around powers of two, at the ends.
    pub fn edge(&mut self) -> u64 {
        match self.below(6) {
            0 => self.below(17) as u64,
            1 => (self.below(17) as u64).wrapping_neg(),
            2 => (1u64 << self.below(64)).wrapping_add(self.below(5) as u64).wrapping_sub(2),
            3 => [i32::MAX as u64, u32::MAX.into(), i64::MAX as u64, u64::MAX, 0x8000_0000, 1 << 63][self.below(6)],
            4 => self.below(4096) as u64,
            _ => self.word(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    /// The numbers that the authors of the generator publish for this seed.
    #[test]
    fn a_seed_gives_the_published_numbers() {
        let mut rng = Rng::new(1_234_567);
        let words = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([rng.word(), rng.word(), rng.word()], words);
    }
}
