//! Every algorithm against the definition.

use std::collections::HashSet;
use std::sync::Arc;

use half::{bf16, f16};

use super::algorithm::Algorithm;
use super::*;
use crate::epilogue::{Epilogue, Operation};
use crate::half::Narrow;
use crate::random::{Random, rounding};
use crate::spatial::{Images, Slide};
use crate::threads::Threads;
use edgepack_format::scalar::ScalarType;

/// Position of the channels of images: outermost or innermost.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    First,
    Last,
}

impl Order {
    fn images(self, batch: usize, channels: usize, sizes: [usize; 3]) -> Images {
        match self {
            Order::First => Images::channels_first(batch, channels, sizes),
            Order::Last => Images::channels_last(batch, channels, sizes),
        }
    }
}

/// A convolution of random shape: `groups` of `channels` input and `outs` output channels.
fn geometry(
    random: &mut Random,
    [groups, channels, outs]: [usize; 3],
    kernel: [usize; 3],
    transposed: bool,
    [input, weight, out]: [Order; 3],
) -> Geometry {
    let batch = random.below(2) + 1;
    let mut sizes = [1, random.below(6) + 5, random.below(30) + 6];
    let mut slides = [Slide::POINT; 3];
    let mut places = [1; 3];
    for i in 0..3 {
        if i == 0 && kernel[0] > 1 {
            sizes[0] = random.below(3) + 3;
        }
        let pointwise = kernel == [1; 3];
        let stride = if pointwise || i == 0 { 1 } else { random.below(3) + 1 };
        let dilation = random.below(2) + 1;
        let padding = if pointwise { 0 } else { random.below(kernel[i]) };
        let slide = Slide { input: sizes[i], kernel: kernel[i], stride, padding, dilation };
        let most = if i == 0 { 1 } else { stride.max(dilation) };
        places[i] = if transposed { slide.transposed_size(random.below(most)) } else { slide.places(false) }.unwrap();
        slides[i] = if transposed { Slide { input: places[i], ..slide } } else { slide };
    }
    let weight = if transposed {
        weight.images(groups * channels, outs, kernel)
    } else {
        weight.images(groups * outs, channels, kernel)
    };
    Geometry {
        input: input.images(batch, groups * channels, sizes),
        weight,
        out: out.images(batch, groups * outs, places),
        slides,
        groups,
        transposed,
    }
}

fn elements(images: &Images) -> usize {
    images.batch.0 * images.channels.0 * images.area()
}

fn scratch_for(geometry: &Geometry) -> usize {
    Bounds::of(geometry).scratch() + PackedWeight::scratch(geometry)
}

/// Geometries that meet every algorithm.
fn geometries(random: &mut Random) -> Vec<Geometry> {
    use Order::{First, Last};
    let mut all = Vec::new();
    for round in 0..60 {
        let kernel = [[1, 3, 3], [1, 1, 1], [1, 2, 5], [2, 3, 2]][round % 4];
        let channels = [[1, 9, 14], [2, 6, 8], [40, 1, 1], [7, 1, 2]][round / 4 % 4];
        let orders = [[First; 3], [Last; 3], [Last, First, First], [First, First, Last]][round / 16];
        all.push(geometry(random, channels, kernel, round % 5 == 4, orders));
    }
    all
}

