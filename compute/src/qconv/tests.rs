//! Every path of this machine against the formulas, written out over weights as they are stored, to the bit.

mod lines;

use std::sync::Arc;

use super::*;
use crate::random::Random;
use crate::simd::bytes::BytesPath;
use crate::threads::Threads;

/// Paths of this machine; says which ones were not run.
fn paths() -> Vec<BytesPath> {
    let all = BytesPath::all();
    let found: Vec<_> = all.into_iter().flatten().collect();
    println!("run: {found:?}, of {} paths", all.len());
    assert!(found.contains(&BytesPath::Plain));
    found
}

/// Numbers at the ends of what bytes hold more often than others.
fn bytes(random: &mut Random, count: usize) -> Vec<i8> {
    let mut one = || match random.below(4) {
        0 => [-128, 127][random.below(2)],
        _ => random.below(256) as u8 as i8,
    };
    (0..count).map(|_| one()).collect()
}

struct Case {
    windows: Windows,
    sizes: [usize; 4],
    outputs: usize,
    images: Vec<i8>,
    weights: Vec<i8>,
    bias: Option<Vec<i32>>,
    factors: Vec<f32>,
    zeros: [i8; 2],
    limits: [i8; 2],
}

impl Case {
    /// `depthwise`: each channel has outputs of its own, and weights are stored tap by tap.
    fn new(random: &mut Random, windows: Windows, sizes: [usize; 4], outputs: usize, depthwise: bool) -> Case {
        let inner = if depthwise { windows.taps() } else { windows.taps() * sizes[3] / windows.groups };
        let factor = 1.0 / (inner.max(1) as f32).sqrt() / 100.0;
        let factors = if random.below(4) == 0 { 1 } else { outputs };
        Case {
            windows,
            sizes,
            outputs,
            images: bytes(random, sizes.iter().product()),
            weights: bytes(random, outputs * inner),
            bias: (random.below(3) > 0).then(|| (0..outputs).map(|_| random.below(60_000) as i32 - 30_000).collect()),
            // Some of them make ties.
            factors: (0..factors)
                .map(|_| [factor * (random.float().abs() + 0.1), 0.0078125][random.below(2)])
                .collect(),
            zeros: [0, 1].map(|_| [-128, 127, 0, 5][random.below(4)]),
            limits: [[-128, 127], [-20, 100], [7, 7]][random.below(3)],
        }
    }

    fn requantise(&self) -> Requantise<'_> {
        let [input_zero, output_zero] = self.zeros;
        Requantise { factors: &self.factors, input_zero, output_zero, output_limits: self.limits }
    }

    fn packed(&self, path: BytesPath, sizes: [usize; 2]) -> Arc<Packed> {
        Arc::new(Packed::on(path, &self.weights, sizes, &self.windows).unwrap())
    }

    fn results(&self) -> usize {
        let [oh, ow] = self.windows.counts([self.sizes[1], self.sizes[2]]);
        self.sizes[0] * oh * ow * self.outputs
    }

    /// The sum of products for a result: `weight` is where that of a tap and a channel is, of which each output sees `inputs`
    /// from the one on that `first` says.
    fn sum(
        &self,
        result: usize,
        zero: i32,
        inputs: usize,
        first: usize,
        weight: impl Fn(usize, usize) -> usize,
    ) -> i32 {
        let ([_, h, w, c], windows) = (self.sizes, &self.windows);
        let [oh, ow] = windows.counts([h, w]);
        let pixel = result / self.outputs;
        let (image, oy, ox) = (pixel / (oh * ow), pixel / ow % oh, pixel % ow);
        let mut sum = 0i32;
        for (ky, kx) in (0..windows.kernel[0]).flat_map(|ky| (0..windows.kernel[1]).map(move |kx| (ky, kx))) {
            let (Some(y), Some(x)) = (windows.place(0, oy, ky, h), windows.place(1, ox, kx, w)) else { continue };
            for input in 0..inputs {
                let seen = i32::from(self.images[((image * h + y) * w + x) * c + first + input]);
                let weight = i32::from(self.weights[weight(ky * windows.kernel[1] + kx, input)]);
                sum = sum.wrapping_add((seen - zero) * weight);
            }
        }
        sum
    }

    fn convolved(&self, result: usize, zero: i32) -> i32 {
        let inputs = self.sizes[3] / self.windows.groups;
        let channel = result % self.outputs;
        let group = channel / (self.outputs / self.windows.groups);
        let inner = self.windows.taps() * inputs;
        self.sum(result, zero, inputs, group * inputs, |tap, input| channel * inner + tap * inputs + input)
    }

    fn quantised(&self, sum: i32, channel: usize) -> i8 {
        let sum = sum.wrapping_add(self.bias.as_ref().map_or(0, |bias| bias[channel]));
        let factor = self.factors[channel % self.factors.len()];
        let [low, high] = self.limits.map(|limit| f32::from(limit) - f32::from(self.zeros[1]));
        let y = (sum as f32 * factor).max(low).min(high);
        (y.round_ties_even() as i32 + i32::from(self.zeros[1])) as i8
    }
}

