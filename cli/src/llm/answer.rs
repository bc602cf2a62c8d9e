//! An answer of a model: text as it becomes certain, or events in JSON, then counts and times.

use std::io::Write;
use std::ops::ControlFlow;

use edgepack_llm::chat::ChatTemplate;
use edgepack_llm::sampling::Sampler;
use edgepack_llm::session;
use edgepack_llm::text::{self, End, Text, TextOptions};
use edgepack_llm::tokenizer::Tokenizer;
use serde::Serialize;

use crate::session::Session;
use crate::status::Failure;
use crate::units;

/// Runs a prompt and writes the answer while it is made; `quiet` leaves the line of counts and rates out,
/// and times out of the last event.
pub fn answer(
    llm: &mut session::Session,
    sampler: &mut Sampler,
    tokenizer: &dyn Tokenizer,
    prompt: &[u32],
    options: &TextOptions,
    quiet: bool,
    session: &mut Session,
) -> Result<Text, Failure> {
    if session.json {
        let schema = session.schema();
        session.event(&Event::Start { prompt_tokens: prompt.len(), schema })?;
    }
    let mut failed = None;
    let made = text::generate(llm, sampler, tokenizer, prompt, options, |piece| {
        let told = match session.json {
            true => session.event(&Event::Text { text: piece.text, token: piece.token }),
            false => show(piece.text, session),
        };
        match told {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                failed = Some(failure);
                ControlFlow::Break(())
            }
        }
    })?;
    if let Some(failure) = failed {
        return Err(failure);
    }
    match session.json {
        true => session.event(&end_event(&made, quiet))?,
        false => {
            writeln!(session.out)?;
            session.out.flush()?;
            if !quiet {
                writeln!(session.err, "{}", summary(&made))?;
            }
        }
    }
    Ok(made)
}

/// Writes text at once.
fn show(text: &str, session: &mut Session) -> Result<(), Failure> {
    if text.is_empty() {
        return Ok(());
    }
    session.out.write_all(text.as_bytes())?;
    Ok(session.out.flush()?)
}

/// Token that a configuration of a tokenizer says turns end with.
pub fn end_of_turn(template: &ChatTemplate, tokenizer: &dyn Tokenizer) -> Option<u32> {
    tokenizer.id(template.token("eos_token")?.as_bytes())
}

fn reason(end: &End) -> String {
    match end {
        End::StopToken(token) => format!("token {token} ended it"),
        End::StopString(text) => format!("{text:?} ended it"),
        End::MaxNewTokens => "as many as asked for".to_owned(),
        End::ContextFull => "the context is full".to_owned(),
        End::Cancelled | End::Callback => "interrupted".to_owned(),
        _ => "ended".to_owned(),
    }
}

/// A line of the output as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum Event<'a> {
    /// The first line of an answer.
    Start {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Schema of the lines.
        schema: String,
    },
    /// A token, with the text that it completes.
    Text {
        /// Text; empty while a character is incomplete.
        text: &'a str,
        /// The token; absent for text that is left at the end.
        token: Option<u32>,
    },
    /// The last line of an answer.
    End {
        /// Tokens that were made.
        new_tokens: usize,
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Reason of the end: `stop_token`, `stop_string`, `max_new_tokens`, `context_full`, `interrupted`.
        reason: &'static str,
        /// The token or text that ended it.
        stop: Option<Stop<'a>>,
        /// The whole text.
        text: &'a str,
        /// Times, unless they are not wanted.
        #[serde(flatten)]
        times: Option<Times>,
    },
}

/// End of a text.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum Stop<'a> {
    /// A token.
    Token(u32),
    /// Text.
    Text(&'a str),
}

/// Times of a text.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Times {
    /// Tokens per second, one after another.
    decode_tokens_per_second: Option<f64>,
    /// Tokens of the prompt per second.
    prefill_tokens_per_second: Option<f64>,
    /// Seconds up to the first token.
    seconds_to_first_token: Option<f64>,
}

/// A line about counts and times.
fn summary(made: &Text) -> String {
    let statistics = &made.statistics;
    let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
    let first = statistics.first_token.map_or("-".to_owned(), units::duration);
    format!(
        "prompt: {}, {} a second; first token after {first}; {}, {} a second: {}",
        units::count(statistics.prompt_tokens, "token"),
        rate(statistics.prefill_rate()),
        units::count(statistics.new_tokens, "new token"),
        rate(statistics.decode_rate()),
        reason(&made.end),
    )
}

/// The last event of a text.
fn end_event(made: &Text, quiet: bool) -> Event<'_> {
    let (reason, stop) = match &made.end {
        End::StopToken(token) => ("stop_token", Some(Stop::Token(*token))),
        End::StopString(text) => ("stop_string", Some(Stop::Text(text))),
        End::MaxNewTokens => ("max_new_tokens", None),
        End::ContextFull => ("context_full", None),
        _ => ("interrupted", None),
    };
    let statistics = &made.statistics;
    let times = (!quiet).then(|| Times {
        decode_tokens_per_second: statistics.decode_rate(),
        prefill_tokens_per_second: statistics.prefill_rate(),
        seconds_to_first_token: statistics.first_token.map(|time| time.as_secs_f64()),
    });
    let (new_tokens, prompt_tokens) = (statistics.new_tokens, statistics.prompt_tokens);
    Event::End { new_tokens, prompt_tokens, reason, stop, text: &made.text, times }
}
