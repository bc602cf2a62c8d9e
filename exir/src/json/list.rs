//! Lists of a document, whose length the file decides: they can fail to be allocated.

use std::fmt;
use std::marker::PhantomData;

use edgepack_format::room::{self, NoRoom};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// Prefix of the error for a list for which there is not enough memory. Other errors of documents begin differently.
const NO_ROOM: &str = "a list of the document: ";

/// Returns whether a document could not be read because there was not enough memory for a list in it.
pub(crate) fn is_memory(error: &serde_json::Error) -> bool {
    error.is_data() && error.to_string().starts_with(NO_ROOM)
}

fn no_room<E: Error>(error: NoRoom) -> E {
    E::custom(format_args!("{NO_ROOM}{error}"))
}

/// A list inside another one.
struct List<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = Vec<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    room::push(&mut list, item).map_err(no_room)?;
                }
                Ok(list)
            }
        }
        deserializer.deserialize_seq(Items(PhantomData)).map(List)
    }
}

/// Reads a list.
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    List::deserialize(deserializer).map(|List(items)| items)
}

/// Reads a list or nothing.
pub(super) fn optional<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    Option::<List<T>>::deserialize(deserializer).map(|list| list.map(|List(items)| items))
}

/// Reads lists in a list.
pub(super) fn lists<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<Vec<T>>, D::Error> {
    let List(lists) = List::<List<T>>::deserialize(deserializer)?;
    room::collect(lists.into_iter().map(|List(items)| items)).map_err(no_room)
}
