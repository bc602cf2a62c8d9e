//! Greatest elements and averages of windows that slide or divide the image, over two and three dimensions.

use edgepack_executor::call::Arg;
use edgepack_format::scalar::ScalarType;
use proptest::prelude::*;
use proptest::sample::select;

use super::number::{FLOATS, INTS, LONG, Num, UNSIGNED, is_float, loss};
use super::tensor::{Draw, Kind, Tensor, indices};
use super::{Expected, Want, arg, check, config, out};

/// The window along one dimension.
#[derive(Clone, Copy, Debug)]
struct Axis {
    input: usize,
    kernel: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
}

impl Axis {
    /// Number of places that the window takes; `None` if it does not fit.
    fn places(&self, ceil: bool) -> Option<usize> {
        let reach = self.dilation * (self.kernel - 1) + 1;
        let free = (self.input + 2 * self.padding).checked_sub(reach)?;
        let places = if ceil { free.div_ceil(self.stride) } else { free / self.stride } + 1;
        // The last window begins inside the input or the padding before it.
        let beyond = ceil && (places - 1) * self.stride >= self.input + self.padding;
        Some(places - usize::from(beyond))
    }

    /// The elements of the window at a place.
    fn window(&self, place: usize) -> Vec<usize> {
        let tap = |tap: usize| (place * self.stride + tap * self.dilation).checked_sub(self.padding);
        (0..self.kernel).filter_map(tap).filter(|&at| at < self.input).collect()
    }

    /// Number of elements of the window that are in the input or its padding.
    fn padded(&self, place: usize) -> usize {
        let most = self.input + 2 * self.padding;
        (0..self.kernel).filter(|tap| place * self.stride + tap < most).count()
    }
}

fn axis() -> impl Strategy<Value = Axis> {
    (1usize..9, 1usize..5, 1usize..4, 0usize..3, 1usize..3).prop_map(|(input, kernel, stride, padding, dilation)| {
        Axis { input, kernel, stride, padding: padding.min(kernel / 2), dilation }
    })
}

/// Two or three dimensions, whose windows fit.
fn axes(dilated: bool) -> impl Strategy<Value = Vec<Axis>> {
    let plain = move |axes: Vec<Axis>| {
        axes.into_iter()
            .map(|axis| Axis { dilation: if dilated { axis.dilation } else { 1 }, ..axis })
            .collect::<Vec<_>>()
    };
    prop_oneof![3 => prop::collection::vec(axis(), 2), 1 => prop::collection::vec(axis(), 3)]
        .prop_map(plain)
        .prop_filter("windows that fit", |axes| axes.iter().all(|axis| axis.places(false).is_some()))
}

/// Batch and channels; a batch of its own may be missing.
fn planes() -> impl Strategy<Value = Vec<usize>> {
    let channels = prop_oneof![3 => 1usize..5, 1 => 30usize..36];
    prop_oneof![3 => (1usize..3, channels).prop_map(|(n, c)| vec![n, c]), 1 => (1usize..5).prop_map(|c| vec![c])]
}

/// The elements of every window, plane by plane, with their places in the plane.
fn windows(input: &Tensor, windows: &[Vec<Vec<usize>>]) -> Vec<Vec<(Num, usize)>> {
    let spatial = windows.len();
    let image = &input.sizes[input.sizes.len() - spatial..];
    let area: usize = image.iter().product();
    let counts: Vec<usize> = windows.iter().map(Vec::len).collect();
    let mut result = Vec::new();
    for plane in input.data.chunks(area) {
        for place in indices(&counts) {
            let along: Vec<&Vec<usize>> = place.iter().zip(windows).map(|(&at, windows)| &windows[at]).collect();
            let lens: Vec<usize> = along.iter().map(|window| window.len()).collect();
            let element = |tap: Vec<usize>| {
                let at = tap.iter().zip(&along).zip(image).fold(0, |at, ((&tap, along), &size)| at * size + along[tap]);
                (plane[at], at)
            };
            result.push(indices(&lens).into_iter().map(element).collect());
        }
    }
    result
}

