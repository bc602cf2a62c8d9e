//! An answer of a model: text as it becomes certain, or events in JSON, then counts and times.

use std::io::Write;
use std::ops::ControlFlow;

use edgepack_llm::chat::ChatTemplate;
use edgepack_llm::sampling::Sampler;
use edgepack_llm::session;
use edgepack_llm::text::{self, End, Text, TextOptions};
use edgepack_llm::tokenizer::Tokenizer;
use serde_json::{Value, json};

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
    let mut failed = None;
    let made = text::generate(llm, sampler, tokenizer, prompt, options, |piece| {
        let told = match session.json {
            true => session.event(&json!({ "event": "text", "token": piece.token, "text": piece.text })),
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

/// A line about counts and times.
fn summary(made: &Text) -> String {
    let statistics = &made.statistics;
    let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
    let first = statistics.first_token.map_or("-".to_owned(), units::duration);
    format!(
        "prompt: {} tokens, {} a second; first token after {first}; {} new tokens, {} a second: {}",
        statistics.prompt_tokens,
        rate(statistics.prefill_rate()),
        statistics.new_tokens,
        rate(statistics.decode_rate()),
        reason(&made.end),
    )
}

/// The last event of a text.
fn end_event(made: &Text, quiet: bool) -> Value {
    let (reason, what) = match &made.end {
        End::StopToken(token) => ("stop_token", json!(token)),
        End::StopString(text) => ("stop_string", json!(text)),
        End::MaxNewTokens => ("max_new_tokens", json!(null)),
        End::ContextFull => ("context_full", json!(null)),
        _ => ("interrupted", json!(null)),
    };
    let statistics = &made.statistics;
    let mut event = json!({
        "event": "end",
        "reason": reason,
        "stop": what,
        "text": made.text,
        "prompt_tokens": statistics.prompt_tokens,
        "new_tokens": statistics.new_tokens,
    });
    if !quiet {
        event["seconds_to_first_token"] = json!(statistics.first_token.map(|time| time.as_secs_f64()));
        event["prefill_tokens_per_second"] = json!(statistics.prefill_rate());
        event["decode_tokens_per_second"] = json!(statistics.decode_rate());
    }
    event
}
