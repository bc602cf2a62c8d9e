//! The gradients of a convolution, by definition: of its input, its weight and its bias.
//!
//! The gradient of the input is a convolution of the other kind with the same weight: transposed for a forward one, and
//! the other way round. That of the weight meets every output element with the input elements its taps met.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::tensor::Dims;

use super::direct;
use super::{Arguments, Geometry, measure};
use crate::check::{Class, Shape, expect_class, expect_same, with_float};
use crate::spatial::Images;
use edgepack_compute::number::{Cast, Compute, Number};

/// `aten::convolution_backward.out`.
pub static BACKWARD: Kernel = Kernel {
    name: "aten::convolution_backward.out",
    schema: "(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    alias: Alias::Disjoint,
    prepare,
};

/// The outputs, and which argument says whether each is wanted.
const OUTS: [usize; 3] = [11, 12, 13];
const MASK: usize = 10;

static ARGUMENTS: Arguments = Arguments { input: 1, weight: 2, bias: None, stride: 4 };

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let dtype = args.tensor(0)?.meta.dtype;
    expect_class("grad_output", dtype, Class::Float)?;
    expect_same(("grad_output", dtype), ("input", args.tensor(1)?.meta.dtype))?;
    expect_same(("grad_output", dtype), ("weight", args.tensor(2)?.meta.dtype))?;
    with_float!(dtype, T => Ok(Box::new(run::<T>) as Box<dyn Run>))
}

fn wanted(cx: &KernelContext<'_>) -> Result<[bool; 3], KernelError> {
    let mask = cx.bools(MASK)?;
    mask.try_into()
        .map_err(|_| KernelError::argument(format!("`output_mask` has {} items, the operator wants 3", mask.len())))
}

fn run<T: Number>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (mut geometry, sizes) = measure(cx, &ARGUMENTS)?;
    let grad = cx.meta(0)?;
    if *grad.sizes != *sizes {
        return Err(KernelError::argument(format!(
            "`grad_output` is {}, the convolution gives {}",
            Shape(grad.sizes),
            Shape(&sizes)
        )));
    }
    let rank = cx.meta(2)?.rank() - 2;
    geometry.out = Images::new("grad_output", &grad, rank)?;
    let wanted = wanted(cx)?;
    for (arg, like) in [(OUTS[0], 1), (OUTS[1], 2)] {
        if wanted[arg - OUTS[0]] {
            let sizes: Dims = Dims::from_slice(cx.meta(like)?.sizes).unwrap_or_default();
            cx.resize(arg, &sizes)?;
        }
    }
    if wanted[2] {
        cx.resize(OUTS[2], &[geometry.out.channels.0])?;
    }
    let views = cx.views();
    let [grad, input, weight] =
        [views.tensor(0)?.as_slice::<T>()?, views.tensor(1)?.as_slice::<T>()?, views.tensor(2)?.as_slice::<T>()?];
    if wanted[0] {
        let out = views.out(OUTS[0])?;
        let to = Images::new("out0", &out.meta(), rank)?;
        let other = Geometry { input: geometry.out, out: to, transposed: !geometry.transposed, ..geometry };
        direct::convolve(&other, grad, weight, None, out.into_slice::<T>()?);
    }
    if wanted[1] {
        let out = views.out(OUTS[1])?;
        let to = Images::new("out1", &out.meta(), rank)?;
        of_weight(&geometry, &to, input, grad, out.into_slice::<T>()?);
    }
    if wanted[2] {
        of_bias(&geometry.out, grad, views.out(OUTS[2])?.into_slice::<T>()?);
    }
    Ok(())
}

