//! `_embedding_bag`: rows of a table, gathered in bags and summed, averaged or compared.
//!
//! The loops are those of `edgepack_compute::embedding_bag`. Exporters give the outputs of the gradient no room where PyTorch
//! leaves them empty; then they stay empty.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::scalar::ScalarType;

use crate::check::{Class, Shape, expect_class, expect_same, with_float};
use crate::schema::{arguments, kernel};
use edgepack_compute::embedding_bag::{Bags, Mode, Outputs};
use edgepack_compute::number::Number;

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&EMBEDDING_BAG];

static EMBEDDING_BAG: Kernel = kernel("aten::_embedding_bag.out", Alias::Disjoint, prepare);

arguments!("aten::_embedding_bag.out";
    WEIGHT = "weight", INDICES = "indices", OFFSETS = "offsets", MODE = "mode", FACTORS = "per_sample_weights",
    LAST_OFFSET = "include_last_offset", PADDING = "padding_idx");
// The result, the bag of every index, the sizes of bags, the rows of maxima.
arguments!("aten::_embedding_bag.out"; RESULT = "out0", BAG_OF_INDEX = "out1", COUNTS = "out2", MAXIMA = "out3");

fn mode(number: i64) -> Result<Mode, KernelError> {
    match number {
        0 => Ok(Mode::Sum),
        1 => Ok(Mode::Mean),
        2 => Ok(Mode::Max),
        other => Err(KernelError::argument(format!("`mode` is {other}, not 0 (sum), 1 (mean) or 2 (max)"))),
    }
}

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let dtype = args.tensor(WEIGHT)?.meta.dtype;
    expect_class("weight", dtype, Class::Float)?;
    expect_same(("weight", dtype), ("out0", args.tensor(RESULT)?.meta.dtype))?;
    let places = args.tensor(INDICES)?.meta.dtype;
    if !matches!(places, ScalarType::INT | ScalarType::LONG) {
        return Err(KernelError::argument(format!("`indices` is {places}, the operator wants i32 or i64")));
    }
    expect_same(("indices", places), ("offsets", args.tensor(OFFSETS)?.meta.dtype))?;
    for (out, name) in [(BAG_OF_INDEX, "out1"), (COUNTS, "out2"), (MAXIMA, "out3")] {
        expect_same(("offsets", places), (name, args.tensor(out)?.meta.dtype))?;
    }
    if let Some(weights) = args.tensor_opt(FACTORS)? {
        expect_same(("weight", dtype), ("per_sample_weights", weights.meta.dtype))?;
        if args.int(MODE)?.is_some_and(|mode| mode != 0) {
            return Err(KernelError::argument("`per_sample_weights` go with sums only, `mode` is another"));
        }
    }
    for arg in [WEIGHT, RESULT] {
        if !args.tensor(arg)?.meta.is_contiguous() {
            return Err(KernelError::unsupported("`weight` and `out0` must be contiguous"));
        }
    }
    let ints = places == ScalarType::INT;
    with_float!(dtype, T => Ok(if ints {
        Box::new(run::<T, i32>) as Box<dyn Run>
    } else {
        Box::new(run::<T, i64>) as Box<dyn Run>
    }))
}

/// The length of a list.
fn one_dimension(name: &str, sizes: &[usize]) -> Result<usize, KernelError> {
    match *sizes {
        [length] => Ok(length),
        _ => Err(KernelError::argument(format!("`{name}` is {}, the operator wants one dimension", Shape(sizes)))),
    }
}

/// Gives an output that is wanted its sizes; one without elements is not.
fn resize_wanted(cx: &mut KernelContext<'_>, out: usize, sizes: &[usize]) -> Result<(), KernelError> {
    match cx.meta(out)?.element_count() {
        0 => Ok(()),
        _ => cx.resize(out, sizes),
    }
}

