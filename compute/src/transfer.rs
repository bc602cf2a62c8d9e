//! Elements moved from one walk to another, and converted where their types differ.

use crate::error::{Error, ErrorKind};
use crate::threads::for_each_piece;
use crate::walk::{Axis, Walk};

/// Elements per block of scratch.
const BLOCK: usize = 256;
/// Bytes of a block of the widest type.
const BLOCK_BYTES: usize = BLOCK * 16;
/// Bytes of scratch that a transfer may need.
pub const SCRATCH: usize = 2 * BLOCK_BYTES;

/// A loop that converts as many elements as fit, between slices aligned to their elements.
pub type Converter = fn(&[u8], &mut [u8]);

/// The conversion of elements that are moved: their widths in bytes, up to 16, and the loop between them.
#[derive(Clone, Copy, Debug)]
pub struct Conversion {
    /// Bytes of an element before.
    pub from: usize,
    /// Bytes of an element after.
    pub to: usize,
    /// The loop that converts; without one elements stay what they are.
    pub convert: Option<Converter>,
}

impl Conversion {
    /// Returns the conversion that leaves elements of a width as they are.
    pub fn none(width: usize) -> Conversion {
        Conversion { from: width, to: width, convert: None }
    }
}

/// Moves the first `count` elements of a walk over one memory to the first places of a walk over another; `scratch` has
/// [`SCRATCH`] bytes where elements are converted, or neither walk is linear.
///
/// # Errors
///
/// [`ErrorKind::Geometry`] if the scratch is needed and smaller.
///
/// # Panics
///
/// If a walk leaves its memory.
///
/// ```
/// use edgepack_compute::transfer::{Conversion, transfer};
/// use edgepack_compute::walk::{Axis, Walk};
///
/// let mut to = [0; 4];
/// let every_second = Walk::new([Axis { size: 2, stride: 2 }], 1);
/// transfer(Conversion::none(1), (&[7, 9], &Walk::linear(2)), (&mut to, &every_second), 2, &mut [])?;
/// assert_eq!(to, [0, 7, 0, 9]);
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
pub fn transfer(
    conversion: Conversion,
    (from, source): (&[u8], &Walk),
    (to, target): (&mut [u8], &Walk),
    count: usize,
    scratch: &mut [u8],
) -> Result<(), Error> {
    if count == 0 {
        return Ok(());
    }
    let (from_width, to_width) = (conversion.from, conversion.to);
    let linear_source = source.is_linear().then(|| source.start() * from_width..(source.start() + count) * from_width);
    let linear_target = target.is_linear().then(|| target.start() * to_width..(target.start() + count) * to_width);
    match (conversion.convert, linear_source, linear_target) {
        (None, Some(range), _) => target.cursor().scatter(to_width, &from[range], to),
        (None, _, Some(range)) => {
            for_each_piece(&mut to[range], source.unit().saturating_mul(from_width), |start, to| {
                let mut cursor = source.cursor();
                cursor.advance(start / from_width);
                cursor.gather(from_width, from, to);
            });
        }
        (Some(convert), Some(source), Some(target))
            if aligned(&from[source.clone()], from_width) && aligned(to, to_width) =>
        {
            convert(&from[source], &mut to[target]);
        }
        (convert, ..) => {
            let (mut source, mut target) = (source.cursor(), target.cursor());
            let Some((raw, rest)) = scratch.split_at_mut_checked(BLOCK_BYTES) else {
                return Err(Error::new(ErrorKind::Geometry, "the scratch memory is smaller than asked for"));
            };
            for start in (0..count).step_by(BLOCK) {
                let len = BLOCK.min(count - start);
                let raw = &mut raw[..len * from_width];
                source.gather(from_width, from, raw);
                match convert {
                    None => target.scatter(to_width, raw, to),
                    Some(convert) => {
                        let converted = &mut rest[..len * to_width];
                        convert(raw, converted);
                        target.scatter(to_width, converted, to);
                    }
                }
            }
        }
    }
    Ok(())
}

/// A part of one tensor and the part of another it is moved to: the first elements, and the strides, of each.
#[derive(Clone, Copy, Debug)]
pub struct Region<'a> {
    /// Sizes of both parts.
    pub sizes: &'a [usize],
    /// Dimensions from outermost to innermost in the memory that is written.
    pub dim_order: &'a [u8],
    /// Strides and first element of the part that is read.
    pub from: (&'a [usize], usize),
    /// Strides and first element of the part that is written.
    pub to: (&'a [usize], usize),
}

impl Region<'_> {
    /// Moves the elements; `scratch` is as for [`transfer`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Geometry`] if the scratch is needed and smaller.
    ///
    /// # Panics
    ///
    /// If a part leaves its memory.
    ///
    /// ```
    /// use edgepack_compute::transfer::{Conversion, Region};
    ///
    /// // A column becomes a row.
    /// let region = Region { sizes: &[2], dim_order: &[0], from: (&[2], 1), to: (&[1], 2) };
    /// let mut to = [0; 4];
    /// region.transfer(Conversion::none(1), &[1, 2, 3, 4], &mut to, &mut [])?;
    /// assert_eq!(to, [0, 0, 2, 4]);
    /// # Ok::<(), edgepack_compute::Error>(())
    /// ```
    pub fn transfer(
        &self,
        conversion: Conversion,
        from: &[u8],
        to: &mut [u8],
        scratch: &mut [u8],
    ) -> Result<(), Error> {
        let walk = |(strides, start): (&[usize], usize)| {
            let axis = |&dim: &u8| Axis { size: self.sizes[dim as usize], stride: strides[dim as usize] as isize };
            Walk::new(self.dim_order.iter().map(axis), start)
        };
        let (source, target) = (walk(self.from), walk(self.to));
        transfer(conversion, (from, &source), (to, &target), self.sizes.iter().product(), scratch)
    }
}

fn aligned(bytes: &[u8], width: usize) -> bool {
    bytes.as_ptr().addr().is_multiple_of(width.min(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_converted_block_by_block() {
        fn widen(from: &[u8], to: &mut [u8]) {
            let to: &mut [u16] = bytemuck::cast_slice_mut(to);
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = from.into());
        }
        let conversion = Conversion { from: 1, to: 2, convert: Some(widen) };
        let (from, mut to) = ((0..=255).cycle().take(300).collect::<Vec<u8>>(), vec![0u16; 600]);
        // Backwards, to every second place.
        let source = Walk::new([Axis { size: 300, stride: -1 }], 299);
        let target = Walk::new([Axis { size: 300, stride: 2 }], 0);
        let mut scratch = vec![0u64; SCRATCH / 8];
        let scratch: &mut [u8] = bytemuck::cast_slice_mut(&mut scratch);
        let bytes = bytemuck::cast_slice_mut(&mut to);
        transfer(conversion, (&from, &source), (bytes, &target), 300, scratch).unwrap();
        for (at, pair) in to.chunks(2).enumerate() {
            assert_eq!(pair, [from[299 - at].into(), 0]);
        }
        let bytes = bytemuck::cast_slice_mut(&mut to);
        let refused = transfer(conversion, (&from, &source), (bytes, &target), 300, &mut []);
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Geometry);
    }
}
