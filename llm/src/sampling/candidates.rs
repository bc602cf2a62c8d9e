//! Tokens among which one is drawn: sorted no further than settings ask for.
//!
//! Order is by logit, the largest first, and of equal ones by token, so that it is one order whatever the sorting. Sums are
//! taken in that order, or, where nothing is sorted, in the order of tokens: they do not depend on how a selection works.

use super::Settings;

/// Candidates that are sorted first; four times as many when these do not have enough of the probability.
const FIRST: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Candidate {
    token: u32,
    score: f32,
    /// Its probability as a multiple of the likeliest one's.
    weight: f64,
}

/// Tokens that can be drawn, with their weights.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    list: Vec<Candidate>,
    temperature: f64,
}

impl Candidates {
    /// Room for a vocabulary; `None` if there is no memory.
    pub fn new(vocabulary: usize) -> Option<Self> {
        let mut list = Vec::new();
        list.try_reserve_exact(vocabulary).ok()?;
        Some(Candidates { list, temperature: 1.0 })
    }

    /// Takes all tokens that are not out.
    pub fn collect(&mut self, scores: &[f32], temperature: f32) {
        self.temperature = temperature.into();
        self.list.clear();
        let scores = scores.iter().enumerate().filter(|(_, score)| **score != f32::NEG_INFINITY);
        self.list.extend(scores.map(|(token, &score)| Candidate { token: token as u32, score, weight: 0.0 }));
    }

    /// Leaves those that top-k, top-p and min-p let through; `None` if there are none to begin with.
    pub fn keep(&mut self, settings: &Settings) -> Option<()> {
        let Candidates { list, temperature } = self;
        let most = list.iter().map(|candidate| candidate.score).reduce(f32::max)?;
        let chosen = settings.top_k > 0 && settings.top_k < list.len();
        if chosen {
            list.select_nth_unstable_by(settings.top_k - 1, order);
            list.truncate(settings.top_k);
            list.sort_unstable_by(order);
        }
        for candidate in list.iter_mut() {
            candidate.weight = libm::exp((f64::from(candidate.score) - f64::from(most)) / *temperature);
        }
        if settings.top_p < 1.0 {
            let total: f64 = list.iter().map(|candidate| candidate.weight).sum();
            let count = share(list, total * f64::from(settings.top_p), chosen);
            list.truncate(count);
        }
        if settings.min_p > 0.0 {
            list.retain(|candidate| candidate.weight >= f64::from(settings.min_p));
        }
        Some(())
    }

    /// The token at this share of the probability of all that are left: 0 up to but not 1.
    pub fn at(&self, share: f64) -> u32 {
        let total: f64 = self.list.iter().map(|candidate| candidate.weight).sum();
        let mut left = share * total;
        for candidate in &self.list {
            left -= candidate.weight;
            if left < 0.0 {
                return candidate.token;
            }
        }
        // Rounding can leave a rest behind the last one.
        let last = self.list.iter().rev().find(|candidate| candidate.weight > 0.0);
        last.map_or(0, |candidate| candidate.token)
    }
}

fn order(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.score.total_cmp(&a.score).then(a.token.cmp(&b.token))
}

/// Sorts as many as it takes for the first ones to weigh `wanted`, and returns their number.
fn share(list: &mut [Candidate], wanted: f64, sorted: bool) -> usize {
    let (mut weight, mut done, mut piece) = (0.0, 0, FIRST);
    while done < list.len() {
        let rest = &mut list[done..];
        let count = piece.min(rest.len());
        if !sorted {
            if count < rest.len() {
                rest.select_nth_unstable_by(count - 1, order);
            }
            rest[..count].sort_unstable_by(order);
        }
        for (index, candidate) in rest[..count].iter().enumerate() {
            weight += candidate.weight;
            if weight >= wanted {
                return done + index + 1;
            }
        }
        done += count;
        piece *= 4;
    }
    list.len()
}
