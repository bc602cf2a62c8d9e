//! Arithmetic and comparisons of numbers, for computing sizes and loop counters.
//!
//! Two integers give an integer, anything with a double a double. What has no result in the integers is an error, not a
//! crash: division by zero, and a quotient beyond the range.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::Scalar;

use crate::schema::{arguments, kernel};

// The operands of all; the result follows them.
arguments!("executorch_prim::add.Scalar"; A = "a", B = "b");
arguments!("executorch_prim::sym_ite.Scalar"; COND = "cond", CHOSEN = "a", OTHER = "b");

type Binary = fn(Scalar, Scalar) -> Result<Scalar, KernelError>;
type Unary = fn(Scalar) -> Result<Scalar, KernelError>;

/// Writes a result in the kind it has.
pub(super) fn write(cx: &mut KernelContext<'_>, arg: usize, value: Scalar) -> Result<(), KernelError> {
    match value {
        Scalar::Int(value) => cx.set_int(arg, value),
        Scalar::Double(value) => cx.set_double(arg, value),
        Scalar::Bool(value) => cx.set_bool(arg, value),
    }
}

fn binary(args: &Prepare<'_>, apply: Binary) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(B + 2)?;
    for arg in A..B + 2 {
        args.scalar_kind(arg)?;
    }
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let value = apply(cx.scalar(A)?, cx.scalar(B)?)?;
        write(cx, B + 1, value)
    }))
}

fn unary(args: &Prepare<'_>, apply: Unary) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(A + 2)?;
    for arg in A..A + 2 {
        args.scalar_kind(arg)?;
    }
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let value = apply(cx.scalar(A)?)?;
        write(cx, A + 1, value)
    }))
}

fn kinds(a: Scalar, b: Scalar) -> KernelError {
    KernelError::kind(format!("the operator does not take {a:?} and {b:?}"))
}

fn kind(a: Scalar) -> KernelError {
    KernelError::kind(format!("the operator does not take {a:?}"))
}

fn arithmetic(
    a: Scalar,
    b: Scalar,
    ints: fn(i64, i64) -> Result<i64, KernelError>,
    doubles: fn(f64, f64) -> f64,
) -> Result<Scalar, KernelError> {
    match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => ints(a, b).map(Scalar::Int),
        (Scalar::Bool(_), _) | (_, Scalar::Bool(_)) => Err(kinds(a, b)),
        _ => Ok(Scalar::Double(doubles(a.to_f64(), b.to_f64()))),
    }
}

fn quotient(a: i64, b: i64, result: Option<i64>) -> Result<i64, KernelError> {
    result.ok_or_else(|| KernelError::argument(format!("{a} divided by {b} is not an integer")))
}

fn floor_div_ints(a: i64, b: i64) -> Result<i64, KernelError> {
    let result = a
        .checked_div(b)
        .map(|quotient| if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient });
    quotient(a, b, result)
}

fn floor_div(a: f64, b: f64) -> f64 {
    edgepack_compute::number::Compute::floor_div(a, b)
}

fn order(
    a: Scalar,
    b: Scalar,
    ints: fn(i64, i64) -> bool,
    doubles: fn(f64, f64) -> bool,
) -> Result<Scalar, KernelError> {
    match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => Ok(Scalar::Bool(ints(a, b))),
        (Scalar::Bool(a), Scalar::Bool(b)) => Ok(Scalar::Bool(ints(a.into(), b.into()))),
        (Scalar::Bool(_), _) | (_, Scalar::Bool(_)) => Err(kinds(a, b)),
        _ => Ok(Scalar::Bool(doubles(a.to_f64(), b.to_f64()))),
    }
}

fn integers(a: Scalar, b: Scalar, apply: fn(i64, i64) -> Result<i64, KernelError>) -> Result<Scalar, KernelError> {
    match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => apply(a, b).map(Scalar::Int),
        _ => Err(kinds(a, b)),
    }
}

fn rounded(a: Scalar, round: fn(f64) -> f64) -> Result<Scalar, KernelError> {
    match a {
        Scalar::Double(value) => Ok(Scalar::Int(round(value) as i64)),
        _ => Err(kind(a)),
    }
}

