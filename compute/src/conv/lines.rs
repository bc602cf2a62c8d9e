//! A convolution of single pixels and a depthwise one of its results, some lines at a time: what is between them is read from
//! a cache, and nobody else sees it.
//!
//! Invariant: every element is computed as it is without the other convolution, so results are the same to the bit, on any
//! number of threads.

use std::ops::Range;

use super::algorithm::Algorithm;
use super::geometry::{Geometry, Operands};
use super::weight::{Order, PackedWeight};
use super::{depthwise, pixels};
use crate::epilogue::Epilogue;
use crate::error::{Error, ErrorKind};
use crate::spatial::{Images, Slide};
use crate::threads::{self, Write, WriteAll, for_each};

/// Bytes of lines that stay in a second level of cache next to what they are made of.
const CACHED: usize = 384 << 10;
/// Bytes between convolutions that a second level of cache does not keep.
const LARGE: usize = 1 << 20;

/// Elements between two convolutions from which on it is worth to compute them together.
pub const LEAST: usize = LARGE / size_of::<f32>();

/// One of the two convolutions.
pub struct Step<'a> {
    /// Shapes of all images.
    pub geometry: Geometry,
    /// The weight, packed for these shapes.
    pub weight: &'a PackedWeight,
    /// A number per output channel.
    pub bias: Option<&'a [f32]>,
    /// Done to the results.
    pub epilogue: Option<&'a Epilogue>,
}

/// Returns whether [`convolve`] computes two convolutions faster than one after the other.
pub fn pays(first: &Geometry, second: &Geometry) -> bool {
    let last =
        |images: &Images| images.is_placed_as(&Images::channels_last(images.batch.0, images.channels.0, images.sizes));
    let Geometry { input, out: between, groups, transposed, .. } = first;
    let [algorithm, depthwise] = [first, second].map(|geometry| Algorithm::of(&geometry.in_rows()));
    let pointwise = algorithm == Algorithm::Pixels && first.is_pointwise() && *groups == 1 && !transposed;
    let slide = &second.slides[1];
    pointwise
        && depthwise == Algorithm::DepthwiseNhwc
        && second.input == *between
        && last(input)
        && last(between)
        && between.area() * between.channels.0 >= LEAST
        // Every window meets a line.
        && slide.padding < slide.reach()
}

/// Returns the elements of scratch memory that [`convolve`] needs on as many threads as there are here.
pub fn scratch(second: &Geometry) -> usize {
    threads::current().saturating_mul(per_thread(second))
}

/// Computes images, on as many threads as have [scratch memory](scratch), with the results of the first convolution there.
///
/// # Errors
///
/// [`ErrorKind::Geometry`] if that does not [pay](pays), or a weight is packed for another algorithm;
/// [`ErrorKind::Unsupported`] if the scratch memory is not enough for one thread.
///
/// # Panics
///
/// If a slice, or a packed weight, is shorter than the geometries say.
pub fn convolve(
    [first, second]: [&Step<'_>; 2],
    input: &[f32],
    scratch: &mut [f32],
    out: &mut [f32],
) -> Result<(), Error> {
    let fits = |step: &Step<'_>| {
        let geometry = step.geometry.in_rows();
        step.weight.fits(Algorithm::of(&geometry), &geometry)
    };
    if !pays(&first.geometry, &second.geometry) || !fits(first) || !fits(second) {
        return Err(Error::new(ErrorKind::Geometry, "two convolutions that are not computed together"));
    }
    let Geometry { out: to, .. } = second.geometry;
    let (line, room) = (to.sizes[2] * to.channels.0, per_thread(&second.geometry));
    let count = threads::current().min(scratch.len() / room).min(to.sizes[1]);
    if count == 0 {
        return Err(Error::new(ErrorKind::Unsupported, "the lines are longer than at load"));
    }
    let each = to.sizes[1].div_ceil(count);
    for image in 0..to.batch.0 {
        let input = &input[image * first.geometry.input.batch.1..];
        let out = &mut out[image * to.batch.1..][..to.sizes[1] * line];
        let pieces = (WriteAll(out, each * line), Write(&mut scratch[..count * room], room));
        for_each(count > 1, pieces, |part, (out, between)| {
            let lines = part * each..part * each + out.len() / line;
            some_lines([first, second], input, lines, between, out);
        });
    }
    Ok(())
}

