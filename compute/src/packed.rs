//! Weights of linear layers as exporters pack them for products with 8-bit activations: blocks of eight rows.
//!
//! A matrix of `rows × columns` begins with a header of 64 bytes. Then, for every eight rows and every group of columns:
//! the weights, 16 columns of the eight rows at a time, then the scales of the eight rows for this group, then sums of
//! their weights, which products in `f32` do not need. Among 16 columns of eight rows the first eight columns of all rows
//! come first. Four-bit weights are stored above 0, 32 at a time: 16 low halves, then 16 high halves. Missing rows are zeros.
//!
//! Invariant: a [`Packed`] has the bytes of all its rows.

use crate::error::{Error, ErrorKind, expect_elements};

/// Rows of a block.
const ROWS: usize = 8;
/// Columns packed together.
const COLUMNS: usize = 16;
/// Columns of a row that are stored next to each other.
const RUN: usize = 8;
/// Length of the header.
const HEADER: usize = 64;
/// Number that the header begins with.
const MAGIC: i32 = 6712;
/// The kind of packing described above.
const UNIVERSAL: i32 = 1;

/// Sizes of a packed matrix, and of its weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Rows; results of the layer.
    pub rows: usize,
    /// Columns; inputs of the layer.
    pub columns: usize,
    /// Columns that share a scale.
    pub group: usize,
    /// Bits of a weight: 4 or 8.
    pub bits: usize,
}

impl Shape {
    /// Returns whether columns are whole groups of whole tiles, and weights are of a width that is packed.
    fn is_packable(&self) -> bool {
        let Shape { columns, group, bits, .. } = *self;
        group > 0 && group.is_multiple_of(COLUMNS) && columns.is_multiple_of(group) && matches!(bits, 4 | 8)
    }

    /// Bytes of a block of eight rows.
    fn block(&self) -> usize {
        let groups = self.columns / self.group;
        ROWS * (self.columns * self.bits / 8 + groups * 2 * size_of::<f32>())
    }

    /// Returns the bytes of the matrix with its header, if it can be packed and they can be counted.
    pub fn byte_len(&self) -> Option<usize> {
        if !self.is_packable() {
            return None;
        }
        let per_row = self.columns.checked_mul(self.bits + 8)?;
        per_row.checked_mul(self.rows.checked_add(ROWS)?)?;
        Some(HEADER + self.rows.div_ceil(ROWS) * self.block())
    }
}

/// One packed matrix.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    shape: Shape,
    bytes: &'a [u8],
}

impl<'a> Packed<'a> {
    /// Returns the matrix of this shape that is packed in bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Data`] if there are too few bytes or they begin otherwise; [`ErrorKind::Unsupported`] if they are packed
    /// in another format.
    pub fn new(shape: Shape, bytes: &'a [u8]) -> Result<Self, Error> {
        let Shape { rows, columns, bits, .. } = shape;
        let (have, need) = (bytes.len(), shape.byte_len().unwrap_or(usize::MAX));
        if have < need {
            return Err(Error::new(
                ErrorKind::Data,
                format!("has {have} bytes per expert, {rows}x{columns} weights of {bits} bits need {need}"),
            ));
        }
        let word = |at: usize| bytes[at * 4..].first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes));
        if word(0) != MAGIC {
            let message = format!("begins with {}, packed weights begin with {MAGIC}", word(0));
            return Err(Error::new(ErrorKind::Data, message));
        }
        let wanted = [UNIVERSAL, bits as i32, 0, 0, ROWS as i32, COLUMNS as i32, 2];
        let have = [1, 2, 3, 4, 5, 6, 7].map(word);
        if have != wanted {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "is packed as {have:?} (kind, bits, zeros, bias, rows, columns, parts), the operator reads {wanted:?}"
                ),
            ));
        }
        Ok(Packed { shape, bytes: &bytes[HEADER..] })
    }

    /// Writes rows from `first`, a multiple of eight, on, as floats: as many as `out` holds.
    pub fn unpack(&self, first: usize, out: &mut [f32]) {
        let Shape { columns, .. } = self.shape;
        let blocks = self.bytes.chunks_exact(self.shape.block()).skip(first / ROWS);
        for (block, out) in blocks.zip(out.chunks_mut(ROWS * columns)) {
            self.unpack_block(block, out);
        }
    }

    /// One block; the last one of a matrix may have fewer rows.
    fn unpack_block(&self, block: &[u8], out: &mut [f32]) {
        let Shape { columns, group, bits, .. } = self.shape;
        let (tile, weights) = (ROWS * COLUMNS * bits / 8, ROWS * group * bits / 8);
        for (index, bytes) in block.chunks_exact(weights + 2 * ROWS * size_of::<f32>()).enumerate() {
            let (weights, tail) = bytes.split_at(weights);
            let (scales, _) = tail.as_chunks::<4>();
            for (at, tile) in weights.chunks_exact(tile).enumerate() {
                let column = index * group + at * COLUMNS;
                let mut values = [0i8; ROWS * COLUMNS];
                match bits {
                    4 => nibbles(tile, &mut values),
                    _ => values.iter_mut().zip(tile).for_each(|(value, &byte)| *value = byte as i8),
                }
                for (run, values) in values.chunks_exact(RUN).enumerate() {
                    let (row, column) = (run % ROWS, column + run / ROWS * RUN);
                    let scale = scales.get(row).map_or(0.0, |bytes| f32::from_le_bytes(*bytes));
                    let to = out.get_mut(row * columns + column..).into_iter().flatten();
                    to.zip(values).for_each(|(to, &value)| *to = f32::from(value) * scale);
                }
            }
        }
    }
}

