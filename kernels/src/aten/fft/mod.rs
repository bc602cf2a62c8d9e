//! Fourier transforms: `_fft_r2c` from real numbers to the half of the spectrum that is not a mirror image of the rest
//! (or all of it), `_fft_c2r` back, `_fft_c2c` from complex numbers to complex numbers.
//!
//! The loops are those of `edgepack_compute::fourier`. Tables of the lengths that are known at load are made there; those
//! of other lengths at run, in memory that was reserved for the longest there may be.

use bytemuck::Pod;
use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::{Shape, expect_dtype};
use crate::complex::elements;
use crate::dims::{dim_of, size_of};
use crate::schema::{kernel, position};
use edgepack_compute::complex::Complex;
use edgepack_compute::fourier::{Lines, Transform, Transforms};
use edgepack_compute::number::{Cast, Number};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&COMPLEX, &TO_COMPLEX, &TO_REAL];

const COMPLEX_NAME: &str = "aten::_fft_c2c.out";
const TO_COMPLEX_NAME: &str = "aten::_fft_r2c.out";
const TO_REAL_NAME: &str = "aten::_fft_c2r.out";

/// Arguments of all three.
const SELF: usize = position(COMPLEX_NAME, "self");
const DIMS: usize = position(COMPLEX_NAME, "dim");
const NORMALIZATION: usize = position(COMPLEX_NAME, "normalization");
const OUT: usize = position(COMPLEX_NAME, "out");
/// The argument that differs.
const FORWARD: usize = position(COMPLEX_NAME, "forward");
const ONE_SIDED: usize = position(TO_COMPLEX_NAME, "onesided");
const LENGTH: usize = position(TO_REAL_NAME, "last_dim_size");

static COMPLEX: Kernel = kernel(COMPLEX_NAME, Alias::Disjoint, |args| match args.tensor(SELF)?.meta.dtype {
    dtype @ ScalarType::COMPLEX_FLOAT => prepare(args, dtype, SELF, among_complex_numbers::<f32>),
    dtype @ ScalarType::COMPLEX_DOUBLE => prepare(args, dtype, SELF, among_complex_numbers::<f64>),
    other => Err(wanted(other, "c64 or c128")),
});
static TO_COMPLEX: Kernel = kernel(TO_COMPLEX_NAME, Alias::Disjoint, |args| match args.tensor(SELF)?.meta.dtype {
    ScalarType::FLOAT => prepare(args, ScalarType::COMPLEX_FLOAT, SELF, to_complex_numbers::<f32>),
    ScalarType::DOUBLE => prepare(args, ScalarType::COMPLEX_DOUBLE, SELF, to_complex_numbers::<f64>),
    other => Err(wanted(other, "f32 or f64")),
});
static TO_REAL: Kernel = kernel(TO_REAL_NAME, Alias::Disjoint, |args| match args.tensor(SELF)?.meta.dtype {
    ScalarType::COMPLEX_FLOAT => prepare(args, ScalarType::FLOAT, OUT, to_real_numbers::<f32>),
    ScalarType::COMPLEX_DOUBLE => prepare(args, ScalarType::DOUBLE, OUT, to_real_numbers::<f64>),
    other => Err(wanted(other, "c64 or c128")),
});

fn wanted(dtype: ScalarType, wanted: &str) -> KernelError {
    KernelError::argument(format!("`self` is {dtype}, the operator wants {wanted}"))
}

/// Computes a call with the transforms of its instruction.
type Compute = fn(&mut KernelContext<'_>, &mut Transforms) -> Result<(), KernelError>;

/// An instruction with the tables it retains.
struct Fourier {
    transforms: Transforms,
    compute: Compute,
}

impl Run for Fourier {
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        (self.compute)(cx, &mut self.transforms)
    }

    fn retained_bytes(&self) -> usize {
        self.transforms.tables()
    }
}

/// Checks a call whose lines are as long as the dimensions of argument `whole`, and asks for its memory.
fn prepare(
    args: &Prepare<'_>,
    out_type: ScalarType,
    whole: usize,
    compute: Compute,
) -> Result<Box<dyn Run>, KernelError> {
    let (input, out) = (args.tensor(SELF)?, args.tensor(OUT)?);
    expect_dtype("out", out.meta.dtype, out_type)?;
    if !input.meta.is_contiguous() || !out.meta.is_contiguous() {
        return Err(KernelError::unsupported("`self` and `out` must be contiguous"));
    }
    // Scratch: the complex numbers of all lines, one line of any dimension, and what its transform needs.
    let count = input.meta.element_count().max(out.meta.element_count());
    if input.meta.element_count() == 0 || out.meta.element_count() == 0 {
        // Without elements there are no lines, however long they would be.
        return Ok(Box::new(Fourier { transforms: Transforms::new(0, 0)?, compute }));
    }
    let line = longest(&input.meta).max(longest(&out.meta));
    args.scratch(Lines::scratch(count, line).saturating_mul(size_of_complex()));
    Ok(Box::new(Fourier { transforms: tables(args, whole)?, compute }))
}