/// The first greatest element; the last NaN if there is one.
fn greatest(window: &[(Num, usize)]) -> (Num, usize) {
    let beats = |x: Num, best: Num| match (x, best) {
        (Num::Whole(x), Num::Whole(best)) => x > best,
        (x, best) => x.is_nan() || x.real() > best.real(),
    };
    window.iter().skip(1).fold(window[0], |best, &x| if beats(x.0, best.0) { x } else { best })
}

fn average(window: &[(Num, usize)], divisor: i128, dtype: ScalarType) -> Want {
    if !is_float(dtype) {
        return Num::Whole(window.iter().map(|(x, _)| x.whole()).sum::<i128>() / divisor).into();
    }
    let sum: f64 = window.iter().map(|(x, _)| x.real()).sum();
    let terms: f64 = window.iter().map(|(x, _)| x.real().abs()).filter(|x| x.is_finite()).sum();
    Want { num: Num::Real(sum / divisor as f64), scale: terms / divisor.abs() as f64 }
}

fn sliding(axes: &[Axis], ceil: bool) -> Vec<Vec<Vec<usize>>> {
    let places = |axis: &Axis| axis.places(ceil).expect("windows that fit");
    axes.iter().map(|axis| (0..places(axis)).map(|place| axis.window(place)).collect()).collect()
}

/// One list of the call; a single number where they are all the same and the seed wants it.
fn list(axes: &[Axis], of: fn(&Axis) -> usize, short: bool) -> Arg {
    let mut list: Vec<i64> = axes.iter().map(|axis| of(axis) as i64).collect();
    if short && list.iter().all(|x| *x == list[0]) {
        list.truncate(1);
    }
    Arg::Ints(list)
}

