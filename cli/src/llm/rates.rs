//! Tokens per second of a model: prompts of several lengths, and single tokens behind them.

use std::io::{self, Write};
use std::time::Duration;

use edgepack_llm::error::Error;
use edgepack_llm::model::Model;
use edgepack_llm::session;
use serde::Serialize;
use web_time::Instant;

use crate::formats::Memory;
use crate::status::Failure;
use crate::table::{Align, Columns};
use crate::units;

/// Single tokens that are measured behind a prompt.
const SINGLE: usize = 32;

/// Speed of a model.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Rates {
    file: String,
    threads: Option<u16>,
    context: usize,
    vocabulary: usize,
    open_ns: u64,
    session_ns: u64,
    lengths: Vec<Rate>,
    memory: Vec<(String, Memory)>,
}

/// Speed at one length of the prompt, the best of some repetitions.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Rate {
    prompt: usize,
    prefill_tokens_per_second: f64,
    /// Time from the start of the prompt to the first new token.
    first_token_ns: u64,
    /// Tokens behind the prompt that were measured, one at a time.
    single: usize,
    decode_tokens_per_second: Option<f64>,
}

/// Measures prompts of 16 tokens, 64, 256 and so on, as far as the context has room, for `time` at each length. Tokens are
/// arbitrary.
pub fn rates(
    file: &str,
    threads: Option<u16>,
    time: Duration,
    open: impl FnOnce() -> Result<Model, Failure>,
) -> Result<Rates, Failure> {
    let start = Instant::now();
    let model = open()?;
    let open_ns = nanoseconds(start.elapsed());
    let start = Instant::now();
    let mut session = model.session()?;
    let session_ns = nanoseconds(start.elapsed());
    let mut lengths = Vec::new();
    let longest = model.context().saturating_sub(1).max(1);
    for length in [16, 64, 256, 1024, 4096].into_iter().filter(|length| *length < longest) {
        lengths.push(rate(&mut session, length, model.vocabulary(), time)?);
    }
    if lengths.is_empty() {
        lengths.push(rate(&mut session, longest, model.vocabulary(), time)?);
    }
    Ok(Rates {
        file: file.to_owned(),
        threads,
        context: model.context(),
        vocabulary: model.vocabulary(),
        open_ns,
        session_ns,
        lengths,
        memory: session.memory_bytes().map(|(name, bytes)| (name.to_owned(), Memory::of(bytes))).collect(),
    })
}

fn rate(session: &mut session::Session, length: usize, vocabulary: usize, time: Duration) -> Result<Rate, Error> {
    let token = |at: usize| u32::try_from((at * 7919 + 13) % vocabulary.max(1)).unwrap_or(0);
    let prompt: Vec<u32> = (0..length).map(token).collect();
    let (mut prefill, mut decode) = (Duration::MAX, Duration::MAX);
    let end = Instant::now() + time;
    let single = loop {
        session.rewind(0)?;
        let start = Instant::now();
        session.prefill(&prompt)?;
        prefill = prefill.min(start.elapsed());
        let single = SINGLE.min(session.room());
        let start = Instant::now();
        for at in 0..single {
            session.decode(token(at))?;
        }
        decode = decode.min(start.elapsed());
        if Instant::now() >= end {
            break single;
        }
    };
    Ok(Rate {
        prompt: length,
        prefill_tokens_per_second: length as f64 / prefill.as_secs_f64(),
        first_token_ns: nanoseconds(prefill),
        single,
        decode_tokens_per_second: (single > 0).then(|| single as f64 / decode.as_secs_f64()),
    })
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Rates {
    /// Prints a table.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let duration = |ns| units::duration(Duration::from_nanos(ns));
        writeln!(out, "{}", self.file)?;
        writeln!(out, "  open        {:>9}  verified and loaded", duration(self.open_ns))?;
        writeln!(out, "  session     {:>9}", duration(self.session_ns))?;
        writeln!(out, "  context     {:>9}  tokens", self.context)?;
        writeln!(out, "  vocabulary  {:>9}  tokens", self.vocabulary)?;
        for (method, memory) in &self.memory {
            writeln!(out, "\nmemory of {method}")?;
            let mut columns = Columns::new(2, &[Align::Left, Align::Right, Align::Left]);
            memory.rows().into_iter().for_each(|(name, bytes, note)| {
                columns.row([name.into(), bytes.into(), note.into()]);
            });
            columns.print(out)?;
        }
        writeln!(out, "\nspeed, the best run")?;
        let mut columns = Columns::new(2, &[Align::Right; 4]);
        let titles = ["prompt", "prefill, tokens/s", "first token after", "decode, tokens/s"];
        columns.row(titles.map(Into::into));
        for rate in &self.lengths {
            let decode = rate.decode_tokens_per_second.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
            let prefill = format!("{:.1}", rate.prefill_tokens_per_second);
            columns.row([rate.prompt.to_string(), prefill, duration(rate.first_token_ns), decode].map(Into::into));
        }
        columns.print(out)
    }
}
