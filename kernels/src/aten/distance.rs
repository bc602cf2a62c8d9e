//! Distances between rows: `_cdist_forward` between the rows of two matrices, `_pdist_forward` between those of one.
//!
//! The loops are those of `edgepack_compute::distance`; the operators differ in which pairs of rows they take.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::tensor::Dims;

use crate::check::{Class, Shape, expect_class, expect_same, with_float};
use crate::schema::{arguments, kernel};
use edgepack_compute::distance::{self, Matrices, Norm};
use edgepack_compute::float::Float;
use edgepack_compute::layout::broadcast;
use edgepack_compute::number::Number;

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&BETWEEN, &WITHIN];

arguments!("aten::_cdist_forward.out"; X1 = "x1", X2 = "x2", P = "p", TABLE = "out");
arguments!("aten::_pdist_forward.out"; SELF = "self", ORDER = "p", PAIRS = "out");

static BETWEEN: Kernel = kernel("aten::_cdist_forward.out", Alias::Disjoint, |args| {
    let dtype = args.tensor(X1)?.meta.dtype;
    expect_class("x1", dtype, Class::Float)?;
    expect_same(("x1", dtype), ("x2", args.tensor(X2)?.meta.dtype))?;
    expect_same(("x1", dtype), ("out", args.tensor(TABLE)?.meta.dtype))?;
    expect_contiguous(args, &[X1, X2, TABLE])?;
    with_float!(dtype, T => Ok(Box::new(between::<T>) as Box<dyn Run>))
});
static WITHIN: Kernel = kernel("aten::_pdist_forward.out", Alias::Disjoint, |args| {
    let dtype = args.tensor(SELF)?.meta.dtype;
    expect_class("self", dtype, Class::Float)?;
    expect_same(("self", dtype), ("out", args.tensor(PAIRS)?.meta.dtype))?;
    expect_contiguous(args, &[SELF, PAIRS])?;
    with_float!(dtype, T => Ok(Box::new(within::<T>) as Box<dyn Run>))
});

fn expect_contiguous(args: &Prepare<'_>, tensors: &[usize]) -> Result<(), KernelError> {
    for &arg in tensors {
        if !args.tensor(arg)?.meta.is_contiguous() {
            return Err(KernelError::unsupported(format!("argument {arg} must be contiguous")));
        }
    }
    Ok(())
}

fn norm(p: f64) -> Result<Norm, KernelError> {
    Norm::new(p)
        .ok_or_else(|| KernelError::argument(format!("`p` is {p}, the operator wants a norm from 0 to infinity")))
}

/// Stacks of matrices: all dimensions but the last two, then rows and columns.
fn matrices<'a>(name: &str, meta: &TensorShape<'a>) -> Result<(&'a [usize], usize, usize), KernelError> {
    match meta.sizes {
        [stack @ .., rows, columns] => Ok((stack, *rows, *columns)),
        _ => Err(KernelError::argument(format!("`{name}` is {}, the operator wants matrices", Shape(meta.sizes)))),
    }
}