#[test]
fn every_algorithm_agrees_with_the_definition() {
    let mut random = Random::new(61);
    let (mut met, mut turned) = (HashSet::new(), 0);
    for (round, geometry) in geometries(&mut random).into_iter().enumerate() {
        met.insert(format!("{:?}", Algorithm::of(&geometry)));
        turned += usize::from(geometry.computed().out != geometry.out);
        let input = random.floats(elements(&geometry.input));
        let weight = random.floats(elements(&geometry.weight));
        let bias = random.floats(geometry.out.channels.0);
        let operands = Operands { input: &input, weight: &weight, bias: (round % 3 > 0).then_some(&bias[..]) };
        let mut want = vec![0f32; elements(&geometry.out)];
        direct::convolve(&geometry, &operands, &mut want);
        let sizes = |values: &[f32]| values.iter().map(|x| x.abs()).collect::<Vec<f32>>();
        let [input_sizes, weight_sizes, bias_sizes] = [&input, &weight, &bias].map(|values| sizes(values));
        let amounts = Operands { input: &input_sizes, weight: &weight_sizes, bias: Some(&bias_sizes) };
        let mut terms = want.clone();
        direct::convolve(&geometry, &amounts, &mut terms);
        let mut convolution = Convolution::new(round % 2 == 0, None);
        let packed = PackedWeight::new(None, &geometry, &weight, None).unwrap().filter(|_| round % 4 > 1);
        if let Some(packed) = &packed {
            let bytes = PackedWeight::packed_len(&geometry).unwrap();
            assert!((bytes - bytes / 8..=bytes).contains(&packed.byte_len()), "{geometry:?}");
        }
        let mut scratch = vec![f32::NAN; scratch_for(&geometry)];
        // The second run uses what the first retains, on several threads.
        for threads in [1, 2] {
            let (before, more) = (convolution.retained_bytes(), convolution.bytes_to_retain(&geometry));
            let mut have = vec![f32::NAN; want.len()];
            Threads::new(threads)
                .unwrap()
                .run(|| convolution.run(&geometry, &operands, packed.as_ref(), &mut scratch, &mut have))
                .unwrap();
            assert!(convolution.retained_bytes() <= before + more, "{geometry:?}");
            let [channels, _] = geometry.group_channels();
            let most = rounding(geometry.weight.area() * channels + 2);
            for ((have, want), terms) in have.iter().zip(&want).zip(&terms) {
                let near = f64::from((have - want).abs()) <= 2.0 * most * f64::from(*terms);
                assert!(near, "{have} is not {want}: {geometry:?}");
            }
        }
    }
    assert_eq!((met.len(), turned), (6, 3), "{met:?}");
}

/// Channels-last images of one column, which are computed as lines.
#[test]
fn columns_agree_with_the_definition() {
    let mut random = Random::new(63);
    for (channels, kernel, stride) in
        [(40, 15, 1), (16, 9, 2), (7, 3, 1), (144, 5, 3), (48, 11, 1), (33, 13, 2), (20, 8, 1), (16, 7, 1), (16, 7, 3)]
    {
        let slide = Slide { input: 150, kernel, stride, padding: kernel / 2, dilation: 1 };
        let places = slide.places(false).unwrap();
        let geometry = Geometry {
            input: Images::channels_last(2, channels, [1, 150, 1]),
            weight: Images::channels_first(channels, 1, [1, kernel, 1]),
            out: Images::channels_last(2, channels, [1, places, 1]),
            slides: [Slide::POINT, slide, Slide::POINT],
            groups: channels,
            transposed: false,
        };
        assert_ne!(geometry.in_rows(), geometry);
        agrees(&mut random, geometry);
        agrees(
            &mut random,
            Geometry { weight: Images::channels_first(16, channels, [1, kernel, 1]), ..of_all(geometry, 16) },
        );
        agrees(
            &mut random,
            Geometry { weight: Images::channels_first(1, channels, [1, kernel, 1]), ..of_all(geometry, 1) },
        );
    }
}

/// A convolution of all channels to so many.
fn of_all(geometry: Geometry, outputs: usize) -> Geometry {
    let Images { batch, sizes, .. } = geometry.out;
    Geometry { out: Images::channels_last(batch.0, outputs, sizes), groups: 1, ..geometry }
}

/// Lines that are longer than the places of windows that are known at once, and windows too far from each other to be.
#[test]
fn long_lines_agree_with_the_definition() {
    let mut random = Random::new(64);
    for (channels, kernel, stride, dilation) in [
        (16, 3, 1, 1),
        (40, 5, 2, 1),
        (40, 7, 1, 1),
        (16, 7, 2, 1),
        (24, 3, 1, 7),
        (16, 5, 3, 2),
        (64, 3, usize::MAX / 2, 1),
    ] {
        let slide = |input| Slide { input, kernel, stride, padding: kernel / 2, dilation };
        let slides = [Slide::POINT, slide(30), slide(1200)];
        let [deep, down, right] = slides.map(|slide| slide.places(false).unwrap());
        let geometry = Geometry {
            input: Images::channels_last(1, channels, [1, 30, 1200]),
            weight: Images::channels_first(channels, 1, [1, kernel, kernel]),
            out: Images::channels_last(1, channels, [deep, down, right]),
            slides,
            groups: channels,
            transposed: false,
        };
        depthwise_agrees(&mut random, geometry);
    }
}

