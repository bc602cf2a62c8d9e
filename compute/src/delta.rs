//! The gated delta rule: a state per head that every token decays, corrects towards its value, and is asked for a result.
//!
//! For each token, with a state of `key elements × value elements`: the state is scaled by the decay (one number for all
//! rows, or one for each); what the key finds in it is compared with the value, and `beta` times the difference is
//! written back under the key; the queries that share the state are multiplied with it. Invariant: token after token, so
//! results do not depend on how a sequence is cut into calls.

use crate::error::{Error, ErrorKind, expect_elements};
use crate::simd::wide;
use crate::threads::{Write, for_each};

/// From this many multiplications on, heads are given to several threads.
const WORTH_THREADS: usize = 1 << 18;

/// Sizes of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeltaRule {
    /// Number of sequences.
    pub batch: usize,
    /// Heads of queries; a multiple of `states`.
    pub heads: usize,
    /// Heads of states, keys and values.
    pub states: usize,
    /// Tokens of a sequence.
    pub tokens: usize,
    /// Elements of a key.
    pub key: usize,
    /// Elements of a value.
    pub value: usize,
    /// Numbers of decay per token: 1, or one for each element of a key.
    pub decays: usize,
}

/// Operands of a call, all contiguous.
#[derive(Clone, Copy, Debug)]
pub struct DeltaInputs<'a> {
    /// `[batch, heads, tokens, key]`.
    pub query: &'a [f32],
    /// `[batch, states, tokens, key]`.
    pub key: &'a [f32],
    /// `[batch, states, tokens, value]`.
    pub value: &'a [f32],
    /// `[batch, states, tokens, decays]`.
    pub decay: &'a [f32],
    /// `[batch, states, tokens]`.
    pub beta: &'a [f32],
}

impl DeltaRule {
    /// Returns the elements of scratch that a call needs.
    pub fn scratch(&self) -> usize {
        self.batch.saturating_mul(self.states).saturating_mul(self.value)
    }

