//! Conversations: messages, tools and variables of a template.

use std::time::SystemTime;

use minijinja::Value;
use minijinja::value::ValueKind;

use super::Error;
use super::mask::is_name;

/// Message of a conversation.
#[derive(Clone, Debug)]
pub struct Message {
    pub(super) fields: Value,
}

/// Fields of a value that is a map.
pub(super) fn fields(value: &Value) -> impl Iterator<Item = (String, Value)> {
    let keys = value.try_iter().into_iter().flatten();
    keys.filter_map(|key| Some((key.as_str()?.to_owned(), value.get_item(&key).ok()?)))
}

fn parse(json: &str, place: &str) -> Result<Value, Error> {
    let wrong = |error: serde_json::Error| Error::Conversation { place: place.to_owned(), message: error.to_string() };
    serde_json::from_str(json).map_err(wrong)
}

impl Message {
    /// Makes a message of text.
    ///
    /// # Errors
    ///
    /// If the role is not a name of letters, digits, `_` and `-`: templates write roles next to special tokens.
    pub fn new(role: &str, content: &str) -> Result<Self, Error> {
        Self::of(Value::from_pairs([("role", role), ("content", content)]))
    }

    /// Reads a message from JSON: an object with `role`, `content` (a text or a list of parts) and whatever else the
    /// template reads, such as `tool_calls`.
    ///
    /// # Errors
    ///
    /// If it is not an object in JSON, or its role is not a name.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        Self::of(parse(json, "message")?)
    }

    fn of(fields: Value) -> Result<Self, Error> {
        let role = fields.get_attr("role").ok();
        if fields.kind() != ValueKind::Map || !role.as_ref().and_then(Value::as_str).is_some_and(is_name) {
            let message = "a message is an object with a `role` of letters, digits, `_` and `-`";
            return Err(Error::Conversation { place: "message".to_owned(), message: message.to_owned() });
        }
        Ok(Self { fields })
    }
}

/// Conversation to be rendered, and how.
#[derive(Clone, Debug)]
pub struct Conversation {
    pub(super) messages: Vec<Message>,
    pub(super) tools: Option<Value>,
    pub(super) add_generation_prompt: bool,
    pub(super) variables: Vec<(String, Value)>,
    pub(super) template: Option<String>,
    pub(super) now: Option<SystemTime>,
}

impl Conversation {
    /// Makes a conversation of messages; the prompt for the next one is added.
    pub fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        Self {
            messages: messages.into_iter().collect(),
            tools: None,
            add_generation_prompt: true,
            variables: Vec::new(),
            template: None,
            now: None,
        }
    }

    /// Adds a message.
    pub fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// Says whether the beginning of the next message is added, which a model goes on from.
    #[must_use]
    pub fn add_generation_prompt(mut self, add: bool) -> Self {
        self.add_generation_prompt = add;
        self
    }

    /// Sets the tools: a list of JSON schemas, in JSON.
    ///
    /// # Errors
    ///
    /// If it is not a list in JSON.
    pub fn tools(mut self, json: &str) -> Result<Self, Error> {
        let tools = parse(json, "tools")?;
        if tools.kind() != ValueKind::Seq {
            return Err(Error::Conversation { place: "tools".to_owned(), message: "a list is expected".to_owned() });
        }
        self.tools = Some(tools);
        Ok(self)
    }

    /// Sets a variable of the template, such as `enable_thinking`, to a value in JSON. Its text is data, like contents.
    ///
    /// # Errors
    ///
    /// If it is not JSON.
    pub fn variable(mut self, name: &str, json: &str) -> Result<Self, Error> {
        let value = parse(json, name)?;
        self.variables.retain(|(other, _)| other != name);
        self.variables.push((name.to_owned(), value));
        Ok(self)
    }

    /// Chooses one of several templates by name.
    #[must_use]
    pub fn template(mut self, name: &str) -> Self {
        self.template = Some(name.to_owned());
        self
    }

    /// Sets the time that a template is told, in UTC; otherwise it is that of rendering.
    #[must_use]
    pub fn at(mut self, now: SystemTime) -> Self {
        self.now = Some(now);
        self
    }
}
