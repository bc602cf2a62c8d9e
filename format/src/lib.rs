//! Meaning of the bytes of on-device model packages: tables, typed views, verifiers.
//!
//! A file goes bytes → [`wire`] (checked positions) → [`row`] (one struct per table) → a verified program. Reading
//! borrows from the input, charges a [`limits::Budget`], and answers any bytes with a typed error or with
//! [`finding::Findings`]; it never panics, never allocates more than the limits allow and never reads outside the
//! input. The crate does no I/O, is `no_std` + `alloc`, and contains no `unsafe`.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

extern crate alloc;
// The derive's output names the crate by its public name, here as everywhere.
#[allow(unused_extern_crates)]
extern crate self as edgepack_format;

mod open_enum;

pub mod bundle;
pub mod check;
pub mod darwinn;
pub mod detect;
pub mod extent;
pub mod finding;
pub mod foreign;
pub mod header;
pub mod json;
pub mod layout;
pub mod limits;
pub mod mlf;
pub mod named;
pub mod notation;
pub mod operators;
pub mod payload;
pub mod ptd;
pub mod pte;
pub mod room;
pub mod row;
pub mod rules;
pub mod scalar;
pub mod spec;
pub mod tensor;
pub mod tflite;
pub mod trace;
pub mod wire;
pub mod xnnpack;

pub use detect::{FileKind, detect};

#[doc(hidden)]
pub mod __alloc {
    pub use alloc::{borrow, string, vec};
}
#[doc(hidden)]
pub use serde as __serde;
