//! Scales and zero points chosen from the data: for a tensor, or for every token.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorMut;
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::expect_dtype;
use crate::schema::{kernel, position};
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
        out.as_mut_slice::<T>()?[at] = Cast::<T>::cast(value);
        Ok(())
    }, else => Err(KernelError::argument(format!("{} is not a type of a scale or zero point", out.dtype))))
}

fn per_tensor(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const INPUT: usize = position("quantized_decomposed::choose_qparams.Tensor_out", "input");
    const QUANT_MIN: usize = position("quantized_decomposed::choose_qparams.Tensor_out", "quant_min");
    const QUANT_MAX: usize = position("quantized_decomposed::choose_qparams.Tensor_out", "quant_max");
    const SCALE_OUT: usize = position("quantized_decomposed::choose_qparams.Tensor_out", "scale_out");
    const ZERO_POINT_OUT: usize = position("quantized_decomposed::choose_qparams.Tensor_out", "zero_point_out");
    args.expect_len(ZERO_POINT_OUT + 2)?;
    expect_dtype("input", args.tensor(INPUT)?.meta.dtype, ScalarType::FLOAT)?;
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        for out in [SCALE_OUT, ZERO_POINT_OUT] {
            // One element of any rank will do.
            if cx.meta(out)?.element_count() != 1 {
                cx.resize(out, &[1])?;
            }
        }
        let (least, greatest) = (cx.int(QUANT_MIN)?, cx.int(QUANT_MAX)?);
        if least >= greatest || range_of(ScalarType::INT).is_none_or(|(low, high)| least < low || greatest > high) {
            return Err(KernelError::argument(format!("`quant_min` {least} and `quant_max` {greatest} are no range")));
        }
        let views = cx.views();
        let (scale, zero) = choose(views.tensor(INPUT)?.as_slice()?, least, greatest);
        store(&mut views.out(SCALE_OUT)?, 0, scale)?;
        store(&mut views.out(ZERO_POINT_OUT)?, 0, zero as f64)
    }))
}

fn per_token(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    const INPUT: usize = position("quantized_decomposed::choose_qparams_per_token_asymmetric.out", "input");
    const SCALE_OUT: usize = position("quantized_decomposed::choose_qparams_per_token_asymmetric.out", "scale_out");
    const ZERO_POINT_OUT: usize =
        position("quantized_decomposed::choose_qparams_per_token_asymmetric.out", "zero_point_out");
    args.expect_len(ZERO_POINT_OUT + 2)?;
    let input = args.tensor(INPUT)?.meta;
    expect_dtype("input", input.dtype, ScalarType::FLOAT)?;
    if !input.is_contiguous() || input.rank() == 0 {
        return Err(KernelError::unsupported("`input` must be contiguous and have a dimension"));
    }
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let mut sizes = Dims::from_slice(cx.meta(INPUT)?.sizes).unwrap_or_default();
        let last = sizes.len() - 1;
        let width = std::mem::replace(&mut sizes[last], 1);
        cx.resize(SCALE_OUT, &sizes)?;
        cx.resize(ZERO_POINT_OUT, &sizes)?;
        let views = cx.views();
        let input = views.tensor(INPUT)?;
        let (mut scales, mut zeros) = (views.out(SCALE_OUT)?, views.out(ZERO_POINT_OUT)?);
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
    &kernel("quantized_decomposed::choose_qparams.Tensor_out", Alias::Disjoint, per_tensor),
    &kernel("quantized_decomposed::choose_qparams_per_token_asymmetric.out", Alias::Disjoint, per_token),
];
