//! The gated linear unit.

use crate::error::{Error, ErrorKind, expect_elements};
use crate::float::Float;
use crate::number::{Cast, Compute, Number};

/// Writes values times the logistic functions of their gates: blocks of `run` values, each followed by its gates, which
/// are as many, to blocks of `run`.
///
/// # Errors
///
/// [`Geometry`](crate::ErrorKind::Geometry) if the input has not two elements for each of the output, or those are not
/// blocks of `run`.
///
/// ```
/// let mut out = [0f32; 2];
/// edgepack_compute::glu::glu(&[3.0f32, 4.0, 0.0, 0.0], 2, &mut out)?;
/// assert_eq!(out, [1.5, 2.0]);
/// # Ok::<(), edgepack_compute::Error>(())
/// ```
pub fn glu<T: Number>(input: &[T], run: usize, out: &mut [T]) -> Result<(), Error>
where
    T::Compute: Float,
{
    expect_elements("the input", input.len(), out.len().saturating_mul(2))?;
    if run == 0 && !out.is_empty() || run > 0 && !out.len().is_multiple_of(run) {
        return Err(Error::new(ErrorKind::Geometry, format!("{} elements in blocks of {run}", out.len())));
    }
    for (pair, out) in input.chunks_exact((2 * run).max(1)).zip(out.chunks_exact_mut(run.max(1))) {
        let (values, gates) = pair.split_at(run);
        for ((out, value), gate) in out.iter_mut().zip(values).zip(gates) {
            let one = T::Compute::ONE;
            let gate = one.over(one.plus(gate.to_compute().negative().exp()));
            *out = value.to_compute().times(gate).cast();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_sizes_are_refused() {
        for (input, run, out) in [(3, 2, 2), (4, 0, 2), (8, 3, 4)] {
            assert_eq!(glu(&vec![0f32; input], run, &mut vec![0f32; out]).unwrap_err().kind, ErrorKind::Geometry);
        }
        assert_eq!(glu::<f32>(&[], 0, &mut []), Ok(()));
    }
}