/// The gradient of the weight: by element, the sum over all places the tap takes.
fn of_weight<T: Number>(geometry: &Geometry, to: &Images, input: &[T], grad: &[T], out: &mut [T]) {
    let Geometry { groups, transposed, .. } = geometry;
    // The window slides over one of the two images; the first dimension of the weight is that of the other's channels.
    let (still, slid) = if *transposed { (&geometry.input, &geometry.out) } else { (&geometry.out, &geometry.input) };
    let (by_place, by_tap) = if *transposed { (input, grad) } else { (grad, input) };
    let group = to.batch.0 / groups;
    let taps = to.area();
    for channel in 0..to.batch.0 {
        for inner in 0..to.channels.0 {
            let reached = channel / group.max(1) * to.channels.0 + inner;
            for flat in 0..taps {
                let tap = [flat / (to.sizes[1] * to.sizes[2]), flat / to.sizes[2] % to.sizes[1], flat % to.sizes[2]];
                let mut sum = T::Compute::ZERO;
                for n in 0..still.batch.0 {
                    let from = n * still.batch.1 + channel * still.channels.1;
                    let at = n * slid.batch.1 + reached * slid.channels.1;
                    meetings(geometry, still, tap, |place, element| {
                        let offset = |images: &Images, index: [usize; 3]| -> usize {
                            index.iter().zip(&images.strides).map(|(index, stride)| index * stride).sum()
                        };
                        let x = by_place[from + offset(still, place)].to_compute();
                        sum = sum.plus(x.times(by_tap[at + offset(slid, element)].to_compute()));
                    });
                }
                let offset = tap[0] * to.strides[0] + tap[1] * to.strides[1] + tap[2] * to.strides[2];
                out[channel * to.batch.1 + inner * to.channels.1 + offset] = sum.cast();
            }
        }
    }
}

/// Calls `f` with every place of the window where a tap falls into the image it slides over, and the element there.
fn meetings(geometry: &Geometry, still: &Images, tap: [usize; 3], mut f: impl FnMut([usize; 3], [usize; 3])) {
    let along = |dim: usize| {
        let slide = geometry.slides[dim];
        (0..still.sizes[dim]).filter_map(move |place| {
            let element = (place * slide.stride + tap[dim] * slide.dilation).checked_sub(slide.padding)?;
            (element < slide.input).then_some((place, element))
        })
    };
    for (z, from_z) in along(0) {
        for (y, from_y) in along(1) {
            for (x, from_x) in along(2) {
                f([z, y, x], [from_z, from_y, from_x]);
            }
        }
    }
}

/// The gradient of the bias: by channel, the sum of the output's.
fn of_bias<T: Number>(images: &Images, grad: &[T], out: &mut [T]) {
    for (channel, out) in out.iter_mut().enumerate() {
        let mut sum = T::Compute::ZERO;
        for n in 0..images.batch.0 {
            let start = n * images.batch.1 + channel * images.channels.1;
            for z in 0..images.sizes[0] {
                for y in 0..images.sizes[1] {
                    let row = start + z * images.strides[0] + y * images.strides[1];
                    for x in 0..images.sizes[2] {
                        sum = sum.plus(grad[row + x * images.strides[2]].to_compute());
                    }
                }
            }
        }
        *out = sum.cast();
    }
}

#[cfg(test)]
mod tests {
    use super::super::CONVOLUTION;
    use super::*;
    use edgepack_compute::random::Random;
    use edgepack_executor::call::{Arg, call};
    use edgepack_format::scalar::ScalarType;

    /// A convolution of doubles and the shapes around it.
    struct Case {
        input: Vec<usize>,
        weight: Vec<usize>,
        out: Vec<usize>,
        /// Stride, padding, dilation, output padding.
        numbers: [i64; 4],
        transposed: bool,
        groups: i64,
    }

    impl Case {
        fn settings(&self) -> Vec<Arg> {
            let [stride, padding, dilation, extra] = self.numbers.map(|number| Arg::Ints(vec![number]));
            vec![stride, padding, dilation, Arg::bool(self.transposed), extra, Arg::int(self.groups)]
        }

        fn forward(&self, input: &[f64], weight: &[f64]) -> Vec<f64> {
            let mut args = vec![Arg::tensor(&self.input, input), Arg::tensor(&self.weight, weight), Arg::None];
            args.extend(self.settings());
            args.push(Arg::out(ScalarType::DOUBLE, &self.out));
            call(&CONVOLUTION, &args).unwrap()[0].as_slice().unwrap()
        }

