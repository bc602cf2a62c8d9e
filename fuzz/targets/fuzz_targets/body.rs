//! One libFuzzer target for all bodies: `EDGEPACK_FUZZ_BODY` names the one to run.
#![no_main]

use std::sync::OnceLock;

use edgepack_fuzz::{Body, body};
use libfuzzer_sys::fuzz_target;

fn chosen() -> &'static Body {
    static BODY: OnceLock<&'static Body> = OnceLock::new();
    BODY.get_or_init(|| {
        let name = std::env::var("EDGEPACK_FUZZ_BODY").expect("EDGEPACK_FUZZ_BODY names a body");
        body(&name).unwrap_or_else(|| panic!("there is no body {name}"))
    })
}

fuzz_target!(|data: &[u8]| (chosen().run)(data));
