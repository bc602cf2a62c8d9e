//! Lists of options for a backend, as callers have them.

use edgepack_format::pte::CompileSpec;

/// A list of options for [`MethodBuilder::delegate`](super::MethodBuilder::delegate): a vector or an array, by value or
/// borrowed.
pub trait Specs {
    /// Returns the options, in order.
    fn specs(&self) -> &[CompileSpec<'_>];
}

impl Specs for Vec<CompileSpec<'_>> {
    fn specs(&self) -> &[CompileSpec<'_>] {
        self
    }
}

impl Specs for &Vec<CompileSpec<'_>> {
    fn specs(&self) -> &[CompileSpec<'_>] {
        self
    }
}

impl Specs for &[CompileSpec<'_>] {
    fn specs(&self) -> &[CompileSpec<'_>] {
        self
    }
}

impl<const N: usize> Specs for [CompileSpec<'_>; N] {
    fn specs(&self) -> &[CompileSpec<'_>] {
        self
    }
}

impl<const N: usize> Specs for &[CompileSpec<'_>; N] {
    fn specs(&self) -> &[CompileSpec<'_>] {
        *self
    }
}
