//! The sum of two quantised tensors, computed on the numbers they represent.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::tensor::Dims;

use super::affine::{dequantizer, expect_bounds, quantizer};
use crate::schema::{kernel, position};
use edgepack_compute::quantise::Affine;
use edgepack_format::scalar::ScalarType;

/// Elements per block of floats.
const BLOCK: usize = 128;

const A: usize = position("quantized_decomposed::add.out", "a");
const B: usize = position("quantized_decomposed::add.out", "b");
const OUT: usize = position("quantized_decomposed::add.out", "out");

/// Positions of the arguments that say which numbers a tensor represents.
struct Parameters {
    scale: usize,
    zero_point: usize,
    quant_min: usize,
    quant_max: usize,
}

macro_rules! parameters {
    ($tensor:literal) => {
        Parameters {
            scale: position("quantized_decomposed::add.out", concat!($tensor, "_scale")),
            zero_point: position("quantized_decomposed::add.out", concat!($tensor, "_zero_point")),
            quant_min: position("quantized_decomposed::add.out", concat!($tensor, "_quant_min")),
            quant_max: position("quantized_decomposed::add.out", concat!($tensor, "_quant_max")),
        }
    };
}

const OF_A: Parameters = parameters!("a");
const OF_B: Parameters = parameters!("b");
const OF_OUT: Parameters = parameters!("out");

fn affine(cx: &KernelContext<'_>, at: &Parameters) -> Result<Affine, KernelError> {
    let zero = cx.int(at.zero_point)?;
    if i32::try_from(zero).is_err() {
        return Err(KernelError::argument(format!("a zero point is {zero}, outside of the range of i32")));
    }
    Ok(Affine {
        scale: cx.double(at.scale)? as f32,
        zero,
        least: cx.int(at.quant_min)?,
        greatest: cx.int(at.quant_max)?,
    })
}

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(OUT + 2)?;
    let (a, b, out) = (args.tensor(A)?.meta, args.tensor(B)?.meta, args.tensor(OUT)?.meta);
    if a.dtype != b.dtype || a.dtype != out.dtype || a.dim_order != b.dim_order || a.dim_order != out.dim_order {
        return Err(KernelError::argument("`a`, `b` and `out` must have one element type and dim order"));
    }
    let dtype = out.dtype;
    let load = dequantizer(dtype, ScalarType::FLOAT)?;
    let store = quantizer(ScalarType::FLOAT, dtype)?;
    let width = dtype.size().unwrap_or(1);
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let (a, b, sum) = (affine(cx, &OF_A)?, affine(cx, &OF_B)?, affine(cx, &OF_OUT)?);
        expect_bounds(&sum, dtype)?;
        let sizes = Dims::from_slice(cx.meta(A)?.sizes).unwrap_or_default();
        if *sizes != *cx.meta(B)?.sizes {
            let (a, b) = (&*sizes, cx.meta(B)?.sizes);
            return Err(KernelError::argument(format!("`a` has sizes {a:?}, `b` has {b:?}: they must be equal")));
        }
        cx.resize(OUT, &sizes)?;
        let views = cx.views();
        let (left, right, mut out) = (views.tensor(A)?, views.tensor(B)?, views.out(OUT)?);
        let chunk = BLOCK * width;
        let blocks = left.bytes().chunks(chunk).zip(right.bytes().chunks(chunk)).zip(out.bytes_mut().chunks_mut(chunk));
        for ((left, right), out) in blocks {
            let (mut x, mut y) = ([0f32; BLOCK], [0f32; BLOCK]);
            let len = out.len() / width;
            load(&a, left, bytemuck::cast_slice_mut(&mut x[..len]));
            load(&b, right, bytemuck::cast_slice_mut(&mut y[..len]));
            x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
            store(&sum, bytemuck::cast_slice(&x[..len]), out);
        }
        Ok(())
    }))
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[&kernel("quantized_decomposed::add.out", Alias::Disjoint, prepare)];
