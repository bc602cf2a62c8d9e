//! Resizing images: `upsample_nearest2d` and `upsample_bilinear2d`.
//!
//! Positions are computed in `f32`, in `f64` for doubles, by PyTorch's formulas, so that rounding picks the same
//! neighbours.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::Scalar;
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;

use crate::check::{Class, Shape, expect_class, expect_same};
use crate::spatial::{images, resized};
use edgepack_compute::number::{Cast, Compute, Number};
use edgepack_compute::simd::wide;
use edgepack_compute::spatial::Images;

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&BILINEAR, &NEAREST];

static BILINEAR: Kernel = Kernel {
    name: "aten::upsample_bilinear2d.vec_out",
    schema: "(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &Form { align: Some(2), scales: 3, out: 4 }),
};
static NEAREST: Kernel = Kernel {
    name: "aten::upsample_nearest2d.vec_out",
    schema: "(Tensor input, SymInt[]? output_size, float[]? scale_factors, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &Form { align: None, scales: 2, out: 3 }),
};

/// Where the arguments stand; without `align_corners` the nearest element is taken.
struct Form {
    align: Option<usize>,
    scales: usize,
    out: usize,
}

/// Two neighbouring elements along a dimension, and how much the second counts.
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Between {
    first: u32,
    second: u32,
    weight: f64,
}

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    let (input, out) = (args.tensor(0)?, args.tensor(form.out)?);
    let dtype = input.meta.dtype;
    expect_class("input", dtype, Class::Real)?;
    expect_same(("input", dtype), ("out", out.meta.dtype))?;
    let longest = match (out.dynamic, out.meta.sizes.last()) {
        (false, Some(&width)) => width,
        _ => out.meta.element_count(),
    };
    args.scratch(longest.saturating_mul(size_of::<Between>()));
    with_element!(dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(form, cx))), else => {
        Err(KernelError::unsupported(dtype.to_string()))
    })
}

/// Height and width of the output, and the factors if they were given.
fn target(
    form: &Form,
    cx: &KernelContext<'_>,
    input: [usize; 2],
) -> Result<([usize; 2], [Option<f64>; 2]), KernelError> {
    let sizes = cx.ints_opt(1)?;
    let scales = if cx.is_none(form.scales) { None } else { Some(cx.doubles(form.scales)?) };
    match (sizes, scales) {
        (Some(sizes), None) if sizes.len() == 2 => {
            let size = |index| usize::try_from(sizes.at(index).unwrap_or(0)).ok().filter(|&size| size > 0);
            match (size(0), size(1)) {
                (Some(height), Some(width)) => Ok(([height, width], [None; 2])),
                _ => Err(KernelError::argument(format!("`output_size` is {:?}", sizes.iter().collect::<Vec<_>>()))),
            }
        }
        (None, Some(&[height, width])) => {
            let size = |size: usize, scale: f64| size as f64 * scale;
            let (tall, broad) = (size(input[0], height), size(input[1], width));
            if !(1.0..1e9).contains(&tall) || !(1.0..1e9).contains(&broad) {
                return Err(KernelError::argument(format!("`scale_factors` {height} and {width} give no image")));
            }
            Ok(([tall as usize, broad as usize], [Some(height), Some(width)]))
        }
        _ => Err(KernelError::argument("one of `output_size` and `scale_factors` must hold two numbers")),
    }
}

