//! Values and types as people read them, the same in listings, in the text of programs and in errors: `%12`,
//! `f32[2, 3]`.
//!
//! Invariant: the text of a program reads every element type that is written here.

use core::fmt::{self, Display};

use crate::scalar::ScalarType;

/// The name of a value: of a method its index, of a graph what the graph calls it: `%12`, `%mul`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueName<N>(pub N);

impl<N: Display> Display for ValueName<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// An element type: its short name, `f32`; PyTorch's where there is none, `qint8`; `type#77` for a number that names none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElementType(pub ScalarType);

impl ElementType {
    /// The element type of a name, `f32`. Takes the other names that it may have in text, `qint8` and `QINT8`.
    pub fn from_name(name: &str) -> Option<ScalarType> {
        ScalarType::called(|names| names.short == Some(name))
            .or_else(|| ScalarType::called(|names| names.torch == name))
            .or_else(|| ScalarType::from_name(name))
    }
}

impl Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.names() {
            Some(names) => f.pad(names.short.unwrap_or(names.torch)),
            None => write!(f, "type#{}", self.0.0),
        }
    }
}

/// The type of a tensor: `f32[2, 3]`, with the order of its dimensions in memory if that is not the contiguous one,
/// `f32[1, 3, 8, 8] order [0, 2, 3, 1]`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TensorType<'a, S> {
    /// Element type of the tensor.
    pub element: ScalarType,
    /// Its sizes, outermost first.
    pub sizes: &'a [S],
    /// Its dimensions, outermost in memory first.
    pub dim_order: &'a [u8],
}

impl<S: Display> Display for TensorType<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", ElementType(self.element), List(self.sizes))?;
        if self.dim_order.is_sorted() {
            return Ok(());
        }
        write!(f, " order {}", List(self.dim_order))
    }
}

/// Items in brackets: `[2, 3]`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct List<'a, T>(pub &'a [T]);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, item) in self.0.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}{item}")?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn every_element_type_has_a_name_of_its_own() {
        for (_, scalar_type) in ScalarType::NAMED {
            assert_eq!(ElementType::from_name(&ElementType(*scalar_type).to_string()), Some(*scalar_type));
        }
        assert_eq!(ElementType(ScalarType(-3)).to_string(), "type#-3");
        for name in ["QINT8", "qint8"] {
            assert_eq!(ElementType::from_name(name), Some(ScalarType::QINT8));
        }
    }

    #[test]
    fn types_of_tensors() {
        let shown =
            |dim_order: &[u8]| TensorType { element: ScalarType::FLOAT, sizes: &[1, 3, 8, 8], dim_order }.to_string();
        assert_eq!(shown(&[0, 1, 2, 3]), "f32[1, 3, 8, 8]");
        assert_eq!(shown(&[0, 2, 3, 1]), "f32[1, 3, 8, 8] order [0, 2, 3, 1]");
        assert_eq!(ValueName("mul").to_string(), "%mul");
    }
}
