//! Chat templates: conversations become prompts, as `tokenizer_config.json` or a `.jinja` file says.
//!
//! ```
//! # #[cfg(feature = "tiktoken")] {
//! use edgepack_llm::chat::{ChatTemplate, Conversation, Message};
//! use edgepack_llm::tokenizer::from_bytes;
//!
//! let template = ChatTemplate::from_jinja(
//!     "{% for m in messages %}{{ m.content | trim }}<|eot_id|>{% endfor %}",
//! )?;
//! let conversation = Conversation::new([Message::new("user", " hi! ")?]);
//! assert_eq!(template.render(&conversation)?, "hi!<|eot_id|>");
//!
//! let tokenizer = from_bytes(b"aA== 0\naQ== 1\naGk= 2\nIQ== 3\n")?;
//! assert_eq!(template.encode(&conversation, &*tokenizer)?, [2, 3, 4 + 9]);
//! # }
//! # Ok::<(), edgepack_llm::chat::Error>(())
//! ```
//!
//! # Text of users never becomes a special token
//!
//! Contents, tools and variables are data, whatever they say. [`ChatTemplate::parts`] tells the text of the template, in
//! which special tokens are recognised, from text that came from the conversation, in which they are not:
//!
//! 1. The template is rendered as it is: this is the text that Hugging Face gives.
//! 2. It is rendered again with a private character for every character of the conversation, except white space. If this
//!    is the same text but for those characters, every character of the conversation is known, and marked as text.
//! 3. A template may look into contents (for `</think>`, say), and then it is not the same text. So the template is
//!    rendered with private characters for those that begin a special token, except where the conversation has a text
//!    that stands in quotes in the template and is neither the beginning nor a continuation of a special token. No
//!    special token can begin in text of the conversation then.
//! 4. If even this is another text, the template looks for special tokens in contents. It is then the text of step 3
//!    that counts: the template does as if contents held none.
//!
//! Roles are names, which no special token is.
//!
//! # Bounds
//!
//! Templates are untrusted: they load no other file, have a bounded length, nesting, number of instructions and amount
//! of text, and fail with an [`Error`].

mod config;
mod conversation;
mod engine;
mod error;
mod mask;
mod python;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::SystemTime;

use minijinja::Value;

pub use conversation::{Conversation, Message};
pub use error::Error;

use self::config::{Config, DEFAULT, TOOL_USE};
use self::conversation::fields;
use self::engine::{Engine, MOST_SOURCE};
use self::mask::{Mask, Rule, characters, literals};
use crate::tokenizer::{Part, SpecialTokens, Tokenizer};

/// Longest file that is read, in bytes: configurations list thousands of tokens.
const MOST_BYTES: u64 = 16 << 20;

/// Chat templates of a model.
#[derive(Debug)]
pub struct ChatTemplate {
    engine: Engine,
    config: Config,
}

