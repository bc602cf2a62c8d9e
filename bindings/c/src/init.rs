//! Payload, specs, options and named data, for a backend that makes a delegate.

use std::ffi::{c_char, c_void};

use edgepack::executor::delegate::OptionValue;

use crate::arguments::seen;
use crate::call::{EdgepackInit, Init, View, give_reason};
use crate::entry;
use crate::error::EdgepackCode;
use crate::failure::Failure;
use crate::pointer::{In, Out};
use crate::text::{EdgepackText, Terminated};
use crate::value::EdgepackValue;

fn init<'v>(view: &'v mut View<'_, '_>) -> Result<&'v mut Init, Failure> {
    match view {
        View::Init(init) => Ok(init),
        _ => Err(Failure::state("this is known when a delegate is made")),
    }
}

/// Writes where bytes are, and how many.
fn write_bytes(bytes: &[u8], data: Out<In<c_void>>, len: Out<usize>) -> Result<(), Failure> {
    len.check(1, "len")?;
    data.write(In::to(bytes.as_ptr().cast()), "data")?;
    len.write(bytes.len(), "len")
}

/// Gives the reason for which a callback is about to return an error.
///
/// Ownership: the text is copied. Threads: that of the callback.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_init_fail(init: EdgepackInit, message: In<c_char>) -> EdgepackCode {
    let given = || give_reason(init.id, message.text("the reason").map_err(|failure| failure.code)?);
    let internal = Err(edgepack::format::finding::ErrorCode::Internal);
    entry::plain(given, internal).map_or_else(EdgepackCode::from, |()| EdgepackCode::Ok)
}

/// Returns the payload: the bytes that were made for the backend at export.
///
/// Ownership: they are there until the delegate is dropped. Threads: that of the callback.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_init_payload(init: EdgepackInit, data: Out<In<c_void>>, len: Out<usize>) -> EdgepackCode {
    seen(init.id, |view| write_bytes(&self::init(view)?.payload, data, len))
}

/// Returns the number of compile specs by `count`: options that were given at export.
///
/// Threads: that of the callback.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_init_spec_count(init: EdgepackInit, count: Out<usize>) -> EdgepackCode {
    seen(init.id, |view| count.write(self::init(view)?.specs.len(), "count"))
}

/// Returns a compile spec: its key and its bytes.
///
/// Ownership: they are there until the callback returns. Threads: that of the callback.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_init_spec(
    init: EdgepackInit,
    index: usize,
    key: Out<EdgepackText>,
    data: Out<In<c_void>>,
    len: Out<usize>,
) -> EdgepackCode {
    seen(init.id, |view| {
        let (name, bytes) =
            self::init(view)?.specs.get(index).ok_or_else(|| Failure::missing("compile spec", index))?;
        key.write(name.text(), "key")?;
        write_bytes(bytes, data, len)
    })
}

/// Returns named data of the program, or of the data files that its method is loaded with; EDGEPACK_CODE_NOT_FOUND if there is
/// no such key.
///
/// Ownership: they are there until the delegate is dropped. Threads: that of the callback.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_init_named_data(
    init: EdgepackInit,
    key: In<c_char>,
    data: Out<In<c_void>>,
    len: Out<usize>,
) -> EdgepackCode {
    seen(init.id, |view| {
        let init = self::init(view)?;
        let key = key.text("the key")?;
        let bytes = init.named_data.data(key)?.ok_or_else(|| Failure::missing("key", key))?;
        write_bytes(&bytes, data, len)?;
        init.held.push(bytes);
        Ok(())
    })
}

/// Returns an option that was set for the backend by `value`; EDGEPACK_CODE_NOT_FOUND if it was not set.
///
/// Ownership: a text is there until the callback returns. Threads: that of the callback.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_init_option(
    init: EdgepackInit,
    name: In<c_char>,
    value: Out<EdgepackValue>,
) -> EdgepackCode {
    seen(init.id, |view| {
        let Init { options, texts, .. } = self::init(view)?;
        let name = name.text("the option's name")?;
        let found = options.iter().rev().find(|(known, _)| known == name);
        let told = match found.map(|(_, value)| value) {
            Some(OptionValue::Bool(value)) => EdgepackValue::bool(*value),
            Some(OptionValue::Int(value)) => EdgepackValue::int(*value),
            Some(OptionValue::Text(text)) => {
                let text = Terminated::new(text.as_str());
                let told = text.text();
                texts.push(text);
                EdgepackValue::text(told)
            }
            Some(_) => return Err(Failure::state(format!("the option {name} is of a kind that C does not know"))),
            None => return Err(Failure::missing("option", name)),
        };
        value.write(told, "value")
    })
}

/// Returns the name of the method that is loaded by `name`.
///
/// Ownership: the text is there until the callback returns. Threads: that of the callback.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_init_method(init: EdgepackInit, name: Out<EdgepackText>) -> EdgepackCode {
    seen(init.id, |view| name.write(self::init(view)?.method.text(), "name"))
}
