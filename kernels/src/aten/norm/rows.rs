//! Layer norm and group norm: every row of neighbouring elements gets mean 0 and variance 1, then a factor and an offset.
//!
//! Where rows do not lie in memory as such, because input or output are not contiguous, they are laid out in scratch memory.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run, Views};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::tensor::Dims;

use crate::broadcast::Walk;
use crate::check::{Shape, expect_same, with_float};
use edgepack_compute::float::Float;
use edgepack_compute::fold::row_sum;
use edgepack_compute::number::{Cast, Compute, Number};
use edgepack_compute::simd::wide;
use edgepack_compute::threads::{Read, Write, for_each, pays};

/// `aten::native_layer_norm.out`.
pub static LAYER_NORM: Kernel = Kernel {
    name: "aten::native_layer_norm.out",
    schema: "(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &LAYER),
};

/// `aten::native_group_norm.out`.
pub static GROUP_NORM: Kernel = Kernel {
    name: "aten::native_group_norm.out",
    schema: "(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &GROUP),
};

/// Where the arguments stand, and how rows are found.
struct Form {
    weight: usize,
    bias: usize,
    eps: usize,
    out: usize,
    rows: fn(&KernelContext<'_>) -> Result<Rows, KernelError>,
}

static LAYER: Form = Form { weight: 2, bias: 3, eps: 4, out: 5, rows: layer_rows };
static GROUP: Form = Form { weight: 1, bias: 2, eps: 7, out: 8, rows: group_rows };

/// The rows of a call.
struct Rows {
    /// Elements of a row.
    width: usize,
    /// Neighbouring elements that share a factor: all of a channel, or one.
    run: usize,
    /// Factors a row uses, and how many rows there are until they repeat.
    factors: usize,
    period: usize,
    /// Sizes of the statistics.
    stats: Dims,
}

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    let dtype = args.tensor(0)?.meta.dtype;
    for (arg, name) in [(form.weight, "weight"), (form.bias, "bias")] {
        if let Some(tensor) = args.tensor_opt(arg)? {
            expect_same(("input", dtype), (name, tensor.meta.dtype))?;
        }
    }
    for (index, name) in ["out0", "out1", "out2"].into_iter().enumerate() {
        expect_same(("input", dtype), (name, args.tensor(form.out + index)?.meta.dtype))?;
    }
    let (input, out) = (args.tensor(0)?.meta, args.tensor(form.out)?.meta);
    let factors = [form.weight, form.bias].map(|arg| args.tensor_opt(arg));
    for tensor in factors.into_iter().chain([form.out + 1, form.out + 2].map(|arg| args.tensor(arg).map(Some))) {
        if let Some(tensor) = tensor?.filter(|tensor| !tensor.meta.is_contiguous()) {
            let order = tensor.meta.dim_order;
            return Err(KernelError::unsupported(format!("factors or statistics have dim order {order:?}")));
        }
    }
    args.scratch(turned_bytes(&input) + turned_bytes(&out));
    with_float!(dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(form, cx))))
}

/// Scratch memory for the rows of a tensor.
fn turned_bytes(meta: &TensorShape<'_>) -> usize {
    if meta.is_contiguous() { 0 } else { meta.byte_len() }
}

fn too_large() -> KernelError {
    KernelError::unsupported("`input` is larger than at load")
}

fn layer_rows(cx: &KernelContext<'_>) -> Result<Rows, KernelError> {
    let (meta, shape) = (cx.meta(0)?, cx.ints(1)?);
    let split = meta.rank().checked_sub(shape.len()).filter(|_| !shape.is_empty());
    let fits = |split: &usize| shape.iter().eq(meta.sizes[*split..].iter().map(|&size| size as i64));
    let Some(split) = split.filter(fits) else {
        return Err(KernelError::argument(format!(
            "`normalized_shape` is {:?}, `input` is {}: the last sizes differ",
            shape.iter().collect::<Vec<_>>(),
            Shape(meta.sizes)
        )));
    };
    let width = meta.sizes[split..].iter().product();
    let mut stats = Dims::from_slice(meta.sizes).unwrap_or_default();
    stats[split..].fill(1);
    Ok(Rows { width, run: 1, factors: width, period: 1, stats })
}

fn group_rows(cx: &KernelContext<'_>) -> Result<Rows, KernelError> {
    let meta = cx.meta(0)?;
    let (n, c, hxw, group) = (cx.int(3)?, cx.int(4)?, cx.int(5)?, cx.int(6)?);
    let sizes = meta.sizes;
    let consistent = sizes.len() >= 2
        && (sizes[0] as i64, sizes[1] as i64) == (n, c)
        && sizes[2..].iter().product::<usize>() as i64 == hxw;
    if !consistent {
        return Err(KernelError::argument(format!(
            "`input` is {}, but N is {n}, C is {c} and HxW is {hxw}",
            Shape(sizes)
        )));
    }
    if group <= 0 || c % group != 0 {
        return Err(KernelError::argument(format!("`group` is {group}, which does not divide the {c} channels")));
    }
    let (group, factors) = (group as usize, (c / group) as usize);
    let stats = Dims::from_slice(&[n as usize, group]).unwrap_or_default();
    Ok(Rows { width: factors * hxw as usize, run: hxw as usize, factors, period: group, stats })
}