/// Runs on one thread and on three, and compares.
fn agree<T: PartialEq + Copy + std::fmt::Debug + Send>(
    want: &[T],
    before: T,
    name: &str,
    run: impl Fn(&mut [T]) -> Result<(), Error> + Sync,
) {
    for threads in [1, 3] {
        let mut have = vec![before; want.len()];
        Threads::new(threads).unwrap().run(|| run(&mut have)).unwrap();
        let different = have.iter().zip(want).position(|(have, want)| have != want);
        if let Some(at) = different {
            panic!("{name}, {threads} threads: result {at} is {:?}, not {:?}", have[at], want[at]);
        }
    }
}

fn windows(kernel: [usize; 2], stride: [usize; 2], dilation: [usize; 2], padding: [[usize; 2]; 2]) -> Windows {
    Windows { kernel, stride, dilation, padding, groups: 1 }
}

/// Windows of many kinds.
fn kinds() -> Vec<Windows> {
    vec![
        Windows::ONE,
        windows([1, 1], [2, 2], [1, 1], [[0; 2]; 2]),
        windows([3, 3], [1, 1], [1, 1], [[1; 2]; 2]),
        windows([3, 3], [2, 2], [1, 1], [[0, 1], [0, 1]]),
        windows([5, 3], [1, 2], [1, 2], [[2; 2], [2, 1]]),
        windows([1, 9], [1, 2], [1, 1], [[0; 2], [4; 2]]),
        windows([2, 2], [1, 1], [3, 1], [[5, 4], [0, 3]]),
    ]
}

#[test]
fn convolutions() {
    let mut random = Random::new(5);
    let (paths, mut count) = (paths(), 0);
    let channels = [(1, 1), (3, 16), (4, 17), (7, 33), (16, 50), (24, 64), (40, 65), (130, 130), (9, 200)];
    for kind in kinds() {
        for (inputs, outputs) in channels {
            for groups in [1, 2] {
                let (inputs, outputs) = (inputs * groups, outputs * groups);
                let sizes = [[1, 9, 8], [2, 5, 13], [1, 1, 1], [1, 30, 2]][random.below(4)];
                let windows = Windows { groups, ..kind };
                let [n, h, w] = sizes;
                let case = Case::new(&mut random, windows, [n, h, w, inputs], outputs, false);
                let zero = i32::from(case.zeros[0]);
                let want: Vec<i8> =
                    (0..case.results()).map(|at| case.quantised(case.convolved(at, zero), at % outputs)).collect();
                for &path in &paths {
                    let rows = [outputs, windows.taps() * inputs / groups];
                    let bias = case.bias.as_deref();
                    let made =
                        Convolution::on(path, case.packed(path, rows), windows, bias, case.requantise()).unwrap();
                    let name = format!("{path:?}, {windows:?}, {:?} to {outputs}", case.sizes);
                    agree(&want, 99, &name, |out| made.run(&case.images, case.sizes, out));
                    count += 1;
                }
            }
        }
    }
    println!("{count} convolutions");
}

