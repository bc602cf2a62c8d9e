//! Operators that pick or place by what the elements are: the places of non-zero elements, and masks.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_executor::with_element;
use edgepack_format::scalar::{Bool, ScalarType};
use edgepack_format::tensor::Dims;

use super::row;
use super::transfer::expect_same_type;
use crate::aten::elementwise::schema::UNARY;
use crate::broadcast::{Axis, Walk, broadcast};
use edgepack_compute::number::Cast;

fn expect_contiguous(args: &Prepare<'_>, tensors: &[(usize, &str)]) -> Result<(), KernelError> {
    for &(arg, name) in tensors {
        if !args.tensor(arg)?.meta.is_contiguous() {
            return Err(KernelError::unsupported(format!("`{name}` must be contiguous")));
        }
    }
    Ok(())
}

/// A tensor stretched to some sizes, in index order.
fn stretched(meta: &TensorShape<'_>, sizes: &[usize]) -> Walk {
    let skip = sizes.len() - meta.rank().min(sizes.len());
    let steps = sizes.iter().enumerate().map(|(dim, &size)| {
        let own = dim.checked_sub(skip).filter(|&own| meta.sizes[own] != 1);
        Axis { size, stride: own.map_or(0, |own| meta.strides[own] as isize) }
    });
    Walk::new(steps, 0)
}

/// Calls `visit` with the index of every element that is not zero, in memory order.
fn each_true(dtype: ScalarType, bytes: &[u8], visit: &mut dyn FnMut(usize)) {
    if let Some(part) = crate::complex::part_type(dtype) {
        // A complex number is zero if both its parts are.
        let mut last = None;
        return each_true(part, bytes, &mut |at| {
            if last != Some(at / 2) {
                last = Some(at / 2);
                visit(at / 2);
            }
        });
    }
    with_element!(dtype, T => {
        for (at, element) in bytes.chunks_exact(size_of::<T>()).enumerate() {
            let value: T = bytemuck::pod_read_unaligned(element);
            if Cast::<Bool>::cast(value).get() {
                visit(at);
            }
        }
    }, else => ());
}

fn nonzero(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let rank = cx.meta(0)?.rank();
    let mut count = 0;
    {
        let views = cx.views();
        let input = views.tensor(0)?;
        each_true(input.dtype, input.bytes(), &mut |_| count += 1);
    }
    cx.resize(1, &[count, rank])?;
    let views = cx.views();
    let (input, mut out) = (views.tensor(0)?, views.out(1)?);
    if rank == 0 {
        return Ok(());
    }
    let strides = Dims::from_slice(out.strides).unwrap_or_default();
    let places = out.as_slice::<i64>()?;
    let mut row = 0;
    each_true(input.dtype, input.bytes(), &mut |mut at| {
        for dim in (0..rank).rev() {
            places[row * strides[0] + dim * strides[1]] = (at % input.sizes[dim]) as i64;
            at /= input.sizes[dim];
        }
        row += 1;
    });
    Ok(())
}

/// Whether the mask, stretched, is true; block by block.
fn each_masked(
    mask: &TensorShape<'_>,
    bytes: &[u8],
    sizes: &[usize],
    mut visit: impl FnMut(usize, bool) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    let walk = stretched(mask, sizes);
    let mut cursor = walk.cursor();
    let count: usize = sizes.iter().product();
    let mut block = [0u8; 256];
    for start in (0..count).step_by(block.len()) {
        let len = block.len().min(count - start);
        cursor.gather(1, bytes, &mut block[..len]);
        for (at, &byte) in block[..len].iter().enumerate() {
            visit(start + at, byte != 0)?;
        }
    }
    Ok(())
}

fn common(cx: &KernelContext<'_>) -> Result<Dims, KernelError> {
    let (a, b) = (cx.meta(0)?.sizes, cx.meta(1)?.sizes);
    broadcast(a, b)
        .ok_or_else(|| KernelError::argument(format!("`mask` has sizes {b:?}, which do not broadcast with {a:?}")))
}

fn masked_select(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let sizes = common(cx)?;
    let mut count = 0;
    {
        let views = cx.views();
        let mask = views.tensor(1)?;
        each_masked(&mask.meta(), mask.bytes(), &sizes, |_, set| {
            count += usize::from(set);
            Ok(())
        })?;
    }
    cx.resize(2, &[count])?;
    let views = cx.views();
    let (input, mask, mut out) = (views.tensor(0)?, views.tensor(1)?, views.out(2)?);
    let width = out.dtype.size().unwrap_or(1);
    let walk = stretched(&input.meta(), &sizes);
    let mut cursor = walk.cursor();
    let mut places = out.bytes().chunks_exact_mut(width);
    let mut element = [0u64; 2];
    each_masked(&mask.meta(), mask.bytes(), &sizes, |_, set| {
        let element = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut element)[..width];
        cursor.gather(width, input.bytes(), element);
        if set && let Some(place) = places.next() {
            place.copy_from_slice(element);
        }
        Ok(())
    })
}

