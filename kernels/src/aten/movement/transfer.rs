//! Copies between tensors, converting elements where their types differ.

use edgepack_executor::kernel::{KernelError, Prepare};
use edgepack_executor::tensor::{TensorMut, TensorRef};
use edgepack_format::scalar::ScalarType;

use crate::convert::{converter, is_aligned};
use edgepack_compute::transfer::{Conversion, transfer};
use edgepack_compute::walk::Walk;

/// The conversion from one type to another; an error if there is none.
pub fn conversion(from: ScalarType, to: ScalarType) -> Result<Conversion, KernelError> {
    let (from_width, to_width) = (from.size().unwrap_or(1), to.size().unwrap_or(1));
    if from == to {
        return Ok(Conversion::none(from_width));
    }
    let convert = converter(from, to)
        .ok_or_else(|| KernelError::argument(format!("elements of type {from} cannot become {to}")))?;
    Ok(Conversion { from: from_width, to: to_width, convert: Some(convert) })
}

/// Returns an error unless an input and the output have one element type.
pub fn expect_same_type(args: &Prepare<'_>, input: usize, out: usize) -> Result<(), KernelError> {
    let (from, to) = (args.tensor(input)?.meta.dtype, args.tensor(out)?.meta.dtype);
    if from == to {
        return Ok(());
    }
    Err(KernelError::argument(format!("`self` is {from}, `out` is {to}: the types differ")))
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
        && is_aligned(out.bytes_mut(), out_type)
    {
        convert(input.bytes(), out.bytes_mut());
        return Ok(());
    }
    Ok(transfer(conversion, (input.bytes(), &source), (out.bytes_mut(), &Walk::linear(count)), count, scratch)?)
}
