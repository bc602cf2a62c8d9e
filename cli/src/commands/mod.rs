//! The commands, one file each: its arguments and what it does.

pub mod bench;
pub mod build;
pub mod check;
pub mod completions;
pub mod convert;
pub mod darwinn;
pub mod diff;
pub mod dump;
pub mod explain;
pub mod extract;
pub mod inspect;
pub mod join;
pub mod lower;
pub mod man;
pub mod mutate;
pub mod ops;
pub mod parse;
pub mod patch;
pub mod print;
pub mod run;
pub mod shrink;
pub mod size;
pub mod smith;
pub mod split;
pub mod verify;
