//! The gated linear unit: one half of the input times the sigmoid of the other.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;
use half::{bf16, f16};

use crate::check::expect_same_order;
use crate::dims::dim_of;
use crate::schema::{kernel, position};
use edgepack_compute::float::Float;
use edgepack_compute::layout::AxisView;
use edgepack_compute::number::Number;

const SELF: usize = position("aten::glu.out", "self");
const DIM: usize = position("aten::glu.out", "dim");
const OUT: usize = position("aten::glu.out", "out");

fn glu<T: Number>(cx: &mut KernelContext<'_>) -> Result<(), KernelError>
where
    T::Compute: Float,
{
    let meta = cx.meta(SELF)?;
    let dim = dim_of("dim", cx.int(DIM)?, "self", meta.rank())?;
    let mut sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    let Some(size) = sizes.get_mut(dim).filter(|size| size.is_multiple_of(2)) else {
        return Err(KernelError::argument(format!(
            "`self` has sizes {:?}, dimension {dim} cannot be halved",
            meta.sizes
        )));
    };
    *size /= 2;
    cx.resize(OUT, &sizes)?;
    let views = cx.views();
    let input = views.tensor(SELF)?;
    let mut out = views.out(OUT)?;
    expect_same_order(("self", input.dim_order), ("out", out.dim_order))?;
    let view = AxisView::new(out.sizes, out.strides, dim);
    Ok(edgepack_compute::glu::glu(input.as_slice::<T>()?, view.size * view.inner, out.as_mut_slice::<T>()?)?)
}

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(OUT + 2)?;
    let (input, out) = (args.tensor(SELF)?.meta, args.tensor(OUT)?.meta);
    if input.dtype != out.dtype {
        let (from, to) = (input.dtype, out.dtype);
        return Err(KernelError::argument(format!("`self` is {from}, `out` is {to}: the types differ")));
    }
    Ok(match input.dtype {
        ScalarType::FLOAT => Box::new(glu::<f32>) as Box<dyn Run>,
        ScalarType::DOUBLE => Box::new(glu::<f64>),
        ScalarType::HALF => Box::new(glu::<f16>),
        ScalarType::BFLOAT16 => Box::new(glu::<bf16>),
        dtype => return Err(KernelError::argument(format!("`self` is {dtype}, the operator wants a floating type"))),
    })
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[&kernel("aten::glu.out", Alias::Disjoint, prepare)];