/// Computes lines of an image, with room for those between the convolutions.
fn some_lines(
    [first, second]: [&Step<'_>; 2],
    input: &[f32],
    lines: Range<usize>,
    between: &mut [f32],
    out: &mut [f32],
) {
    let Geometry { input: images, out: to, .. } = second.geometry;
    let (line, result) = (images.sizes[2] * images.channels.0, to.sizes[2] * to.channels.0);
    let each = lines_at_once(&second.geometry);
    // Lines that are there, from the start of the memory on.
    let mut there: Range<usize> = 0..0;
    for from in lines.clone().step_by(each) {
        let to_do = from..(from + each).min(lines.end);
        let (met, padding) = met(&second.geometry.slides[1], to_do.clone());
        let kept = there.end.saturating_sub(met.start).min(there.len());
        between.copy_within((there.len() - kept) * line..there.len() * line, 0);
        let new = met.start + kept..met.end;
        if !new.is_empty() {
            let input = &input[new.start * first.geometry.input.strides[1]..];
            first.of_lines([new.len(), new.len()], 0).pixels(input, &mut between[kept * line..][..new.len() * line]);
        }
        there = met;
        let out = &mut out[(from - lines.start) * result..][..to_do.len() * result];
        second.of_lines([there.len(), to_do.len()], padding).depthwise(between, out);
    }
}

impl<'a> Step<'a> {
    /// The step for one image of so many lines of input and output, and lines of padding above it.
    fn of_lines(&self, [input, out]: [usize; 2], padding: usize) -> Step<'a> {
        let mut geometry = self.geometry;
        let images =
            |images: Images, lines: usize| Images::channels_last(1, images.channels.0, [1, lines, images.sizes[2]]);
        (geometry.input, geometry.out) = (images(geometry.input, input), images(geometry.out, out));
        geometry.slides[1] = Slide { input, padding, ..geometry.slides[1] };
        Step { geometry: geometry.in_rows(), ..*self }
    }

    fn pixels(&self, input: &[f32], out: &mut [f32]) {
        let Order::Blocks(blocks) = &self.weight.0 else { unreachable!("the weight of single pixels is in blocks") };
        let operands = Operands { input, weight: &[], bias: self.bias };
        pixels::convolve(&self.geometry, &operands, None, blocks, self.epilogue, out);
    }

    fn depthwise(&self, input: &[f32], out: &mut [f32]) {
        let Order::Taps(taps) = &self.weight.0 else { unreachable!("a depthwise weight is by tap") };
        let operands = Operands { input, weight: taps.all(), bias: self.bias };
        depthwise::nhwc(&self.geometry, &operands, self.epilogue, out);
    }
}

/// Lines of input that windows at some lines of output meet, and how many lines of padding are above them.
fn met(slide: &Slide, lines: Range<usize>) -> (Range<usize>, usize) {
    let inside = |place: isize| place.clamp(0, slide.input as isize) as usize;
    let first = slide.start(lines.start);
    let end = first + slide.reach_of(lines.len()) as isize;
    (inside(first)..inside(end), first.min(0).unsigned_abs())
}

/// Lines of output that are computed at once.
fn lines_at_once(second: &Geometry) -> usize {
    let Geometry { input, slides: [_, down, _], .. } = second;
    down.places_within(CACHED / (input.sizes[2] * input.channels.0 * size_of::<f32>()).max(1))
}

/// Elements that a thread has between the convolutions.
fn per_thread(second: &Geometry) -> usize {
    let Geometry { input, slides: [_, down, _], .. } = second;
    let lines = down.reach_of(lines_at_once(second)).min(input.sizes[1]);
    (lines * input.sizes[2] * input.channels.0).max(1)
}

