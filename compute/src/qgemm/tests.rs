//! Every path of this machine against the formulas, written out over stored weights, to the bit.

use super::*;
use crate::random::Random;
use crate::threads::Threads;

/// Paths of this machine; says which ones were not run.
fn paths() -> Vec<Path> {
    for (name, path) in Path::all() {
        println!(
            "path {name}: {}",
            if path.is_some() { "run" } else { "not run, this machine lacks its instructions" }
        );
    }
    let found: Vec<Path> = Path::all().into_iter().filter_map(|(_, path)| path).collect();
    assert!(found.contains(&Path::Scalar));
    found
}

/// Rows, channels and inputs of a product, with what is multiplied.
struct Case {
    rows: usize,
    channels: usize,
    inner: usize,
    inputs: Vec<i8>,
    weights: Vec<i8>,
    row_scales: Vec<RowScale>,
}

/// Numbers that are all alike, at one of the ends, or random.
fn bytes(random: &mut Random, count: usize, kind: usize, [low, high]: [i8; 2]) -> Vec<i8> {
    let span = (i16::from(high) - i16::from(low) + 1) as usize;
    let mut one = || match kind % 4 {
        0 => low,
        1 => high,
        2 => [low, high][random.below(2)],
        _ => (i16::from(low) + random.below(span) as i16) as i8,
    };
    (0..count).map(|_| one()).collect()
}

impl Case {
    fn new(random: &mut Random, [rows, channels, inner]: [usize; 3], kind: usize, weights: [i8; 2]) -> Case {
        let row_scale = |random: &mut Random| RowScale {
            zero_point: [-128, 127, 0, random.below(256) as i32 - 128][random.below(4)],
            scale: random.float().abs() + 1e-3,
        };
        Case {
            rows,
            channels,
            inner,
            inputs: bytes(random, rows * inner, kind, [-128, 127]),
            weights: bytes(random, channels * inner, kind / 4, weights),
            row_scales: (0..rows).map(|_| row_scale(random)).collect(),
        }
    }

    /// The weights, two a byte; what pads the last byte of a row is not 0.
    fn half_bytes(&self) -> Vec<u8> {
        let mut packed = Vec::new();
        for row in self.weights.chunks(self.inner.max(1)) {
            let half = |weight: Option<&i8>| weight.map_or(11, |&weight| (weight + 8) as u8);
            packed.extend(row.chunks(2).map(|pair| half(pair.first()) | half(pair.get(1)) << 4));
        }
        packed
    }

    /// The product of a row and a channel over some inputs, after each input lost `zero`.
    fn sum(&self, row: usize, channel: usize, over: Range<usize>, zero: i32) -> i32 {
        let (inputs, weights) = (&self.inputs[row * self.inner..], &self.weights[channel * self.inner..]);
        over.fold(0i32, |sum, k| sum.wrapping_add((i32::from(inputs[k]) - zero).wrapping_mul(i32::from(weights[k]))))
    }

    /// Returns the results of `f` for each row and channel.
    fn results<T>(&self, f: impl Fn(usize, usize) -> T) -> Vec<T> {
        (0..self.rows * self.channels).map(|at| f(at / self.channels, at % self.channels)).collect()
    }

    fn name(&self) -> String {
        format!("{} rows, {} channels, {} inputs", self.rows, self.channels, self.inner)
    }
}

/// Sizes around the ends of tiles, groups and blocks of rows, with every kind of numbers.
fn cases(weights: [i8; 2], block: Option<usize>, check: impl Fn(&mut Random, &Case)) {
    let mut random = Random::new(23);
    let mut kind = 15;
    for rows in [1, 2, 3, 4, 7] {
        for channels in [1, 15, 16, 17, 33, 64, 65, 130] {
            let inners = match block {
                Some(block) => [1, 2, 3, 4, 5, 0, 0, 0].map(|blocks| blocks * block),
                None => [1, 3, 4, 7, 8, 9, 33, 70],
            };
            for inner in inners {
                kind = (kind + 7) % 16;
                let sizes = [rows, channels, inner];
                check(&mut random, &Case::new(&mut random_of(kind), sizes, kind, weights));
            }
        }
    }
    // Cut between rows and between channels, with pieces that are worth handing over.
    for [rows, channels, inner] in [[70, 100, 96], [150, 20, 64], [1, 700, 512], [3, 500, 288], [0, 5, 8], [2, 0, 8]] {
        let inner = usize::next_multiple_of(inner, block.unwrap_or(1));
        check(&mut random, &Case::new(&mut random_of(3), [rows, channels, inner], 15, weights));
    }
}

