//! Layer norm and group norm: every row of neighbouring elements gets mean 0 and variance 1, then a factor and an offset.
//!
//! Rows of an input or output that is not contiguous are laid out in scratch memory, but for groups of channels of images
//! that have the channels of a pixel next to each other.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run, Views};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::{Shape, expect_same, with_float};
use crate::schema::{kernel, position};
use edgepack_compute::float::Float;
use edgepack_compute::group_norm::{Pixels, normalise_pixels};
use edgepack_compute::norm::{RowOperands, RowResults, Rows, normalise_rows, rounded};
use edgepack_compute::number::Number;
use edgepack_compute::walk::Walk;

/// `aten::native_layer_norm.out`.
pub static LAYER_NORM: Kernel = kernel("aten::native_layer_norm.out", Alias::Disjoint, |args| prepare(args, &LAYER));

/// `aten::native_group_norm.out`.
pub static GROUP_NORM: Kernel = kernel("aten::native_group_norm.out", Alias::Disjoint, |args| prepare(args, &GROUP));

/// The input of both.
const INPUT: usize = position("aten::native_layer_norm.out", "input");
const SHAPE: usize = position("aten::native_layer_norm.out", "normalized_shape");
/// Arguments of a group norm that describe its input: images, channels, elements of a channel; and the number of
/// groups.
const N: usize = position("aten::native_group_norm.out", "N");
const C: usize = position("aten::native_group_norm.out", "C");
const HXW: usize = position("aten::native_group_norm.out", "HxW");
const GROUPS: usize = position("aten::native_group_norm.out", "group");

/// Positions of the arguments both have, and how rows are found.
struct Form {
    weight: usize,
    bias: usize,
    eps: usize,
    out: usize,
    /// The outputs of the statistics: means, and one over the standard deviations.
    statistics: [usize; 2],
    rows: fn(&KernelContext<'_>) -> Result<(Rows, Dims), KernelError>,
}

impl Form {
    const fn of(name: &str, rows: fn(&KernelContext<'_>) -> Result<(Rows, Dims), KernelError>) -> Form {
        Form {
            weight: position(name, "weight"),
            bias: position(name, "bias"),
            eps: position(name, "eps"),
            out: position(name, "out0"),
            statistics: [position(name, "out1"), position(name, "out2")],
            rows,
        }
    }
}

static LAYER: Form = Form::of("aten::native_layer_norm.out", layer_rows);
static GROUP: Form = Form::of("aten::native_group_norm.out", group_rows);

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    let dtype = args.tensor(INPUT)?.meta.dtype;
    for (arg, name) in [(form.weight, "weight"), (form.bias, "bias")] {
        if let Some(tensor) = args.tensor_opt(arg)? {
            expect_same(("input", dtype), (name, tensor.meta.dtype))?;
        }
    }
    for (arg, name) in [(form.out, "out0"), (form.statistics[0], "out1"), (form.statistics[1], "out2")] {
        expect_same(("input", dtype), (name, args.tensor(arg)?.meta.dtype))?;
    }
    let (input, out) = (args.tensor(INPUT)?.meta, args.tensor(form.out)?.meta);
    let factors = [form.weight, form.bias].map(|arg| args.tensor_opt(arg));
    for tensor in factors.into_iter().chain(form.statistics.map(|arg| args.tensor(arg).map(Some))) {
        if let Some(tensor) = tensor?.filter(|tensor| !tensor.meta.is_contiguous()) {
            let order = tensor.meta.dim_order;
            return Err(KernelError::unsupported(format!("factors or statistics have dim order {order:?}")));
        }
    }
    if dtype == ScalarType::FLOAT && std::ptr::eq(form, &GROUP) && are_pixels(&input, &out) {
        args.scratch(input.sizes[1].saturating_mul(2 * size_of::<f64>()));
        return Ok(Box::new(run_pixels));
    }
    args.scratch(repacked_bytes(&input) + repacked_bytes(&out));
    with_float!(dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(form, cx))))
}

/// Returns whether images have the channels of a pixel next to each other before and after.
fn are_pixels(input: &TensorShape<'_>, out: &TensorShape<'_>) -> bool {
    let orders: [&[u8]; 2] = [&[0, 2, 1], &[0, 2, 3, 1]];
    orders.iter().any(|order| [input, out].iter().all(|images| images.dim_order == *order))
}