#[cfg(test)]
mod tests {
    use edgepack_format::scalar::ScalarType;

    use super::*;
    use crate::conv::Convolution;
    use crate::epilogue::Operation;
    use crate::random::Random;
    use crate::threads::Threads;

    #[test]
    fn lines_are_those_of_one_convolution_after_the_other() {
        let mut random = Random::new(41);
        for (batch, channels, size, kernel, stride, padding, dilation) in [
            (1, 40, [90, 100], 3, 1, 1, 1),
            (2, 96, [61, 64], 3, 2, 1, 1),
            (1, 64, [70, 72], 5, 2, 2, 1),
            (1, 48, [96, 80], 3, 1, 0, 2),
            (1, 33, [100, 96], 1, 1, 0, 1),
            (1, 64, [9, 700], 7, 3, 3, 1),
        ] {
            let slide = |input, kernel, stride, padding, dilation| Slide { input, kernel, stride, padding, dilation };
            let images = |channels, [h, w]: [usize; 2]| Images::channels_last(batch, channels, [1, h, w]);
            let weight = |outputs, inputs, kernel| Images::channels_first(outputs, inputs, [1, kernel, kernel]);
            let slides = size.map(|size| slide(size, kernel, stride, padding, dilation));
            let to = slides.map(|slide| slide.places(false).unwrap());
            let points = size.map(|size| slide(size, 1, 1, 0, 1));
            let first = Geometry {
                input: images(24, size),
                weight: weight(channels, 24, 1),
                out: images(channels, size),
                slides: [Slide::POINT, points[0], points[1]],
                groups: 1,
                transposed: false,
            };
            let second = Geometry {
                input: first.out,
                weight: weight(channels, 1, kernel),
                out: images(channels, to),
                slides: [Slide::POINT, slides[0], slides[1]],
                groups: channels,
                ..first
            };
            assert!(pays(&first, &second), "{size:?}");
            let epilogue =
                Epilogue::new(ScalarType::FLOAT, &[Operation::Clamp { least: -1.0, greatest: 1.5 }]).unwrap();
            let epilogue = std::sync::Arc::new(epilogue);
            let len = |images: &Images| images.batch.0 * images.area() * images.channels.0;
            let (input, bias) = (random.floats(len(&first.input)), random.floats(channels));
            let weights = [random.floats(channels * 24), random.floats(channels * kernel * kernel)];
            let packed = [&first, &second].into_iter().zip(&weights);
            let packed: Vec<PackedWeight> = packed
                .map(|(geometry, weight)| PackedWeight::new(None, geometry, weight, None).unwrap().unwrap())
                .collect();

            let (mut between, mut want) = (vec![0.0; len(&first.out)], vec![0.0; len(&second.out)]);
            let one = |geometry, at: usize, input: &[f32], out: &mut [f32]| {
                let operands = Operands { input, weight: &weights[at], bias: (at == 0).then_some(&bias[..]) };
                let mut convolution = Convolution::new(true, (at == 0).then(|| epilogue.clone()));
                convolution.run(geometry, &operands, Some(&packed[at]), &mut [], out).unwrap();
            };
            one(&first, 0, &input, &mut between);
            one(&second, 1, &between, &mut want);

            let step = |geometry, at: usize| Step {
                geometry,
                weight: &packed[at],
                bias: (at == 0).then_some(&bias[..]),
                epilogue: (at == 0).then_some(&*epilogue),
            };
            for threads in 1..4 {
                let mut out = vec![f32::NAN; want.len()];
                let steps = [&step(first, 0), &step(second, 1)];
                let pool = Threads::new(threads).unwrap();
                let run = |out: &mut [f32]| {
                    let mut lines = vec![f32::NAN; scratch(&second)];
                    convolve(steps, &input, &mut lines, out)
                };
                pool.run(|| run(&mut out)).unwrap();
                let same = out.iter().zip(&want).position(|(have, want)| have.to_bits() != want.to_bits());
                assert_eq!(same, None, "{size:?}, windows of {kernel}, on {threads} threads");
            }
        }
    }
}
