//! Scales and zero points chosen from the data: for a tensor, or for every token.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorMut;
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::expect_dtype;
use edgepack_compute::number::Cast;
use edgepack_compute::quantise::range_of;

/// Below this a scale is too small to divide by with any accuracy.
const SMALLEST_SCALE: f32 = 6.1e-5;

/// The scale and zero point that spread the integers from `least` to `greatest` over the values and 0.
fn choose(values: &[f32], least: i64, greatest: i64) -> (f64, i64) {
    let (low, high) = values.iter().fold((0f32, 0f32), |(low, high), &value| (low.min(value), high.max(value)));
    let (mut low, mut high) = (f64::from(low), f64::from(high));
    let steps = (greatest - least) as f64;
    let smallest = f64::from(SMALLEST_SCALE);
    let mut scale = (high - low) / steps;
    if scale as f32 == 0.0 || (1.0 / scale as f32).is_infinite() {
        scale = 0.1;
    }
    if scale < smallest {
        // The range is widened about zero so that it matches the larger scale.
        let wider = smallest / scale;
        scale = smallest;
        if low == 0.0 {
            high = smallest * steps;
        } else if high == 0.0 {
            low = -smallest * steps;
        } else {
            (low, high) = (low * wider, high * wider);
        }
    }
    // Zero is exact at one end or the other: at the one with the smaller error.
    let (from_low, from_high) = (least as f64 - low / scale, greatest as f64 - high / scale);
    let low_error = (least as f64).abs() - (low / scale).abs();
    let high_error = (greatest as f64).abs() - (high / scale).abs();
    let zero = if low_error < high_error { from_low } else { from_high };
    (scale, (zero.round_ties_even() as i64).max(least).min(greatest))
}

fn store(out: &mut TensorMut<'_>, at: usize, value: f64) -> Result<(), KernelError> {
    with_element!(out.dtype, T => {
        out.as_slice::<T>()?[at] = Cast::<T>::cast(value);
        Ok(())
    }, else => Err(KernelError::argument(format!("{} is no type of a scale or zero point", out.dtype))))
}

fn per_tensor(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(8)?;
    expect_dtype("input", args.tensor(0)?.meta.dtype, ScalarType::FLOAT)?;
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        for out in [5, 6] {
            // One element of any rank will do.
            if cx.meta(out)?.element_count() != 1 {
                cx.resize(out, &[1])?;
            }
        }
        let (least, greatest) = (cx.int(1)?, cx.int(2)?);
        if least >= greatest || range_of(ScalarType::INT).is_none_or(|(low, high)| least < low || greatest > high) {
            return Err(KernelError::argument(format!("`quant_min` {least} and `quant_max` {greatest} are no range")));
        }
        let views = cx.views();
        let (scale, zero) = choose(views.tensor(0)?.as_slice()?, least, greatest);
        store(&mut views.out(5)?, 0, scale)?;
        store(&mut views.out(6)?, 0, zero as f64)
    }))
}

fn per_token(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(5)?;
    let input = args.tensor(0)?.meta;
    expect_dtype("input", input.dtype, ScalarType::FLOAT)?;
    if !input.is_contiguous() || input.rank() == 0 {
        return Err(KernelError::unsupported("`input` must be contiguous and have a dimension"));
    }
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let mut sizes = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
        let last = sizes.len() - 1;
        let width = std::mem::replace(&mut sizes[last], 1);
        cx.resize(2, &sizes)?;
        cx.resize(3, &sizes)?;
        let views = cx.views();
        let input = views.tensor(0)?;
        let (mut scales, mut zeros) = (views.out(2)?, views.out(3)?);
        for (token, values) in input.as_slice::<f32>()?.chunks_exact(width.max(1)).enumerate() {
            let (scale, zero) = choose(values, -128, 127);
            store(&mut scales, token, scale)?;
            store(&mut zeros, token, zero as f64)?;
        }
        Ok(())
    }))
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &Kernel {
        name: "quantized_decomposed::choose_qparams.Tensor_out",
        schema: "(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype, *, Tensor(a!) scale_out, \
                 Tensor(b!) zero_point_out) -> (Tensor(a!), Tensor(b!))",
        alias: Alias::Disjoint,
        prepare: per_tensor,
    },
    &Kernel {
        name: "quantized_decomposed::choose_qparams_per_token_asymmetric.out",
        schema: "(Tensor input, ScalarType dtype, *, Tensor(a!) scale_out, Tensor(b!) zero_point_out) -> \
                 (Tensor(a!), Tensor(b!))",
        alias: Alias::Disjoint,
        prepare: per_token,
    },
];
