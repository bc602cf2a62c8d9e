//! Sums, products, quotients, remainders, powers and extremes of two tensors that broadcast, or of a tensor and a number.

use edgepack_executor::call::Arg;
use edgepack_format::scalar::ScalarType;
use proptest::prelude::*;
use proptest::sample::select;

use super::number::{BOOL, FLOAT, FLOATS, INTS, LONG, Num, computed, fit, is_float, loss, promote, wrap};
use super::tensor::{Draw, Kind, broadcast, indices, operands};
use super::{Expected, Want, arg, check, config, out, refused};

/// Function that an operator computes of two numbers of a common type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Add,
    Sub,
    Rsub,
    Mul,
    Div,
    TruncDiv,
    FloorDiv,
    Fmod,
    Remainder,
    Max,
    Min,
    Pow,
}

const TENSORS: [(&str, What, Option<&str>); 12] = [
    ("aten::add.out", What::Add, None),
    ("aten::sub.out", What::Sub, None),
    ("aten::mul.out", What::Mul, None),
    ("aten::div.out", What::Div, None),
    ("aten::div.out_mode", What::TruncDiv, Some("trunc")),
    ("aten::div.out_mode", What::FloorDiv, Some("floor")),
    ("aten::floor_divide.out", What::FloorDiv, None),
    ("aten::fmod.Tensor_out", What::Fmod, None),
    ("aten::remainder.Tensor_out", What::Remainder, None),
    ("aten::maximum.out", What::Max, None),
    ("aten::minimum.out", What::Min, None),
    ("aten::pow.Tensor_Tensor_out", What::Pow, None),
];

const NUMBERS: [(&str, What, Option<&str>); 10] = [
    ("aten::add.Scalar_out", What::Add, None),
    ("aten::sub.Scalar_out", What::Sub, None),
    ("aten::rsub.Scalar_out", What::Rsub, None),
    ("aten::mul.Scalar_out", What::Mul, None),
    ("aten::div.Scalar_out", What::Div, None),
    ("aten::div.Scalar_mode_out", What::TruncDiv, Some("trunc")),
    ("aten::div.Scalar_mode_out", What::FloorDiv, Some("floor")),
    ("aten::fmod.Scalar_out", What::Fmod, None),
    ("aten::remainder.Scalar_out", What::Remainder, None),
    ("aten::pow.Tensor_Scalar_out", What::Pow, None),
];

impl What {
    fn has_alpha(self) -> bool {
        matches!(self, What::Add | What::Sub | What::Rsub)
    }

    fn divides(self) -> bool {
        matches!(self, What::Div | What::TruncDiv | What::FloorDiv | What::Fmod | What::Remainder)
    }

    /// Returns whether the function takes bools as numbers.
    fn takes_bools(self) -> bool {
        matches!(self, What::Add | What::Mul | What::Div | What::Max | What::Min)
    }

    fn of(self, a: Num, b: Num, alpha: Num, compute: ScalarType) -> Want {
        match (a, b) {
            (Num::Whole(a), Num::Whole(b)) => {
                Num::Whole(wrap(self.of_whole(a, b, alpha.whole(), compute), compute)).into()
            }
            (a, b) => self.of_real(a.real(), b.real(), alpha.real()),
        }
    }

