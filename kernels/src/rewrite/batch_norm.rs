//! A batch norm behind a convolution is part of its weight and bias: `(w x) s + t = (w s) x + t`. Weights are multiplied as
//! they are packed, so that there is no copy of them besides.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use edgepack_compute::conv::scaled;
use edgepack_compute::simd::{Loop, run_wide};
use edgepack_compute::threads::{Cost, for_each_range};
use edgepack_executor::plan::{PlanGraph, Rewrite};
use edgepack_executor::rewrite::Uses;
use edgepack_executor::state::{Value, ValueId};
use edgepack_format::room;
use edgepack_format::scalar::ScalarType;

use super::chain::{Call, arg, for_each_pair, is, is_private, merge, tensor};
use crate::aten::{conv, norm};
use crate::schema::position;

const NORM: &str = "aten::_native_batch_norm_legit_no_training.out";
const INPUT: usize = position(NORM, "input");
const FACTOR: usize = position(NORM, "weight");
const OFFSET: usize = position(NORM, "bias");
const MEAN: usize = position(NORM, "running_mean");
const VARIANCE: usize = position(NORM, "running_var");
const EPSILON: usize = position(NORM, "eps");
const OUT: usize = position(NORM, "out0");
/// Nanoseconds that looking at a number of a weight in a file that is mapped takes, about.
const LOOK: f64 = 0.5;
/// The sign of a float.
const SIGN: u32 = 1 << 31;
/// Statistics that nothing may read.
const STATISTICS: [usize; 2] = [position(NORM, "out1"), position(NORM, "out2")];

/// Folds the factor and offset of every channel into constant weights.
pub struct FoldBatchNorm;

impl Rewrite for FoldBatchNorm {
    fn name(&self) -> &'static str {
        "fold batch norm"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        let Some(uses) = Uses::of(graph) else { return 0 };
        let mut scaled = None;
        for_each_pair(graph, |graph, first, second| rule(graph, &uses, first, second, &mut scaled))
    }
}

/// `operator` is the index of the convolution with factors, once there is one.
fn rule(graph: &mut PlanGraph<'_>, uses: &Uses, first: Call, second: Call, operator: &mut Option<u32>) -> Option<()> {
    if !is(graph, first.operator, &conv::CONVOLUTION) || !is(graph, second.operator, &norm::batch::NO_TRAINING) {
        return None;
    }
    let image = arg(graph, first, conv::OUT)?;
    let statistics_unread = STATISTICS.into_iter().all(|at| {
        let tensor = arg(graph, second, at).and_then(|id| tensor(graph, id));
        tensor.is_some_and(|tensor| uses.of_tensor(tensor).reads == 0)
    });
    let fixed = |id: ValueId| !graph.is_variable(id);
    let (transposed, eps) = (arg(graph, first, conv::FORWARD.transposed)?, arg(graph, second, EPSILON)?);
    let (Value::Bool(false), Value::Double(epsilon)) = (graph.value(transposed), graph.value(eps)) else {
        return None;
    };
    if arg(graph, second, INPUT)? != image || !is_private(graph, uses, image) || !statistics_unread {
        return None;
    }
    if !fixed(transposed) || !fixed(eps) {
        return None;
    }

    let weight = graph.constant(arg(graph, first, conv::FORWARD.weight)?)?;
    let channels = *weight.sizes.first().filter(|_| weight.dim_order.first() == Some(&0))?;
    let weight = weight.as_slice::<f32>().ok()?;
    let each = weight.len().checked_div(channels).filter(|&each| each > 0)?;
    let numbers = |id: ValueId, absent: f32| numbers(graph, id, channels, absent);
    let bias = numbers(arg(graph, first, conv::BIAS)?, 0.0)?;
    let (scale, offset) = (numbers(arg(graph, second, FACTOR)?, 1.0)?, numbers(arg(graph, second, OFFSET)?, 0.0)?);
    let (mean, variance) = (numbers(arg(graph, second, MEAN)?, 0.0)?, numbers(arg(graph, second, VARIANCE)?, 1.0)?);

    let (mut factors, mut offsets) = (room::filled(0.0, channels).ok()?, room::filled(0.0, channels).ok()?);
    run_wide(Folded {
        bias: &bias,
        scale: &scale,
        offset: &offset,
        mean: &mean,
        variance: &variance,
        epsilon,
        factors: &mut factors,
        offsets: &mut offsets,
    });
    // Factors that overflow would make NaN of what is finite otherwise.
    if !offsets.iter().all(|x: &f32| x.is_finite()) || !stay_finite(weight, &factors, each) {
        return None;
    }
    let factors = graph.push_constant(ScalarType::DOUBLE, &[channels], bytemuck::cast_slice(&factors))?;
    let bias = graph.push_constant(ScalarType::FLOAT, &[channels], bytemuck::cast_slice(&offsets))?;
    let out = arg(graph, second, OUT)?;
    let mut args = graph.args(first.args).get(..conv::FACTORS)?.to_vec();
    args[conv::BIAS] = bias;
    // The output, and the result that repeats it.
    args.extend([factors, out, out]);
    let index = operator.map_or_else(|| graph.push_operator(&conv::SCALED).ok(), Some)?;
    *operator = Some(index);
    merge(graph, first, second, index, &args)
}

