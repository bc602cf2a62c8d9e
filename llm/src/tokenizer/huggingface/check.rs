//! A look at the file before the library sees it: what it could not bear is refused, and what it does not tell is read.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::tokenizer::Error;
use crate::tokenizer::charsmap::Charsmap;

/// Longest regular expression, in bytes.
const LONGEST_PATTERN: usize = 8192;
/// Most copies that counted repetitions of a regular expression may make of a part of it.
const MOST_REPETITIONS: u64 = 4096;

/// Parts of the file that are looked at.
#[derive(Deserialize, Debug)]
pub(super) struct Document {
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
    #[serde(default)]
    pub decoder: Value,
    model: Model,
    #[serde(default)]
    added_tokens: Vec<Added>,
}

#[derive(Deserialize, Debug)]
struct Added {
    id: u32,
}

#[derive(Deserialize, Debug)]
struct Model {
    #[serde(default)]
    dropout: Option<f32>,
    #[serde(default)]
    unk_token: Option<String>,
    #[serde(default)]
    unk_id: Option<u32>,
    #[serde(default)]
    vocab: Vocabulary,
    #[serde(default)]
    merges: Merges,
    #[serde(default)]
    continuing_subword_prefix: Option<String>,
    #[serde(default)]
    max_input_chars_per_word: Option<u64>,
}

impl Model {
    /// Checks that merges make tokens of the vocabulary, as far as lengths tell: the library writes what a merge makes
    /// into a room for the longest token.
    fn check(&self) -> Result<(), Error> {
        let prefix = self.continuing_subword_prefix.as_deref().unwrap_or_default();
        if self.merges.second.as_ref().is_some_and(|common| !common.starts_with(prefix)) {
            let message = format!("the second part of a merge does not begin with the prefix {prefix:?}");
            return Err(Error::malformed("model.merges", message));
        }
        let made = self.merges.longest.saturating_sub(prefix.len());
        if made > self.vocab.longest {
            let message = format!("a merge makes {made} bytes, the longest token has {}", self.vocab.longest);
            return Err(Error::malformed("model.merges", message));
        }
        Ok(())
    }
}

/// Merges of pairs of tokens, in either form: `"a b"` or `["a", "b"]`.
#[derive(Debug, Default)]
struct Merges {
    /// Bytes of the longest pair.
    longest: usize,
    /// Beginning that the second parts have in common.
    second: Option<String>,
}

