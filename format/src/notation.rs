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
        write!(f, "{}{}", self.element, List(self.sizes))?;
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

/// A count with its noun: `1 method`, `2 methods`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counted<'a, N>(pub N, pub &'a str);

impl<N: Display + PartialEq + From<u8>> Display for Counted<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counted(number, noun) = self;
        // `entry` becomes `entries`, but `key` and `array` become `keys` and `arrays`.
        let stem = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
        match (*number == N::from(1), stem) {
            (true, _) => write!(f, "1 {noun}"),
            (_, Some(stem)) => write!(f, "{number} {stem}ies"),
            (_, None) => write!(f, "{number} {noun}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn types_of_tensors() {
        let shown =
            |dim_order: &[u8]| TensorType { element: ScalarType::FLOAT, sizes: &[1, 3, 8, 8], dim_order }.to_string();
        assert_eq!(shown(&[0, 1, 2, 3]), "f32[1, 3, 8, 8]");
        assert_eq!(shown(&[0, 2, 3, 1]), "f32[1, 3, 8, 8] order [0, 2, 3, 1]");
        assert_eq!(ValueName("mul").to_string(), "%mul");
    }
}
