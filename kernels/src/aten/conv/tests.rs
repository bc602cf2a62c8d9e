//! Every algorithm against the definition, written once more with nothing but indices.

use super::*;
use edgepack_compute::half::Narrow;
use edgepack_compute::random::{Random, rounding};
use edgepack_executor::call::{Arg, OwnedTensor, call};
use edgepack_format::tensor::write_strides;

struct Case {
    input: Vec<usize>,
    weight: Vec<usize>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    transposed: bool,
    extra: Vec<i64>,
    groups: usize,
}

impl Case {
    fn out(&self) -> Vec<usize> {
        let channels = if self.transposed { self.weight[1] * self.groups } else { self.weight[0] };
        let mut out = vec![self.input[0], channels];
        for i in 0..self.stride.len() {
            let (size, kernel) = (self.input[i + 2] as i64, self.weight[i + 2] as i64);
            let reach = self.dilation[i] * (kernel - 1) + 1;
            out.push(if self.transposed {
                (size - 1) * self.stride[i] - 2 * self.padding[i] + reach + self.extra[i]
            } else {
                (size + 2 * self.padding[i] - reach) / self.stride[i] + 1
            } as usize);
        }
        out
    }

    /// Scatters every product of an input element and a tap to where it belongs, in f64, contiguous.
    fn naive(&self, input: &[f32], weight: &[f32], bias: &[f32]) -> Vec<f64> {
        let out = self.out();
        let rank = self.stride.len();
        let mut result = vec![0.0; out.iter().product()];
        let channel_size: usize = out[2..].iter().product();
        result.iter_mut().enumerate().for_each(|(i, x)| *x = f64::from(bias[i / channel_size % out[1]]));
        let group_in = self.input[1] / self.groups;
        for (at, &x) in input.iter().enumerate() {
            let place = unravel(at, &self.input);
            for (tap, &w) in weight.iter().enumerate() {
                let tap = unravel(tap, &self.weight);
                let group = place[1] / group_in;
                let out_channel = if self.transposed {
                    if tap[0] != place[1] {
                        continue;
                    }
                    group * self.weight[1] + tap[1]
                } else {
                    if tap[1] != place[1] % group_in || tap[0] / (self.weight[0] / self.groups) != group {
                        continue;
                    }
                    tap[0]
                };
                let mut to = vec![place[0] as i64, out_channel as i64];
                for i in 0..rank {
                    let (from, tap) = (place[i + 2] as i64, tap[i + 2] as i64 * self.dilation[i]);
                    to.push(if self.transposed {
                        from * self.stride[i] + tap - self.padding[i]
                    } else {
                        let start = from + self.padding[i] - tap;
                        if start % self.stride[i] == 0 { start / self.stride[i] } else { -1 }
                    });
                }
                if to.iter().zip(&out).all(|(&to, &size)| (0..size as i64).contains(&to)) {
                    let at = to.iter().zip(&out).fold(0, |at, (&to, &size)| at * size + to as usize);
                    result[at] += f64::from(x) * f64::from(w);
                }
            }
        }
        result
    }

    fn run<T: Narrow>(
        &self,
        input: &[f32],
        weight: &[f32],
        bias: &[f32],
        orders: [&[u8]; 3],
        constant: bool,
    ) -> Vec<f32> {
        let tensor = |sizes: &[usize], values: &[f32], order: &[u8]| {
            OwnedTensor::new(sizes, &narrow::<T>(&reorder(values, sizes, order))).with_dim_order(order)
        };
        let out = self.out();
        let kernel = tensor(&self.weight, weight, orders[1]);
        let args = [
            Arg::Tensor(tensor(&self.input, input, orders[0])),
            Arg::Tensor(if constant { kernel.constant() } else { kernel }),
            if bias.iter().all(|&x| x == 0.0) { Arg::None } else { Arg::tensor(&[bias.len()], &narrow::<T>(bias)) },
            Arg::Ints(self.stride.clone()),
            Arg::Ints(self.padding.clone()),
            Arg::Ints(self.dilation.clone()),
            Arg::bool(self.transposed),
            Arg::Ints(self.extra.clone()),
            Arg::int(self.groups as i64),
            Arg::Tensor(OwnedTensor::zeros(T::SCALAR_TYPE, &out).with_dim_order(orders[2])),
        ];
        let result = widen(&call(&CONVOLUTION, &args).unwrap()[0].as_slice::<T>().unwrap());
        let mut strides = vec![0; out.len()];
        write_strides(&out, orders[2], &mut strides);
        (0..result.len())
            .map(|at| result[unravel(at, &out).iter().zip(&strides).map(|(i, s)| i * s).sum::<usize>()])
            .collect()
    }

    fn check(&self, seed: u64, with_bias: bool, orders: &[[&[u8]; 3]]) {
        self.check_as::<f32>(1e-4, seed, with_bias, orders);
        self.check_as::<half::f16>(1e-3, seed, with_bias, orders);
    }

