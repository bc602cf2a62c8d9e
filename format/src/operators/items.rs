//! The items of a default value that is a list.

use super::literal::Literal;
use super::parse::Cursor;

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
