//! The commands, one file each: its arguments and what it does.

pub mod bench;
pub mod check;
pub mod completions;
pub mod explain;
pub mod extract;
pub mod inspect;
pub mod man;
pub mod ops;
pub mod run;
pub mod size;
pub mod verify;
