//! Products of matrices of bytes in registers that hold matrices (AMX of x86-64): sixteen rows of inputs with the weights of
//! sixteen channels each, up to four times.
//!
//! Invariant: a token is made by `detect` alone, after the machine has said that it has the instructions, and the system that
//! this process may use the registers. They have shapes while there is a [`Shaped`], which stays on its thread, and of which
//! a function has one at a time. The compiler uses none of these registers, nor does any library, so they keep what they have
//! from one block of instructions to the next; blocks run in the order in which they are written.
#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod none;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use amx::{Matrices, Shaped};
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub(crate) use none::{Matrices, Shaped};

use super::dot::CHANNELS;

/// Rows of a matrix of inputs.
pub(crate) const ROWS: usize = 16;

/// Sums of rows, by tile of channels.
#[repr(align(64))]
pub(crate) struct Sums<const C: usize>(pub(crate) [[[i32; CHANNELS]; C]; ROWS]);

/// Rows of inputs.
#[derive(Clone, Copy)]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), expect(dead_code, reason = "read by instructions"))]
pub(crate) struct Inputs<'a> {
    pub bytes: &'a [i8],
    /// True if they are from -128 to 127, false if from 0 to 255.
    pub signed: bool,
    pub places: Places,
}

/// Places at which the rows of inputs begin.
#[derive(Clone, Copy)]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), expect(dead_code, reason = "read by instructions"))]
pub(crate) enum Places {
    /// The first row, and how many bytes further each of the next is.
    Steps(usize, usize),
    /// Each row by itself.
    Each([usize; ROWS]),
}
