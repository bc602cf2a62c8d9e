//! The instructions of this machine that multiply signed weights with bytes, found once.
//!
//! Invariant: a path exists only where its instructions do.

use super::{Plain, WithBytes};
#[cfg(target_arch = "x86_64")]
use super::{avx_vnni::AvxVnni, avx2::Avx2, vnni, vnni::Avx512Vnni};
use crate::simd::matrices::Matrices;

/// Instructions that sums of products may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BytesPath {
    /// None in particular.
    Plain,
    /// Vectors of 32 bytes, with products of numbers of 16 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// Vectors of 32 bytes, with sums of four products of bytes.
    #[cfg(target_arch = "x86_64")]
    AvxVnni(AvxVnni),
    /// Vectors of 64 bytes, with sums of four products of bytes.
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni(Avx512Vnni),
    /// The same, with registers that hold matrices.
    #[cfg(target_arch = "x86_64")]
    Matrices(Avx512Vnni, Matrices),
}

/// Order of the weights of four taps of neighbouring channels, for [`Bytes::depthwise`].
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "loops without vectors take tap after tap"))]
pub(crate) enum DepthwiseOrder {
    /// Tap after tap.
    Taps,
    /// Two taps of each channel, then the other two.
    Pairs,
    /// Four taps of each channel; windows that have columns in common share what is made of these.
    Fours {
        /// The channel in a place.
        channel: fn(usize) -> usize,
        /// Number that is added to inputs.
        offset: i32,
    },
}

impl BytesPath {
    /// The fastest path of this machine.
    pub(crate) fn best() -> Self {
        Self::all().into_iter().flatten().next().unwrap_or(Self::Plain)
    }

    /// All paths of this build, fastest first, and none in the place of those that this machine lacks.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn all() -> [Option<Self>; 5] {
        [
            Avx512Vnni::detect().and_then(|bytes| Some(Self::Matrices(bytes, Matrices::detect()?))),
            Avx512Vnni::detect().map(Self::Avx512Vnni),
            AvxVnni::detect().map(Self::AvxVnni),
            Avx2::detect().map(Self::Avx2),
            Some(Self::Plain),
        ]
    }

    /// All paths of this build.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn all() -> [Option<Self>; 1] {
        [Some(Self::Plain)]
    }

    /// Does something with the instructions of this path.
    #[inline]
    pub(crate) fn run<W: WithBytes>(self, with: W) -> W::Output {
        match self {
            Self::Plain => with.run(Plain),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(bytes) => bytes.run(with),
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni(bytes) => bytes.run(with),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni(bytes) | Self::Matrices(bytes, _) => bytes.run(with),
        }
    }

    /// Returns how the weights of [`Bytes::depthwise`] are stored.
    pub(crate) fn depthwise_order(self) -> DepthwiseOrder {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni(_) | Self::Matrices(..) => {
                DepthwiseOrder::Fours { channel: vnni::interleaved_channel, offset: 128 }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => DepthwiseOrder::Pairs,
            _ => DepthwiseOrder::Taps,
        }
    }

    /// Returns whether a group has the first two weights of each channel, then the other two, instead of all four of each.
    pub(crate) fn has_pairs(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => true,
            _ => false,
        }
    }

    /// Returns the registers that hold matrices.
    pub(crate) fn matrices(self) -> Option<Matrices> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Matrices(_, matrices) => Some(matrices),
            _ => None,
        }
    }

    /// Returns whether [`Bytes::TILES`] is more than one.
    pub(crate) fn is_large(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni(_) | Self::Matrices(..) => true,
            _ => false,
        }
    }

    /// Returns the number that [`Bytes::input`] adds to inputs.
    pub(crate) fn offset(self) -> i32 {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni(_) | Self::Avx512Vnni(_) | Self::Matrices(..) => 128,
            _ => 0,
        }
    }
}