fn run<T: Number>(form: &Form, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(0)?;
    let input = images("input", &meta, 2)?;
    if meta.rank() != 4 || input.area() == 0 {
        return Err(KernelError::argument(format!("`input` is {}, the operator wants images", Shape(meta.sizes))));
    }
    let (sizes, scales) = target(form, cx, [input.sizes[1], input.sizes[2]])?;
    let align = form.align.map(|arg| cx.bool(arg)).transpose()?;
    let out_sizes = resized(&meta, 2, input.channels.0, [1, sizes[0], sizes[1]]);
    cx.resize(form.out, &out_sizes)?;
    let views = cx.views();
    let (data, out) = (views.tensor(0)?.as_slice::<T>()?, views.out(form.out)?);
    let to = images("out", &out.meta(), 2)?;
    let out = out.into_slice::<T>()?;
    if out.is_empty() {
        // No images or no channels, of any height.
        return Ok(());
    }
    let columns = bytemuck::try_cast_slice_mut::<u8, Between>(views.scratch()?).ok();
    let columns = columns
        .and_then(|all| all.get_mut(..sizes[1]))
        .ok_or_else(|| KernelError::unsupported(format!("a width of {} is more than at load", sizes[1])))?;
    let double = T::SCALAR_TYPE == ScalarType::DOUBLE;
    let line = |dim: usize| Line { input: input.sizes[dim + 1], out: sizes[dim], scale: scales[dim], align, double };
    for (x, column) in columns.iter_mut().enumerate() {
        *column = line(1).at(x);
    }
    for y in 0..sizes[0] {
        let row = line(0).at(y);
        wide(|| resize_row(data, &input, out, &to, y, row, columns, align.is_none()));
    }
    Ok(())
}

/// One dimension of a resize.
struct Line {
    input: usize,
    out: usize,
    scale: Option<f64>,
    /// `None`: nearest.
    align: Option<bool>,
    double: bool,
}

impl Line {
    fn at(&self, place: usize) -> Between {
        if self.double { self.position::<f64>(place) } else { self.position::<f32>(place) }
    }

    fn position<F: edgepack_compute::float::Float>(&self, place: usize) -> Between {
        let of = |size: usize| F::of(size as f64);
        let ratio = match (self.align, self.scale) {
            (Some(true), _) if self.out > 1 => of(self.input - 1).over(of(self.out - 1)),
            (Some(true), _) => F::ZERO,
            (_, Some(scale)) if scale > 0.0 => F::of(1.0 / scale),
            _ => of(self.input).over(of(self.out)),
        };
        let half = F::of(0.5);
        let last = self.input - 1;
        let position = match self.align {
            None | Some(true) => ratio.times(of(place)),
            Some(false) => {
                let position = ratio.times(of(place).plus(half)).minus(half);
                if position.less(F::ZERO) { F::ZERO } else { position }
            }
        };
        let first = (Cast::<i64>::cast(position) as usize).min(last);
        let weight = Cast::<f64>::cast(position.minus(of(first))).clamp(0.0, 1.0);
        Between { first: first as u32, second: (first + 1).min(last) as u32, weight }
    }
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "one row of both images")]
fn resize_row<T: Number>(
    data: &[T],
    input: &Images,
    out: &mut [T],
    to: &Images,
    y: usize,
    row: Between,
    columns: &[Between],
    nearest: bool,
) {
    let channels = input.channels.0;
    let (run, repeats) = if input.channels.1 == 1 && to.channels.1 == 1 { (channels, 1) } else { (1, channels) };
    for (n, c) in (0..input.batch.0).flat_map(|n| (0..repeats).map(move |c| (n, c))) {
        let from = n * input.batch.1 + c * input.channels.1;
        let upper = from + row.first as usize * input.strides[1];
        let lower = from + row.second as usize * input.strides[1];
        let start = n * to.batch.1 + c * to.channels.1 + y * to.strides[1];
        for (x, column) in columns.iter().enumerate() {
            let out = &mut out[start + x * to.strides[2]..][..run];
            let (left, right) = (column.first as usize * input.strides[2], column.second as usize * input.strides[2]);
            if nearest {
                out.copy_from_slice(&data[upper + left..][..run]);
                continue;
            }
            let corner = |at: usize| &data[at..][..run];
            let corners = [corner(upper + left), corner(upper + right), corner(lower + left), corner(lower + right)];
            mix(out, corners, row.weight, column.weight);
        }
    }
}

