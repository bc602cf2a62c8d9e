//! A mixture of experts: every token goes through the few feed-forward networks that a gate picks for it.
//!
//! The gate scores all experts; the greatest scores win, the lower number of two that are alike. An expert is `w2 ·
//! (silu(w1·x) * (w3·x))`, with `w1` above `w3` in one packed matrix. Invariant: activations stay `f32`; weights are
//! unpacked a panel of rows at a time, so no expert is ever whole in memory.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::scalar::ScalarType;

use super::packed::{Form, Packed};
use super::{expect_contiguous, expect_sizes, scratch_of, sizes_of};
use crate::check::expect_dtype;
use edgepack_compute::gemm::{Fast, Gemm, Mat, Terms};

/// `llama::quantized_moe_ffn.out`.
pub static FFN: Kernel = Kernel {
    name: "llama::quantized_moe_ffn.out",
    schema: "(Tensor x, Tensor gate_weight, Tensor expert_bias, Tensor packed_w13, Tensor packed_w2, int num_activated_experts, int num_experts, int hidden_dim, int dim, int group_size, int weight_nbit, str score_func, float route_scale, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare,
};

const NAMES: [&str; 5] = ["x", "gate_weight", "expert_bias", "packed_w13", "packed_w2"];
const ACTIVATED: usize = 5;
const SCORE: usize = 11;
const SCALE: usize = 12;
const OUT: usize = 13;

/// Rows of weights unpacked at a time; a multiple of the rows that are packed together.
const PANEL: usize = 64;
/// Columns of weights that are packed together.
const TILE: usize = 16;

/// The numbers of one call.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    tokens: usize,
    activated: usize,
    experts: usize,
    hidden: usize,
    dim: usize,
    group: usize,
    bits: usize,
    biased: bool,
}

impl Numbers {
    /// From the arguments `num_activated_experts` to `weight_nbit`, and the shapes they must agree with.
    fn new(given: [i64; 6], metas: [TensorShape<'_>; 5]) -> Result<Self, KernelError> {
        const NAMES: [&str; 6] =
            ["num_activated_experts", "num_experts", "hidden_dim", "dim", "group_size", "weight_nbit"];
        let mut numbers = [0; 6];
        for ((number, value), name) in numbers.iter_mut().zip(given).zip(NAMES) {
            *number = usize::try_from(value)
                .ok()
                .filter(|&value| value > 0)
                .ok_or_else(|| KernelError::argument(format!("`{name}` is {value}, it must be above 0")))?;
        }
        let [activated, experts, hidden, dim, group, bits] = numbers;
        if activated > experts {
            return Err(KernelError::argument(format!(
                "`num_activated_experts` is {activated}, `num_experts` is {experts}"
            )));
        }
        if bits != 4 && bits != 8 {
            return Err(KernelError::unsupported(format!("`weight_nbit` is {bits}, the operator reads 4 and 8")));
        }
        for (name, size) in [("dim", dim), ("hidden_dim", hidden)] {
            if !size.is_multiple_of(group) || !group.is_multiple_of(TILE) {
                return Err(KernelError::argument(format!(
                    "`group_size` is {group}, `{name}` is {size}: it must divide it and be a multiple of {TILE}"
                )));
            }
        }
        let [x, gate, bias, w13, w2] = metas;
        let [tokens, _] = sizes_of("x", &x)?;
        expect_sizes("x", x.sizes, &[tokens, dim], "`dim`")?;
        expect_sizes("gate_weight", gate.sizes, &[experts, dim], "`num_experts` and `dim`")?;
        let biased = bias.element_count() > 0;
        if biased {
            expect_sizes("expert_bias", bias.sizes, &[experts], "`num_experts`")?;
        }
        for (name, meta) in [("packed_w13", w13), ("packed_w2", w2)] {
            let [_, bytes] = sizes_of(name, &meta)?;
            expect_sizes(name, meta.sizes, &[experts, bytes], "`num_experts`")?;
        }
        let numbers = Numbers { tokens, activated, experts, hidden, dim, group, bits, biased };
        let too_few = |name: &str, form: Form, meta: TensorShape<'_>| match form.len() {
            Some(need) if need <= meta.sizes[1] => Ok(()),
            need => Err(KernelError::argument(format!(
                "`{name}` has {} bytes per expert, {}x{} weights of {bits} bits need {}",
                meta.sizes[1],
                form.rows,
                form.columns,
                need.map_or("more than there are".to_owned(), |need| need.to_string())
            ))),
        };
        too_few("packed_w13", numbers.up(), w13)?;
        too_few("packed_w2", numbers.down(), w2)?;
        Ok(numbers)
    }

