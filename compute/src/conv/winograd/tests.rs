//! Against the definition, and with numbers that are not finite.

use std::sync::Arc;

use super::*;
use crate::conv::algorithm::Algorithm;
use crate::conv::weight::PackedWeight;
use crate::conv::{Convolution, direct, scaled};
use crate::epilogue::Operation;
use crate::random::{Random, rounding};
use crate::spatial::Images;
use crate::threads::Threads;
use edgepack_format::scalar::ScalarType;

/// A convolution with windows of 3 by 3 that pays.
fn geometry([inputs, channels]: [usize; 2], sizes: [usize; 2], padding: [usize; 2]) -> Geometry {
    grouped([1, inputs, channels], sizes, padding, [1, 1])
}

/// A convolution of groups of channels, with taps that are apart.
fn grouped(
    [groups, inputs, channels]: [usize; 3],
    [height, width]: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
) -> Geometry {
    let slide =
        |input, axis: usize| Slide { input, kernel: 3, stride: 1, padding: padding[axis], dilation: dilation[axis] };
    let slides = [Slide::POINT, slide(height, 0), slide(width, 1)];
    let geometry = Geometry {
        input: Images::channels_last(2, groups * inputs, [1, height, width]),
        weight: Images::channels_first(groups * channels, inputs, [1, 3, 3]),
        out: Images::channels_last(2, groups * channels, slides.map(|slide| slide.places(false).unwrap())),
        slides,
        groups,
        transposed: false,
    };
    assert!(Algorithm::of(&geometry) == Algorithm::Pixels && pays(&geometry), "{geometry:?}");
    geometry
}

fn geometries() -> Vec<Geometry> {
    vec![
        geometry([16, 32], [12, 12], [1, 1]),
        geometry([20, 40], [13, 9], [1, 1]),
        geometry([33, 24], [10, 31], [0, 2]),
        geometry([64, 16], [6, 40], [2, 0]),
        geometry([96, 128], [7, 7], [1, 1]),
        geometry([256, 160], [9, 10], [1, 1]),
        grouped([3, 16, 32], [11, 14], [1, 1], [1, 1]),
        grouped([1, 48, 48], [13, 14], [2, 4], [2, 4]),
        grouped([2, 32, 48], [20, 9], [3, 1], [3, 1]),
    ]
}

fn elements(images: &Images) -> usize {
    images.batch.0 * images.channels.0 * images.area()
}

/// Runs it with a weight that is packed, on so many threads.
fn run(geometry: &Geometry, operands: &Operands<'_, f32>, factors: Option<&[f64]>, threads: usize) -> Vec<f32> {
    let relu = Epilogue::new(ScalarType::FLOAT, &[Operation::Relu, Operation::Neg]).unwrap();
    let packed = PackedWeight::new(None, geometry, operands.weight, factors).unwrap();
    let threads = Threads::new(threads).unwrap();
    let mut scratch = vec![f32::NAN; threads.run(|| PackedWeight::scratch(geometry))];
    let mut out = vec![f32::NAN; elements(&geometry.out)];
    let mut convolution = Convolution::new(true, Some(Arc::new(relu)));
    let run = || convolution.run(geometry, operands, packed.as_ref(), &mut scratch, &mut out);
    threads.run(run).unwrap();
    out
}

/// The results of the definition for `run`, with weights times factors.
fn definition(geometry: &Geometry, operands: &Operands<'_, f32>) -> Vec<f32> {
    let mut out = vec![0.0; elements(&geometry.out)];
    direct::convolve(geometry, operands, &mut out);
    out.into_iter().map(|x| if x < 0.0 { -0.0 } else { -x }).collect()
}

#[test]
fn tiles_agree_with_the_definition() {
    let mut random = Random::new(71);
    for (round, mut geometry) in geometries().into_iter().enumerate() {
        let Geometry { input, out, .. } = geometry;
        let channels = out.channels.0;
        if round % 2 == 1 {
            geometry.weight = Images::channels_last(channels, geometry.weight.channels.0, [1, 3, 3]);
        }
        let (numbers, weight) = (random.floats(elements(&input)), random.floats(elements(&geometry.weight)));
        let (bias, factors) = (random.floats(channels), random.floats(channels));
        let factors: Vec<f64> = factors.into_iter().map(f64::from).collect();
        let factors = (round % 3 > 0).then_some(&factors[..]);
        let mut multiplied = weight.clone();
        for (index, x) in multiplied.iter_mut().enumerate() {
            *x = factors.map_or(*x, |factors| scaled(*x, factors[index / geometry.weight.batch.1]));
        }
        let bias = (round > 1).then_some(&bias[..]);
        let operands = Operands { input: &numbers, weight: &weight, bias };
        let want = definition(&geometry, &Operands { weight: &multiplied, ..operands });
        let have = run(&geometry, &operands, factors, 1);
        // Numbers are below 1: so many terms, four of which meet in each number of a tile.
        let most = rounding(TAPS * input.channels.0 + 8) * (4 * TAPS * input.channels.0 + 1) as f64;
        for (have, want) in have.iter().zip(&want) {
            assert!(f64::from((have - want).abs()) <= most, "{have} is not {want}: {geometry:?}");
        }
        let bits = |results: &[f32]| results.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        for threads in [2, 3] {
            assert!(bits(&run(&geometry, &operands, factors, threads)) == bits(&have), "{geometry:?}");
        }
    }
}

