//! Convolution over one, two and three dimensions, forward and transposed.

use edgepack_executor::call::Arg;
use edgepack_format::scalar::ScalarType;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseError;

use super::number::{FLOATS, INTS, Num, is_float, loss};
use super::tensor::{Draw, Kind, Tensor, indices};
use super::{Expected, Want, arg, check, config, out};

/// One spatial dimension of a call.
#[derive(Clone, Copy, Debug)]
struct Axis {
    input: usize,
    kernel: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    output_padding: usize,
}

impl Axis {
    fn output(&self, transposed: bool) -> Option<usize> {
        let reach = self.dilation * (self.kernel - 1) + 1;
        if transposed {
            let whole = (self.input - 1) * self.stride + reach + self.output_padding;
            return whole.checked_sub(2 * self.padding).filter(|&size| size > 0);
        }
        Some((self.input + 2 * self.padding).checked_sub(reach)? / self.stride + 1)
    }

    /// Element of the larger side that a tap of the kernel meets at a place of the smaller; `None` in the padding.
    fn meets(&self, place: usize, tap: usize, wide: usize) -> Option<usize> {
        (place * self.stride + tap * self.dilation).checked_sub(self.padding).filter(|&at| at < wide)
    }
}

/// Batch, groups, and input and output channels of each group.
#[derive(Clone, Copy, Debug)]
struct Channels {
    batch: usize,
    groups: usize,
    input: usize,
    output: usize,
}

fn axis(most: usize) -> impl Strategy<Value = Axis> {
    let output_padding = prop_oneof![1 => Just(0usize), 1 => 0usize..2];
    let numbers = (1..=most, 1usize..5, 1usize..4, 0usize..3, 1usize..3, output_padding);
    numbers.prop_map(|(input, kernel, stride, padding, dilation, output_padding)| Axis {
        input,
        kernel,
        stride,
        padding,
        dilation,
        output_padding: output_padding.min(stride.max(dilation) - 1),
    })
}

fn channels() -> impl Strategy<Value = Channels> {
    let grouped = (1usize..3, 1usize..4, 1usize..5, 1usize..5);
    // Every channel by itself.
    let lone = (1usize..3, 1usize..36, Just(1usize), 1usize..3);
    // Enough channels to fill the blocks of a product.
    let many = (Just(1usize), 1usize..3, 8usize..34, 8usize..34);
    prop_oneof![3 => grouped, 1 => lone, 1 => many].prop_map(|(batch, groups, input, output)| Channels {
        batch,
        groups,
        input,
        output,
    })
}

fn axes() -> impl Strategy<Value = Vec<Axis>> {
    prop_oneof![
        2 => prop::collection::vec(axis(24), 1),
        5 => prop::collection::vec(axis(10), 2),
        1 => prop::collection::vec(axis(5), 3),
    ]
}

