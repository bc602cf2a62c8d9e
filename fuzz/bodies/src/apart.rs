//! Place where two loaded forms of one method come apart: the first instruction whose results differ.
//!
//! Invariant: results are compared element by element, whatever order they have in memory; any NaN equals any other.

use std::collections::HashMap;

use edgepack_executor::observer::{Event, Observer, Results};
use edgepack_executor::tensor::TensorRef;
use edgepack_executor::{Method, ToInput};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::write_strides;

/// Operators that rewrites may make add in another order: the only ones where loading with and without them may come
/// apart first.
pub const SUMS: [&str; 18] = [
    "aten::convolution.out",
    "edgepack::convolution.epilogue_out",
    "edgepack::convolution.scaled_out",
    "edgepack::convolution.scaled_epilogue_out",
    "edgepack::convolution.added_out",
    "edgepack::convolution.scaled_added_out",
    "edgepack::convolution.pair_out",
    "aten::mm.out",
    "edgepack::mm.epilogue_out",
    "aten::addmm.out",
    "edgepack::addmm.epilogue_out",
    "aten::bmm.out",
    "edgepack::bmm.epilogue_out",
    "edgepack::bmm.repeated_out",
    "edgepack::bmm.repeated_epilogue_out",
    "aten::linear.out",
    "edgepack::linear.epilogue_out",
    "aten::mean.out",
];

/// Results by instruction, in the order they came.
#[derive(Default)]
struct Recorder {
    results: Vec<(Place, String, Vec<Recorded>)>,
}

/// Chain and instruction.
type Place = (usize, usize);
/// Element type, sizes, and the bytes of the elements in the order of their indices.
type Recorded = (i8, Vec<usize>, Vec<u8>);

impl Observer for Recorder {
    fn after(&mut self, event: &Event<'_>, results: &Results<'_>) {
        let results = results.tensors().iter().map(recorded).collect();
        self.results.push(((event.chain, event.instruction), event.name.to_owned(), results));
    }
}

fn recorded(tensor: &TensorRef<'_>) -> Recorded {
    let (sizes, width) = (tensor.sizes.to_vec(), tensor.dtype.size().unwrap_or(1));
    let mut strides = vec![0; sizes.len()];
    write_strides(&sizes, tensor.dim_order, &mut strides);
    let bytes = tensor.bytes();
    let mut dense = Vec::with_capacity(bytes.len());
    for index in 0..sizes.iter().product::<usize>() {
        let (mut rest, mut at) = (index, 0);
        for (size, stride) in sizes.iter().zip(&strides).rev() {
            at += rest % size * stride;
            rest /= size;
        }
        dense.extend_from_slice(&bytes[at * width..(at + 1) * width]);
    }
    (tensor.dtype.0, sizes, without_nans(tensor.dtype, &dense))
}

/// Replaces every NaN by one, since which NaN comes out of an operation is not specified.
pub fn without_nans(dtype: ScalarType, bytes: &[u8]) -> Vec<u8> {
    let (size, is_nan): (usize, fn(&[u8]) -> bool) = match dtype {
        ScalarType::FLOAT | ScalarType::COMPLEX_FLOAT => (4, |b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]).is_nan()),
        ScalarType::DOUBLE | ScalarType::COMPLEX_DOUBLE => {
            (8, |b| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]).is_nan())
        }
        ScalarType::HALF | ScalarType::COMPLEX_HALF => (2, |b| u16::from_le_bytes([b[0], b[1]]) & 0x7fff > 0x7c00),
        ScalarType::BFLOAT16 => (2, |b| u16::from_le_bytes([b[0], b[1]]) & 0x7fff > 0x7f80),
        _ => return bytes.to_vec(),
    };
    let mut out = bytes.to_vec();
    out.chunks_exact_mut(size).filter(|chunk| is_nan(chunk)).for_each(|chunk| chunk.fill(0xff));
    out
}

/// Runs both from where they are, and names the first instruction of the optimized form that answers otherwise than the
/// plain one did, if there is one. What runs in only one of them is passed over.
pub fn first_difference<I: ToInput>(plain: &mut Method, optimized: &mut Method, inputs: &[I]) -> Option<String> {
    let run = |method: &mut Method| {
        let mut recorder = Recorder::default();
        // A failure ends the record, and is looked at by whoever asked.
        let _ = method.run_observed(inputs, Some(&mut recorder)).map(drop);
        recorder.results
    };
    let mut plainly: HashMap<Place, std::collections::VecDeque<Vec<Recorded>>> = HashMap::new();
    for (place, _, results) in run(plain) {
        plainly.entry(place).or_default().push_back(results);
    }
    run(optimized).into_iter().find_map(|(place, name, results)| {
        let want = plainly.get_mut(&place)?.pop_front()?;
        // Results that no caller reads may be left out; they are the last ones.
        (want.get(..results.len()) != Some(&results[..])).then_some(name)
    })
}
