//! Machines without such registers.

use super::{CHANNELS, Inputs, Sums};
use crate::simd::dot::Group;

/// There is no token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Matrices {}

impl Matrices {
    /// No token.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn detect() -> Option<Self> {
        None
    }

    /// Never called.
    pub(crate) fn shaped(self, _: usize) -> Shaped {
        match self {}
    }
}

/// Registers that there are not.
pub(crate) struct Shaped(Matrices);

impl Shaped {
    /// Never called.
    pub(crate) fn start<const C: usize>(&mut self, _: &[[i32; CHANNELS]; C]) {
        match self.0 {}
    }

    /// Never called.
    pub(crate) fn add<const C: usize>(&mut self, _: &Inputs<'_>, _: usize, _: &[[Group; C]]) {
        match self.0 {}
    }

    /// Never called.
    pub(crate) fn sums<const C: usize>(&self, _: &mut Sums<C>) {
        match self.0 {}
    }
}
