//! Tensors of small numbers in every element type and dim order, and back to numbers in index order.

use edgepack_compute::number::Cast;
use edgepack_executor::call::OwnedTensor;
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorLayout, write_strides};

/// The element types operators are tried with.
pub const DTYPES: &[ScalarType] = &[
    ScalarType::BOOL,
    ScalarType::BYTE,
    ScalarType::CHAR,
    ScalarType::SHORT,
    ScalarType::INT,
    ScalarType::LONG,
    ScalarType::UINT16,
    ScalarType::UINT32,
    ScalarType::UINT64,
    ScalarType::HALF,
    ScalarType::BFLOAT16,
    ScalarType::FLOAT,
    ScalarType::DOUBLE,
    ScalarType::COMPLEX_HALF,
    ScalarType::COMPLEX_FLOAT,
    ScalarType::COMPLEX_DOUBLE,
];

/// The short name of one of [`DTYPES`].
pub fn dtype_name(dtype: ScalarType) -> &'static str {
    dtype.names().and_then(|names| names.short).unwrap_or("?")
}

/// The real type a complex number has two of, or the type itself.
fn part(dtype: ScalarType) -> (ScalarType, usize) {
    match dtype {
        ScalarType::COMPLEX_HALF => (ScalarType::HALF, 2),
        ScalarType::COMPLEX_FLOAT => (ScalarType::FLOAT, 2),
        ScalarType::COMPLEX_DOUBLE => (ScalarType::DOUBLE, 2),
        other => (other, 1),
    }
}

/// Numbers from `least` to five more, every time the same.
pub fn small(count: usize, seed: usize, least: usize) -> Vec<f64> {
    (0..count).map(|index| ((index * index + 3 * index + seed * 7) % 11 % 6 + least) as f64).collect()
}

/// A contiguous tensor of these numbers; the imaginary parts of complex ones count up from the end.
pub fn tensor(dtype: ScalarType, sizes: &[usize], values: &[f64]) -> OwnedTensor {
    let (real, parts) = part(dtype);
    let values: Vec<f64> = match parts {
        1 => values.to_vec(),
        _ => values.iter().zip(values.iter().rev()).flat_map(|(a, b)| [*a, *b]).collect(),
    };
    let bytes = with_element!(real, T => {
        let typed: Vec<T> = values.iter().map(|&value| value.cast()).collect();
        bytemuck::cast_slice(&typed).to_vec()
    }, else => panic!("{dtype} holds no numbers"));
    OwnedTensor::from_bytes(dtype, sizes, bytes).expect("as many values as the sizes say")
}

/// The elements in index order as numbers, two for each complex one.
pub fn numbers(tensor: &OwnedTensor) -> Vec<f64> {
    let (real, _) = part(tensor.layout().scalar_type());
    let bytes = logical(tensor);
    with_element!(real, T => {
        bytemuck::pod_collect_to_vec::<u8, T>(&bytes).into_iter().map(Cast::<f64>::cast).collect()
    }, else => panic!("{real} holds no numbers"))
}

/// Tolerance of a result against that of the largest type, or of another order.
pub fn tolerance(dtype: ScalarType) -> f64 {
    match dtype {
        ScalarType::HALF | ScalarType::COMPLEX_HALF => 4e-3,
        ScalarType::BFLOAT16 => 3e-2,
        ScalarType::FLOAT | ScalarType::COMPLEX_FLOAT => 2e-5,
        _ => 1e-12,
    }
}

/// Returns whether two tensors are the same but for what rounding in another order changes.
pub fn close(a: &OwnedTensor, b: &OwnedTensor) -> bool {
    let (layout, other) = (a.layout(), b.layout());
    let near = |(a, b): (f64, f64)| {
        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance(layout.scalar_type()) * (1.0 + b.abs())
    };
    layout.scalar_type() == other.scalar_type()
        && layout.sizes() == other.sizes()
        && numbers(a).into_iter().zip(numbers(b)).all(near)
}

/// The bytes of the elements in index order.
pub fn logical(tensor: &OwnedTensor) -> Vec<u8> {
    moved(tensor.bytes(), tensor.layout(), |memory, index| (memory, index))
}

/// The tensor in memory of another dim order.
pub fn ordered(tensor: &OwnedTensor, order: &[u8]) -> OwnedTensor {
    let bytes = logical(tensor);
    let layout = TensorLayout::new(tensor.layout().scalar_type(), tensor.layout().sizes(), order).expect("a dim order");
    let bytes = moved(&bytes, &layout, |memory, index| (index, memory));
    OwnedTensor::from_bytes(layout.scalar_type(), layout.sizes(), bytes).expect("the same bytes").with_dim_order(order)
}

/// Copies every element from one place to another, which `places` picks from its place in memory and its index.
fn moved(bytes: &[u8], layout: &TensorLayout, places: impl Fn(usize, usize) -> (usize, usize)) -> Vec<u8> {
    let sizes = layout.sizes();
    let width = layout.scalar_type().size().unwrap_or(1);
    let mut strides = vec![0; sizes.len()];
    write_strides(sizes, layout.dim_order(), &mut strides);
    let mut result = vec![0; bytes.len()];
    for index in 0..sizes.iter().product() {
        let (mut memory, mut rest) = (0, index);
        for dim in (0..sizes.len()).rev() {
            memory += rest % sizes[dim] * strides[dim];
            rest /= sizes[dim];
        }
        let (from, to) = places(memory, index);
        result[to * width..][..width].copy_from_slice(&bytes[from * width..][..width]);
    }
    result
}
