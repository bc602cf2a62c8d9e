//! edgepack in browsers: files in memory, the command over them, and methods that run.
//!
//! Failures are thrown as errors named `EdgepackError`. Whatever else is thrown ends the module: a panic, or memory that
//! is exhausted. Then its memory is in no known state, and the worker that it runs in is to be made again.

mod failure;
mod method;
mod room;
mod value;
mod workspace;

use wasm_bindgen::prelude::*;

pub use method::LoadedMethod;
pub use room::Room;
pub use workspace::{Answer, Workspace};

/// Prepares the module: panics become exceptions that carry their message.
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|place| format!("{}:{}", place.file(), place.line())).unwrap_or_default();
        wasm_bindgen::throw_str(&format!("the module panicked at {place}: {}", info.payload_as_str().unwrap_or("")));
    }));
}

/// Returns the version of the package.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Panics with a message, so that pages can test how they recover.
#[wasm_bindgen(js_name = panicForTest)]
pub fn panic_for_test(message: &str) {
    panic!("{message}");
}
