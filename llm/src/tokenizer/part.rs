//! Text to be encoded, in parts that are trusted to hold special tokens or not.

/// Treatment of text that reads like a special token.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SpecialTokens {
    /// It is text like any other. This is right for all that users, files or tools say.
    AsText,
    /// It becomes the special token. This is right for templates and for prompts that a program wrote itself.
    Recognised,
}

/// Piece of a prompt, with the treatment of special tokens in it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Part<T> {
    /// Text of the part.
    pub text: T,
    /// Treatment of text that reads like a special token.
    pub special: SpecialTokens,
}

impl<T> Part<T> {
    /// Makes a part of text in which special tokens are recognised.
    pub fn template(text: T) -> Self {
        Self { text, special: SpecialTokens::Recognised }
    }

    /// Makes a part of text that never becomes a special token.
    pub fn user(text: T) -> Self {
        Self { text, special: SpecialTokens::AsText }
    }
}

/// Text of a prompt after its special tokens were found: plain text across the borders of parts, or one special token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Segment<'a> {
    /// Text, with its position in the joined text.
    Plain(usize, &'a str),
    /// Special token.
    Special(u32),
}

/// Joined text of some parts and the ranges of it in which special tokens are recognised.
#[derive(Clone, Debug)]
pub(crate) struct Joined {
    /// The text.
    pub text: String,
    /// Ranges of the text, in order, never empty and never touching.
    pub recognised: Vec<std::ops::Range<usize>>,
}

impl Joined {
    /// Joins parts; neighbours of one treatment become one.
    pub fn new(parts: &[Part<&str>]) -> Self {
        let mut joined = Self { text: String::new(), recognised: Vec::new() };
        for part in parts.iter().filter(|part| !part.text.is_empty()) {
            let start = joined.text.len();
            joined.text.push_str(part.text);
            if part.special == SpecialTokens::Recognised {
                match joined.recognised.last_mut() {
                    Some(last) if last.end == start => last.end = joined.text.len(),
                    _ => joined.recognised.push(start..joined.text.len()),
                }
            }
        }
        joined
    }

    /// Divides the text at the special tokens that lie wholly in a recognised range: the leftmost first, of several at
    /// one place the longest.
    pub fn segments(&self, specials: &Specials) -> Vec<Segment<'_>> {
        let mut segments = Vec::new();
        let mut plain = 0;
        for range in &self.recognised {
            let mut at = range.start;
            while let Some((start, length, id)) = specials.find(&self.text, at, range.end) {
                if plain < start {
                    segments.push(Segment::Plain(plain, &self.text[plain..start]));
                }
                segments.push(Segment::Special(id));
                at = start + length;
                plain = at;
            }
        }
        if plain < self.text.len() {
            segments.push(Segment::Plain(plain, &self.text[plain..]));
        }
        segments
    }
}

/// Special tokens by their text, found in linear time for the lengths that occur.
#[derive(Clone, Default, Debug)]
pub(crate) struct Specials {
    by_text: std::collections::HashMap<Box<str>, u32>,
    /// Lengths in bytes that occur after each first byte, the longest first.
    lengths: std::collections::BTreeMap<u8, Vec<usize>>,
}

/// Most different lengths of special tokens that begin with one byte: bounds the time per byte of text.
const MOST_LENGTHS: usize = 256;
/// Longest special token, in bytes.
const LONGEST: usize = 512;

impl Specials {
    /// Collects special tokens; empty ones are left out. `Err` names one that is too long or one too many.
    pub fn new<'t>(tokens: impl IntoIterator<Item = (&'t str, u32)>) -> Result<Self, String> {
        let mut specials = Self::default();
        for (text, id) in tokens {
            let Some(first) = text.bytes().next() else { continue };
            if text.len() > LONGEST {
                return Err(format!("a special token of {} bytes; at most {LONGEST} are possible", text.len()));
            }
            specials.by_text.insert(text.into(), id);
            let lengths = specials.lengths.entry(first).or_default();
            if let Err(at) = lengths.binary_search_by(|length| text.len().cmp(length)) {
                lengths.insert(at, text.len());
            }
            if lengths.len() > MOST_LENGTHS {
                return Err(format!("special tokens of more than {MOST_LENGTHS} different lengths"));
            }
        }
        Ok(specials)
    }

    /// Special tokens and their ids, sorted by id.
    pub fn list(&self) -> Vec<(String, u32)> {
        let mut list: Vec<_> = self.by_text.iter().map(|(text, id)| (text.to_string(), *id)).collect();
        list.sort_by(|a, b| a.1.cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
        list
    }

    /// Id of a special token.
    pub fn id(&self, text: &str) -> Option<u32> {
        self.by_text.get(text).copied()
    }

    /// Finds the first special token in `text[from..to]`: its position, its length and its id.
    pub fn find(&self, text: &str, from: usize, to: usize) -> Option<(usize, usize, u32)> {
        let bytes = text.as_bytes().get(..to)?;
        for (offset, byte) in bytes.get(from..)?.iter().enumerate() {
            let Some(lengths) = self.lengths.get(byte) else { continue };
            let start = from + offset;
            for length in lengths {
                let Some(candidate) = bytes.get(start..start + length) else { continue };
                if let Ok(candidate) = std::str::from_utf8(candidate)
                    && let Some(id) = self.by_text.get(candidate)
                {
                    return Some((start, *length, *id));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Joined, Part, Segment, Specials};

    #[test]
    fn only_what_lies_in_a_template_is_special() {
        let specials = Specials::new([("<s>", 1), ("<s><s>", 2), ("é", 3)]).unwrap();
        let joined = Joined::new(&[
            Part::template("a<s"),
            Part::user("><s>"),
            Part::template("<s>"),
            Part::template("<s>é"),
            Part::user("é"),
        ]);
        let segments = joined.segments(&specials);
        assert_eq!(
            segments,
            [
                Segment::Plain(0, "a<s><s>"),
                Segment::Special(2),
                Segment::Special(3),
                Segment::Plain(joined.text.len() - 2, "é")
            ]
        );
    }

    #[test]
    fn the_longest_of_one_place_wins() {
        let specials = Specials::new([("<a", 1), ("<a>", 2)]).unwrap();
        assert_eq!(specials.find("x<a>", 0, 4), Some((1, 3, 2)));
        assert_eq!(specials.find("x<a>", 0, 3), Some((1, 2, 1)));
    }
}