    fn up(&self) -> Form {
        Form { rows: self.hidden.saturating_mul(2), columns: self.dim, group: self.group, bits: self.bits }
    }

    fn down(&self) -> Form {
        Form { rows: self.dim, columns: self.hidden, group: self.group, bits: self.bits }
    }

    /// Elements of scratch: the weights of every token's experts, its input and results of one expert, and a panel.
    /// That packed weights have these sizes bounds the products.
    fn scratch(&self) -> usize {
        let per_token = self.activated * 2 + self.experts + self.dim * 2 + self.hidden * 2;
        self.tokens.saturating_mul(per_token).saturating_add(PANEL * self.dim.max(self.hidden))
    }
}

/// How scores become weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Score {
    /// Each by itself; the weights of the winners are scaled to a sum.
    Sigmoid,
    /// Relative to those of the other winners.
    Softmax,
}

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(OUT + 2)?;
    let mut fixed = true;
    for (arg, name) in NAMES.into_iter().enumerate() {
        let info = args.tensor(arg)?;
        let wanted = if arg < 3 { ScalarType::FLOAT } else { ScalarType::BYTE };
        expect_dtype(name, info.meta.dtype, wanted)?;
        expect_contiguous(name, &info.meta)?;
        fixed &= arg == 0 || !info.dynamic;
    }
    expect_dtype("out", args.tensor(OUT)?.meta.dtype, ScalarType::FLOAT)?;
    expect_contiguous("out", &args.tensor(OUT)?.meta)?;
    let score = match args.text(SCORE)? {
        "sigmoid" => Score::Sigmoid,
        "softmax" => Score::Softmax,
        other => {
            return Err(KernelError::argument(format!("`score_func` is `{other}`, not `sigmoid` or `softmax`")));
        }
    };
    args.double(SCALE)?;
    let mut given = [0; 6];
    for (at, given) in given.iter_mut().enumerate() {
        let name = "the numbers of experts, sizes and bits";
        *given = args
            .int(ACTIVATED + at)?
            .ok_or_else(|| KernelError::unsupported(format!("{name} must be known when the program is loaded")))?;
    }
    if !fixed {
        return Err(KernelError::unsupported("weights must have one size, which is known when the program is loaded"));
    }
    let metas = [0, 1, 2, 3, 4].map(|arg| args.tensor(arg).map(|info| info.meta));
    let [x, gate, bias, w13, w2] = metas;
    let numbers = Numbers::new(given, [x?, gate?, bias?, w13?, w2?])?;
    if numbers.biased && score == Score::Softmax {
        return Err(KernelError::argument(
            "`expert_bias` is given, `score_func` is `softmax`, which has no use for it",
        ));
    }
    for (arg, form) in [(3, numbers.up()), (4, numbers.down())] {
        if let Some(constant) = args.tensor(arg)?.constant {
            experts(constant.bytes(), numbers.experts)
                .try_for_each(|bytes| Packed::new(NAMES[arg], form, bytes).map(drop))?;
        }
    }
    args.scratch(numbers.scratch().saturating_mul(size_of::<f32>()));
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let [tokens, dim] = sizes_of("x", &cx.meta(0)?)?;
        expect_sizes("x", &[tokens, dim], &[tokens, numbers.dim], "`dim`")?;
        run(cx, Numbers { tokens, ..numbers }, score)
    }))
}

/// The bytes of every expert.
fn experts(bytes: &[u8], count: usize) -> std::slice::ChunksExact<'_, u8> {
    bytes.chunks_exact((bytes.len() / count.max(1)).max(1))
}