    /// Checks one element type; the error is that of rounding the result.
    fn check_as<T: Narrow>(&self, error: f64, seed: u64, with_bias: bool, orders: &[[&[u8]; 3]]) {
        let mut random = Random::new(seed);
        let mut draw = |count: usize| widen(&narrow::<T>(&random.floats(count)));
        let input = draw(self.input.iter().product());
        let weight = draw(self.weight.iter().product());
        let channels = self.out()[1];
        let bias = if with_bias { draw(channels) } else { vec![0.0; channels] };
        let want = self.naive(&input, &weight, &bias);
        let [input_sizes, weight_sizes, bias_sizes] =
            [&input, &weight, &bias].map(|all| all.iter().map(|x| x.abs()).collect::<Vec<f32>>());
        // What the terms of each sum amount to, and how many there are at most.
        let terms = self.naive(&input_sizes, &weight_sizes, &bias_sizes);
        let taps: usize = self.weight[2..].iter().product();
        let count = taps * if self.transposed { self.weight[0] / self.groups } else { self.weight[1] };
        for &orders in orders {
            let have = self.run::<T>(&input, &weight, &bias, orders, seed.is_multiple_of(2));
            for ((have, want), terms) in have.iter().zip(&want).zip(&terms) {
                let (input, weight) = (&self.input, &self.weight);
                let most = match T::SCALAR_TYPE {
                    ScalarType::FLOAT => rounding(count + 2) * terms,
                    _ => error * want.abs().max(1.0),
                };
                let near = (f64::from(*have) - want).abs() <= most;
                assert!(near, "{input:?} * {weight:?} of {}: {have} is not {want}", T::SCALAR_TYPE);
            }
        }
    }
}

fn narrow<T: Narrow>(wide: &[f32]) -> Vec<T> {
    let mut narrow = vec![T::from_scalar(edgepack_executor::tensor::Scalar::Int(0)); wide.len()];
    T::narrow(wide, &mut narrow);
    narrow
}

fn widen<T: Narrow>(narrow: &[T]) -> Vec<f32> {
    let mut wide = vec![0.0; narrow.len()];
    T::widen(narrow, &mut wide);
    wide
}

fn unravel(mut at: usize, sizes: &[usize]) -> Vec<usize> {
    let mut place = vec![0; sizes.len()];
    for (slot, &size) in place.iter_mut().zip(sizes).rev() {
        *slot = at % size;
        at /= size;
    }
    place
}

fn reorder(values: &[f32], sizes: &[usize], order: &[u8]) -> Vec<f32> {
    let mut strides = vec![0; sizes.len()];
    write_strides(sizes, order, &mut strides);
    let mut result = vec![0.0; values.len()];
    for (at, &x) in values.iter().enumerate() {
        result[unravel(at, sizes).iter().zip(&strides).map(|(i, s)| i * s).sum::<usize>()] = x;
    }
    result
}

const FIRST: &[u8] = &[0, 1, 2, 3];
const LAST: &[u8] = &[0, 2, 3, 1];

#[test]
fn images_in_every_layout_agree_with_the_definition() {
    let mut random = Random::new(11);
    for round in 0..30 {
        // Dense, grouped, depthwise with one and two outputs per channel.
        let (groups, each, multiple) = [(1, 5, 7), (2, 4, 6), (9, 1, 1), (36, 1, 1), (6, 1, 2)][round % 5];
        let kernel = [random.below(3) + 1, random.below(3) + 1];
        let mut pair = |least: usize, range: usize| {
            vec![(random.below(range) + least) as i64, (random.below(range) + least) as i64]
        };
        let case = Case {
            stride: pair(1, 2),
            padding: pair(0, 3),
            dilation: pair(1, 2),
            extra: vec![0, 0],
            transposed: false,
            groups,
            input: vec![round % 2 + 1, groups * each, random.below(5) + 6, random.below(6) + 6],
            weight: vec![groups * multiple, each, kernel[0], kernel[1]],
        };
        let mixed = [[LAST, FIRST, LAST], [LAST, FIRST, FIRST], [FIRST, FIRST, LAST]];
        let orders = [[FIRST; 3], [LAST; 3], mixed[0], mixed[1], mixed[2]];
        case.check(round as u64, round % 3 > 0, &orders);
    }
}

#[test]
fn pointwise_products_agree_with_the_definition() {
    for (round, groups) in [1, 1, 2].into_iter().enumerate() {
        let case = Case {
            input: vec![2, 8, 9, 11],
            weight: vec![12, 8 / groups, 1, 1],
            stride: vec![1, 1],
            padding: vec![0, 0],
            dilation: vec![1, 1],
            extra: vec![0, 0],
            transposed: false,
            groups,
        };
        case.check(round as u64, round > 0, &[[FIRST; 3], [LAST; 3], [LAST, FIRST, FIRST]]);
    }
}

