//! Functions of one number.

use edgepack_executor::call::Arg;
use proptest::prelude::*;
use proptest::sample::select;

use super::binary::{dtypes, wider};
use super::number::{BOOL, FLOATS, INTS, Num, computed, fit, is_float, loss, wrap};
use super::tensor::{Draw, Kind, shapes};
use super::{Expected, Want, arg, check, config, out};

/// Functions that keep the type of their argument.
const KEEPING: [&str; 8] = ["abs", "neg", "relu", "sign", "floor", "ceil", "trunc", "round"];

/// A name, the function it computes, and what `f32` loses of the result besides the rounding.
type Function = (&'static str, fn(f64) -> f64, f64);

/// Functions whose result is a float, whatever their argument; and questions, whose result is a bool.
const FLOATING: [Function; 24] = [
    ("exp", f64::exp, 2e-6),
    ("expm1", f64::exp_m1, 1e-6),
    ("log", f64::ln, 1e-6),
    ("log1p", f64::ln_1p, 1e-6),
    ("log2", f64::log2, 1e-6),
    ("log10", f64::log10, 1e-6),
    ("sqrt", f64::sqrt, 1e-7),
    ("rsqrt", |x| 1.0 / x.sqrt(), 1e-6),
    ("reciprocal", |x| 1.0 / x, 1e-7),
    ("sin", f64::sin, 1e-6),
    ("cos", f64::cos, 1e-6),
    ("tan", f64::tan, 1e-6),
    ("asin", f64::asin, 1e-6),
    ("acos", f64::acos, 1e-6),
    ("atan", f64::atan, 1e-6),
    ("sinh", f64::sinh, 1e-6),
    ("cosh", f64::cosh, 1e-6),
    ("tanh", f64::tanh, 2e-6),
    ("asinh", f64::asinh, 1e-6),
    ("acosh", f64::acosh, 1e-6),
    ("atanh", f64::atanh, 1e-6),
    ("sigmoid", |x| 1.0 / (1.0 + (-x).exp()), 2e-6),
    ("isnan", |x| f64::from(u8::from(x.is_nan())), 0.0),
    ("isinf", |x| f64::from(u8::from(x.is_infinite())), 0.0),
];

fn keeping(name: &str, x: Num) -> Num {
    match x {
        Num::Whole(x) => Num::Whole(match name {
            "abs" => x.abs(),
            "neg" => -x,
            "relu" => x.max(0),
            "sign" => x.signum(),
            _ => x,
        }),
        Num::Real(x) => Num::Real(match name {
            "abs" => x.abs(),
            "neg" => -x,
            "relu" if x < 0.0 => 0.0,
            "sign" if x > 0.0 => 1.0,
            "sign" if x < 0.0 => -1.0,
            "floor" => x.floor(),
            "ceil" => x.ceil(),
            "trunc" => x.trunc(),
            "round" => x.round_ties_even(),
            _ => x,
        }),
    }
}

/// The error function, by a series without signs that cancel; beyond 6 it is 1 as far as can be told.
fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 || x.is_nan() {
        return if x.is_nan() { x } else { x.signum() };
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..300 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp()
}

fn gelu(x: f64, by_tanh: bool) -> f64 {
    if by_tanh {
        let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
        return 0.5 * x * (1.0 + inner.tanh());
    }
    0.5 * x * (1.0 + erf(x / 2f64.sqrt()))
}

proptest! {
    #![proptest_config(config(1200))]

    #[test]
    fn functions_that_keep_the_type(
        name in select(&KEEPING[..]),
        sizes in shapes(),
        dtype in prop_oneof![select(&INTS[..]), select(&FLOATS[..])],
        seed in any::<u64>(),
        turns in any::<[bool; 2]>(),
    ) {
        let input = Draw::new(seed).tensor(dtype, &sizes, Kind::Wild);
        let wants = input.data.iter().map(|&x| match keeping(name, x) {
            Num::Whole(x) => Num::Whole(wrap(x, dtype)),
            real => real,
        });
        let args = [arg(&input, turns[0]), out(dtype, &sizes, turns[1])];
        check(&format!("aten::{name}.out"), &args, &[Expected::new(&sizes, wants)], 0.0)?;
    }

    #[test]
    fn functions_that_give_floats(
        (name, function, slack) in select(&FLOATING[..]),
        sizes in shapes(),
        dtype in dtypes(),
        seed in any::<u64>(),
        turns in any::<[bool; 2]>(),
    ) {
        let mut draw = Draw::new(seed);
        let input = draw.tensor(dtype, &sizes, Kind::Wild);
        let asks = name.starts_with("is");
        let result = match asks {
            true => BOOL,
            false if is_float(dtype) => wider(dtype, &mut draw),
            false => FLOATS[draw.below(4)],
        };
        let compute = if is_float(dtype) || asks { computed(dtype) } else { computed(result) };
        let wants = input.data.iter().map(|&x| function(fit(x, compute).real()));
        let args = [arg(&input, turns[0]), out(result, &sizes, turns[1])];
        check(&format!("aten::{name}.out"), &args, &[Expected::new(&sizes, wants)], loss(compute, slack))?;
    }

    #[test]
    fn activations(
        which in 0usize..6,
        sizes in shapes(),
        dtype in select(&FLOATS[..]),
        seed in any::<u64>(),
        turns in any::<[bool; 2]>(),
    ) {
        let input = Draw::new(seed).tensor(dtype, &sizes, Kind::Wild);
        let text = |text: &str| Arg::Text(text.into());
        type Call = (&'static str, Vec<Arg>, fn(f64) -> f64);
        let (name, more, function): Call = match which {
            0 => ("aten::erf.out", vec![], erf),
            1 => ("aten::gelu.out", vec![text("none")], |x| gelu(x, false)),
            2 => ("aten::gelu.out", vec![text("tanh")], |x| gelu(x, true)),
            3 => ("aten::leaky_relu.out", vec![Arg::double(0.25)], |x| if x > 0.0 { x } else { x * 0.25 }),
            4 => (
                "aten::elu.out",
                vec![Arg::double(1.5), Arg::double(2.0), Arg::int(1)],
                |x| 2.0 * if x > 0.0 { x } else { 1.5 * x.exp_m1() },
            ),
            _ => (
                "aten::hardtanh.out",
                vec![Arg::int(-1), Arg::double(2.5)],
                |x| x.clamp(-1.0, 2.5),
            ),
        };
        let mut args = vec![arg(&input, turns[0])];
        args.extend(more);
        args.push(out(dtype, &sizes, turns[1]));
        // A result that cancels against 1 is exact only in proportion to the argument.
        let wants = input.data.iter().map(|x| {
            let x = x.real();
            Want { num: Num::Real(function(x)), scale: if x.is_finite() { x.abs().min(1.0) } else { 0.0 } }
        });
        check(name, &args, &[Expected::new(&sizes, wants)], loss(dtype, 2e-6))?;
    }
}
