//! Handles: numbers that stand for objects in one table of the process.
//!
//! Invariant: a number that was never given, was closed, or stands for another kind of object is found out, and nothing is
//! read through it. An object that is closed while a call uses it lives until that call is over. No lock of the table is
//! held while an object is used or dropped, so that what is called from inside may use the table.

use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use slotmap::{DefaultKey, Key, KeyData, SlotMap};

use crate::failure::Failure;

/// Objects that handles stand for.
pub(crate) enum Object {
    Error(Arc<crate::error::ErrorObject>),
    Limits(Arc<crate::limits::LimitsObject>),
    Program(Arc<crate::program::ProgramObject>),
    Signature(Arc<crate::signature::SignatureObject>),
    Options(Arc<crate::options::OptionsObject>),
    Method(Arc<crate::method::MethodObject>),
    Data(Arc<crate::data::DataObject>),
    Bytes(Arc<crate::data::BytesObject>),
    Findings(Arc<crate::findings::FindingsObject>),
    Report(Arc<crate::report::ReportObject>),
}

impl Object {
    fn name(&self) -> &'static str {
        match self {
            Object::Error(_) => "an error",
            Object::Limits(_) => "limits",
            Object::Program(_) => "a program",
            Object::Signature(_) => "a signature",
            Object::Options(_) => "options",
            Object::Method(_) => "a method",
            Object::Data(_) => "named data",
            Object::Bytes(_) => "bytes",
            Object::Findings(_) => "findings",
            Object::Report(_) => "a report",
        }
    }
}

/// A type of handle.
pub(crate) trait Handle: Copy {
    /// Type of the objects that it stands for.
    type Object;
    /// Name of such an object, for messages.
    const NAME: &'static str;

    /// The handle of a number.
    fn of(id: u64) -> Self;
    /// The number of the handle.
    fn id(self) -> u64;
    /// An object among the others.
    fn wrap(object: Arc<Self::Object>) -> Object;
    /// The object, if it is of this kind.
    fn unwrap(object: &Object) -> Option<&Arc<Self::Object>>;
}

/// Implements [`Handle`] for structs of a number.
macro_rules! handle {
    ($handle:ident, $variant:ident, $object:ty, $name:literal) => {
        impl crate::handles::Handle for $handle {
            type Object = $object;
            const NAME: &'static str = $name;
            fn of(id: u64) -> Self {
                $handle { id }
            }
            fn id(self) -> u64 {
                self.id
            }
            fn wrap(object: std::sync::Arc<$object>) -> crate::handles::Object {
                crate::handles::Object::$variant(object)
            }
            fn unwrap(object: &crate::handles::Object) -> Option<&std::sync::Arc<$object>> {
                match object {
                    crate::handles::Object::$variant(object) => Some(object),
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use handle;

type Table = SlotMap<DefaultKey, Object>;

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(RwLock::default);

/// The key that a number stands for; `None` if it stands for none: several numbers would be read as one key.
fn key(id: u64) -> Option<DefaultKey> {
    let data = KeyData::from_ffi(id);
    (data.as_ffi() == id).then(|| data.into())
}

/// Puts an object into the table.
pub(crate) fn put<H: Handle>(object: H::Object) -> H {
    let object = H::wrap(Arc::new(object));
    // A panic inside of the table leaves it as it was: its only one is that it is full.
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    H::of(table.insert(object).data().as_ffi())
}

/// The object of a handle.
pub(crate) fn get<H: Handle>(handle: H) -> Result<Arc<H::Object>, Failure> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    match key(handle.id()).and_then(|key| table.get(key)) {
        None if handle.id() == 0 => Err(Failure::argument(format!("the handle of {} is zero", H::NAME))),
        None => Err(Failure::argument(format!("the handle of {} was closed, or is none", H::NAME))),
        Some(object) => match H::unwrap(object) {
            Some(object) => Ok(Arc::clone(object)),
            None => {
                Err(Failure::argument(format!("a handle of {} is wanted, this is one of {}", H::NAME, object.name())))
            }
        },
    }
}

/// Takes an object out of the table; zero stands for none, and is closed at any time.
pub(crate) fn close<H: Handle>(handle: H) -> Result<(), Failure> {
    if handle.id() == 0 {
        return Ok(());
    }
    // Finds out what is no handle of this kind.
    let object = get(handle)?;
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let removed = key(handle.id()).and_then(|key| table.remove(key));
    drop(table);
    drop(object);
    match removed {
        Some(_) => Ok(()),
        None => Err(Failure::argument(format!("the handle of {} was closed meanwhile", H::NAME))),
    }
}

/// Number of handles that are open.
pub(crate) fn open_count() -> usize {
    TABLE.read().unwrap_or_else(PoisonError::into_inner).len()
}
