//! Operators that pick or place by what the elements are: the places of non-zero elements, masks, and repeated indices.
//!
//! The loops are those of `edgepack_compute::mask` and `edgepack_compute::repeat`.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use super::row;
use super::transfer::expect_same_type;
use crate::indices::indices;
use crate::schema::arguments;
use edgepack_compute::layout::{Layout, broadcast};
use edgepack_compute::{mask, repeat};

arguments!("aten::nonzero.out"; SELF = "self", PLACES = "out");
arguments!("aten::masked_select.out"; MASK = "mask", SELECTED = "out");
arguments!("aten::masked_scatter.out"; SOURCE = "source", SCATTERED = "out");
arguments!("aten::repeat_interleave.Tensor_out"; REPEATS = "repeats", OUTPUT_SIZE = "output_size", REPEATED = "out");

fn expect_contiguous(args: &Prepare<'_>, tensors: &[(usize, &str)]) -> Result<(), KernelError> {
    for &(arg, name) in tensors {
        if !args.tensor(arg)?.meta.is_contiguous() {
            return Err(KernelError::unsupported(format!("`{name}` must be contiguous")));
        }
    }
    Ok(())
}

fn nonzero(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (rank, dtype) = (cx.meta(SELF)?.rank(), cx.meta(SELF)?.dtype);
    // A complex number is two numbers.
    let (number, numbers) = (dtype.part(), if dtype.is_complex() { 2 } else { 1 });
    let count = {
        let bytes = cx.views().tensor(SELF)?.bytes();
        with_element!(number, T => mask::count_true::<T>(numbers, bytes), else => 0)
    };
    cx.resize(PLACES, &[count, rank])?;
    let views = cx.views();
    let (input, out) = (views.tensor(SELF)?, views.out(PLACES)?);
    let &[row, column] = out.strides else { return Ok(()) };
    let places = (out.into_slice::<i64>()?, [row, column]);
    with_element!(number, T => mask::coordinates::<T>(numbers, input.sizes, input.bytes(), places), else => ());
    Ok(())
}

/// The sizes that `self` and `mask` stretch to.
fn common(cx: &KernelContext<'_>) -> Result<Dims, KernelError> {
    let (a, b) = (cx.meta(SELF)?.sizes, cx.meta(MASK)?.sizes);
    broadcast(a, b)
        .ok_or_else(|| KernelError::argument(format!("`mask` has sizes {b:?}, which do not broadcast with {a:?}")))
}

fn masked_select(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let sizes = common(cx)?;
    let count = {
        let mask = cx.views().tensor(MASK)?;
        mask::count_masked(&sizes, (Layout::from(&mask), mask.bytes()))
    };
    cx.resize(SELECTED, &[count])?;
    let views = cx.views();
    let (input, mask, mut out) = (views.tensor(SELF)?, views.tensor(MASK)?, views.out(SELECTED)?);
    let width = out.dtype.size().unwrap_or(1);
    let (from, mask) = ((Layout::from(&input), input.bytes()), (Layout::from(&mask), mask.bytes()));
    mask::select(width, &sizes, from, mask, out.bytes_mut());
    Ok(())
}

fn masked_scatter(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let sizes = common(cx)?;
    cx.resize(SCATTERED, &sizes)?;
    let views = cx.views();
    let (input, mask, mut out) = (views.tensor(SELF)?, views.tensor(MASK)?, views.out(SCATTERED)?);
    let width = out.dtype.size().unwrap_or(1);
    let (from, mask) = ((Layout::from(&input), input.bytes()), (Layout::from(&mask), mask.bytes()));
    Ok(mask::scatter(width, &sizes, from, mask, views.tensor(SOURCE)?.bytes(), out.bytes_mut())?)
}

fn expect_mask(args: &Prepare<'_>) -> Result<(), KernelError> {
    match args.tensor(MASK)?.meta.dtype {
        ScalarType::BOOL => Ok(()),
        dtype => Err(KernelError::argument(format!("`mask` is {dtype}, the operator wants bool"))),
    }
}

/// Index `i`, as often as `repeats[i]` says.
fn repeat_interleave(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let given = cx.int_opt(OUTPUT_SIZE)?;
    let sum = repeat::total(indices(&cx.views().tensor(REPEATS)?))?;
    if let Some(given) = given
        && given != sum
    {
        return Err(KernelError::argument(format!("`output_size` is {given}, `repeats` add up to {sum}")));
    }
    cx.resize(REPEATED, &[usize::try_from(sum).unwrap_or(usize::MAX)])?;
    let views = cx.views();
    let (repeats, out) = (views.tensor(REPEATS)?, views.out(REPEATED)?);
    match out.dtype {
        ScalarType::INT => repeat::interleave(indices(&repeats), out.into_slice::<i32>()?),
        _ => repeat::interleave(indices(&repeats), out.into_slice::<i64>()?),
    }
    Ok(())
}

fn prepare_repeat(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(REPEATED + 2)?;
    for (arg, name) in [(REPEATS, "repeats"), (REPEATED, "out")] {
        let meta = args.tensor(arg)?.meta;
        if !matches!(meta.dtype, ScalarType::INT | ScalarType::LONG) || meta.rank() != 1 {
            let (dtype, rank) = (meta.dtype, meta.rank());
            return Err(KernelError::argument(format!(
                "`{name}` is {dtype} of {rank} dimensions, the operator wants i32 or i64 of one"
            )));
        }
    }
    Ok(Box::new(repeat_interleave))
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &row("aten::nonzero.out", |args| -> Result<Box<dyn Run>, KernelError> {
        args.expect_len(PLACES + 2)?;
        expect_contiguous(args, &[(SELF, "self")])?;
        match (args.tensor(PLACES)?.meta.dtype, args.tensor(PLACES)?.meta.rank()) {
            (ScalarType::LONG, 2) => Ok(Box::new(nonzero)),
            (dtype, rank) => Err(KernelError::argument(format!(
                "`out` is {dtype} of {rank} dimensions, the operator wants i64 of 2"
            ))),
        }
    }),
    &row("aten::masked_select.out", |args| {
        args.expect_len(SELECTED + 2)?;
        expect_same_type(args, SELF, SELECTED)?;
        expect_mask(args)?;
        Ok(Box::new(masked_select))
    }),
    &row("aten::masked_scatter.out", |args| {
        args.expect_len(SCATTERED + 2)?;
        expect_same_type(args, SELF, SCATTERED)?;
        expect_same_type(args, SOURCE, SCATTERED)?;
        expect_mask(args)?;
        expect_contiguous(args, &[(SOURCE, "source"), (SCATTERED, "out")])?;
        Ok(Box::new(masked_scatter))
    }),
    &row("aten::repeat_interleave.Tensor_out", prepare_repeat),
];