fn run(cx: &mut KernelContext<'_>, numbers: Numbers, score: Score) -> Result<(), KernelError> {
    let Numbers { tokens, dim, hidden, .. } = numbers;
    cx.resize(OUT, &[tokens, dim])?;
    let route_scale = cx.double(SCALE)? as f32;
    let views = cx.views();
    let (x, gate, bias) = (views.tensor(0)?.as_slice::<f32>()?, views.tensor(1)?, views.tensor(2)?);
    let (w13, w2) = (views.tensor(3)?, views.tensor(4)?);
    let out = views.out(OUT)?.into_slice::<f32>()?;
    let scratch = scratch_of::<f32>(views.scratch()?, numbers.scratch())?;
    out.fill(0.0);
    if tokens == 0 {
        return Ok(());
    }
    let Numbers { experts: all, activated, .. } = numbers;
    let (weights, scratch) = scratch.split_at_mut(tokens * activated);
    let (chosen, scratch) = scratch.split_at_mut(tokens * activated);
    let (scores, scratch) = scratch.split_at_mut(tokens * all);
    let chosen: &mut [u32] = bytemuck::cast_slice_mut(chosen);
    let gate = Mat::new(gate.as_slice::<f32>()?, [all, dim], [dim, 1])?;
    Fast::multiply(scores, Mat::new(x, [tokens, dim], [dim, 1])?.into(), gate.transposed().into(), Terms::default())?;
    let bias = if numbers.biased { bias.as_slice::<f32>()? } else { &[] };
    let rows = scores.chunks_exact_mut(all).zip(chosen.chunks_exact_mut(activated));
    for ((scores, chosen), weights) in rows.zip(weights.chunks_exact_mut(activated)) {
        pick(score, route_scale, bias, scores, chosen, weights);
    }
    // Where an expert stands among those of a token.
    let place = |token: usize, expert: usize| {
        let chosen = &chosen[token * activated..][..activated];
        chosen.iter().position(|&other| other as usize == expert).map(|at| token * activated + at)
    };
    let (given, scratch) = scratch.split_at_mut(tokens * dim);
    let (answer, scratch) = scratch.split_at_mut(tokens * dim);
    let (middle, panel) = scratch.split_at_mut(tokens * 2 * hidden);
    let packed = experts(w13.bytes(), all).zip(experts(w2.bytes(), all));
    for (expert, (w13, w2)) in packed.enumerate() {
        let visitors = || (0..tokens).filter_map(|token| place(token, expert).map(|at| (token, weights[at])));
        let mut count = 0;
        for ((token, _), to) in visitors().zip(given.chunks_exact_mut(dim)) {
            to.copy_from_slice(&x[token * dim..][..dim]);
            count += 1;
        }
        if count == 0 {
            continue;
        }
        let up = Packed::new("packed_w13", numbers.up(), w13)?;
        let inputs = Mat::new(given, [count, dim], [dim, 1])?.transposed();
        let middle = &mut middle[..2 * hidden * count];
        product(&up, numbers.up(), inputs, middle, panel)?;
        let (first, gates) = middle.split_at_mut(hidden * count);
        first.iter_mut().zip(gates).for_each(|(x, gate)| *x = *x * sigmoid(*x) * *gate);
        let down = Packed::new("packed_w2", numbers.down(), w2)?;
        // One column is one row, and that is faster to multiply with.
        let steps = if count == 1 { [1, hidden] } else { [count, 1] };
        let inputs = Mat::new(first, [hidden, count], steps)?;
        let answer = &mut answer[..dim * count];
        product(&down, numbers.down(), inputs, answer, panel)?;
        for (column, (token, weight)) in visitors().enumerate() {
            let answers = answer[column..].iter().step_by(count);
            out[token * dim..][..dim].iter_mut().zip(answers).for_each(|(out, x)| *out += weight * x);
        }
    }
    Ok(())
}

/// `weights · inputs`, a panel of rows at a time.
fn product(
    weights: &Packed<'_>,
    form: Form,
    inputs: Mat<'_, f32>,
    out: &mut [f32],
    panel: &mut [f32],
) -> Result<(), KernelError> {
    for (index, out) in out.chunks_mut(PANEL * inputs.cols).enumerate() {
        let rows = out.len() / inputs.cols;
        let panel = &mut panel[..rows * form.columns];
        weights.unpack(index * PANEL, panel);
        let panel = Mat::new(panel, [rows, form.columns], [form.columns, 1])?;
        Fast::multiply(out, panel.into(), inputs.into(), Terms::default())?;
    }
    Ok(())
}

/// Chooses the experts of one token from its scores, and gives each its weight.
fn pick(score: Score, route_scale: f32, bias: &[f32], scores: &mut [f32], chosen: &mut [u32], weights: &mut [f32]) {
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