/// Groups of few channels, in numbers that tiles have no multiple of, and images and windows of which bands have some columns
/// alone, or which are too large for them.
#[test]
fn groups_and_large_images() {
    let mut random = Random::new(9);
    let (paths, mut count) = (paths(), 0);
    let three = |stride| windows([3, 3], [stride; 2], [1; 2], [[1; 2]; 2]);
    let apart = windows([3, 2], [1, 2], [2, 3], [[2; 2], [3, 1]]);
    // Groups, inputs and outputs of each.
    let groups = [(32, 4, 4), (7, 8, 8), (13, 4, 4), (1, 1, 24), (5, 1, 3), (3, 12, 12), (9, 3, 5), (2, 16, 32)];
    let mut cases = Vec::new();
    for (groups, inputs, outputs) in groups {
        for kind in [three(1), three(2), apart, Windows::ONE] {
            cases.push((Windows { groups, ..kind }, [2, 7, 9, groups * inputs], groups * outputs));
        }
    }
    let large = windows([5, 3], [2, 1], [1; 2], [[2; 2], [1; 2]]);
    let huge = windows([7, 9], [3, 2], [1; 2], [[4; 2]; 2]);
    cases.push((large, [1, 6, 40, 300], 20));
    cases.push((three(1), [1, 4, 90, 260], 8));
    cases.push((huge, [1, 9, 21, 700], 5));
    cases.push((Windows { dilation: [2, 3], ..huge }, [1, 25, 30, 203], 3));
    for (windows, sizes, outputs) in cases {
        let case = Case::new(&mut random, windows, sizes, outputs, false);
        let zero = i32::from(case.zeros[0]);
        let want: Vec<i8> =
            (0..case.results()).map(|at| case.quantised(case.convolved(at, zero), at % outputs)).collect();
        for &path in &paths {
            let rows = [outputs, windows.taps() * sizes[3] / windows.groups];
            let (packed, bias) = (case.packed(path, rows), case.bias.as_deref());
            let made = Convolution::on(path, packed, windows, bias, case.requantise()).unwrap();
            let name = format!("{path:?}, {windows:?}, {sizes:?} to {outputs}");
            agree(&want, 99, &name, |out| made.run(&case.images, sizes, out));
            count += 1;
        }
    }
    println!("{count} convolutions");
}

/// Rows longer than what is gathered at a time, one and many of them, and enough work to be split among threads.
#[test]
fn products() {
    let mut random = Random::new(6);
    for (rows, inputs, outputs) in [
        (1, 2304, 300),
        (2, 2305, 40),
        (1, 4700, 30),
        (2, 256, 40),
        (2, 257, 40),
        (1, 1024, 64),
        (5, 1025, 70),
        (7, 3000, 20),
        (49, 320, 200),
        (200, 500, 24),
        (300, 96, 40),
        (530, 64, 80),
        (0, 8, 8),
        (3, 0, 9),
    ] {
        let case = Case::new(&mut random, Windows::ONE, [1, 1, rows, inputs], outputs, false);
        let zero = i32::from(case.zeros[0]);
        let mut want: Vec<i8> = Vec::new();
        want.extend((0..rows * outputs).map(|at| case.quantised(case.convolved(at, zero), at % outputs)));
        // No image has no pixels, but its window counts as one.
        if rows == 0 {
            continue;
        }
        for path in paths() {
            let bias = case.bias.as_deref();
            let packed = case.packed(path, [outputs, inputs]);
            let made = Convolution::on(path, packed, Windows::ONE, bias, case.requantise()).unwrap();
            let name = format!("{path:?}, {rows} rows of {inputs} to {outputs}");
            // Rows are a line of pixels, or images of one each.
            for sizes in [case.sizes, [rows, 1, 1, inputs]] {
                agree(&want, 99, &name, |out| made.run(&case.images, sizes, out));
            }
        }
    }
}

#[test]
fn rows_with_scales_of_their_own() {
    let mut random = Random::new(10);
    for (rows, inputs, outputs) in [(1, 64, 20), (53, 48, 70), (30, 13, 16), (7, 3000, 40)] {
        let case = Case::new(&mut random, Windows::ONE, [rows, 1, 1, inputs], outputs, false);
        let images: Vec<[f32; 2]> =
            (0..rows).map(|row| [random.float().abs() + 0.01, (row % 256) as f32 - 128.0]).collect();
        let weights: Vec<f32> = (0..outputs).map(|_| random.float().abs() + 0.01).collect();
        let limits = [f32::NEG_INFINITY, f32::INFINITY];
        let one = |at: usize| {
            let [scale, zero] = images[at / outputs];
            (case.convolved(at, zero as i32) as f32 * scale).mul_add(weights[at % outputs], 0.0).to_bits()
        };
        let want: Vec<u32> = (0..case.results()).map(one).collect();
        for path in paths() {
            let scales = DynamicScales { weights: &weights, bias: None, limits };
            let packed = case.packed(path, [outputs, inputs]);
            let made = DynamicConvolution::on(path, packed, Windows::ONE, scales).unwrap();
            agree(&want, 0, &format!("{path:?}, {rows} rows of {inputs}"), |out| {
                made.run(&case.images, case.sizes, &images, bytemuck::cast_slice_mut(out))
            });
        }
    }
}