/// Images of a few channels with lines of every length, which are copied with the padding around them or read where they are.
#[test]
fn lines_of_a_few_channels_agree_with_the_definition() {
    let mut random = Random::new(65);
    for (channels, outputs, kernel, stride, padding) in
        [(1, 6, 5, 1, 2), (6, 16, 5, 1, 0), (3, 40, 3, 2, 1), (3, 64, 7, 2, 3), (2, 8, 3, 1, 2), (1, 20, 4, 3, 3)]
    {
        for places in [1, 5, 6, 7, 10, 24, 28, 63, 64, 65, 90] {
            let slide = |places: usize, dilation: usize| {
                let reach = (places - 1) * stride + (kernel - 1) * dilation + 1;
                let input = reach.saturating_sub(2 * padding).max(1) + stride / 2;
                Slide { input, kernel, stride, padding, dilation }
            };
            let slides = [Slide::POINT, slide(5, 2 - places % 2), slide(places, 1)];
            let to = slides.map(|slide| slide.places(false).unwrap());
            let geometry = Geometry {
                input: Images::channels_last(2, channels, slides.map(|slide| slide.input)),
                weight: Images::channels_first(outputs, channels, [1, kernel, kernel]),
                out: Images::channels_last(2, outputs, to),
                slides,
                groups: 1,
                transposed: false,
            };
            agrees(&mut random, geometry);
        }
    }
}

/// Groups of a few channels, in whole vectors of channels and not, with windows in the padding.
#[test]
fn groups_of_a_few_channels_agree_with_the_definition() {
    let mut random = Random::new(67);
    for (round, group) in [2, 4, 8].into_iter().cycle().take(36).enumerate() {
        let groups = 16 / group + random.below(12);
        let slide = |input, kernel, padding| Slide { input, kernel, stride: 1 + round / 3 % 2, padding, dilation: 1 };
        let height = 1 + round / 6 % 3;
        let down = Slide { dilation: 1 + round % 2, ..slide(8 + random.below(9), height, round % height) };
        let slides = [Slide::POINT, down, slide(4 + random.below(90), 3, round % 4)];
        let channels = groups * group;
        let geometry = Geometry {
            input: Images::channels_last(2, channels, [1, slides[1].input, slides[2].input]),
            weight: Images::channels_first(channels, group, [1, height, 3]),
            out: Images::channels_last(2, channels, slides.map(|slide| slide.places(false).unwrap())),
            slides,
            groups,
            transposed: false,
        };
        assert_eq!(Algorithm::of(&geometry), Algorithm::GroupedNhwc);
        agrees(&mut random, geometry);
    }
}

/// Few output channels, of many channels, with windows in the padding.
#[test]
fn few_outputs_agree_with_the_definition() {
    let mut random = Random::new(68);
    for (round, outputs) in (1..=4).cycle().take(24).enumerate() {
        let kernel = [3, 9, 4][round % 3];
        let slide = |input| Slide {
            input,
            kernel,
            stride: 1 + round / 4 % 2,
            padding: round % (kernel + 1),
            dilation: 1 + round / 8 % 2,
        };
        let slides = [Slide::POINT, slide(18 + random.below(5)), slide(18 + random.below(150))];
        let channels = 16 * (1 + round % 3);
        let geometry = Geometry {
            input: Images::channels_last(2, channels, [1, slides[1].input, slides[2].input]),
            weight: Images::channels_first(outputs, channels, [1, kernel, kernel]),
            out: Images::channels_last(2, outputs, slides.map(|slide| slide.places(false).unwrap())),
            slides,
            groups: 1,
            transposed: false,
        };
        assert_eq!(Algorithm::of(&geometry), Algorithm::FewOutputs);
        agrees(&mut random, geometry);
    }
}