/// Resizes all outputs. Returns the rows of the call, and what is added to their variances.
fn resized(form: &Form, cx: &mut KernelContext<'_>) -> Result<(Rows, f64), KernelError> {
    let (rows, statistics) = (form.rows)(cx)?;
    let eps = cx.double(form.eps)?;
    let sizes = Dims::from_slice(cx.meta(INPUT)?.sizes).unwrap_or_default();
    cx.resize(form.out, &sizes)?;
    for stat in form.statistics {
        cx.resize(stat, &statistics)?;
    }
    Ok((rows, eps))
}

/// Group norm of images whose pixels have their channels next to each other.
fn run_pixels(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (rows, eps) = resized(&GROUP, cx)?;
    let views = cx.views();
    let (input, mut out) = (views.tensor(INPUT)?.as_slice::<f32>()?, views.out(GROUP.out)?);
    let weight = factors::<f32>(&views, GROUP.weight, "weight", &rows)?;
    let bias = factors::<f32>(&views, GROUP.bias, "bias", &rows)?;
    let (mut means, mut scales) = (views.out(GROUP.statistics[0])?, views.out(GROUP.statistics[1])?);
    let (out, means, scales) = (out.as_mut_slice()?, means.as_mut_slice()?, scales.as_mut_slice()?);
    if rows.width == 0 {
        means.fill(f32::NAN);
        scales.fill(f32::NAN);
        return Ok(());
    }
    let pixels = Pixels { area: rows.span, channels: rows.factors * rows.period, groups: rows.period };
    let scratch = views.scratch()?.get_mut(..pixels.scratch() * size_of::<f64>()).ok_or_else(too_large)?;
    let scratch = bytemuck::try_cast_slice_mut(scratch).map_err(|_| too_large())?;
    Ok(normalise_pixels(pixels, RowOperands { input, weight, bias, eps }, RowResults { out, means, scales }, scratch)?)
}

/// Scratch memory for the rows of a tensor.
fn repacked_bytes(meta: &TensorShape<'_>) -> usize {
    if meta.is_contiguous() { 0 } else { meta.byte_len() }
}

fn too_large() -> KernelError {
    KernelError::unsupported("`input` is larger than at load")
}

/// The rows of a call, and the sizes of their statistics: the last dimensions are a row.
fn layer_rows(cx: &KernelContext<'_>) -> Result<(Rows, Dims), KernelError> {
    let (meta, shape) = (cx.meta(INPUT)?, cx.ints(SHAPE)?);
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
    Ok((Rows { width, span: 1, factors: width, period: 1 }, stats))
}

/// The rows of a call, and the sizes of their statistics: a group of channels is a row.
fn group_rows(cx: &KernelContext<'_>) -> Result<(Rows, Dims), KernelError> {
    let meta = cx.meta(INPUT)?;
    let (n, c, hxw, group) = (cx.int(N)?, cx.int(C)?, cx.int(HXW)?, cx.int(GROUPS)?);
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
    Ok((Rows { width: factors * hxw as usize, span: hxw as usize, factors, period: group }, stats))
}

fn run<T: Number<Compute: Float>>(form: &Form, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (rows, eps) = resized(form, cx)?;
    let views = cx.views();
    let (input, mut target) = (views.tensor(INPUT)?, views.out(form.out)?);
    let bytes = repacked_bytes(&input.meta());
    let (repacked, rest) = views.scratch()?.split_at_mut_checked(bytes).ok_or_else(too_large)?;
    let input = if bytes == 0 {
        input.as_slice::<T>()?
    } else {
        Walk::by_index(&input.meta()).gather(size_of::<T>(), input.bytes(), repacked);
        bytemuck::try_cast_slice(repacked).map_err(|_| too_large())?
    };
    let weight = factors::<T>(&views, form.weight, "weight", &rows)?;
    let bias = factors::<T>(&views, form.bias, "bias", &rows)?;
    let meta = target.meta();
    let rest = rest.get_mut(..repacked_bytes(&meta)).ok_or_else(too_large)?;
    let out = match meta.is_contiguous() {
        true => target.as_mut_slice::<T>()?,
        false => bytemuck::try_cast_slice_mut(rest).map_err(|_| too_large())?,
    };
    let (mut means, mut scales) = (views.out(form.statistics[0])?, views.out(form.statistics[1])?);
    let (means, scales) = (means.as_mut_slice::<T>()?, scales.as_mut_slice::<T>()?);
    if rows.width == 0 {
        means.fill(rounded(f64::NAN));
        scales.fill(rounded(f64::NAN));
        return Ok(());
    }
    let operands = RowOperands { input, weight, bias, eps };
    normalise_rows(rows, operands, RowResults { out, means, scales })?;
    if !rest.is_empty() {
        Walk::by_index(&meta).cursor().scatter(size_of::<T>(), rest, target.bytes_mut());
    }
    Ok(())
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
