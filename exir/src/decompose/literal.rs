//! Literals of formulas, which are computed while a formula is written.
//!
//! Invariant: sums, differences and products of whole numbers are whole, or none where they overflow.

use super::formula::Infix;
use crate::graph::Argument;

/// The number that a literal is; a truth value counts as 0 or 1.
pub(super) fn number_of(argument: &Argument) -> Option<f64> {
    match argument {
        Argument::Int(number) => Some(*number as f64),
        Argument::Float(number) => Some(*number),
        Argument::Bool(truth) => Some(f64::from(u8::from(*truth))),
        _ => None,
    }
}

/// Returns the result of an operator on two literals.
pub(super) fn literal(infix: Infix, left: &Argument, right: &Argument) -> Option<Argument> {
    match (infix, left, right) {
        (Infix::Equal, _, _) if number_of(left).is_none() || number_of(right).is_none() => {
            return Some(Argument::Bool(left == right));
        }
        (Infix::NotEqual, _, _) if number_of(left).is_none() || number_of(right).is_none() => {
            return Some(Argument::Bool(left != right));
        }
        (Infix::And, Argument::Bool(a), Argument::Bool(b)) => return Some(Argument::Bool(*a && *b)),
        (Infix::Or, Argument::Bool(a), Argument::Bool(b)) => return Some(Argument::Bool(*a || *b)),
        (Infix::Plus, Argument::Int(a), Argument::Int(b)) => return a.checked_add(*b).map(Argument::Int),
        (Infix::Minus, Argument::Int(a), Argument::Int(b)) => return a.checked_sub(*b).map(Argument::Int),
        (Infix::Times, Argument::Int(a), Argument::Int(b)) => return a.checked_mul(*b).map(Argument::Int),
        _ => {}
    }
    let (a, b) = (number_of(left)?, number_of(right)?);
    Some(match infix {
        Infix::Less => Argument::Bool(a < b),
        Infix::LessEqual => Argument::Bool(a <= b),
        Infix::Greater => Argument::Bool(a > b),
        Infix::GreaterEqual => Argument::Bool(a >= b),
        Infix::Equal => Argument::Bool(a == b),
        Infix::NotEqual => Argument::Bool(a != b),
        Infix::Plus => Argument::Float(a + b),
        Infix::Minus => Argument::Float(a - b),
        Infix::Times => Argument::Float(a * b),
        Infix::Over => Argument::Float(a / b),
        Infix::And | Infix::Or => return None,
    })
}
