//! Normalisation against its formulas.

use edgepack_executor::call::{Arg, OwnedTensor, call};
use edgepack_executor::kernel::Kernel;
use edgepack_format::scalar::ScalarType;

use super::KERNELS;
use edgepack_compute::random::Random;

fn kernel(name: &str) -> &'static Kernel {
    KERNELS.iter().find(|kernel| kernel.name == name).unwrap()
}

fn floats(tensor: &OwnedTensor) -> Vec<f32> {
    tensor.as_slice().unwrap()
}

fn moments(x: &[f32]) -> (f64, f64) {
    let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / x.len() as f64;
    let variance = x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / x.len() as f64;
    (mean, 1.0 / (variance + 1e-5).sqrt())
}

fn close(have: f32, want: f64) {
    assert!((f64::from(have) - want).abs() < 1e-4, "{have} is not {want}");
}

#[test]
fn layers_are_normalised_over_their_last_dimensions() {
    let mut random = Random::new(31);
    for (weight, bias) in [(true, true), (true, false), (false, true), (false, false)] {
        let (rows, width) = (random.below(4) + 1, random.below(60) + 2);
        let (x, w, b) = (random.floats(rows * width), random.floats(width), random.floats(width));
        let tensor = |there: bool, values: &[f32]| if there { Arg::tensor(&[width], values) } else { Arg::None };
        let out = |width| Arg::out(ScalarType::FLOAT, &[rows, width]);
        let args = [
            Arg::tensor(&[rows, width], &x),
            Arg::Ints(vec![width as i64]),
            tensor(weight, &w),
            tensor(bias, &b),
            Arg::double(1e-5),
            out(width),
            out(1),
            out(1),
        ];
        let outs = call(kernel("aten::native_layer_norm.out"), &args).unwrap();
        for (row, x) in x.chunks(width).enumerate() {
            let (mean, scale) = moments(x);
            close(floats(&outs[1])[row], mean);
            close(floats(&outs[2])[row], scale);
            for (i, &x) in x.iter().enumerate() {
                let y = (f64::from(x) - mean) * scale * if weight { w[i].into() } else { 1.0 };
                close(floats(&outs[0])[row * width + i], y + if bias { b[i].into() } else { 0.0 });
            }
        }
    }
}

#[test]
fn layers_must_have_the_normalised_shape() {
    let out = |width| Arg::out(ScalarType::FLOAT, &[2, width]);
    let input = Arg::tensor(&[2, 3], &[0.0f32; 6]);
    let args = [input, Arg::Ints(vec![4]), Arg::None, Arg::None, Arg::double(1e-5), out(3), out(1), out(1)];
    let error = call(kernel("aten::native_layer_norm.out"), &args).unwrap_err();
    assert_eq!(error.message, "`normalized_shape` is [4], `input` is 2x3: the last sizes differ");
}

#[test]
fn groups_are_normalised_together() {
    let mut random = Random::new(32);
    let (n, c, area, group) = (2, 6, 5, 3);
    let (x, w, b) = (random.floats(n * c * area), random.floats(c), random.floats(c));
    let args = [
        Arg::tensor(&[n, c, area], &x),
        Arg::tensor(&[c], &w),
        Arg::tensor(&[c], &b),
        Arg::int(n as i64),
        Arg::int(c as i64),
        Arg::int(area as i64),
        Arg::int(group as i64),
        Arg::double(1e-5),
        Arg::out(ScalarType::FLOAT, &[n, c, area]),
        Arg::out(ScalarType::FLOAT, &[n, group]),
        Arg::out(ScalarType::FLOAT, &[n, group]),
    ];
    let outs = call(kernel("aten::native_group_norm.out"), &args).unwrap();
    let width = c / group * area;
    for (row, values) in x.chunks(width).enumerate() {
        let (mean, scale) = moments(values);
        close(floats(&outs[1])[row], mean);
        for (i, &x) in values.iter().enumerate() {
            let channel = row % group * (c / group) + i / area;
            let want = (f64::from(x) - mean) * scale * f64::from(w[channel]) + f64::from(b[channel]);
            close(floats(&outs[0])[row * width + i], want);
        }
    }
}

