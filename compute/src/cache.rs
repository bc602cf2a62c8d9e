//! Writing keys or values into their cache: at a place, or each at an index of its own.
//!
//! A cache is `[batch, place, head, element]`, so a token is one run of memory and a sequence of them is, too.

use crate::error::{Error, ErrorKind};

/// Sizes of tokens and of the cache they go into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheWrite {
    /// Number of sequences.
    pub batch: usize,
    /// Tokens per sequence.
    pub tokens: usize,
    /// Places per sequence.
    pub places: usize,
    /// Bytes of a token: of all its heads.
    pub width: usize,
}

impl CacheWrite {
    /// Writes all tokens from place `start` on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`] if the tokens do not fit behind `start`, or the bytes are not those of the sizes.
    ///
    /// ```
    /// use edgepack_compute::cache::CacheWrite;
    ///
    /// let mut cache = [0; 8];
    /// CacheWrite { batch: 2, tokens: 1, places: 4, width: 1 }.run(&[7, 9], &mut cache, 2)?;
    /// assert_eq!(cache, [0, 0, 7, 0, 0, 0, 9, 0]);
    /// # Ok::<(), edgepack_compute::Error>(())
    /// ```
    pub fn run(&self, value: &[u8], cache: &mut [u8], start: usize) -> Result<(), Error> {
        self.expect(value.len(), cache.len())?;
        let &CacheWrite { tokens, places, width, .. } = self;
        if start.checked_add(tokens).is_none_or(|end| end > places) {
            let message = format!("{tokens} tokens from place {start} on leave the cache of {places} places");
            return Err(Error::new(ErrorKind::Geometry, message));
        }
        let run = tokens * width;
        if run == 0 {
            return Ok(());
        }
        for (value, cache) in value.chunks_exact(run).zip(cache.chunks_exact_mut(places * width)) {
            cache[start * width..][..run].copy_from_slice(value);
        }
        Ok(())
    }

    /// Writes every token at its index, `[batch, token]`; of two at one place the later stays. A call that fails writes
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Data`] if an index is not a place; [`ErrorKind::Geometry`] if the bytes are not those of the sizes, or
    /// there are fewer indices than tokens.
    pub fn scatter(&self, value: &[u8], cache: &mut [u8], indices: &[i64]) -> Result<(), Error> {
        self.expect(value.len(), cache.len())?;
        let &CacheWrite { batch, tokens, places, width } = self;
        crate::error::expect_elements("the list of indices", indices.len(), batch * tokens)?;
        if let Some(index) = indices.iter().find(|&&index| usize::try_from(index).map_or(true, |at| at >= places)) {
            return Err(Error::new(ErrorKind::Data, format!("holds {index}, `cache` has {places} places")));
        }
        if width == 0 {
            return Ok(());
        }
        for (token, (value, &index)) in value.chunks_exact(width).zip(indices).enumerate() {
            let place = token / tokens * places + index as usize;
            cache[place * width..][..width].copy_from_slice(value);
        }
        Ok(())
    }

    fn expect(&self, value: usize, cache: usize) -> Result<(), Error> {
        let bytes = |count: usize| self.batch.saturating_mul(count).saturating_mul(self.width);
        if [value, cache] == [bytes(self.tokens), bytes(self.places)] {
            return Ok(());
        }
        let message = format!("{value} bytes of tokens and {cache} of a cache are not those of {self:?}");
        Err(Error::new(ErrorKind::Geometry, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_where_their_indices_say() {
        let write = CacheWrite { batch: 2, tokens: 2, places: 3, width: 2 };
        let mut cache = [0; 12];
        write.scatter(&[1, 1, 2, 2, 3, 3, 4, 4], &mut cache, &[2, 0, 1, 1]).unwrap();
        assert_eq!(cache, [2, 2, 0, 0, 1, 1, 0, 0, 4, 4, 0, 0]);
        let refused = |indices: &[i64]| write.scatter(&[0; 8], &mut [0; 12], indices).unwrap_err().kind;
        assert_eq!(
            [refused(&[0, 3, 0, 0]), refused(&[0, 0, -1, 0]), refused(&[0; 3])],
            [ErrorKind::Data, ErrorKind::Data, ErrorKind::Geometry]
        );
    }

    #[test]
    fn sequences_stay_inside_their_cache() {
        let write = CacheWrite { batch: 1, tokens: 2, places: 3, width: 1 };
        let mut cache = [0; 3];
        write.run(&[5, 6], &mut cache, 1).unwrap();
        assert_eq!(cache, [0, 5, 6]);
        for (value, start) in [(2, 2), (2, usize::MAX), (1, 0)] {
            assert_eq!(write.run(&[5, 6][..value], &mut cache, start).unwrap_err().kind, ErrorKind::Geometry);
        }
    }
}