/// Sums over every meeting of an input, a tap and an output, in the order of the narrower side.
fn convolve(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    axes: &[Axis],
    Channels { groups, input: per_input, output: per_output, .. }: Channels,
    transposed: bool,
    sizes: &[usize],
) -> Vec<Want> {
    let area: usize = sizes[2..].iter().product();
    let channel = |place: usize| place / area % sizes[1];
    let first = |place: usize| bias.map_or(Num::Whole(0), |bias| bias.data[channel(place)]);
    let mut whole: Vec<i128> = (0..sizes.iter().product()).map(|place| first(place).whole()).collect();
    let mut real: Vec<(f64, f64)> =
        (0..whole.len()).map(|place| (first(place).real(), first(place).real().abs())).collect();
    let kernel: Vec<usize> = axes.iter().map(|axis| axis.kernel).collect();
    let narrow = if transposed { &input.sizes[2..] } else { &sizes[2..] };
    let wide = if transposed { &sizes[2..] } else { &input.sizes[2..] };
    let (places, taps) = (indices(narrow), indices(&kernel));
    for (n, group) in indices(&[sizes[0], groups]).iter().map(|index| (index[0], index[1])) {
        for (place, tap) in places.iter().flat_map(|place| taps.iter().map(move |tap| (place, tap))) {
            let meets = |(dim, axis): (usize, &Axis)| axis.meets(place[dim], tap[dim], wide[dim]);
            let Some(met) = axes.iter().enumerate().map(meets).collect::<Option<Vec<usize>>>() else { continue };
            let (from, to) = if transposed { (place, &met) } else { (&met, place) };
            for (i, o) in (0..per_input).flat_map(|i| (0..per_output).map(move |o| (i, o))) {
                let (input_channel, output_channel) = (group * per_input + i, group * per_output + o);
                let at = |first: usize, second: usize, rest: &[usize]| [&[first, second], rest].concat();
                let factor = match transposed {
                    true => weight.at(&at(input_channel, o, tap)),
                    false => weight.at(&at(output_channel, i, tap)),
                };
                let x = input.at(&at(n, input_channel, from));
                let slot = at(n, output_channel, to).iter().zip(sizes).fold(0, |slot, (&i, &size)| slot * size + i);
                if is_float(input.dtype) {
                    let term = x.real() * factor.real();
                    real[slot] = (real[slot].0 + term, real[slot].1 + term.abs());
                } else {
                    whole[slot] += x.whole() * factor.whole();
                }
            }
        }
    }
    match is_float(input.dtype) {
        true => real.into_iter().map(|(num, scale)| Want { num: Num::Real(num), scale }).collect(),
        false => whole.into_iter().map(|x| Num::Whole(x).into()).collect(),
    }
}

/// Parameters of a call besides its axes and channels.
#[derive(Clone, Copy, Debug)]
struct Call {
    transposed: bool,
    with_bias: bool,
    /// True if the weight is a constant, which may be repacked before the call.
    constant: bool,
    /// True if a number may replace a list of equal ones.
    short: bool,
    dtype: ScalarType,
    seed: u64,
    turns: [bool; 3],
}

fn agrees(axes: &[Axis], channels: Channels, outputs: &[usize], call: Call) -> Result<(), TestCaseError> {
    let Channels { groups, input: per_input, output: per_output, batch } = channels;
    let Call { transposed, dtype, turns, .. } = call;
    let kernel: Vec<usize> = axes.iter().map(|axis| axis.kernel).collect();
    let inputs: Vec<usize> = axes.iter().map(|axis| axis.input).collect();
    let mut draw = Draw::new(call.seed);
    let shape = |first: usize, second: usize, rest: &[usize]| [&[first, second], rest].concat();
    let input = draw.tensor(dtype, &shape(batch, groups * per_input, &inputs), Kind::Tame);
    let weight = match transposed {
        true => shape(groups * per_input, per_output, &kernel),
        false => shape(groups * per_output, per_input, &kernel),
    };
    let weight = draw.tensor(dtype, &weight, Kind::Tame);
    let bias = call.with_bias.then(|| draw.tensor(dtype, &[groups * per_output], Kind::Tame));
    let sizes = shape(batch, groups * per_output, outputs);
    let wants = convolve(&input, &weight, bias.as_ref(), axes, channels, transposed, &sizes);

    let list = |of: fn(&Axis) -> usize| {
        let mut list: Vec<i64> = axes.iter().map(|axis| of(axis) as i64).collect();
        if call.short && list.iter().all(|x| *x == list[0]) {
            list.truncate(1);
        }
        Arg::Ints(list)
    };
    let weight = weight.owned(turns[1]);
    let args = [
        arg(&input, turns[0]),
        Arg::Tensor(if call.constant { weight.constant() } else { weight }),
        bias.as_ref().map_or(Arg::None, |bias| arg(bias, false)),
        list(|axis| axis.stride),
        list(|axis| axis.padding),
        list(|axis| axis.dilation),
        Arg::bool(transposed),
        if transposed { list(|axis| axis.output_padding) } else { Arg::Ints(vec![0; axes.len()]) },
        Arg::int(groups as i64),
        out(dtype, &sizes, turns[2]),
    ];
    check("aten::convolution.out", &args, &[Expected::new(&sizes, wants)], loss(dtype, 2e-6))
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn convolutions(
        axes in axes(),
        channels in channels(),
        (transposed, with_bias) in (prop::bool::weighted(0.35), any::<bool>()),
        (constant, short) in (any::<bool>(), any::<bool>()),
        dtype in prop_oneof![6 => Just(ScalarType::FLOAT), 2 => select(&FLOATS[..]), 1 => select(&INTS[..])],
        seed in any::<u64>(),
        turns in any::<[bool; 3]>(),
    ) {
        let outputs: Option<Vec<usize>> = axes.iter().map(|axis| axis.output(transposed)).collect();
        prop_assume!(outputs.is_some());
        let outputs = outputs.unwrap_or_default();
        let narrow: usize = if transposed { axes.iter().map(|axis| axis.input).product() } else { outputs.iter().product() };
        let taps: usize = axes.iter().map(|axis| axis.kernel).product();
        let Channels { batch, groups, input, output } = channels;
        prop_assume!(batch * groups * input * output * taps * narrow <= 100_000);
        agrees(&axes, channels, &outputs, Call { transposed, with_bias, constant, short, dtype, seed, turns })?;
    }
}

