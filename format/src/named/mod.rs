//! A Rust struct of tensors as named data, and back.
//!
//! `#[derive(NamedData)]` gives a struct [`NamedData::store`], which hands every field to a [`Sink`] under the field's
//! name, and [`NamedData::load`], which finds them again in a [`Lookup`]. Nothing is copied where nothing must be: what
//! is stored is borrowed by the sink, and fields that borrow point into the bytes of the lookup. Loading reports every key
//! that is missing or holds something else, not just the first.
//!
//! ```
//! use edgepack_format::named::{MemoryData, NamedData};
//! use edgepack_format::tensor::TensorView;
//!
//! #[derive(NamedData)]
//! struct Linear<'a> {
//!     weight: TensorView<'a, f32>,
//!     #[named(rename = "b", align = 64)]
//!     bias: Option<&'a [f32]>,
//! }
//!
//! #[derive(NamedData)]
//! struct Model<'a> {
//!     layers: Vec<Linear<'a>>,
//!     scale: f32,
//! }
//!
//! let ones = [1.0; 6];
//! let linear = Linear { weight: TensorView::from_slice(&[2, 3], &ones)?, bias: Some(&[0.5, 0.25]) };
//! let model = Model { layers: vec![linear], scale: 2.0 };
//! let mut store = MemoryData::new();
//! model.store(&mut store)?;
//! assert_eq!(store.keys().collect::<Vec<_>>(), ["layers.0.b", "layers.0.weight", "scale"]);
//!
//! let loaded = Model::load(&store)?;
//! assert_eq!(loaded.layers[0].weight.layout().sizes(), [2, 3]);
//! assert_eq!(loaded.layers[0].bias, Some(&[0.5, 0.25][..]));
//!
//! let Err(errors) = Linear::load(&store) else { panic!() };
//! assert_eq!(errors.to_string(), "weight: there is no such key, a tensor of f32 is expected");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | field type | keys | data |
//! |---|---|---|
//! | a number `T`, `[T; N]`, `[[T; N]; M]`, `Vec<T>`, `&'a [T]` | the name | a contiguous tensor of rank 0, 1, 2, 1, 1 |
//! | [`TensorView<'a, T>`](crate::tensor::TensorView), [`TensorBuf<T>`](crate::tensor::TensorBuf) | the name | a tensor of any layout |
//! | `TensorView<'a>` | the name | a tensor of any element type |
//! | [`Blob<'a>`](crate::row::Blob) | the name | bytes without a layout |
//! | a struct that derives `NamedData` | `name.field` | |
//! | `Vec<S>`, `[S; N]` of structs, views or tensors | `name.0`, `name.1`, … | |
//! | `Option` of any of these | none if it is `None` | |
//!
//! `T` is any [`Element`](crate::scalar::Element); a BOOL is a [`Bool`](crate::scalar::Bool). A list has as many items as
//! there are indices among the keys, so an item that stores nothing at all must not be at its end.
//!
//! | attribute | on | meaning |
//! |---|---|---|
//! | `rename = "key"` | field | the key instead of the field's name; may have dots |
//! | `prefix = "p."` | struct, field of a struct type | text in front of the keys inside, instead of the field's name and a dot; `""` for nothing |
//! | `shape = [2, _, N]` | field | the sizes: written with a list of numbers, and asked of what is found. Says how to read data whose layout is not recorded, as a program's own |
//! | `align = 64` | struct, field | alignment of the data, a power of two; at least that of the element |
//! | `external = "tag"` | struct, field | the data file they go to, instead of the program |
//! | `skip` | field | neither stored nor loaded: `Default::default()` |
//! | `crate = "path"` | struct | where this crate is, if not found by its name or the facade's |
//!
//! Attributes of a struct about alignment and files hold for all its fields that say nothing themselves.

mod error;
mod memory;
mod place;
mod tensors;
mod values;

use alloc::borrow::Cow;
use alloc::vec::Vec;

pub use edgepack_format_derive::NamedData;
pub use error::{NamedDataError, NamedDataErrors, Problem, StoreError};
pub use memory::{KeyTaken, MemoryData};
pub use place::Place;

use crate::tensor::{Dims, TensorLayout};

/// Data to be stored under one key.
#[derive(Clone, Debug)]
pub struct Entry<'s> {
    /// Key that the data are stored under.
    pub key: Cow<'s, str>,
    /// The bytes: borrowed from the struct that is stored.
    pub data: Cow<'s, [u8]>,
    /// Tensor layout of the bytes; `None` for opaque bytes.
    pub layout: Option<TensorLayout>,
    /// Alignment of the bytes: a power of two.
    pub alignment: u64,
    /// The data file they go to; `None` for the program.
    pub external: Option<Cow<'s, str>>,
}

