//! Batch norm: every channel gets a factor and an offset, from statistics that are given or taken from the input.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorRef;
use edgepack_format::tensor::Dims;

use crate::check::{Around, Shape, expect_same, expect_same_order, with_float};
use edgepack_compute::float::Float;
use edgepack_compute::fold::Moments;
use edgepack_compute::number::{Cast, Compute, Number};

/// `aten::_native_batch_norm_legit_no_training.out`.
pub static NO_TRAINING: Kernel = Kernel {
    name: "aten::_native_batch_norm_legit_no_training.out",
    schema: "(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &NO_TRAINING_FORM),
};

/// `aten::_native_batch_norm_legit.out`.
pub static LEGIT: Kernel = Kernel {
    name: "aten::_native_batch_norm_legit.out",
    schema: "(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, float eps, *, Tensor(d!) out, Tensor(e!) save_mean, Tensor(f!) save_invstd) -> (Tensor(d!), Tensor(e!), Tensor(f!))",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &LEGIT_FORM),
};

/// `aten::_native_batch_norm_legit.no_stats_out`.
pub static NO_STATS: Kernel = Kernel {
    name: "aten::_native_batch_norm_legit.no_stats_out",
    schema: "(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps, *, Tensor(a!) out, Tensor(b!) save_mean, Tensor(c!) save_invstd) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &NO_STATS_FORM),
};

/// Where the arguments stand.
struct Form {
    /// Running mean; the running variance follows. They are outputs if `training` is there.
    running: Option<usize>,
    training: Option<usize>,
    /// Momentum; eps follows.
    momentum: usize,
    out: usize,
}

static NO_TRAINING_FORM: Form = Form { running: Some(3), training: None, momentum: 5, out: 7 };
static LEGIT_FORM: Form = Form { running: Some(3), training: Some(5), momentum: 6, out: 8 };
static NO_STATS_FORM: Form = Form { running: None, training: Some(3), momentum: 4, out: 6 };

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    let input = args.tensor(0)?;
    let dtype = input.meta.dtype;
    for (arg, name) in [(1, "weight"), (2, "bias")] {
        if let Some(tensor) = args.tensor_opt(arg)? {
            expect_same(("input", dtype), (name, tensor.meta.dtype))?;
        }
    }
    if let Some(running) = form.running {
        expect_same(("input", dtype), ("running_mean", args.tensor(running)?.meta.dtype))?;
        expect_same(("input", dtype), ("running_var", args.tensor(running + 1)?.meta.dtype))?;
    }
    for (index, name) in ["out", "save_mean", "save_invstd"].into_iter().enumerate() {
        expect_same(("input", dtype), (name, args.tensor(form.out + index)?.meta.dtype))?;
    }
    let channels = match (input.dynamic, input.meta.sizes) {
        (false, [_, channels, ..]) => *channels,
        _ => input.meta.element_count(),
    };
    args.scratch(channels.saturating_mul(2 * size_of::<f64>()));
    with_float!(dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(form, cx))))
}

