//! The element type an operator computes in: PyTorch's promotion, as ExecuTorch applies it.
//!
//! Tensors of rank 0 count like any other tensor. A number counts only by its category: a float lifts integers and
//! bools to FLOAT, an integer lifts bools to LONG.

use edgepack_executor::kernel::KernelError;
use edgepack_executor::tensor::Scalar;
use edgepack_format::scalar::ScalarType;

/// The common type of two tensors, or `None` if they have none.
pub fn promote(a: ScalarType, b: ScalarType) -> Option<ScalarType> {
    use ScalarType as S;
    if a == b {
        return Some(a);
    }
    // Quantised, raw and 8-bit float types have no common type with anything.
    let (high, low) = if rank(a)? >= rank(b)? { (a, b) } else { (b, a) };
    Some(match (high, low) {
        // Neither 16-bit float holds the other.
        (S::HALF, S::BFLOAT16) | (S::BFLOAT16, S::HALF) => S::FLOAT,
        // A signed type that holds both.
        (S::CHAR, S::BYTE) => S::SHORT,
        (S::UINT16 | S::UINT32 | S::UINT64, low) if low != S::BOOL => return None,
        (high, S::UINT16 | S::UINT32 | S::UINT64) if high.is_integral() => return None,
        (S::COMPLEX_HALF, S::FLOAT | S::BFLOAT16) => S::COMPLEX_FLOAT,
        (S::COMPLEX_HALF | S::COMPLEX_FLOAT, S::DOUBLE) => S::COMPLEX_DOUBLE,
        (high, _) => high,
    })
}

fn rank(dtype: ScalarType) -> Option<u8> {
    use ScalarType as S;
    Some(match dtype {
        S::BOOL => 0,
        S::BYTE => 1,
        S::CHAR => 2,
        S::SHORT => 3,
        S::UINT16 => 4,
        S::INT => 5,
        S::UINT32 => 6,
        S::LONG => 7,
        S::UINT64 => 8,
        S::HALF => 9,
        S::BFLOAT16 => 10,
        S::FLOAT => 11,
        S::DOUBLE => 12,
        S::COMPLEX_HALF => 13,
        S::COMPLEX_FLOAT => 14,
        S::COMPLEX_DOUBLE => 15,
        _ => return None,
    })
}

/// The common type of a tensor and a number.
pub fn promote_scalar(tensor: ScalarType, scalar: Scalar) -> ScalarType {
    match scalar {
        Scalar::Double(_) if tensor.is_integral() || tensor == ScalarType::BOOL => ScalarType::FLOAT,
        Scalar::Int(_) if tensor == ScalarType::BOOL => ScalarType::LONG,
        _ => tensor,
    }
}

/// Returns whether a result of type `from` may be stored in an output of type `to`: a complex number in no real one, a
/// float in no integer, and only a bool in a bool.
pub fn can_cast(from: ScalarType, to: ScalarType) -> bool {
    let real = |dtype: ScalarType| dtype.is_integral() || dtype == ScalarType::BOOL;
    !(from.is_complex() && !to.is_complex()
        || from.is_floating() && real(to)
        || from != ScalarType::BOOL && to == ScalarType::BOOL)
}

/// Returns an error unless [`can_cast`].
pub fn expect_castable(from: ScalarType, to: ScalarType) -> Result<(), KernelError> {
    if can_cast(from, to) {
        return Ok(());
    }
    Err(KernelError::argument(format!("the result is {from}, which `out` of type {to} cannot hold")))
}

/// The type that numbers of `dtype` are computed in: FLOAT for the 16-bit floats and their complex kin, else itself.
pub fn compute_type(dtype: ScalarType) -> ScalarType {
    match dtype {
        ScalarType::HALF | ScalarType::BFLOAT16 => ScalarType::FLOAT,
        ScalarType::COMPLEX_HALF => ScalarType::COMPLEX_FLOAT,
        other => other,
    }
}