impl ChatTemplate {
    /// Opens a `tokenizer_config.json` or a `.jinja` file, told apart by content: a configuration is an object in JSON
    /// with a `chat_template`.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or does not compile.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        use std::io::Read;
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
        Self::from_bytes(&bytes)
    }

    /// Reads what [`open`](Self::open) opens from the bytes of the file.
    ///
    /// # Errors
    ///
    /// If it is too long, or does not compile.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() as u64 > MOST_BYTES {
            return Err(Error::TooLong { bytes: bytes.len() as u64, most: MOST_BYTES });
        }
        // A template may begin with a brace, too, but is not JSON then.
        if serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
            return Self::from_config(bytes);
        }
        let source = std::str::from_utf8(bytes).map_err(|_| Error::Syntax("it is not text".to_owned()))?;
        Self::from_jinja(source)
    }

    /// Reads the templates and special tokens of a `tokenizer_config.json`.
    ///
    /// # Errors
    ///
    /// If it is not of its form, has no template, or one does not compile.
    pub fn from_config(json: &[u8]) -> Result<Self, Error> {
        if json.len() as u64 > MOST_BYTES {
            return Err(Error::TooLong { bytes: json.len() as u64, most: MOST_BYTES });
        }
        Self::new(Config::parse(json)?)
    }

    /// Reads a template. The tokens that it names are set by [`with_token`](Self::with_token).
    ///
    /// # Errors
    ///
    /// If it does not compile.
    pub fn from_jinja(source: &str) -> Result<Self, Error> {
        Self::new(Config { templates: vec![(DEFAULT.to_owned(), source.to_owned())], ..Config::default() })
    }

    fn new(config: Config) -> Result<Self, Error> {
        Ok(Self { engine: Engine::new(&config.templates)?, config })
    }

    /// Sets a token that the template names, such as `bos_token`.
    #[must_use]
    pub fn with_token(mut self, name: &str, text: &str) -> Self {
        self.config.tokens.insert(name.to_owned(), text.to_owned());
        self.config.special.push(text.to_owned());
        self
    }

    /// Names of the templates.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.config.templates.iter().map(|(name, _)| name.as_str())
    }

    /// Special tokens that the configuration names by their use, such as `eos_token`.
    pub fn token(&self, name: &str) -> Option<&str> {
        self.config.tokens.get(name).map(String::as_str)
    }

    /// Renders a conversation as one text, in which text of users cannot be told from the template's; see
    /// [`parts`](Self::parts).
    ///
    /// # Errors
    ///
    /// If the template refuses the conversation, fails, or takes too long.
    pub fn render(&self, conversation: &Conversation) -> Result<String, Error> {
        let (_, bytes) = letters(conversation)?;
        self.run(conversation, None, bytes, conversation.now.unwrap_or_else(SystemTime::now))
    }

    /// Renders a conversation as parts: text of the template, and text of the conversation, which never becomes one of
    /// the special tokens of the configuration or of `special`.
    ///
    /// # Errors
    ///
    /// As [`render`](Self::render).
    pub fn parts(&self, conversation: &Conversation, special: &[String]) -> Result<Vec<Part<String>>, Error> {
        let (found, bytes) = letters(conversation)?;
        let now = conversation.now.unwrap_or_else(SystemTime::now);
        let text = self.run(conversation, None, bytes, now)?;
        let mut special: Vec<String> = special.iter().chain(&self.config.special).cloned().collect();
        special.retain(|token| !token.trim().is_empty());
        special.sort();
        special.dedup();
        let sources = || self.config.templates.iter().map(|(_, source)| source.as_str());
        let taken: BTreeSet<char> =
            sources().chain(self.config.tokens.values().map(String::as_str)).flat_map(str::chars).collect();
        if let Some(mask) = Mask::new(&found, &taken)
            && let Ok(masked) = self.run(conversation, Some((&mask, &Rule::All)), bytes, now)
            && mask.without(&masked) == text
        {
            return Ok(split(&masked, &mask));
        }
        // Only characters that begin a special token, and those that could be taken for a stand-in.
        let private = |c: &&char| matches!(**c, '\u{f0000}'..='\u{10fffd}');
        let starts: BTreeSet<char> = special.iter().filter_map(|token| token.chars().next()).collect();
        let few = starts.iter().chain(found.iter().filter(private)).copied().collect();
        let mask = Mask::new(&few, &taken).ok_or_else(|| Error::Conversation {
            place: "messages".to_owned(),
            message: "there are too many different private characters".to_owned(),
        })?;
        let literals: Vec<String> = sources().flat_map(|source| literals(source, &special)).collect();
        let rule = Rule::Starts { special: &special, literals: &literals };
        let masked = self.run(conversation, Some((&mask, &rule)), bytes, now)?;
        Ok(split(&masked, &mask))
    }

    /// Renders and encodes a conversation; text of users never becomes a special token of the tokenizer.
    ///
    /// # Errors
    ///
    /// As [`render`](Self::render), and if the text cannot be encoded.
    pub fn encode(&self, conversation: &Conversation, tokenizer: &dyn Tokenizer) -> Result<Vec<u32>, Error> {
        let special: Vec<String> = tokenizer.special_tokens().into_iter().map(|(token, _)| token).collect();
        let parts = self.parts(conversation, &special)?;
        let parts: Vec<Part<&str>> =
            parts.iter().map(|part| Part { text: part.text.as_str(), special: part.special }).collect();
        Ok(tokenizer.encode_parts(&parts)?)
    }

    /// Name of the template of a conversation.
    fn name<'n>(&'n self, conversation: &'n Conversation) -> Result<&'n str, Error> {
        let has = |name: &str| self.names().any(|other| other == name);
        let name = match &conversation.template {
            Some(name) => name.as_str(),
            None if conversation.tools.is_some() && has(TOOL_USE) => TOOL_USE,
            None => DEFAULT,
        };
        if has(name) {
            return Ok(name);
        }
        let names = self.names().collect::<Vec<_>>().join(", ");
        Err(Error::NoTemplate { name: name.to_owned(), names })
    }

    fn run(
        &self,
        conversation: &Conversation,
        mask: Option<(&Mask, &Rule<'_>)>,
        bytes: usize,
        now: SystemTime,
    ) -> Result<String, Error> {
        let masked = |value: &Value| match mask {
            Some((mask, rule)) => mask.value(value, rule).map_err(|error| Error::Render(error.to_string())),
            None => Ok(value.clone()),
        };
        let mut context: BTreeMap<String, Value> = BTreeMap::new();
        for (name, value) in &conversation.variables {
            context.insert(name.clone(), masked(value)?);
        }
        for (name, text) in &self.config.tokens {
            context.insert(name.clone(), Value::from(text.as_str()));
        }
        let message = |message: &Message| -> Result<Value, Error> {
            let field = |(name, value): (String, Value)| {
                let value = if name == "role" { value } else { masked(&value)? };
                Ok((name, value))
            };
            let fields = fields(&message.fields).map(field).collect::<Result<Vec<_>, Error>>()?;
            Ok(Value::from_pairs(fields))
        };
        let messages: Vec<Value> = conversation.messages.iter().map(message).collect::<Result<_, _>>()?;
        context.insert("messages".to_owned(), Value::from(messages));
        let tools = conversation.tools.as_ref().map(masked).transpose()?;
        context.insert("tools".to_owned(), tools.unwrap_or_else(|| Value::from(())));
        context.entry("documents".to_owned()).or_insert_with(|| Value::from(()));
        context.insert("add_generation_prompt".to_owned(), Value::from(conversation.add_generation_prompt));
        self.engine.render(self.name(conversation)?, Value::from_pairs(context), bytes, now)
    }
}

/// Characters of a conversation, and its bytes.
fn letters(conversation: &Conversation) -> Result<(BTreeSet<char>, usize), Error> {
    let (mut found, mut bytes) = (BTreeSet::new(), 0usize);
    let messages = conversation.messages.iter().map(|message| &message.fields);
    let variables = conversation.variables.iter().map(|(_, value)| value);
    for value in messages.chain(&conversation.tools).chain(variables) {
        characters(value, &mut found, &mut bytes).map_err(|error| Error::Render(error.to_string()))?;
    }
    Ok((found, bytes))
}

/// Divides a text at the borders of characters that stand for others.
fn split(masked: &str, mask: &Mask) -> Vec<Part<String>> {
    let mut parts: Vec<Part<String>> = Vec::new();
    for c in masked.chars() {
        let (c, special) = match mask.original(c) {
            Some(original) => (original, SpecialTokens::AsText),
            None => (c, SpecialTokens::Recognised),
        };
        match parts.last_mut() {
            Some(part) if part.special == special => part.text.push(c),
            _ => parts.push(Part { text: String::from(c), special }),
        }
    }
    parts
}

// A template is compiled once and used by many.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<ChatTemplate>();
};

const _: () = assert!(MOST_SOURCE as u64 <= MOST_BYTES);
