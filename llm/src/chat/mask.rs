//! Characters of contents that stand for others while a template is rendered, so that they are known again afterwards.
//!
//! Stand-ins are characters of the private planes that neither the template nor its tokens contain, one for each
//! character. White space stands for itself, so that templates trim and divide contents as they would.

use std::collections::{BTreeSet, HashMap};

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

/// Characters with stand-ins.
#[derive(Debug, Default)]
pub(super) struct Mask {
    to: HashMap<char, char>,
    back: HashMap<char, char>,
}

/// Rule by which characters are replaced.
#[derive(Debug)]
pub(super) enum Rule<'a> {
    /// All but white space.
    All,
    /// Those that a special token begins with, unless the template itself has the text that begins there.
    Starts { special: &'a [String], literals: &'a [String] },
}

impl Mask {
    /// Assigns stand-ins to the characters of contents; `None` if there are more than private characters.
    pub fn new(characters: &BTreeSet<char>, taken: &BTreeSet<char>) -> Option<Self> {
        let free = ('\u{f0000}'..='\u{ffffd}').chain('\u{100000}'..='\u{10fffd}');
        let mut free = free.filter(|c| !taken.contains(c));
        let mut mask = Self::default();
        for c in characters {
            let stand_in = free.next()?;
            mask.to.insert(*c, stand_in);
            mask.back.insert(stand_in, *c);
        }
        Some(mask)
    }

    /// Text with stand-ins.
    fn text(&self, text: &str, rule: &Rule<'_>) -> String {
        let stand_in = |c: char| self.to.get(&c).copied().unwrap_or(c);
        match rule {
            Rule::All => text.chars().map(|c| if c.is_whitespace() { c } else { stand_in(c) }).collect(),
            Rule::Starts { special, literals } => {
                let starts = |c: char| special.iter().any(|token| token.starts_with(c));
                let spared = |at: usize| literals.iter().any(|literal| text[at..].starts_with(literal.as_str()));
                // A private character that stands for another is never text itself.
                let replace = |at: usize, c: char| self.back.contains_key(&c) || starts(c) && !spared(at);
                text.char_indices().map(|(at, c)| if replace(at, c) { stand_in(c) } else { c }).collect()
            }
        }
    }

    /// Value with stand-ins in all its texts, and in keys that are not names.
    pub fn value(&self, value: &Value, rule: &Rule<'_>) -> Result<Value, Error> {
        Ok(match value.kind() {
            ValueKind::String => Value::from(self.text(value.as_str().unwrap_or_default(), rule)),
            ValueKind::Seq => {
                value.try_iter()?.map(|item| self.value(&item, rule)).collect::<Result<Value, Error>>()?
            }
            ValueKind::Map => {
                let mut entries = Vec::new();
                for key in value.try_iter()? {
                    let inner = self.value(&value.get_item(&key)?, rule)?;
                    let is_name = key.as_str().is_some_and(is_name);
                    entries.push((if is_name { key } else { self.value(&key, rule)? }, inner));
                }
                Value::from_pairs(entries)
            }
            _ => value.clone(),
        })
    }

    /// Character that this one stands for.
    pub fn original(&self, c: char) -> Option<char> {
        self.back.get(&c).copied()
    }

    /// Text without stand-ins.
    pub fn without(&self, text: &str) -> String {
        text.chars().map(|c| self.original(c).unwrap_or(c)).collect()
    }
}

/// Whether a text is a name: no special token is one.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 128
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Collects the characters of all texts in a value, and their bytes.
pub(super) fn characters(value: &Value, found: &mut BTreeSet<char>, bytes: &mut usize) -> Result<(), Error> {
    match value.kind() {
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            *bytes = bytes.saturating_add(text.len());
            found.extend(text.chars());
        }
        ValueKind::Seq => {
            for item in value.try_iter()? {
                characters(&item, found, bytes)?;
            }
        }
        ValueKind::Map => {
            for key in value.try_iter()? {
                characters(&key, found, bytes)?;
                characters(&value.get_item(&key)?, found, bytes)?;
            }
        }
        _ => *bytes = bytes.saturating_add(8),
    }
    Ok(())
}

/// Texts in quotes in a template that no special token begins with, and that begin no special token.
pub(super) fn literals(source: &str, special: &[String]) -> Vec<String> {
    let mut found = BTreeSet::new();
    for quote in ['\'', '"'] {
        for text in source.split(quote).filter(|text| !text.is_empty() && text.len() <= 64) {
            if special.iter().all(|token| !token.starts_with(text) && !text.starts_with(token.as_str())) {
                found.insert(text.to_owned());
            }
        }
    }
    found.into_iter().filter(|text| special.iter().any(|token| text.chars().next() == token.chars().next())).collect()
}