/// An infinity stays in its group.
#[test]
fn groups_do_not_meet() {
    let slide = Slide { input: 6, kernel: 3, stride: 1, padding: 1, dilation: 1 };
    let images = Images::channels_last(1, 40, [1, 6, 6]);
    let weight = Images::channels_first(40, 4, [1, 3, 3]);
    let slides = [Slide::POINT, slide, slide];
    let geometry = Geometry { input: images, weight, out: images, slides, groups: 10, transposed: false };
    let mut input = vec![1.0; elements(&images)];
    input.iter_mut().skip(17).step_by(40).for_each(|x| *x = f32::INFINITY);
    let (weight, mut out) = (vec![1.0; elements(&weight)], vec![f32::NAN; elements(&images)]);
    let operands = Operands { input: &input, weight: &weight, bias: None };
    Convolution::new(true, None).run(&geometry, &operands, None, &mut [], &mut out).unwrap();
    let infinite = |(at, x): (usize, &f32)| x.is_finite() != (16..20).contains(&(at % 40)) && !x.is_nan();
    assert!(out.iter().enumerate().all(infinite), "{out:?}");
}

/// Compares a depthwise convolution of channels-last images with its definition.
fn depthwise_agrees(random: &mut Random, geometry: Geometry) {
    assert_eq!(Algorithm::of(&geometry), Algorithm::DepthwiseNhwc);
    agrees(random, geometry);
}

/// Compares a convolution with its definition.
pub(super) fn agrees(random: &mut Random, geometry: Geometry) {
    let (input, weight) = (random.floats(elements(&geometry.input)), random.floats(elements(&geometry.weight)));
    let bias = random.floats(geometry.out.channels.0);
    let operands = Operands { input: &input, weight: &weight, bias: Some(&bias) };
    let mut want = vec![0f32; elements(&geometry.out)];
    direct::convolve(&geometry, &operands, &mut want);
    let mut scratch = vec![f32::NAN; scratch_for(&geometry)];
    for threads in [1, 2, 3] {
        let mut have = vec![f32::NAN; want.len()];
        let mut convolution = Convolution::new(true, None);
        let run = || convolution.run(&geometry, &operands, None, &mut scratch, &mut have);
        Threads::new(threads).unwrap().run(run).unwrap();
        let most = 1e-6 * (10 + geometry.weight.area() * geometry.weight.channels.0) as f32;
        let near = have.iter().zip(&want).all(|(have, want)| (have - want).abs() < most);
        assert!(near, "{geometry:?} on {threads} threads");
    }
}

#[test]
fn weights_are_packed_with_factors_as_they_are_multiplied_before() {
    let mut random = Random::new(62);
    let mut met = 0;
    for geometry in geometries(&mut random).into_iter().filter(|geometry| !geometry.transposed) {
        let (input, weight) = (random.floats(elements(&geometry.input)), random.floats(elements(&geometry.weight)));
        let channels = geometry.weight.batch.0;
        let factors: Vec<f64> = random.floats(channels).into_iter().map(f64::from).collect();
        let mut multiplied = weight.clone();
        for (index, x) in multiplied.iter_mut().enumerate() {
            *x = scaled(*x, factors[index / geometry.weight.batch.1 % channels]);
        }
        let Some(own) = PackedWeight::new(None, &geometry, &weight, Some(&factors)).unwrap() else { continue };
        met += 1;
        let other = PackedWeight::new(None, &geometry, &multiplied, None).unwrap().unwrap();
        let mut scratch = vec![0f32; scratch_for(&geometry)];
        let [have, want] = [&own, &other].map(|packed| {
            let operands = Operands { input: &input, weight: &weight, bias: None };
            let mut out = vec![f32::NAN; elements(&geometry.out)];
            Convolution::new(true, None).run(&geometry, &operands, Some(packed), &mut scratch, &mut out).unwrap();
            out
        });
        assert!(have.iter().zip(&want).all(|(a, b)| a.to_bits() == b.to_bits()), "{geometry:?}");
    }
    assert!(met > 10, "{met}");
}

