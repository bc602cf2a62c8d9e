//! Operators with random results: `rand`, `randn`, `native_dropout`.
//!
//! Every instruction has a generator of its own, seeded whenever a method is loaded, so no two loads give the same numbers.
//! The loops are those of `edgepack_compute::generator`.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::scalar::{Bool, ScalarType};
use edgepack_format::tensor::Dims;

use crate::check::{Class, expect_class, expect_dtype, expect_same, expect_same_order, with_float};
use crate::dims::size_of;
use crate::schema::{arguments, kernel};
use edgepack_compute::generator::{Distribution, Generator};
use edgepack_compute::number::Number;

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&RAND, &RANDN, &DROPOUT];

static RAND: Kernel = kernel("aten::rand.out", Alias::Disjoint, |args| prepare_fill(args, Distribution::Uniform));
static RANDN: Kernel = kernel("aten::randn.out", Alias::Disjoint, |args| prepare_fill(args, Distribution::Normal));
static DROPOUT: Kernel = kernel("aten::native_dropout.out", Alias::Disjoint, prepare_dropout);

arguments!("aten::rand.out"; SIZE = "size", OUT = "out");
arguments!("aten::native_dropout.out"; INPUT = "input", P = "p", TRAIN = "train", DROPPED = "out0", MASK = "out1");

fn prepare_fill(args: &Prepare<'_>, distribution: Distribution) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(OUT + 2)?;
    let dtype = args.tensor(OUT)?.meta.dtype;
    expect_class("out", dtype, Class::Float)?;
    let mut generator = Generator::new();
    with_float!(dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| fill::<T>(cx, &mut generator, distribution))))
}

fn fill<T: Number>(
    cx: &mut KernelContext<'_>,
    generator: &mut Generator,
    distribution: Distribution,
) -> Result<(), KernelError> {
    let mut sizes = Dims::new();
    for size in cx.ints(SIZE)?.iter() {
        let size = size_of("size", size)?;
        sizes.push(size).ok_or_else(|| KernelError::argument("`size` has more than 16 dimensions"))?;
    }
    cx.resize(OUT, &sizes)?;
    generator.fill(distribution, cx.views().out(OUT)?.as_mut_slice::<T>()?);
    Ok(())
}

fn prepare_dropout(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(MASK + 2)?;
    let (input, out, mask) = (args.tensor(INPUT)?.meta, args.tensor(DROPPED)?.meta, args.tensor(MASK)?.meta);
    expect_class("input", input.dtype, Class::Float)?;
    expect_same(("input", input.dtype), ("out0", out.dtype))?;
    expect_dtype("out1", mask.dtype, ScalarType::BOOL)?;
    expect_same_order(("input", input.dim_order), ("out0", out.dim_order))?;
    expect_same_order(("input", input.dim_order), ("out1", mask.dim_order))?;
    let mut generator = Generator::new();
    with_float!(input.dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| dropout::<T>(cx, &mut generator))))
}

fn dropout<T: Number>(cx: &mut KernelContext<'_>, generator: &mut Generator) -> Result<(), KernelError> {
    let p = cx.double(P)?;
    if !(0.0..=1.0).contains(&p) {
        return Err(KernelError::argument(format!("`p` is {p}, no probability")));
    }
    let training = cx.is_none(TRAIN) || cx.bool(TRAIN)?;
    let sizes = Dims::from_slice(cx.meta(INPUT)?.sizes).unwrap_or_default();
    cx.resize(DROPPED, &sizes)?;
    cx.resize(MASK, &sizes)?;
    let views = cx.views();
    let (input, out, mask) = (views.tensor(INPUT)?.as_slice::<T>()?, views.out(DROPPED)?, views.out(MASK)?);
    let (out, mask) = (out.into_slice::<T>()?, mask.into_slice::<Bool>()?);
    if !training || p == 0.0 {
        out.copy_from_slice(input);
        mask.fill(Bool::from(true));
        return Ok(());
    }
    Ok(generator.dropout(p, input, out, mask)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_compute::number::Cast;
    use edgepack_executor::call::{Arg, call};

    const COUNT: usize = 20_000;

    fn draw(kernel: &Kernel, dtype: ScalarType) -> Vec<f64> {
        let outs = call(kernel, &[Arg::Ints(vec![COUNT as i64]), Arg::out(dtype, &[COUNT])]).unwrap();
        with_float!(dtype, T => {
            Ok::<_, KernelError>(outs[0].as_slice::<T>().unwrap().into_iter().map(Cast::<f64>::cast).collect())
        })
        .unwrap()
    }

    fn moments(values: &[f64]) -> [f64; 2] {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        [mean, values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64]
    }

    #[test]
    fn numbers_are_distributed_as_asked() {
        for dtype in [ScalarType::HALF, ScalarType::BFLOAT16, ScalarType::FLOAT, ScalarType::DOUBLE] {
            let uniform = draw(&RAND, dtype);
            assert!(uniform.iter().all(|x| (0.0..1.0).contains(x)), "{dtype}");
            let [mean, variance] = moments(&uniform);
            assert!((mean - 0.5).abs() < 0.02 && (variance - 1.0 / 12.0).abs() < 0.01, "{dtype} {mean} {variance}");
            let [mean, variance] = moments(&draw(&RANDN, dtype));
            assert!(mean.abs() < 0.05 && (variance - 1.0).abs() < 0.1, "{dtype} {mean} {variance}");
        }
        assert_ne!(draw(&RAND, ScalarType::FLOAT), draw(&RAND, ScalarType::FLOAT));
    }

    fn drop(p: f64, train: Arg) -> (Vec<f32>, Vec<bool>) {
        let args = [
            Arg::tensor(&[COUNT], &[3f32; COUNT]),
            Arg::double(p),
            train,
            Arg::out(ScalarType::FLOAT, &[COUNT]),
            Arg::out(ScalarType::BOOL, &[COUNT]),
        ];
        let outs = call(&DROPOUT, &args).unwrap();
        let mask = outs[1].as_slice::<Bool>().unwrap().into_iter().map(Bool::get).collect();
        (outs[0].as_slice().unwrap(), mask)
    }

    #[test]
    fn what_is_dropped_is_marked_and_the_rest_scaled() {
        let (out, mask) = drop(0.25, Arg::None);
        assert!(out.iter().zip(&mask).all(|(&x, &keep)| x == if keep { 4.0 } else { 0.0 }));
        let kept = mask.iter().filter(|&&keep| keep).count() as f64 / COUNT as f64;
        assert!((kept - 0.75).abs() < 0.02, "{kept}");
        assert!(drop(1.0, Arg::bool(true)).0.iter().all(|&x| x == 0.0));
        for (p, train) in [(0.25, false), (0.0, true)] {
            let (out, mask) = drop(p, Arg::bool(train));
            assert!(out.iter().all(|&x| x == 3.0) && mask.iter().all(|&keep| keep));
        }
    }

    #[test]
    fn what_is_no_probability_is_refused() {
        let outs = [Arg::out(ScalarType::FLOAT, &[1]), Arg::out(ScalarType::BOOL, &[1])];
        for p in [-0.1, 1.5, f64::NAN] {
            let mut args = vec![Arg::tensor(&[1], &[1f32]), Arg::double(p), Arg::None];
            args.extend(outs.clone());
            assert!(call(&DROPOUT, &args).is_err(), "{p}");
        }
    }
}
