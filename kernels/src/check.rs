//! Checks that families of operators have in common: element types, shapes, and the texts of messages.

use std::fmt;

use edgepack_compute::layout::broadcast;
use edgepack_executor::kernel::KernelError;
use edgepack_format::scalar::ScalarType;

/// Sets of element types, as the reference's dtype switches name them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// HALF, FLOAT, DOUBLE, BFLOAT16.
    Float,
    /// Integers and floats, no BOOL.
    Real,
    /// Integers, floats and BOOL.
    Any,
}

impl Class {
    fn contains(self, dtype: ScalarType) -> bool {
        let real = dtype.is_floating() || dtype.is_integral();
        match self {
            Class::Float => dtype.is_floating(),
            Class::Real => real,
            Class::Any => real || dtype == ScalarType::BOOL,
        }
    }
}

/// Calls a generic function with the Rust type of a floating element type.
macro_rules! with_float {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use edgepack_format::scalar::ScalarType;
        match $dtype {
            ScalarType::HALF => {
                type $T = half::f16;
                $body
            }
            ScalarType::BFLOAT16 => {
                type $T = half::bf16;
                $body
            }
            ScalarType::FLOAT => {
                type $T = f32;
                $body
            }
            ScalarType::DOUBLE => {
                type $T = f64;
                $body
            }
            other => Err(edgepack_executor::kernel::KernelError::unsupported(format!("{other} is not floating point"))),
        }
    }};
}
pub(crate) use with_float;

/// Returns an error unless the element type belongs to the class.
pub fn expect_class(name: &str, dtype: ScalarType, class: Class) -> Result<(), KernelError> {
    if class.contains(dtype) {
        return Ok(());
    }
    let wanted = match class {
        Class::Float => "a floating point type",
        Class::Real => "an integer or floating point type",
        Class::Any => "an integer, floating point or bool type",
    };
    Err(KernelError::argument(format!("`{name}` is {dtype}, the operator wants {wanted}")))
}

/// Returns an error unless the element type is this one.
pub fn expect_dtype(name: &str, dtype: ScalarType, wanted: ScalarType) -> Result<(), KernelError> {
    if dtype == wanted {
        return Ok(());
    }
    Err(KernelError::argument(format!("`{name}` is {dtype}, the operator wants {wanted}")))
}

/// Returns an error unless two tensors have one element type.
pub fn expect_same(a: (&str, ScalarType), b: (&str, ScalarType)) -> Result<(), KernelError> {
    if a.1 == b.1 {
        return Ok(());
    }
    Err(KernelError::argument(format!("`{}` is {}, `{}` is {}: the types differ", a.0, a.1, b.0, b.1)))
}

/// Returns an error unless two tensors are stored in memory in the same order of dimensions.
pub fn expect_same_order(a: (&str, &[u8]), b: (&str, &[u8])) -> Result<(), KernelError> {
    if a.1 == b.1 {
        return Ok(());
    }
    Err(KernelError::argument(format!(
        "`{}` has dim order {:?}, `{}` has {:?}: the operator wants the same",
        a.0, a.1, b.0, b.1
    )))
}

/// Returns an error unless `sizes`, those of argument `name`, stretch to `target`.
pub fn expect_stretch(name: &str, sizes: &[usize], target: &[usize]) -> Result<(), KernelError> {
    if broadcast(sizes, target).is_some_and(|common| *common == *target) {
        return Ok(());
    }
    Err(KernelError::argument(format!("`{name}` has sizes {sizes:?}, which do not broadcast to {target:?}")))
}

/// The error of a computation with the argument it is about in front of what is wrong.
pub fn named(name: &str, error: edgepack_compute::Error) -> KernelError {
    let KernelError { code, message } = KernelError::from(error);
    KernelError::new(code, format!("`{name}` {message}"))
}

/// Sizes as messages show them: `4x16`.
pub struct Shape<'a>(pub &'a [usize]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("a scalar");
        }
        for (index, size) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("x")?;
            }
            write!(f, "{size}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_both_sides() {
        let error = expect_same(("mat1", ScalarType::FLOAT), ("mat2", ScalarType::INT)).unwrap_err();
        assert_eq!(error.message, "`mat1` is f32, `mat2` is i32: the types differ");
        assert_eq!(Shape(&[4, 16]).to_string(), "4x16");
    }

    #[test]
    fn sizes_stretch_to_a_target_or_are_refused() {
        assert!(expect_stretch("src", &[3], &[2, 3]).is_ok());
        assert!(expect_stretch("src", &[2, 3], &[3]).is_err());
    }
}
