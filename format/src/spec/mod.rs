//! A Rust struct of backend options as compile specs, and back.
//!
//! A backend is configured at export by [`CompileSpec`] rows: a key and bytes each. `#[derive(CompileSpecs)]` gives a
//! struct [`CompileSpecs::to_specs`] and [`CompileSpecs::from_specs`]. Reading reports everything that is wrong at once:
//! keys that are missing, unknown or there twice, and values that are not what the option expects.
//!
//! ```
//! use edgepack_format::spec::CompileSpecs;
//!
//! #[derive(CompileSpecs, Debug, PartialEq)]
//! #[spec(rename_all = "kebab-case")]
//! enum Precision { Full, HalfPrecision }
//!
//! #[derive(CompileSpecs, Debug, PartialEq)]
//! struct Options {
//!     #[spec(key = "max_value")]
//!     max: u32,
//!     #[spec(default = "true")]
//!     fused: bool,
//!     #[spec(default = Precision::Full)]
//!     precision: Precision,
//!     cache: Option<String>,
//! }
//!
//! let options = Options { max: 7, fused: false, precision: Precision::HalfPrecision, cache: None };
//! let specs = options.to_specs();
//! let list: Vec<_> = specs.iter().map(|spec| (spec.key.as_deref().unwrap(), spec.value.as_ref().unwrap().as_slice())).collect();
//! assert_eq!(list, [("max_value", &[7, 0, 0, 0][..]), ("fused", &[0]), ("precision", b"half-precision")]);
//! assert_eq!(Options::from_specs(&specs)?, options);
//!
//! let errors = Options::from_specs(&[("fused", &[2][..]), ("speed", b"fast")]).unwrap_err();
//! assert_eq!(errors.to_string(), "speed: no such option
//! max_value: missing, u32 (4 bytes, little-endian) is expected
//! fused: [2] (1 byte), bool (one byte, 0 or 1) is expected");
//! # Ok::<(), edgepack_format::spec::SpecErrors>(())
//! ```
//!
//! | field type | bytes |
//! |---|---|
//! | `u8` … `u64`, `i8` … `i64`, `f32`, `f64` | little-endian, exactly as many as the type has |
//! | `bool` | one byte, 0 or 1 |
//! | `String` | UTF-8, without an end mark |
//! | `Vec<u8>`, `Vec` of any number | the bytes; the numbers one after the other |
//! | `[T; N]` of numbers | the same, exactly `N` |
//! | a unit-only enum that derives `CompileSpecs` | the variant's name, or with `repr` its number |
//! | `Option` of any of these | the key is absent if it is `None` |
//!
//! | attribute | on | meaning |
//! |---|---|---|
//! | `key = "name"` (or `rename`) | field, variant | the key, instead of the field's name |
//! | `rename_all = "camelCase"` | struct, enum | how names become keys: `lowercase`, `UPPERCASE`, `PascalCase`, `camelCase`, `snake_case`, `SCREAMING_SNAKE_CASE`, `kebab-case`, `SCREAMING-KEBAB-CASE` |
//! | `default = value` | field | what an absent key means; a text for a field that is not a `String` is read as an expression |
//! | `default` | field | the same with `Default::default()` |
//! | `skip` | field | neither written nor read: `Default::default()` |
//! | `allow_unknown` | struct | other keys are no error |
//! | `repr = "u32"` | enum | variants are their numbers, little-endian |
//! | `crate = "path"` | struct, enum | where this crate is, if not found by its name or the facade's |

mod error;
mod reader;
mod values;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

pub use edgepack_format_derive::CompileSpecs;
pub use error::{SpecError, SpecErrors, SpecProblem};
pub use reader::Reader;

use crate::pte::CompileSpec;
use crate::row::Blob;

/// A struct of options. Derive it.
pub trait CompileSpecs: Sized {
    /// One row per option that is not `None`, in order of the fields.
    fn to_specs(&self) -> Vec<CompileSpec<'static>>;

    /// Reads options. The errors are all of them.
    fn from_specs<S: AsSpec>(specs: &[S]) -> Result<Self, SpecErrors>;
}

/// Anything that is a compile spec: a row of a program, or a key with bytes.
pub trait AsSpec {
    /// Name of the option.
    fn key(&self) -> &str;
    /// Bytes of the value.
    fn value(&self) -> &[u8];
}

impl AsSpec for CompileSpec<'_> {
    fn key(&self) -> &str {
        self.key.as_deref().unwrap_or_default()
    }
    fn value(&self) -> &[u8] {
        self.value.as_ref().map(Blob::as_slice).unwrap_or_default()
    }
}

impl<K: AsRef<str>, V: AsRef<[u8]>> AsSpec for (K, V) {
    fn key(&self) -> &str {
        self.0.as_ref()
    }
    fn value(&self) -> &[u8] {
        self.1.as_ref()
    }
}

/// The value of an option.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the value of a compile spec",
    label = "no number, no `bool`, no `String`, no `Vec` or array of numbers, and no enum that derives `CompileSpecs`"
)]
pub trait SpecValue: Sized {
    /// Describes the bytes that are expected, for messages.
    fn expected() -> Cow<'static, str>;

    /// Encodes the value, little-endian.
    fn to_bytes(&self) -> Vec<u8>;

    /// From bytes, if they are such a value.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

/// A row, for derived code.
#[doc(hidden)]
pub fn row<T: SpecValue>(key: &'static str, value: &T) -> CompileSpec<'static> {
    CompileSpec { key: Some(key.into()), value: Some(Blob(value.to_bytes().into())) }
}

/// Describes the values that a unit-only enum expects, for derived code.
#[doc(hidden)]
pub fn one_of(name: &str, variants: &[&str]) -> Cow<'static, str> {
    let variants: Vec<String> = variants.iter().map(|variant| alloc::format!("`{variant}`")).collect();
    alloc::format!("{name} ({})", variants.join(" or ")).into()
}
