//! The instructions of this machine that multiply bytes, found once.
//!
//! Invariant: a path exists only where its instructions do.

use super::dot::{Scalar, WithDot};
#[cfg(target_arch = "x86_64")]
use super::x86;

/// Instructions that products of bytes may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Path {
    /// None in particular.
    Scalar,
    /// Vectors of 32 bytes: `vpmaddwd` on numbers of 16 bits, and fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2(x86::Avx2),
    /// Vectors of 32 bytes: `vpdpbusd`.
    #[cfg(target_arch = "x86_64")]
    AvxVnni(x86::AvxVnni),
    /// Vectors of 64 bytes: `vpdpbusd`.
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni(x86::Avx512Vnni),
}

impl Path {
    /// The fastest path of this machine.
    pub(crate) fn best() -> Path {
        Path::all().into_iter().flatten().next().unwrap_or(Path::Scalar)
    }

    /// All paths of this build, fastest first, and none in the place of those that this machine lacks.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn all() -> [Option<Path>; 4] {
        use x86::{Avx2, Avx512Vnni, AvxVnni};
        [
            Avx512Vnni::detect().map(Path::Avx512Vnni),
            AvxVnni::detect().map(Path::AvxVnni),
            Avx2::detect().map(Path::Avx2),
            Some(Path::Scalar),
        ]
    }

    /// All paths of this build, fastest first, and none in the place of those that this machine lacks.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn all() -> [Option<Path>; 1] {
        [Some(Path::Scalar)]
    }

    /// Does something with the instructions of this path.
    #[inline]
    pub(crate) fn run<W: WithDot>(self, with: W) -> W::Output {
        match self {
            Path::Scalar => with.run(Scalar),
            #[cfg(target_arch = "x86_64")]
            Path::Avx2(dot) => dot.run(with),
            #[cfg(target_arch = "x86_64")]
            Path::AvxVnni(dot) => dot.run(with),
            #[cfg(target_arch = "x86_64")]
            Path::Avx512Vnni(dot) => dot.run(with),
        }
    }
}
