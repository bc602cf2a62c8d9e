//! Operators in single precision that the library does not have.

use std::sync::Arc;

use edgepack_compute::threads::for_each_piece;
use edgepack_executor::kernel::{Alias, KernelContext, KernelError, Operator, Run};
use edgepack_format::finding::ErrorCode;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;
use half::f16;

use super::own;

/// `x * min(max(x + 3, 0), 6) / 6` in half precision.
pub(crate) fn hardswish() -> Arc<dyn Operator> {
    own("xnnpack::hardswish.out", "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", Alias::Disjoint, |args| {
        let dtype = args.tensor(0)?.meta.dtype;
        if dtype != ScalarType::HALF {
            return Err(KernelError::unsupported(dtype.to_string()));
        }
        let value = |x: f16| {
            let x = x.to_f32();
            f16::from_f32(x * ((x + 3.0).clamp(0.0, 6.0) * (1.0 / 6.0)))
        };
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let sizes: Dims = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
            cx.resize(1, &sizes)?;
            let views = cx.views();
            let (x, out) = (views.tensor(0)?.as_slice::<f16>()?, views.out(1)?.into_slice::<f16>()?);
            for_each_piece(out, 1, |start, out| {
                out.iter_mut().zip(&x[start..]).for_each(|(out, x)| *out = value(*x));
            });
            Ok(())
        }) as Box<dyn Run>)
    })
}

/// Numbers below zero, times a slope that is repeated along the last dimension.
pub(crate) fn prelu() -> Arc<dyn Operator> {
    let schema = "(Tensor x, Tensor slope, *, Tensor(a!) out) -> Tensor(a!)";
    own("xnnpack::prelu.out", schema, Alias::Disjoint, |args| {
        Ok(match args.tensor(0)?.meta.dtype {
            ScalarType::FLOAT => Box::new(|cx: &mut KernelContext<'_>| sloped(cx, |x: f32, slope: f32| x * slope)),
            ScalarType::HALF => Box::new(|cx: &mut KernelContext<'_>| {
                sloped(cx, |x: f16, slope: f16| f16::from_f32(x.to_f32() * slope.to_f32()))
            }) as Box<dyn Run>,
            other => return Err(KernelError::unsupported(other.to_string())),
        })
    })
}

fn sloped<T>(cx: &mut KernelContext<'_>, times: impl Fn(T, T) -> T + Send + Sync) -> Result<(), KernelError>
where
    T: edgepack_executor::tensor::PodElement + PartialOrd + Default + Send + Sync,
{
    let sizes: Dims = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
    let slopes = cx.meta(1)?.element_count();
    if slopes != 1 && sizes.last() != Some(&slopes) {
        let message = format!("{slopes} slopes for {:?}", &sizes[..]);
        return Err(KernelError::new(ErrorCode::InvalidArgument, message));
    }
    cx.resize(2, &sizes)?;
    let views = cx.views();
    let (x, slope) = (views.tensor(0)?.as_slice::<T>()?, views.tensor(1)?.as_slice::<T>()?);
    for_each_piece(views.out(2)?.into_slice::<T>()?, slopes.max(1), |start, out| {
        for ((out, x), slope) in out.iter_mut().zip(&x[start..]).zip(slope.iter().cycle()) {
            *out = if *x < T::default() { times(*x, *slope) } else { *x };
        }
    });
    Ok(())
}
