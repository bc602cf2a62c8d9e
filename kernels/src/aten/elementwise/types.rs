//! Choice of the type an element-wise operator computes in, and a check that its output can hold the result.

use edgepack_executor::kernel::{KernelError, Prepare};
use edgepack_format::scalar::ScalarType;

use super::spec::{Input, Spec, Types, name};
use crate::promote::{compute_type, expect_castable, promote, promote_scalar};
use edgepack_compute::pointwise::Body;

/// Type that an operator computes in, and the loop that does.
pub struct Chosen {
    /// Element type that the loop reads.
    pub compute: ScalarType,
    /// Loop over that type, with the element type of what it writes.
    pub body: Body,
}

/// Chooses type and loop, and checks the result against the element type it is to have.
pub fn choose(args: &Prepare<'_>, spec: &Spec, out: ScalarType) -> Result<Chosen, KernelError> {
    let common = match spec.types {
        Types::Bools => ScalarType::BOOL,
        Types::First => args.tensor(spec.inputs[0].arg())?.meta.dtype,
        Types::Promote => common(args, spec)?,
        Types::Float => match common(args, spec)? {
            dtype if !dtype.is_integral() && dtype != ScalarType::BOOL => dtype,
            _ if out.is_floating() => out,
            _ => ScalarType::FLOAT,
        },
    };
    for &param in spec.params {
        if args.scalar_kind(param)?.is_floating() && common.is_integral() {
            let name = name(spec.schema, param);
            return Err(KernelError::argument(format!("`{name}` is a float, but the operator computes in {common}")));
        }
    }
    let compute = compute_type(common);
    let Some(body) = (spec.table)(compute) else {
        return Err(KernelError::argument(format!("the operator is not defined for elements of type {common}")));
    };
    // Comparisons give bools, magnitudes of complex numbers are real; else the type that was computed in is that of the
    // result, but for the halves.
    expect_castable(if body.result == compute { common } else { body.result }, out)?;
    Ok(Chosen { compute, body })
}

fn common(args: &Prepare<'_>, spec: &Spec) -> Result<ScalarType, KernelError> {
    let mut common = None;
    for input in spec.inputs {
        let arg = input.arg();
        let dtype = match input {
            Input::Tensor(_) => args.tensor(arg)?.meta.dtype,
            Input::TensorOr(..) if !args.is_none(arg) => args.tensor(arg)?.meta.dtype,
            _ => continue,
        };
        common = Some(match common {
            None => dtype,
            Some(common) => promote(common, dtype).ok_or_else(|| {
                let name = name(spec.schema, arg);
                KernelError::argument(format!("`{name}` is {dtype}, which has no common type with {common}"))
            })?,
        });
    }
    let mut common = common.ok_or_else(|| KernelError::argument("the call has no tensor to compute with"))?;
    for input in spec.inputs {
        let arg = input.arg();
        let counts = match input {
            Input::Scalar(_) => true,
            Input::ScalarOr(..) => !args.is_none(arg),
            _ => false,
        };
        if counts {
            common = promote_scalar(common, args.scalar_kind(arg)?);
        }
    }
    Ok(common)
}
