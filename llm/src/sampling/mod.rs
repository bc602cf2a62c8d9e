//! Choice of the next token from its logits.
//!
//! A [`Sampler`] applies these transforms, in this order:
//!
//! 1. logit bias: adds a number to the logits of some tokens;
//! 2. repetition penalty: for each token among the last ones, its logit is divided by the penalty if it is above zero,
//!    and multiplied otherwise;
//! 3. banned tokens, and those that a [`Constraint`] does not allow, are out; so are tokens whose logit is −∞;
//! 4. temperature: logits are divided by it. Zero takes the token of the largest logit, of several the first: nothing
//!    below is done;
//! 5. top-k: the k largest logits stay, of equal ones those of the lower tokens;
//! 6. top-p: of these the fewest that together have at least the share p of the probability stay, from the likeliest on;
//! 7. min-p: those stay that are at least p times as likely as the likeliest;
//! 8. one of those that are left is drawn by its probability.
//!
//! The same seed draws the same tokens from the same logits on every platform: random numbers are those of ChaCha with
//! eight rounds, keyed with the seed, and exponentials are computed in `f64` without the platform's library. A sampler
//! allocates when it is made, then no more.

mod candidates;
mod mask;
mod random;

pub use mask::{Constraint, Mask};

use candidates::Candidates;
use random::Random;

/// Settings of a [`Sampler`]. The default is greedy: the likeliest token, always.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Divisor of logits; 0 for the likeliest token. At most 100.
    pub temperature: f32,
    /// Number of likeliest tokens among which one is drawn; 0 for all.
    pub top_k: usize,
    /// Share of the probability that the tokens have among which one is drawn, above 0 and at most 1.
    pub top_p: f32,
    /// Probability that a token needs, as a share of the likeliest one's: 0 to 1.
    pub min_p: f32,
    /// Penalty of tokens that the text already has; 1 for none. Above 0.
    pub repetition_penalty: f32,
    /// Number of last tokens that the penalty looks at.
    pub repetition_window: usize,
    /// Numbers to add to logits, by token; none twice.
    pub logit_bias: Vec<(u32, f32)>,
    /// Tokens that are never chosen.
    pub banned: Vec<u32>,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            repetition_window: 64,
            logit_bias: Vec::new(),
            banned: Vec::new(),
            seed: 0,
        }
    }
}

/// Reason for which a sampler could not be made, or no token be chosen.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// A setting outside of its range.
    #[error("{setting} is {value}, but it has to be {range}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// The value, as text.
        value: String,
        /// Values it can have.
        range: &'static str,
    },
    /// A logit that is not a number, or +∞.
    #[error("the logit of token {token} is {logit}")]
    Logit {
        /// The token.
        token: u32,
        /// The logit.
        logit: f32,
    },
    /// The sampler is for another vocabulary.
    #[error("{have} logits, the sampler is for {want} tokens")]
    Vocabulary {
        /// Logits given.
        have: usize,
        /// Tokens the sampler was made for.
        want: usize,
    },
    /// Every token is banned, not allowed, or has the logit −∞.
    #[error("no token is left to choose from")]
    NoCandidate,
    /// There is no memory for a vocabulary of this size.
    #[error("no memory to sample from {0} tokens")]
    OutOfMemory(usize),
}

/// Chooses tokens from logits. It holds random numbers and room for its work; the text is the caller's.
///
/// ```
/// use edgepack_llm::sampling::{Sampler, Settings};
///
/// # fn main() -> Result<(), edgepack_llm::sampling::SampleError> {
/// let settings = Settings { temperature: 0.8, top_k: 40, top_p: 0.95, seed: 7, ..Settings::default() };
/// let mut sampler = Sampler::new(4, settings)?;
/// let token = sampler.sample(&[0.1, 2.0, -1.0, 0.5], &[])?;
/// assert!(token < 4);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Sampler {
    settings: Settings,
    random: Random,
    /// Logits after steps 1 to 3; −∞ for tokens that are out.
    scores: Vec<f32>,
    candidates: Candidates,
    mask: Mask,
    /// Tokens that were penalised, while a token is sampled.
    seen: Mask,
}

