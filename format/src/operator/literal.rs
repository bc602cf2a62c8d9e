//! Default values of arguments.
//!
//! Invariant: a [`Literal::List`] was read once when its schema was parsed, so [`Items`] meets no surprise.

use super::parse::Cursor;

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
    /// What is between the brackets; [`Literal::items`] reads it.
    List(&'a str),
    /// A named constant, such as `contiguous_format`.
    Name(&'a str),
}

impl<'a> Literal<'a> {
    /// The items of a list; none for anything else.
    pub fn items(&self) -> Items<'a> {
        Items { cursor: Cursor::new(if let Literal::List(text) = self { text } else { "" }) }
    }
}

/// An iterator over the items of a list.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Iterator for Items<'a> {
    type Item = Literal<'a>;

    fn next(&mut self) -> Option<Literal<'a>> {
        self.cursor.skip_space();
        let item = self.cursor.item().ok()?;
        self.cursor.skip_space();
        self.cursor.eat(",");
        Some(item)
    }
}