proptest! {
    #![proptest_config(config(800))]

    #[test]
    fn greatest_of_windows(
        axes in axes(true),
        planes in planes(),
        ceil in any::<bool>(),
        dtype in prop_oneof![4 => select(&FLOATS[..]), 2 => select(&INTS[..]), 1 => select(&UNSIGNED[..])],
        (own_stride, short) in (any::<bool>(), any::<bool>()),
        seed in any::<u64>(),
        turns in any::<[bool; 2]>(),
    ) {
        let mut axes = axes;
        if !own_stride {
            axes.iter_mut().for_each(|axis| axis.stride = axis.kernel);
        }
        let sizes: Vec<usize> = planes.iter().copied().chain(axes.iter().map(|axis| axis.input)).collect();
        let input = Draw::new(seed).tensor(dtype, &sizes, Kind::Wild);
        let along = sliding(&axes, ceil);
        let results: Vec<usize> = planes.iter().copied().chain(along.iter().map(Vec::len)).collect();
        let windows = windows(&input, &along);
        // With dilation a window may miss the image, and then there is nothing to choose from.
        prop_assume!(windows.iter().all(|window| !window.is_empty()));
        let found: Vec<(Num, usize)> = windows.iter().map(|window| greatest(window)).collect();
        let batched = planes.len() == 2;
        let args = [
            arg(&input, turns[0] && batched),
            list(&axes, |axis| axis.kernel, short),
            if own_stride { list(&axes, |axis| axis.stride, short) } else { Arg::Ints(vec![]) },
            list(&axes, |axis| axis.padding, short),
            list(&axes, |axis| axis.dilation, short),
            Arg::bool(ceil),
            out(dtype, &results, turns[1] && batched),
            out(LONG, &results, turns[1] && batched),
        ];
        let name = format!("aten::max_pool{}d_with_indices.out", axes.len());
        let expected = [
            Expected::new(&results, found.iter().map(|found| found.0)),
            Expected::new(&results, found.iter().map(|found| found.1)),
        ];
        check(&name, &args, &expected, 0.0)?;
    }

    #[test]
    fn averages_of_windows(
        axes in axes(false),
        planes in planes(),
        (ceil, count_padding) in (any::<bool>(), any::<bool>()),
        divisor in prop_oneof![3 => Just(None), 1 => prop_oneof![1i64..9, -3i64..0].prop_map(Some)],
        dtype in prop_oneof![4 => select(&FLOATS[..]), 1 => Just(LONG)],
        (own_stride, short) in (any::<bool>(), any::<bool>()),
        seed in any::<u64>(),
        turns in any::<[bool; 2]>(),
    ) {
        let mut axes = axes;
        if !own_stride {
            axes.iter_mut().for_each(|axis| axis.stride = axis.kernel);
        }
        let sizes: Vec<usize> = planes.iter().copied().chain(axes.iter().map(|axis| axis.input)).collect();
        let kind = if is_float(dtype) { Kind::Wild } else { Kind::Tame };
        let input = Draw::new(seed).tensor(dtype, &sizes, kind);
        let along = sliding(&axes, ceil);
        let counts: Vec<usize> = along.iter().map(Vec::len).collect();
        let results: Vec<usize> = planes.iter().chain(&counts).copied().collect();
        let padded: Vec<usize> = indices(&counts)
            .iter()
            .map(|place| place.iter().zip(&axes).map(|(&place, axis)| axis.padded(place)).product())
            .collect();
        let windows = windows(&input, &along);
        let wants = windows.iter().zip(padded.iter().cycle()).map(|(window, &padded)| {
            let count = if count_padding { padded } else { window.len() };
            average(window, divisor.map_or(count as i128, i128::from), dtype)
        });
        let batched = planes.len() == 2;
        let args = [
            arg(&input, turns[0] && batched),
            list(&axes, |axis| axis.kernel, short),
            if own_stride { list(&axes, |axis| axis.stride, short) } else { Arg::Ints(vec![]) },
            list(&axes, |axis| axis.padding, short),
            Arg::bool(ceil),
            Arg::bool(count_padding),
            divisor.map_or(Arg::None, Arg::int),
            out(dtype, &results, turns[1] && batched),
        ];
        check(&format!("aten::avg_pool{}d.out", axes.len()), &args, &[Expected::new(&results, wants)], loss(dtype, 1e-6))?;
    }

    #[test]
    fn windows_that_divide_the_image(
        sides in prop_oneof![prop::collection::vec((1usize..9, 1usize..9), 2), prop::collection::vec((1usize..6, 1usize..5), 3)],
        planes in planes(),
        greatest_wanted in any::<bool>(),
        dtype in select(&FLOATS[..]),
        seed in any::<u64>(),
        turns in any::<[bool; 2]>(),
    ) {
        let sizes: Vec<usize> = planes.iter().copied().chain(sides.iter().map(|side| side.0)).collect();
        let input = Draw::new(seed).tensor(dtype, &sizes, Kind::Wild);
        let window = |input: usize, parts: usize, part: usize| {
            (0..input).filter(|at| at * parts + parts > part * input && at * parts < (part + 1) * input).collect()
        };
        let along: Vec<Vec<Vec<usize>>> =
            sides.iter().map(|&(input, parts)| (0..parts).map(|part| window(input, parts, part)).collect()).collect();
        let results: Vec<usize> = planes.iter().copied().chain(sides.iter().map(|side| side.1)).collect();
        let windows = windows(&input, &along);
        let batched = planes.len() == 2;
        let mut args = vec![arg(&input, turns[0] && batched), Arg::Ints(sides.iter().map(|side| side.1 as i64).collect())];
        args.push(out(dtype, &results, turns[1] && batched));
        let rank = sides.len();
        if !greatest_wanted {
            let wants = windows.iter().map(|window| average(window, window.len() as i128, dtype));
            return check(&format!("aten::_adaptive_avg_pool{rank}d.out"), &args, &[Expected::new(&results, wants)], loss(dtype, 1e-6));
        }
        args.push(out(LONG, &results, turns[1] && batched));
        let found: Vec<(Num, usize)> = windows.iter().map(|window| greatest(window)).collect();
        let expected = [
            Expected::new(&results, found.iter().map(|found| found.0)),
            Expected::new(&results, found.iter().map(|found| found.1)),
        ];
        check(&format!("aten::adaptive_max_pool{rank}d.out"), &args, &expected, 0.0)?;
    }
}
