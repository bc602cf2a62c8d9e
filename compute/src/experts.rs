//! A mixture of experts: every token goes through the few feed-forward networks that a gate picks for it.
//!
//! The gate scores all experts; the greatest scores win, the lower number of two that are alike. An expert is `down ·
//! (silu(a·x) * (b·x))`, with `a` above `b` in one packed matrix, `up`. Invariant: activations stay `f32`; weights are
//! unpacked a panel of rows at a time, so no expert is ever whole in memory.

use crate::error::{Error, ErrorKind, expect_elements};
use crate::gemm::{Fast, Gemm, Mat, Terms};
use crate::packed::{Packed, Shape};

/// Rows of weights unpacked at a time; a multiple of the rows that are packed together.
const PANEL: usize = 64;

/// Sizes of a mixture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Experts {
    /// Rows of the input.
    pub tokens: usize,
    /// Experts that a token goes through.
    pub activated: usize,
    /// Experts there are.
    pub experts: usize,
    /// Elements between the two layers of an expert.
    pub hidden: usize,
    /// Elements of a token.
    pub dim: usize,
    /// Columns of packed weights that share a scale.
    pub group: usize,
    /// Bits of a packed weight: 4 or 8.
    pub bits: usize,
}

/// The algorithm that makes weights of scores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Score {
    /// Each by itself; the weights of the winners are scaled to a sum.
    Sigmoid,
    /// Relative to those of the other winners.
    Softmax,
}

/// Operands of a mixture.
#[derive(Clone, Copy, Debug)]
pub struct ExpertInputs<'a> {
    /// The tokens, `[tokens, dim]`.
    pub x: &'a [f32],
    /// The gate, `[experts, dim]`.
    pub gate: &'a [f32],
    /// Numbers added to the scores while experts are chosen, one for each; or none.
    pub bias: &'a [f32],
    /// The packed upper matrices of all experts, one after the other.
    pub up: &'a [u8],
    /// The packed lower matrices of all experts, one after the other.
    pub down: &'a [u8],
    /// The names errors give the two lists of packed matrices.
    pub names: [&'static str; 2],
    /// The algorithm that makes weights of scores.
    pub score: Score,
    /// The sum of the weights of [`Score::Sigmoid`].
    pub route_scale: f32,
}

/// Returns the bytes of every expert: as many equal parts as there are experts.
pub fn experts(bytes: &[u8], count: usize) -> std::slice::ChunksExact<'_, u8> {
    bytes.chunks_exact((bytes.len() / count.max(1)).max(1))
}

fn named(name: &str, error: Error) -> Error {
    Error::new(error.kind, format!("`{name}` {}", error.message))
}

impl Experts {
    /// Returns the shape of an upper matrix: both layers, one above the other.
    pub fn up(&self) -> Shape {
        Shape { rows: self.hidden.saturating_mul(2), columns: self.dim, group: self.group, bits: self.bits }
    }

    /// Returns the shape of a lower matrix.
    pub fn down(&self) -> Shape {
        Shape { rows: self.dim, columns: self.hidden, group: self.group, bits: self.bits }
    }

    /// Returns the elements of scratch that a call needs: the weights of every token's experts, its input and results of
    /// one expert, and a panel.
    pub fn scratch(&self) -> usize {
        // That packed weights have these sizes bounds the products.
        let per_token = self.activated * 2 + self.experts + self.dim * 2 + self.hidden * 2;
        self.tokens.saturating_mul(per_token).saturating_add(PANEL * self.dim.max(self.hidden))
    }

