//! What families of operators check alike: element types, shapes, and how the messages read.

use std::fmt;

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

/// An error unless the element type belongs to the class.
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

/// An error unless the element type is this one.
pub fn expect_dtype(name: &str, dtype: ScalarType, wanted: ScalarType) -> Result<(), KernelError> {
    if dtype == wanted {
        return Ok(());
    }
    Err(KernelError::argument(format!("`{name}` is {dtype}, the operator wants {wanted}")))
}

/// An error unless two tensors have one element type.
pub fn expect_same(a: (&str, ScalarType), b: (&str, ScalarType)) -> Result<(), KernelError> {
    if a.1 == b.1 {
        return Ok(());
    }
    Err(KernelError::argument(format!("`{}` is {}, `{}` is {}: the types differ", a.0, a.1, b.0, b.1)))
}

/// An error unless two tensors lie in memory in the same order of dimensions.
pub fn expect_same_order(a: (&str, &[u8]), b: (&str, &[u8])) -> Result<(), KernelError> {
    if a.1 == b.1 {
        return Ok(());
    }
    Err(KernelError::argument(format!(
        "`{}` has dim order {:?}, `{}` has {:?}: the operator wants the same",
        a.0, a.1, b.0, b.1
    )))
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

/// The view of a dense tensor around one of its dimensions: `outer` blocks of `size` rows of `inner` elements.
///
/// It holds for every dim order, since memory is dense: what lies inside the dimension is `inner`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Around {
    /// Blocks.
    pub outer: usize,
    /// Length of the dimension.
    pub size: usize,
    /// Distance of neighbours along the dimension.
    pub inner: usize,
}

impl Around {
    /// The view around `dim`; rank 0 counts as one element along one dimension.
    pub fn new(sizes: &[usize], strides: &[usize], dim: usize) -> Around {
        let (size, inner) = match (sizes.get(dim), strides.get(dim)) {
            (Some(&size), Some(&stride)) => (size, stride),
            _ => (1, 1),
        };
        let count: usize = sizes.iter().product();
        // Without elements there is nothing to visit, whatever the strides say.
        let outer = if count == 0 { 0 } else { count / (size * inner) };
        Around { outer, size, inner }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn around_follows_memory() {
        assert_eq!(Around::new(&[2, 3, 4], &[12, 4, 1], 1), Around { outer: 2, size: 3, inner: 4 });
        assert_eq!(Around::new(&[2, 3, 4, 5], &[60, 1, 15, 3], 1), Around { outer: 40, size: 3, inner: 1 });
        assert_eq!(Around::new(&[], &[], 0), Around { outer: 1, size: 1, inner: 1 });
        assert_eq!(Around::new(&[2, 0], &[1, 1], 0).outer, 0);
    }

    #[test]
    fn messages_name_both_sides() {
        let error = expect_same(("mat1", ScalarType::FLOAT), ("mat2", ScalarType::INT)).unwrap_err();
        assert_eq!(error.message, "`mat1` is FLOAT, `mat2` is INT: the types differ");
        assert_eq!(Shape(&[4, 16]).to_string(), "4x16");
    }
}