        fn backward(&self, grad: &[f64], input: &[f64], weight: &[f64]) -> [Vec<f64>; 3] {
            let mut args = vec![
                Arg::tensor(&self.out, grad),
                Arg::tensor(&self.input, input),
                Arg::tensor(&self.weight, weight),
                Arg::None,
            ];
            args.extend(self.settings());
            args.push(Arg::Bools(vec![true; 3]));
            args.extend([&self.input, &self.weight].map(|sizes| Arg::out(ScalarType::DOUBLE, sizes)));
            args.push(Arg::out(ScalarType::DOUBLE, &[self.out[1]]));
            let outs = call(&BACKWARD, &args).unwrap();
            std::array::from_fn(|index| outs[index].as_slice().unwrap())
        }
    }

    /// A convolution is linear in input and weight, so its gradients are differences of results.
    #[test]
    fn gradients_are_differences_of_results() {
        let mut random = Random::new(8);
        let cases = [
            Case {
                input: vec![2, 4, 5, 6],
                weight: vec![6, 2, 3, 2],
                out: vec![2, 6, 3, 4],
                numbers: [2, 1, 1, 0],
                transposed: false,
                groups: 2,
            },
            Case {
                input: vec![1, 2, 7],
                weight: vec![3, 2, 3],
                out: vec![1, 3, 5],
                numbers: [1, 1, 2, 0],
                transposed: false,
                groups: 1,
            },
            Case {
                input: vec![2, 4, 3, 3],
                weight: vec![4, 3, 2, 3],
                out: vec![2, 6, 5, 6],
                numbers: [2, 1, 1, 1],
                transposed: true,
                groups: 2,
            },
            Case {
                input: vec![1, 1, 3, 3, 3],
                weight: vec![2, 1, 2, 2, 2],
                out: vec![1, 2, 2, 2, 2],
                numbers: [1, 0, 1, 0],
                transposed: false,
                groups: 1,
            },
        ];
        for case in &cases {
            let mut draw = |sizes: &[usize]| random.values::<f64>(sizes.iter().product());
            let (input, weight, grad) = (draw(&case.input), draw(&case.weight), draw(&case.out));
            let [of_input, of_weight, of_bias] = case.backward(&grad, &input, &weight);
            let dot = |result: Vec<f64>| -> f64 { result.iter().zip(&grad).map(|(a, b)| a * b).sum() };
            for (at, &have) in of_input.iter().enumerate() {
                let mut one = vec![0.0; input.len()];
                one[at] = 1.0;
                assert_eq!(have, dot(case.forward(&one, &weight)));
            }
            for (at, &have) in of_weight.iter().enumerate() {
                let mut one = vec![0.0; weight.len()];
                one[at] = 1.0;
                assert_eq!(have, dot(case.forward(&input, &one)));
            }
            let area: usize = case.out[2..].iter().product();
            for (channel, &have) in of_bias.iter().enumerate() {
                let planes = grad.chunks(area).skip(channel).step_by(case.out[1]);
                assert_eq!(have, planes.flatten().sum::<f64>());
            }
        }
    }

    #[test]
    fn what_is_not_wanted_is_left_alone() {
        let args = [
            Arg::tensor(&[1, 1, 1], &[2.0f32]),
            Arg::tensor(&[1, 1, 1], &[3.0f32]),
            Arg::tensor(&[1, 1, 1], &[5.0f32]),
            Arg::None,
            Arg::Ints(vec![1]),
            Arg::Ints(vec![0]),
            Arg::Ints(vec![1]),
            Arg::bool(false),
            Arg::Ints(vec![0]),
            Arg::int(1),
            Arg::Bools(vec![false, true, false]),
            Arg::tensor(&[1], &[7.0f32]),
            Arg::out(ScalarType::FLOAT, &[1, 1, 1]),
            Arg::tensor(&[1], &[8.0f32]),
        ];
        let outs = call(&BACKWARD, &args).unwrap();
        let all: Vec<f32> = outs.iter().flat_map(|out| out.as_slice::<f32>().unwrap()).collect();
        assert_eq!(all, [7.0, 6.0, 8.0]);
    }
}