#[test]
fn numbers_that_are_not_finite_stay_where_the_definition_has_them() {
    let mut random = Random::new(72);
    for (round, geometry) in geometries().into_iter().enumerate() {
        let Geometry { input, weight, out, .. } = geometry;
        let (mut numbers, weight) = (random.floats(elements(&input)), random.floats(elements(&weight)));
        let (bias, factors) = (random.floats(out.channels.0), random.floats(out.channels.0));
        for wrong in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 3e38, -3e38] {
            let at = random.below(numbers.len());
            numbers[at] = wrong;
        }
        let factors: Vec<f64> = factors.into_iter().map(f64::from).collect();
        let factors = (round % 2 > 0).then_some(&factors[..]);
        let mut multiplied = weight.clone();
        for (index, x) in multiplied.iter_mut().enumerate() {
            *x = factors.map_or(*x, |factors| scaled(*x, factors[index / geometry.weight.batch.1]));
        }
        let operands = Operands { input: &numbers, weight: &weight, bias: Some(&bias) };
        let want = definition(&geometry, &Operands { weight: &multiplied, ..operands });
        let one = run(&geometry, &operands, factors, 1);
        let same = |(have, want): (&f32, &f32)| have.to_bits() == want.to_bits() || have.is_nan() && want.is_nan();
        let alike = |(have, want): (&f32, &f32)| have.is_finite() && want.is_finite() || same((have, want));
        assert!(one.iter().zip(&want).all(alike), "{geometry:?}");
        for threads in [2, 3] {
            assert!(run(&geometry, &operands, factors, threads).iter().zip(&one).all(same), "{geometry:?}");
        }
    }
}

#[test]
fn few_pixels_or_channels_do_not_pay() {
    let wide = geometry([64, 64], [14, 14], [1, 1]);
    assert!(pays(&wide));
    let stride = |slide| Slide { stride: 2, ..slide };
    let [deep, down, right] = wide.slides;
    assert!(!pays(&Geometry { slides: [deep, stride(down), right], ..wide }));
    assert!(!pays(&Geometry { groups: 16, ..wide }));
    assert!(!pays(&Geometry { slides: [deep, Slide { dilation: 14, ..down }, right], ..wide }));
    assert!(!pays(&Geometry { out: Images::channels_last(1, 64, [1, 2, 2]), ..wide }));
    assert!(!pays(&Geometry { input: Images::channels_last(1, 3, [1, 14, 14]), ..wide }));
    assert!(!pays(&Geometry { input: Images::channels_last(1, 4096, [1, 14, 14]), ..wide }));
}

#[test]
fn too_little_scratch_memory_is_refused() {
    let geometry = geometry([16, 32], [12, 12], [1, 1]);
    let (input, weight) = (vec![0.0; elements(&geometry.input)], vec![0.0; elements(&geometry.weight)]);
    let packed = PackedWeight::new(None, &geometry, &weight, None).unwrap();
    let operands = Operands { input: &input, weight: &weight, bias: None };
    let mut out = vec![0.0; elements(&geometry.out)];
    let mut convolution = Convolution::new(true, None);
    let error = convolution.run(&geometry, &operands, packed.as_ref(), &mut [0.0; 64], &mut out).unwrap_err();
    assert_eq!(error.to_string(), "too little scratch memory for transformed tiles");
}

/// Sizes that change from run to run want one order of the weight.
#[test]
fn weights_that_are_retained_have_their_taps_as_they_are() {
    let geometry = geometry([16, 32], [12, 12], [1, 1]);
    let (input, weight) = (vec![0.5; elements(&geometry.input)], vec![0.25; elements(&geometry.weight)]);
    let operands = Operands { input: &input, weight: &weight, bias: None };
    let mut out = vec![0.0; elements(&geometry.out)];
    let mut convolution = Convolution::new(true, None);
    assert!(convolution.bytes_to_retain(&geometry) < PackedWeight::packed_len(&geometry).unwrap());
    convolution.run(&geometry, &operands, None, &mut [], &mut out).unwrap();
    assert_eq!(convolution.bytes_to_retain(&geometry), 0);
    let [inside, corner] = [13 * 32, 0].map(|at| out[at]);
    assert_eq!([inside, corner], [16.0 * 9.0 / 8.0, 16.0 * 4.0 / 8.0]);
}

/// Sums are what they are behind the convolution, to the bit, on any number of threads, and where tiles are computed by
/// definition.
#[test]
fn numbers_are_added_to_results_before_the_operations() {
    let mut random = Random::new(75);
    for (round, geometry) in geometries().into_iter().enumerate() {
        let [mut input, weight, addend] =
            [&geometry.input, &geometry.weight, &geometry.out].map(|images| random.floats(elements(images)));
        if round % 2 == 0 {
            input[7] = f32::INFINITY;
        }
        let operands = Operands { input: &input, weight: &weight, bias: None };
        let packed = PackedWeight::new(None, &geometry, &weight, None).unwrap();
        let relu = Arc::new(Epilogue::new(ScalarType::FLOAT, &[Operation::Relu]).unwrap());
        let run = |epilogue: Option<&Arc<Epilogue>>, addend: Option<&[f32]>, threads: usize| {
            let threads = Threads::new(threads).unwrap();
            let mut scratch = vec![f32::NAN; threads.run(|| PackedWeight::scratch(&geometry))];
            let mut out = vec![f32::NAN; elements(&geometry.out)];
            let mut convolution = Convolution::new(true, epilogue.cloned());
            let run = || convolution.run_adding(&geometry, &operands, addend, packed.as_ref(), &mut scratch, &mut out);
            threads.run(run).unwrap();
            out
        };
        let mut want = run(None, None, 1);
        want.iter_mut().zip(&addend).for_each(|(x, addend)| *x += addend);
        relu.in_place(&mut want);
        for threads in [1, 2] {
            let have = run(Some(&relu), Some(&addend), threads);
            let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            assert!(have.iter().zip(&want).all(same), "{geometry:?}, {threads} threads");
        }
    }
}
