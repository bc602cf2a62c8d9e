//! The greatest elements of an output, with the names of their classes.

use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorBuf;
use serde::Serialize;

use crate::compare::element;

/// Rows of an output that are ranked.
const ROWS: usize = 1024;

/// One of the greatest elements of a row.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Ranked {
    /// Place in the row: the class.
    pub index: usize,
    /// Element, as text.
    pub value: String,
    /// Name of the class, if names were given for so many classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// Names of classes, one a line.
pub struct Labels(Vec<String>);

impl Labels {
    /// Reads names; the end of the last line may be missing.
    pub fn parse(text: &str) -> Labels {
        Labels(text.lines().map(|line| line.trim().to_owned()).collect())
    }

    /// Number of names.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Returns the number of elements of a row, which is the last dimension.
pub fn classes(tensor: &TensorBuf) -> usize {
    tensor.layout().sizes().last().copied().unwrap_or(0)
}

/// The greatest elements of every row of a contiguous tensor, greatest first, at most `most` of them, and of at most 1024
/// rows. Equal ones are in order, and what is not a number comes last. Bools, complex numbers and tensors without
/// dimensions have none.
pub fn rank(tensor: &TensorBuf, most: usize, labels: Option<&Labels>) -> Vec<Vec<Ranked>> {
    let (scalar_type, classes) = (tensor.layout().scalar_type(), classes(tensor));
    let Some(size) = scalar_type.size().filter(|_| classes > 0) else { return Vec::new() };
    let labels = labels.filter(|labels| labels.count() == classes);
    let row = |row: &[u8]| {
        let mut order = row.chunks_exact(size).map(|bytes| number(scalar_type, bytes)).enumerate();
        let mut places: Vec<(usize, f64)> = Vec::new();
        order.try_for_each(|(index, value)| value.map(|value| places.push((index, value))))?;
        places.sort_by(|(_, a), (_, b)| match (a.is_nan(), b.is_nan()) {
            (false, false) => b.total_cmp(a),
            (a, b) => a.cmp(&b),
        });
        let ranked = places.into_iter().take(most).map(|(index, _)| Ranked {
            index,
            value: element(scalar_type, &row[index * size..][..size]),
            label: labels.map(|labels| labels.0[index].clone()),
        });
        Some(ranked.collect())
    };
    tensor.data().chunks_exact(classes * size).take(ROWS).map_while(row).collect()
}

/// The value of an element; integers of 64 bits are rounded.
fn number(scalar_type: ScalarType, bytes: &[u8]) -> Option<f64> {
    let float = scalar_type.read_float(bytes);
    float.or_else(|| element(scalar_type, bytes).parse().ok())
}

#[cfg(test)]
mod tests {
    use edgepack_format::tensor::TensorLayout;

    use super::*;

    fn floats(sizes: &[usize], values: &[f32]) -> TensorBuf {
        let layout = TensorLayout::contiguous(ScalarType::FLOAT, sizes).unwrap();
        TensorBuf::from_bytes(layout, values.iter().flat_map(|value| value.to_le_bytes()).collect()).unwrap()
    }

    fn indices(rows: &[Vec<Ranked>]) -> Vec<Vec<usize>> {
        rows.iter().map(|row| row.iter().map(|ranked| ranked.index).collect()).collect()
    }

    #[test]
    fn rows_are_ranked_by_themselves() {
        let tensor = floats(&[2, 3], &[1.0, 3.0, 2.0, f32::NAN, -1.0, -1.0]);
        assert_eq!(indices(&rank(&tensor, 2, None)), [[1, 2], [1, 2]]);
        assert_eq!(indices(&rank(&tensor, 9, None)), [[1, 2, 0], [1, 2, 0]]);
        assert!(rank(&floats(&[], &[1.0]), 5, None).is_empty());
        assert!(rank(&floats(&[0], &[]), 5, None).is_empty());
        let bytes =
            TensorBuf::from_bytes(TensorLayout::contiguous(ScalarType::CHAR, &[3]).unwrap(), vec![1, 255, 2]).unwrap();
        assert_eq!(indices(&rank(&bytes, 3, None)), [[2, 0, 1]]);
    }

    #[test]
    fn labels_are_for_as_many_classes_as_there_are() {
        let labels = Labels::parse("cat\ndog\nfox\n");
        let label = |tensor: &TensorBuf| rank(tensor, 1, Some(&labels))[0][0].label.clone();
        assert_eq!(label(&floats(&[3], &[0.0, 2.0, 1.0])).as_deref(), Some("dog"));
        assert_eq!(label(&floats(&[2], &[0.0, 2.0])), None);
    }
}
