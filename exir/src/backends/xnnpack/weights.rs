//! Bytes of constants: read, rearranged, rounded and packed. What takes long is done when the bytes are asked for.

use std::io::{self, Write};

use edgepack_builder::content::{Content, Data};
use edgepack_format::scalar::ScalarType;

use super::facts::Facts;
use crate::archive::Weight;
use crate::error::Error;
use crate::graph::ValueId;

/// Returns the bytes of a constant with its dimensions in this order.
pub(super) fn bytes(weight: &Weight<'_>, order: &[usize]) -> Result<Vec<u8>, Error> {
    let order: Vec<u8> = order.iter().filter_map(|dim| u8::try_from(*dim).ok()).collect();
    Ok(weight.data(&order)?.1.to_vec()?)
}

/// Returns the content of a constant with its dimensions in this order, to be read when it is needed.
pub(super) fn data(weight: &Weight<'_>, order: &[usize]) -> Result<Data<'static>, Error> {
    let order: Vec<u8> = order.iter().filter_map(|dim| u8::try_from(*dim).ok()).collect();
    weight.own_data(&order)
}

/// A content made of another one.
struct Changed<F> {
    source: Data<'static>,
    len: u64,
    change: F,
}

/// Returns the content of so many bytes that a function makes of all bytes of another.
pub(super) fn changed(
    source: Data<'static>,
    len: u64,
    change: impl Fn(Vec<u8>) -> Vec<u8> + Send + Sync + 'static,
) -> Data<'static> {
    Data::new(Changed { source, len, change })
}

impl<F: Fn(Vec<u8>) -> Vec<u8> + Send + Sync> Content for Changed<F> {
    fn byte_len(&self) -> u64 {
        self.len
    }

    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&(self.change)(self.source.to_vec()?))
    }

    fn append_to(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let bytes = (self.change)(self.source.to_vec()?);
        match out.is_empty() {
            true => *out = bytes,
            false => out.extend_from_slice(&bytes),
        }
        Ok(())
    }

    fn is_computed(&self) -> bool {
        true
    }
}

/// Floats times a factor for each run of so many.
struct Scaled {
    source: Data<'static>,
    scalar_type: ScalarType,
    run: usize,
    factors: Vec<f32>,
}

/// Returns the floats of a content times a factor for each run of so many.
pub(super) fn scaled(source: Data<'static>, scalar_type: ScalarType, run: usize, factors: Vec<f32>) -> Data<'static> {
    Data::new(Scaled { source, scalar_type, run: run.max(1), factors })
}

impl Content for Scaled {
    fn byte_len(&self) -> u64 {
        self.source.len()
    }

    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut bytes = Vec::new();
        self.append_to(&mut bytes)?;
        out.write_all(&bytes)
    }

    fn append_to(&self, out: &mut Vec<u8>) -> io::Result<()> {
        self.append_part(0, self.source.len(), out)
    }

    /// Parts begin and end between numbers.
    fn append_part(&self, start: u64, len: u64, out: &mut Vec<u8>) -> io::Result<()> {
        let before = out.len();
        self.source.append_part(start, len, out)?;
        let bytes = out.get_mut(before..).unwrap_or_default();
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        match self.scalar_type {
            ScalarType::HALF => self.scale(bytes.as_chunks_mut::<2>().0, start, |two, factor| {
                half::f16::from_f32(half::f16::from_le_bytes(two).to_f32() * factor).to_le_bytes()
            }),
            _ => self.scale(bytes.as_chunks_mut::<4>().0, start, |four, factor| {
                (f32::from_le_bytes(four) * factor).to_le_bytes()
            }),
        }
        Ok(())
    }

    fn is_computed(&self) -> bool {
        true
    }
}

impl Scaled {
    /// Multiplies numbers that begin at this byte of all.
    fn scale<const N: usize>(&self, numbers: &mut [[u8; N]], start: usize, times: impl Fn([u8; N], f32) -> [u8; N]) {
        let first = start.checked_div(N).unwrap_or(0);
        let skipped = first.checked_rem(self.run).unwrap_or(0);
        let mut factors = self.factors.iter().skip(first.checked_div(self.run).unwrap_or(0));
        let (head, rest) = numbers.split_at_mut(self.run.saturating_sub(skipped).min(numbers.len()));
        for (run, factor) in std::iter::once(head).chain(rest.chunks_mut(self.run)).zip(&mut factors) {
            run.iter_mut().for_each(|number| *number = times(*number, *factor));
        }
    }
}

/// Returns the numbers of a constant of floats, in the order of its dimensions.
pub(super) fn floats(weight: &Weight<'_>) -> Result<Vec<f32>, Error> {
    let order: Vec<usize> = (0..weight.sizes().len()).collect();
    let bytes = bytes(weight, &order)?;
    Ok(match weight.scalar_type() {
        ScalarType::HALF => halves(&bytes),
        _ => bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect(),
    })
}

