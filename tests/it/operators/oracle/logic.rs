//! Comparisons, truth, bits, choices and bounds.

use edgepack_executor::call::Arg;
use edgepack_format::scalar::ScalarType;
use proptest::prelude::*;
use proptest::sample::select;

use super::binary::{dtypes, number, wider, with_number};
use super::number::{BOOL, FLOATS, INTS, Num, UNSIGNED, computed, fit, is_float, promote, range};
use super::tensor::{Draw, Kind, broadcast, indices, operands, shapes};
use super::{Expected, arg, check, config, out, refused};

const COMPARISONS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];

fn compare(how: &str, a: Num, b: Num) -> bool {
    let order = match (a, b) {
        (Num::Whole(a), Num::Whole(b)) => Some(a.cmp(&b)),
        (a, b) => a.real().partial_cmp(&b.real()),
    };
    match how {
        "eq" => order.is_some_and(|order| order.is_eq()),
        "ne" => order.is_none_or(|order| order.is_ne()),
        "lt" => order.is_some_and(|order| order.is_lt()),
        "le" => order.is_some_and(|order| order.is_le()),
        "gt" => order.is_some_and(|order| order.is_gt()),
        _ => order.is_some_and(|order| order.is_ge()),
    }
}

fn bits(how: &str, a: i128, b: i128) -> i128 {
    match how {
        "and" => a & b,
        "or" => a | b,
        _ => a ^ b,
    }
}

fn shift(left: bool, a: i128, by: i128, dtype: ScalarType) -> i128 {
    let (least, most) = range(dtype);
    let width = i128::from((most - least + 1).trailing_zeros());
    match (left, (0..width).contains(&by)) {
        (true, true) => a << by,
        (true, false) => 0,
        (false, true) => a >> by,
        (false, false) => -i128::from(a < 0),
    }
}

fn any_type() -> impl Strategy<Value = ScalarType> {
    prop_oneof![4 => dtypes(), 1 => select(&UNSIGNED[..])]
}

/// A type that answers of yes and no are stored as: mostly bools.
fn answers() -> impl Strategy<Value = ScalarType> {
    prop_oneof![4 => Just(BOOL), 1 => select(&INTS[..]), 1 => select(&FLOATS[..])]
}

