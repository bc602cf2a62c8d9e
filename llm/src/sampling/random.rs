//! Random numbers that are the same on every platform.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// ChaCha with eight rounds; the key is the seed, little-endian, and zeros.
#[derive(Clone, Debug)]
pub(super) struct Random(ChaCha8Rng);

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Random(ChaCha8Rng::from_seed(key))
    }

    /// A number from 0 up to but not 1, in steps of 2⁻⁵³.
    pub fn fraction(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_seed_never_change() {
        let bits = |seed| {
            let mut random = Random::new(seed);
            [(); 3].map(|()| (random.fraction() * (1u64 << 53) as f64) as u64)
        };
        assert_eq!(bits(0), [7538303010471392, 5687366232381195, 2093415812063696]);
        assert_eq!(bits(42), [3136797389566453, 2573343958160318, 4444804812152722]);
        let mut random = Random::new(1);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.fraction())));
    }
}
