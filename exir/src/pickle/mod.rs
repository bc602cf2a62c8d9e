//! Pickles, interpreted as data.
//!
//! A pickle is a program for a stack machine that can name any function and have it called. Here nothing is called: what a
//! pickle would call is noted with what it would be given, and only names of a closed list are taken, all of them
//! constructors of containers, tensors and quantised weights. Any other name is refused, and so is every instruction that
//! writers of weights do not use.
//!
//! Invariant: a value is made by at least one byte, so there are no more of them than bytes; values refer to each other by
//! number, so that sharing costs nothing, and nothing here recurses.

use edgepack_format::room::{self, NoRoom};

mod known;
mod machine;
mod write;

pub use machine::read;
pub(crate) use write::{Described, dictionary};

/// The longest pickle that is read. What it describes may be far larger: the bytes of tensors are not in it.
pub const MAX_LEN: u64 = 64 << 20;

/// A value of a pickle, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Id(u32);

/// Value that a pickle made.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Nothing.
    None,
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Number in double precision, finite or not.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Items of a tuple, by number.
    Tuple(Vec<Id>),
    /// Items of a list, by number.
    List(Vec<Id>),
    /// Keys and their values, in order.
    Dict(Vec<(Id, Id)>),
    /// One of the names of the list, as `module.name`.
    Name(String),
    /// Call of a name with arguments, and the state that would be set afterwards; nothing is called.
    Made {
        /// Name that would be called.
        by: Id,
        /// Tuple of the arguments.
        arguments: Id,
        /// State of the object, if it was given one.
        state: Option<Id>,
    },
    /// Object that the file around the pickle stores under this id.
    Kept(Id),
}

/// Reason a pickle is not read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// Description of the content that is not read.
    #[error("{0}")]
    Wrong(String),
    /// There is not enough memory for the values.
    #[error(transparent)]
    Memory(#[from] NoRoom),
}

impl From<&str> for Error {
    fn from(message: &str) -> Self {
        Error::Wrong(message.to_owned())
    }
}

impl From<String> for Error {
    fn from(message: String) -> Self {
        Error::Wrong(message)
    }
}

/// Converts every item; `None` if one cannot be converted.
fn all<I, T>(items: &[I], read: impl Fn(&I) -> Option<T>) -> room::Result<Option<Vec<T>>> {
    let mut list = room::with_room(items.len())?;
    for item in items {
        match read(item) {
            Some(item) => list.push(item),
            None => return Ok(None),
        }
    }
    Ok(Some(list))
}

/// All values of a pickle.
#[derive(Clone, Debug)]
pub struct Pickle {
    values: Vec<Value>,
    root: Id,
}

impl Pickle {
    /// The value that the pickle is of.
    pub fn root(&self) -> Id {
        self.root
    }

    /// A value by its number.
    pub fn value(&self, id: Id) -> &Value {
        self.values.get(id.0 as usize).unwrap_or(&Value::None)
    }

    /// Returns the content of a text; `None` for any other value.
    pub fn text(&self, id: Id) -> Option<&str> {
        match self.value(id) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a name of the closed list, as `module.name`; `None` for any other value.
    pub fn name(&self, id: Id) -> Option<&str> {
        match self.value(id) {
            Value::Name(name) => Some(name),
            _ => None,
        }
    }

    /// A whole number that is not negative.
    pub fn size(&self, id: Id) -> Option<usize> {
        match self.value(id) {
            Value::Int(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The items of a tuple or a list.
    pub fn items(&self, id: Id) -> Option<&[Id]> {
        match self.value(id) {
            Value::Tuple(items) | Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// Sizes or strides.
    pub fn sizes(&self, id: Id) -> room::Result<Option<Vec<usize>>> {
        let Some(items) = self.items(id) else { return Ok(None) };
        all(items, |item| self.size(*item))
    }

    /// The entries of a dictionary, whose keys are texts.
    pub fn entries(&self, id: Id) -> room::Result<Option<Vec<(&str, Id)>>> {
        match self.value(id) {
            Value::Dict(entries) => all(entries, |(key, value)| Some((self.text(*key)?, *value))),
            _ => Ok(None),
        }
    }

    /// Returns the call that a name would have received: the name and the arguments.
    pub fn made(&self, id: Id) -> Option<(&str, &[Id])> {
        match self.value(id) {
            Value::Made { by, arguments, .. } => Some((self.name(*by)?, self.items(*arguments)?)),
            _ => None,
        }
    }
}