/// Outputs whose pixels are not in the order of channels-last images are computed all the same.
#[test]
fn outputs_in_other_orders_agree_with_the_definition() {
    let mut random = Random::new(66);
    let slide = |input| Slide { input, kernel: 3, stride: 1, padding: 1, dilation: 1 };
    for groups in [1, 16] {
        let turned = Images { strides: [16 * 12 * 9, 16, 16 * 12], ..Images::channels_last(1, 16, [1, 12, 9]) };
        let geometry = Geometry {
            input: Images::channels_last(1, 16, [1, 12, 9]),
            weight: Images::channels_first(16, 16 / groups, [1, 3, 3]),
            out: turned,
            slides: [Slide::POINT, slide(12), slide(9)],
            groups,
            transposed: false,
        };
        let (input, weight) = (random.floats(elements(&geometry.input)), random.floats(elements(&geometry.weight)));
        let operands = Operands { input: &input, weight: &weight, bias: None };
        let [mut want, mut have] = [vec![0f32; elements(&turned)], vec![f32::NAN; elements(&turned)]];
        direct::convolve(&geometry, &operands, &mut want);
        let mut scratch = vec![f32::NAN; scratch_for(&geometry)];
        Convolution::new(true, None).run(&geometry, &operands, None, &mut scratch, &mut have).unwrap();
        assert!(have.iter().zip(&want).all(|(have, want)| (have - want).abs() < 1e-5), "{geometry:?}");
    }
}

/// Images without columns, in windows that lie in the padding, are reordered, too.
#[test]
fn images_without_columns_are_reordered() {
    let slide = |input, padding| Slide { input, kernel: 3, stride: 1, padding, dilation: 1 };
    let slides = [Slide::POINT, slide(4, 1), slide(0, 2)];
    let geometry = Geometry {
        input: Images::channels_first(1, 8, [1, 4, 0]),
        weight: Images::channels_first(4, 8, [1, 3, 3]),
        out: Images::channels_last(1, 4, slides.map(|slide| slide.places(false).unwrap())),
        slides,
        groups: 1,
        transposed: false,
    };
    let operands = Operands { input: &[], weight: &[1.0; 288], bias: Some(&[1.0, 2.0, 3.0, 4.0]) };
    let mut out = vec![f32::NAN; elements(&geometry.out)];
    Convolution::new(true, None).run(&geometry, &operands, None, &mut [], &mut out).unwrap();
    assert!(out.chunks(4).all(|pixel| pixel == [1.0, 2.0, 3.0, 4.0]), "{out:?}");
}

/// A single pixel has its channels next to each other, whatever order its strides say.
#[test]
fn single_pixels_are_read_in_place() {
    let mut random = Random::new(65);
    let geometry = Geometry {
        input: Images::channels_first(3, 40, [1, 1, 1]),
        weight: Images::channels_first(24, 40, [1, 1, 1]),
        out: Images::channels_first(3, 24, [1, 1, 1]),
        slides: [Slide::POINT; 3],
        groups: 1,
        transposed: false,
    };
    assert_eq!(Algorithm::of(&geometry), Algorithm::Pixels);
    let (input, weight) = (random.floats(elements(&geometry.input)), random.floats(elements(&geometry.weight)));
    let operands = Operands { input: &input, weight: &weight, bias: None };
    let [mut want, mut have] = [vec![0f32; elements(&geometry.out)], vec![f32::NAN; elements(&geometry.out)]];
    direct::convolve(&geometry, &operands, &mut want);
    Convolution::new(true, None).run(&geometry, &operands, None, &mut [], &mut have).unwrap();
    assert!(have.iter().zip(&want).all(|(have, want)| (have - want).abs() < 1e-5), "{have:?}, not {want:?}");
}

