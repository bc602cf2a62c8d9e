//! Batch norm: every channel gets a factor and an offset, from statistics that are given or taken from the input.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::{TensorMut, TensorRef};
use edgepack_format::tensor::Dims;

use crate::check::{Shape, expect_same, expect_same_order, with_float};
use crate::schema::{kernel, position};
use edgepack_compute::float::Float;
use edgepack_compute::layout::AxisView;
use edgepack_compute::norm::{ChannelStatistics, rounded};
use edgepack_compute::number::Number;

/// `aten::_native_batch_norm_legit_no_training.out`.
pub static NO_TRAINING: Kernel =
    kernel("aten::_native_batch_norm_legit_no_training.out", Alias::Disjoint, |args| prepare(args, &NO_TRAINING_FORM));

/// `aten::_native_batch_norm_legit.out`.
pub static LEGIT: Kernel =
    kernel("aten::_native_batch_norm_legit.out", Alias::Disjoint, |args| prepare(args, &LEGIT_FORM));

/// `aten::_native_batch_norm_legit.no_stats_out`.
pub static NO_STATS: Kernel =
    kernel("aten::_native_batch_norm_legit.no_stats_out", Alias::Disjoint, |args| prepare(args, &NO_STATS_FORM));

/// Input, weight and bias of all three.
const INPUT: usize = position("aten::_native_batch_norm_legit.out", "input");
const WEIGHT: usize = position("aten::_native_batch_norm_legit.out", "weight");
const BIAS: usize = position("aten::_native_batch_norm_legit.out", "bias");

/// Positions of the arguments that differ.
struct Form {
    /// Running mean and variance. They are outputs if `training` is there.
    running: Option<[usize; 2]>,
    training: Option<usize>,
    eps: usize,
    out: usize,
    /// The outputs of the statistics: means, and one over the standard deviations.
    statistics: [usize; 2],
}

static NO_TRAINING_FORM: Form = {
    const NAME: &str = "aten::_native_batch_norm_legit_no_training.out";
    Form {
        running: Some([position(NAME, "running_mean"), position(NAME, "running_var")]),
        training: None,
        eps: position(NAME, "eps"),
        out: position(NAME, "out0"),
        statistics: [position(NAME, "out1"), position(NAME, "out2")],
    }
};

static LEGIT_FORM: Form = {
    const NAME: &str = "aten::_native_batch_norm_legit.out";
    Form {
        running: Some([position(NAME, "running_mean"), position(NAME, "running_var")]),
        training: Some(position(NAME, "training")),
        eps: position(NAME, "eps"),
        out: position(NAME, "out"),
        statistics: [position(NAME, "save_mean"), position(NAME, "save_invstd")],
    }
};

static NO_STATS_FORM: Form = {
    const NAME: &str = "aten::_native_batch_norm_legit.no_stats_out";
    Form {
        running: None,
        training: Some(position(NAME, "training")),
        eps: position(NAME, "eps"),
        out: position(NAME, "out"),
        statistics: [position(NAME, "save_mean"), position(NAME, "save_invstd")],
    }
};

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    let input = args.tensor(INPUT)?;
    let dtype = input.meta.dtype;
    for (arg, name) in [(WEIGHT, "weight"), (BIAS, "bias")] {
        if let Some(tensor) = args.tensor_opt(arg)? {
            expect_same(("input", dtype), (name, tensor.meta.dtype))?;
        }
    }
    if let Some([mean, variance]) = form.running {
        expect_same(("input", dtype), ("running_mean", args.tensor(mean)?.meta.dtype))?;
        expect_same(("input", dtype), ("running_var", args.tensor(variance)?.meta.dtype))?;
    }
    let [mean, scale] = form.statistics;
    for (arg, name) in [(form.out, "out"), (mean, "save_mean"), (scale, "save_invstd")] {
        expect_same(("input", dtype), (name, args.tensor(arg)?.meta.dtype))?;
    }
    let channels = match (input.dynamic, input.meta.sizes) {
        (false, [_, channels, ..]) => *channels,
        _ => input.meta.element_count(),
    };
    args.scratch(channels.saturating_mul(2 * size_of::<f64>()));
    with_float!(dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(form, cx))))
}

