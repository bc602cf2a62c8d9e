//! `tokenizer_config.json`: templates, and the special tokens that templates name.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

use super::Error;

/// Name of the template that is used unless another is asked for.
pub(super) const DEFAULT: &str = "default";
/// Name of the template that is used for conversations with tools, where there is one.
pub(super) const TOOL_USE: &str = "tool_use";

/// Templates and tokens of a configuration.
#[derive(Debug, Default)]
pub(super) struct Config {
    /// Names and sources.
    pub templates: Vec<(String, String)>,
    /// Variables such as `bos_token`.
    pub tokens: BTreeMap<String, String>,
    /// All special tokens.
    pub special: Vec<String>,
}

/// Value of a field: a text, an object with one, or anything else.
#[derive(Deserialize)]
#[serde(untagged)]
enum Token {
    Text(String),
    Object { content: String },
    Other(IgnoredAny),
}

impl Token {
    fn text(self) -> Option<String> {
        match self {
            Self::Text(text) | Self::Object { content: text } => Some(text),
            Self::Other(_) => None,
        }
    }
}

#[derive(Deserialize)]
struct Named {
    name: String,
    template: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Templates {
    One(String),
    Several(Vec<Named>),
}

#[derive(Deserialize)]
struct Added {
    content: String,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    chat_template: Option<Templates>,
    #[serde(default)]
    added_tokens_decoder: BTreeMap<String, Added>,
    #[serde(default)]
    additional_special_tokens: Option<Vec<Token>>,
    #[serde(flatten)]
    rest: BTreeMap<String, Token>,
}

impl Config {
    /// Reads a configuration.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let document: Document = serde_json::from_slice(bytes).map_err(|error| Error::Config(error.to_string()))?;
        let templates = match document.chat_template {
            None => return Err(Error::Config("it has no `chat_template`".to_owned())),
            Some(Templates::One(source)) => vec![(DEFAULT.to_owned(), source)],
            Some(Templates::Several(named)) => named.into_iter().map(|named| (named.name, named.template)).collect(),
        };
        if templates.is_empty() {
            return Err(Error::Config("`chat_template` is an empty list".to_owned()));
        }
        let named = document.rest.into_iter().filter(|(name, _)| name.ends_with("_token"));
        let tokens: BTreeMap<String, String> = named.filter_map(|(name, token)| Some((name, token.text()?))).collect();
        let added = document.added_tokens_decoder.into_values().filter(|token| token.special);
        let more = document.additional_special_tokens.into_iter().flatten().filter_map(Token::text);
        let special = added.map(|token| token.content).chain(tokens.values().cloned()).chain(more).collect();
        Ok(Self { templates, tokens, special })
    }
}
