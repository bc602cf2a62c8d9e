//! Fourier transforms: `_fft_r2c` from real numbers to the half of the spectrum that is not a mirror image of the rest
//! (or all of it), `_fft_c2r` back, `_fft_c2c` from complex numbers to complex numbers.
//!
//! The last of the dimensions is where real and complex meet; the others are transformed as complex lines. Lines are
//! gathered into scratch memory, transformed in double precision and put back, so any length and any dimension will do.

use bytemuck::Pod;
use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{Dims, MAX_RANK};

use crate::check::{Around, Shape, expect_dtype};
use crate::complex::{Complex, conjugate, elements};
use crate::dims::{dim_of, size_of};
use edgepack_compute::fourier::Transform;
use edgepack_compute::number::{Cast, Number};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&COMPLEX, &TO_COMPLEX, &TO_REAL];

static COMPLEX: Kernel = Kernel {
    name: "aten::_fft_c2c.out",
    schema: "(Tensor self, SymInt[] dim, int normalization, bool forward, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| match args.tensor(0)?.meta.dtype {
        ScalarType::COMPLEX_FLOAT => prepare_complex::<f32>(args),
        ScalarType::COMPLEX_DOUBLE => prepare_complex::<f64>(args),
        other => {
            Err(KernelError::argument(format!("`self` is {other}, the operator wants COMPLEX_FLOAT or COMPLEX_DOUBLE")))
        }
    },
};

static TO_COMPLEX: Kernel = Kernel {
    name: "aten::_fft_r2c.out",
    schema: "(Tensor self, int[] dim, int normalization, bool onesided, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| match args.tensor(0)?.meta.dtype {
        ScalarType::FLOAT => prepare::<f32>(args, ScalarType::COMPLEX_FLOAT, false),
        ScalarType::DOUBLE => prepare::<f64>(args, ScalarType::COMPLEX_DOUBLE, false),
        other => Err(KernelError::argument(format!("`self` is {other}, the operator wants FLOAT or DOUBLE"))),
    },
};
static TO_REAL: Kernel = Kernel {
    name: "aten::_fft_c2r.out",
    schema: "(Tensor self, int[] dim, int normalization, SymInt last_dim_size, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| match args.tensor(0)?.meta.dtype {
        ScalarType::COMPLEX_FLOAT => prepare::<f32>(args, ScalarType::FLOAT, true),
        ScalarType::COMPLEX_DOUBLE => prepare::<f64>(args, ScalarType::DOUBLE, true),
        other => {
            Err(KernelError::argument(format!("`self` is {other}, the operator wants COMPLEX_FLOAT or COMPLEX_DOUBLE")))
        }
    },
};

