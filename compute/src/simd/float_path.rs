//! The vectors of floats that this machine has.

#[cfg(target_arch = "aarch64")]
use super::arm_floats::NeonFloats;
use super::floats::{Floats, Plain, WithFloats};
#[cfg(target_arch = "x86_64")]
use super::{x86_floats::Avx2Floats, x86_wide_floats::Avx512Floats};

/// Instructions of this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FloatPath {
    /// None in particular.
    Plain,
    /// Vectors of eight floats.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2Floats),
    /// Vectors of sixteen floats.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512Floats),
    /// Vectors of four floats.
    #[cfg(target_arch = "aarch64")]
    Neon(NeonFloats),
}

impl FloatPath {
    /// The fastest of this machine.
    pub(crate) fn best() -> FloatPath {
        FloatPath::all().into_iter().flatten().next().unwrap_or(FloatPath::Plain)
    }

    /// All of this build, fastest first, and none in the place of those that this machine lacks.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn all() -> [Option<FloatPath>; 3] {
        [
            Avx512Floats::detect().map(FloatPath::Avx512),
            Avx2Floats::detect().map(FloatPath::Avx2),
            Some(FloatPath::Plain),
        ]
    }

    /// All of this build, fastest first, and none in the place of those that this machine lacks.
    #[cfg(target_arch = "aarch64")]
    pub(crate) fn all() -> [Option<FloatPath>; 2] {
        [NeonFloats::detect().map(FloatPath::Neon), Some(FloatPath::Plain)]
    }

    /// All of this build, fastest first, and none in the place of those that this machine lacks.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(crate) fn all() -> [Option<FloatPath>; 1] {
        [Some(FloatPath::Plain)]
    }

    /// Those of this machine that round a product and what it is added to once, and so give the same bits.
    #[cfg(test)]
    pub(crate) fn fused() -> impl Iterator<Item = FloatPath> {
        FloatPath::all().into_iter().flatten().filter(|&path| path != FloatPath::Plain)
    }

    /// The most vectors of a row of sums in [`add_products`](super::products::add_products).
    pub(crate) fn tiles(self) -> usize {
        match self {
            FloatPath::Plain => Plain::TILES,
            #[cfg(target_arch = "x86_64")]
            FloatPath::Avx2(_) => Avx2Floats::TILES,
            #[cfg(target_arch = "x86_64")]
            FloatPath::Avx512(_) => Avx512Floats::TILES,
            #[cfg(target_arch = "aarch64")]
            FloatPath::Neon(_) => NeonFloats::TILES,
        }
    }

    /// Does something with the instructions.
    #[inline]
    pub(crate) fn run<W: WithFloats>(self, with: W) -> W::Output {
        match self {
            FloatPath::Plain => crate::simd::wide(|| with.run(Plain)),
            #[cfg(target_arch = "x86_64")]
            FloatPath::Avx2(floats) => floats.run(with),
            #[cfg(target_arch = "x86_64")]
            FloatPath::Avx512(floats) => floats.run(with),
            #[cfg(target_arch = "aarch64")]
            FloatPath::Neon(floats) => floats.run(with),
        }
    }
}