    /// Follows all states, `[batch, states, key, value]`, through all tokens and writes the results,
    /// `[batch, heads, tokens, value]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`] if states do not divide heads, or if a slice has fewer elements than the sizes say.
    ///
    /// ```
    /// use edgepack_compute::delta::{DeltaInputs, DeltaRule};
    ///
    /// let rule = DeltaRule { batch: 1, heads: 1, states: 1, tokens: 1, key: 1, value: 1, decays: 1 };
    /// let inputs = DeltaInputs { query: &[2.0], key: &[1.0], value: &[5.0], decay: &[0.5], beta: &[1.0] };
    /// let (mut state, mut out) = ([4.0], [0.0]);
    /// rule.run(inputs, &mut state, &mut out, &mut [0.0])?;
    /// // The state decays to 2, and is corrected by 5 - 2.
    /// assert_eq!((state, out), ([5.0], [10.0]));
    /// # Ok::<(), edgepack_compute::Error>(())
    /// ```
    pub fn run(
        &self,
        inputs: DeltaInputs<'_>,
        state: &mut [f32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), Error> {
        self.expect(&inputs, state.len(), out.len(), scratch.len())?;
        let &DeltaRule { batch, heads, states, tokens, key, value, .. } = self;
        let (state, out) = (&mut state[..batch * states * key * value], &mut out[..batch * heads * tokens * value]);
        let scratch = &mut scratch[..self.scratch()];
        if value == 0 {
            return Ok(());
        }
        if key == 0 || tokens == 0 {
            // An empty state answers nothing.
            out.fill(0.0);
            return Ok(());
        }
        let DeltaInputs { query, key: keys, value: values, decay, beta } = inputs;
        let inputs = [query, keys, values, decay, beta];
        let per_state = heads / states.max(1) * tokens * value;
        if per_state == 0 {
            // There are states, and keys that change them, but no queries.
            let lanes = state.chunks_exact_mut(key * value).zip(scratch.chunks_exact_mut(value)).enumerate();
            lanes.for_each(|(head, (state, scratch))| follow(self, inputs, head, state, &mut [], scratch));
            return Ok(());
        }
        let lanes = (Write(state, key * value), Write(out, per_state), Write(scratch, value));
        let parallel = batch * heads * tokens * key * value >= WORTH_THREADS;
        for_each(parallel, lanes, |head, (state, out, scratch)| follow(self, inputs, head, state, out, scratch));
        Ok(())
    }

    fn expect(&self, inputs: &DeltaInputs<'_>, state: usize, out: usize, scratch: usize) -> Result<(), Error> {
        let &DeltaRule { batch, heads, states, tokens, key, value, decays } = self;
        if states == 0 || !heads.is_multiple_of(states) {
            return Err(Error::new(ErrorKind::Geometry, format!("{states} states do not serve {heads} heads alike")));
        }
        let count = |sizes: [usize; 3]| sizes.into_iter().fold(batch, usize::saturating_mul);
        expect_elements("the query", inputs.query.len(), count([heads, tokens, key]))?;
        expect_elements("the key", inputs.key.len(), count([states, tokens, key]))?;
        expect_elements("the value", inputs.value.len(), count([states, tokens, value]))?;
        expect_elements("the decay", inputs.decay.len(), count([states, tokens, decays]))?;
        expect_elements("beta", inputs.beta.len(), count([states, tokens, 1]))?;
        expect_elements("the state", state, count([states, key, value]))?;
        expect_elements("the output", out, count([heads, tokens, value]))?;
        expect_elements("the scratch", scratch, self.scratch())
    }
}

/// Follows one state through all tokens; `out` holds the results of the heads that share it, `found` is scratch.
fn follow(
    geometry: &DeltaRule,
    [query, key, value, decay, beta]: [&[f32]; 5],
    head: usize,
    state: &mut [f32],
    out: &mut [f32],
    found: &mut [f32],
) {
    let &DeltaRule { heads, states, tokens, key: keys, value: values, decays, .. } = geometry;
    let repeats = heads / states;
    for token in 0..tokens {
        let at = head * tokens + token;
        let (key, value) = (&key[at * keys..][..keys], &value[at * values..][..values]);
        let decay = &decay[at * decays..][..decays];
        let decay_of = |row: usize| if decays == 1 { decay[0] } else { decay[row] };
        wide(|| {
            found.fill(0.0);
            for (row, (state, &key)) in state.chunks_exact_mut(values).zip(key).enumerate() {
                let decay = decay_of(row);
                for (x, found) in state.iter_mut().zip(&mut *found) {
                    *x *= decay;
                    *found += *x * key;
                }
            }
            found.iter_mut().zip(value).for_each(|(found, value)| *found = (value - *found) * beta[at]);
            for (state, &key) in state.chunks_exact_mut(values).zip(key) {
                state.iter_mut().zip(&*found).for_each(|(x, found)| *x += key * found);
            }
            for repeat in 0..repeats {
                let query = &query[((head * repeats + repeat) * tokens + token) * keys..][..keys];
                let out = &mut out[(repeat * tokens + token) * values..][..values];
                out.fill(0.0);
                for (state, &query) in state.chunks_exact(values).zip(query) {
                    out.iter_mut().zip(state).for_each(|(out, x)| *out += x * query);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn sequences_may_be_cut_anywhere() {
        let mut random = Random::new(74);
        let whole = DeltaRule { batch: 1, heads: 2, states: 1, tokens: 5, key: 3, value: 4, decays: 3 };
        let (query, key, value) = (random.floats(2 * 5 * 3), random.floats(5 * 3), random.floats(5 * 4));
        let (decay, beta, start) = (random.floats(5 * 3), random.floats(5), random.floats(12));
        let (mut state, mut out, mut scratch) = (start.clone(), [0.0; 40], [0.0; 4]);
        let inputs = DeltaInputs { query: &query, key: &key, value: &value, decay: &decay, beta: &beta };
        whole.run(inputs, &mut state, &mut out, &mut scratch).unwrap();
        let one = DeltaRule { tokens: 1, ..whole };
        let mut other = start;
        for token in 0..5 {
            let mut part = [0.0; 8];
            let queries = [&query[token * 3..][..3], &query[(5 + token) * 3..][..3]].concat();
            let inputs = DeltaInputs {
                query: &queries,
                key: &key[token * 3..],
                value: &value[token * 4..],
                decay: &decay[token * 3..],
                beta: &beta[token..],
            };
            one.run(inputs, &mut other, &mut part, &mut scratch).unwrap();
            assert_eq!(part[..4], out[token * 4..][..4]);
            assert_eq!(part[4..], out[(5 + token) * 4..][..4]);
        }
        assert_eq!(state, other);
        let short = DeltaInputs { beta: &beta[1..], ..inputs };
        assert_eq!(whole.run(short, &mut state, &mut out, &mut scratch).unwrap_err().kind, ErrorKind::Geometry);
    }
}
