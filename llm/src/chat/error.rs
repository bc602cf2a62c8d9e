//! Reasons a template is not read, or a conversation not rendered.

/// Error of a chat template.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file is longer than is read.
    #[error("the template has {bytes} bytes, at most {most} are read")]
    TooLong {
        /// Bytes of the file.
        bytes: u64,
        /// The most that is read.
        most: u64,
    },
    /// The configuration is not JSON, or not of its form.
    #[error("tokenizer configuration: {0}")]
    Config(String),
    /// The template does not compile.
    #[error("the template does not compile: {0}")]
    Syntax(String),
    /// There is no template of this name.
    #[error("there is no template `{name}`; there are: {names}")]
    NoTemplate {
        /// Name that was asked for.
        name: String,
        /// Names there are.
        names: String,
    },
    /// The template itself refuses the conversation.
    #[error("the template refuses the conversation: {0}")]
    Refused(String),
    /// The template takes too long, or makes too much text.
    #[error("the template takes too long or makes too much text for a conversation of {bytes} bytes")]
    Exhausted {
        /// Bytes of the conversation.
        bytes: usize,
    },
    /// The template fails.
    #[error("the template fails: {0}")]
    Render(String),
    /// A message or a tool is not of its form.
    #[error("{place}: {message}")]
    Conversation {
        /// Message, tool or variable.
        place: String,
        /// Description of the problem.
        message: String,
    },
    /// The text could not be encoded.
    #[error(transparent)]
    Tokenizer(#[from] crate::tokenizer::Error),
}
