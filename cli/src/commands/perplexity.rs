//! `edgepack perplexity`: how likely a text is to a model, to compare quantisations.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

use edgepack_llm::tokenizer::SpecialTokens;
use edgepack_llm::{score, text};
use serde::Serialize;

use crate::file::name_of;
use crate::llm::{ModelArgs, TokenizerArgs};
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::units::count;

/// Measure how well a language model foretells a text
///
/// The perplexity is the exponential of the mean negative logarithm of the probability of each token after those before
/// it. A text longer than the context is read in windows, each beginning half a window after the one before; a token is
/// scored once. Figures compare models with one tokenizer, on one text.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The model.
    #[command(flatten)]
    pub model: ModelArgs,

    /// Its tokenizer.
    #[command(flatten)]
    pub tokenizer: TokenizerArgs,

    /// The text, UTF-8; `-` is standard input
    #[arg(value_name = "TEXT")]
    pub text: PathBuf,

    /// Put no token in front that the tokenizer says texts begin with
    #[arg(long)]
    pub no_begin: bool,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Scored<'a> {
    /// Sum over the scored tokens, in nats.
    negative_log_likelihood: f64,
    /// Exponential of the mean per token.
    perplexity: f64,
    /// Tokens that were scored.
    scored: usize,
    /// The text.
    text: &'a str,
    /// Tokens of the text.
    tokens: usize,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    session.reads_stdin_once([&*args.text, &args.model.file, &args.tokenizer.tokenizer])?;
    let name = name_of(&args.text);
    let text = String::from_utf8(session.read_filled(&args.text)?)
        .map_err(|_| Failure::unreadable(format!("{name}: this is not text")))?;
    let tokenizer = args.tokenizer.open(session)?;
    let ids = tokenizer.encode(&text, SpecialTokens::AsText)?;
    let model = args.model.open(session)?;
    let mut llm = model.session()?;
    let first = text::first_token(&model, &*tokenizer).filter(|_| !args.no_begin);
    let scoring = session.progress.work("scoring");
    let scored = score::score(&mut llm, &ids, first, |_| ControlFlow::Continue(()))?;
    drop(scoring);
    let Some(perplexity) = scored.perplexity() else {
        return Err(Failure::usage(format!("{name}: the text has too few tokens to be scored")));
    };
    let mean = scored.negative_log_likelihood / scored.tokens as f64;
    match session.json {
        true => session.document(&Scored {
            negative_log_likelihood: scored.negative_log_likelihood,
            perplexity,
            scored: scored.tokens,
            text: &name,
            tokens: ids.len(),
        })?,
        false => {
            let (tokens, context) = (count(scored.tokens, "token"), model.context());
            writeln!(session.out, "perplexity {perplexity:.4}  of {tokens}, {mean:.5} nats each, context {context}")?;
        }
    }
    Ok(Status::Fine)
}
