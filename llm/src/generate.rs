//! The loop: prompt in, tokens out one by one, until something ends it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::sampling::{Constraint, Sampler};
use crate::session::Session;

/// Limits of one generation. The default ends it with the context.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Tokens to generate at most; `None` for as many as there is room for.
    pub max_new_tokens: Option<usize>,
    /// Tokens that end the text. They are told and counted, and not run.
    pub stop: Vec<u32>,
    /// Handle by which any thread can end the generation, between two calls of the model.
    pub cancel: Option<Cancel>,
}

/// A handle that ends a generation. Clones are handles of the same.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A handle that was not used yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the generation, after the call of the model that is under way.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether it was used.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Makes it as new.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Reason for which a generation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum End {
    /// A stop token came; this one.
    Stop(u32),
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
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Statistics {
    /// Reason of the end.
    pub end: End,
    /// Tokens of the prompt that were run.
    pub prompt_tokens: usize,
    /// Tokens that were generated, a stop token among them.
    pub new_tokens: usize,
    /// The last new token, if it was not run: it is not part of the session. To go on behind it, put it in front of the
    /// next prompt.
    pub pending: Option<u32>,
    /// Time that the prompt took.
    pub prefill: Duration,
    /// Time from the start to the first new token; `None` if there was none.
    pub first_token: Option<Duration>,
    /// Time from the first new token to the last.
    pub decode: Duration,
}

impl Statistics {
    /// Tokens of the prompt per second; `None` if there were none.
    pub fn prefill_rate(&self) -> Option<f64> {
        rate(self.prompt_tokens, self.prefill)
    }

    /// Tokens per second after the first new one; `None` if there were none.
    pub fn decode_rate(&self) -> Option<f64> {
        rate(self.new_tokens.saturating_sub(1), self.decode)
    }
}

fn rate(count: usize, time: Duration) -> Option<f64> {
    (count > 0 && !time.is_zero()).then(|| count as f64 / time.as_secs_f64())
}

/// Runs a prompt, then samples token after token and tells each to `callback`, which can end it.
///
/// The prompt may be empty if the session has logits: generation goes on. Afterwards the session has the prompt and the new
/// tokens, but for one that no call of the model came after ([`Statistics::pending`]). If the callback panics, the session
/// has the tokens so far and can be used further.
///
/// # Errors
///
/// As of [`Session::prefill`] and [`Sampler::sample`]. The session stays as it was after the last token that was run.
///
/// ```
/// # use std::ops::ControlFlow;
/// # use edgepack_llm::{generate, sampling::Sampler, session::Session};
/// # fn demo(session: &mut Session, sampler: &mut Sampler) -> Result<(), edgepack_llm::error::Error> {
/// let options = generate::Options { max_new_tokens: Some(100), stop: vec![2], ..Default::default() };
/// let statistics = generate::generate(session, sampler, &[1, 15, 27], &options, |token| {
///     println!("{token}");
///     ControlFlow::Continue(())
/// })?;
/// println!("{:?} after {} tokens", statistics.end, statistics.new_tokens);
/// # Ok(())
/// # }
/// ```
pub fn generate(
    session: &mut Session,
    sampler: &mut Sampler,
    prompt: &[u32],
    options: &Options,
    callback: impl FnMut(u32) -> ControlFlow<()>,
) -> Result<Statistics, Error> {
    run(session, sampler, None, prompt, options, callback)
}

/// Generates as [`generate`] does, only tokens that a constraint allows.
///
/// # Errors
///
/// As of [`generate`].
pub fn generate_constrained(
    session: &mut Session,
    sampler: &mut Sampler,
    constraint: &mut dyn Constraint,
    prompt: &[u32],
    options: &Options,
    callback: impl FnMut(u32) -> ControlFlow<()>,
) -> Result<Statistics, Error> {
    run(session, sampler, Some(constraint), prompt, options, callback)
}

fn run(
    session: &mut Session,
    sampler: &mut Sampler,
    mut constraint: Option<&mut dyn Constraint>,
    prompt: &[u32],
    options: &Options,
    mut callback: impl FnMut(u32) -> ControlFlow<()>,
) -> Result<Statistics, Error> {
    let start = Instant::now();
    let cancelled = || options.cancel.as_ref().is_some_and(Cancel::is_cancelled);
    let mut statistics = Statistics {
        end: End::MaxNewTokens,
        prompt_tokens: 0,
        new_tokens: 0,
        pending: None,
        prefill: Duration::ZERO,
        first_token: None,
        decode: Duration::ZERO,
    };
    if prompt.is_empty() && session.logits().is_none() {
        return Err(Error::Empty);
    }
    session.check(prompt)?;
    for piece in prompt.chunks(session.chunk()) {
        if cancelled() {
            statistics.end = End::Cancelled;
            break;
        }
        session.prefill(piece)?;
        statistics.prompt_tokens += piece.len();
    }
    statistics.prefill = start.elapsed();
    if statistics.end == End::Cancelled {
        return Ok(statistics);
    }
    statistics.end = loop {
        if options.max_new_tokens.is_some_and(|most| statistics.new_tokens >= most) {
            break End::MaxNewTokens;
        }
        if cancelled() {
            break End::Cancelled;
        }
        let logits = session.logits().ok_or(Error::Empty)?;
        let token = match &mut constraint {
            Some(constraint) => sampler.sample_constrained(logits, session.tokens(), *constraint)?,
            None => sampler.sample(logits, session.tokens())?,
        };
        statistics.new_tokens += 1;
        let now = start.elapsed();
        let first = *statistics.first_token.get_or_insert(now);
        statistics.decode = now - first;
        statistics.pending = Some(token);
        let told = callback(token);
        if options.stop.contains(&token) {
            break End::Stop(token);
        }
        if told.is_break() {
            break End::Callback;
        }
        if session.room() == 0 {
            break End::ContextFull;
        }
        if options.max_new_tokens.is_some_and(|most| statistics.new_tokens >= most) {
            break End::MaxNewTokens;
        }
        session.decode(token)?;
        statistics.pending = None;
    };
    Ok(statistics)
}
