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
    /// True if they are of bytes.
    pub of_bytes: bool,
}

impl Work {
    /// Returns the work of a call of the operator `name`.
    pub fn of(name: &str, results: &Results<'_>) -> Work {
        let moved = results.read().iter().map(TensorShape::byte_len).sum::<usize>()
            + results.tensors().iter().map(|tensor| tensor.meta().byte_len()).sum::<usize>();
        let written = results.tensors().first().map(|tensor| tensor.meta());
        let multiplied = written.map_or(0, |out| multiply_adds(name, results.read(), &out));
        Work { bytes: moved as u64, multiply_adds: multiplied as u64, of_bytes: own(name).is_some() }
    }

    /// Returns the work of both.
    pub fn plus(self, other: Work) -> Work {
        Work {
            bytes: self.bytes.saturating_add(other.bytes),
            multiply_adds: self.multiply_adds.saturating_add(other.multiply_adds),
            of_bytes: self.of_bytes || other.of_bytes,
        }
    }
}

/// The multiplications of convolutions and products of matrices. Those of attention depend on how much of its cache is used,
/// and are not counted; those of other operators hardly count.
fn multiply_adds(name: &str, read: &[TensorShape<'_>], out: &TensorShape<'_>) -> usize {
    let last = |at: usize| read.get(at).and_then(|shape| shape.sizes.last()).copied().unwrap_or(0);
    if let Some(own) = own(name) {
        return integer_multiply_adds(own, read, out);
    }
    let is = |part: &str| name.contains(part);
    if is("convolution.pair") {
        return pair_multiply_adds(read, out);
    }
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
    } else if is("::mm") || is("::bmm") || is("mixed_mm") || is("linear") {
        last(0)
    } else {
        0
    };
    out.element_count().saturating_mul(inner)
}

/// The multiplications of a convolution of single pixels and of a depthwise one of its results, whose weights are the images
/// behind the input.
fn pair_multiply_adds(read: &[TensorShape<'_>], out: &TensorShape<'_>) -> usize {
    let mut weights = read.iter().skip(1).filter(|shape| shape.sizes.len() == 4);
    let (Some(input), Some(points), Some(taps)) = (read.first(), weights.next(), weights.next()) else { return 0 };
    let channels = |shape: &TensorShape<'_>| shape.sizes.first().copied().unwrap_or(0).max(1);
    let first = input.element_count().saturating_mul(channels(points));
    first.saturating_add(out.element_count().saturating_mul(taps.element_count() / channels(taps)))
}

/// The name of an operator on bytes.
fn own(name: &str) -> Option<&str> {
    name.strip_prefix("xnnpack::")
}

/// The multiplications of operators on bytes, whose images have their channels last. Of those whose weights are no argument
/// nothing is known.
fn integer_multiply_adds(name: &str, read: &[TensorShape<'_>], out: &TensorShape<'_>) -> usize {
    let [Some(input), Some(weight)] = [read.first(), read.get(1)] else { return 0 };
    let size = |shape: &TensorShape<'_>, at: usize| shape.sizes.get(at).copied().unwrap_or(0).max(1);
    let last = |shape: &TensorShape<'_>| size(shape, shape.sizes.len().saturating_sub(1));
    let (places, taps) = match name {
        // Weights are [Co, kh, kw, Ci / groups].
        "convolution.int8" => (out, weight.element_count() / size(weight, 0)),
        "transposed_convolution.int8" => (input, weight.element_count() / last(input)),
        // One filter for each channel: [1, kh, kw, Co].
        "depthwise.int8" => (out, weight.element_count() / last(weight)),
        _ if name.starts_with("product") || name.starts_with("batch_product") => (out, last(input)),
        _ => return 0,
    };
    places.element_count().saturating_mul(taps)
}

#[cfg(test)]
mod tests {
    use edgepack_format::scalar::ScalarType;

    use super::*;

    fn shape(sizes: &[usize]) -> TensorShape<'_> {
        TensorShape { dtype: ScalarType::FLOAT, sizes, strides: &[], dim_order: &[] }
    }

    #[test]
    fn work_on_bytes_stays_work_on_bytes() {
        let one = Work { bytes: 3, multiply_adds: 5, of_bytes: true };
        let two = Work { bytes: 6, multiply_adds: 10, of_bytes: true };
        assert_eq!(Work::default().plus(one).plus(one), two);
    }

    #[test]
    fn products_are_counted_by_operator() {
        type Case = (&'static str, &'static [&'static [usize]], &'static [usize], usize);
        let cases: [Case; 14] = [
            ("aten::addmm.out", &[&[16], &[3, 8], &[8, 16]], &[3, 16], 3 * 16 * 8),
            ("aten::mm.out", &[&[3, 8], &[8, 16]], &[3, 16], 3 * 16 * 8),
            ("aten::bmm.out", &[&[2, 3, 8], &[2, 8, 5]], &[2, 3, 5], 2 * 3 * 5 * 8),
            ("aten::linear.out", &[&[4, 3, 8], &[16, 8]], &[4, 3, 16], 4 * 3 * 16 * 8),
            ("quantized_decomposed::mixed_mm.out", &[&[3, 8], &[8, 5]], &[3, 5], 3 * 5 * 8),
            // 3 channels become 16 by windows of 3 by 3, half as wide and high.
            ("aten::convolution.out", &[&[1, 3, 32, 32], &[16, 3, 3, 3]], &[1, 16, 16, 16], 16 * 16 * 16 * 27),
            // Transposed: every input element meets 16 channels and 4 taps.
            ("aten::convolution.out", &[&[1, 3, 8, 8], &[3, 16, 2, 2]], &[1, 16, 16, 16], 3 * 8 * 8 * 16 * 4),
            ("xnnpack::convolution.int8", &[&[2, 8, 8, 8], &[16, 1, 1, 8]], &[2, 8, 8, 16], 2 * 8 * 8 * 16 * 8),
            ("xnnpack::depthwise.int8", &[&[2, 8, 8, 8], &[1, 3, 3, 8]], &[2, 8, 8, 8], 2 * 8 * 8 * 8 * 9),
            ("xnnpack::transposed_convolution.int8", &[&[1, 4, 4, 3], &[6, 3, 3, 3]], &[1, 9, 9, 6], 48 * 6 * 9),
            ("xnnpack::product_of_rows.out", &[&[5, 1, 8], &[5, 2]], &[5, 1, 24], 5 * 24 * 8),
            ("xnnpack::convolution_of_rows.out", &[&[2, 6, 6, 3], &[2, 2]], &[2, 6, 6, 6], 0),
            (
                "edgepack::convolution.pair_out",
                &[&[1, 3, 8, 8], &[16, 3, 1, 1], &[16], &[16, 1, 3, 3], &[16]],
                &[1, 16, 4, 4],
                8 * 8 * 16 * 3 + 4 * 4 * 16 * 9,
            ),
            ("aten::add.out", &[&[9], &[9]], &[9], 0),
        ];
        for (name, read, out, want) in cases {
            let read: Vec<TensorShape<'_>> = read.iter().map(|sizes| shape(sizes)).collect();
            assert_eq!(multiply_adds(name, &read, &shape(out)), want, "{name}");
        }
    }
}