impl Sampler {
    /// A sampler for this many tokens.
    ///
    /// # Errors
    ///
    /// A setting is out of its range, or names a token outside of the vocabulary.
    pub fn new(vocabulary: usize, settings: Settings) -> Result<Self, SampleError> {
        check(vocabulary, &settings)?;
        let mut scores = Vec::new();
        scores.try_reserve_exact(vocabulary).map_err(|_| SampleError::OutOfMemory(vocabulary))?;
        let no_memory = || SampleError::OutOfMemory(vocabulary);
        Ok(Sampler {
            random: Random::new(settings.seed),
            settings,
            scores,
            candidates: Candidates::new(vocabulary).ok_or_else(no_memory)?,
            mask: Mask::new(vocabulary).ok_or_else(no_memory)?,
            seen: Mask::new(vocabulary).ok_or_else(no_memory)?,
        })
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Starts the random numbers again.
    pub fn reset(&mut self) {
        self.random = Random::new(self.settings.seed);
    }

    /// Chooses a token. `tokens` is the text so far, for the repetition penalty; numbers in it that are no tokens are left
    /// out.
    ///
    /// # Errors
    ///
    /// Logits of another vocabulary, or not numbers; no token is left.
    pub fn sample(&mut self, logits: &[f32], tokens: &[u32]) -> Result<u32, SampleError> {
        self.adjust(logits, tokens)?;
        self.choose()
    }

    /// Chooses a token that a constraint allows.
    ///
    /// # Errors
    ///
    /// As of [`Sampler::sample`].
    pub fn sample_constrained(
        &mut self,
        logits: &[f32],
        tokens: &[u32],
        constraint: &mut dyn Constraint,
    ) -> Result<u32, SampleError> {
        self.adjust(logits, tokens)?;
        self.mask.allow_all();
        constraint.mask(tokens, &mut self.mask);
        self.mask.each_forbidden(|token| self.scores[token] = f32::NEG_INFINITY);
        self.choose()
    }

    /// Steps 1 to 3, but for the constraint.
    fn adjust(&mut self, logits: &[f32], tokens: &[u32]) -> Result<(), SampleError> {
        let Sampler { settings, scores, seen, .. } = self;
        let want = seen.len();
        if logits.len() != want {
            return Err(SampleError::Vocabulary { have: logits.len(), want });
        }
        if let Some((token, &logit)) =
            logits.iter().enumerate().find(|(_, logit)| logit.is_nan() || **logit == f32::INFINITY)
        {
            return Err(SampleError::Logit { token: token as u32, logit });
        }
        scores.clear();
        scores.extend_from_slice(logits);
        for &(token, bias) in &settings.logit_bias {
            scores[token as usize] += bias;
        }
        if settings.repetition_penalty != 1.0 {
            let recent = &tokens[tokens.len().saturating_sub(settings.repetition_window)..];
            seen.allow_all();
            for &token in recent {
                // The mask of tokens that were not seen yet.
                if (token as usize) < want && seen.is_allowed(token) {
                    seen.forbid(token);
                    let score = &mut scores[token as usize];
                    let penalty = settings.repetition_penalty;
                    *score = if *score > 0.0 { *score / penalty } else { *score * penalty };
                }
            }
        }
        for &token in &settings.banned {
            scores[token as usize] = f32::NEG_INFINITY;
        }
        // A penalty near zero takes large logits beyond the largest number.
        match scores.iter().enumerate().find(|(_, score)| score.is_nan() || **score == f32::INFINITY) {
            Some((token, &logit)) => Err(SampleError::Logit { token: token as u32, logit }),
            None => Ok(()),
        }
    }

    /// Steps 4 to 8.
    fn choose(&mut self) -> Result<u32, SampleError> {
        let Sampler { settings, random, scores, candidates, .. } = self;
        if settings.temperature == 0.0 {
            let mut best = None;
            for (token, &score) in scores.iter().enumerate() {
                if score > best.map_or(f32::NEG_INFINITY, |(_, best)| best) {
                    best = Some((token as u32, score));
                }
            }
            return best.map(|(token, _)| token).ok_or(SampleError::NoCandidate);
        }
        candidates.collect(scores, settings.temperature);
        candidates.keep(settings).ok_or(SampleError::NoCandidate)?;
        Ok(candidates.at(random.fraction()))
    }
}

fn check(vocabulary: usize, settings: &Settings) -> Result<(), SampleError> {
    let wrong = |setting, value: String, range| Err(SampleError::Setting { setting, value, range });
    if !(1..=u32::MAX as usize).contains(&vocabulary) {
        return wrong("vocabulary", vocabulary.to_string(), "1 to 4294967295 tokens");
    }
    let Settings { temperature, top_p, min_p, repetition_penalty, .. } = *settings;
    // Below the smallest temperature, quotients of logits are no numbers any more.
    if temperature != 0.0 && !(1e-4..=100.0).contains(&temperature) {
        return wrong("temperature", temperature.to_string(), "0, or 0.0001 to 100");
    }
    if !(top_p > 0.0 && top_p <= 1.0) {
        return wrong("top_p", top_p.to_string(), "above 0 and at most 1");
    }
    if !(0.0..=1.0).contains(&min_p) {
        return wrong("min_p", min_p.to_string(), "0 to 1");
    }
    if !(0.01..=100.0).contains(&repetition_penalty) {
        return wrong("repetition_penalty", repetition_penalty.to_string(), "0.01 to 100");
    }
    if let Some(&(token, bias)) = settings.logit_bias.iter().find(|(_, bias)| !bias.is_finite()) {
        return wrong("logit_bias", format!("{bias} for token {token}"), "any finite number; see `banned`");
    }
    let named = settings.logit_bias.iter().map(|&(token, _)| ("logit_bias", token));
    for (setting, token) in named.chain(settings.banned.iter().map(|&token| ("banned", token))) {
        if token as usize >= vocabulary {
            return wrong(setting, format!("for token {token}"), "for tokens of the vocabulary alone");
        }
    }
    let mut biased: Vec<u32> = settings.logit_bias.iter().map(|&(token, _)| token).collect();
    biased.sort_unstable();
    match biased.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => wrong("logit_bias", format!("given twice for token {}", pair[0]), "given once for a token"),
        None => Ok(()),
    }
}