fn longest(meta: &TensorShape<'_>) -> usize {
    meta.sizes.iter().copied().max().unwrap_or(1)
}

/// The tables of all lengths, if they are known; else room for those there may be.
fn tables(args: &Prepare<'_>, whole: usize) -> Result<Transforms, KernelError> {
    let (tensor, dims) = (args.tensor(whole)?, args.ints(DIMS)?);
    let (rank, dynamic) = (tensor.meta.rank(), args.tensor(SELF)?.dynamic || tensor.dynamic);
    let Some(dims) = dims.filter(|_| !dynamic) else {
        let bytes = Transform::most_bytes(longest(&tensor.meta)).saturating_mul(rank);
        args.retained().reserve(bytes)?;
        return Ok(Transforms::new(rank, bytes)?);
    };
    // A call with dimensions that are not there, or no points, is refused when it runs.
    let mut lengths = Dims::new();
    for dim in dims {
        let length = dim_of("dim", dim, "self", rank).ok().and_then(|dim| tensor.meta.sizes.get(dim).copied());
        if let Some(length) = length.filter(|length| *length > 0 && !lengths.contains(length)) {
            // There are as many lengths as dimensions at most.
            let _ = lengths.push(length);
        }
    }
    let bytes = lengths.iter().fold(0usize, |all, &length| all.saturating_add(Transform::bytes_of(length)));
    args.retained().reserve(bytes)?;
    let mut transforms = Transforms::new(lengths.len(), bytes)?;
    lengths.iter().try_for_each(|&length| transforms.of(length, &mut []).map(drop))?;
    Ok(transforms)
}

const fn size_of_complex() -> usize {
    std::mem::size_of::<Complex<f64>>()
}

/// The dimensions that are transformed, the last one where real and complex meet.
fn dimensions(cx: &KernelContext<'_>, rank: usize) -> Result<Dims, KernelError> {
    let mut dims = Dims::new();
    for dim in cx.ints(DIMS)?.iter() {
        let dim = dim_of("dim", dim, "self", rank)?;
        if dims.contains(&dim) || rank == 0 {
            return Err(KernelError::argument(format!("`dim` names dimension {dim} of {rank} once too often")));
        }
        // No dimension is named twice, so there is room.
        let _ = dims.push(dim);
    }
    if dims.is_empty() {
        return Err(KernelError::argument("`dim` is empty, nothing is to be transformed"));
    }
    Ok(dims)
}

/// The factor of results, by the number of points of a transform.
fn factor(cx: &KernelContext<'_>, sizes: &[usize], dims: &[usize]) -> Result<f64, KernelError> {
    let points: f64 = dims.iter().map(|&dim| sizes[dim] as f64).product();
    match cx.int(NORMALIZATION)? {
        0 => Ok(1.0),
        1 => Ok(1.0 / points.sqrt()),
        2 => Ok(1.0 / points),
        other => Err(KernelError::argument(format!("`normalization` is {other}, not 0, 1 or 2"))),
    }
}

/// The scratch memory of a call as complex numbers.
fn numbers(scratch: &mut [u8], count: usize) -> Result<&mut [Complex<f64>], KernelError> {
    bytemuck::try_cast_slice_mut(scratch)
        .map_err(|_| KernelError::unsupported(format!("{count} numbers are more than at load")))
}