/// Takes named data: a store under construction.
pub trait Sink<'s> {
    /// Reason the sink does not take something.
    type Error;

    /// Takes one entry.
    fn add(&mut self, entry: Entry<'s>) -> Result<(), Self::Error>;
}

/// Data found under a key.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Content, little-endian.
    pub data: &'a [u8],
    /// Tensor layout of the bytes, if it was recorded.
    pub layout: Option<&'a TensorLayout>,
}

/// Lends named data by key.
pub trait Lookup {
    /// The data of a key, `None` if there is no such key; an error says why they cannot be read.
    fn find(&self, key: &str) -> Result<Option<Found<'_>>, alloc::string::String>;

    /// The first key in byte order that is not before `from`.
    fn key_from(&self, from: &str) -> Option<&str>;
}

/// A struct whose fields are named data. Derive it.
///
/// The lifetime is that of the data borrowed by the fields.
pub trait NamedData<'a>: NamedValue<'a> {
    /// Hands every field to a sink.
    fn store<'s, S: Sink<'s>>(&'s self, sink: &mut S) -> Result<(), StoreError<S::Error>> {
        self.put(&Place::root(), sink)
    }

    /// The same under `key.`, as the field `key` of a larger struct.
    fn store_at<'s, S: Sink<'s>>(&'s self, key: &str, sink: &mut S) -> Result<(), StoreError<S::Error>> {
        self.put(&Place::at(key), sink)
    }

    /// Finds every field. The errors are all of them.
    fn load(lookup: &'a dyn Lookup) -> Result<Self, NamedDataErrors> {
        load_at(&Place::root(), lookup)
    }

    /// The same under `key.`, as the field `key` of a larger struct.
    fn load_at(key: &str, lookup: &'a dyn Lookup) -> Result<Self, NamedDataErrors> {
        load_at(&Place::at(key), lookup)
    }
}

fn load_at<'a, T: NamedValue<'a>>(place: &Place<'_>, lookup: &'a dyn Lookup) -> Result<T, NamedDataErrors> {
    let mut errors = NamedDataErrors::default();
    match T::take(place, lookup, &mut errors) {
        Some(value) if errors.is_empty() => Ok(value),
        _ => Err(errors),
    }
}

/// Type of a field of a [`NamedData`] struct.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored as named data",
    label = "no tensor, no number, no list of them, and no struct that derives `NamedData`",
    note = "a bool is an `edgepack_format::scalar::Bool`; fields that are no data take `#[named(skip)]`"
)]
pub trait NamedValue<'a>: Sized {
    /// Hands it to a sink.
    fn put<'s, S: Sink<'s>>(&'s self, place: &Place<'_>, sink: &mut S) -> Result<(), StoreError<S::Error>>;

    /// Finds it. `None` if something is wrong, which is then among the errors.
    fn take(place: &Place<'_>, lookup: &'a dyn Lookup, errors: &mut NamedDataErrors) -> Option<Self>;

    /// Returns whether any of the value's keys is there.
    fn is_present(place: &Place<'_>, lookup: &'a dyn Lookup) -> bool;
}

/// Type of an item in a list of named data. Numbers make a tensor; everything else is under `key.0`, `key.1`, …
#[diagnostic::on_unimplemented(
    message = "a list of `{Self}` cannot be stored as named data",
    label = "no number, no tensor and no struct that derives `NamedData`"
)]
pub trait NamedItem<'a>: NamedValue<'a> {
    /// Hands items to a sink: those of a list with these sizes.
    fn put_list<'s, S: Sink<'s>>(
        list: &'s [Self],
        sizes: &Dims,
        place: &Place<'_>,
        sink: &mut S,
    ) -> Result<(), StoreError<S::Error>> {
        values::put_items(list, sizes, place, sink)
    }

    /// Finds the items of a list whose sizes are these, as far as they are known.
    fn take_list(
        sizes: &Dims<Option<usize>>,
        place: &Place<'_>,
        lookup: &'a dyn Lookup,
        errors: &mut NamedDataErrors,
    ) -> Option<Vec<Self>> {
        values::take_items(sizes, place, lookup, errors)
    }

    /// Returns whether any key of a list is there.
    fn is_list_present(place: &Place<'_>, lookup: &'a dyn Lookup) -> bool {
        place.has_items(lookup)
    }
}
