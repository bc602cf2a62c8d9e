//! Operators in single precision that the library does not have.

use std::sync::Arc;

use edgepack_compute::threads::for_each_piece;
use edgepack_executor::kernel::{KernelContext, KernelError, Operator, Run};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;
use half::f16;

use super::elementwise;

/// `x * min(max(x + 3, 0), 6) / 6` in half precision.
pub(crate) fn hardswish() -> Arc<dyn Operator> {
    elementwise("xnnpack::hardswish.out", "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", |args| {
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