/// A norm behind a bias, as a factor and an offset for every channel.
struct Folded<'a> {
    bias: &'a [f32],
    scale: &'a [f32],
    offset: &'a [f32],
    mean: &'a [f32],
    variance: &'a [f32],
    epsilon: f64,
    factors: &'a mut [f64],
    offsets: &'a mut [f32],
}

impl Loop for Folded<'_> {
    #[inline(always)]
    fn run(self) {
        let Folded { bias, scale, offset, mean, variance, epsilon, factors, offsets } = self;
        for ((factor, scale), variance) in factors.iter_mut().zip(scale).zip(variance) {
            *factor = f64::from(*scale) / (f64::from(*variance) + epsilon).sqrt();
        }
        for ((((to, bias), mean), offset), factor) in offsets.iter_mut().zip(bias).zip(mean).zip(offset).zip(factors) {
            *to = ((f64::from(*bias) - f64::from(*mean)) * *factor + f64::from(*offset)) as f32;
        }
    }
}

/// Returns whether each channel of a weight, of so many numbers, times its factor is finite everywhere.
fn stay_finite(weight: &[f32], factors: &[f64], each: usize) -> bool {
    let finite = AtomicBool::new(true);
    for_each_range(Cost::nanoseconds(LOOK * each as f64), factors.len(), |channels| {
        let weight = &weight[channels.start * each..channels.end * each];
        run_wide(Products { weight, each, factors: &factors[channels], finite: &finite });
    });
    finite.into_inner()
}

/// Channels of a weight times their factors; `finite` is false from the first on that is not.
struct Products<'a> {
    weight: &'a [f32],
    each: usize,
    factors: &'a [f64],
    finite: &'a AtomicBool,
}

impl Loop for Products<'_> {
    #[inline(always)]
    fn run(self) {
        let Products { weight, each, factors, finite } = self;
        for (channel, factor) in weight.chunks_exact(each).zip(factors) {
            // Numbers without a sign are in the order of their bits, and what is not finite comes last.
            let mut most = 0;
            for x in channel {
                most = most.max(x.to_bits() & !SIGN);
            }
            if !scaled(f32::from_bits(most), *factor).is_finite() {
                return finite.store(false, Relaxed);
            }
        }
    }
}

/// The numbers of a constant per channel; `absent` for each if there is none.
fn numbers(graph: &PlanGraph<'_>, id: ValueId, channels: usize, absent: f32) -> Option<Vec<f32>> {
    if matches!(graph.value(id), Value::Null) {
        return room::filled(absent, channels).ok();
    }
    let numbers = graph.constant(id)?.as_slice::<f32>().ok()?;
    if numbers.len() == channels { room::copy_of(numbers).ok() } else { None }
}
