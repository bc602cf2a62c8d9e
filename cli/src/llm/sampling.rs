//! Arguments of choosing tokens and of ending a text.

use edgepack_llm::error::Error;
use edgepack_llm::model::Model;
use edgepack_llm::sampling::{Sampler, Settings};
use edgepack_llm::text::{TextOptions, without_token};
use edgepack_llm::tokenizer::{ShowSpecial, Tokenizer};

use crate::status::Failure;

/// Choice of the next token. Without any of these it is always the likeliest one.
#[derive(clap::Args, Clone, Debug)]
pub struct Sampling {
    /// Divisor of logits: larger is more varied, 0 takes the likeliest token
    #[arg(long, value_name = "T", default_value = "0", allow_negative_numbers = true)]
    pub temperature: f32,

    /// Choose among so many of the likeliest tokens; 0 for all
    #[arg(long, value_name = "K", default_value = "0")]
    pub top_k: usize,

    /// Choose among the likeliest tokens that have this share of the probability
    #[arg(long, value_name = "P", default_value = "1", allow_negative_numbers = true)]
    pub top_p: f32,

    /// Choose among tokens that are at least so likely as a share of the likeliest
    #[arg(long, value_name = "P", default_value = "0", allow_negative_numbers = true)]
    pub min_p: f32,

    /// Penalty of tokens that the text has already; 1 for none
    #[arg(long, value_name = "PENALTY", default_value = "1", allow_negative_numbers = true)]
    pub repetition_penalty: f32,

    /// Last tokens that the penalty looks at
    #[arg(long, value_name = "TOKENS", default_value = "64")]
    pub repetition_window: usize,

    /// Number to add to the logit of a token
    #[arg(long, value_name = "TOKEN=NUMBER", value_parser = bias, allow_hyphen_values = true)]
    pub logit_bias: Vec<(u32, f32)>,

    /// Seed of the random numbers: the same seed gives the same text
    #[arg(long, value_name = "N", default_value = "0")]
    pub seed: u64,
}

fn bias(text: &str) -> Result<(u32, f32), String> {
    let parts = text.split_once('=').and_then(|(token, number)| Some((token.parse().ok()?, number.parse().ok()?)));
    parts.ok_or_else(|| "a token and a number, as in 15=-2.5".to_owned())
}

impl Sampling {
    /// A sampler that never chooses what the tokenizer has no token for.
    pub fn sampler(&self, model: &Model, tokenizer: &dyn Tokenizer) -> Result<Sampler, Failure> {
        let settings = Settings {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            repetition_window: self.repetition_window,
            logit_bias: self.logit_bias.clone(),
            banned: without_token(model, tokenizer),
            seed: self.seed,
        };
        Ok(Sampler::new(model.vocabulary(), settings).map_err(Error::from)?)
    }
}

/// End of a text, and its look.
#[derive(clap::Args, Clone, Debug)]
pub struct TextArgs {
    /// Tokens to generate at most; as many as there is room for if not given
    #[arg(short = 'n', long, value_name = "TOKENS")]
    pub max_new_tokens: Option<usize>,

    /// Text that ends the generation
    #[arg(long, value_name = "TEXT")]
    pub stop: Vec<String>,

    /// Go on behind tokens that end a text
    #[arg(long)]
    pub ignore_end: bool,

    /// Show special tokens
    #[arg(long)]
    pub show_special: bool,

    /// Leave out the line of counts and rates, and with `--json` all times
    #[arg(short, long)]
    pub quiet: bool,
}

impl TextArgs {
    /// The options of the texts of a model.
    pub fn options(&self, model: &Model, tokenizer: &dyn Tokenizer) -> TextOptions {
        let mut options = TextOptions::of(model, tokenizer);
        if self.ignore_end {
            options.stop_tokens.clear();
        }
        options.max_new_tokens = self.max_new_tokens;
        options.stop_strings = self.stop.clone();
        options.special = if self.show_special { ShowSpecial::Shown } else { ShowSpecial::Hidden };
        options
    }
}
