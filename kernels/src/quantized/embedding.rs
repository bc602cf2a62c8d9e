//! Rows of a quantised table as floats: a byte, four bits or two bits per weight, one scale per row or group.
//!
//! Four-bit weights are stored high half first, two-bit weights low bits first; both are stored above 0 and lowered by
//! half of their range.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::{PodElement, TensorRef};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;
use half::{bf16, f16};

use super::affine::number_at;
use crate::schema::{kernel, position};
use edgepack_compute::number::Cast;

/// Arguments of all.
const WEIGHT: usize = position("quantized_decomposed::embedding_byte.out", "weight");
const SCALES: usize = position("quantized_decomposed::embedding_byte.out", "weight_scales");
const ZERO_POINTS: usize = position("quantized_decomposed::embedding_byte.out", "weight_zero_points");
const INDICES: usize = position("quantized_decomposed::embedding_byte.out", "indices");

/// Packing of weights in bytes.
#[derive(Clone, Copy, PartialEq)]
enum Packing {
    Byte,
    Nibble,
    Pair,
}

impl Packing {
    fn per_byte(self) -> usize {
        match self {
            Packing::Byte => 1,
            Packing::Nibble => 2,
            Packing::Pair => 4,
        }
    }

    fn weight(self, row: &[u8], at: usize, signed: bool) -> f32 {
        let byte = row[at / self.per_byte()];
        f32::from(match self {
            Packing::Byte if signed => i16::from(byte as i8),
            Packing::Byte => i16::from(byte),
            Packing::Nibble if at.is_multiple_of(2) => i16::from(byte >> 4) - 8,
            Packing::Nibble => i16::from(byte & 15) - 8,
            Packing::Pair => i16::from(byte >> (at % 4 * 2) & 3) - 2,
        })
    }
}

fn prepare(args: &Prepare<'_>, packing: Packing, out: usize) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(out + 2)?;
    let weight = args.tensor(WEIGHT)?.meta.dtype;
    let signed = weight == ScalarType::CHAR;
    if !(weight == ScalarType::BYTE || signed && packing == Packing::Byte) {
        return Err(KernelError::argument(format!("`weight` is {weight}, which holds no weights of this operator")));
    }
    let indices = args.tensor(INDICES)?.meta.dtype;
    if !matches!(indices, ScalarType::INT | ScalarType::LONG) {
        return Err(KernelError::argument(format!("`indices` is {indices}, the operator wants i32 or i64")));
    }
    let write = match args.tensor(out)?.meta.dtype {
        ScalarType::FLOAT => rows::<f32>,
        ScalarType::HALF => rows::<f16>,
        ScalarType::BFLOAT16 => rows::<bf16>,
        dtype => return Err(KernelError::argument(format!("`out` is {dtype}, not f32, f16 or bf16"))),
    };
    Ok(Box::new(move |cx: &mut KernelContext<'_>| write(cx, packing, signed, out)))
}

fn rows<T: PodElement>(
    cx: &mut KernelContext<'_>,
    packing: Packing,
    signed: bool,
    out: usize,
) -> Result<(), KernelError>
where
    f32: Cast<T>,
{
    let (weight, scales) = (cx.meta(WEIGHT)?, cx.meta(SCALES)?);
    let &[count, bytes] = weight.sizes else {
        return Err(KernelError::argument(format!("`weight` has {} dimensions, not 2", weight.rank())));
    };
    let groups = match *scales.sizes {
        [rows] if rows == count => 1,
        [rows, groups] if rows == count && groups > 0 => groups,
        _ => {
            let have = scales.sizes;
            return Err(KernelError::argument(format!(
                "`weight_scales` has sizes {have:?}, `weight` has {count} rows"
            )));
        }
    };
    let width = bytes * packing.per_byte();
    if !width.is_multiple_of(groups) {
        return Err(KernelError::argument(format!("{groups} groups do not divide a row of {width} weights")));
    }
    if let Some(zeros) = cx.meta_opt(ZERO_POINTS)?
        && zeros.element_count() != count * groups
    {
        let have = zeros.sizes;
        return Err(KernelError::argument(format!("`weight_zero_points` has sizes {have:?}, unlike `weight_scales`")));
    }
    let sizes: Dims = Dims::collect(cx.meta(INDICES)?.sizes.iter().copied().chain([width]))
        .ok_or_else(|| KernelError::unsupported("the result has more than 16 dimensions"))?;
    cx.resize(out, &sizes)?;
    let views = cx.views();
    let (weight, scales, zeros, indices) =
        (views.tensor(WEIGHT)?, views.tensor(SCALES)?, views.tensor_opt(ZERO_POINTS)?, views.tensor(INDICES)?);
    let tensors: [&TensorRef<'_>; 3] = [&weight, &scales, &indices];
    let mut out = views.out(out)?;
    if !out.is_contiguous() || !tensors.iter().all(|tensor| tensor.is_contiguous()) {
        return Err(KernelError::unsupported("`weight`, `weight_scales`, `indices` and `out` must be contiguous"));
    }
    if width == 0 {
        return Ok(());
    }
    for (at, to) in out.as_mut_slice::<T>()?.chunks_exact_mut(width).enumerate() {
        let index = number_at(&indices, at)?;
        if !(index >= 0.0 && index < count as f64) {
            return Err(KernelError::argument(format!("`indices` holds {index}, `weight` has {count} rows")));
        }
        let row = index as usize;
        let stored = &weight.bytes()[row * bytes..][..bytes];
        for (group, to) in to.chunks_exact_mut(width / groups).enumerate() {
            let scale = number_at(&scales, row * groups + group)? as f32;
            let zero = zeros.as_ref().map_or(Ok(0.0), |zeros| number_at(zeros, row * groups + group))? as f32;
            let first = group * (width / groups);
            for (at, to) in to.iter_mut().enumerate() {
                *to = ((packing.weight(stored, first + at, signed) - zero) * scale).cast();
            }
        }
    }
    Ok(())
}

macro_rules! operators {
    ($($name:literal $packing:ident;)*) => {
        /// The operators of this table.
        pub const KERNELS: &[&Kernel] = &[$(&kernel($name, Alias::Disjoint, |args| {
            prepare(args, Packing::$packing, const { position($name, "out") })
        }),)*];
    };
}

operators! {
    "quantized_decomposed::embedding_byte.out" Byte;
    "quantized_decomposed::embedding_byte.dtype_out" Byte;
    "quantized_decomposed::embedding_4bit.out" Nibble;
    "quantized_decomposed::embedding_4bit.dtype_out" Nibble;
    "quantized_decomposed::embedding_2bit.out" Pair;
    "quantized_decomposed::embedding_2bit.dtype_out" Pair;
}