fn masked_scatter(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let sizes = common(cx)?;
    cx.resize(3, &sizes)?;
    let views = cx.views();
    let (input, mask, source, mut out) = (views.tensor(0)?, views.tensor(1)?, views.tensor(2)?, views.out(3)?);
    let width = out.dtype.size().unwrap_or(1);
    let walk = stretched(&input.meta(), &sizes);
    walk.cursor().gather(width, input.bytes(), out.bytes());
    let mut elements = source.bytes().chunks_exact(width);
    let out = out.bytes();
    each_masked(&mask.meta(), mask.bytes(), &sizes, |at, set| {
        if !set {
            return Ok(());
        }
        let Some(element) = elements.next() else {
            let have = source.element_count();
            return Err(KernelError::argument(format!("`source` has {have} elements, `mask` asks for more")));
        };
        out[at * width..][..width].copy_from_slice(element);
        Ok(())
    })
}

fn expect_mask(args: &Prepare<'_>) -> Result<(), KernelError> {
    match args.tensor(1)?.meta.dtype {
        ScalarType::BOOL => Ok(()),
        dtype => Err(KernelError::argument(format!("`mask` is {dtype}, the operator wants BOOL"))),
    }
}

/// Index `i`, as often as `repeats[i]` says.
fn repeat_interleave(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    fn numbers(dtype: ScalarType, bytes: &[u8], mut visit: impl FnMut(i64)) {
        with_element!(dtype, T => {
            for element in bytes.chunks_exact(size_of::<T>()) {
                visit(bytemuck::pod_read_unaligned::<T>(element).cast());
            }
        }, else => ());
    }
    let given = cx.int_opt(1)?;
    let (mut sum, mut negative) = (0i64, false);
    {
        let views = cx.views();
        let repeats = views.tensor(0)?;
        numbers(repeats.dtype, repeats.bytes(), |times| {
            negative |= times < 0;
            sum = sum.saturating_add(times);
        });
    }
    if negative {
        return Err(KernelError::argument("`repeats` holds a negative number"));
    }
    if let Some(given) = given
        && given != sum
    {
        return Err(KernelError::argument(format!("`output_size` is {given}, `repeats` add up to {sum}")));
    }
    cx.resize(2, &[usize::try_from(sum).unwrap_or(usize::MAX)])?;
    let views = cx.views();
    let (repeats, mut out) = (views.tensor(0)?, views.out(2)?);
    with_element!(out.dtype, T => {
        let mut places = out.as_slice::<T>()?.iter_mut();
        let mut index = 0i64;
        numbers(repeats.dtype, repeats.bytes(), |times| {
            for place in places.by_ref().take(times as usize) {
                *place = index.cast();
            }
            index += 1;
        });
        Ok(())
    }, else => Err(KernelError::argument(format!("`out` is {}, not INT or LONG", out.dtype))))
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &row("aten::nonzero.out", UNARY, |args| -> Result<Box<dyn Run>, KernelError> {
        args.expect_len(3)?;
        expect_contiguous(args, &[(0, "self")])?;
        match (args.tensor(1)?.meta.dtype, args.tensor(1)?.meta.rank()) {
            (ScalarType::LONG, 2) => Ok(Box::new(nonzero)),
            (dtype, rank) => Err(KernelError::argument(format!(
                "`out` is {dtype} of {rank} dimensions, the operator wants LONG of 2"
            ))),
        }
    }),
    &row("aten::masked_select.out", "(Tensor self, Tensor mask, *, Tensor(a!) out) -> Tensor(a!)", |args| {
        args.expect_len(4)?;
        expect_same_type(args, 0, 2)?;
        expect_mask(args)?;
        Ok(Box::new(masked_select))
    }),
    &row(
        "aten::masked_scatter.out",
        "(Tensor self, Tensor mask, Tensor source, *, Tensor(a!) out) -> Tensor(a!)",
        |args| {
            args.expect_len(5)?;
            expect_same_type(args, 0, 3)?;
            expect_same_type(args, 2, 3)?;
            expect_mask(args)?;
            expect_contiguous(args, &[(2, "source"), (3, "out")])?;
            Ok(Box::new(masked_scatter))
        },
    ),
    &row(
        "aten::repeat_interleave.Tensor_out",
        "(Tensor repeats, *, SymInt? output_size=None, Tensor(a!) out) -> Tensor(a!)",
        |args| {
            args.expect_len(4)?;
            for (arg, name) in [(0, "repeats"), (2, "out")] {
                let meta = args.tensor(arg)?.meta;
                if !matches!(meta.dtype, ScalarType::INT | ScalarType::LONG) || meta.rank() != 1 {
                    let (dtype, rank) = (meta.dtype, meta.rank());
                    return Err(KernelError::argument(format!(
                        "`{name}` is {dtype} of {rank} dimensions, the operator wants INT or LONG of one"
                    )));
                }
            }
            Ok(Box::new(repeat_interleave))
        },
    ),
];
