//! A mixture of experts: every token goes through the few feed-forward networks that a gate picks for it.
//!
//! The loops are those of `edgepack_compute::experts`; all sizes, and how weights are packed, are known at load.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::scalar::ScalarType;

use super::{expect_contiguous, expect_sizes, scratch_of, sizes_of};
use crate::check::{expect_dtype, named};
use crate::schema::{kernel, position};
use edgepack_compute::experts::{ExpertInputs, Experts, Score, experts};
use edgepack_compute::packed::{Packed, Shape};

const NAME: &str = "llama::quantized_moe_ffn.out";

/// `llama::quantized_moe_ffn.out`.
pub static FFN: Kernel = kernel(NAME, Alias::Disjoint, prepare);

const X: usize = position(NAME, "x");
const GATE: usize = position(NAME, "gate_weight");
const BIAS: usize = position(NAME, "expert_bias");
const UP: usize = position(NAME, "packed_w13");
const DOWN: usize = position(NAME, "packed_w2");
const SCORE: usize = position(NAME, "score_func");
const SCALE: usize = position(NAME, "route_scale");
const OUT: usize = position(NAME, "out");

/// Tensors with their names and element types, in the order [`sizes`] takes them.
const TENSORS: [(usize, &str, ScalarType); 5] = [
    (X, "x", ScalarType::FLOAT),
    (GATE, "gate_weight", ScalarType::FLOAT),
    (BIAS, "expert_bias", ScalarType::FLOAT),
    (UP, "packed_w13", ScalarType::BYTE),
    (DOWN, "packed_w2", ScalarType::BYTE),
];

/// Numbers with their names, in the order [`sizes`] takes them.
const NUMBERS: [(usize, &str); 6] = [
    (position(NAME, "num_activated_experts"), "num_activated_experts"),
    (position(NAME, "num_experts"), "num_experts"),
    (position(NAME, "hidden_dim"), "hidden_dim"),
    (position(NAME, "dim"), "dim"),
    (position(NAME, "group_size"), "group_size"),
    (position(NAME, "weight_nbit"), "weight_nbit"),
];

/// Columns of weights that are packed together.
const TILE: usize = 16;

/// The sizes of a call from its numbers, and the shapes they must agree with.
fn sizes(given: [i64; 6], metas: [TensorShape<'_>; 5]) -> Result<Experts, KernelError> {
    let mut numbers = [0; 6];
    for ((number, value), (_, name)) in numbers.iter_mut().zip(given).zip(NUMBERS) {
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
    if bias.element_count() > 0 {
        expect_sizes("expert_bias", bias.sizes, &[experts], "`num_experts`")?;
    }
    for (name, meta) in [("packed_w13", w13), ("packed_w2", w2)] {
        let [_, bytes] = sizes_of(name, &meta)?;
        expect_sizes(name, meta.sizes, &[experts, bytes], "`num_experts`")?;
    }
    let sizes = Experts { tokens, activated, experts, hidden, dim, group, bits };
    let too_few = |name: &str, shape: Shape, meta: TensorShape<'_>| match shape.byte_len() {
        Some(need) if need <= meta.sizes[1] => Ok(()),
        need => Err(KernelError::argument(format!(
            "`{name}` has {} bytes per expert, {}x{} weights of {bits} bits need {}",
            meta.sizes[1],
            shape.rows,
            shape.columns,
            need.map_or("more than there are".to_owned(), |need| need.to_string())
        ))),
    };
    too_few("packed_w13", sizes.up(), w13)?;
    too_few("packed_w2", sizes.down(), w2)?;
    Ok(sizes)
}

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(OUT + 2)?;
    let mut fixed = true;
    for (arg, name, wanted) in TENSORS {
        let info = args.tensor(arg)?;
        expect_dtype(name, info.meta.dtype, wanted)?;
        expect_contiguous(name, &info.meta)?;
        fixed &= arg == X || !info.dynamic;
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
    for ((arg, _), given) in NUMBERS.into_iter().zip(&mut given) {
        let name = "the numbers of experts, sizes and bits";
        *given = args
            .int(arg)?
            .ok_or_else(|| KernelError::unsupported(format!("{name} must be known when the program is loaded")))?;
    }
    if !fixed {
        return Err(KernelError::unsupported("weights must have one size, which is known when the program is loaded"));
    }
    let [x, gate, bias, up, down] = TENSORS.map(|(arg, ..)| args.tensor(arg).map(|info| info.meta));
    let bias = bias?;
    let sizes = sizes(given, [x?, gate?, bias, up?, down?])?;
    if bias.element_count() > 0 && score == Score::Softmax {
        return Err(KernelError::argument(
            "`expert_bias` is given, `score_func` is `softmax`, which has no use for it",
        ));
    }
    for (arg, name, shape) in [(UP, "packed_w13", sizes.up()), (DOWN, "packed_w2", sizes.down())] {
        if let Some(constant) = args.tensor(arg)?.constant {
            experts(constant.bytes(), sizes.experts)
                .try_for_each(|bytes| Packed::new(shape, bytes).map(drop))
                .map_err(|error| named(name, error))?;
        }
    }
    args.scratch(sizes.scratch().saturating_mul(size_of::<f32>()));
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let [tokens, dim] = sizes_of("x", &cx.meta(X)?)?;
        expect_sizes("x", &[tokens, dim], &[tokens, sizes.dim], "`dim`")?;
        run(cx, Experts { tokens, ..sizes }, score)
    }))
}

fn run(cx: &mut KernelContext<'_>, sizes: Experts, score: Score) -> Result<(), KernelError> {
    cx.resize(OUT, &[sizes.tokens, sizes.dim])?;
    let route_scale = cx.double(SCALE)? as f32;
    let views = cx.views();
    let read = |arg: usize| views.tensor(arg)?.as_slice::<f32>();
    let (up, down) = (views.tensor(UP)?, views.tensor(DOWN)?);
    let inputs = ExpertInputs {
        x: read(X)?,
        gate: read(GATE)?,
        bias: read(BIAS)?,
        up: up.bytes(),
        down: down.bytes(),
        names: ["packed_w13", "packed_w2"],
        score,
        route_scale,
    };
    let out = views.out(OUT)?.into_slice::<f32>()?;
    let scratch = scratch_of::<f32>(views.scratch()?, sizes.scratch())?;
    Ok(sizes.run(inputs, out, scratch)?)
}
