//! Bytes on the heap at a 64-byte boundary.

use std::fmt;
use std::ops::Deref;

use bytemuck::{Pod, Zeroable};

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// A fixed number of bytes, the first of which is 64-byte aligned: enough for every tensor alignment exporters use by
/// default and for every vector instruction.
#[derive(Clone, Default)]
pub struct AlignedBytes {
    lines: Vec<Line>,
    len: usize,
}

impl AlignedBytes {
    /// That many zeros.
    pub fn zeroed(len: usize) -> Self {
        AlignedBytes { lines: bytemuck::zeroed_vec(len.div_ceil(64)), len }
    }

    /// A copy of a slice.
    pub fn copy_of(bytes: &[u8]) -> Self {
        let (whole, rest) = bytes.as_chunks::<64>();
        let mut lines = Vec::with_capacity(bytes.len().div_ceil(64));
        lines.extend(whole.iter().map(|line| Line(*line)));
        if !rest.is_empty() {
            let mut last = [0; 64];
            last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            lines.push(Line(last));
        }
        AlignedBytes { lines, len: bytes.len() }
    }

    /// The bytes, for writing.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        let all: &mut [u8] = bytemuck::cast_slice_mut(&mut self.lines);
        all.split_at_mut_checked(self.len).map_or(&mut [], |(bytes, _)| bytes)
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        let all: &[u8] = bytemuck::cast_slice(&self.lines);
        all.split_at_checked(self.len).map_or(&[], |(bytes, _)| bytes)
    }
}

impl fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_aligned_and_exact() {
        for len in [0, 1, 63, 64, 65, 1000] {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let copy = AlignedBytes::copy_of(&bytes);
            assert_eq!(&*copy, &*bytes);
            assert!(copy.is_empty() || (copy.as_ptr() as usize).is_multiple_of(64));
        }
    }
}