impl Merges {
    fn add(&mut self, first: &str, second: &str) {
        self.longest = self.longest.max(first.len() + second.len());
        let common = self.second.get_or_insert_with(|| second.to_owned());
        let same = common.chars().zip(second.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum();
        common.truncate(same);
    }
}

/// A merge in either form.
#[derive(Deserialize)]
#[serde(untagged)]
enum Merge<'m> {
    Line(#[serde(borrow)] Cow<'m, str>),
    Pair(#[serde(borrow)] Cow<'m, str>, #[serde(borrow)] Cow<'m, str>),
}

impl<'de> Deserialize<'de> for Merges {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Merges;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of merges")
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Merges, A::Error> {
                let mut merges = Merges::default();
                while let Some(merge) = list.next_element::<Merge<'de>>()? {
                    match merge {
                        Merge::Pair(first, second) => merges.add(&first, &second),
                        // The library skips lines that say the version, and refuses others without a space.
                        Merge::Line(line) if line.starts_with("#version") => {}
                        Merge::Line(line) => match line.split_once(' ') {
                            Some((first, second)) => merges.add(first, second),
                            None => return Err(serde::de::Error::custom("a merge is two tokens with a space between")),
                        },
                    }
                }
                Ok(merges)
            }
            fn visit_unit<E>(self) -> Result<Merges, E> {
                Ok(Merges::default())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Vocabulary: a map of tokens to ids, or a list of tokens and scores.
#[derive(Debug, Default)]
struct Vocabulary {
    count: usize,
    highest: Option<u64>,
    /// Bytes of the longest token.
    longest: usize,
    is_list: bool,
    problem: Option<String>,
}

impl<'de> Deserialize<'de> for Vocabulary {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Vocabulary;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a vocabulary")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Vocabulary, A::Error> {
                let mut vocabulary = Vocabulary::default();
                while let Some((token, id)) = map.next_entry::<Cow<'de, str>, u64>()? {
                    vocabulary.count += 1;
                    vocabulary.longest = vocabulary.longest.max(token.len());
                    vocabulary.highest = vocabulary.highest.max(Some(id));
                }
                Ok(vocabulary)
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Vocabulary, A::Error> {
                let mut vocabulary = Vocabulary { is_list: true, ..Vocabulary::default() };
                while let Some((token, score)) = list.next_element::<(Cow<'de, str>, f64)>()? {
                    if token.is_empty() || !score.is_finite() {
                        vocabulary.problem = Some(format!("entry {} is empty or has no score", vocabulary.count));
                    }
                    vocabulary.count += 1;
                }
                vocabulary.highest = (vocabulary.count as u64).checked_sub(1);
                Ok(vocabulary)
            }
            fn visit_unit<E>(self) -> Result<Vocabulary, E> {
                Ok(Vocabulary::default())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Facts that the library does not tell.
#[derive(Debug)]
pub(super) struct Facts {
    /// Unknown token, by name or id.
    pub unknown: Option<String>,
    pub unknown_id: Option<u32>,
    pub bos: Option<u32>,
    pub eos: Option<u32>,
    /// One more than the highest id.
    pub size: u32,
    pub decoder: Value,
}

/// Checks a file.
pub(super) fn check(bytes: &[u8]) -> Result<Facts, Error> {
    let document: Document =
        serde_json::from_slice(bytes).map_err(|error| Error::malformed("tokenizer.json", error.to_string()))?;
    let model = &document.model;
    if model.dropout.is_some_and(|dropout| dropout != 0.0) {
        let message = "the ids of a text would be different each time; 0 is possible";
        return Err(Error::unsupported("model.dropout", message));
    }
    if let Some(problem) = &model.vocab.problem {
        return Err(Error::malformed("model.vocab", problem));
    }
    if model.max_input_chars_per_word.is_some_and(|most| most > 200) {
        return Err(Error::unsupported("model.max_input_chars_per_word", "at most 200 are possible"));
    }
    model.check()?;
    if model.vocab.is_list && model.unk_id.is_some_and(|id| id as usize >= model.vocab.count) {
        return Err(Error::malformed("model.unk_id", "no token has this id"));
    }
    let highest = document.added_tokens.iter().map(|token| u64::from(token.id)).max().max(model.vocab.highest);
    // Tables by id are fine as long as few ids have no token.
    let count = model.vocab.count as u64 + document.added_tokens.len() as u64;
    let size = highest.map_or(0, |highest| highest.saturating_add(1));
    if size > count.saturating_mul(16).saturating_add(1 << 20) {
        return Err(Error::malformed("model.vocab", format!("{count} tokens have ids up to {}", size - 1)));
    }
    for (value, place) in [
        (&document.normalizer, "normalizer"),
        (&document.pre_tokenizer, "pre_tokenizer"),
        (&document.decoder, "decoder"),
        (&document.post_processor, "post_processor"),
    ] {
        component(value, place)?;
    }
    let (bos, eos) = ends(&document.post_processor);
    Ok(Facts {
        unknown: document.model.unk_token,
        unknown_id: document.model.unk_id.filter(|_| document.model.vocab.is_list),
        bos,
        eos,
        size: u32::try_from(size).unwrap_or(u32::MAX),
        decoder: document.decoder,
    })
}

/// Checks a normaliser, a decoder and so on, and all that are in it. JSON is nested to a depth of 128 at most.
fn component(value: &Value, place: &str) -> Result<(), Error> {
    if let Value::Array(items) = value {
        return items.iter().enumerate().try_for_each(|(index, item)| component(item, &format!("{place}[{index}]")));
    }
    let Value::Object(fields) = value else { return Ok(()) };
    let number = |name: &str| fields.get(name).and_then(Value::as_u64);
    match fields.get("type").and_then(Value::as_str) {
        Some("Precompiled") => {
            use base64::Engine;
            let rules = fields.get("precompiled_charsmap").and_then(Value::as_str).unwrap_or_default();
            let rules = base64::engine::general_purpose::STANDARD
                .decode(rules)
                .map_err(|error| Error::malformed(place, format!("precompiled_charsmap is not Base64: {error}")))?;
            Charsmap::parse(&rules, place)?;
        }
        Some("CTC") => return Err(Error::unsupported(place, "CTC decoders are for speech; they are not read")),
        Some("Strip") if number("stop").is_some_and(|stop| stop > 0) => {
            return Err(Error::unsupported(place, "a decoder that cuts the ends of tokens; `stop` may be 0"));
        }
        Some("FixedLength") if number("length") == Some(0) => {
            return Err(Error::malformed(place, "its pieces have no length"));
        }
        _ => {}
    }
    if let Some(pattern) = fields.get("pattern").and_then(|pattern| pattern.get("Regex")).and_then(Value::as_str) {
        check_pattern(pattern, place)?;
    }
    for (name, inner) in fields {
        component(inner, &format!("{place}.{name}"))?;
    }
    Ok(())
}

/// Refuses regular expressions that would grow out of bounds when they are compiled.
fn check_pattern(pattern: &str, place: &str) -> Result<(), Error> {
    if pattern.len() > LONGEST_PATTERN {
        let message = format!("a regular expression of {} bytes, at most {LONGEST_PATTERN} are read", pattern.len());
        return Err(Error::unsupported(place, message));
    }
    let mut copies = 1u64;
    for counted in pattern.split('{').skip(1) {
        let inside = counted.split('}').next().unwrap_or_default();
        let most = inside.split(',').filter_map(|number| number.trim().parse::<u64>().ok()).max();
        copies = copies.saturating_mul(most.unwrap_or(1).max(1));
    }
    if copies > MOST_REPETITIONS {
        let message = format!(
            "counted repetitions of a regular expression make {copies} copies, {MOST_REPETITIONS} are possible"
        );
        return Err(Error::unsupported(place, message));
    }
    Ok(())
}

/// Ids that a post-processor puts before and behind a text.
fn ends(processor: &Value) -> (Option<u32>, Option<u32>) {
    let field = |name: &str| processor.get(name);
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    let pair = |name: &str| field(name).and_then(|pair| id(pair.get(1)?));
    match field("type").and_then(Value::as_str) {
        Some("Sequence") => {
            let inner = field("processors").and_then(Value::as_array).into_iter().flatten().map(ends);
            inner.fold((None, None), |(bos, eos), (inner_bos, inner_eos)| (bos.or(inner_bos), eos.or(inner_eos)))
        }
        Some("BertProcessing" | "RobertaProcessing") => (pair("cls"), pair("sep")),
        Some("TemplateProcessing") => {
            let pieces: Vec<&Value> = field("single").and_then(Value::as_array).into_iter().flatten().collect();
            let special = |piece: &Value| {
                let name = piece.get("SpecialToken")?.get("id")?.as_str()?;
                id(field("special_tokens")?.get(name)?.get("ids")?.get(0)?)
            };
            let sequence = pieces.iter().position(|piece| piece.get("Sequence").is_some()).unwrap_or(pieces.len());
            let bos = pieces.iter().take(sequence).find_map(|piece| special(piece));
            (bos, pieces.iter().skip(sequence).find_map(|piece| special(piece)))
        }
        _ => (None, None),
    }
}
