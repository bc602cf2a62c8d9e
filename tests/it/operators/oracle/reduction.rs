//! Sums, means, products, extremes and their places, truth and variance over some dimensions.

use edgepack_executor::call::Arg;
use edgepack_format::scalar::ScalarType;
use proptest::prelude::*;
use proptest::sample::select;

use super::binary::dtypes;
use super::number::{BOOL, FLOATS, INTS, LONG, Num, UNSIGNED, fit, is_float, loss, wrap};
use super::tensor::{Draw, Kind, Tensor, indices, shapes};
use super::{Expected, Want, arg, check, config, out, refused};

/// The dimensions a call folds, as its argument has them, from random bits.
fn dims(rank: usize, chosen: u8, signs: u8) -> Vec<i64> {
    let dim = |dim: usize| if signs >> dim & 1 == 1 { dim as i64 - rank as i64 } else { dim as i64 };
    (0..rank).filter(|&at| chosen >> at & 1 == 1).map(dim).collect()
}

/// Flags of the dimensions that are folded, one per dimension; all of them where none is named.
fn folded(rank: usize, dims: &[i64]) -> Vec<bool> {
    let named = |dim: usize| dims.contains(&(dim as i64)) || dims.contains(&(dim as i64 - rank as i64));
    (0..rank).map(|dim| dims.is_empty() || named(dim)).collect()
}

/// The sizes of the result, and for each of its elements what is folded into it, in order.
pub fn groups(input: &Tensor, folded: &[bool], keepdim: bool) -> (Vec<usize>, Vec<Vec<Num>>) {
    let kept: Vec<usize> = input.sizes.iter().zip(folded).map(|(&size, &gone)| if gone { 1 } else { size }).collect();
    let mut groups = vec![Vec::new(); kept.iter().product()];
    for (index, &x) in indices(&input.sizes).iter().zip(&input.data) {
        let at = index.iter().zip(&kept).fold(0, |at, (&i, &size)| at * size + if size == 1 { 0 } else { i });
        groups[at].push(x);
    }
    let sizes = kept.iter().zip(folded).filter(|(_, gone)| keepdim || !**gone).map(|(&size, _)| size).collect();
    (sizes, groups)
}

fn sum(group: &[Num], result: ScalarType) -> Want {
    if is_float(result) {
        let terms: f64 = group.iter().map(|x| x.real().abs()).filter(|x| x.is_finite()).sum();
        return Want { num: Num::Real(group.iter().map(|x| x.real()).sum()), scale: terms };
    }
    Num::Whole(group.iter().map(|x| x.whole()).sum()).into()
}

fn product(group: &[Num], result: ScalarType) -> Want {
    if is_float(result) {
        return group.iter().map(|x| x.real()).product::<f64>().into();
    }
    Num::Whole(group.iter().fold(1, |product, x| wrap(product * x.whole(), result))).into()
}

/// The first extreme and its place; the first NaN if there is one.
fn extreme(group: &[Num], least: bool) -> (Num, usize) {
    let beats = |x: Num, best: Num| match (x, best) {
        (Num::Whole(x), Num::Whole(best)) => {
            if least {
                x < best
            } else {
                x > best
            }
        }
        (x, best) => {
            if least {
                x.real() < best.real()
            } else {
                x.real() > best.real()
            }
        }
    };
    let mut best = (group[0], 0);
    for (place, &x) in group.iter().enumerate() {
        if !best.0.is_nan() && (x.is_nan() || beats(x, best.0)) {
            best = (x, place);
        }
    }
    best
}

fn variance(group: &[Num], correction: f64) -> (Want, Want) {
    let count = group.len() as f64;
    let mean = group.iter().map(|x| x.real()).sum::<f64>() / count;
    let squares: f64 = group.iter().map(|x| (x.real() - mean).powi(2)).sum();
    let most = group.iter().map(|x| x.real().abs()).filter(|x| x.is_finite()).fold(0.0, f64::max);
    let variance = squares / (count - correction).max(0.0);
    (Want { num: Num::Real(variance), scale: most * most }, Want { num: Num::Real(mean), scale: most })
}

fn any_type() -> impl Strategy<Value = ScalarType> {
    prop_oneof![4 => dtypes(), 1 => select(&UNSIGNED[..])]
}

