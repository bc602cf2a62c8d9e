//! Comparison of two tensors: whether they agree, and how far they are apart.
//!
//! Floating point elements, and each part of complex ones, agree within `atol + rtol·|want|`, NaN equals NaN; everything
//! else is exact. Memory order does not count: tensors are compared by index.

use edgepack_format::scalar::ScalarType;
use half::{bf16, f16};
use serde::Serialize;

use crate::value::Value;
use edgepack_format::tensor::TensorBuf;

/// Tolerance for floating point elements; a bound that is not given follows from the element type.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tolerance {
    /// Relative to the wanted element.
    pub rtol: Option<f64>,
    /// In absolute terms.
    pub atol: Option<f64>,
}

impl Tolerance {
    /// `rtol` and `atol` for an element type.
    pub fn of(self, scalar_type: ScalarType) -> (f64, f64) {
        let (rtol, atol) = match scalar_type {
            ScalarType::HALF | ScalarType::BFLOAT16 | ScalarType::COMPLEX_HALF => (1e-2, 1e-2),
            _ => (1e-3, 1e-4),
        };
        (self.rtol.unwrap_or(rtol), self.atol.unwrap_or(atol))
    }
}

/// Result of comparing two values.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Type of the expected value: `f32[1, 10]`.
    pub want: String,
    /// Reason the values cannot be compared at all: another shape or kind.
    pub problem: Option<String>,
    /// Elements compared.
    pub elements: usize,
    /// Elements that differ by more than is allowed.
    pub different: usize,
    /// The largest difference of two finite elements.
    pub max_abs: f64,
    /// The largest difference relative to a wanted element that is not zero.
    pub max_rel: f64,
    /// The first element that differs.
    pub first: Option<Mismatch>,
}

/// An element that differs.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Mismatch {
    /// Index of the element.
    pub index: Vec<usize>,
    /// Expected element.
    pub want: String,
    /// Actual element.
    pub have: String,
}

impl Comparison {
    /// Returns whether the values agree.
    pub fn passes(&self) -> bool {
        self.problem.is_none() && self.different == 0
    }

    fn new(want: String) -> Self {
        Comparison { want, problem: None, elements: 0, different: 0, max_abs: 0.0, max_rel: 0.0, first: None }
    }

    /// Two values that cannot be compared.
    pub fn impossible(want: String, problem: String) -> Self {
        Comparison { problem: Some(problem), ..Comparison::new(want) }
    }
}

/// `f32[1, 10]`, without the memory order.
pub fn type_of(tensor: &TensorBuf) -> String {
    let sizes: Vec<String> = tensor.layout().sizes().iter().map(usize::to_string).collect();
    format!("{}[{}]", tensor.layout().scalar_type(), sizes.join(", "))
}

/// Recordings that went through arrays without 0-d values hold `[1]` where the output has no dimensions.
fn same_sizes(have: &[usize], want: &[usize]) -> bool {
    have == want || (have.is_empty() && want == [1])
}

/// Compares an output with what was recorded for it.
pub fn compare(have: &Value, want: &TensorBuf, tolerance: Tolerance) -> Comparison {
    let wanted = type_of(want);
    let Some(have) = have.to_tensor() else {
        return Comparison::impossible(wanted, format!("the output is {}", have.kind()));
    };
    let (a, b) = (have.layout(), want.layout());
    if a.scalar_type() != b.scalar_type() || !same_sizes(a.sizes(), b.sizes()) {
        return Comparison::impossible(wanted, format!("the output is {}", type_of(&have)));
    }
    let (have, want) = match (have.contiguous(), want.contiguous()) {
        (Ok(have), Ok(want)) => (have, want),
        (Err(error), _) | (_, Err(error)) => return Comparison::impossible(wanted, error.to_string()),
    };
    let mut comparison = Comparison::new(wanted);
    comparison.elements = want.layout().element_count();
    let size = want.layout().scalar_type().size().unwrap_or(1);
    let pairs = have.data().chunks_exact(size).zip(want.data().chunks_exact(size));
    let scalar_type = want.layout().scalar_type();
    let ((rtol, atol), part) = (tolerance.of(scalar_type), scalar_type.part());
    let width = part.size().unwrap_or(1);
    for (position, (have, want)) in pairs.enumerate() {
        let mut same = true;
        for (have, want) in have.chunks_exact(width).zip(want.chunks_exact(width)) {
            same &= match (part.read_float(have), part.read_float(want)) {
                (Some(have), Some(want)) => comparison.floats(have, want, rtol, atol),
                // Every byte but zero is true.
                _ if part == ScalarType::BOOL => (have != [0]) == (want != [0]),
                _ => have == want,
            };
        }
        if !same {
            comparison.different += 1;
            if comparison.first.is_none() {
                comparison.first = Some(Mismatch {
                    index: index_of(position, b.sizes()),
                    want: element(scalar_type, want),
                    have: element(scalar_type, have),
                });
            }
        }
    }
    comparison
}

impl Comparison {
    /// Takes two elements into account; whether they agree.
    fn floats(&mut self, have: f64, want: f64, rtol: f64, atol: f64) -> bool {
        // Infinities equal themselves; their difference is not a number.
        if have == want || (have.is_nan() && want.is_nan()) {
            return true;
        }
        let difference = (have - want).abs();
        if difference.is_finite() {
            self.max_abs = self.max_abs.max(difference);
            if want != 0.0 {
                self.max_rel = self.max_rel.max(difference / want.abs());
            }
        }
        difference.is_finite() && difference <= atol + rtol * want.abs()
    }
}

