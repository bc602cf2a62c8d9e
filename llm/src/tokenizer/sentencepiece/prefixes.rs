//! Strings that a text begins with, found in one walk along the text.

/// Sorted strings with ids; a walk narrows the range of those that agree with the text so far.
#[derive(Debug, Default)]
pub(super) struct Prefixes {
    sorted: Vec<(Box<[u8]>, u32)>,
}

impl Prefixes {
    /// Collects strings, which differ from one another and are not empty.
    pub fn new(strings: impl IntoIterator<Item = (Box<[u8]>, u32)>) -> Self {
        let mut sorted: Vec<_> = strings.into_iter().collect();
        sorted.sort();
        Self { sorted }
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Lengths and ids of the strings that `text` begins with, the shortest first.
    pub fn of<'s>(&'s self, text: &'s [u8]) -> impl Iterator<Item = (usize, u32)> + 's {
        let mut left = self.sorted.as_slice();
        let mut depth = 0;
        std::iter::from_fn(move || {
            loop {
                let byte = text.get(depth)?;
                let from = left.partition_point(|(string, _)| string.get(depth).is_none_or(|own| own < byte));
                let same = left.get(from..)?;
                let to = same.partition_point(|(string, _)| string.get(depth).is_some_and(|own| own <= byte));
                left = same.get(..to)?;
                depth += 1;
                let (first, id) = left.first()?;
                if first.len() == depth {
                    return Some((depth, *id));
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Prefixes;

    #[test]
    fn finds_all_beginnings() {
        let strings = ["a", "ab", "abc", "b", "abd", "z"];
        let prefixes = Prefixes::new(strings.iter().zip(0..).map(|(string, id)| (string.as_bytes().into(), id)));
        assert_eq!(prefixes.of(b"abdx").collect::<Vec<_>>(), [(1, 0), (2, 1), (3, 4)]);
        assert_eq!(prefixes.of(b"y").count(), 0);
        assert_eq!(prefixes.of(b"").count(), 0);
    }
}