    /// Writes the mixture of every token, `[tokens, dim]`; `scratch` has [`scratch`](Self::scratch) elements.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`] if a slice has fewer elements than the sizes say; those of [`Packed::new`] for the weights of
    /// an expert that a token goes through.
    pub fn run(&self, inputs: ExpertInputs<'_>, out: &mut [f32], scratch: &mut [f32]) -> Result<(), Error> {
        self.expect(&inputs, out.len(), scratch.len())?;
        let &Experts { tokens, activated, experts: all, hidden, dim, .. } = self;
        out.fill(0.0);
        if tokens == 0 {
            return Ok(());
        }
        let x = inputs.x;
        let (weights, scratch) = scratch.split_at_mut(tokens * activated);
        let (chosen, scratch) = scratch.split_at_mut(tokens * activated);
        let (scores, scratch) = scratch.split_at_mut(tokens * all);
        let chosen: &mut [u32] = bytemuck::cast_slice_mut(chosen);
        let gate = Mat::new(inputs.gate, [all, dim], [dim, 1])?;
        Fast::multiply(scores, Mat::new(x, [tokens, dim], [dim, 1])?, gate.transposed().into(), Terms::default())?;
        let rows = scores.chunks_exact_mut(all).zip(chosen.chunks_exact_mut(activated));
        for ((scores, chosen), weights) in rows.zip(weights.chunks_exact_mut(activated)) {
            choose(inputs.score, inputs.route_scale, inputs.bias, scores, chosen, weights);
        }
        // The rank of an expert among those of a token.
        let place = |token: usize, expert: usize| {
            let chosen = &chosen[token * activated..][..activated];
            chosen.iter().position(|&other| other as usize == expert).map(|at| token * activated + at)
        };
        let (given, scratch) = scratch.split_at_mut(tokens * dim);
        let (answer, scratch) = scratch.split_at_mut(tokens * dim);
        let (middle, panel) = scratch.split_at_mut(tokens * 2 * hidden);
        let packed = experts(inputs.up, all).zip(experts(inputs.down, all));
        for (expert, (up, down)) in packed.enumerate() {
            let visitors = || (0..tokens).filter_map(|token| place(token, expert).map(|at| (token, weights[at])));
            let mut count = 0;
            for ((token, _), to) in visitors().zip(given.chunks_exact_mut(dim)) {
                to.copy_from_slice(&x[token * dim..][..dim]);
                count += 1;
            }
            if count == 0 {
                continue;
            }
            let up = Packed::new(self.up(), up).map_err(|error| named(inputs.names[0], error))?;
            let columns = Mat::new(given, [count, dim], [dim, 1])?.transposed();
            let middle = &mut middle[..2 * hidden * count];
            product(&up, self.up(), columns, middle, panel)?;
            let (first, gates) = middle.split_at_mut(hidden * count);
            first.iter_mut().zip(gates).for_each(|(x, gate)| *x = *x * sigmoid(*x) * *gate);
            let down = Packed::new(self.down(), down).map_err(|error| named(inputs.names[1], error))?;
            // One column is one row, and that is faster to multiply with.
            let strides = if count == 1 { [1, hidden] } else { [count, 1] };
            let columns = Mat::new(first, [hidden, count], strides)?;
            let answer = &mut answer[..dim * count];
            product(&down, self.down(), columns, answer, panel)?;
            for (column, (token, weight)) in visitors().enumerate() {
                let answers = answer[column..].iter().step_by(count);
                out[token * dim..][..dim].iter_mut().zip(answers).for_each(|(out, x)| *out += weight * x);
            }
        }
        Ok(())
    }

    fn expect(&self, inputs: &ExpertInputs<'_>, out: usize, scratch: usize) -> Result<(), Error> {
        let &Experts { tokens, activated, experts, hidden, dim, .. } = self;
        if activated == 0 || activated > experts || hidden == 0 || dim == 0 {
            return Err(Error::new(ErrorKind::Geometry, format!("there are no mixtures of {self:?}")));
        }
        expect_elements("the input", inputs.x.len(), tokens.saturating_mul(dim))?;
        expect_elements("the gate", inputs.gate.len(), experts.saturating_mul(dim))?;
        if !inputs.bias.is_empty() {
            expect_elements("the bias", inputs.bias.len(), experts)?;
        }
        expect_elements("the list of upper matrices", inputs.up.len(), experts)?;
        expect_elements("the list of lower matrices", inputs.down.len(), experts)?;
        expect_elements("the output", out, tokens.saturating_mul(dim))?;
        expect_elements("the scratch", scratch, self.scratch())
    }
}

/// `weights · inputs`, a panel of rows at a time.
fn product(
    weights: &Packed<'_>,
    shape: Shape,
    inputs: Mat<'_, f32>,
    out: &mut [f32],
    panel: &mut [f32],
) -> Result<(), Error> {
    for (index, out) in out.chunks_mut(PANEL * inputs.cols).enumerate() {
        let rows = out.len() / inputs.cols;
        let panel = &mut panel[..rows * shape.columns];
        weights.unpack(index * PANEL, panel);
        let panel = Mat::new(panel, [rows, shape.columns], [shape.columns, 1])?;
        Fast::multiply(out, panel, inputs.into(), Terms::default())?;
    }
    Ok(())
}

