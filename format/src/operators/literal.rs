//! Default values of arguments.
//!
//! Invariant: a [`Literal::List`] was read once when its schema was parsed, so [`Items`](super::Items) meets no surprise.

/// A default value as the schema writes it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Literal<'a> {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer. For a list argument of fixed length it stands for that many.
    Int(i64),
    /// A number with a fraction, an exponent, or no finite value.
    Float(f64),
    /// The text between quotes, as written.
    Str(&'a str),
    /// Text between the brackets; [`Literal::items`] reads it.
    List(&'a str),
    /// A named constant, such as `contiguous_format`.
    Name(&'a str),
}