#[test]
fn images_without_channels_give_the_bias() {
    let slide = Slide { input: 40, kernel: 3, stride: 1, padding: 1, dilation: 1 };
    let geometry = Geometry {
        input: Images::channels_last(1, 0, [1, 40, 40]),
        weight: Images::channels_first(8, 0, [1, 3, 3]),
        out: Images::channels_last(1, 8, [1, 40, 40]),
        slides: [Slide::POINT, slide, slide],
        groups: 1,
        transposed: false,
    };
    let mut packed = blocked::BlockedWeight::default();
    packed.pack(&geometry, &[], None).unwrap();
    let bias: [f32; 8] = std::array::from_fn(|channel| channel as f32);
    let mut out = vec![f32::NAN; elements(&geometry.out)];
    let operands = Operands { input: &[], weight: &[], bias: Some(&bias) };
    pixels::convolve(&geometry, &operands, None, &packed, None, &mut out);
    assert!(out.chunks(8).all(|pixel| pixel == bias));
}

#[test]
fn sums_and_operations_behind_a_convolution_give_what_they_give_alone() {
    let mut random = Random::new(62);
    let operations = [Operation::Clamp { least: -0.5, greatest: 0.75 }, Operation::Tanh];
    for geometry in geometries(&mut random) {
        let epilogue = Arc::new(Epilogue::new(ScalarType::FLOAT, &operations).unwrap());
        let [input, weight, addend] =
            [&geometry.input, &geometry.weight, &geometry.out].map(|images| random.floats(elements(images)));
        let operands = Operands { input: &input, weight: &weight, bias: None };
        let mut scratch = vec![0f32; scratch_for(&geometry)];
        let mut run = |epilogue: Option<&Arc<Epilogue>>, addend: Option<&[f32]>| {
            let (mut out, mut convolution) =
                (vec![0f32; elements(&geometry.out)], Convolution::new(true, epilogue.cloned()));
            convolution.run_adding(&geometry, &operands, addend, None, &mut scratch, &mut out).unwrap();
            out
        };
        let mut plain = run(None, None);
        let mut sums: Vec<f32> = plain.iter().zip(&addend).map(|(x, addend)| x + addend).collect();
        epilogue.in_place(&mut plain);
        epilogue.in_place(&mut sums);
        for (alone, fused) in [(plain, run(Some(&epilogue), None)), (sums, run(Some(&epilogue), Some(&addend)))] {
            assert!(alone.iter().zip(&fused).all(|(a, b)| a.to_bits() == b.to_bits()), "{geometry:?}");
        }
    }
}

fn halves<T: Narrow>(relative: f32) {
    let mut random = Random::new(63);
    for (round, geometry) in geometries(&mut random).into_iter().enumerate() {
        let mut draw = |count: usize| {
            let mut values = vec![T::default(); count];
            T::narrow(&random.floats(count), &mut values);
            values
        };
        let input = draw(elements(&geometry.input));
        let (weight, bias) = (draw(elements(&geometry.weight)), draw(geometry.out.channels.0));
        let operands = Operands { input: &input, weight: &weight, bias: Some(&bias) };
        let mut want = vec![T::default(); elements(&geometry.out)];
        direct::convolve(&geometry, &operands, &mut want);
        let mut have = want.clone();
        let all = input.len() + weight.len() + bias.len() + have.len() + scratch_for(&geometry);
        let mut convolution = HalfConvolution::new((round % 2 == 0).then_some(&weight[..])).unwrap();
        convolution.run(&geometry, &operands, &mut vec![0.0; all], &mut have).unwrap();
        let exact = |values: &[T]| {
            let mut floats = vec![0f32; values.len()];
            T::widen(values, &mut floats);
            floats
        };
        for (have, want) in exact(&have).into_iter().zip(exact(&want)) {
            assert!((have - want).abs() <= relative * want.abs().max(1.0), "{have} is not {want}: {geometry:?}");
        }
        let small = convolution.run(&geometry, &operands, &mut [0.0; 8], &mut vec![T::default(); have.len()]);
        assert!(small.is_err());
    }
}

#[test]
fn halves_are_computed_in_single_precision_and_rounded_once() {
    halves::<f16>(1.0 / 1024.0);
    halves::<bf16>(1.0 / 128.0);
}
