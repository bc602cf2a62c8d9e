//! Vector units of the machine the program runs on: plain loops compiled for them, and products of bytes.

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod arm;
pub(crate) mod dot;
pub(crate) mod path;
#[cfg(target_arch = "x86_64")]
mod x86;

use rten_simd::{Isa, SimdOp};

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
