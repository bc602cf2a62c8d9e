//! The gradients of a convolution, by definition: of its input, its weight and its bias.
//!
//! The gradient of the input is a convolution of the other kind with the same weight: transposed for a forward one, and
//! forward for a transposed one.

use edgepack_compute::conv::{Geometry, Operands, direct, gradient};
use edgepack_compute::number::Number;
use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::tensor::Dims;

use super::{Arguments, measure};
use crate::check::{Class, Shape, expect_class, expect_same, with_float};
use crate::schema::{kernel, position};
use crate::spatial::images;

/// The gradients of a convolution.
pub static BACKWARD: Kernel = kernel(NAME, Alias::Disjoint, prepare);

const NAME: &str = "aten::convolution_backward.out";
const GRAD: usize = position(NAME, "grad_output");
/// Position of the argument that says of each output whether it is wanted.
const MASK: usize = position(NAME, "output_mask");
/// Positions of the gradients of input, weight and bias.
const OUTS: [usize; 3] = [position(NAME, "out0"), position(NAME, "out1"), position(NAME, "out2")];
const ARGUMENTS: Arguments = Arguments::of(NAME, None);

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let dtype = args.tensor(GRAD)?.meta.dtype;
    expect_class("grad_output", dtype, Class::Float)?;
    expect_same(("grad_output", dtype), ("input", args.tensor(ARGUMENTS.input)?.meta.dtype))?;
    expect_same(("grad_output", dtype), ("weight", args.tensor(ARGUMENTS.weight)?.meta.dtype))?;
    with_float!(dtype, T => Ok(Box::new(run::<T>) as Box<dyn Run>))
}

fn wanted(cx: &KernelContext<'_>) -> Result<[bool; 3], KernelError> {
    let mask = cx.bools(MASK)?;
    mask.try_into()
        .map_err(|_| KernelError::argument(format!("`output_mask` has {} items, the operator wants 3", mask.len())))
}

fn run<T: Number>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (mut geometry, sizes) = measure(cx, &ARGUMENTS)?;
    let grad = cx.meta(GRAD)?;
    if *grad.sizes != *sizes {
        return Err(KernelError::argument(format!(
            "`grad_output` is {}, the convolution gives {}",
            Shape(grad.sizes),
            Shape(&sizes)
        )));
    }
    let rank = cx.meta(ARGUMENTS.weight)?.rank() - 2;
    geometry.out = images("grad_output", &grad, rank)?;
    let wanted = wanted(cx)?;
    for (index, like) in [ARGUMENTS.input, ARGUMENTS.weight].into_iter().enumerate().filter(|&(index, _)| wanted[index])
    {
        let sizes: Dims = Dims::from_slice(cx.meta(like)?.sizes).unwrap_or_default();
        cx.resize(OUTS[index], &sizes)?;
    }
    if wanted[2] {
        cx.resize(OUTS[2], &[geometry.out.channels.0])?;
    }
    let views = cx.views();
    let grad = views.tensor(GRAD)?.as_slice::<T>()?;
    let input = views.tensor(ARGUMENTS.input)?.as_slice::<T>()?;
    let weight = views.tensor(ARGUMENTS.weight)?.as_slice::<T>()?;
    if wanted[0] {
        let out = views.out(OUTS[0])?;
        let to = images("out0", &out.meta(), rank)?;
        let other = Geometry { input: geometry.out, out: to, transposed: !geometry.transposed, ..geometry };
        direct::convolve(&other, &Operands { input: grad, weight, bias: None }, out.into_slice::<T>()?);
    }
    if wanted[1] {
        let out = views.out(OUTS[1])?;
        let to = images("out1", &out.meta(), rank)?;
        gradient::of_weight(&geometry, &to, input, grad, out.into_slice::<T>()?);
    }
    if wanted[2] {
        gradient::of_bias(&geometry.out, grad, views.out(OUTS[2])?.into_slice::<T>()?);
    }
    Ok(())
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
