//! Packages whose code is compiled and called, in this process and in a child.
#![cfg(unix)]

mod child;
mod objects;
mod packages;