fn run<T: Number<Compute: Float>>(form: &Form, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let rows = (form.rows)(cx)?;
    let eps = cx.double(form.eps)?;
    let sizes = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
    cx.resize(form.out, &sizes)?;
    for stat in [form.out + 1, form.out + 2] {
        cx.resize(stat, &rows.stats)?;
    }
    let views = cx.views();
    let (input, mut target) = (views.tensor(0)?, views.out(form.out)?);
    let bytes = turned_bytes(&input.meta());
    let (turned, rest) = views.scratch()?.split_at_mut_checked(bytes).ok_or_else(too_large)?;
    let input = if bytes == 0 {
        input.as_slice::<T>()?
    } else {
        Walk::by_index(&input.meta()).gather(size_of::<T>(), input.bytes(), turned);
        bytemuck::try_cast_slice(turned).map_err(|_| too_large())?
    };
    let weight = factors::<T>(&views, form.weight, "weight", &rows)?;
    let bias = factors::<T>(&views, form.bias, "bias", &rows)?;
    let meta = target.meta();
    let rest = rest.get_mut(..turned_bytes(&meta)).ok_or_else(too_large)?;
    let out = match meta.is_contiguous() {
        true => target.as_slice::<T>()?,
        false => bytemuck::try_cast_slice_mut(rest).map_err(|_| too_large())?,
    };
    let (mut means, mut scales) = (views.out(form.out + 1)?, views.out(form.out + 2)?);
    let (means, scales) = (means.as_slice::<T>()?, scales.as_slice::<T>()?);
    if rows.width == 0 {
        means.fill(narrow(f64::NAN));
        scales.fill(narrow(f64::NAN));
        return Ok(());
    }
    let share = pays(size_of_val(out));
    let lists = (Read(input, rows.width), Write(out, rows.width), Write(means, 1), Write(scales, 1));
    for_each(share, lists, |index, (input, out, kept_mean, kept_scale)| {
        let first = index % rows.period * rows.factors;
        let (mean, scale) = wide(|| statistics(input, eps));
        (kept_mean[0], kept_scale[0]) = (narrow(mean), narrow(scale));
        let weight = weight.map(|all| &all[first..first + rows.factors]);
        let bias = bias.map(|all| &all[first..first + rows.factors]);
        wide(|| normalise(input, out, rows.run, Float::of(mean), Float::of(scale), weight, bias));
    });
    if !rest.is_empty() {
        Walk::by_index(&meta).cursor().scatter(size_of::<T>(), rest, target.bytes());
    }
    Ok(())
}

fn narrow<T: Number<Compute: Float>>(x: f64) -> T {
    <T::Compute as Float>::of(x).cast()
}

fn factors<'v, T: Number>(
    views: &Views<'v>,
    arg: usize,
    name: &str,
    rows: &Rows,
) -> Result<Option<&'v [T]>, KernelError> {
    let Some(tensor) = views.tensor_opt(arg)? else { return Ok(None) };
    let (have, want) = (tensor.element_count(), rows.factors * rows.period);
    if have != want {
        return Err(KernelError::argument(format!("`{name}` has {have} elements, `input` needs {want}")));
    }
    tensor.as_slice::<T>().map(Some)
}

/// The mean, and one over the standard deviation.
#[inline(always)]
fn statistics<T: Number<Compute: Float>>(row: &[T], eps: f64) -> (f64, f64) {
    let count = row.len() as f64;
    let mean = row_sum(row, |x| x) / count;
    let center = <T::Compute as Float>::of(mean);
    let variance = row_sum(row, |x| x.minus(center).times(x.minus(center))) / count;
    (mean, 1.0 / (variance + eps).sqrt())
}

#[inline(always)]
fn normalise<T: Number<Compute: Float>>(
    input: &[T],
    out: &mut [T],
    run: usize,
    mean: T::Compute,
    scale: T::Compute,
    weight: Option<&[T]>,
    bias: Option<&[T]>,
) {
    let one = |x: T| x.to_compute().minus(mean).times(scale);
    if run > 1 {
        for (channel, (input, out)) in input.chunks_exact(run).zip(out.chunks_exact_mut(run)).enumerate() {
            let factor = weight.map_or(T::Compute::ONE, |weight| weight[channel].to_compute());
            let offset = bias.map_or(T::Compute::ZERO, |bias| bias[channel].to_compute());
            for (out, &x) in out.iter_mut().zip(input) {
                *out = one(x).times(factor).plus(offset).cast();
            }
        }
        return;
    }
    let pairs = out.iter_mut().zip(input);
    match (weight, bias) {
        (None, None) => pairs.for_each(|(out, &x)| *out = one(x).cast()),
        (Some(weight), None) => {
            pairs.zip(weight).for_each(|((out, &x), w)| *out = one(x).times(w.to_compute()).cast());
        }
        (None, Some(bias)) => pairs.zip(bias).for_each(|((out, &x), b)| *out = one(x).plus(b.to_compute()).cast()),
        (Some(weight), Some(bias)) => {
            for (((out, &x), w), b) in pairs.zip(weight).zip(bias) {
                *out = one(x).times(w.to_compute()).plus(b.to_compute()).cast();
            }
        }
    }
}