fn between<T>(cx: &mut KernelContext<'_>) -> Result<(), KernelError>
where
    T: Number<Compute: Float>,
{
    let norm = norm(cx.double(P)?)?;
    let (a, b) = (cx.meta(X1)?, cx.meta(X2)?);
    let (a_stack, a_rows, columns) = matrices("x1", &a)?;
    let (b_stack, b_rows, b_columns) = matrices("x2", &b)?;
    let common = broadcast(a_stack, b_stack).filter(|_| columns == b_columns).ok_or_else(|| {
        KernelError::argument(format!("`x1` is {}, `x2` is {}: they do not fit", Shape(a.sizes), Shape(b.sizes)))
    })?;
    let sizes: Dims = Dims::collect(common.iter().copied().chain([a_rows, b_rows]))
        .ok_or_else(|| KernelError::unsupported("the result has more than 16 dimensions"))?;
    cx.resize(TABLE, &sizes)?;
    let views = cx.views();
    let (a, b) = (views.tensor(X1)?, views.tensor(X2)?);
    let stack = |meta: TensorShape<'_>| meta.rank() - 2;
    let a = Matrices { stack: &a.meta().sizes[..stack(a.meta())], rows: a_rows, columns, data: a.as_slice::<T>()? };
    let b = Matrices { stack: &b.meta().sizes[..stack(b.meta())], rows: b_rows, columns, data: b.as_slice::<T>()? };
    Ok(distance::between(norm, a, b, &common, views.out(TABLE)?.into_slice::<T>()?)?)
}

fn within<T>(cx: &mut KernelContext<'_>) -> Result<(), KernelError>
where
    T: Number<Compute: Float>,
{
    let norm = norm(cx.double(ORDER)?)?;
    let meta = cx.meta(SELF)?;
    let &[rows, columns] = meta.sizes else {
        return Err(KernelError::argument(format!("`self` is {}, the operator wants a matrix", Shape(meta.sizes))));
    };
    let pairs = rows.checked_mul(rows.saturating_sub(1)).map(|twice| twice / 2);
    let pairs = pairs.ok_or_else(|| KernelError::unsupported(format!("the pairs of {rows} rows are too many")))?;
    cx.resize(PAIRS, &[pairs])?;
    let views = cx.views();
    let data = views.tensor(SELF)?.as_slice::<T>()?;
    Ok(distance::within(norm, [rows, columns], data, views.out(PAIRS)?.into_slice::<T>()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_compute::random::Random;
    use edgepack_executor::call::{Arg, call};
    use edgepack_format::scalar::ScalarType;

    fn naive(a: &[f32], b: &[f32], p: f64) -> f64 {
        let apart = a.iter().zip(b).map(|(a, b)| f64::from(a - b).abs());
        match p {
            0.0 => apart.filter(|&x| x != 0.0).count() as f64,
            f64::INFINITY => apart.fold(0.0, f64::max),
            p => apart.map(|x| x.powf(p)).sum::<f64>().powf(1.0 / p),
        }
    }

    #[test]
    fn distances_agree_with_the_definition() {
        let mut random = Random::new(3);
        for p in [0.0, 0.5, 1.0, 2.0, 3.0, f64::INFINITY] {
            let (stack, rows, others, columns) = (3, 4, 5, random.below(6));
            let (a, b) = (random.floats(stack * rows * columns), random.floats(others * columns));
            let args = [
                Arg::tensor(&[stack, 1, rows, columns], &a),
                Arg::tensor(&[2, others, columns], &[b.clone(), b.clone()].concat()),
                Arg::double(p),
                Arg::None,
                Arg::out(ScalarType::FLOAT, &[stack, 2, rows, others]),
            ];
            let out = call(&BETWEEN, &args).unwrap()[0].as_slice::<f32>().unwrap();
            for (at, have) in out.into_iter().enumerate() {
                let (i, j) = (at / others % rows + at / (2 * rows * others) * rows, at % others);
                let want = naive(&a[i * columns..][..columns], &b[j * columns..][..columns], p);
                assert!((f64::from(have) - want).abs() <= 1e-5 * (1.0 + want), "p {p}: {have} {want}");
            }
            let outs = call(
                &WITHIN,
                &[Arg::tensor(&[others, columns], &b), Arg::double(p), Arg::out(ScalarType::FLOAT, &[10])],
            )
            .unwrap();
            let mut pairs = outs[0].as_slice::<f32>().unwrap().into_iter();
            for i in 0..others {
                for j in i + 1..others {
                    let want = naive(&b[i * columns..][..columns], &b[j * columns..][..columns], p);
                    let have = f64::from(pairs.next().unwrap());
                    assert!((have - want).abs() <= 1e-5 * (1.0 + want), "p {p}: {have} {want}");
                }
            }
        }
    }

    #[test]
    fn nan_is_far_and_norms_are_not_negative() {
        let rows = Arg::tensor(&[2, 2], &[1.0f64, f64::NAN, 1.0, 1.0]);
        let out = Arg::out(ScalarType::DOUBLE, &[1]);
        for p in [1.0, 2.0, f64::INFINITY] {
            let outs = call(&WITHIN, &[rows.clone(), Arg::double(p), out.clone()]).unwrap();
            assert!(outs[0].as_slice::<f64>().unwrap()[0].is_nan());
        }
        for p in [-1.0, f64::NAN] {
            assert!(call(&WITHIN, &[rows.clone(), Arg::double(p), out.clone()]).is_err());
        }
    }

    #[test]
    fn stacks_that_do_not_stretch_are_refused() {
        let args = [
            Arg::tensor(&[2, 1, 1], &[1.0f32, 2.0]),
            Arg::tensor(&[3, 1, 1], &[1.0f32, 2.0, 3.0]),
            Arg::double(2.0),
            Arg::None,
            Arg::out(ScalarType::FLOAT, &[6]),
        ];
        assert_eq!(call(&BETWEEN, &args).unwrap_err().message, "`x1` is 2x1x1, `x2` is 3x1x1: they do not fit");
    }
}