fn to_complex_numbers<R: Number>(cx: &mut KernelContext<'_>, transforms: &mut Transforms) -> Result<(), KernelError>
where
    f64: Cast<R>,
{
    let meta = cx.meta(SELF)?;
    let input: Dims = Dims::from_slice(meta.sizes).unwrap_or_default();
    let dims = dimensions(cx, input.len())?;
    let last = dims[dims.len() - 1];
    if input[last] == 0 {
        return Err(KernelError::argument(format!("`self` is {}: no points to transform", Shape(&input))));
    }
    let factor = factor(cx, &input, &dims)?;
    let mut sizes = Dims::from_slice(&input).unwrap_or_default();
    if cx.bool(ONE_SIDED)? {
        sizes[last] = input[last] / 2 + 1;
    }
    cx.resize(OUT, &sizes)?;
    let views = cx.views();
    let (input, mut out) = (views.tensor(SELF)?, views.out(OUT)?);
    let data = input.as_slice::<R>()?;
    let lines = Lines { sizes: input.sizes, strides: input.strides, dims: &dims, factor };
    let scratch = numbers(views.scratch()?, data.len())?;
    Ok(lines.real_to_complex(data, sizes[last], cast_mut(out.bytes_mut())?, scratch, transforms)?)
}

fn to_real_numbers<R: Number>(cx: &mut KernelContext<'_>, transforms: &mut Transforms) -> Result<(), KernelError>
where
    f64: Cast<R>,
{
    let meta = cx.meta(SELF)?;
    let dims = dimensions(cx, meta.rank())?;
    let last = dims[dims.len() - 1];
    let length = size_of("last_dim_size", cx.int(LENGTH)?)?;
    let have = meta.sizes[last];
    if length == 0 || have != length / 2 + 1 {
        return Err(KernelError::argument(format!("`last_dim_size` is {length}, `self` has {have} numbers there")));
    }
    let mut sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    sizes[last] = length;
    let factor = factor(cx, &sizes, &dims)?;
    cx.resize(OUT, &sizes)?;
    let views = cx.views();
    let (input, out) = (views.tensor(SELF)?, views.out(OUT)?);
    let data = elements::<R>(input.bytes())?;
    let lines = Lines { sizes: input.sizes, strides: input.strides, dims: &dims, factor };
    let scratch = numbers(views.scratch()?, data.len())?;
    Ok(lines.complex_to_real(data, length, out.into_slice::<R>()?, scratch, transforms)?)
}

fn among_complex_numbers<R: Number>(cx: &mut KernelContext<'_>, transforms: &mut Transforms) -> Result<(), KernelError>
where
    f64: Cast<R>,
{
    let sizes: Dims = Dims::from_slice(cx.meta(SELF)?.sizes).unwrap_or_default();
    let dims = dimensions(cx, sizes.len())?;
    let (factor, backward) = (factor(cx, &sizes, &dims)?, !cx.bool(FORWARD)?);
    cx.resize(OUT, &sizes)?;
    let views = cx.views();
    let (input, mut out) = (views.tensor(SELF)?, views.out(OUT)?);
    let data = elements::<R>(input.bytes())?;
    let lines = Lines { sizes: input.sizes, strides: input.strides, dims: &dims, factor };
    let scratch = numbers(views.scratch()?, data.len())?;
    Ok(lines.complex(data, backward, cast_mut(out.bytes_mut())?, scratch, transforms)?)
}

fn cast_mut<R: Pod>(bytes: &mut [u8]) -> Result<&mut [Complex<R>], KernelError> {
    bytemuck::try_cast_slice_mut(bytes)
        .map_err(|_| KernelError::argument("the data of `out` are not aligned to their parts"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_compute::random::Random;
    use edgepack_executor::call::{Arg, OwnedTensor, call};

    fn forward(sizes: &[usize], values: &[f64], dims: &[i64], norm: i64, out: &[usize]) -> OwnedTensor {
        let args = [
            Arg::tensor(sizes, values),
            Arg::Ints(dims.to_vec()),
            Arg::int(norm),
            Arg::bool(out != sizes),
            Arg::out(ScalarType::COMPLEX_DOUBLE, out),
        ];
        call(&TO_COMPLEX, &args).unwrap().remove(0)
    }

    #[test]
    fn there_and_back_over_several_dimensions() {
        let mut random = Random::new(6);
        for (sizes, dims) in [([3, 4, 5], &[1, 2][..]), ([2, 5, 6], &[2, 0, 1]), ([4, 1, 7], &[2]), ([1, 9, 2], &[1])] {
            let values: Vec<f64> = random.values(sizes.iter().product());
            let last = dims[dims.len() - 1] as usize;
            let mut half = sizes;
            half[last] = sizes[last] / 2 + 1;
            let spectrum = forward(&sizes, &values, dims, 0, &half);
            let args = [
                Arg::Tensor(spectrum),
                Arg::Ints(dims.to_vec()),
                Arg::int(2),
                Arg::int(sizes[last] as i64),
                Arg::out(ScalarType::DOUBLE, &sizes),
            ];
            let back = call(&TO_REAL, &args).unwrap()[0].as_slice::<f64>().unwrap();
            assert!(back.iter().zip(&values).all(|(a, b)| (a - b).abs() < 1e-12), "{sizes:?} {dims:?}");
        }
    }

    #[test]
    fn both_sides_mirror_each_other() {
        let out = forward(&[4], &[1.0, 2.0, 3.0, 4.0], &[0], 1, &[4]);
        let parts: Vec<f64> = bytemuck::pod_collect_to_vec(out.bytes());
        let want = [5.0, 0.0, -1.0, 1.0, -1.0, 0.0, -1.0, -1.0];
        assert!(parts.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-12), "{parts:?}");
    }

    #[test]
    fn lines_of_no_tensor_take_no_memory() {
        let long = i32::MAX as usize;
        let out = forward(&[0, long], &[], &[1], 0, &[0, long]);
        assert_eq!(out.bytes().len(), 0);
    }

    #[test]
    fn dimensions_are_named_once() {
        let args = [
            Arg::tensor(&[2, 2], &[0.0f32; 4]),
            Arg::Ints(vec![1, -1]),
            Arg::int(0),
            Arg::bool(true),
            Arg::out(ScalarType::COMPLEX_FLOAT, &[2, 2]),
        ];
        assert!(call(&TO_COMPLEX, &args).unwrap_err().message.contains("dimension 1"));
    }
}
