//! Numbers as the oracle has them: element types, their ranges and rounding, promotion, and when two are the same.

use edgepack_format::scalar::ScalarType;
use half::{bf16, f16};

use super::Want;

pub const BOOL: ScalarType = ScalarType::BOOL;
pub const LONG: ScalarType = ScalarType::LONG;
pub const FLOAT: ScalarType = ScalarType::FLOAT;
pub const INTS: [ScalarType; 5] =
    [ScalarType::BYTE, ScalarType::CHAR, ScalarType::SHORT, ScalarType::INT, ScalarType::LONG];
pub const UNSIGNED: [ScalarType; 3] = [ScalarType::UINT16, ScalarType::UINT32, ScalarType::UINT64];
pub const FLOATS: [ScalarType; 4] = [ScalarType::HALF, ScalarType::BFLOAT16, ScalarType::FLOAT, ScalarType::DOUBLE];

/// One element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Num {
    Whole(i128),
    Real(f64),
}

impl Num {
    pub fn real(self) -> f64 {
        match self {
            Num::Whole(x) => x as f64,
            Num::Real(x) => x,
        }
    }

    pub fn whole(self) -> i128 {
        match self {
            Num::Whole(x) => x,
            Num::Real(x) => x as i128,
        }
    }

    /// Everything but zero.
    pub fn truth(self) -> bool {
        self.real() != 0.0
    }

    pub fn is_nan(self) -> bool {
        self.real().is_nan()
    }
}

pub fn is_float(dtype: ScalarType) -> bool {
    FLOATS.contains(&dtype)
}

/// Bits of an integer type, and whether it has a sign.
fn width(dtype: ScalarType) -> Option<(u32, bool)> {
    use ScalarType as S;
    Some(match dtype {
        S::BYTE => (8, false),
        S::CHAR => (8, true),
        S::SHORT => (16, true),
        S::INT => (32, true),
        S::LONG => (64, true),
        S::UINT16 => (16, false),
        S::UINT32 => (32, false),
        S::UINT64 => (64, false),
        _ => return None,
    })
}

/// The least and the greatest number of an integer type.
pub fn range(dtype: ScalarType) -> (i128, i128) {
    match width(dtype) {
        Some((bits, true)) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        Some((bits, false)) => (0, (1 << bits) - 1),
        None => (0, 1),
    }
}

/// An integer modulo the range of its type.
pub fn wrap(x: i128, dtype: ScalarType) -> i128 {
    if dtype == BOOL {
        return (x != 0).into();
    }
    let (least, most) = range(dtype);
    (x - least).rem_euclid(most - least + 1) + least
}

/// The nearest number of a type.
pub fn fit(num: Num, dtype: ScalarType) -> Num {
    use ScalarType as S;
    match (dtype, num) {
        (S::HALF, num) => Num::Real(f16::from_f64(num.real()).into()),
        (S::BFLOAT16, num) => Num::Real(bf16::from_f64(num.real()).into()),
        (S::FLOAT, num) => Num::Real((num.real() as f32).into()),
        (S::DOUBLE, num) => Num::Real(num.real()),
        (dtype, Num::Whole(x)) => Num::Whole(wrap(x, dtype)),
        (BOOL, num) => Num::Whole(num.truth().into()),
        (dtype, Num::Real(x)) => Num::Whole(wrap(x as i128, dtype)),
    }
}

/// The common type of two tensors by PyTorch's table, if they have one.
pub fn promote(a: ScalarType, b: ScalarType) -> Option<ScalarType> {
    use ScalarType as S;
    if a == b || b == BOOL {
        return Some(a);
    }
    if a == BOOL {
        return Some(b);
    }
    Some(match (width(a), width(b)) {
        (None, None) if a == S::DOUBLE || b == S::DOUBLE => S::DOUBLE,
        (None, None) => S::FLOAT,
        (None, Some(_)) => a,
        (Some(_), None) => b,
        // The wider unsigned types have no common type with other integers.
        _ if UNSIGNED.contains(&a) || UNSIGNED.contains(&b) => return None,
        (Some((8, false)), Some((8, true))) | (Some((8, true)), Some((8, false))) => S::SHORT,
        (Some((x, _)), Some((y, _))) => {
            if x > y {
                a
            } else {
                b
            }
        }
    })
}

/// The type a common type is computed in: 16-bit floats are computed as `f32`.
pub fn computed(dtype: ScalarType) -> ScalarType {
    if matches!(dtype, ScalarType::HALF | ScalarType::BFLOAT16) { FLOAT } else { dtype }
}

/// Part of the magnitude of its terms that a result loses: at most 1e-12 in `f64`, else `single`.
pub fn loss(compute: ScalarType, single: f64) -> f64 {
    if compute == ScalarType::DOUBLE { single.min(1e-12) } else { single }
}

/// The distance of 1 from the next number.
fn epsilon(dtype: ScalarType) -> f64 {
    match dtype {
        ScalarType::HALF => 1.0 / 1024.0,
        ScalarType::BFLOAT16 => 1.0 / 128.0,
        ScalarType::FLOAT => f32::EPSILON.into(),
        _ => 0.0,
    }
}

/// Returns whether a result of this type is the one that is wanted, give or take what is lost by rounding it once, and
/// this much of the magnitude of its terms.
pub fn near(have: Num, want: Want, dtype: ScalarType, slack: f64) -> bool {
    let rounded = fit(want.num, dtype);
    if !is_float(dtype) {
        return have == rounded;
    }
    let (have, rounded, want_num) = (have.real(), rounded.real(), want.num.real());
    if have == rounded || have.is_nan() && rounded.is_nan() {
        return true;
    }
    let lost = epsilon(dtype) * want_num.abs() + slack * (want_num.abs() + want.scale);
    // Below the least normal numbers digits are lost, too.
    let least = if dtype == ScalarType::HALF { 1e-7 } else { 1e-37 };
    (have - want_num).abs() <= lost + least
}
