//! Products of floats with matrices of 8-bit weights: `mixed_mm` and `mixed_linear`.
//!
//! A weight counts as itself times a scale: of its row, or of its group within the row. Zero points are not taken, as in
//! the reference. Weights are scaled and summed in `f32`.

use std::ops::Range;

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::scalar::ScalarType;
use half::f16;

use crate::check::{Shape, expect_dtype, expect_same};
use crate::schema::{kernel, position};
use edgepack_compute::gemm::Mat;
use edgepack_compute::half::Narrow;
use edgepack_compute::number::Cast;
use edgepack_compute::panels::{Lies, Panel, Panels};
use edgepack_compute::simd::wide;

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[&MM, &LINEAR];

static MM: Kernel = kernel("quantized_decomposed::mixed_mm.out", Alias::Disjoint, |args| prepare(args, &PLAIN));
static LINEAR: Kernel =
    kernel("quantized_decomposed::mixed_linear.out", Alias::Disjoint, |args| prepare(args, &TRANSPOSED));

/// Arguments of both.
const INPUT: usize = position("quantized_decomposed::mixed_mm.out", "input");
const WEIGHT: usize = position("quantized_decomposed::mixed_mm.out", "weight");
const SCALES: usize = position("quantized_decomposed::mixed_mm.out", "weight_scales");
const ZERO_POINTS: usize = position("quantized_decomposed::mixed_mm.out", "weight_zero_points");

static PLAIN: Form =
    Form { transposed: false, dtype: None, out: position("quantized_decomposed::mixed_mm.out", "out") };
static TRANSPOSED: Form = Form {
    transposed: true,
    dtype: Some(position("quantized_decomposed::mixed_linear.out", "dtype")),
    out: position("quantized_decomposed::mixed_linear.out", "out"),
};

/// Differences between the two operators.
struct Form {
    /// True if a row of the weight belongs to an output, not to an input.
    transposed: bool,
    /// Position of the argument that is the type of the result.
    dtype: Option<usize>,
    out: usize,
}

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(form.out + 2)?;
    let (input, out) = (args.tensor(INPUT)?.meta.dtype, args.tensor(form.out)?.meta.dtype);
    expect_dtype("weight", args.tensor(WEIGHT)?.meta.dtype, ScalarType::CHAR)?;
    expect_same(("input", input), ("weight_scales", args.tensor(SCALES)?.meta.dtype))?;
    if !args.is_none(ZERO_POINTS) {
        return Err(KernelError::unsupported("`weight_zero_points` is given: only symmetric weights are taken"));
    }
    if let Some(arg) = form.dtype.filter(|&arg| !args.is_none(arg))
        && let Some(dtype) = args.int(arg)?
        && dtype != i64::from(out.0)
    {
        return Err(KernelError::argument(format!("`dtype` is {dtype}, `out` is {out}")));
    }
    let weight = args.tensor(WEIGHT)?.meta;
    if let (&[m, k], &[first, second]) = (args.tensor(INPUT)?.meta.sizes, weight.sizes) {
        let n = if form.transposed { first } else { second };
        let elements = Panels { m, k, n }.scratch().saturating_add(m.saturating_mul(k));
        args.scratch(elements.saturating_mul(size_of::<f32>()));
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
        _ => Err(KernelError::argument(format!("`input` is {input}, `out` is {out}: not f32 or f16 alike"))),
    }
}

fn run<T: Narrow, U: Narrow>(cx: &mut KernelContext<'_>, form: &Form) -> Result<(), KernelError> {
    let (input, weight, scales) = (cx.meta(INPUT)?, cx.meta(WEIGHT)?, cx.meta(SCALES)?);
    let shapes = || {
        KernelError::argument(format!(
            "`input` is {}, `weight` {}, `weight_scales` {}: they make no product",
            Shape(input.sizes),
            Shape(weight.sizes),
            Shape(scales.sizes)
        ))
    };
    let (&[m, k], &[first, second]) = (input.sizes, weight.sizes) else { return Err(shapes()) };
    let (n, along) = if form.transposed { (first, second) } else { (second, first) };
    let groups = match *scales.sizes {
        [count] if count == first => 1,
        [count, groups] if form.transposed && count == first && (1..=k.max(1)).contains(&groups) => groups,
        _ => return Err(shapes()),
    };
    if along != k {
        return Err(shapes());
    }
    if !(input.is_contiguous() && weight.is_contiguous() && scales.is_contiguous()) {
        return Err(KernelError::unsupported("all tensors must be contiguous"));
    }
    cx.resize(form.out, &[m, n])?;
    let views = cx.views();
    let (input, weight) = (views.tensor(INPUT)?.as_slice::<T>()?, views.tensor(WEIGHT)?.as_slice::<i8>()?);
    let (scales, out) = (views.tensor(SCALES)?.as_slice::<T>()?, views.out(form.out)?);
    if !out.meta().is_contiguous() {
        return Err(KernelError::unsupported("all tensors must be contiguous"));
    }
    let scratch: &mut [f32] = bytemuck::try_cast_slice_mut(views.scratch()?)
        .map_err(|_| KernelError::unsupported("the scratch memory is not aligned"))?;
    let (wide, scratch) = scratch
        .split_at_mut_checked(input.len())
        .ok_or_else(|| KernelError::unsupported("the operand is larger than at load"))?;
    T::widen(input, wide);
    let group = form.transposed.then(|| k.div_ceil(groups).max(1));
    let mut stored = Stored { weight, scales, groups, group, columns: n, out: out.into_slice::<U>()? };
    Ok(Panels { m, k, n }.multiply(Mat::new(wide, [m, k], [k, 1])?, [1.0, 0.0], scratch, &mut stored)?)
}

