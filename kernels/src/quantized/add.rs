//! The sum of two quantised tensors, computed on what they stand for.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::tensor::Dims;

use super::affine::{dequantizer, expect_bounds, quantizer};
use edgepack_compute::quantise::Affine;
use edgepack_format::scalar::ScalarType;

/// Elements per block of floats.
const BLOCK: usize = 128;

fn affine(cx: &KernelContext<'_>, at: usize) -> Result<Affine, KernelError> {
    let zero = cx.int(at + 1)?;
    if i32::try_from(zero).is_err() {
        return Err(KernelError::argument(format!("a zero point is {zero}, outside of the range of INT")));
    }
    Ok(Affine { scale: cx.double(at)? as f32, zero, least: cx.int(at + 2)?, greatest: cx.int(at + 3)? })
}

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(16)?;
    let (a, b, out) = (args.tensor(0)?.meta, args.tensor(5)?.meta, args.tensor(14)?.meta);
    if a.dtype != b.dtype || a.dtype != out.dtype || a.dim_order != b.dim_order || a.dim_order != out.dim_order {
        return Err(KernelError::argument("`a`, `b` and `out` must have one element type and dim order"));
    }
    let dtype = out.dtype;
    let load = dequantizer(dtype, ScalarType::FLOAT)?;
    let store = quantizer(ScalarType::FLOAT, dtype)?;
    let width = dtype.size().unwrap_or(1);
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let (a, b, sum) = (affine(cx, 1)?, affine(cx, 6)?, affine(cx, 10)?);
        expect_bounds(&sum, dtype)?;
        let sizes = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
        if *sizes != *cx.meta(5)?.sizes {
            let (a, b) = (&*sizes, cx.meta(5)?.sizes);
            return Err(KernelError::argument(format!("`a` has sizes {a:?}, `b` has {b:?}: they must be equal")));
        }
        cx.resize(14, &sizes)?;
        let views = cx.views();
        let (left, right, mut out) = (views.tensor(0)?, views.tensor(5)?, views.out(14)?);
        let chunk = BLOCK * width;
        let blocks = left.bytes().chunks(chunk).zip(right.bytes().chunks(chunk)).zip(out.bytes().chunks_mut(chunk));
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
pub const KERNELS: &[&Kernel] = &[&Kernel {
    name: "quantized_decomposed::add.out",
    schema: "(Tensor a, float a_scale, int a_zero_point, int a_quant_min, int a_quant_max, Tensor b, float b_scale, \
             int b_zero_point, int b_quant_min, int b_quant_max, float out_scale, int out_zero_point, \
             int out_quant_min, int out_quant_max, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare,
}];