#[test]
fn rows_of_depthwise_channels_agree_with_the_definition() {
    let mut random = Random::new(13);
    for round in 0..16 {
        let channels = random.below(3) + 2;
        let mut pair = |least: i64, range: usize| vec![1, random.below(range) as i64 + least];
        let (stride, padding, dilation) = (pair(1, 3), pair(0, 4), pair(1, 2));
        let case = Case {
            input: vec![1, channels, 9, random.below(60) + 12],
            weight: vec![channels, 1, random.below(4) + 1, random.below(4) + 1],
            stride,
            padding,
            dilation,
            extra: vec![0, 0],
            transposed: false,
            groups: channels,
        };
        case.check(round, round % 2 == 0, &[[FIRST; 3]]);
    }
}

#[test]
fn transposed_products_agree_with_the_definition() {
    let mut random = Random::new(14);
    for round in 0..12 {
        let groups = [1, 1, 2, 4][round as usize % 4];
        let stride = vec![random.below(3) as i64 + 1, random.below(3) as i64 + 1];
        let case = Case {
            input: vec![2, 8, random.below(8) + 5, random.below(8) + 5],
            weight: vec![8, random.below(7) + 1, random.below(3) + 1, random.below(3) + 1],
            extra: stride.iter().map(|&stride| random.below(stride as usize) as i64).collect(),
            stride,
            padding: vec![random.below(2) as i64, random.below(2) as i64],
            dilation: vec![1, random.below(2) as i64 + 1],
            transposed: true,
            groups,
        };
        case.check(round, round % 2 == 0, &[[FIRST; 3], [LAST, FIRST, LAST], [LAST; 3], [FIRST, FIRST, LAST]]);
    }
    let case = Case {
        input: vec![1, 6, 4, 5, 6],
        weight: vec![6, 5, 2, 3, 2],
        stride: vec![2, 1, 2],
        padding: vec![1, 1, 0],
        dilation: vec![1, 2, 1],
        extra: vec![1, 0, 1],
        transposed: true,
        groups: 1,
    };
    case.check(3, true, &[[&[0, 1, 2, 3, 4]; 3]]);
}

#[test]
fn one_and_three_dimensions_and_transposed_agree_with_the_definition() {
    let mut random = Random::new(12);
    for round in 0..40 {
        let rank = round % 3 + 1;
        let transposed = round / 3 % 2 == 1;
        let groups = [1, 2][round / 6 % 2];
        let mut numbers = |least: usize, range: usize| -> Vec<i64> {
            (0..rank).map(|_| (random.below(range) + least) as i64).collect()
        };
        let (stride, padding, dilation) = (numbers(1, 3), numbers(0, 2), numbers(1, 2));
        let (kernel, sizes) = (numbers(1, 3), numbers(4, 4));
        let extra: Vec<i64> = stride.iter().map(|&s| if transposed { s - 1 } else { 0 }).collect();
        let mut case = Case {
            input: vec![2, 4],
            weight: if transposed { vec![4, 3] } else { vec![6, 4 / groups] },
            stride,
            padding,
            dilation,
            transposed,
            extra,
            groups,
        };
        case.input.extend(sizes.iter().map(|&x| x as usize));
        case.weight.extend(kernel.iter().map(|&x| x as usize));
        let order: Vec<u8> = (0..rank as u8 + 2).collect();
        case.check(round as u64, true, &[[&order; 3]]);
    }
}

#[test]
fn other_element_types_take_the_same_loops() {
    let args = |dtype: ScalarType, input: Arg, weight: Arg| {
        let ints = |value| Arg::Ints(vec![value]);
        [
            input,
            weight,
            Arg::None,
            ints(1),
            ints(0),
            ints(1),
            Arg::bool(false),
            ints(0),
            Arg::int(1),
            Arg::out(dtype, &[1, 1, 2]),
        ]
    };
    let (input, weight) = (Arg::tensor(&[1, 1, 3], &[100i8, 2, 3]), Arg::tensor(&[1, 1, 2], &[3i8, 1]));
    let out = call(&CONVOLUTION, &args(ScalarType::CHAR, input, weight)).unwrap();
    assert_eq!(out[0].as_slice::<i8>().unwrap(), [46, 9]);
    let half = |x: f32| half::f16::from_f32(x);
    let input = Arg::tensor(&[1, 1, 3], &[half(0.5), half(2.0), half(3.0)]);
    let out =
        call(&CONVOLUTION, &args(ScalarType::HALF, input, Arg::tensor(&[1, 1, 2], &[half(2.0), half(1.0)]))).unwrap();
    assert_eq!(out[0].as_slice::<half::f16>().unwrap(), [half(3.0), half(7.0)]);
}

#[test]
fn refusals_name_both_sides() {
    let ints = |value| Arg::Ints(vec![value]);
    let args = [
        Arg::tensor(&[1, 3, 4], &[0.0f32; 12]),
        Arg::tensor(&[2, 2, 3], &[0.0f32; 12]),
        Arg::None,
        ints(1),
        ints(0),
        ints(1),
        Arg::bool(false),
        ints(0),
        Arg::int(1),
        Arg::out(ScalarType::FLOAT, &[1, 2, 2]),
    ];
    let error = call(&CONVOLUTION, &args).unwrap_err();
    assert_eq!(error.message, "`input` is 1x3x4, `weight` is 2x2x3: channels differ, with 1 groups");
}
