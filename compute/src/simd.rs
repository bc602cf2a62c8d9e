//! Vector units of the machine the program runs on: plain loops compiled for them, products of bytes, and vectors of floats.

pub(crate) mod apart;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod arm;
#[cfg(target_arch = "aarch64")]
mod arm_floats;
pub(crate) mod bytes;
pub(crate) mod dot;
pub(crate) mod exponential;
pub(crate) mod float_path;
pub(crate) mod floats;
pub(crate) mod matrices;
pub(crate) mod path;
pub(crate) mod products;
pub(crate) mod sums;
mod table;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod token;
pub(crate) mod window;
#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
mod x86_floats;
#[cfg(target_arch = "x86_64")]
mod x86_wide_floats;

use rten_simd::{Isa, SimdOp};
pub use table::look_up;

/// Runs `f` where the compiler may use every vector instruction of this machine. Only what is inlined into `f` gains:
/// slice loops of a hot function, not calls.
#[inline(always)]
pub fn wide<R>(f: impl FnOnce() -> R) -> R {
    Wide(f).dispatch()
}

struct Wide<F>(F);

impl<R, F: FnOnce() -> R> SimdOp for Wide<F> {
    type Output = R;

    #[inline(always)]
    fn eval<I: Isa>(self, _: I) -> R {
        (self.0)()
    }
}

/// A loop to run as [`wide`] does; `run` is marked `#[inline(always)]`, since closures are inlined only while they are small.
pub trait Loop {
    /// Runs it.
    fn run(self);
}

/// Runs a loop where the compiler may use every vector instruction of this machine.
#[inline(always)]
pub fn run_wide(this: impl Loop) {
    Looped(this).dispatch();
}

struct Looped<L>(L);

impl<L: Loop> SimdOp for Looped<L> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, _: I) {
        self.0.run();
    }
}