#[test]
fn convolutions_of_images_with_scales_of_their_own() {
    let mut random = Random::new(7);
    for kind in kinds() {
        for (inputs, outputs) in [(3, 20), (16, 64), (33, 7)] {
            let case = Case::new(&mut random, kind, [3, 6, 5, inputs], outputs, false);
            let images: Vec<[f32; 2]> =
                [-128.0, 127.0, 3.0].iter().map(|zero| [random.float().abs() + 0.01, *zero]).collect();
            let weights: Vec<f32> = (0..outputs).map(|_| random.float().abs() + 0.01).collect();
            let bias = random.floats(outputs);
            for (bias, limits) in [(None, [f32::NEG_INFINITY, f32::INFINITY]), (Some(&bias[..]), [-900.0, 1000.0])] {
                let one = |at: usize| {
                    let [scale, zero] = images[at / (case.results() / 3)];
                    let (channel, sum) = (at % outputs, case.convolved(at, zero as i32));
                    let y = (sum as f32 * scale).mul_add(weights[channel], bias.map_or(0.0, |bias| bias[channel]));
                    y.max(limits[0]).min(limits[1]).to_bits()
                };
                let want: Vec<u32> = (0..case.results()).map(one).collect();
                for path in paths() {
                    let scales = DynamicScales { weights: &weights, bias, limits };
                    let rows = [outputs, kind.taps() * inputs];
                    let made = DynamicConvolution::on(path, case.packed(path, rows), kind, scales).unwrap();
                    agree(&want, 0, &format!("{path:?}, {kind:?}"), |out| {
                        made.run(&case.images, case.sizes, &images, bytemuck::cast_slice_mut(out))
                    });
                }
            }
        }
    }
}

#[test]
fn depthwise_convolutions() {
    let mut random = Random::new(8);
    let (paths, mut count) = (paths(), 0);
    let many = windows([9, 9], [1, 1], [1, 1], [[4; 2]; 2]);
    let five = windows([5, 5], [1, 1], [2, 1], [[3; 2], [2; 2]]);
    let apart = windows([5, 5], [2, 2], [1, 1], [[1, 2]; 2]);
    // Images of one column, and of one line, of which threads compute pieces.
    let tall = windows([15, 1], [1, 1], [1, 1], [[7, 8], [0; 2]]);
    let strided = windows([9, 1], [2, 1], [2, 1], [[3, 5], [0; 2]]);
    let long = windows([1, 15], [1, 1], [1, 1], [[0; 2], [7, 8]]);
    for kind in kinds().into_iter().chain([many, five, apart, tall, strided, long]) {
        for (channels, multiplier) in
            [(1, 1), (3, 1), (8, 1), (16, 1), (20, 1), (24, 1), (33, 1), (48, 1), (64, 1), (72, 1), (200, 1), (5, 3)]
        {
            let [n, h, w] = match kind.kernel {
                [down, 1] if down > 5 => [2, 150, 1],
                [1, right] if right > 5 => [2, 1, 150],
                _ => [[1, 9, 8], [2, 5, 13], [1, 1, 1], [1, 30, 2], [1, 3, 40], [2, 70, 1], [1, 4, 0], [1, 2, 700]]
                    [random.below(8)],
            };
            let outputs = channels * multiplier;
            let windows = Windows { groups: channels, ..kind };
            let case = Case::new(&mut random, windows, [n, h, w, channels], outputs, true);
            let one = |at: usize| {
                let channel = at % outputs;
                let zero = i32::from(case.zeros[0]);
                let sum = case.sum(at, zero, 1, channel / multiplier, |tap, _| tap * outputs + channel);
                case.quantised(sum, channel)
            };
            let want: Vec<i8> = (0..case.results()).map(one).collect();
            for &path in &paths {
                let bias = case.bias.as_deref();
                let name = format!("{path:?}, {windows:?}, {:?} to {outputs}", case.sizes);
                count += 1;
                if multiplier > 1 {
                    // Groups of one input, whose weights are stored output by output.
                    let weights: Vec<i8> = (0..case.weights.len())
                        .map(|at| case.weights[at % windows.taps() * outputs + at / windows.taps()])
                        .collect();
                    let packed = Packed::on(path, &weights, [outputs, windows.taps()], &windows).unwrap();
                    let made = Convolution::on(path, packed.into(), windows, bias, case.requantise()).unwrap();
                    agree(&want, 99, &name, |out| made.run(&case.images, case.sizes, out));
                    continue;
                }
                let packed = Arc::new(PackedTaps::on(path, &case.weights, channels, &windows).unwrap());
                let made = Depthwise::on(path, packed, windows, bias, case.requantise()).unwrap();
                agree(&want, 99, &name, |out| made.run(&case.images, case.sizes, out));
            }
        }
    }
    println!("{count} convolutions");
}

