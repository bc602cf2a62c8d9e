//! `_softmax` and `_log_softmax`, along any dimension in any dim order.
//!
//! The loops are those of `edgepack_compute::softmax`, which take input and output in one order: an input in another is
//! repacked into scratch memory first.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::tensor::Dims;

use crate::check::{expect_same, with_float};
use crate::dims::dim_of;
use crate::schema::{kernel, position};
use edgepack_compute::layout::AxisView;
use edgepack_compute::number::Number;
use edgepack_compute::softmax::{self, Exponential};
use edgepack_compute::walk::Walk;

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&SOFTMAX, &LOG_SOFTMAX];

static SOFTMAX: Kernel = kernel("aten::_softmax.out", Alias::Disjoint, prepare::<false>);
static LOG_SOFTMAX: Kernel = kernel("aten::_log_softmax.out", Alias::Disjoint, prepare::<true>);

/// Arguments of both.
const SELF: usize = position("aten::_softmax.out", "self");
const DIM: usize = position("aten::_softmax.out", "dim");
const OUT: usize = position("aten::_softmax.out", "out");

fn prepare<const LOG: bool>(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (input, out) = (args.tensor(SELF)?.meta, args.tensor(OUT)?.meta);
    expect_same(("self", input.dtype), ("out", out.dtype))?;
    if input.dim_order != out.dim_order {
        args.scratch(input.byte_len());
    }
    with_float!(input.dtype, T => Ok(Box::new(run::<T, LOG>)))
}

fn run<T, const LOG: bool>(cx: &mut KernelContext<'_>) -> Result<(), KernelError>
where
    T: Number<Compute: Exponential>,
{
    let (meta, dim) = (cx.meta(SELF)?, cx.int(DIM)?);
    let dim = dim_of("dim", dim, "self", meta.rank())?;
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    cx.resize(OUT, &sizes)?;
    let views = cx.views();
    let (input, out) = (views.tensor(SELF)?, views.out(OUT)?);
    let view = AxisView::new(out.sizes, out.strides, dim);
    let input = if input.dim_order == out.dim_order {
        input.as_slice::<T>()?
    } else {
        // Laid out as the output first: the loops take one order.
        let repacked = views.scratch()?.get_mut(..input.bytes().len()).ok_or_else(too_large)?;
        Walk::stretched(&out.meta(), &input).gather(size_of::<T>(), input.bytes(), repacked);
        bytemuck::try_cast_slice(repacked).map_err(|_| too_large())?
    };
    let compute = if LOG { softmax::log_softmax::<T> } else { softmax::softmax::<T> };
    Ok(compute(view, input, out.into_slice::<T>()?)?)
}

fn too_large() -> KernelError {
    KernelError::unsupported("`self` is larger than at load")
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_compute::random::Random;
    use edgepack_executor::call::{Arg, OwnedTensor, call};

    fn naive(values: &[f64], log: bool) -> Vec<f64> {
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = values.iter().map(|x| (x - max).exp()).sum();
        values.iter().map(|x| if log { x - max - sum.ln() } else { (x - max).exp() / sum }).collect()
    }

    #[test]
    fn every_dimension_and_order_agrees_with_the_definition() {
        let mut random = Random::new(3);
        for round in 0..40 {
            let sizes = [random.below(3) + 1, random.below(150) + 1, random.below(4) + 1, random.below(5) + 1];
            let order = [[0, 1, 2, 3], [0, 2, 3, 1]][round % 2];
            let (dim, log) = (round / 2 % 4, round % 3 == 0);
            let values: Vec<f32> = random.floats(sizes.iter().product()).iter().map(|x| x * 9.0).collect();
            let input = OwnedTensor::new(&sizes, &values).with_dim_order(&order);
            let mut strides = [0; 4];
            edgepack_format::tensor::write_strides(&sizes, &order, &mut strides);
            let out = OwnedTensor::zeros(edgepack_format::scalar::ScalarType::FLOAT, &sizes).with_dim_order(&order);
            let kernel = if log { &LOG_SOFTMAX } else { &SOFTMAX };
            let args = [Arg::Tensor(input), Arg::int(dim as i64 - 4), Arg::bool(false), Arg::Tensor(out)];
            let result = call(kernel, &args).unwrap()[0].as_slice::<f32>().unwrap();
            for start in 0..values.len() {
                if start / strides[dim] % sizes[dim] != 0 {
                    continue;
                }
                let places = (0..sizes[dim]).map(|i| start + i * strides[dim]);
                let row: Vec<f64> = places.clone().map(|at| values[at].into()).collect();
                for (at, want) in places.zip(naive(&row, log)) {
                    assert!((f64::from(result[at]) - want).abs() < 1e-5, "{sizes:?} dim {dim}: {} {want}", result[at]);
                }
            }
        }
    }
}
