//! Running sums along a dimension.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::with_element;
use edgepack_format::tensor::Dims;

use crate::check::{Around, Class, expect_class, expect_same_order};
use crate::dims::dim_of;
use crate::numeric::{Cast, Number};

/// `aten::cumsum.out`.
pub static CUMSUM: Kernel = Kernel {
    name: "aten::cumsum.out",
    schema: "(Tensor self, int dim, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare,
};

const OUT: usize = 3;

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (input, out) = (args.tensor(0)?.meta.dtype, args.tensor(OUT)?.meta.dtype);
    expect_class("self", input, Class::Any)?;
    expect_class("out", out, Class::Any)?;
    with_element!(input, T => with_element!(out, U => Ok(Box::new(run::<T, U>)), else => {
        Err(KernelError::unsupported(out.to_string()))
    }), else => Err(KernelError::unsupported(input.to_string())))
}

fn run<T, U>(cx: &mut KernelContext<'_>) -> Result<(), KernelError>
where
    T: Number + Cast<U>,
    U: Number,
    f64: Cast<U>,
    i64: Cast<U>,
{
    let (meta, dim) = (cx.meta(0)?, cx.int(1)?);
    let dim = dim_of("dim", dim, "self", meta.rank())?;
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    cx.resize(OUT, &sizes)?;
    let views = cx.views();
    let (input, out) = (views.tensor(0)?, views.out(OUT)?);
    expect_same_order(("self", input.dim_order), ("out", out.dim_order))?;
    let around = Around::new(input.sizes, input.strides, dim);
    let (input, out) = (input.as_slice::<T>()?, out.into_slice::<U>()?);
    if U::SCALAR_TYPE.is_floating() {
        add_up(around, input, out, 0.0, |sum: f64, x: T| sum + Cast::<f64>::cast(Cast::<U>::cast(x)));
    } else {
        add_up(around, input, out, 0, |sum: i64, x: T| sum.wrapping_add(Cast::<U>::cast(x).cast()));
    }
    Ok(())
}

fn add_up<T: Copy, U: Copy, S: Copy + Cast<U>>(
    around: Around,
    input: &[T],
    out: &mut [U],
    zero: S,
    add: impl Fn(S, T) -> S,
) {
    let Around { outer, size, inner } = around;
    for block in 0..outer {
        for lane in 0..inner {
            let first = block * size * inner + lane;
            let mut sum = zero;
            for at in (first..).step_by(inner).take(size) {
                sum = add(sum, input[at]);
                out[at] = sum.cast();
            }
        }
    }
}