proptest! {
    #![proptest_config(config(800))]

    #[test]
    fn comparisons(
        how in select(&COMPARISONS[..]),
        shapes in operands(2),
        (a, b) in prop_oneof![1 => (dtypes(), dtypes()), 1 => dtypes().prop_map(|dtype| (dtype, dtype))],
        result in answers(),
        seed in any::<u64>(),
        turns in any::<[bool; 3]>(),
    ) {
        let mut draw = Draw::new(seed);
        let compute = computed(promote(a, b).expect("a common type"));
        let (left, right) = (draw.tensor(a, &shapes[0], Kind::Wild), draw.tensor(b, &shapes[1], Kind::Wild));
        let sizes = broadcast(&shapes);
        let wants = indices(&sizes).into_iter().map(|index| {
            compare(how, fit(left.at(&index), compute), fit(right.at(&index), compute))
        });
        let args = [arg(&left, turns[0]), arg(&right, turns[1]), out(result, &sizes, turns[2])];
        check(&format!("aten::{how}.Tensor_out"), &args, &[Expected::new(&sizes, wants)], 0.0)?;

        let value = if draw.flip() { Num::Whole(2) } else { Num::Real(2.5) };
        let compute = computed(with_number(a, value));
        let wants = left.data.iter().map(|&x| compare(how, fit(x, compute), fit(value, compute)));
        let args = [arg(&left, turns[0]), number(value), out(result, &shapes[0], turns[2])];
        check(&format!("aten::{how}.Scalar_out"), &args, &[Expected::new(&shapes[0], wants)], 0.0)?;
    }

    #[test]
    fn truth(
        how in select(vec!["and", "or", "xor"]),
        shapes in operands(2),
        (a, b) in (any_type(), any_type()),
        result in answers(),
        seed in any::<u64>(),
        turns in any::<[bool; 3]>(),
    ) {
        let mut draw = Draw::new(seed);
        let (left, right) = (draw.tensor(a, &shapes[0], Kind::Wild), draw.tensor(b, &shapes[1], Kind::Wild));
        let sizes = broadcast(&shapes);
        let wants = indices(&sizes).into_iter().map(|index| {
            bits(how, left.at(&index).truth().into(), right.at(&index).truth().into()) != 0
        });
        let args = [arg(&left, turns[0]), arg(&right, turns[1]), out(result, &sizes, turns[2])];
        check(&format!("aten::logical_{how}.out"), &args, &[Expected::new(&sizes, wants)], 0.0)?;

        let wants = left.data.iter().map(|x| !x.truth());
        let args = [arg(&left, turns[0]), out(result, &shapes[0], turns[2])];
        check("aten::logical_not.out", &args, &[Expected::new(&shapes[0], wants)], 0.0)?;
    }

    #[test]
    fn bits_of_integers(
        how in select(vec!["and", "or", "xor", "left", "right"]),
        shapes in operands(2),
        (a, b) in (dtypes(), dtypes()),
        seed in any::<u64>(),
        turns in any::<[bool; 3]>(),
    ) {
        let mut draw = Draw::new(seed);
        let common = promote(a, b).expect("a common type");
        let (left, right) = (draw.tensor(a, &shapes[0], Kind::Wild), draw.tensor(b, &shapes[1], Kind::Wild));
        let sizes = broadcast(&shapes);
        let args = [arg(&left, turns[0]), arg(&right, turns[1]), out(common, &sizes, turns[2])];
        let shifts = matches!(how, "left" | "right");
        let name = if shifts { format!("aten::bitwise_{how}_shift.Tensor_out") } else { format!("aten::bitwise_{how}.Tensor_out") };
        if is_float(common) || shifts && common == BOOL {
            return refused(&name, &args);
        }
        let wants = indices(&sizes).into_iter().map(|index| {
            let (a, b) = (fit(left.at(&index), common).whole(), fit(right.at(&index), common).whole());
            let x = if shifts { shift(how == "left", a, b, common) } else { bits(how, a, b) };
            fit(Num::Whole(x), common)
        });
        check(&name, &args, &[Expected::new(&sizes, wants)], 0.0)?;
    }

    #[test]
    fn choices(
        shapes in operands(3),
        (a, b) in (dtypes(), dtypes()),
        mask in select(vec![BOOL, ScalarType::BYTE]),
        seed in any::<u64>(),
        turns in any::<[bool; 4]>(),
    ) {
        let mut draw = Draw::new(seed);
        let common = promote(a, b).expect("a common type");
        let compute = computed(common);
        let mask = draw.tensor(mask, &shapes[0], Kind::Tame);
        let kind = if is_float(a) == is_float(b) { Kind::Wild } else { Kind::Tame };
        let (left, right) = (draw.tensor(a, &shapes[1], kind), draw.tensor(b, &shapes[2], kind));
        let sizes = broadcast(&shapes);
        let wants = indices(&sizes).into_iter().map(|index| {
            fit(if mask.at(&index).truth() { left.at(&index) } else { right.at(&index) }, compute)
        });
        let result = wider(common, &mut draw);
        let args = [arg(&mask, turns[0]), arg(&left, turns[1]), arg(&right, turns[2]), out(result, &sizes, turns[3])];
        check("aten::where.self_out", &args, &[Expected::new(&sizes, wants)], 0.0)?;
    }

    #[test]
    fn bounds(
        sizes in shapes(),
        dtype in prop_oneof![select(&INTS[..]), select(&FLOATS[..])],
        bounds in prop::array::uniform2(prop::option::of(prop_oneof![
            (0i128..6).prop_map(Num::Whole),
            (-12i32..20).prop_map(|x| Num::Real(f64::from(x) / 4.0)),
        ])),
        seed in any::<u64>(),
        turns in any::<[bool; 2]>(),
    ) {
        prop_assume!(bounds.iter().any(Option::is_some));
        let common = bounds.iter().flatten().fold(dtype, |dtype, &bound| with_number(dtype, bound));
        let compute = computed(common);
        let kind = if common == dtype { Kind::Wild } else { Kind::Tame };
        let input = Draw::new(seed).tensor(dtype, &sizes, kind);
        let beyond = |how: &str, x: Num, bound: Option<Num>| match bound.map(|bound| fit(bound, compute)) {
            Some(bound) if compare(how, x, bound) => bound,
            _ => x,
        };
        let wants = input.data.iter().map(|&x| beyond("gt", beyond("lt", fit(x, compute), bounds[0]), bounds[1]));
        let [least, most] = bounds.map(|bound| bound.map_or(Arg::None, number));
        let args = [arg(&input, turns[0]), least, most, out(common, &sizes, turns[1])];
        check("aten::clamp.out", &args, &[Expected::new(&sizes, wants)], 1e-7)?;
    }
}
