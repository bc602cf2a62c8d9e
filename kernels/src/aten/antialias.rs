//! `_upsample_bilinear2d_aa`: resizing that lets every input pixel count, also where there are more of them.
//!
//! An output pixel is the weighted mean of the pixels under a triangle around its place; where the image shrinks the
//! triangle is as much wider. Height and width are independent: rows are mixed into one, then the columns of that.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::Scalar;
use edgepack_executor::with_element;

use crate::check::{Class, Shape, expect_class, expect_same};
use crate::spatial::{images, required, resized};
use edgepack_compute::number::{Cast, Compute, Number};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&BILINEAR];

static BILINEAR: Kernel = Kernel {
    name: "aten::_upsample_bilinear2d_aa.out",
    schema: "(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare,
};

/// Scales beyond this are no image's.
const MOST: f64 = 1e9;

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let input = args.tensor(0)?;
    let dtype = input.meta.dtype;
    expect_class("self", dtype, Class::Real)?;
    expect_same(("self", dtype), ("out", args.tensor(5)?.meta.dtype))?;
    let longest = match (input.dynamic, input.meta.sizes.last()) {
        (false, Some(&width)) => width,
        _ => input.meta.element_count(),
    };
    args.scratch(longest.saturating_mul(size_of::<f64>()));
    with_element!(dtype, T => Ok(Box::new(run::<T>) as Box<dyn Run>), else => {
        Err(KernelError::unsupported(dtype.to_string()))
    })
}

/// One dimension of a resize.
struct Line {
    input: usize,
    /// Input pixels per output pixel.
    scale: f64,
}

/// The input pixels under a triangle.
struct Triangle {
    first: usize,
    count: usize,
    /// The middle, and the inverse of half the width.
    center: f64,
    inverse: f64,
    /// What the weights sum to.
    total: f64,
}

impl Line {
    fn new(name: &str, input: usize, out: usize, align: bool, scale: Option<f64>) -> Result<Line, KernelError> {
        let scale = match scale {
            _ if align && out > 1 => (input - 1) as f64 / (out - 1) as f64,
            _ if align => 0.0,
            Some(scale) if scale > 0.0 => 1.0 / scale,
            _ => input as f64 / out as f64,
        };
        if scale > MOST {
            return Err(KernelError::argument(format!("`{name}` makes one pixel of {scale}")));
        }
        Ok(Line { input, scale })
    }

    fn at(&self, place: usize) -> Triangle {
        let reach = self.scale.max(1.0);
        let center = self.scale * (place as f64 + 0.5);
        // The pixel that holds the middle is always there, so no mean is of nothing.
        let first = (center - reach + 0.5).min(self.input.saturating_sub(1) as f64).max(0.0) as usize;
        let end = ((center + reach + 0.5).min(self.input as f64) as usize).max(first + 1);
        let mut triangle = Triangle { first, count: end - first, center, inverse: 1.0 / reach, total: 0.0 };
        triangle.total = (0..triangle.count).map(|index| triangle.height(index)).sum();
        triangle
    }
}

impl Triangle {
    fn height(&self, index: usize) -> f64 {
        let place = (self.first + index) as f64 + 0.5;
        (1.0 - ((place - self.center) * self.inverse).abs()).max(0.0)
    }

    /// The weights of the pixels; a place beyond the image takes its last pixel.
    fn weights(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        (0..self.count).map(|index| {
            let weight = if self.total > 0.0 { self.height(index) / self.total } else { 1.0 / self.count as f64 };
            (self.first + index, weight)
        })
    }
}

fn run<T: Number>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(0)?;
    let input = images("self", &meta, 2)?;
    if meta.rank() != 4 || input.area() == 0 {
        return Err(KernelError::argument(format!("`self` is {}, the operator wants images", Shape(meta.sizes))));
    }
    let [_, height, width] = required(cx, 1, "output_size", 2, 1, 1)?;
    let align = cx.bool(2)?;
    let rows = Line::new("scales_h", input.sizes[1], height, align, cx.double_opt(3)?)?;
    let columns = Line::new("scales_w", input.sizes[2], width, align, cx.double_opt(4)?)?;
    let sizes = resized(&meta, 2, input.channels.0, [1, height, width]);
    cx.resize(5, &sizes)?;
    let views = cx.views();
    let (data, out) = (views.tensor(0)?.as_slice::<T>()?, views.out(5)?);
    let to = images("out", &out.meta(), 2)?;
    let out = out.into_slice::<T>()?;
    let line = bytemuck::try_cast_slice_mut::<u8, f64>(views.scratch()?).ok();
    let line = line
        .and_then(|all| all.get_mut(..input.sizes[2]))
        .ok_or_else(|| KernelError::unsupported(format!("a width of {} is more than at load", input.sizes[2])))?;
    for plane in 0..input.batch.0 * input.channels.0 {
        let (n, channel) = (plane / input.channels.0, plane % input.channels.0);
        let from = n * input.batch.1 + channel * input.channels.1;
        let start = n * to.batch.1 + channel * to.channels.1;
        for y in 0..height {
            line.fill(0.0);
            for (row, weight) in rows.at(y).weights() {
                let row = data[from + row * input.strides[1]..].iter().step_by(input.strides[2].max(1));
                line.iter_mut().zip(row).for_each(|(sum, &x)| *sum += weight * Cast::<f64>::cast(x));
            }
            for x in 0..width {
                let sum: f64 = columns.at(x).weights().map(|(column, weight)| weight * line[column]).sum();
                let value = if T::Compute::FLOATING { sum } else { sum.round() };
                out[start + y * to.strides[1] + x * to.strides[2]] = T::from_scalar(Scalar::Double(value));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_executor::call::{Arg, call};
    use edgepack_format::scalar::ScalarType;

    fn resize(row: &[f32], out: usize, align: bool) -> Vec<f32> {
        let args = [
            Arg::tensor(&[1, 1, 1, row.len()], row),
            Arg::Ints(vec![1, out as i64]),
            Arg::bool(align),
            Arg::None,
            Arg::None,
            Arg::out(ScalarType::FLOAT, &[1, 1, 1, out]),
        ];
        call(&BILINEAR, &args).unwrap()[0].as_slice().unwrap()
    }

    #[test]
    fn growing_is_bilinear() {
        assert_eq!(resize(&[0.0, 4.0], 4, false), [0.0, 1.0, 3.0, 4.0]);
    }

    #[test]
    fn shrinking_takes_the_mean_under_a_triangle() {
        // Half: around 1.0 with reach 2, so pixel centres 0.5, 1.5 and 2.5 weigh 3, 3 and 1.
        let out = resize(&[7.0, 0.0, 0.0, 0.0, 0.0, 7.0], 3, false);
        assert!((out[0] - 3.0).abs() < 1e-6 && (out[2] - 3.0).abs() < 1e-6, "{out:?}");
        assert_eq!(resize(&[5.0; 9], 2, false), [5.0, 5.0]);
        assert!(resize(&[1.0, 2.0, 3.0], 1, true)[0].is_finite());
    }
}
