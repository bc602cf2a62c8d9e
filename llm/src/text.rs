//! Text from a language model: tokens of a prompt go in, text comes out as it becomes certain.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//!
//! use edgepack_llm::model::{Model, Options};
//! use edgepack_llm::sampling::{Sampler, Settings};
//! use edgepack_llm::text::{self, TextOptions};
//! use edgepack_llm::tokenizer;
//!
//! # fn demo(registry: &edgepack_executor::Registry) -> Result<(), Box<dyn std::error::Error>> {
//! let model = Model::open("model.pte", registry, &Options::default())?;
//! let tokenizer = tokenizer::open("tokenizer.json")?;
//! let mut session = model.session()?;
//! let mut sampler = Sampler::new(model.vocabulary(), Settings::default())?;
//! let prompt = text::prompt(&model, &*tokenizer, "Once upon a time", tokenizer::SpecialTokens::AsText)?;
//! let options = TextOptions { max_new_tokens: Some(64), ..TextOptions::of(&model, &*tokenizer) };
//! text::generate(&mut session, &mut sampler, &*tokenizer, &prompt, &options, |piece| {
//!     print!("{}", piece.text);
//!     ControlFlow::Continue(())
//! })?;
//! # Ok(())
//! # }
//! ```

use std::ops::ControlFlow;

use crate::error::Error as ModelError;
use crate::generate::{self, Cancel, Statistics};
use crate::model::Model;
use crate::sampling::Sampler;
use crate::session::Session;
use crate::stop::{StopError, StopStrings};
use crate::tokenizer::{self, Kind, ShowSpecial, SpecialTokens, Tokenizer};

/// Reason for which no text, or no more, could be generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The model, its session or the sampler failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The tokenizer has no text for a token, or no tokens for a text.
    #[error("the tokenizer: {0}")]
    Tokenizer(#[from] tokenizer::Error),
    /// A stop string that cannot be searched for.
    #[error(transparent)]
    Stop(#[from] StopError),
}

/// Limits and endings of a text.
#[derive(Clone, Debug)]
pub struct TextOptions {
    /// Tokens to generate at most; `None` for as many as the context has room for.
    pub max_new_tokens: Option<usize>,
    /// Tokens that end the text; they give no text themselves.
    pub stop_tokens: Vec<u32>,
    /// Strings that end the text; they are no part of it, nor is anything behind them.
    pub stop_strings: Vec<String>,
    /// Use of special tokens other than those that end the text.
    pub special: ShowSpecial,
    /// Handle by which any thread can end the text.
    pub cancel: Option<Cancel>,
}

impl TextOptions {
    /// Options that end the text with the tokens that the model's metadata or the tokenizer's file name as ends.
    pub fn of(model: &Model, tokenizer: &dyn Tokenizer) -> Self {
        let mut stop_tokens = model.metadata().eos_ids.clone();
        stop_tokens.extend(tokenizer.eos());
        stop_tokens.sort_unstable();
        stop_tokens.dedup();
        TextOptions {
            max_new_tokens: None,
            stop_tokens,
            stop_strings: Vec::new(),
            special: ShowSpecial::Hidden,
            cancel: None,
        }
    }
}

/// Text that became certain.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Token after which it did; `None` for what the end of the text sets free.
    pub token: Option<u32>,
    /// The text; empty while a character or a stop string may go on.
    pub text: &'a str,
}

/// Reason for which a text ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum End {
    /// This token.
    StopToken(u32),
    /// This string.
    StopString(String),
    /// As many tokens as asked for.
    MaxNewTokens,
    /// There is no room for another token.
    ContextFull,
    /// The callback said so.
    Callback,
    /// The handle was used.
    Cancelled,
}

/// Result of a generation.
#[derive(Clone, PartialEq, Debug)]
pub struct Text {
    /// All text, as the pieces have it.
    pub text: String,
    /// Reason of the end.
    pub end: End,
    /// Counts and times.
    pub statistics: Statistics,
}

/// Token that texts begin with: the one that the tokenizer's file says. Files of ranks and those of llama2.c do not say:
/// with these it is the one that the model's metadata names, if any.
pub fn first_token(model: &Model, tokenizer: &dyn Tokenizer) -> Option<u32> {
    match tokenizer.kind() {
        Kind::Tiktoken | Kind::Llama2c => tokenizer.bos().or(model.metadata().bos_id),
        _ => tokenizer.bos(),
    }
}