fn random_of(seed: usize) -> Random {
    Random::new(seed as u64 + 100)
}

/// Runs a product on one thread and on three, and compares.
fn agree<T: PartialEq + Clone + std::fmt::Debug + Send>(
    want: &[T],
    before: T,
    name: &str,
    run: impl Fn(&mut [T]) + Sync,
) {
    thread_local! {
        static POOLS: [Threads; 2] = [1, 3].map(|count| Threads::new(count).unwrap());
    }
    let pools = POOLS.with(Clone::clone);
    for pool in pools.iter().take(if want.len() > 900 { 2 } else { 1 }) {
        let mut have = vec![before.clone(); want.len()];
        pool.run(|| run(&mut have));
        let different = have.iter().zip(want).position(|(have, want)| have != want);
        if let Some(at) = different {
            panic!("{name}, on {pool:?}: result {at} is {:?}, not {:?}", have[at], want[at]);
        }
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn static_products() {
    let paths = paths();
    cases([-128, 127], None, |random, case| {
        let weights: Vec<f32> = (0..case.channels).map(|_| random.float().abs() + 1e-3).collect();
        let bias: Vec<i32> = (0..case.channels).map(|_| random.below(1 << 20) as i32 - (1 << 19)).collect();
        let [input_zero, output_zero] = [0, 1].map(|_| [-128, 127, 0, 5][random.below(4)]);
        let scales = StaticScales {
            input: 0.013,
            input_zero,
            weights: &weights,
            // Most results are within the limits, some at them, and some are ties.
            output: [0.5, 3.0, 0.013 * 64.0][random.below(3)] * case.inner as f32,
            output_zero,
            output_limits: [[-128, 127], [-20, 100], [7, 7]][random.below(3)],
        };
        let bias = (random.below(3) > 0).then_some(&bias[..]);
        let [low, high] = scales.output_limits.map(|limit| f32::from(limit) - f32::from(output_zero));
        let want = case.results(|row, channel| {
            let sum = case.sum(row, channel, 0..case.inner, i32::from(input_zero));
            let sum = sum.wrapping_add(bias.map_or(0, |bias| bias[channel]));
            let scaled = sum as f32 * ((scales.input * weights[channel]) / scales.output);
            (scaled.max(low).min(high).round_ties_even() as i32 + i32::from(output_zero)) as i8
        });
        let packed = || Weights::eight_bits(&case.weights, [case.channels, case.inner]).unwrap();
        let mut product = Static::new(packed(), bias, scales).unwrap();
        for &path in &paths {
            product.path = path;
            agree(&want, 99, &format!("{path:?}: {}", case.name()), |out| {
                let mut sums = vec![0; case.rows];
                let inputs = Inputs::new(&case.inputs, [case.rows, case.inner], None, &mut sums).unwrap();
                product.multiply(&inputs, out).unwrap();
            });
        }
    });
}

#[test]
fn dynamic_products() {
    let paths = paths();
    for four_bits in [false, true] {
        cases(if four_bits { [-8, 7] } else { [-128, 127] }, None, |random, case| {
            let scales: Vec<f32> = (0..case.channels).map(|_| random.float().abs() + 1e-3).collect();
            let bias = random.floats(case.channels);
            let bias = (random.below(3) > 0).then_some(&bias[..]);
            let limits = [UNLIMITED, [-0.5, 9.0]][random.below(2)];
            let want = case.results(|row, channel| {
                let RowScale { zero_point, scale } = case.row_scales[row];
                let sum = case.sum(row, channel, 0..case.inner, zero_point) as f32;
                (sum * scale)
                    .mul_add(scales[channel], bias.map_or(0.0, |bias| bias[channel]))
                    .max(limits[0])
                    .min(limits[1])
            });
            let sizes = [case.channels, case.inner];
            let packed = match four_bits {
                true => Weights::four_bits(&case.half_bytes(), sizes).unwrap(),
                false => Weights::eight_bits(&case.weights, sizes).unwrap(),
            };
            let mut product = Dynamic::new(packed, &scales, bias, limits).unwrap();
            for &path in &paths {
                product.path = path;
                agree(&bits(&want), 99, &format!("{path:?}: {}", case.name()), |out| {
                    let mut sums = vec![0; case.rows];
                    let inputs = Inputs::new(&case.inputs, [case.rows, case.inner], None, &mut sums).unwrap();
                    let mut floats = vec![f32::NAN; out.len()];
                    product.multiply(&inputs, &case.row_scales, &mut floats).unwrap();
                    out.copy_from_slice(&bits(&floats));
                });
            }
        });
    }
}

#[test]
fn products_of_blocks() {
    let paths = paths();
    for block in [8, 32, 64] {
        cases([-8, 7], Some(block), |random, case| {
            let blocks = case.inner / block;
            let scale = |random: &mut Random| ((random.float().abs() + 1e-3).to_bits() >> 16) as u16;
            let scales: Vec<u16> = (0..case.channels * blocks).map(|_| scale(random)).collect();
            let real = |channel: usize, block: usize| f32::from_bits(u32::from(scales[channel * blocks + block]) << 16);
            let bias = random.floats(case.channels);
            let bias = (random.below(3) > 0).then_some(&bias[..]);
            let limits = [UNLIMITED, [-0.5, 9.0]][random.below(2)];
            let want = case.results(|row, channel| {
                let over = |index: usize| index * block..(index + 1) * block;
                let of_weights = |k: usize| i32::from(case.weights[channel * case.inner + k]);
                let weights = (0..blocks)
                    .fold(0.0f32, |sum, b| sum + over(b).map(of_weights).sum::<i32>() as f32 * real(channel, b));
                let RowScale { zero_point, scale } = case.row_scales[row];
                let sum = (0..blocks).fold(-weights * zero_point as f32, |sum, b| {
                    (case.sum(row, channel, over(b), 0) as f32).mul_add(real(channel, b), sum)
                });
                (sum * scale + bias.map_or(0.0, |bias| bias[channel])).max(limits[0]).min(limits[1])
            });
            let blocks = Blocks { inputs: block, scales: &scales };
            let sizes = [case.channels, case.inner];
            let packed = Weights::four_bits_in_blocks(&case.half_bytes(), sizes, blocks).unwrap();
            let mut product = DynamicBlocks::new(packed, bias, limits).unwrap();
            for &path in &paths {
                product.path = path;
                agree(&bits(&want), 99, &format!("{path:?}: {} in blocks of {block}", case.name()), |out| {
                    let rows = [case.rows, case.inner];
                    let mut sums = vec![0; Inputs::sums_of(rows, Some(block))];
                    let inputs = Inputs::new(&case.inputs, rows, Some(block), &mut sums).unwrap();
                    let mut floats = vec![f32::NAN; out.len()];
                    product.multiply(&inputs, &case.row_scales, &mut floats).unwrap();
                    out.copy_from_slice(&bits(&floats));
                });
            }
        });
    }
}

#[test]
fn sums_beyond_32_bits_wrap_in_every_path() {
    for kind in [0, 2, 4] {
        // 128 · 128 · 140 000 is more than 2³¹.
        let case = Case::new(&mut random_of(kind), [5, 18, 140_001], kind, [-128, 127]);
        let packed = Weights::eight_bits(&case.weights, [case.channels, case.inner]).unwrap();
        let mut product = Dynamic::new(packed, &[1.0; 18], None, UNLIMITED).unwrap();
        let rows = case.row_scales.iter().map(|row| RowScale { scale: 1.0, ..*row }).collect::<Vec<_>>();
        let want = case.results(|row, channel| case.sum(row, channel, 0..case.inner, rows[row].zero_point) as f32);
        for path in paths() {
            product.path = path;
            let (mut sums, mut out) = ([0; 5], vec![0.0; 5 * 18]);
            let inputs = Inputs::new(&case.inputs, [case.rows, case.inner], None, &mut sums).unwrap();
            product.multiply(&inputs, &rows, &mut out).unwrap();
            assert_eq!(out, want, "{path:?}, {kind}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let weights = || Weights::eight_bits(&[1; 6], [2, 3]).unwrap();
    assert!(Weights::eight_bits(&[1; 5], [2, 3]).is_err());
    assert!(Weights::four_bits(&[1; 3], [2, 3]).is_err());
    assert!(Dynamic::new(weights(), &[1.0], None, UNLIMITED).is_err());
    assert!(Dynamic::new(weights(), &[1.0, 0.0], None, UNLIMITED).is_err());
    assert!(Dynamic::new(weights(), &[1.0, f32::NAN], None, UNLIMITED).is_err());
    assert!(Dynamic::new(weights(), &[1.0, 1.0], Some(&[0.0]), UNLIMITED).is_err());
    let four = || Weights::four_bits(&[1; 24], [2, 24]).unwrap();
    assert!(DynamicBlocks::new(weights(), None, UNLIMITED).is_err());
    assert!(DynamicBlocks::new(four(), None, UNLIMITED).is_err());
    for (inputs, scales, fits) in
        [(8, 6, true), (24, 2, true), (12, 4, false), (16, 4, false), (0, 2, false), (8, 5, false)]
    {
        let blocks = Blocks { inputs, scales: &vec![0x3f80; scales] };
        assert_eq!(Weights::four_bits_in_blocks(&[1; 24], [2, 24], blocks).is_ok(), fits, "{inputs}");
    }
    for scale in [0, 0x8000, 0x7f80, 0x7fc0] {
        assert!(Weights::four_bits_in_blocks(&[1; 8], [2, 8], Blocks { inputs: 8, scales: &[0x3f80, scale] }).is_err());
    }
    let scales = StaticScales {
        input: 1.0,
        input_zero: 0,
        weights: &[1.0, 1.0],
        output: 1.0,
        output_zero: 0,
        output_limits: [-128, 127],
    };
    assert!(Static::new(four(), None, scales).is_err());
    assert!(Static::new(weights(), None, StaticScales { output_limits: [1, 0], ..scales }).is_err());
    assert!(Static::new(weights(), Some(&[1]), scales).is_err());
    let product = Static::new(weights(), None, scales).unwrap();
    assert!(Inputs::new(&[1; 5], [2, 3], None, &mut [0; 2]).is_err());
    assert!(Inputs::new(&[1; 6], [2, 3], None, &mut [0; 1]).is_err());
    let mut sums = [0; 8];
    let inputs = Inputs::new(&[1; 6], [2, 3], None, &mut sums).unwrap();
    assert!(product.multiply(&inputs, &mut [0; 3]).is_err());
    assert!(product.multiply(&inputs, &mut [0; 4]).is_ok());
    let mut sums = [0; 8];
    let inputs = Inputs::new(&[1; 6], [3, 2], None, &mut sums).unwrap();
    assert!(product.multiply(&inputs, &mut [0; 6]).is_err());
}

#[test]
fn packed_weights_come_back_from_their_bytes() {
    let blocks = Blocks { inputs: 8, scales: &[0x3f80; 9] };
    for (bits, sizes, block, weights) in [
        (Bits::Eight, [3, 19], None, Weights::eight_bits(&[3; 57], [3, 19]).unwrap()),
        (Bits::Four, [3, 19], None, Weights::four_bits(&[0xab; 30], [3, 19]).unwrap()),
        (Bits::Four, [3, 24], Some(8), Weights::four_bits_in_blocks(&[0xab; 36], [3, 24], blocks).unwrap()),
    ] {
        assert_eq!(Weights::packed_len(bits, sizes, block), Some(weights.packed().len()));
        let mut fill = |to: &mut [u8]| {
            to.copy_from_slice(weights.packed());
            true
        };
        let again = Weights::of_packed(bits, sizes, block, &mut fill).unwrap().unwrap();
        assert_eq!((again.packed(), again.block()), (weights.packed(), block));
        assert!(Weights::of_packed(bits, sizes, block, &mut |_| false).unwrap().is_none());
        assert!(Weights::of_packed(bits, [usize::MAX, 16], block, &mut |_| true).is_err());
    }
}