    fn of_whole(self, a: i128, b: i128, alpha: i128, compute: ScalarType) -> i128 {
        match self {
            What::Add => a + alpha * b,
            What::Sub => a - alpha * b,
            What::Rsub => b - alpha * a,
            What::Mul => a * b,
            What::Div => unreachable!("quotients are floats"),
            What::TruncDiv => a / b,
            What::FloorDiv => a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0),
            What::Fmod => a % b,
            What::Remainder => a - b * (a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0)),
            What::Max => a.max(b),
            What::Min => a.min(b),
            What::Pow if b < 0 => match a {
                1 => 1,
                -1 if b % 2 == 0 => 1,
                -1 => -1,
                _ => 0,
            },
            // Powers repeat after fewer factors than this, or are 0 from there on.
            What::Pow => (0..if b < 300 { b } else { 256 + b % 256 }).fold(1, |power, _| wrap(power * a, compute)),
        }
    }

    fn of_real(self, a: f64, b: f64, alpha: f64) -> Want {
        let num = match self {
            What::Add => a + alpha * b,
            What::Sub => a - alpha * b,
            What::Rsub => b - alpha * a,
            What::Mul => a * b,
            What::Div => a / b,
            What::TruncDiv => (a / b).trunc(),
            What::FloorDiv => floor_div(a, b),
            What::Fmod => a % b,
            What::Remainder if a % b != 0.0 && (a % b < 0.0) != (b < 0.0) => a % b + b,
            What::Remainder => a % b,
            What::Max | What::Min if a.is_nan() || b.is_nan() => f64::NAN,
            What::Max => a.max(b),
            What::Min => a.min(b),
            What::Pow => a.powf(b),
        };
        let terms = if self.has_alpha() { a.abs() + b.abs() * (1.0 + alpha.abs()) } else { 0.0 };
        Want { num: Num::Real(num), scale: if terms.is_finite() { terms } else { 0.0 } }
    }
}

/// PyTorch's floor division: the whole quotient of what the exact remainder leaves.
fn floor_div(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        return a / b;
    }
    let rest = a % b;
    let steps = (a - rest) / b - if rest != 0.0 && (b < 0.0) != (rest < 0.0) { 1.0 } else { 0.0 };
    if steps == 0.0 || !steps.is_finite() { steps } else { steps.round() }
}

/// An output type that holds results of a type: mostly itself.
pub fn wider(dtype: ScalarType, draw: &mut Draw) -> ScalarType {
    let floats = [ScalarType::FLOAT, ScalarType::DOUBLE, ScalarType::HALF];
    match draw.below(8) {
        0 => floats[draw.below(3)],
        1 if !is_float(dtype) && dtype != BOOL => INTS[draw.below(5)],
        _ => dtype,
    }
}

/// The type a quotient is computed in and stored as.
fn quotient(common: ScalarType, draw: &mut Draw) -> (ScalarType, ScalarType) {
    if is_float(common) {
        return (computed(common), wider(common, draw));
    }
    let out = FLOATS[draw.below(4)];
    (computed(out), out)
}

pub fn dtypes() -> impl Strategy<Value = ScalarType> {
    prop_oneof![1 => Just(BOOL), 4 => select(&INTS[..]), 4 => select(&FLOATS[..])]
}

/// Kind of elements for operands of two types: tame if a number can be lost in a conversion, so that the result depends
/// on where it is converted.
fn tame(what: What, a: ScalarType, b: ScalarType) -> Kind {
    // Whole numbers at the ends of their range turn into floats that 16 bits do not hold.
    let mixed = is_float(a) != is_float(b) || what == What::Div;
    if mixed { Kind::Tame } else { Kind::Wild }
}