/// The 8-bit matrix, and where results go.
struct Stored<'a, T, U> {
    weight: &'a [i8],
    scales: &'a [T],
    groups: usize,
    /// Elements of a column that share a scale, if a column is a row of the weight.
    group: Option<usize>,
    columns: usize,
    out: &'a mut [U],
}

impl<T: Narrow, U: Narrow> Panel for Stored<'_, T, U> {
    fn lies(&self) -> Lies {
        if self.group.is_some() { Lies::Columns } else { Lies::Rows }
    }

    fn fill(&self, columns: Range<usize>, panel: &mut [f32]) {
        let scaled = |from: &[i8], to: &mut [f32], scale: &T| {
            let scale: f32 = Cast::<f32>::cast(*scale);
            wide(|| to.iter_mut().zip(from).for_each(|(to, &from)| *to = f32::from(from) * scale));
        };
        let Some(group) = self.group else {
            let rows = self.weight.chunks_exact(self.columns).zip(self.scales);
            for ((row, scale), panel) in rows.zip(panel.chunks_exact_mut(columns.len())) {
                scaled(&row[columns.clone()], panel, scale);
            }
            return;
        };
        let inner = panel.len() / columns.len();
        for (column, panel) in columns.zip(panel.chunks_exact_mut(inner.max(1))) {
            let scales = &self.scales[column * self.groups..][..self.groups];
            let parts = self.weight[column * inner..][..inner].chunks(group).zip(panel.chunks_mut(group));
            for ((from, to), scale) in parts.zip(scales) {
                scaled(from, to, scale);
            }
        }
    }

    fn start(&self, _: Range<usize>, block: &mut [f32]) {
        block.fill(0.0);
    }

    fn take(&mut self, columns: Range<usize>, block: &[f32]) {
        let rows = self.out.chunks_exact_mut(self.columns);
        for (out, results) in rows.zip(block.chunks_exact(columns.len())) {
            U::narrow(results, &mut out[columns.clone()]);
        }
    }
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

    const VALUES: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

    #[test]
    fn scales_are_those_of_the_weights_rows() {
        let (input, weights) = (|| Arg::tensor(&[2, 3], &VALUES), [1i8, -2, 3, 4, -5, 6]);
        let have = out(&MM, input(), (&[3, 2], &weights), Arg::tensor(&[3], &[1f32, 10.0, 100.0])).unwrap();
        assert_eq!(have, [1.0 + 60.0 - 1500.0, -2.0 + 80.0 + 1800.0, 4.0 + 150.0 - 3000.0, -8.0 + 200.0 + 3600.0]);
        let have = out(&LINEAR, input(), (&[2, 3], &weights), Arg::tensor(&[2], &[1f32, 10.0])).unwrap();
        assert_eq!(have, [6.0, 120.0, 12.0, 270.0]);
        let grouped = Arg::tensor(&[2, 2], &[1f32, 10.0, 100.0, 1000.0]);
        let have = out(&LINEAR, input(), (&[2, 3], &weights), grouped).unwrap();
        assert_eq!(have[..2], [-3.0 + 90.0, -600.0 + 18000.0]);
    }

    #[test]
    fn products_of_several_panels_agree_with_the_definition() {
        let mut random = edgepack_compute::random::Random::new(61);
        let (m, k, n, groups) = (5, 1030, 70, 3);
        let x = random.floats(m * k);
        let weight: Vec<i8> = (0..n * k).map(|_| random.below(255) as i8).collect();
        let scales = random.floats(n * groups);
        let args = |scales: Arg| {
            let (weight, out) = (Arg::tensor(&[n, k], &weight), Arg::out(ScalarType::FLOAT, &[m, n]));
            [Arg::tensor(&[m, k], &x), weight, scales, Arg::None, Arg::None, out]
        };
        let have = call(&LINEAR, &args(Arg::tensor(&[n, groups], &scales))).unwrap()[0].as_slice::<f32>().unwrap();
        for (at, have) in have.iter().enumerate() {
            let (i, j) = (at / n, at % n);
            let scale = |l: usize| f64::from(scales[j * groups + l / k.div_ceil(groups)]);
            let terms = (0..k).map(|l| f64::from(x[i * k + l]) * f64::from(weight[j * k + l]) * scale(l));
            let (want, size) = terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
            assert!((f64::from(*have) - want).abs() <= 1e-6 * size, "{i},{j}: {have} for {want}");
        }
    }

    #[test]
    fn shapes_that_make_no_product_are_errors() {
        let scales = |sizes: &[usize]| Arg::tensor(sizes, &vec![1f32; sizes.iter().product()]);
        let weights = [0i8; 6];
        let input = || Arg::tensor(&[2, 3], &VALUES);
        assert!(out(&MM, input(), (&[2, 3], &weights), scales(&[2])).is_err());
        assert!(out(&MM, input(), (&[3, 2], &weights), scales(&[2])).is_err());
        assert!(out(&LINEAR, input(), (&[2, 3], &weights), scales(&[2, 4])).is_err());
        assert!(out(&LINEAR, Arg::tensor(&[6], &VALUES), (&[2, 3], &weights), scales(&[2])).is_err());
    }
}