/// Returns numbers of half precision.
pub(super) fn halves(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<2>().0.iter().map(|two| half::f16::from_le_bytes(*two).to_f32()).collect()
}

/// Returns the bytes of numbers of single precision.
pub(super) fn of_floats(numbers: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(numbers));
    numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    bytes
}

/// Returns the bytes of numbers of half or single precision.
pub(super) fn of_type(numbers: &[f32], scalar_type: ScalarType) -> Vec<u8> {
    match scalar_type {
        ScalarType::HALF => numbers.iter().flat_map(|number| half::f16::from_f32(*number).to_le_bytes()).collect(),
        _ => of_floats(numbers),
    }
}

/// Returns the bytes of scales in bf16, rounded to the nearest.
pub(super) fn of_blocks(scales: &[f32]) -> Vec<u8> {
    scales.iter().flat_map(|scale| half::bf16::from_f32(*scale).to_le_bytes()).collect()
}

/// Returns whether all bytes of a constant are zero; a value that is not a constant is none.
pub(super) fn is_zero(facts: &Facts<'_, '_>, value: ValueId) -> bool {
    let Some((_, weight)) = facts.constant(value) else { return false };
    let order: Vec<usize> = (0..weight.sizes().len()).collect();
    // Both zeros of floats count.
    bytes(weight, &order).is_ok_and(|bytes| match weight.scalar_type() {
        ScalarType::FLOAT => bytes.as_chunks::<4>().0.iter().all(|four| f32::from_le_bytes(*four) == 0.0),
        _ => bytes.iter().all(|byte| *byte == 0),
    })
}

/// Returns the content of [`four_bits`] of rows of so many numbers.
pub(super) fn packed(data: Data<'static>, row: usize) -> Data<'static> {
    let rows = data.len().checked_div(row.max(1) as u64).unwrap_or(0);
    let len = rows.saturating_mul(row.div_ceil(2) as u64);
    changed(data, len, move |bytes| four_bits(&bytes, row))
}

/// Packs rows of bytes that hold numbers from -8 to 7: two in a byte, the first in the low half, plus 8. A row of an odd
/// number ends with a half that stands for 0.
pub(super) fn four_bits(bytes: &[u8], row: usize) -> Vec<u8> {
    let half =
        |byte: Option<&u8>| byte.map_or(8, |byte| (byte.cast_signed().clamp(-8, 7).wrapping_add(8)).cast_unsigned());
    let rows = bytes.chunks(row.max(1));
    rows.flat_map(|row| row.chunks(2).map(move |pair| half(pair.first()) | (half(pair.get(1)) << 4))).collect()
}

/// Rounds a bias to whole numbers of the scales of the products it is added to. One scale is that of all channels.
pub(super) fn bias(numbers: &[f32], scales: &[f32]) -> Vec<u8> {
    let scale = |index: usize| scales.get(index).or(scales.first()).copied().unwrap_or(1.0);
    let whole = |(index, number): (usize, &f32)| (number * (1.0 / scale(index))).round_ties_even() as i32;
    numbers.iter().enumerate().flat_map(|pair| whole(pair).to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bits_are_packed_low_half_first() {
        let numbers = [-8i8, 7, 0, 1, -1, 3];
        let bytes: Vec<u8> = numbers.iter().map(|number| number.cast_unsigned()).collect();
        assert_eq!(four_bits(&bytes, 6), [0xf0, 0x98, 0xb7]);
        assert_eq!(four_bits(&bytes, 3), [0xf0, 0x88, 0x79, 0x8b]);
    }

    #[test]
    fn parts_of_scaled_numbers_have_the_factors_of_their_runs() {
        let numbers: Vec<f32> = (1..=12u8).map(f32::from).collect();
        for (scalar_type, item) in [(ScalarType::FLOAT, 4), (ScalarType::HALF, 2)] {
            let source = Data::from(of_type(&numbers, scalar_type));
            let all = scaled(source, scalar_type, 5, vec![2.0, 3.0, 0.5]);
            let want: Vec<f32> = [2.0, 4.0, 6.0, 8.0, 10.0, 18.0, 21.0, 24.0, 27.0, 30.0, 5.5, 6.0].to_vec();
            assert_eq!(all.to_vec().unwrap(), of_type(&want, scalar_type));
            for (start, end) in [(0, 12), (3, 7), (5, 10), (6, 12), (11, 12), (4, 4)] {
                let mut part = Vec::new();
                all.append_part(start as u64 * item, (end - start) as u64 * item, &mut part).unwrap();
                assert_eq!(part, of_type(&want[start..end], scalar_type), "{start} to {end}");
            }
        }
    }

    #[test]
    fn biases_are_rounded_to_even() {
        assert_eq!(bias(&[1.5, 2.5, -0.5], &[1.0]), [2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bias(&[3.0, 3.0], &[1.0, 0.5]), [3, 0, 0, 0, 6, 0, 0, 0]);
    }
}
