//! Programs as text that people can read, review and compare, and the same programs from it.
//!
//! [`print()`] writes a program as assembly: every method with its values (types, shapes, places), its instructions by name
//! with labels where jumps go, its delegates and stack traces, and what else the file holds. [`parse`] makes the same rows
//! and segments of it. Bytes are base64, or ranges of one file next to the text if they are many. A default value is
//! not written; a list that is there but empty is.
//!
//! ```
//! use edgepack::edit::{DiffOptions, Opened, diff};
//! use edgepack::text;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/corpus/models/cond_portable.pte");
//! let file = Opened::open(path)?;
//! let package = file.package()?;
//! let printed = text::print(&package)?;
//! assert!(printed.contains("jump_if_false"));
//! let parsed = text::parse(&printed)?;
//! assert!(diff(&package, &parsed, &DiffOptions { exact: true, ..DiffOptions::default() })?.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! The grammar has no nesting deeper than a file has, and parsing is one pass: time and memory are linear in the text.

mod instructions;
mod lexer;
mod parse;
mod parse_method;
mod parser;
mod print;
mod print_method;
mod spelling;
mod values;

pub use lexer::ParseError;
pub use parse::{parse, parse_with};
pub use print::{SideFile, print, print_to, print_with};

/// The first word of a text.
const MAGIC: &str = "edgepack_program";
/// The version of the grammar.
const VERSION: i128 = 1;