/// Chooses the experts of one token from its scores, and gives each its weight.
fn choose(score: Score, route_scale: f32, bias: &[f32], scores: &mut [f32], chosen: &mut [u32], weights: &mut [f32]) {
    if score == Score::Sigmoid {
        scores.iter_mut().for_each(|x| *x = sigmoid(*x));
    }
    let rank = |expert: usize| scores[expert] + bias.get(expert).copied().unwrap_or(0.0);
    // One order of all experts: greater scores first, then lower numbers, and last what has no score.
    let precedes = |a: usize, b: usize| match (rank(a), rank(b)) {
        (x, y) if x.is_nan() || y.is_nan() => !x.is_nan() || y.is_nan() && a < b,
        (x, y) => x > y || x == y && a < b,
    };
    let mut last = None;
    for (chosen, weight) in chosen.iter_mut().zip(&mut *weights) {
        let left = (0..scores.len()).filter(|&expert| last.is_none_or(|last| precedes(last, expert)));
        let Some(best) = left.reduce(|best, expert| if precedes(expert, best) { expert } else { best }) else { break };
        (*chosen, *weight, last) = (best as u32, scores[best], Some(best));
    }
    let factor = match score {
        Score::Sigmoid => {
            let sum: f32 = weights.iter().sum();
            route_scale / if sum < f32::MIN_POSITIVE { f32::MIN_POSITIVE } else { sum }
        }
        Score::Softmax => {
            let max = weights.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            weights.iter_mut().for_each(|weight| *weight = (*weight - max).exp());
            let sum: f32 = weights.iter().sum();
            if sum > 0.0 { 1.0 / sum } else { 0.0 }
        }
    };
    weights.iter_mut().for_each(|weight| *weight *= factor);
}

/// Without overflow on either side.
fn sigmoid(x: f32) -> f32 {
    let small = (-x.abs()).exp();
    if x >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::pack;
    use crate::random::Random;

    #[test]
    fn the_greatest_scores_win() {
        let (mut chosen, mut weights) = ([0; 2], [0.0; 2]);
        choose(Score::Softmax, 1.0, &[], &mut [0.5, 2.0, f32::NAN, 2.0], &mut chosen, &mut weights);
        assert_eq!((chosen, weights), ([1, 3], [0.5, 0.5]));
        // The bias chooses, but does not weigh.
        choose(Score::Sigmoid, 3.0, &[9.0, 0.0, 8.0], &mut [0.0, 5.0, 0.0], &mut chosen, &mut weights);
        assert_eq!((chosen, weights), ([0, 2], [1.5, 1.5]));
    }

    #[test]
    fn one_expert_is_a_feed_forward_network() {
        let mut random = Random::new(76);
        let sizes = Experts { tokens: 3, activated: 1, experts: 1, hidden: 16, dim: 32, group: 16, bits: 8 };
        let x = random.floats(3 * 32);
        let mut matrix = |shape: Shape| {
            let weights: Vec<i8> = (0..shape.rows * shape.columns).map(|_| random.below(200) as u8 as i8).collect();
            let bytes = pack(shape, &weights, &vec![0.01; shape.rows * shape.columns / shape.group]).unwrap();
            (weights.iter().map(|&x| f64::from(x) * 0.01).collect::<Vec<f64>>(), bytes)
        };
        let ((up, packed_up), (down, packed_down)) = (matrix(sizes.up()), matrix(sizes.down()));
        let inputs = ExpertInputs {
            x: &x,
            gate: &[0.0; 32],
            bias: &[],
            up: &packed_up,
            down: &packed_down,
            names: ["up", "down"],
            score: Score::Softmax,
            route_scale: 1.0,
        };
        let (mut out, mut scratch) = (vec![0.0; 3 * 32], vec![0.0; sizes.scratch()]);
        sizes.run(inputs, &mut out, &mut scratch).unwrap();
        let dot = |row: &[f64], x: &[f64]| row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
        for (x, out) in x.chunks(32).zip(out.chunks(32)) {
            let x: Vec<f64> = x.iter().map(|&x| x.into()).collect();
            let both: Vec<f64> = up.chunks(32).map(|row| dot(row, &x)).collect();
            let middle: Vec<f64> = (0..16).map(|i| both[i] / (1.0 + (-both[i]).exp()) * both[16 + i]).collect();
            for (have, row) in out.iter().zip(down.chunks(16)) {
                assert!((f64::from(*have) - dot(row, &middle)).abs() < 1e-3, "{have}");
            }
        }
        let short = ExpertInputs { down: &packed_down[..100], ..inputs };
        let error = sizes.run(short, &mut out, &mut scratch).unwrap_err();
        assert!(error.message.starts_with("`down` has 100 bytes"), "{error}");
    }
}