/// Encodes a prompt, with the [`first_token`] in front.
///
/// # Errors
///
/// As of [`Tokenizer::encode`].
pub fn prompt(
    model: &Model,
    tokenizer: &dyn Tokenizer,
    text: &str,
    special: SpecialTokens,
) -> Result<Vec<u32>, tokenizer::Error> {
    let mut ids: Vec<u32> = first_token(model, tokenizer).into_iter().collect();
    ids.extend(tokenizer.encode(text, special)?);
    Ok(ids)
}

/// Ids of a model's vocabulary that a tokenizer has no token for: a sampler must ban them, since they have no text. Models
/// are often made with more ids than their tokenizer uses.
pub fn without_token(model: &Model, tokenizer: &dyn Tokenizer) -> Vec<u32> {
    let vocabulary = u32::try_from(model.vocabulary()).unwrap_or(u32::MAX);
    (0..vocabulary).filter(|id| tokenizer.token(*id).is_none()).collect()
}

/// Goes back to where the session's tokens and those of a whole prompt begin to differ, and returns how many tokens of the
/// prompt the session has. At least one is left to be run. Prompts of a conversation repeat what was said before: only what
/// is new is computed.
///
/// # Errors
///
/// As of [`Session::rewind`].
pub fn rewind_to_common(session: &mut Session, prompt: &[u32]) -> Result<usize, ModelError> {
    let equal = session.tokens().iter().zip(prompt).take_while(|(have, want)| have == want).count();
    let common = equal.min(prompt.len().saturating_sub(1));
    if common < session.position() {
        session.rewind(common)?;
    }
    Ok(common)
}

/// Runs a prompt, then gives text to a callback as it becomes certain, until one of the options or the callback ends it.
/// Afterwards the session has tokens as after [`generate::generate`].
///
/// # Errors
///
/// A stop string that is empty or too long; as of [`generate::generate`]; a token without text (see [`without_token`]).
pub fn generate(
    session: &mut Session,
    sampler: &mut Sampler,
    tokenizer: &dyn Tokenizer,
    prompt: &[u32],
    options: &TextOptions,
    mut callback: impl FnMut(Piece<'_>) -> ControlFlow<()>,
) -> Result<Text, Error> {
    let mut stop = StopStrings::new(options.stop_strings.iter().map(String::as_str))?;
    let mut decoder = tokenizer.decoder(options.special);
    let mut text = String::new();
    let mut failed = None;
    let mut told_to_end = false;
    let tokens = generate::Options {
        max_new_tokens: options.max_new_tokens,
        stop: options.stop_tokens.clone(),
        cancel: options.cancel.clone(),
    };
    let statistics = generate::generate(session, sampler, prompt, &tokens, |token| {
        if options.stop_tokens.contains(&token) {
            return ControlFlow::Continue(());
        }
        let certain = match decoder.push(token) {
            Ok(decoded) => stop.push(&decoded),
            Err(error) => {
                failed = Some(error);
                return ControlFlow::Break(());
            }
        };
        text.push_str(&certain);
        told_to_end = callback(Piece { token: Some(token), text: &certain }).is_break();
        if told_to_end || stop.met().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    if stop.met().is_none() && !told_to_end {
        let mut rest = stop.push(&decoder.finish()?);
        if stop.met().is_none() {
            rest.push_str(&stop.finish());
        }
        text.push_str(&rest);
        if !rest.is_empty() {
            // It is the last piece: there is nothing left to end.
            let _ = callback(Piece { token: None, text: &rest });
        }
    }
    let end = match (statistics.end, stop.met()) {
        (_, Some(string)) => End::StopString(string.to_owned()),
        (generate::End::Stop(token), _) => End::StopToken(token),
        (generate::End::MaxNewTokens, _) => End::MaxNewTokens,
        (generate::End::ContextFull, _) => End::ContextFull,
        (generate::End::Callback, _) => End::Callback,
        (generate::End::Cancelled, _) => End::Cancelled,
    };
    Ok(Text { text, end, statistics })
}