fn run<T: Number<Compute: Float>>(form: &Form, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(INPUT)?;
    let &[_, channels, ..] = meta.sizes else {
        return Err(KernelError::argument(format!("`input` is {}, it must have channels", Shape(meta.sizes))));
    };
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    let training = form.training.map_or(Ok(false), |arg| cx.bool(arg))?;
    if training == form.running.is_some() {
        let why =
            if training { "updates running statistics, which is not supported" } else { "has no statistics to use" };
        return Err(KernelError::unsupported(format!("`training` is {training}: this operator {why}")));
    }
    let eps = cx.double(form.eps)?;
    cx.resize(form.out, &sizes)?;
    // Statistics are results only where they were taken from the input.
    let saved = if training { channels } else { 0 };
    for stat in form.statistics {
        if cx.meta(stat)?.rank() == 1 {
            cx.resize(stat, &[saved])?;
        }
    }
    let views = cx.views();
    let input = views.tensor(INPUT)?;
    let out = views.out(form.out)?;
    expect_same_order(("input", input.dim_order), ("out", out.dim_order))?;
    let view = AxisView::new(input.sizes, input.strides, 1);
    let (input, out) = (input.as_slice::<T>()?, out.into_slice::<T>()?);
    let per_channel = |tensor: Option<TensorRef<'_>>, name: &str| match tensor {
        Some(tensor) if tensor.element_count() != channels => Err(KernelError::argument(format!(
            "`{name}` has {} elements, `input` has {channels} channels",
            tensor.element_count()
        ))),
        _ => Ok(()),
    };
    let (weight, bias) = (views.tensor_opt(WEIGHT)?, views.tensor_opt(BIAS)?);
    per_channel(weight, "weight")?;
    per_channel(bias, "bias")?;
    let scratch: &mut [f64] = bytemuck::try_cast_slice_mut(views.scratch()?)
        .map_err(|_| KernelError::argument("the scratch memory is not aligned"))?;
    let (means, rest) = scratch.split_at_mut(channels.min(scratch.len()));
    let scales = rest.get_mut(..channels).ok_or_else(|| KernelError::unsupported("more channels than at load"))?;
    let mut statistics = ChannelStatistics { means, scales };
    if training {
        statistics.measure(view, input, eps)?;
        let [save_mean, save_scale] = form.statistics;
        save::<T>(&mut views.out(save_mean)?, statistics.means)?;
        save::<T>(&mut views.out(save_scale)?, statistics.scales)?;
    } else if let Some([mean, variance]) = form.running {
        // The running statistics are outputs by schema where training could update them.
        if form.training.is_some() {
            let (mut mean, mut variance) = (views.out(mean)?, views.out(variance)?);
            load(mean.as_mut_slice::<T>()?, variance.as_mut_slice::<T>()?, eps, &mut statistics)?;
        } else {
            let (mean, variance) = (views.tensor(mean)?, views.tensor(variance)?);
            load(mean.as_slice::<T>()?, variance.as_slice::<T>()?, eps, &mut statistics)?;
        }
    }
    let (weight, bias) = (weight.map(|t| t.as_slice::<T>()).transpose()?, bias.map(|t| t.as_slice::<T>()).transpose()?);
    Ok(statistics.normalise(view, input, weight, bias, out)?)
}

/// Stores statistics as results, as many as these have room for.
fn save<T: Number<Compute: Float>>(out: &mut TensorMut<'_>, statistics: &[f64]) -> Result<(), KernelError> {
    out.as_mut_slice::<T>()?.iter_mut().zip(statistics).for_each(|(to, &from)| *to = rounded(from));
    Ok(())
}

/// Takes running statistics, one of each for every channel.
fn load<T: Number>(
    means: &[T],
    variances: &[T],
    eps: f64,
    statistics: &mut ChannelStatistics<'_>,
) -> Result<(), KernelError> {
    let channels = statistics.means.len();
    if means.len() != channels || variances.len() != channels {
        return Err(KernelError::argument(format!(
            "`running_mean` has {} and `running_var` has {} elements, `input` has {channels} channels",
            means.len(),
            variances.len(),
        )));
    }
    statistics.load(means, variances, eps);
    Ok(())
}
