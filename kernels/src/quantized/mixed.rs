//! Products of floats with matrices of 8-bit weights: `mixed_mm` and `mixed_linear`.
//!
//! A weight counts as itself times a scale: of its row, or of its group within the row. Zero points are not taken, as in
//! the reference. Sums are computed in `f32`, the scale of a group is applied to the sum over it.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::PodElement;
use edgepack_format::scalar::ScalarType;
use half::f16;

use crate::check::{Shape, expect_dtype, expect_same};
use crate::numeric::Cast;

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[&MM, &LINEAR];

static MM: Kernel = Kernel {
    name: "quantized_decomposed::mixed_mm.out",
    schema: "(Tensor input, Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &Form { transposed: false, dtype: None, out: 4 }),
};
static LINEAR: Kernel = Kernel {
    name: "quantized_decomposed::mixed_linear.out",
    schema: "(Tensor input, Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, ScalarType? dtype=None, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &Form { transposed: true, dtype: Some(4), out: 5 }),
};

/// What tells the two apart.
struct Form {
    /// Whether a row of the weight belongs to an output, not to an input.
    transposed: bool,
    /// Where the type of the result stands.
    dtype: Option<usize>,
    out: usize,
}

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(form.out + 2)?;
    let (input, out) = (args.tensor(0)?.meta.dtype, args.tensor(form.out)?.meta.dtype);
    expect_dtype("weight", args.tensor(1)?.meta.dtype, ScalarType::CHAR)?;
    expect_same(("input", input), ("weight_scales", args.tensor(2)?.meta.dtype))?;
    if !args.is_none(3) {
        return Err(KernelError::unsupported("`weight_zero_points` is given: only symmetric weights are taken"));
    }
    if let Some(arg) = form.dtype.filter(|&arg| !args.is_none(arg))
        && let Some(dtype) = args.int(arg)?
        && dtype != i64::from(out.0)
    {
        return Err(KernelError::argument(format!("`dtype` is {dtype}, `out` is {out}")));
    }
    match (input, out) {
        (ScalarType::FLOAT, ScalarType::FLOAT) => Ok(Box::new(|cx: &mut KernelContext<'_>| run::<f32, f32>(cx, form))),
        (ScalarType::HALF, ScalarType::HALF) => Ok(Box::new(|cx: &mut KernelContext<'_>| run::<f16, f16>(cx, form))),
        (ScalarType::FLOAT, ScalarType::HALF) if form.dtype.is_some() => {
            Ok(Box::new(|cx: &mut KernelContext<'_>| run::<f32, f16>(cx, form)))
        }
        (ScalarType::HALF, ScalarType::FLOAT) if form.dtype.is_some() => {
            Ok(Box::new(|cx: &mut KernelContext<'_>| run::<f16, f32>(cx, form)))
        }
        _ => Err(KernelError::argument(format!("`input` is {input}, `out` is {out}: not FLOAT or HALF alike"))),
    }
}

fn run<T, U>(cx: &mut KernelContext<'_>, form: &Form) -> Result<(), KernelError>
where
    T: PodElement + Cast<f32>,
    U: PodElement,
    f32: Cast<U>,
{
    let (input, weight, scales) = (cx.meta(0)?, cx.meta(1)?, cx.meta(2)?);
    let shapes = || {
        KernelError::argument(format!(
            "`input` is {}, `weight` {}, `weight_scales` {}: they make no product",
            Shape(input.sizes),
            Shape(weight.sizes),
            Shape(scales.sizes)
        ))
    };
    let (&[rows, inner], &[first, second]) = (input.sizes, weight.sizes) else { return Err(shapes()) };
    let (columns, along) = if form.transposed { (first, second) } else { (second, first) };
    let groups = match *scales.sizes {
        [count] if count == first => 1,
        [count, groups] if form.transposed && count == first && (1..=inner.max(1)).contains(&groups) => groups,
        _ => return Err(shapes()),
    };
    if along != inner {
        return Err(shapes());
    }
    if !(input.is_contiguous() && weight.is_contiguous() && scales.is_contiguous()) {
        return Err(KernelError::unsupported("all tensors must be contiguous"));
    }
    cx.resize(form.out, &[rows, columns])?;
    let views = cx.views();
    let (input, weight) = (views.tensor(0)?.as_slice::<T>()?, views.tensor(1)?.as_slice::<i8>()?);
    let (scales, out) = (views.tensor(2)?.as_slice::<T>()?, views.out(form.out)?);
    if !out.meta().is_contiguous() {
        return Err(KernelError::unsupported("all tensors must be contiguous"));
    }
    let group = inner.div_ceil(groups).max(1);
    for (at, out) in out.into_slice::<U>()?.iter_mut().enumerate() {
        let (row, column) = (at / columns, at % columns);
        let x = &input[row * inner..][..inner];
        *out = if form.transposed {
            let weights = weight[column * inner..][..inner].chunks(group);
            let sums = x
                .chunks(group)
                .zip(weights)
                .map(|(x, w)| x.iter().zip(w).map(|(&x, &w)| Cast::<f32>::cast(x) * f32::from(w)).sum::<f32>());
            let scales = &scales[column * groups..][..groups];
            sums.zip(scales).map(|(sum, &scale)| sum * Cast::<f32>::cast(scale)).sum::<f32>().cast()
        } else {
            let weights = weight.iter().skip(column).step_by(columns);
            let terms = x.iter().zip(weights).zip(scales);
            terms.map(|((&x, &w), &s)| Cast::<f32>::cast(x) * f32::from(w) * Cast::<f32>::cast(s)).sum::<f32>().cast()
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_executor::call::{Arg, call};

    fn out(kernel: &Kernel, input: Arg, weight: (&[usize], &[i8]), scales: Arg) -> Result<Vec<f32>, KernelError> {
        let mut args = vec![input, Arg::tensor(weight.0, weight.1), scales, Arg::None];
        if kernel.name == LINEAR.name {
            args.push(Arg::None);
        }
        args.push(Arg::out(ScalarType::FLOAT, &[2, 2]));
        Ok(call(kernel, &args)?[0].as_slice().unwrap())
    }

    const INPUT: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

    #[test]
    fn scales_are_those_of_the_weights_rows() {
        let (input, weights) = (|| Arg::tensor(&[2, 3], &INPUT), [1i8, -2, 3, 4, -5, 6]);
        let have = out(&MM, input(), (&[3, 2], &weights), Arg::tensor(&[3], &[1f32, 10.0, 100.0])).unwrap();
        assert_eq!(have, [1.0 + 60.0 - 1500.0, -2.0 + 80.0 + 1800.0, 4.0 + 150.0 - 3000.0, -8.0 + 200.0 + 3600.0]);
        let have = out(&LINEAR, input(), (&[2, 3], &weights), Arg::tensor(&[2], &[1f32, 10.0])).unwrap();
        assert_eq!(have, [6.0, 120.0, 12.0, 270.0]);
        let grouped = Arg::tensor(&[2, 2], &[1f32, 10.0, 100.0, 1000.0]);
        let have = out(&LINEAR, input(), (&[2, 3], &weights), grouped).unwrap();
        assert_eq!(have[..2], [-3.0 + 90.0, -600.0 + 18000.0]);
    }

    #[test]
    fn shapes_that_make_no_product_are_errors() {
        let scales = |sizes: &[usize]| Arg::tensor(sizes, &vec![1f32; sizes.iter().product()]);
        let weights = [0i8; 6];
        let input = || Arg::tensor(&[2, 3], &INPUT);
        assert!(out(&MM, input(), (&[2, 3], &weights), scales(&[2])).is_err());
        assert!(out(&MM, input(), (&[3, 2], &weights), scales(&[2])).is_err());
        assert!(out(&LINEAR, input(), (&[2, 3], &weights), scales(&[2, 4])).is_err());
        assert!(out(&LINEAR, Arg::tensor(&[6], &INPUT), (&[2, 3], &weights), scales(&[2])).is_err());
    }
}
