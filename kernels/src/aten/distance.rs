//! Distances between rows: `_cdist_forward` between the rows of two matrices, `_pdist_forward` between those of one.
//!
//! One loop per kind of norm; the operators differ in which pairs of rows they take.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::tensor::Dims;

use crate::broadcast::{Axis, Walk, broadcast};
use crate::check::{Class, Shape, expect_class, expect_same, with_float};
use edgepack_compute::float::Float;
use edgepack_compute::number::{Cast, Compute, Number};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&BETWEEN, &WITHIN];

static BETWEEN: Kernel = Kernel {
    name: "aten::_cdist_forward.out",
    schema: "(Tensor x1, Tensor x2, float p, int? compute_mode, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| {
        let dtype = args.tensor(0)?.meta.dtype;
        expect_class("x1", dtype, Class::Float)?;
        expect_same(("x1", dtype), ("x2", args.tensor(1)?.meta.dtype))?;
        expect_same(("x1", dtype), ("out", args.tensor(4)?.meta.dtype))?;
        expect_contiguous(args, &[0, 1, 4])?;
        with_float!(dtype, T => Ok(Box::new(between::<T>) as Box<dyn Run>))
    },
};
static WITHIN: Kernel = Kernel {
    name: "aten::_pdist_forward.out",
    schema: "(Tensor self, float p=2., *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| {
        let dtype = args.tensor(0)?.meta.dtype;
        expect_class("self", dtype, Class::Float)?;
        expect_same(("self", dtype), ("out", args.tensor(2)?.meta.dtype))?;
        expect_contiguous(args, &[0, 2])?;
        with_float!(dtype, T => Ok(Box::new(within::<T>) as Box<dyn Run>))
    },
};

fn expect_contiguous(args: &Prepare<'_>, tensors: &[usize]) -> Result<(), KernelError> {
    for &arg in tensors {
        if !args.tensor(arg)?.meta.is_contiguous() {
            return Err(KernelError::unsupported(format!("argument {arg} must be contiguous")));
        }
    }
    Ok(())
}

/// How the differences of two rows become one number.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Norm {
    /// How many are not zero.
    Count,
    /// The sum of their magnitudes.
    Sum,
    /// The root of the sum of their squares.
    Root,
    /// The greatest magnitude.
    Greatest,
    /// The sum of powers, to the inverse power.
    Power(f64),
}

impl Norm {
    fn new(p: f64) -> Result<Norm, KernelError> {
        match p {
            0.0 => Ok(Norm::Count),
            1.0 => Ok(Norm::Sum),
            2.0 => Ok(Norm::Root),
            f64::INFINITY => Ok(Norm::Greatest),
            p if p > 0.0 => Ok(Norm::Power(p)),
            _ => Err(KernelError::argument(format!("`p` is {p}, the operator wants a norm from 0 to infinity"))),
        }
    }

    fn distance<T>(self, a: &[T], b: &[T]) -> T
    where
        T: Number<Compute: Float>,
    {
        let apart = a.iter().zip(b).map(|(a, b)| a.to_compute().minus(b.to_compute()).magnitude());
        let zero = T::Compute::of(0.0);
        let result = match self {
            Norm::Count => apart.fold(zero, |sum, x| sum.plus(T::Compute::of(f64::from(u8::from(x.is_true()))))),
            Norm::Sum => apart.fold(zero, |sum, x| sum.plus(x)),
            Norm::Root => apart.fold(zero, |sum, x| sum.plus(x.times(x))).sqrt(),
            Norm::Greatest => apart.fold(zero, |most, x| most.greater_of(x)),
            Norm::Power(p) => {
                let p = T::Compute::of(p);
                let one = T::Compute::of(1.0);
                apart.fold(zero, |sum, x| sum.plus(x.power(p))).power(one.over(p))
            }
        };
        result.cast()
    }
}

/// Stacks of matrices: all dimensions but the last two, then rows and columns.
fn matrices<'a>(name: &str, meta: &TensorShape<'a>) -> Result<(&'a [usize], usize, usize), KernelError> {
    match meta.sizes {
        [stack @ .., rows, columns] => Ok((stack, *rows, *columns)),
        _ => Err(KernelError::argument(format!("`{name}` is {}, the operator wants matrices", Shape(meta.sizes)))),
    }
}

