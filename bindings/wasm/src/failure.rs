//! Failures as JavaScript gets them: an `Error` that is named `EdgepackError`, with its kind.

use std::fmt::Display;

use js_sys::{Error, Reflect};
use wasm_bindgen::prelude::*;

/// Makes what is thrown for a failure that leaves the module as it was. `kind` is one of `usage`, `file`, `run`.
fn failure(kind: &str, message: impl Display) -> JsValue {
    let error = Error::new(&message.to_string());
    error.set_name("EdgepackError");
    // An error that was just made takes any property.
    let _ = Reflect::set(&error, &"kind".into(), &kind.into());
    error.into()
}

/// Wrong use of the interface.
pub(crate) fn usage(message: impl Display) -> JsValue {
    failure("usage", message)
}

/// A file that cannot be read, or is not valid.
pub(crate) fn unreadable(message: impl Display) -> JsValue {
    failure("file", message)
}

/// A valid file that cannot run here, or failed while running.
pub(crate) fn failed(message: impl Display) -> JsValue {
    failure("run", message)
}