#[test]
fn groups_of_images_are_normalised_in_both_layouts() {
    let mut random = Random::new(35);
    let (n, c, h, w, group) = (2, 12, 7, 5, 3);
    let (x, factor, offset) = (random.floats(n * c * h * w), random.floats(c), random.floats(c));
    let run = |order: [u8; 4]| {
        // Elements in memory, so that both are the same images.
        let place = |at: usize| at / (c * h * w) * c * h * w + at % (h * w) * c + at / (h * w) % c;
        let mut stored = x.clone();
        if order[1] != 1 {
            (0..x.len()).for_each(|at| stored[place(at)] = x[at]);
        }
        let args = [
            Arg::Tensor(OwnedTensor::new(&[n, c, h, w], &stored).with_dim_order(&order)),
            Arg::tensor(&[c], &factor),
            Arg::tensor(&[c], &offset),
            Arg::int(n as i64),
            Arg::int(c as i64),
            Arg::int((h * w) as i64),
            Arg::int(group as i64),
            Arg::double(1e-5),
            Arg::Tensor(OwnedTensor::zeros(ScalarType::FLOAT, &[n, c, h, w]).with_dim_order(&order)),
            Arg::out(ScalarType::FLOAT, &[n, group]),
            Arg::out(ScalarType::FLOAT, &[n, group]),
        ];
        let outs = call(kernel("aten::native_group_norm.out"), &args).unwrap();
        let out = floats(&outs[0]);
        let out: Vec<f32> = (0..x.len()).map(|at| out[if order[1] == 1 { at } else { place(at) }]).collect();
        [out, floats(&outs[1]), floats(&outs[2])]
    };
    for (first, last) in run([0, 1, 2, 3]).iter().zip(run([0, 2, 3, 1])) {
        first.iter().zip(last).for_each(|(first, last)| close(last, f64::from(*first)));
    }
}

#[test]
fn channels_are_normalised_in_both_layouts() {
    let mut random = Random::new(33);
    let (n, c, h, w) = (2, 3, 2, 4);
    let (x, factor, offset) = (random.floats(n * c * h * w), random.floats(c), random.floats(c));
    let (mean, var) = (random.floats(c), [0.5f32, 1.5, 0.25]);
    for (order, channel_of) in [([0, 1, 2, 3], 0), ([0, 2, 3, 1], 1)] {
        let args = [
            Arg::Tensor(OwnedTensor::new(&[n, c, h, w], &x).with_dim_order(&order)),
            Arg::tensor(&[c], &factor),
            Arg::tensor(&[c], &offset),
            Arg::tensor(&[c], &mean),
            Arg::tensor(&[c], &var),
            Arg::double(0.1),
            Arg::double(1e-5),
            Arg::Tensor(OwnedTensor::zeros(ScalarType::FLOAT, &[n, c, h, w]).with_dim_order(&order)),
            Arg::out(ScalarType::FLOAT, &[0]),
            Arg::out(ScalarType::FLOAT, &[0]),
        ];
        let out = floats(&call(kernel("aten::_native_batch_norm_legit_no_training.out"), &args).unwrap()[0]);
        for (at, &x) in x.iter().enumerate() {
            let c = if channel_of == 1 { at % c } else { at / (h * w) % c };
            let scale = 1.0 / (f64::from(var[c]) + 1e-5).sqrt();
            close(out[at], (f64::from(x) - f64::from(mean[c])) * scale * f64::from(factor[c]) + f64::from(offset[c]));
        }
    }
}

#[test]
fn training_takes_statistics_from_the_input() {
    let mut random = Random::new(34);
    let x = random.floats(2 * 3 * 5);
    let out = |sizes: &[usize]| Arg::out(ScalarType::FLOAT, sizes);
    let args = [
        Arg::tensor(&[2, 3, 5], &x),
        Arg::None,
        Arg::None,
        Arg::bool(true),
        Arg::double(0.1),
        Arg::double(1e-5),
        out(&[2, 3, 5]),
        out(&[3]),
        out(&[3]),
    ];
    let outs = call(kernel("aten::_native_batch_norm_legit.no_stats_out"), &args).unwrap();
    for channel in 0..3 {
        let own: Vec<usize> = (0..30).filter(|at| at / 5 % 3 == channel).collect();
        let (mean, scale) = moments(&own.iter().map(|&at| x[at]).collect::<Vec<_>>());
        close(floats(&outs[1])[channel], mean);
        close(floats(&outs[2])[channel], scale);
        own.iter().for_each(|&at| close(floats(&outs[0])[at], (f64::from(x[at]) - mean) * scale));
    }
}