/// One layer with layers of padding around it is not an image: some of the output sees nothing but padding.
#[test]
fn layers_of_padding_around_one_layer() {
    let side = Axis { input: 7, kernel: 3, stride: 1, padding: 1, dilation: 1, output_padding: 0 };
    for (stride, groups, turned) in [(1, 1, false), (1, 12, false), (3, 1, false), (1, 1, true), (3, 12, true)] {
        let depth = Axis { input: 1, kernel: 1, stride, ..side };
        let outputs = [2 / stride + 1, 7, 7];
        let channels = Channels { batch: 2, groups, input: 12 / groups, output: 12 / groups };
        let (dtype, turns) = (ScalarType::FLOAT, [turned; 3]);
        let call = Call { transposed: false, with_bias: true, constant: false, short: false, dtype, seed: 1, turns };
        agrees(&[depth, side, side], channels, &outputs, call).unwrap();
    }
}

/// Padding of the output may add layers to one layer, which get nothing but the bias.
#[test]
fn layers_that_only_the_output_has() {
    let side = Axis { input: 7, kernel: 3, stride: 1, padding: 1, dilation: 1, output_padding: 0 };
    let depth = Axis { input: 1, kernel: 1, stride: 2, padding: 0, dilation: 1, output_padding: 1 };
    for (groups, constant, turned) in [(1, false, false), (1, true, true), (3, false, true), (12, true, true)] {
        let channels = Channels { batch: 2, groups, input: 12 / groups, output: 12 / groups };
        let (dtype, turns) = (ScalarType::FLOAT, [turned, false, turned]);
        let call = Call { transposed: true, with_bias: true, constant, short: false, dtype, seed: 2, turns };
        agrees(&[depth, side, side], channels, &[2, 7, 7], call).unwrap();
    }
}

/// A single pixel has the same place in every layout, whatever the layout of what it is computed from.
#[test]
fn outputs_of_one_pixel() {
    let point = Axis { input: 1, kernel: 1, stride: 1, padding: 0, dilation: 1, output_padding: 0 };
    let whole = Axis { input: 4, kernel: 4, ..point };
    let single = [ScalarType::FLOAT, ScalarType::HALF];
    for (axis, groups, dtype) in [point, whole]
        .into_iter()
        .flat_map(|axis| [1, 2, 72].map(|groups| (axis, groups, single)))
        .flat_map(|(axis, groups, single)| single.map(|dtype| (axis, groups, dtype)))
    {
        for bits in 0..32 {
            let [constant, transposed, first, second, third] = std::array::from_fn(|bit| bits >> bit & 1 == 1);
            if transposed && axis.input > 1 {
                continue;
            }
            let channels = Channels { batch: 1, groups, input: 72 / groups, output: 144 / groups };
            let turns = [first, second, third];
            let call = Call { transposed, with_bias: true, constant, short: false, dtype, seed: 3, turns };
            agrees(&[axis, axis], channels, &[1, 1], call).unwrap();
        }
    }
}
