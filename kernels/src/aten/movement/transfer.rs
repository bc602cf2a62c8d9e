//! Moves elements from one walk to another, converting their type on the way where it differs.

use edgepack_executor::kernel::{KernelError, Prepare};
use edgepack_executor::tensor::{TensorMut, TensorRef};
use edgepack_format::finding::ErrorCode;
use edgepack_format::scalar::ScalarType;

use crate::broadcast::Walk;
use crate::convert::{Converter, converter, is_aligned};

/// Elements per block of scratch.
const BLOCK: usize = 256;
/// Bytes of a block of the widest type.
const BLOCK_BYTES: usize = BLOCK * 16;
/// Bytes of scratch a transfer may need.
pub const SCRATCH: usize = 2 * BLOCK_BYTES;

/// What elements of one type become in another.
#[derive(Clone, Copy)]
pub struct Conversion {
    from: usize,
    to: usize,
    convert: Option<Converter>,
}

impl Conversion {
    /// From one type to another; an error if there is no conversion.
    pub fn new(from: ScalarType, to: ScalarType) -> Result<Self, KernelError> {
        let convert = if from == to {
            None
        } else {
            let converter = converter(from, to);
            Some(
                converter
                    .ok_or_else(|| KernelError::argument(format!("elements of type {from} cannot become {to}")))?,
            )
        };
        Ok(Conversion { from: from.size().unwrap_or(1), to: to.size().unwrap_or(1), convert })
    }
}

/// An error unless an input and the output have one element type.
pub fn expect_same_type(args: &Prepare<'_>, input: usize, out: usize) -> Result<(), KernelError> {
    let (from, to) = (args.tensor(input)?.meta.dtype, args.tensor(out)?.meta.dtype);
    if from == to {
        return Ok(());
    }
    Err(KernelError::argument(format!("`self` is {from}, `out` is {to}: the types differ")))
}

/// Moves `count` elements: the next of `source` to the next of `target`.
pub fn transfer(
    conversion: Conversion,
    (from, source): (&[u8], &Walk),
    (to, target): (&mut [u8], &Walk),
    count: usize,
    scratch: &mut [u8],
) -> Result<(), KernelError> {
    if count == 0 {
        return Ok(());
    }
    let (from_width, to_width) = (conversion.from, conversion.to);
    let linear_source = source.is_linear().then(|| source.start() * from_width..(source.start() + count) * from_width);
    let linear_target = target.is_linear().then(|| target.start() * to_width..(target.start() + count) * to_width);
    match (conversion.convert, linear_source, linear_target) {
        (None, Some(range), _) => target.cursor().scatter(to_width, &from[range], to),
        (None, _, Some(range)) => source.cursor().gather(from_width, from, &mut to[range]),
        (Some(convert), Some(source), Some(target))
            if aligned(&from[source.clone()], from_width) && aligned(to, to_width) =>
        {
            convert(&from[source], &mut to[target]);
        }
        (convert, ..) => {
            let (mut source, mut target) = (source.cursor(), target.cursor());
            let Some((raw, rest)) = scratch.split_at_mut_checked(BLOCK_BYTES) else {
                return Err(KernelError::new(ErrorCode::Internal, "the scratch memory is smaller than asked for"));
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

fn aligned(bytes: &[u8], width: usize) -> bool {
    bytes.as_ptr().addr().is_multiple_of(width.min(8))
}

/// Writes an input, stretched to the sizes of the output, into the whole output.
pub fn assign(
    conversion: Conversion,
    input: &TensorRef<'_>,
    out: &mut TensorMut<'_>,
    scratch: &mut [u8],
) -> Result<(), KernelError> {
    let source = Walk::stretched(&out.meta(), &input.meta());
    let (count, out_type) = (out.element_count(), out.dtype);
    if let (true, Some(convert)) = (source.is_linear(), conversion.convert)
        && is_aligned(input.bytes(), input.dtype)
        && is_aligned(out.bytes(), out_type)
    {
        convert(input.bytes(), out.bytes());
        return Ok(());
    }
    transfer(conversion, (input.bytes(), &source), (out.bytes(), &Walk::linear(count)), count, scratch)
}
