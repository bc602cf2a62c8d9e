//! Pooling against windows found by comparing coordinates.

use edgepack_executor::call::{Arg, OwnedTensor, call};
use edgepack_executor::kernel::Kernel;

use super::*;
use edgepack_compute::random::Random;

fn kernel(name: &str) -> &'static Kernel {
    KERNELS.iter().find(|kernel| kernel.name == name).unwrap()
}

/// Input places of a window, and how many places it has inside of input and padding.
fn window(place: usize, input: usize, [kernel, stride, padding, dilation]: [usize; 4]) -> (Vec<usize>, usize) {
    let taps = (0..kernel).map(|k| place * stride + k * dilation);
    let padded = taps.clone().filter(|&at| at < input + 2 * padding).count();
    (taps.filter(|at| (padding..input + padding).contains(at)).map(|at| at - padding).collect(), padded)
}

#[test]
fn images_agree_with_windows_found_by_coordinates() {
    let mut random = Random::new(41);
    for round in 0..60 {
        let (c, h, w) = (random.below(40) + 1, random.below(6) + 4, random.below(40) + 4);
        let axis: [[usize; 4]; 2] = std::array::from_fn(|_| {
            let kernel = random.below(3) + 1;
            [kernel, random.below(3) + 1, random.below(kernel / 2 + 1), 1]
        });
        let (last, ceil, count_padding) = (round % 2 == 1, round % 3 == 0, round % 4 < 2);
        let places: [usize; 2] = std::array::from_fn(|i| {
            let [kernel, stride, padding, dilation] = axis[i];
            Slide { input: [h, w][i], kernel, stride, padding, dilation }.places(ceil).unwrap()
        });
        let values = random.floats(c * h * w);
        let order: &[u8] = if last { &[0, 2, 3, 1] } else { &[0, 1, 2, 3] };
        let at = |c0: usize, y: usize, x: usize, h: usize, w: usize| {
            if last { (y * w + x) * c + c0 } else { (c0 * h + y) * w + x }
        };
        let input = Arg::Tensor(OwnedTensor::new(&[1, c, h, w], &values).with_dim_order(order));
        let out = |dtype| Arg::Tensor(OwnedTensor::zeros(dtype, &[1, c, places[0], places[1]]).with_dim_order(order));
        let list = |i: usize| Arg::Ints(vec![axis[0][i] as i64, axis[1][i] as i64]);
        let max = [
            input.clone(),
            list(0),
            list(1),
            list(2),
            Arg::Ints(vec![1]),
            Arg::bool(ceil),
            out(ScalarType::FLOAT),
            out(ScalarType::LONG),
        ];
        let max = call(kernel("aten::max_pool2d_with_indices.out"), &max).unwrap();
        let avg = [
            input,
            list(0),
            list(1),
            list(2),
            Arg::bool(ceil),
            Arg::bool(count_padding),
            Arg::None,
            out(ScalarType::FLOAT),
        ];
        let avg = call(kernel("aten::avg_pool2d.out"), &avg).unwrap();
        let (greatest, indices) = (max[0].as_slice::<f32>().unwrap(), max[1].as_slice::<i64>().unwrap());
        let average = avg[0].as_slice::<f32>().unwrap();
        for (channel, y, x) in
            (0..c).flat_map(|c| (0..places[0]).flat_map(move |y| (0..places[1]).map(move |x| (c, y, x))))
        {
            let ((rows, height), (columns, width)) = (window(y, h, axis[0]), window(x, w, axis[1]));
            let inside: Vec<(f32, i64)> = rows
                .iter()
                .flat_map(|&y| columns.iter().map(move |&x| (y, x)))
                .map(|(y, x)| (values[at(channel, y, x, h, w)], (y * w + x) as i64))
                .collect();
            let to = at(channel, y, x, places[0], places[1]);
            let best = inside.iter().map(|x| x.0).fold(f32::MIN, f32::max);
            assert_eq!(greatest[to], best);
            assert_eq!(indices[to], inside.iter().find(|x| x.0 == best).unwrap().1);
            let count = if count_padding { height * width } else { inside.len() };
            let want = inside.iter().map(|x| x.0).sum::<f32>() / count as f32;
            assert!((average[to] - want).abs() < 1e-5, "{} is not {want}", average[to]);
        }
    }
}