fn run<T: Number<Compute: Float>>(form: &Form, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(0)?;
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
    let eps = cx.double(form.momentum + 1)?;
    cx.resize(form.out, &sizes)?;
    // Statistics are results only where they were taken from the input.
    let saved = if training { channels } else { 0 };
    for stat in [form.out + 1, form.out + 2] {
        if cx.meta(stat)?.rank() == 1 {
            cx.resize(stat, &[saved])?;
        }
    }
    let views = cx.views();
    let input = views.tensor(0)?;
    let out = views.out(form.out)?;
    expect_same_order(("input", input.dim_order), ("out", out.dim_order))?;
    let around = Around::new(input.sizes, input.strides, 1);
    let (input, out) = (input.as_slice::<T>()?, out.into_slice::<T>()?);
    let per_channel = |tensor: Option<TensorRef<'_>>, name: &str| match tensor {
        Some(tensor) if tensor.element_count() != channels => Err(KernelError::argument(format!(
            "`{name}` has {} elements, `input` has {channels} channels",
            tensor.element_count()
        ))),
        _ => Ok(()),
    };
    let (weight, bias) = (views.tensor_opt(1)?, views.tensor_opt(2)?);
    per_channel(weight, "weight")?;
    per_channel(bias, "bias")?;
    let scratch: &mut [f64] = bytemuck::try_cast_slice_mut(views.scratch()?)
        .map_err(|_| KernelError::argument("the scratch memory is not aligned"))?;
    let (means, rest) = scratch.split_at_mut(channels.min(scratch.len()));
    let scales = rest.get_mut(..channels).ok_or_else(|| KernelError::unsupported("more channels than at load"))?;
    if training {
        let (mut save_mean, mut save_scale) = (views.out(form.out + 1)?, views.out(form.out + 2)?);
        let of = <T::Compute as Float>::of;
        let saves = save_mean.as_slice::<T>()?.iter_mut().zip(save_scale.as_slice::<T>()?);
        for (channel, save) in saves.enumerate().take(channels) {
            let moments = channel_moments(around, channel, input);
            (means[channel], scales[channel]) = (moments.mean(), 1.0 / (moments.variance(0.0) + eps).sqrt());
            (*save.0, *save.1) = (of(means[channel]).cast(), of(scales[channel]).cast());
        }
    } else if let Some(running) = form.running {
        // The running statistics are outputs by schema where training could update them.
        let is_out = form.training.is_some();
        if is_out {
            let (mut mean, mut var) = (views.out(running)?, views.out(running + 1)?);
            load_statistics(mean.as_slice::<T>()?, var.as_slice::<T>()?, eps, means, scales)?;
        } else {
            let (mean, var) = (views.tensor(running)?, views.tensor(running + 1)?);
            load_statistics(mean.as_slice::<T>()?, var.as_slice::<T>()?, eps, means, scales)?;
        }
    }
    // From here on: y = x * scale + offset, the offset where the mean was.
    let (weight, bias) = (weight.map(|t| t.as_slice::<T>()).transpose()?, bias.map(|t| t.as_slice::<T>()).transpose()?);
    for (channel, (offset, scale)) in means.iter_mut().zip(&mut *scales).enumerate() {
        let factor = weight.map_or(1.0, |weight| weight[channel].cast());
        let bias: f64 = bias.map_or(0.0, |bias| bias[channel].cast());
        *scale *= factor;
        *offset = bias - *offset * *scale;
    }
    apply(around, input, out, scales, means);
    Ok(())
}

fn load_statistics<T: Number>(
    mean: &[T],
    var: &[T],
    eps: f64,
    means: &mut [f64],
    scales: &mut [f64],
) -> Result<(), KernelError> {
    if mean.len() != means.len() || var.len() != means.len() {
        return Err(KernelError::argument(format!(
            "`running_mean` has {} and `running_var` has {} elements, `input` has {} channels",
            mean.len(),
            var.len(),
            means.len()
        )));
    }
    means.iter_mut().zip(mean).for_each(|(to, &from)| *to = from.cast());
    scales.iter_mut().zip(var).for_each(|(to, &from)| *to = 1.0 / (Cast::<f64>::cast(from) + eps).sqrt());
    Ok(())
}

fn channel_moments<T: Number>(around: Around, channel: usize, input: &[T]) -> Moments {
    let mut moments = Moments::default();
    for block in 0..around.outer {
        let first = (block * around.size + channel) * around.inner;
        input[first..first + around.inner].iter().for_each(|&x| moments.add(x.cast()));
    }
    moments
}

fn apply<T: Number<Compute: Float>>(around: Around, input: &[T], out: &mut [T], scales: &[f64], offsets: &[f64]) {
    let of = <T::Compute as Float>::of;
    let block = (around.size * around.inner).max(1);
    for (input, out) in input.chunks_exact(block).zip(out.chunks_exact_mut(block)) {
        if around.inner == 1 {
            for (((out, &x), &scale), &offset) in out.iter_mut().zip(input).zip(scales).zip(offsets) {
                *out = x.to_compute().times(of(scale)).plus(of(offset)).cast();
            }
            continue;
        }
        let rows = input.chunks_exact(around.inner).zip(out.chunks_exact_mut(around.inner));
        for (((input, out), &scale), &offset) in rows.zip(scales).zip(offsets) {
            let (scale, offset) = (of(scale), of(offset));
            for (out, &x) in out.iter_mut().zip(input) {
                *out = x.to_compute().times(scale).plus(offset).cast();
            }
        }
    }
}
