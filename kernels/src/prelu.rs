//! Numbers times a slope where they are not greater than zero: a kernel that rewrites and those who make plans use, as programs
//! spell it out.

use edgepack_compute::layout::AxisView;
use edgepack_compute::number::Number;
use edgepack_compute::prelu::{Slopes, prelu, prelu_then};
use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError};
use edgepack_format::tensor::Dims;

use crate::check::{expect_same, expect_same_order, expect_stretch, with_float};
use crate::convert::is_aligned;
use crate::fused::Base;

/// `x` where it is greater than 0, and `slope * x` elsewhere. The slopes stretch to the input, and differ along one of its
/// dimensions at most.
pub static PRELU: Kernel = Kernel {
    name: "edgepack::prelu.out",
    schema: "(Tensor input, Tensor slopes, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    is_pure: true,
    prepare: |args| {
        let [input, slopes, out] = [args.tensor(INPUT)?, args.tensor(SLOPES)?, args.tensor(OUT)?];
        let dtype = input.meta.dtype;
        expect_same(("input", dtype), ("slopes", slopes.meta.dtype))?;
        expect_same(("input", dtype), ("out", out.meta.dtype))?;
        with_float!(dtype, T => Ok(Box::new(run::<T>)))
    },
};

const INPUT: usize = 0;
const SLOPES: usize = 1;
pub(crate) const OUT: usize = 2;

/// Returns the dimension of an input along which slopes of these sizes differ: the last one if they are a single slope. `None`
/// if they differ along several.
pub(crate) fn axis(input: &[usize], slopes: &[usize]) -> Option<usize> {
    let mut dims = (0..slopes.len()).filter(|&dim| slopes[dim] != 1);
    match (dims.next(), dims.next()) {
        (None, _) => Some(input.len().saturating_sub(1)),
        (Some(dim), None) => (dim + input.len()).checked_sub(slopes.len()),
        _ => None,
    }
}

/// [`PRELU`] of FLOAT and the operations behind it.
pub(crate) static FUSED: Base = Base {
    name: "edgepack::prelu.epilogue_out",
    schema: PRELU.schema,
    out: OUT,
    in_place: false,
    prepare: |args, epilogue| {
        for (arg, name) in [(INPUT, "input"), (SLOPES, "slopes")] {
            expect_same((name, args.tensor(arg)?.meta.dtype), ("the first operation", epilogue.input()))?;
        }
        expect_same(("the last operation", epilogue.output()), ("out", args.tensor(OUT)?.meta.dtype))?;
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let run = resized(cx)?;
            let views = cx.views();
            let (input, slopes, mut out) = (views.tensor(INPUT)?, views.tensor(SLOPES)?, views.out(OUT)?);
            let (dtype, slopes) = (out.dtype, Slopes { slopes: slopes.as_slice()?, run });
            if !is_aligned(out.bytes_mut(), dtype) {
                return Err(KernelError::argument("the data of `out` are not aligned to its element"));
            }
            Ok(prelu_then(input.as_slice()?, slopes, &epilogue, out.bytes_mut())?)
        }))
    },
};

fn run<T: Number>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let run = resized(cx)?;
    let views = cx.views();
    let (input, slopes) = (views.tensor(INPUT)?.as_slice::<T>()?, views.tensor(SLOPES)?.as_slice()?);
    Ok(prelu(input, Slopes { slopes, run }, views.out(OUT)?.into_slice()?)?)
}

/// Gives the output the sizes of the input. Returns how many elements with one slope are next to each other.
fn resized(cx: &mut KernelContext<'_>) -> Result<usize, KernelError> {
    let (sizes, slopes) = (Dims::from_slice(cx.meta(INPUT)?.sizes).unwrap_or_default(), cx.meta(SLOPES)?.sizes);
    expect_stretch("slopes", slopes, &sizes)?;
    let Some(axis) = axis(&sizes, slopes) else {
        return Err(KernelError::unsupported(format!("slopes of sizes {slopes:?} differ along several dimensions")));
    };
    cx.resize(OUT, &sizes)?;
    let (input, out) = (cx.meta(INPUT)?, cx.meta(OUT)?);
    expect_same_order(("input", input.dim_order), ("out", out.dim_order))?;
    Ok(AxisView::new(input.sizes, input.strides, axis).inner.max(1))
}

#[cfg(test)]
mod tests {
    use edgepack_executor::call::{Arg, call};
    use edgepack_format::scalar::ScalarType;

    use super::*;

    fn applied(sizes: &[usize], slopes: (&[usize], &[f32])) -> Result<Vec<f32>, KernelError> {
        let count: usize = sizes.iter().product();
        let x: Vec<f32> = (0..count).map(|at| at as f32 * (if at % 3 == 0 { 1.0 } else { -1.0 })).collect();
        let args = [Arg::tensor(sizes, &x), Arg::tensor(slopes.0, slopes.1), Arg::out(ScalarType::FLOAT, sizes)];
        call(&PRELU, &args).map(|results| results[0].as_slice().unwrap())
    }

    #[test]
    fn slopes_belong_to_a_dimension() {
        assert_eq!(applied(&[2, 2], (&[2], &[2.0, 10.0])).unwrap(), [0.0, -10.0, -4.0, 3.0]);
        assert_eq!(applied(&[2, 2], (&[2, 1], &[2.0, 10.0])).unwrap(), [0.0, -2.0, -20.0, 3.0]);
        assert_eq!(applied(&[1, 2, 2], (&[1, 2, 1], &[2.0, 10.0])).unwrap(), [0.0, -2.0, -20.0, 3.0]);
        assert_eq!(
            applied(&[4], (&[1, 1], &[2.0])).unwrap_err().message,
            "`slopes` has sizes [1, 1], which do not broadcast to [4]"
        );
        assert_eq!(applied(&[4], (&[], &[2.0])).unwrap(), [0.0, -2.0, -4.0, 3.0]);
        assert!(applied(&[2, 2], (&[2, 2], &[1.0; 4])).unwrap_err().message.contains("several"));
        assert!(applied(&[2, 2], (&[3], &[1.0; 3])).unwrap_err().message.contains("do not broadcast"));
        assert!(applied(&[2, 0], (&[2, 1], &[1.0; 2])).unwrap().is_empty());
    }
}
