//! Likelihood of a text to a model: how well quantised models of one origin compare.

use std::ops::ControlFlow;

use crate::error::Error;
use crate::session::Session;

/// Sums over tokens that were scored.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Score {
    /// Number of tokens that were scored: every one that has another in front of it.
    pub tokens: usize,
    /// Sum of the negative natural logarithms of their probabilities.
    pub negative_log_likelihood: f64,
}

impl Score {
    /// Exponential of the mean negative logarithm: of how many equally likely tokens the model chose, on average. `None`
    /// without tokens.
    pub fn perplexity(&self) -> Option<f64> {
        (self.tokens > 0).then(|| (self.negative_log_likelihood / self.tokens as f64).exp())
    }
}

/// Scores each token of a text by the probability that the model gives it after those before it.
///
/// A text longer than the context of the session is read in windows of that length, each beginning half a window after the
/// one before. A token is scored once, in the first window that has it, so after at least half a
/// window of others, but in the first window. `first`, if given, stands in front of every window, and is not scored.
/// `progress` is called after every token that was scored, and can end the scoring.
///
/// # Errors
///
/// As of [`Session::decode`]; a window without room for two tokens.
pub fn score(
    session: &mut Session,
    tokens: &[u32],
    first: Option<u32>,
    mut progress: impl FnMut(&Score) -> ControlFlow<()>,
) -> Result<Score, Error> {
    session.reset()?;
    let room = session.room();
    let window = room.saturating_sub(usize::from(first.is_some()));
    if window < 2 {
        return Err(Error::ContextFull { position: usize::from(first.is_some()), more: 2, limit: room });
    }
    let mut score = Score::default();
    let mut scored = 0;
    for start in (0..).step_by(window.div_ceil(2)) {
        let end = tokens.len().min(start + window);
        session.rewind(0)?;
        if let Some(first) = first {
            session.prefill(&[first])?;
        }
        // What was scored before is only read.
        let read = &tokens[start..scored.max(start)];
        if !read.is_empty() {
            session.prefill(read)?;
        }
        for token in &tokens[start + read.len()..end] {
            session.check(&[*token])?;
            if let Some(logits) = session.logits() {
                score.negative_log_likelihood += negative_log_probability(logits, *token as usize);
                score.tokens += 1;
            }
            session.decode(*token)?;
            if progress(&score).is_break() {
                return Ok(score);
            }
        }
        scored = end;
        if end == tokens.len() {
            break;
        }
    }
    Ok(score)
}

/// Negative logarithm of the probability of a token: the logarithm of the sum of exponentials, less its logit.
fn negative_log_probability(logits: &[f32], token: usize) -> f64 {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| libm::exp(f64::from(logit - most))).sum();
    libm::log(sum) + f64::from(most) - logits.get(token).map_or(f64::NEG_INFINITY, |logit| f64::from(*logit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_sum_to_one() {
        let logits = [1000.0, 999.0, -3.0, 1001.5];
        let sum: f64 = (0..logits.len()).map(|token| (-negative_log_probability(&logits, token)).exp()).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    }

    #[test]
    fn equal_probabilities_have_their_number_as_perplexity() {
        let score = Score { tokens: 3, negative_log_likelihood: 3.0 * negative_log_probability(&[0.5; 7], 2) };
        assert!((score.perplexity().unwrap() - 7.0).abs() < 1e-12);
        assert_eq!(Score::default().perplexity(), None);
    }
}
