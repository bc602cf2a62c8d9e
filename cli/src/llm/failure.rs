//! Errors of language models as ends of a command.

use edgepack_llm::{chat, error, text, tokenizer};

use crate::status::Failure;

impl From<error::Error> for Failure {
    fn from(error: error::Error) -> Self {
        match error {
            error::Error::Program(error) => error.into(),
            error::Error::Load { method, error } => Failure::from(*error).about(&format!("method `{method}`")),
            error::Error::Run { method, error } => Failure::from(*error).about(&format!("method `{method}`")),
            error::Error::Sample(edgepack_llm::sampling::SampleError::Setting { .. }) => Failure::usage(error),
            error::Error::Saved(_) => Failure::findings(error),
            error::Error::Io(_) => Failure::unreadable(error),
            error => Failure::cannot_run(error),
        }
    }
}

impl From<tokenizer::Error> for Failure {
    fn from(error: tokenizer::Error) -> Self {
        use tokenizer::Error as Tokenizer;
        match error {
            Tokenizer::Io(_) | Tokenizer::UnknownKind | Tokenizer::TooLong { .. } => Failure::unreadable(error),
            Tokenizer::Malformed { .. } => Failure::findings(error),
            error => Failure::cannot_run(error),
        }
    }
}

impl From<chat::Error> for Failure {
    fn from(error: chat::Error) -> Self {
        match error {
            chat::Error::Tokenizer(error) => error.into(),
            chat::Error::Io(_) | chat::Error::TooLong { .. } => Failure::unreadable(error),
            chat::Error::Config(_) | chat::Error::Syntax(_) => Failure::findings(error),
            chat::Error::NoTemplate { .. } => Failure::usage(error),
            error => Failure::cannot_run(error),
        }
    }
}

impl From<text::Error> for Failure {
    fn from(error: text::Error) -> Self {
        match error {
            text::Error::Model(error) => error.into(),
            text::Error::Tokenizer(error) => error.into(),
            error => Failure::usage(error),
        }
    }
}