fn run<T: Number, I: Number + Into<i64>>(cx: &mut KernelContext<'_>) -> Result<(), KernelError>
where
    usize: TryInto<I>,
{
    let &[rows, width] = cx.meta(WEIGHT)?.sizes else {
        let sizes = cx.meta(WEIGHT)?.sizes;
        return Err(KernelError::argument(format!("`weight` is {}, the operator wants a matrix", Shape(sizes))));
    };
    let count = one_dimension("indices", cx.meta(INDICES)?.sizes)?;
    let offsets = one_dimension("offsets", cx.meta(OFFSETS)?.sizes)?;
    let bags = if cx.bool(LAST_OFFSET)? { offsets.checked_sub(1) } else { Some(offsets) };
    let bags = bags.ok_or_else(|| KernelError::argument("`offsets` is empty, the end of the last bag is missing"))?;
    let mode = mode(cx.int(MODE)?)?;
    let padding = match cx.int(PADDING)? {
        -1 => -1,
        row if row < 0 => row.saturating_add(rows as i64),
        row => row,
    };
    if let Some(factors) = cx.meta_opt(FACTORS)?
        && (factors.element_count() != count || mode != Mode::Sum)
    {
        let have = factors.element_count();
        return Err(KernelError::argument(format!(
            "`per_sample_weights` has {have} elements for {count} `indices`; they go with sums only"
        )));
    }
    cx.resize(RESULT, &[bags, width])?;
    resize_wanted(cx, BAG_OF_INDEX, &[count])?;
    resize_wanted(cx, COUNTS, &[bags])?;
    if mode == Mode::Max {
        resize_wanted(cx, MAXIMA, &[bags, width])?;
    }
    let views = cx.views();
    let factors = views.tensor_opt(FACTORS)?;
    let call = Bags {
        table: views.tensor(WEIGHT)?.as_slice::<T>()?,
        rows,
        width,
        indices: views.tensor(INDICES)?.as_slice::<I>()?,
        offsets: views.tensor(OFFSETS)?.as_slice::<I>()?,
        bags,
        factors: factors.map(|factors| factors.as_slice::<T>()).transpose()?,
        padding,
        mode,
    };
    Ok(call.run(Outputs {
        rows: views.out(RESULT)?.into_slice::<T>()?,
        bag_of_index: views.out(BAG_OF_INDEX)?.into_slice::<I>()?,
        counts: views.out(COUNTS)?.into_slice::<I>()?,
        maxima: views.out(MAXIMA)?.into_slice::<I>()?,
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_executor::call::{Arg, call};

    fn bag(mode: i64, offsets: &[i64], last: bool, padding: i64, factors: Option<&[f32]>) -> [Vec<f32>; 2] {
        let bags = offsets.len() - usize::from(last);
        let args = [
            Arg::tensor(&[4, 2], &[1.0f32, 10.0, 2.0, -20.0, 3.0, 30.0, 4.0, 40.0]),
            Arg::tensor(&[5], &[1i64, 3, 0, 2, 1]),
            Arg::tensor(&[offsets.len()], offsets),
            Arg::bool(false),
            Arg::int(mode),
            Arg::bool(false),
            factors.map_or(Arg::None, |factors| Arg::tensor(&[5], factors)),
            Arg::bool(last),
            Arg::int(padding),
            Arg::out(ScalarType::FLOAT, &[bags, 2]),
            Arg::out(ScalarType::LONG, &[5]),
            Arg::out(ScalarType::LONG, &[bags]),
            Arg::out(ScalarType::LONG, &if mode == 2 { vec![bags, 2] } else { vec![bags] }),
        ];
        let outs = call(&EMBEDDING_BAG, &args).unwrap();
        let sizes = outs[2].as_slice::<i64>().unwrap().into_iter().map(|x| x as f32).collect();
        [outs[0].as_slice().unwrap(), sizes]
    }

    #[test]
    fn rows_are_summed_averaged_and_compared() {
        assert_eq!(bag(0, &[0, 2, 2], false, -1, None), [vec![6.0, 20.0, 0.0, 0.0, 6.0, 20.0], vec![2.0, 0.0, 3.0]]);
        assert_eq!(bag(1, &[0, 2, 5], true, -1, None)[0], [3.0, 10.0, 2.0, 20.0 / 3.0]);
        assert_eq!(bag(2, &[0, 2], false, -1, None)[0], [4.0, 40.0, 3.0, 30.0]);
    }

    #[test]
    fn padding_does_not_count_and_factors_do() {
        assert_eq!(bag(1, &[0, 2], false, 1, None), [vec![4.0, 40.0, 2.0, 20.0], vec![1.0, 2.0]]);
        let factors = [2.0, 0.5, 1.0, 0.0, -1.0];
        assert_eq!(bag(0, &[0, 2], false, -1, Some(&factors))[0], [6.0, -20.0, -1.0, 30.0]);
    }

    #[test]
    fn indices_and_offsets_are_checked() {
        let attempt = |index: i64, offset: i64| {
            let args = [
                Arg::tensor(&[2, 1], &[1.0f32, 2.0]),
                Arg::tensor(&[1], &[index]),
                Arg::tensor(&[2], &[0, offset]),
                Arg::bool(false),
                Arg::int(0),
                Arg::bool(false),
                Arg::None,
                Arg::bool(false),
                Arg::int(-1),
                Arg::out(ScalarType::FLOAT, &[2, 1]),
                Arg::out(ScalarType::LONG, &[0]),
                Arg::out(ScalarType::LONG, &[2]),
                Arg::out(ScalarType::LONG, &[2]),
            ];
            call(&EMBEDDING_BAG, &args).map(|_| ()).map_err(|error| error.message.into_owned())
        };
        assert_eq!(attempt(1, 1), Ok(()));
        assert_eq!(attempt(2, 1).unwrap_err(), "`indices` holds 2, `weight` has 2 rows");
        assert_eq!(attempt(1, 2).unwrap_err(), "`offsets` holds 2 after 0, there are 1 indices");
    }
}