fn negate(a: Scalar) -> Result<Scalar, KernelError> {
    match a {
        Scalar::Int(value) => Ok(Scalar::Int(value.wrapping_neg())),
        Scalar::Double(value) => Ok(Scalar::Double(-value)),
        Scalar::Bool(_) => Err(kind(a)),
    }
}

fn not(a: Scalar) -> Result<Scalar, KernelError> {
    match a {
        Scalar::Bool(value) => Ok(Scalar::Bool(!value)),
        _ => Err(kind(a)),
    }
}

fn choose(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(OTHER + 2)?;
    args.bool(COND)?;
    for arg in CHOSEN..OTHER + 2 {
        args.scalar_kind(arg)?;
    }
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let value = cx.scalar(if cx.bool(COND)? { CHOSEN } else { OTHER })?;
        write(cx, OTHER + 1, value)
    }))
}

fn true_div(a: Scalar, b: Scalar) -> Result<Scalar, KernelError> {
    match (a, b) {
        (Scalar::Bool(_), _) | (_, Scalar::Bool(_)) => Err(kinds(a, b)),
        _ => Ok(Scalar::Double(a.to_f64() / b.to_f64())),
    }
}

macro_rules! numbers {
    ($($name:literal => $count:ident $apply:expr;)*) => {
        /// The operators of this table.
        pub const KERNELS: &[&Kernel] = &[
            $(&kernel($name, Alias::Disjoint, |args| $count(args, $apply)),)*
            &kernel("executorch_prim::sym_ite.Scalar", Alias::Disjoint, choose),
        ];
    };
}

numbers! {
    "executorch_prim::add.Scalar" => binary |a, b| arithmetic(a, b, |a, b| Ok(a.wrapping_add(b)), |a, b| a + b);
    "executorch_prim::sub.Scalar" => binary |a, b| arithmetic(a, b, |a, b| Ok(a.wrapping_sub(b)), |a, b| a - b);
    "executorch_prim::mul.Scalar" => binary |a, b| arithmetic(a, b, |a, b| Ok(a.wrapping_mul(b)), |a, b| a * b);
    "executorch_prim::floordiv.Scalar" => binary |a, b| arithmetic(a, b, floor_div_ints, floor_div);
    "executorch_prim::truediv.Scalar" => binary true_div;
    "executorch_prim::floordiv.int" => binary |a, b| integers(a, b, |a, b| quotient(a, b, a.checked_div(b)));
    "executorch_prim::mod.int" => binary |a, b| integers(a, b, |a, b| quotient(a, b, a.checked_rem(b)));
    "executorch_prim::mod.Scalar" => binary |a, b| integers(a, b, |a, b| quotient(a, b, a.checked_rem(b)));
    "executorch_prim::sym_max.Scalar" => binary |a, b| integers(a, b, |a, b| Ok(a.max(b)));
    "executorch_prim::sym_min.Scalar" => binary |a, b| integers(a, b, |a, b| Ok(a.min(b)));
    "executorch_prim::eq.Scalar" => binary |a, b| order(a, b, |a, b| a == b, |a, b| a == b);
    "executorch_prim::gt.Scalar" => binary |a, b| order(a, b, |a, b| a > b, |a, b| a > b);
    "executorch_prim::lt.Scalar" => binary |a, b| order(a, b, |a, b| a < b, |a, b| a < b);
    "executorch_prim::ge.Scalar" => binary |a, b| order(a, b, |a, b| a >= b, |a, b| a >= b);
    "executorch_prim::le.Scalar" => binary |a, b| order(a, b, |a, b| a <= b, |a, b| a <= b);
    "executorch_prim::neg.Scalar" => unary negate;
    "executorch_prim::sym_not.Scalar" => unary not;
    "executorch_prim::sym_float.Scalar" => unary |a| Ok(Scalar::Double(a.to_f64()));
    "executorch_prim::sym_int.Scalar" => unary |a| Ok(Scalar::Int(a.to_i64()));
    "executorch_prim::ceil.Scalar" => unary |a| rounded(a, f64::ceil);
    "executorch_prim::round.Scalar" => unary |a| rounded(a, f64::round_ties_even);
    "executorch_prim::trunc.Scalar" => unary |a| rounded(a, f64::trunc);
}
