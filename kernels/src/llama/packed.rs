//! Weights of linear layers as exporters pack them for products with 8-bit activations: blocks of eight rows.
//!
//! A matrix of `rows × columns` begins with a header of 64 bytes. Then, for every eight rows and every group of columns:
//! the weights, 16 columns of the eight rows at a time, then the scales of the eight rows for this group, then sums of
//! their weights, which products in `f32` do not need. Among 16 columns of eight rows the first eight columns of all rows
//! come first. Four-bit weights are stored above 0, 32 at a time: 16 low halves, then 16 high halves. Missing rows are zeros.
//!
//! Invariant: a [`Packed`] has the bytes of all its rows.

use edgepack_executor::kernel::KernelError;

/// Rows of a block.
const ROWS: usize = 8;
/// Columns packed together.
const COLUMNS: usize = 16;
/// Columns that lie together.
const RUN: usize = 8;
/// Length of the header.
const HEADER: usize = 64;
/// What the header begins with.
const MAGIC: i32 = 6712;
/// The kind of packing described above.
const UNIVERSAL: i32 = 1;

/// What a matrix is said to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    /// Rows; results of the layer.
    pub rows: usize,
    /// Columns; inputs of the layer.
    pub columns: usize,
    /// Columns that share a scale.
    pub group: usize,
    /// Bits of a weight: 4 or 8.
    pub bits: usize,
}

impl Form {
    /// Bytes of a block of eight rows.
    fn block(&self) -> usize {
        let groups = self.columns / self.group;
        ROWS * (self.columns * self.bits / 8 + groups * 2 * size_of::<f32>())
    }

    /// Bytes of the matrix with its header, if they can be counted.
    pub fn len(&self) -> Option<usize> {
        let per_row = self.columns.checked_mul(self.bits + 8)?;
        per_row.checked_mul(self.rows.checked_add(ROWS)?)?;
        Some(HEADER + self.rows.div_ceil(ROWS) * self.block())
    }
}

/// One packed matrix.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    form: Form,
    bytes: &'a [u8],
}

impl<'a> Packed<'a> {
    /// A matrix of this form, or what is wrong with its bytes.
    pub fn new(name: &str, form: Form, bytes: &'a [u8]) -> Result<Self, KernelError> {
        let Form { rows, columns, bits, .. } = form;
        let (have, need) = (bytes.len(), form.len().unwrap_or(usize::MAX));
        if have < need {
            return Err(KernelError::argument(format!(
                "`{name}` has {have} bytes per expert, {rows}x{columns} weights of {bits} bits need {need}"
            )));
        }
        let word = |at: usize| bytes[at * 4..].first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes));
        if word(0) != MAGIC {
            return Err(KernelError::argument(format!(
                "`{name}` begins with {}, packed weights begin with {MAGIC}",
                word(0)
            )));
        }
        let wanted = [UNIVERSAL, bits as i32, 0, 0, ROWS as i32, COLUMNS as i32, 2];
        let have = [1, 2, 3, 4, 5, 6, 7].map(word);
        if have != wanted {
            return Err(KernelError::unsupported(format!(
                "`{name}` is packed as {have:?} (kind, bits, zeros, bias, rows, columns, parts), the operator reads {wanted:?}"
            )));
        }
        Ok(Packed { form, bytes: &bytes[HEADER..] })
    }

    /// Rows from `first`, a multiple of eight, on, as floats: as many as `out` holds.
    pub fn unpack(&self, first: usize, out: &mut [f32]) {
        let Form { columns, .. } = self.form;
        let blocks = self.bytes.chunks_exact(self.form.block()).skip(first / ROWS);
        for (block, out) in blocks.zip(out.chunks_mut(ROWS * columns)) {
            self.unpack_block(block, out);
        }
    }

    /// One block; the last one of a matrix may have fewer rows.
    fn unpack_block(&self, block: &[u8], out: &mut [f32]) {
        let Form { columns, group, bits, .. } = self.form;
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

/// Packs weights as exporters do.
#[cfg(test)]
pub fn pack(form: Form, weights: &[i8], scales: &[f32]) -> Vec<u8> {
    let Form { rows, columns, group, bits } = form;
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
    bytes
}