proptest! {
    #![proptest_config(config(2500))]

    #[test]
    fn two_tensors(
        (name, what, mode) in select(&TENSORS[..]),
        shapes in operands(2),
        (a, b) in prop_oneof![1 => (dtypes(), dtypes()), 1 => dtypes().prop_map(|dtype| (dtype, dtype))],
        seed in any::<u64>(),
        turns in any::<[bool; 3]>(),
    ) {
        let mut draw = Draw::new(seed);
        let common = promote(a, b).expect("a common type");
        let kind = tame(what, a, b);
        let whole = !is_float(common);
        // A whole power is as long a loop as its exponent is great.
        let small = what == What::Pow || what.divides() && whole;
        let left = draw.tensor(a, &shapes[0], kind);
        let right = draw.tensor(b, &shapes[1], match small {
            true if what == What::Pow => Kind::Tame,
            true => Kind::NotZero,
            false => kind,
        });
        let sizes = broadcast(&shapes);
        let (compute, result) = match what {
            What::Div => quotient(common, &mut draw),
            _ => (computed(common), wider(common, &mut draw)),
        };
        let alpha = match draw.below(3) {
            0 => Num::Whole(1),
            1 if is_float(common) => Num::Real(-0.5),
            _ if common == BOOL => Num::Whole(1),
            _ => Num::Whole(3),
        };
        let mut args = vec![arg(&left, turns[0]), arg(&right, turns[1])];
        if what.has_alpha() {
            args.push(number(alpha));
        }
        args.extend(mode.map(|mode| Arg::Text(mode.into())));
        args.push(out(result, &sizes, turns[2]));
        if common == BOOL && !what.takes_bools() {
            return refused(name, &args);
        }
        let wants = indices(&sizes).into_iter().map(|index| {
            let (a, b) = (fit(left.at(&index), compute), fit(right.at(&index), compute));
            what.of(a, b, alpha, compute)
        });
        check(name, &args, &[Expected::new(&sizes, wants)], loss(compute, 1e-6))?;
    }

    #[test]
    fn a_tensor_and_a_number(
        (name, what, mode) in select(&NUMBERS[..]),
        sizes in super::tensor::shapes(),
        dtype in prop_oneof![select(&INTS[..]), select(&FLOATS[..])],
        value in prop_oneof![(1i128..6).prop_map(Num::Whole), (1i32..20).prop_map(|x| Num::Real(f64::from(x) / 4.0))],
        seed in any::<u64>(),
        turns in any::<[bool; 2]>(),
    ) {
        let mut draw = Draw::new(seed);
        let common = with_number(dtype, value);
        // The exponent has to be of the kind of the base.
        let kind = if is_float(common) == is_float(dtype) && what != What::Div { Kind::Wild } else { Kind::Tame };
        let input = draw.tensor(dtype, &sizes, kind);
        let (compute, result) = match what {
            What::Div => quotient(common, &mut draw),
            _ => (computed(common), wider(common, &mut draw)),
        };
        let alpha = if is_float(common) && draw.flip() { Num::Real(0.25) } else { Num::Whole(2) };
        let mut args = vec![arg(&input, turns[0]), number(value)];
        if what.has_alpha() {
            args.push(number(alpha));
        }
        args.extend(mode.map(|mode| Arg::Text(mode.into())));
        args.push(out(result, &sizes, turns[1]));
        let each = |&x: &Num| what.of(fit(x, compute), fit(value, compute), alpha, compute);
        check(name, &args, &[Expected::new(&sizes, input.data.iter().map(each))], loss(compute, 1e-6))?;
    }

    #[test]
    fn a_number_to_the_power_of_a_tensor(
        sizes in super::tensor::shapes(),
        dtype in select(&FLOATS[..]),
        base in 1i32..12,
        seed in any::<u64>(),
    ) {
        let base = f64::from(base) / 4.0;
        let exponent = Draw::new(seed).tensor(dtype, &sizes, Kind::Wild);
        let args = [Arg::double(base), arg(&exponent, false), out(dtype, &sizes, false)];
        let wants = exponent.data.iter().map(|x| base.powf(x.real()));
        check("aten::pow.Scalar_out", &args, &[Expected::new(&sizes, wants)], loss(dtype, 1e-6))?;
    }
}

/// A number as an argument.
pub fn number(num: Num) -> Arg {
    match num {
        Num::Whole(x) => Arg::int(x as i64),
        Num::Real(x) => Arg::double(x),
    }
}

/// The type of a tensor and a number together.
pub fn with_number(dtype: ScalarType, num: Num) -> ScalarType {
    match num {
        Num::Real(_) if !is_float(dtype) => FLOAT,
        Num::Whole(_) if dtype == BOOL => LONG,
        _ => dtype,
    }
}
