//! Work of an instruction: bytes that it moves and products that it computes, from its name and its shapes.

use edgepack_executor::observer::Results;
use edgepack_executor::tensor::TensorShape;

/// Work of one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Bytes of tensors read and written.
    pub bytes: u64,
    /// Multiplications whose results are added.
    pub multiply_adds: u64,
}

impl Work {
    /// Returns the work of a call of the operator `name`.
    pub fn of(name: &str, results: &Results<'_>) -> Work {
        let moved = results.read().iter().map(TensorShape::byte_len).sum::<usize>()
            + results.tensors().iter().map(|tensor| tensor.meta().byte_len()).sum::<usize>();
        let written = results.tensors().first().map(|tensor| tensor.meta());
        let multiplied = written.map_or(0, |out| multiply_adds(name, results.read(), &out));
        Work { bytes: moved as u64, multiply_adds: multiplied as u64 }
    }
}

/// The multiplications of convolutions and products of matrices; those of other operators hardly count.
fn multiply_adds(name: &str, read: &[TensorShape<'_>], out: &TensorShape<'_>) -> usize {
    let last = |at: usize| read.get(at).and_then(|shape| shape.sizes.last()).copied().unwrap_or(0);
    let is = |part: &str| name.contains(part);
    if is("convolution") {
        let [Some(input), Some(weight)] = [read.first(), read.get(1)] else { return 0 };
        // A tap by output and input channel for each element of the output; transposed, by input and output channel for each
        // element of the input.
        let taps = weight.element_count() / weight.sizes.first().copied().unwrap_or(1).max(1);
        let batch = out.sizes.len().saturating_sub(weight.sizes.len() - 1).min(1);
        let places = if out.sizes.get(batch) == weight.sizes.first() { out } else { input };
        return places.element_count().saturating_mul(taps);
    }
    let inner = if is("addmm") || is("baddbmm") {
        last(1)
    } else if is("::mm") || is("::bmm") || is("linear") {
        last(0)
    } else {
        0
    };
    out.element_count().saturating_mul(inner)
}
