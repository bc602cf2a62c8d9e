//! `allclose`: whether two tensors are the same up to a tolerance.

use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};
use edgepack_executor::with_element;
use edgepack_format::scalar::{Bool, ScalarType};

use super::kernels;
use crate::check::{Class, Shape, expect_class, expect_dtype, expect_same, expect_same_order};
use crate::schema::position;
use edgepack_compute::number::{Cast, Compute, Number};

const SELF: usize = position("aten::allclose.out", "self");
const OTHER: usize = position("aten::allclose.out", "other");
const RTOL: usize = position("aten::allclose.out", "rtol");
const ATOL: usize = position("aten::allclose.out", "atol");
const EQUAL_NAN: usize = position("aten::allclose.out", "equal_nan");
const OUT: usize = position("aten::allclose.out", "out");

/// Distance up to which elements count as close.
#[derive(Clone, Copy)]
struct Tolerance {
    relative: f64,
    absolute: f64,
    equal_nan: bool,
}

impl Tolerance {
    fn accepts<T: Number>(&self, a: T, b: T) -> bool {
        let (a, b) = (a.to_compute(), b.to_compute());
        // Equal covers the infinities, and integers that a double does not hold.
        if a.same(b) {
            return true;
        }
        if a.is_nan() || b.is_nan() {
            return self.equal_nan && a.is_nan() && b.is_nan();
        }
        let (a, b) = (Cast::<f64>::cast(a), Cast::<f64>::cast(b));
        let apart = (a - b).abs();
        apart.is_finite() && apart <= self.absolute + self.relative * b.abs()
    }
}

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(OUT + 2)?;
    let (a, b) = (args.tensor(SELF)?.meta, args.tensor(OTHER)?.meta);
    expect_class("self", a.dtype, Class::Any)?;
    expect_same(("self", a.dtype), ("other", b.dtype))?;
    expect_dtype("out", args.tensor(OUT)?.meta.dtype, ScalarType::BOOL)?;
    expect_same_order(("self", a.dim_order), ("other", b.dim_order))?;
    with_element!(a.dtype, T => Ok(Box::new(run::<T>) as Box<dyn Run>), else => {
        Err(KernelError::unsupported(a.dtype.to_string()))
    })
}

fn run<T: Number>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (a, b) = (cx.meta(SELF)?.sizes, cx.meta(OTHER)?.sizes);
    if a != b {
        return Err(KernelError::argument(format!(
            "`self` is {}, `other` is {}: the sizes differ",
            Shape(a),
            Shape(b)
        )));
    }
    let tolerance =
        Tolerance { relative: cx.double(RTOL)?, absolute: cx.double(ATOL)?, equal_nan: cx.bool(EQUAL_NAN)? };
    let views = cx.views();
    let (a, b) = (views.tensor(SELF)?.as_slice::<T>()?, views.tensor(OTHER)?.as_slice::<T>()?);
    let close = a.iter().zip(b).all(|(&a, &b)| tolerance.accepts(a, b));
    // The answer is one element, of whatever rank.
    match views.out(OUT)?.into_slice::<Bool>()? {
        [out] => *out = Bool::from(close),
        out => return Err(KernelError::argument(format!("`out` has {} elements, the answer is one", out.len()))),
    }
    Ok(())
}

kernels! {
    ;
    "aten::allclose.out" => prepare,
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_executor::call::{Arg, call};
    use edgepack_executor::tensor::PodElement;

    fn close<T: PodElement>(a: &[T], b: &[T], tolerances: [f64; 2], equal_nan: bool) -> bool {
        let args = [
            Arg::tensor(&[a.len()], a),
            Arg::tensor(&[b.len()], b),
            Arg::double(tolerances[0]),
            Arg::double(tolerances[1]),
            Arg::bool(equal_nan),
            Arg::bool(false),
            Arg::out(ScalarType::BOOL, &[]),
        ];
        call(KERNELS[0], &args).unwrap()[0].as_slice::<Bool>().unwrap()[0].get()
    }

    #[test]
    fn tolerances_are_relative_to_the_second() {
        assert!(close(&[100.0f32, 0.0], &[101.0, 1e-3], [0.01, 1e-3], false));
        assert!(!close(&[101.2f32], &[100.0], [0.01, 0.0], false));
        assert!(close(&[i64::MAX], &[i64::MAX], [0.0, 0.0], false));
        assert!(!close(&[3i64], &[4], [0.0, 0.5], false));
    }

    #[test]
    fn nan_and_infinities() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        assert!(close(&[inf, -inf], &[inf, -inf], [0.0, 0.0], false));
        assert!(!close(&[inf], &[-inf], [1.0, inf], false) && !close(&[inf], &[1.0], [1.0, 1e300], false));
        assert!(!close(&[nan], &[nan], [1.0, 1.0], false) && close(&[nan], &[nan], [0.0, 0.0], true));
    }
}