/// The type sums and products of a type are stored as: integers become `i64` or what the call asks for.
fn total(dtype: ScalarType, draw: &mut Draw) -> (ScalarType, Arg) {
    let natural = if is_float(dtype) { dtype } else { LONG };
    let asked = match draw.below(5) {
        0 => FLOATS[2 + draw.below(2)],
        1 if !is_float(dtype) => INTS[draw.below(5)],
        _ => natural,
    };
    (asked, if asked == natural { Arg::None } else { Arg::int(asked.0.into()) })
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn sums_products_and_means(
        which in 0usize..5,
        sizes in shapes(),
        dtype in any_type(),
        (chosen, signs, keepdim) in (any::<u8>(), any::<u8>(), any::<bool>()),
        seed in any::<u64>(),
        turns in any::<[bool; 2]>(),
    ) {
        let mut draw = Draw::new(seed);
        let mean = which == 1 || which == 2;
        let dtype = if mean { FLOATS[draw.below(4)] } else { dtype };
        let (result, asked) = total(dtype, &mut draw);
        // A float that is asked for holds the ends of no range, and the order of infinite products is none of ours.
        let kind = if is_float(result) != is_float(dtype) { Kind::Tame } else { Kind::Wild };
        let input = draw.tensor(dtype, &sizes, kind);
        let mut list = dims(sizes.len(), chosen, signs);
        let (name, more) = match which {
            0 | 1 => {
                let over = if list.is_empty() && draw.flip() { Arg::None } else { Arg::Ints(list.clone()) };
                (["aten::sum.IntList_out", "aten::mean.out"][which], vec![over, Arg::bool(keepdim), asked])
            }
            2 => {
                list.clear();
                ("aten::mean.dtype_out", vec![asked])
            }
            3 if !sizes.is_empty() => {
                let dim = dims(sizes.len(), 255, signs)[draw.below(sizes.len())];
                list = vec![dim];
                ("aten::prod.int_out", vec![Arg::int(dim), Arg::bool(keepdim), asked])
            }
            _ => {
                list.clear();
                ("aten::prod.out", vec![asked])
            }
        };
        let has_keepdim = more.len() == 3;
        let (result_sizes, groups) = groups(&input, &folded(sizes.len(), &list), keepdim && has_keepdim);
        let wants = groups.iter().map(|group| match which {
            0 => sum(group, result),
            1 | 2 => {
                let Want { num, scale } = sum(group, result);
                let count = group.len() as f64;
                Want { num: Num::Real(num.real() / count), scale: scale / count }
            }
            _ => product(group, result),
        });
        let mut args = vec![arg(&input, turns[0])];
        args.extend(more);
        args.push(out(result, &result_sizes, turns[1]));
        check(name, &args, &[Expected::new(&result_sizes, wants)], loss(result, 1e-6))?;
    }

    #[test]
    fn extremes_and_truth(
        which in 0usize..6,
        sizes in shapes(),
        dtype in any_type(),
        (chosen, signs, keepdim) in (any::<u8>(), any::<u8>(), any::<bool>()),
        seed in any::<u64>(),
        turns in any::<[bool; 2]>(),
    ) {
        let mut draw = Draw::new(seed);
        let input = draw.tensor(dtype, &sizes, Kind::Wild);
        let least = which % 2 == 1;
        let names = ["aten::amax.out", "aten::amin.out", "aten::any.dims_out", "aten::all.dims_out", "aten::max.unary_out", "aten::min.unary_out"];
        let list = if which >= 4 { vec![] } else { dims(sizes.len(), chosen, signs) };
        let mut over = folded(sizes.len(), &list);
        let mut args = vec![arg(&input, turns[0])];
        if which < 4 {
            // For truth an empty list names no dimension, and only `None` all.
            if list.is_empty() && (2..4).contains(&which) {
                let none = draw.flip();
                args.push(if none { Arg::None } else { Arg::Ints(vec![]) });
                over.fill(none);
            } else {
                args.push(Arg::Ints(list));
            }
            args.push(Arg::bool(keepdim));
        }
        let (result_sizes, groups) = groups(&input, &over, keepdim && which < 4);
        let asks = (2..4).contains(&which);
        let result = if asks { BOOL } else { dtype };
        args.push(out(result, &result_sizes, turns[1]));
        if !asks && groups.iter().any(Vec::is_empty) {
            return refused(names[which], &args);
        }
        let wants = groups.iter().map(|group| match which {
            2 => group.iter().any(|x| x.truth()).into(),
            3 => group.iter().all(|x| x.truth()).into(),
            _ => Want::from(extreme(group, least).0),
        });
        check(names[which], &args, &[Expected::new(&result_sizes, wants)], 0.0)?;
    }

    #[test]
    fn places_of_extremes(
        which in 0usize..4,
        sizes in shapes(),
        dtype in any_type(),
        keepdim in any::<bool>(),
        seed in any::<u64>(),
        turns in any::<[bool; 2]>(),
    ) {
        let mut draw = Draw::new(seed);
        let input = draw.tensor(dtype, &sizes, Kind::Wild);
        let (least, rank) = (which % 2 == 1, sizes.len() as i64);
        let whole = which < 2 && draw.below(4) == 0;
        let dim = draw.below(2 * rank.max(1) as usize) as i64 - rank.max(1);
        let over = folded(sizes.len(), &if whole { vec![] } else { vec![dim] });
        let (result_sizes, groups) = groups(&input, &over, keepdim);
        let name = ["aten::argmax.out", "aten::argmin.out", "aten::max.dim_max", "aten::min.dim_min"][which];
        let mut args = vec![arg(&input, turns[0]), if whole { Arg::None } else { Arg::int(dim) }, Arg::bool(keepdim)];
        if which >= 2 {
            args.push(out(dtype, &result_sizes, turns[1]));
        }
        args.push(out(LONG, &result_sizes, turns[1]));
        if groups.iter().any(Vec::is_empty) {
            return refused(name, &args);
        }
        let found: Vec<(Num, usize)> = groups.iter().map(|group| extreme(group, least)).collect();
        let places = Expected::new(&result_sizes, found.iter().map(|found| found.1));
        let expected = match which {
            0 | 1 => vec![places],
            _ => vec![Expected::new(&result_sizes, found.iter().map(|found| found.0)), places],
        };
        check(name, &args, &expected, 0.0)?;
    }

    #[test]
    fn variances(
        which in 0usize..3,
        sizes in shapes(),
        dtype in select(&FLOATS[..]),
        (chosen, signs, keepdim) in (any::<u8>(), any::<u8>(), any::<bool>()),
        correction in prop::option::of(prop_oneof![(0i128..3).prop_map(Num::Whole), Just(Num::Real(0.5))]),
        seed in any::<u64>(),
        turns in any::<[bool; 2]>(),
    ) {
        let mut draw = Draw::new(seed);
        let kind = if draw.below(3) == 0 { Kind::Wild } else { Kind::Tame };
        let mut input = draw.tensor(dtype, &sizes, kind);
        if which == 2 {
            // Next to a variance that is NaN, whether the mean is NaN depends on the position of infinity.
            for x in input.data.iter_mut().filter(|x| x.real().is_infinite()) {
                *x = Num::Real(f64::NAN);
            }
        }
        let list = dims(sizes.len(), chosen, signs);
        let (result_sizes, groups) = groups(&input, &folded(sizes.len(), &list), keepdim);
        let taken = match (which, correction) {
            (0, correction) => Num::Real(f64::from(u8::from(correction.is_some()))),
            (_, correction) => correction.unwrap_or(Num::Whole(1)),
        };
        let how = match which {
            0 => Arg::bool(correction.is_some()),
            _ => correction.map_or(Arg::None, super::binary::number),
        };
        let mut args = vec![arg(&input, turns[0]), Arg::Ints(list), how, Arg::bool(keepdim)];
        let name = ["aten::var.out", "aten::var.correction_out", "aten::var_mean.correction_out"][which];
        let (variances, means): (Vec<_>, Vec<_>) = groups.iter().map(|group| variance(group, fit(taken, ScalarType::DOUBLE).real())).unzip();
        let mut expected = vec![Expected::new(&result_sizes, variances)];
        args.push(out(dtype, &result_sizes, turns[1]));
        if which == 2 {
            args.push(out(dtype, &result_sizes, turns[1]));
            expected.push(Expected::new(&result_sizes, means));
        }
        check(name, &args, &expected, loss(dtype, 2e-6))?;
    }
}