#[inline(always)]
fn mix<T: Number>(out: &mut [T], [a, b, c, d]: [&[T]; 4], down: f64, right: f64) {
    for (i, out) in out.iter_mut().enumerate() {
        if T::Compute::FLOATING {
            let weight = |x: f64| T::Compute::from_scalar(Scalar::Double(x));
            let (down, up, right, left) = (weight(down), weight(1.0 - down), weight(right), weight(1.0 - right));
            let line = |a: T, b: T| left.times(a.to_compute()).plus(right.times(b.to_compute()));
            *out = up.times(line(a[i], b[i])).plus(down.times(line(c[i], d[i]))).cast();
        } else {
            // Whole numbers are mixed in single precision, like the weights, and cut.
            let of = |x: T| Cast::<f32>::cast(x);
            let (down, right) = (down as f32, right as f32);
            let line = |a: T, b: T| (1.0 - right) * of(a) + right * of(b);
            let mixed = (1.0 - down) * line(a[i], b[i]) + down * line(c[i], d[i]);
            *out = T::from_scalar(Scalar::Double(mixed.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_executor::call::{Arg, OwnedTensor, call};

    fn resize(align: Option<bool>, sizes: Option<[i64; 2]>, scales: Option<[f64; 2]>, out: [usize; 2]) -> Vec<f32> {
        let mut args = vec![
            Arg::tensor(&[1, 1, 2, 3], &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0]),
            sizes.map_or(Arg::None, |sizes| Arg::Ints(sizes.to_vec())),
        ];
        args.extend(align.map(Arg::bool));
        args.push(scales.map_or(Arg::None, |scales| Arg::Doubles(scales.to_vec())));
        args.push(Arg::out(ScalarType::FLOAT, &[1, 1, out[0], out[1]]));
        let kernel = if align.is_some() { &BILINEAR } else { &NEAREST };
        call(kernel, &args).unwrap()[0].as_slice().unwrap()
    }

    #[test]
    fn nearest_takes_the_element_before() {
        let out = resize(None, Some([3, 4]), None, [3, 4]);
        assert_eq!(out, [0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0]);
        assert_eq!(resize(None, None, Some([1.0, 2.0]), [2, 6])[..6], [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]);
    }

    #[test]
    fn bilinear_follows_both_conventions() {
        let corners = resize(Some(true), Some([2, 5]), None, [2, 5]);
        assert_eq!(corners, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 3.5, 4.0, 4.5, 5.0]);
        let centers = resize(Some(false), Some([4, 3]), None, [4, 3]);
        assert_eq!(centers, [0.0, 1.0, 2.0, 0.75, 1.75, 2.75, 2.25, 3.25, 4.25, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn channels_last_gives_the_same() {
        let values: Vec<f32> = (0..2 * 3 * 4).map(|i| (i * i % 17) as f32).collect();
        let plain = OwnedTensor::new(&[1, 2, 3, 4], &values);
        let turned: Vec<f32> = (0..24).map(|i| values[i % 2 * 12 + i / 2]).collect();
        let last = OwnedTensor::new(&[1, 2, 3, 4], &turned).with_dim_order(&[0, 2, 3, 1]);
        let out = OwnedTensor::zeros(ScalarType::FLOAT, &[1, 2, 5, 7]);
        let run = |input: OwnedTensor, out: OwnedTensor| {
            let args = [Arg::Tensor(input), Arg::Ints(vec![5, 7]), Arg::bool(false), Arg::None, Arg::Tensor(out)];
            call(&BILINEAR, &args).unwrap()[0].as_slice::<f32>().unwrap()
        };
        let (a, b) = (run(plain, out.clone()), run(last, out.with_dim_order(&[0, 2, 3, 1])));
        for i in 0..70 {
            assert_eq!(a[i], b[i % 35 * 2 + i / 35]);
        }
    }
}
