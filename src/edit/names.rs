//! Names: patterns that choose them, and keys that do not collide.

use std::collections::BTreeSet;

/// A pattern over names: `*` matches any text, `?` one character, everything else itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Glob(Vec<char>);

impl Glob {
    /// Makes a pattern of any text; there are no wrong ones.
    pub fn new(pattern: &str) -> Self {
        Glob(pattern.chars().collect())
    }

    /// Returns whether the pattern matches a name.
    pub fn matches(&self, name: &str) -> bool {
        // Only the last star ever needs to take more: time is at most the product of the two lengths.
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut place) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while place < name.len() {
            match self.0.get(at) {
                Some('*') => {
                    star = Some((at, place));
                    at += 1;
                }
                Some(&one) if one == '?' || name.get(place) == Some(&one) => {
                    at += 1;
                    place += 1;
                }
                _ => match star {
                    Some((from, taken)) => {
                        star = Some((from, taken + 1));
                        (at, place) = (from + 1, taken + 1);
                    }
                    None => return false,
                },
            }
        }
        self.0.iter().skip(at).all(|one| *one == '*')
    }
}

/// Keys in use.
#[derive(Default)]
pub(super) struct Keys(BTreeSet<String>);

impl Keys {
    /// Marks a key as used; false if it was already.
    pub(super) fn take(&mut self, key: &str) -> bool {
        self.0.insert(key.to_owned())
    }

    /// The name itself if it is free, else with the first number behind it that makes it so; it is used from now on.
    pub(super) fn fresh(&mut self, name: &str) -> String {
        if self.take(name) {
            return name.to_owned();
        }
        let mut numbered = (1u64..).map(|number| format!("{name}.{number}"));
        // There are more numbers than keys.
        numbered.find(|key| self.take(key)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let cases = [
            ("*", "", true),
            ("*", "net.weight", true),
            ("net.*", "net.weight", true),
            ("*.weight", "net.0.weight", true),
            ("*.weight", "net.0.weights", false),
            ("net.?.bias", "net.0.bias", true),
            ("net.?.bias", "net.10.bias", false),
            ("*a*b*c", "xxaxxbxbxc", true),
            ("*a*b*c", "xxaxxbxbx", false),
            ("", "", true),
            ("", "a", false),
            ("é?", "éü", true),
        ];
        for (pattern, name, want) in cases {
            assert_eq!(Glob::new(pattern).matches(name), want, "{pattern} {name}");
        }
        assert!(!Glob::new(&"*a".repeat(200)).matches(&"b".repeat(20_000)));
    }

    #[test]
    fn keys_are_numbered_apart() {
        let mut keys = Keys::default();
        let fresh: Vec<_> = ["w", "w", "w.1", "w"].map(|name| keys.fresh(name)).to_vec();
        assert_eq!(fresh, ["w", "w.1", "w.1.1", "w.2"]);
    }
}
