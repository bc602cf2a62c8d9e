//! The instructions of this machine that multiply bytes, found once.
//!
//! Invariant: a path exists only where its instructions do.

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use super::arm;
use super::dot::{Scalar, WithDot};
#[cfg(target_arch = "x86_64")]
use super::x86;

/// Instructions that products of bytes may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Path {
    /// None in particular.
    Scalar,
    /// Vectors of 32 bytes: `vpmaddubsw` on half bytes, and fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2(x86::Avx2),
    /// Vectors of 32 bytes: `vpdpbusd`.
    #[cfg(target_arch = "x86_64")]
    AvxVnni(x86::AvxVnni),
    /// Vectors of 64 bytes: `vpdpbusd`.
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni(x86::Avx512Vnni),
    /// Vectors of 16 bytes: `smull` and `sadalp`.
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    Neon(arm::Neon),
    /// Vectors of 16 bytes: `sdot`.
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    DotProduct(arm::DotProduct),
    /// Vectors of 16 bytes: `usmmla` for two rows, `usdot` for one.
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    MatrixProduct(arm::MatrixProduct),
}

impl Path {
    /// The fastest path of this machine.
    pub(crate) fn best() -> Path {
        Path::all().into_iter().find_map(|(_, path)| path).unwrap_or(Path::Scalar)
    }

    /// All paths of this build by name, fastest first, and none in the place of those that this machine lacks.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn all() -> [(&'static str, Option<Path>); 4] {
        use x86::{Avx2, Avx512Vnni, AvxVnni};
        [
            ("AVX-512 VNNI", Avx512Vnni::detect().map(Path::Avx512Vnni)),
            ("AVX-VNNI", AvxVnni::detect().map(Path::AvxVnni)),
            ("AVX2", Avx2::detect().map(Path::Avx2)),
            ("scalar", Some(Path::Scalar)),
        ]
    }

    /// All paths of this build by name, fastest first, and none in the place of those that this machine lacks.
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    pub(crate) fn all() -> [(&'static str, Option<Path>); 4] {
        use arm::{DotProduct, MatrixProduct, Neon};
        [
            ("i8mm", MatrixProduct::detect().map(Path::MatrixProduct)),
            ("dot product", DotProduct::detect().map(Path::DotProduct)),
            ("NEON", Neon::detect().map(Path::Neon)),
            ("scalar", Some(Path::Scalar)),
        ]
    }

    /// All paths of this build by name.
    #[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
    pub(crate) fn all() -> [(&'static str, Option<Path>); 1] {
        [("scalar", Some(Path::Scalar))]
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
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Path::Neon(dot) => dot.run(with),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Path::DotProduct(dot) => dot.run(with),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Path::MatrixProduct(dot) => dot.run(with),
        }
    }
}