fn nibbles(tile: &[u8], values: &mut [i8; ROWS * COLUMNS]) {
    for (bytes, values) in tile.chunks_exact(16).zip(values.chunks_exact_mut(32)) {
        let (low, high) = values.split_at_mut(16);
        for ((byte, low), high) in bytes.iter().zip(low).zip(high) {
            (*low, *high) = ((byte & 15) as i8 - 8, (byte >> 4) as i8 - 8);
        }
    }
}

/// Packs weights `[row, column]`, and their scales `[row, group]`, as exporters do.
///
/// # Errors
///
/// [`ErrorKind::Geometry`] if there are fewer weights or scales than the shape says, or columns are not whole groups of a
/// multiple of 16.
///
/// ```
/// use edgepack_compute::packed::{Packed, Shape, pack};
///
/// let shape = Shape { rows: 1, columns: 16, group: 16, bits: 8 };
/// let bytes = pack(shape, &[3; 16], &[0.5])?;
/// let mut row = [0.0; 16];
/// Packed::new(shape, &bytes)?.unpack(0, &mut row);
/// assert_eq!(row, [1.5; 16]);
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
pub fn pack(shape: Shape, weights: &[i8], scales: &[f32]) -> Result<Vec<u8>, Error> {
    let Shape { rows, columns, group, bits } = shape;
    if !shape.is_packable() {
        return Err(Error::new(ErrorKind::Geometry, format!("{shape:?} cannot be packed")));
    }
    expect_elements("the list of weights", weights.len(), rows.saturating_mul(columns))?;
    expect_elements("the list of scales", scales.len(), rows.saturating_mul(columns / group))?;
    let words = [MAGIC, UNIVERSAL, bits as i32, 0, 0, ROWS as i32, COLUMNS as i32, 2];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(HEADER, 0);
    for first in (0..rows).step_by(ROWS) {
        let weight = |row: usize, column: usize| {
            if first + row < rows { weights[(first + row) * columns + column] } else { 0 }
        };
        for start in (0..columns).step_by(group) {
            for tile in (start..start + group).step_by(COLUMNS) {
                let places = (0..2 * ROWS).flat_map(|run| (0..RUN).map(move |i| (run % ROWS, run / ROWS * RUN + i)));
                let values: Vec<i8> = places.map(|(row, column)| weight(row, tile + column)).collect();
                match bits {
                    8 => bytes.extend(values.iter().map(|&value| value as u8)),
                    _ => values.chunks(32).for_each(|values| {
                        let up = |value: i8| (value + 8) as u8;
                        bytes.extend((0..16).map(|i| up(values[i]) | up(values[i + 16]) << 4));
                    }),
                }
            }
            let scale = |row: usize| scales.get((first + row) * (columns / group) + start / group);
            bytes.extend((0..ROWS).flat_map(|row| {
                let scale = if first + row < rows { scale(row).copied().unwrap_or(0.0) } else { 0.0 };
                scale.to_le_bytes()
            }));
            bytes.extend((0..ROWS).flat_map(|row| {
                let sum: i32 = (start..start + group).map(|column| i32::from(weight(row, column))).sum();
                sum.to_le_bytes()
            }));
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn packed_weights_come_back() {
        let mut random = Random::new(75);
        for bits in [4, 8] {
            for rows in [1, 8, 70] {
                let shape = Shape { rows, columns: 96, group: 32, bits };
                let half = 1 << (bits - 1);
                let weights: Vec<i8> =
                    (0..rows * 96).map(|_| (random.below(2 * half) as i64 - half as i64) as i8).collect();
                let scales = random.floats(rows * 3);
                let bytes = pack(shape, &weights, &scales).unwrap();
                assert_eq!(shape.byte_len(), Some(bytes.len()));
                let packed = Packed::new(shape, &bytes).unwrap();
                let mut have = vec![0.0; rows * 96];
                packed.unpack(0, &mut have);
                let want: Vec<f32> = (0..rows * 96).map(|at| f32::from(weights[at]) * scales[at / 32]).collect();
                assert_eq!(have, want, "{shape:?}");
                packed.unpack(rows / 8 * 8, &mut have[..rows % 8 * 96]);
                assert_eq!(have[..rows % 8 * 96], want[rows / 8 * 8 * 96..], "{shape:?}");
                let short = Packed::new(shape, &bytes[..bytes.len() - 1]).unwrap_err();
                let need = bytes.len();
                let message =
                    format!("has {} bytes per expert, {rows}x96 weights of {bits} bits need {need}", need - 1);
                assert_eq!((short.kind, &*short.message), (ErrorKind::Data, &*message));
            }
        }
    }

    #[test]
    fn other_packings_are_refused() {
        let shape = Shape { rows: 8, columns: 16, group: 16, bits: 4 };
        let bytes = pack(shape, &[1; 128], &[1.0; 8]).unwrap();
        let refused = |at: usize| {
            let mut bytes = bytes.clone();
            bytes[at] += 1;
            Packed::new(shape, &bytes).unwrap_err().kind
        };
        assert_eq!((refused(0), refused(4)), (ErrorKind::Data, ErrorKind::Unsupported));
        assert_eq!(pack(shape, &[1; 127], &[1.0; 8]).unwrap_err().kind, ErrorKind::Geometry);
    }
}
