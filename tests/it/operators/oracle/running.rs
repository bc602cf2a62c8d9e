//! Running sums and softmax along a dimension.

use edgepack_executor::call::Arg;
use edgepack_format::scalar::ScalarType;
use proptest::prelude::*;
use proptest::sample::select;

use super::binary::dtypes;
use super::number::{FLOATS, LONG, Num, is_float, loss};
use super::tensor::{Draw, Kind, Tensor, indices, shapes};
use super::{Expected, Want, arg, check, config, out};

/// Replaces the elements along a dimension by what a function makes of them together.
fn along(input: &Tensor, dim: usize, function: impl Fn(&[Num]) -> Vec<Want>) -> Vec<Want> {
    let mut wants = vec![Want::from(0.0); input.data.len()];
    if input.sizes.is_empty() {
        return function(&input.data);
    }
    let stride: usize = input.sizes[dim + 1..].iter().product();
    let indices = indices(&input.sizes);
    for place in (0..indices.len()).filter(|&place| indices[place][dim] == 0) {
        let places = (0..input.sizes[dim]).map(|i| place + i * stride);
        let line: Vec<Num> = places.clone().map(|place| input.data[place]).collect();
        for (place, want) in places.zip(function(&line)) {
            wants[place] = want;
        }
    }
    wants
}

fn cumsum(line: &[Num], result: ScalarType) -> Vec<Want> {
    let (mut whole, mut real, mut terms) = (0, 0.0, 0.0);
    let step = |x: &Num| {
        if !is_float(result) {
            whole += x.whole();
            return Num::Whole(whole).into();
        }
        real += x.real();
        terms += if x.real().is_finite() { x.real().abs() } else { 0.0 };
        Want { num: Num::Real(real), scale: terms }
    };
    line.iter().map(step).collect()
}

fn softmax(line: &[Num], log: bool) -> Vec<Want> {
    let most = line.iter().map(|x| x.real()).fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = line.iter().map(|x| (x.real() - most).exp()).sum();
    let each = |x: &Num| {
        let shifted = x.real() - most;
        let num = if log { shifted - total.ln() } else { shifted.exp() / total };
        // A difference of exponents is known as well as the exponents are.
        let scale = if log { most.abs() + total.ln().abs() } else { num * shifted.abs() };
        Want { num: Num::Real(num), scale: if scale.is_finite() { scale } else { 0.0 } }
    };
    line.iter().map(each).collect()
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn running_sums(
        sizes in shapes(),
        dtype in dtypes(),
        seed in any::<u64>(),
        turn in any::<bool>(),
    ) {
        let mut draw = Draw::new(seed);
        let rank = sizes.len().max(1);
        let dim = draw.below(rank);
        let named = if draw.flip() { dim as i64 } else { dim as i64 - rank as i64 };
        let natural = if is_float(dtype) { dtype } else { LONG };
        let result = if draw.below(4) == 0 { ScalarType::DOUBLE } else { natural };
        let kind = if is_float(result) == is_float(dtype) { Kind::Wild } else { Kind::Tame };
        let input = draw.tensor(dtype, &sizes, kind);
        let asked = if result == natural { Arg::None } else { Arg::int(result.0.into()) };
        let args = [arg(&input, turn), Arg::int(named), asked, out(result, &sizes, turn)];
        let wants = along(&input, dim, |line| cumsum(line, result));
        check("aten::cumsum.out", &args, &[Expected::new(&sizes, wants)], loss(result, 2e-6))?;
    }

    #[test]
    fn softmaxes(
        log in any::<bool>(),
        sizes in shapes(),
        dtype in select(&FLOATS[..]),
        wild in any::<bool>(),
        seed in any::<u64>(),
        turns in any::<[bool; 2]>(),
    ) {
        let mut draw = Draw::new(seed);
        let rank = sizes.len().max(1);
        let dim = draw.below(rank);
        let named = if draw.flip() { dim as i64 } else { dim as i64 - rank as i64 };
        let input = draw.tensor(dtype, &sizes, if wild { Kind::Wild } else { Kind::Tame });
        let name = if log { "aten::_log_softmax.out" } else { "aten::_softmax.out" };
        let args = [arg(&input, turns[0]), Arg::int(named), Arg::bool(false), out(dtype, &sizes, turns[1])];
        let wants = along(&input, dim, |line| softmax(line, log));
        check(name, &args, &[Expected::new(&sizes, wants)], loss(dtype, 3e-6))?;
    }
}