fn prepare<R: Number>(args: &Prepare<'_>, out_type: ScalarType, to_real: bool) -> Result<Box<dyn Run>, KernelError>
where
    f64: Cast<R>,
{
    expect_dtype("out", args.tensor(4)?.meta.dtype, out_type)?;
    scratch(args)?;
    let mut transforms = Transforms::default();
    if to_real {
        return Ok(Box::new(move |cx: &mut KernelContext<'_>| to_real_numbers::<R>(cx, &mut transforms)));
    }
    Ok(Box::new(move |cx: &mut KernelContext<'_>| to_complex_numbers::<R>(cx, &mut transforms)))
}

/// Asks for the working memory of a call.
fn scratch(args: &Prepare<'_>) -> Result<(), KernelError> {
    let (input, out) = (args.tensor(0)?, args.tensor(4)?);
    if !input.meta.is_contiguous() || !out.meta.is_contiguous() {
        return Err(KernelError::unsupported("`self` and `out` must be contiguous"));
    }
    // Scratch: the complex numbers of all lines, one line of any dimension, and what its transform needs.
    let count = input.meta.element_count().max(out.meta.element_count());
    let longest = |sizes: &[usize]| sizes.iter().copied().max().unwrap_or(1);
    let line = longest(input.meta.sizes).max(longest(out.meta.sizes));
    let numbers = count.saturating_add(line).saturating_add(Transform::most_scratch(line));
    args.scratch(numbers.saturating_mul(size_of_complex()));
    Ok(())
}

fn prepare_complex<R: Number>(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError>
where
    f64: Cast<R>,
{
    expect_dtype("out", args.tensor(4)?.meta.dtype, args.tensor(0)?.meta.dtype)?;
    scratch(args)?;
    let mut transforms = Transforms::default();
    Ok(Box::new(move |cx: &mut KernelContext<'_>| among_complex_numbers::<R>(cx, &mut transforms)))
}

const fn size_of_complex() -> usize {
    std::mem::size_of::<Complex<f64>>()
}

/// The transforms of an instruction, one for each of its dimensions, kept from call to call.
#[derive(Default)]
struct Transforms(Vec<Transform>);

impl Transforms {
    fn of(&mut self, length: usize) -> Result<&Transform, KernelError> {
        let known = self.0.iter().position(|transform| transform.length() == length);
        let at = match known {
            Some(at) => at,
            None => {
                // Lengths that change with every call must not pile up.
                self.0.truncate(MAX_RANK - 1);
                self.0.insert(0, Transform::new(length)?);
                0
            }
        };
        Ok(&self.0[at])
    }
}

/// Which dimensions are transformed, the last one where real and complex meet.
fn dimensions(cx: &KernelContext<'_>, rank: usize) -> Result<Dims, KernelError> {
    let mut dims = Dims::new();
    for dim in cx.ints(1)?.iter() {
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

/// What results are multiplied with, by the number of points of a transform.
fn factor(cx: &KernelContext<'_>, sizes: &[usize], dims: &[usize]) -> Result<f64, KernelError> {
    let points: f64 = dims.iter().map(|&dim| sizes[dim] as f64).product();
    match cx.int(2)? {
        0 => Ok(1.0),
        1 => Ok(1.0 / points.sqrt()),
        2 => Ok(1.0 / points),
        other => Err(KernelError::argument(format!("`normalization` is {other}, not 0, 1 or 2"))),
    }
}

/// The scratch memory of a call, split.
struct Work<'a> {
    all: &'a mut [Complex<f64>],
    line: &'a mut [Complex<f64>],
    inner: &'a mut [Complex<f64>],
}

impl<'a> Work<'a> {
    fn new(scratch: &'a mut [u8], count: usize, longest: usize) -> Result<Work<'a>, KernelError> {
        let small = || KernelError::unsupported(format!("{count} numbers are more than at load"));
        let numbers: &mut [Complex<f64>] = bytemuck::try_cast_slice_mut(scratch).map_err(|_| small())?;
        let (all, rest) = numbers.split_at_mut_checked(count).ok_or_else(small)?;
        let (line, inner) = rest.split_at_mut_checked(longest).ok_or_else(small)?;
        if inner.len() < Transform::most_scratch(longest) {
            return Err(small());
        }
        Ok(Work { all, line, inner })
    }

    /// Transforms the complex lines along a dimension of `all`, in place.
    fn along(&mut self, around: Around, transform: &Transform, backward: bool) {
        let Around { outer, size, inner } = around;
        let line = &mut self.line[..size];
        for at in 0..outer * inner {
            let start = at / inner * size * inner + at % inner;
            let places = self.all[start..].iter().step_by(inner);
            line.iter_mut().zip(places).for_each(|(x, &from)| *x = from);
            if backward {
                transform.run_backward(line, self.inner);
            } else {
                transform.run(line, self.inner);
            }
            let places = self.all[start..].iter_mut().step_by(inner);
            places.zip(&*line).for_each(|(to, &x)| *to = x);
        }
    }
}

fn to_complex_numbers<R: Number>(cx: &mut KernelContext<'_>, transforms: &mut Transforms) -> Result<(), KernelError>
where
    f64: Cast<R>,
{
    let meta = cx.meta(0)?;
    let input: Dims = Dims::from_slice(meta.sizes).unwrap_or_default();
    let dims = dimensions(cx, input.len())?;
    let last = dims[dims.len() - 1];
    if input[last] == 0 {
        return Err(KernelError::argument(format!("`self` is {}: no points to transform", Shape(&input))));
    }
    let strides: Dims = Dims::from_slice(meta.strides).unwrap_or_default();
    let factor = factor(cx, &input, &dims)?;
    let mut sizes = Dims::from_slice(&input).unwrap_or_default();
    if cx.bool(3)? {
        sizes[last] = input[last] / 2 + 1;
    }
    cx.resize(4, &sizes)?;
    let views = cx.views();
    let (data, mut out) = (views.tensor(0)?, views.out(4)?);
    let data = data.as_slice::<R>()?;
    let to: &mut [Complex<R>] = cast_mut(out.bytes())?;
    if data.is_empty() {
        return Ok(());
    }
    let longest = input.iter().copied().max().unwrap_or(1);
    let mut work = Work::new(views.scratch()?, data.len(), longest)?;
    work.all.iter_mut().zip(data).for_each(|(to, &x)| *to = [x.cast(), 0.0]);
    for &dim in dims.iter() {
        work.along(Around::new(&input, &strides, dim), transforms.of(input[dim])?, false);
    }
    // One side of the last dimension, or all of it.
    let Around { outer, size, inner } = Around::new(&input, &strides, last);
    for block in 0..outer {
        let from = &work.all[block * size * inner..][..sizes[last] * inner];
        let to = &mut to[block * sizes[last] * inner..][..sizes[last] * inner];
        to.iter_mut().zip(from).for_each(|(to, x)| *to = x.map(|part| (part * factor).cast()));
    }
    Ok(())
}

fn to_real_numbers<R: Number>(cx: &mut KernelContext<'_>, transforms: &mut Transforms) -> Result<(), KernelError>
where
    f64: Cast<R>,
{
    let meta = cx.meta(0)?;
    let input: Dims = Dims::from_slice(meta.sizes).unwrap_or_default();
    let strides: Dims = Dims::from_slice(meta.strides).unwrap_or_default();
    let dims = dimensions(cx, input.len())?;
    let last = dims[dims.len() - 1];
    let length = size_of("last_dim_size", cx.int(3)?)?;
    if length == 0 || input[last] != length / 2 + 1 {
        let have = input[last];
        return Err(KernelError::argument(format!("`last_dim_size` is {length}, `self` has {have} numbers there")));
    }
    let mut sizes = Dims::from_slice(&input).unwrap_or_default();
    sizes[last] = length;
    let factor = factor(cx, &sizes, &dims)?;
    cx.resize(4, &sizes)?;
    let views = cx.views();
    let (data, out) = (views.tensor(0)?, views.out(4)?);
    let data = elements::<R>(data.bytes())?;
    let to = out.into_slice::<R>()?;
    if data.is_empty() {
        return Ok(());
    }
    let longest = sizes.iter().copied().max().unwrap_or(1);
    let mut work = Work::new(views.scratch()?, data.len(), longest)?;
    work.all.iter_mut().zip(data).for_each(|(to, x)| *to = x.map(Cast::cast));
    for &dim in dims.iter().filter(|&&dim| dim != last) {
        work.along(Around::new(&input, &strides, dim), transforms.of(input[dim])?, true);
    }
    let transform = transforms.of(length)?;
    let Around { outer, size, inner } = Around::new(&input, &strides, last);
    for at in 0..outer * inner {
        let places = work.all[at / inner * size * inner + at % inner..].iter().step_by(inner);
        let line = &mut work.line[..length];
        line.iter_mut().zip(places).for_each(|(x, &from)| *x = from);
        // The ends of the half are their own mirror images, so they are real; the rest is mirrored.
        line[0][1] = 0.0;
        if length.is_multiple_of(2) {
            line[length / 2][1] = 0.0;
        }
        for k in length / 2 + 1..length {
            line[k] = conjugate(line[length - k]);
        }
        transform.run_backward(line, work.inner);
        let places = to[at / inner * length * inner + at % inner..].iter_mut().step_by(inner);
        places.zip(&*line).for_each(|(to, x)| *to = (x[0] * factor).cast());
    }
    Ok(())
}

fn among_complex_numbers<R: Number>(cx: &mut KernelContext<'_>, transforms: &mut Transforms) -> Result<(), KernelError>
where
    f64: Cast<R>,
{
    let meta = cx.meta(0)?;
    let sizes: Dims = Dims::from_slice(meta.sizes).unwrap_or_default();
    let strides: Dims = Dims::from_slice(meta.strides).unwrap_or_default();
    let dims = dimensions(cx, sizes.len())?;
    let (factor, backward) = (factor(cx, &sizes, &dims)?, !cx.bool(3)?);
    cx.resize(4, &sizes)?;
    let views = cx.views();
    let (data, mut out) = (views.tensor(0)?, views.out(4)?);
    let data = elements::<R>(data.bytes())?;
    let to: &mut [Complex<R>] = cast_mut(out.bytes())?;
    if data.is_empty() {
        return Ok(());
    }
    let longest = sizes.iter().copied().max().unwrap_or(1);
    let mut work = Work::new(views.scratch()?, data.len(), longest)?;
    work.all.iter_mut().zip(data).for_each(|(to, x)| *to = x.map(Cast::cast));
    for &dim in dims.iter() {
        work.along(Around::new(&sizes, &strides, dim), transforms.of(sizes[dim])?, backward);
    }
    to.iter_mut().zip(&*work.all).for_each(|(to, x)| *to = x.map(|part| (part * factor).cast()));
    Ok(())
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