#[test]
fn adaptive_windows_divide_the_input() {
    let values: Vec<f32> = (0..7).map(|x| x as f32).collect();
    let args = [Arg::tensor(&[1, 1, 7], &values), Arg::Ints(vec![1, 3]), Arg::out(ScalarType::FLOAT, &[1, 1, 3])];
    let out = call(kernel("aten::_adaptive_avg_pool2d.out"), &args).unwrap();
    assert_eq!(out[0].as_slice::<f32>().unwrap(), [1.0, 3.0, 5.0]);
}

#[test]
fn adaptive_windows_have_a_greatest_element() {
    let outs = [Arg::out(ScalarType::INT, &[1, 1, 3]), Arg::out(ScalarType::LONG, &[1, 1, 3])];
    let mut args = vec![Arg::tensor(&[1, 1, 7], &[5i32, 1, 2, 9, 3, 4, 4]), Arg::Ints(vec![1, 3])];
    args.extend(outs);
    let outs = call(kernel("aten::adaptive_max_pool2d.out"), &args).unwrap();
    assert_eq!(outs[0].as_slice::<i32>().unwrap(), [5, 9, 4]);
    assert_eq!(outs[1].as_slice::<i64>().unwrap(), [0, 3, 5]);
}

#[test]
fn nan_is_greatest_and_three_dimensions_work() {
    let values = [1.0, f32::NAN, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    let ones = || Arg::Ints(vec![1]);
    let args = [
        Arg::tensor(&[1, 2, 2, 2], &values),
        Arg::Ints(vec![2, 1, 2]),
        Arg::Ints(vec![]),
        Arg::Ints(vec![0]),
        ones(),
        Arg::bool(false),
        Arg::out(ScalarType::FLOAT, &[1, 1, 2, 1]),
        Arg::out(ScalarType::LONG, &[1, 1, 2, 1]),
    ];
    let outs = call(kernel("aten::max_pool3d_with_indices.out"), &args).unwrap();
    let out = outs[0].as_slice::<f32>().unwrap();
    assert!(out[0].is_nan() && out[1] == 8.0);
    assert_eq!(outs[1].as_slice::<i64>().unwrap(), [1, 7]);
}

#[test]
fn impossible_windows_are_refused() {
    let call = |kernel_size: i64, padding: i64, divisor: Arg| {
        let ints = |x| Arg::Ints(vec![x]);
        let input = Arg::tensor(&[1, 2, 2], &[1.0f32; 4]);
        let out = Arg::out(ScalarType::FLOAT, &[1, 1, 1]);
        let args = [input, ints(kernel_size), ints(1), ints(padding), Arg::bool(false), Arg::bool(true), divisor, out];
        call(kernel("aten::avg_pool2d.out"), &args)
    };
    assert_eq!(call(2, 0, Arg::int(8)).unwrap()[0].as_slice::<f32>().unwrap(), [0.5]);
    let message = |result: Result<Vec<OwnedTensor>, KernelError>| result.unwrap_err().message.into_owned();
    assert_eq!(message(call(2, 2, Arg::None)), "`padding` is 2, `kernel_size` is 2: at most half of it is possible");
    assert_eq!(
        message(call(3, 0, Arg::None)),
        "`kernel_size` 3 with dilation 1 does not fit into 2 elements padded by 0"
    );
    assert_eq!(message(call(2, 0, Arg::int(0))), "`divisor_override` is 0");
    assert_eq!(message(call(0, 0, Arg::None)), "`kernel_size` holds 0, the least possible is 1");
}