#[test]
fn what_does_not_fit_is_refused() {
    let requantise = Requantise { factors: &[1.0], input_zero: 0, output_zero: 0, output_limits: [-128, 127] };
    let packed = || Packed::new(&[0; 8], [2, 4], &Windows::ONE).unwrap();
    let new = |windows| Convolution::new(packed(), windows, None, requantise);
    assert!(new(Windows { groups: 2, ..Windows::ONE }).is_err());
    assert!(new(Windows { stride: [0, 1], ..Windows::ONE }).is_err());
    let enormous = new(Windows { stride: [usize::MAX; 2], ..Windows::ONE }).unwrap();
    assert!(enormous.run(&[0; 4], [1, 1, 1, 4], &mut [0; 2]).is_ok());
    let product = new(Windows::ONE).unwrap();
    assert!(product.run(&[0; 5], [1, 1, 1, 5], &mut [0; 2]).is_err());
    assert!(product.run(&[0; 4], [1, 1, 1, 4], &mut [0; 3]).is_err());
    assert!(product.run(&[0; 4], [1, 1, 1, 4], &mut [0; 2]).is_ok());
    let limits = Requantise { output_limits: [3, 2], ..requantise };
    assert!(Convolution::new(packed(), Windows::ONE, None, limits).is_err());
    let three = windows([3, 3], [1; 2], [1; 2], [[1; 2]; 2]);
    let taps = |stride| {
        let windows = Windows { stride: [1, stride], ..three };
        Arc::new(PackedTaps::new(&[0; 18], 2, &windows).unwrap())
    };
    let new = |taps| Depthwise::new(taps, three, None, requantise);
    assert!(new(taps(1)).unwrap().run(&[0; 12], [1, 2, 2, 3], &mut [0; 12]).is_err());
    assert!(new(taps(1)).unwrap().run(&[0; 4], [1, 2, 2, 1], &mut [0; 8]).is_err());
    assert!(new(taps(2)).is_err() && PackedTaps::new(&[0; 17], 2, &three).is_err());
}

#[test]
fn packed_weights_come_back_from_their_bytes() {
    let grouped = |groups| Windows { groups, ..Windows::ONE };
    let rows = windows([2, 3], [1; 2], [1; 2], [[1; 2]; 2]);
    let apart = Windows { dilation: [1, 2], ..rows };
    for (sizes, windows) in [
        ([70, 19], Windows::ONE),
        ([6, 5], grouped(2)),
        ([15, 8], grouped(5)),
        ([40, 3], grouped(20)),
        ([9, 18], rows),
        ([9, 18], apart),
        ([0, 3], Windows::ONE),
        ([3, 0], Windows::ONE),
    ] {
        let weights: Vec<i8> = (0..sizes[0] * sizes[1]).map(|at| at as i8).collect();
        let packed = Packed::new(&weights, sizes, &windows).unwrap();
        assert_eq!(Packed::packed_len(sizes, &windows), Some(packed.packed().len()));
        let mut fill = |to: &mut [u8]| {
            to.copy_from_slice(packed.packed());
            true
        };
        let again = Packed::of_packed(sizes, &windows, &mut fill).unwrap().unwrap();
        assert_eq!(again.packed(), packed.packed());
        assert!(Packed::of_packed(sizes, &windows, &mut |_| false).unwrap().is_none());
    }
    let kinds = [([3, 3], 70), ([5, 5], 64), ([3, 3], 6), ([8, 10], 6), ([1, 3], 0)];
    for (kernel, channels) in kinds {
        let windows = windows(kernel, [1; 2], [1; 2], [[0; 2]; 2]);
        let weights: Vec<i8> = (0..windows.taps() * channels).map(|at| at as i8).collect();
        let packed = PackedTaps::new(&weights, channels, &windows).unwrap();
        assert_eq!(PackedTaps::packed_len(channels, &windows), Some(packed.packed().len()));
        let mut fill = |to: &mut [u8]| {
            to.copy_from_slice(packed.packed());
            true
        };
        let again = PackedTaps::of_packed(channels, &windows, &mut fill).unwrap().unwrap();
        assert_eq!(again.packed(), packed.packed());
    }
    assert!(Packed::new(&[1; 5], [2, 3], &Windows::ONE).is_err() && Packed::new(&[1; 6], [2, 3], &grouped(0)).is_err());
    assert!(Packed::new(&[1; 9], [3, 3], &grouped(2)).is_err() && Packed::new(&[1; 9], [3, 3], &rows).is_err());
    assert!(Packed::packed_len([usize::MAX, 64], &Windows::ONE).is_none());
    let packed = Packed::new(&[1; 6], [2, 3], &grouped(2)).unwrap();
    let requantise = Requantise { factors: &[1.0], input_zero: 0, output_zero: 0, output_limits: [-128, 127] };
    assert!(Convolution::new(packed, Windows::ONE, None, requantise).is_err());
}
