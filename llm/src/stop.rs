//! Stop strings: text that ends a generation, found in text that arrives in pieces.
//!
//! ```
//! use edgepack_llm::stop::StopStrings;
//!
//! let mut stop = StopStrings::new(["\nUser:", "###"])?;
//! assert_eq!(stop.push("Hello"), "Hello");
//! assert_eq!(stop.push(" there\nUs"), " there");
//! assert_eq!(stop.push("er: me"), "");
//! assert_eq!(stop.met(), Some("\nUser:"));
//! # Ok::<(), edgepack_llm::stop::StopError>(())
//! ```

/// Most stop strings.
pub const MOST: usize = 64;
/// Longest stop string, in bytes.
pub const LONGEST: usize = 4096;

/// Reason stop strings are refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StopError {
    /// An empty stop string would end everything.
    #[error("stop string {index} is empty")]
    Empty {
        /// Index among the stop strings.
        index: usize,
    },
    /// A stop string is too long.
    #[error("stop string {index} has {bytes} bytes, at most {LONGEST} are possible")]
    TooLong {
        /// Index among the stop strings.
        index: usize,
        /// Bytes of it.
        bytes: usize,
    },
    /// There are too many stop strings.
    #[error("more than {MOST} stop strings")]
    TooMany,
}

/// Progress in one stop string (the algorithm of Knuth, Morris and Pratt).
#[derive(Clone, Debug)]
struct Progress {
    stop: Box<str>,
    /// For every length of a beginning, that of the longest shorter beginning which it ends with.
    shorter: Box<[usize]>,
    matched: usize,
}

impl Progress {
    fn new(stop: String) -> Self {
        let bytes = stop.as_bytes();
        let mut shorter = vec![0; bytes.len() + 1];
        let mut matched = 0;
        for at in 1..bytes.len() {
            while matched > 0 && bytes[matched] != bytes[at] {
                matched = shorter[matched];
            }
            matched += usize::from(bytes[matched] == bytes[at]);
            shorter[at + 1] = matched;
        }
        Self { shorter: shorter.into(), stop: stop.into(), matched: 0 }
    }

    /// Takes a byte and returns whether the stop string is complete.
    fn push(&mut self, byte: u8) -> bool {
        let bytes = self.stop.as_bytes();
        while self.matched > 0 && bytes[self.matched] != byte {
            self.matched = self.shorter[self.matched];
        }
        self.matched += usize::from(bytes[self.matched] == byte);
        self.matched == bytes.len()
    }
}

/// Search for stop strings in text that arrives in pieces. Takes constant time per byte and stop string, on average.
///
/// Text that could still become a stop string is held back. The stop string that is complete first ends the text; of two
/// that are complete at once, the one that began first. It is no part of the text, and nothing comes behind it.
#[derive(Clone, Debug, Default)]
pub struct StopStrings {
    stops: Vec<Progress>,
    held: String,
    met: Option<usize>,
}

impl StopStrings {
    /// Prepares the search for these strings.
    ///
    /// # Errors
    ///
    /// If one is empty or too long, or there are too many.
    pub fn new<S: Into<String>>(stops: impl IntoIterator<Item = S>) -> Result<Self, StopError> {
        let mut prepared = Vec::new();
        for (index, stop) in stops.into_iter().enumerate() {
            let stop: String = stop.into();
            match stop.len() {
                _ if index >= MOST => return Err(StopError::TooMany),
                0 => return Err(StopError::Empty { index }),
                bytes if bytes > LONGEST => return Err(StopError::TooLong { index, bytes }),
                _ => prepared.push(Progress::new(stop)),
            }
        }
        Ok(Self { stops: prepared, held: String::new(), met: None })
    }

    /// Takes text and returns the text that is certain not to belong to a stop string.
    pub fn push(&mut self, text: &str) -> String {
        if self.met.is_some() {
            return String::new();
        }
        for c in text.chars() {
            self.held.push(c);
            let mut complete = false;
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Every one takes the byte: several can be complete at once.
                complete |= self.stops.iter_mut().filter_map(|stop| stop.push(byte).then_some(())).count() > 0;
            }
            if complete {
                return self.complete();
            }
        }
        let held = self.stops.iter().map(|stop| stop.matched).max().unwrap_or(0);
        let certain = self.held.len().saturating_sub(held);
        self.held.drain(..certain).collect()
    }

    /// Ends the text with the stop strings that are complete.
    fn complete(&mut self) -> String {
        let complete = |stop: &Progress| stop.matched == stop.stop.len();
        let longest = (0..self.stops.len()).filter(|index| complete(&self.stops[*index]));
        self.met = longest.max_by_key(|index| (self.stops[*index].matched, std::cmp::Reverse(*index)));
        let length = self.met.map_or(0, |index| self.stops[index].matched);
        let mut text = std::mem::take(&mut self.held);
        text.truncate(text.len() - length);
        text
    }

    /// Returns the text that was held back, at the end of the text.
    pub fn finish(&mut self) -> String {
        self.stops.iter_mut().for_each(|stop| stop.matched = 0);
        std::mem::take(&mut self.held)
    }

    /// Stop string that was met.
    pub fn met(&self) -> Option<&str> {
        self.met.and_then(|index| self.stops.get(index)).map(|stop| &*stop.stop)
    }
}

#[cfg(test)]
mod tests {
    use super::{StopError, StopStrings};

    /// First end of a stop string in a whole text, and the stop string.
    fn slowly<'a>(text: &str, stops: &[&'a str]) -> (String, Option<&'a str>) {
        for end in 1..=text.len() {
            let ends = stops.iter().filter(|stop| text.is_char_boundary(end) && text[..end].ends_with(**stop));
            if let Some(stop) = ends.rev().max_by_key(|stop| stop.len()) {
                return (text[..end - stop.len()].to_owned(), Some(stop));
            }
        }
        (text.to_owned(), None)
    }

    proptest::proptest! {
        #[test]
        fn pieces_are_as_the_whole(pieces in proptest::collection::vec("[abé]{0,3}", 0..12)) {
            let stops = ["aab", "abaé", "éé", "béa", "b"];
            for count in 0..=stops.len() {
                let stops = &stops[..count];
                let mut search = StopStrings::new(stops.iter().copied()).unwrap();
                let mut out: String = pieces.iter().map(|piece| search.push(piece)).collect();
                out.push_str(&search.finish());
                let (text, met) = slowly(&pieces.concat(), stops);
                proptest::prop_assert_eq!((out, search.met()), (text, met));
            }
        }
    }

    #[test]
    fn holds_back_no_more_than_it_must() {
        let mut search = StopStrings::new(["<end>"]).unwrap();
        assert_eq!(search.push("a<e"), "a");
        assert_eq!(search.push("x"), "<ex");
        assert_eq!(search.push("<<"), "<");
        assert_eq!(search.finish(), "<");
        assert_eq!(search.met(), None);
    }

    #[test]
    fn refuses_what_would_not_work() {
        assert_eq!(StopStrings::new([""]).unwrap_err(), StopError::Empty { index: 0 });
        assert_eq!(StopStrings::new(vec!["a"; 65]).unwrap_err(), StopError::TooMany);
        assert!(matches!(StopStrings::new(["a".repeat(5000)]), Err(StopError::TooLong { .. })));
    }
}