/// Where the matrices of a stack start that is stretched to another.
fn starts(stack: &[usize], common: &[usize], matrix: usize) -> Walk {
    let skip = common.len() - stack.len();
    let mut stride = matrix;
    let mut steps = Dims::<Axis>::new();
    for (dim, &size) in common.iter().enumerate().rev() {
        let own = dim.checked_sub(skip).map_or(1, |dim| stack[dim]);
        // A stack has fewer dimensions than a tensor, so there is room.
        let _ = steps.push(Axis { size, stride: if own == 1 { 0 } else { stride as isize } });
        stride *= own;
    }
    Walk::new(steps.iter().rev().copied(), 0)
}

fn between<T>(cx: &mut KernelContext<'_>) -> Result<(), KernelError>
where
    T: Number<Compute: Float>,
{
    let norm = Norm::new(cx.double(2)?)?;
    let (a, b) = (cx.meta(0)?, cx.meta(1)?);
    let (a_stack, a_rows, columns) = matrices("x1", &a)?;
    let (b_stack, b_rows, b_columns) = matrices("x2", &b)?;
    let common = broadcast(a_stack, b_stack).filter(|_| columns == b_columns).ok_or_else(|| {
        KernelError::argument(format!("`x1` is {}, `x2` is {}: they do not fit", Shape(a.sizes), Shape(b.sizes)))
    })?;
    let from_a = starts(a_stack, &common, a_rows * columns);
    let from_b = starts(b_stack, &common, b_rows * columns);
    let sizes: Dims = Dims::collect(common.iter().copied().chain([a_rows, b_rows]))
        .ok_or_else(|| KernelError::unsupported("the result has more than 16 dimensions"))?;
    cx.resize(4, &sizes)?;
    let views = cx.views();
    let (a, b) = (views.tensor(0)?.as_slice::<T>()?, views.tensor(1)?.as_slice::<T>()?);
    let out = views.out(4)?.into_slice::<T>()?;
    if out.is_empty() {
        return Ok(());
    }
    for ((block, start_a), start_b) in out.chunks_exact_mut(a_rows * b_rows).zip(places(&from_a)).zip(places(&from_b)) {
        for (at, out) in block.iter_mut().enumerate() {
            let (i, j) = (at / b_rows, at % b_rows);
            *out = norm.distance(&a[start_a + i * columns..][..columns], &b[start_b + j * columns..][..columns]);
        }
    }
    Ok(())
}

/// The places of a walk, one after the other.
fn places(walk: &Walk) -> impl Iterator<Item = usize> + '_ {
    let steps = walk.axes();
    let count: usize = steps.iter().map(|step| step.size).product();
    (0..count).map(move |flat| {
        let (mut rest, mut place) = (flat, 0);
        for step in steps.iter().rev() {
            place += (rest % step.size) * step.stride.unsigned_abs();
            rest /= step.size;
        }
        place
    })
}

fn within<T>(cx: &mut KernelContext<'_>) -> Result<(), KernelError>
where
    T: Number<Compute: Float>,
{
    let norm = Norm::new(cx.double(1)?)?;
    let meta = cx.meta(0)?;
    let &[rows, columns] = meta.sizes else {
        return Err(KernelError::argument(format!("`self` is {}, the operator wants a matrix", Shape(meta.sizes))));
    };
    let pairs = rows.checked_mul(rows.saturating_sub(1)).map(|twice| twice / 2);
    let pairs = pairs.ok_or_else(|| KernelError::unsupported(format!("the pairs of {rows} rows are too many")))?;
    cx.resize(2, &[pairs])?;
    let views = cx.views();
    let data = views.tensor(0)?.as_slice::<T>()?;
    let mut out = views.out(2)?.into_slice::<T>()?.iter_mut();
    let row = |i: usize| &data[i * columns..][..columns];
    for i in 0..rows {
        for (j, out) in (i + 1..rows).zip(&mut out) {
            *out = norm.distance(row(i), row(j));
        }
    }
    Ok(())
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