/// An element as text, with no more digits than its type has.
pub fn element(scalar_type: ScalarType, bytes: &[u8]) -> String {
    fn number<T: ToString, const N: usize>(bytes: &[u8], from: impl Fn([u8; N]) -> T) -> String {
        bytes.first_chunk().map_or("?".to_owned(), |bytes| from(*bytes).to_string())
    }
    match scalar_type {
        ScalarType::FLOAT => number(bytes, f32::from_le_bytes),
        ScalarType::DOUBLE => number(bytes, f64::from_le_bytes),
        ScalarType::HALF => number(bytes, f16::from_le_bytes),
        ScalarType::BFLOAT16 => number(bytes, bf16::from_le_bytes),
        ScalarType::BYTE => number(bytes, u8::from_le_bytes),
        ScalarType::CHAR => number(bytes, i8::from_le_bytes),
        ScalarType::SHORT => number(bytes, i16::from_le_bytes),
        ScalarType::INT => number(bytes, i32::from_le_bytes),
        ScalarType::LONG => number(bytes, i64::from_le_bytes),
        ScalarType::UINT16 => number(bytes, u16::from_le_bytes),
        ScalarType::UINT32 => number(bytes, u32::from_le_bytes),
        ScalarType::UINT64 => number(bytes, u64::from_le_bytes),
        ScalarType::BOOL => (bytes != [0]).to_string(),
        complex if complex.is_complex() => {
            let (real, imaginary) = bytes.split_at(bytes.len() / 2);
            let [real, imaginary] = [real, imaginary].map(|part| element(complex.part(), part));
            let sign = if imaginary.starts_with('-') { "" } else { "+" };
            format!("{real}{sign}{imaginary}i")
        }
        _ => bytes.iter().rev().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
    }
}

fn index_of(mut position: usize, sizes: &[usize]) -> Vec<usize> {
    let mut index = vec![0; sizes.len()];
    for (index, size) in index.iter_mut().zip(sizes).rev() {
        // A tensor with an element has no dimension of size zero.
        *index = position % size;
        position /= size;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_format::tensor::TensorLayout;

    fn floats(values: &[f32]) -> TensorBuf {
        let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[values.len()]).unwrap();
        TensorBuf::from_bytes(layout, values.iter().flat_map(|value| value.to_le_bytes()).collect()).unwrap()
    }

    fn outcome(have: &[f32], want: &[f32]) -> Comparison {
        compare(&Value::Tensor(floats(have)), &floats(want), Tolerance::default())
    }

    #[test]
    fn tolerance_is_relative_and_absolute() {
        assert!(outcome(&[1000.9, 0.00009], &[1000.0, 0.0]).passes());
        let far = outcome(&[1.0, 1002.0], &[1.0, 1000.0]);
        assert_eq!((far.different, far.max_abs), (1, 2.0));
        assert_eq!(far.first.unwrap().index, [1]);
    }

    #[test]
    fn special_numbers_equal_themselves_only() {
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        assert!(outcome(&special, &special).passes());
        assert_eq!(outcome(&[0.0, f32::MAX, f32::INFINITY], &special).different, 3);
    }

    #[test]
    fn parts_of_complex_numbers_are_floats() {
        let complex = |values: &[f32]| {
            let layout = TensorLayout::contiguous(ScalarType::COMPLEX_FLOAT, &[values.len() / 2]).unwrap();
            TensorBuf::from_bytes(layout, values.iter().flat_map(|value| value.to_le_bytes()).collect()).unwrap()
        };
        let outcome =
            |have: &[f32], want: &[f32]| compare(&Value::Tensor(complex(have)), &complex(want), Tolerance::default());
        assert!(outcome(&[1.0, 2.000001], &[1.0, 2.0]).passes());
        let far = outcome(&[1.0, 2.0, 3.0, -4.5], &[1.0, 2.0, 3.0, 4.5]);
        assert_eq!((far.different, far.max_abs), (1, 9.0));
        let first = far.first.unwrap();
        assert_eq!((first.index, first.have.as_str(), first.want.as_str()), (vec![1], "3-4.5i", "3+4.5i"));
    }

    #[test]
    fn integers_are_exact_and_shapes_count() {
        let int = |value: i64| Value::Int(value).to_tensor().unwrap();
        assert!(!compare(&Value::Int(1_000_000), &int(1_000_001), Tolerance::default()).passes());
        assert!(compare(&Value::Double(0.1), &int(0), Tolerance::default()).problem.is_some());
        assert!(outcome(&[1.0], &[1.0, 1.0]).problem.is_some());
        assert!(compare(&Value::Null, &int(0), Tolerance::default()).problem.is_some());
    }

    #[test]
    fn memory_order_does_not_count() {
        let layout = TensorLayout::contiguous(ScalarType::BYTE, &[1, 2, 1, 3]).unwrap();
        let tensor = TensorBuf::from_bytes(layout, (0..6).collect()).unwrap();
        let other = Value::Tensor(tensor.in_order(&[0, 2, 3, 1]).unwrap());
        assert!(compare(&other, &tensor, Tolerance::default()).passes());
    }
}