/// Returns whether a number fits an element type: integers within the range of an integer type, finite floats within
/// that of a floating one. Anything fits BOOL.
pub fn fits(scalar: Scalar, dtype: ScalarType) -> bool {
    use ScalarType as S;
    if let S::FLOAT | S::HALF | S::BFLOAT16 = dtype {
        let most = match dtype {
            S::HALF => f64::from(half::f16::MAX),
            S::BFLOAT16 => f64::from(half::bf16::MAX),
            _ => f64::from(f32::MAX),
        };
        let value = scalar.to_f64();
        return !value.is_finite() || value.abs() <= most;
    }
    let (least, most): (i128, i128) = match dtype {
        S::BYTE => (0, u8::MAX.into()),
        S::CHAR => (i8::MIN.into(), i8::MAX.into()),
        S::SHORT => (i16::MIN.into(), i16::MAX.into()),
        S::INT => (i32::MIN.into(), i32::MAX.into()),
        S::LONG => (i64::MIN.into(), i64::MAX.into()),
        S::UINT16 => (0, u16::MAX.into()),
        S::UINT32 => (0, u32::MAX.into()),
        S::UINT64 => (0, u64::MAX.into()),
        _ => return true,
    };
    match scalar {
        Scalar::Int(value) => (least..=most).contains(&i128::from(value)),
        // The conversion saturates, far outside of every range; NaN is not an integer.
        Scalar::Double(value) => !value.is_nan() && (least..=most).contains(&(value as i128)),
        Scalar::Bool(_) => true,
    }
}

/// Returns an error unless the number [`fits`].
pub fn expect_fit(name: &str, scalar: Scalar, dtype: ScalarType) -> Result<(), KernelError> {
    if fits(scalar, dtype) {
        return Ok(());
    }
    Err(KernelError::argument(format!("`{name}` is {}, outside of the range of {dtype}", scalar.to_f64())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ScalarType as S;

    #[test]
    fn promotion_is_pytorchs() {
        for (a, b, common) in [
            (S::BOOL, S::BYTE, Some(S::BYTE)),
            (S::BYTE, S::CHAR, Some(S::SHORT)),
            (S::BYTE, S::SHORT, Some(S::SHORT)),
            (S::LONG, S::HALF, Some(S::HALF)),
            (S::HALF, S::BFLOAT16, Some(S::FLOAT)),
            (S::FLOAT, S::DOUBLE, Some(S::DOUBLE)),
            (S::INT, S::UINT16, None),
            (S::UINT16, S::UINT16, Some(S::UINT16)),
            (S::UINT16, S::FLOAT, Some(S::FLOAT)),
            (S::COMPLEX_HALF, S::DOUBLE, Some(S::COMPLEX_DOUBLE)),
            (S::QINT8, S::CHAR, None),
        ] {
            assert_eq!(promote(a, b), common, "{a} with {b}");
            assert_eq!(promote(b, a), common, "{b} with {a}");
        }
    }

    #[test]
    fn numbers_count_by_category() {
        assert_eq!(promote_scalar(S::BYTE, Scalar::Int(1000)), S::BYTE);
        assert_eq!(promote_scalar(S::LONG, Scalar::Double(1.0)), S::FLOAT);
        assert_eq!(promote_scalar(S::HALF, Scalar::Double(1.0)), S::HALF);
        assert_eq!(promote_scalar(S::BOOL, Scalar::Int(1)), S::LONG);
        assert_eq!(promote_scalar(S::BOOL, Scalar::Bool(true)), S::BOOL);
    }

    #[test]
    fn results_are_never_cut_in_kind() {
        assert!(can_cast(S::BOOL, S::FLOAT) && can_cast(S::LONG, S::CHAR) && can_cast(S::DOUBLE, S::HALF));
        assert!(!can_cast(S::FLOAT, S::LONG) && !can_cast(S::INT, S::BOOL) && !can_cast(S::COMPLEX_FLOAT, S::FLOAT));
    }

    #[test]
    fn ranges_are_those_of_the_type() {
        assert!(fits(Scalar::Int(255), S::BYTE) && !fits(Scalar::Int(256), S::BYTE) && !fits(Scalar::Int(-1), S::BYTE));
        assert!(fits(Scalar::Double(1e38), S::FLOAT) && !fits(Scalar::Double(1e39), S::FLOAT));
        assert!(fits(Scalar::Double(f64::INFINITY), S::FLOAT) && !fits(Scalar::Double(f64::NAN), S::INT));
        assert!(!fits(Scalar::Double(1e30), S::LONG) && fits(Scalar::Double(127.9), S::CHAR));
    }
}
