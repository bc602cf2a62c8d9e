//! Operators that pick elements by index, or put them.

use super::numbers::broadcast;
use super::{Call, ShapeFunction, dimension, one};
use crate::graph::{Size, TensorMeta};

pub(super) const RULES: &[(&str, ShapeFunction)] =
    &[("index", index), ("index_select", index_select), ("gather", gather)];

fn index_select(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (input, index) = (call.tensor("self")?, call.tensor("index")?);
    let mut sizes = input.sizes.clone();
    if let Some(size) = sizes.get_mut(dimension(call.int("dim")?, input.rank())?) {
        *size = Size::product(&index.sizes);
    }
    one(input.scalar_type, &sizes)
}

fn gather(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(call.tensor("self")?.scalar_type, &call.tensor("index")?.sizes)
}

fn index(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let indices = call.optional_tensors("indices");
    let places: Vec<usize> =
        indices.iter().enumerate().filter(|(_, index)| index.is_some()).map(|(at, _)| at).collect();
    let (first, last) = (*places.first()?, *places.last()?);
    // Picking by truth gives as many elements as there are true ones.
    if indices.iter().flatten().any(|index| index.scalar_type == edgepack_format::scalar::ScalarType::BOOL) {
        return None;
    }
    let picked = broadcast(indices.iter().flatten().map(|meta| meta.sizes.as_slice()))?;
    let together = last.checked_sub(first)?.checked_add(1)? == places.len();
    let mut sizes: Vec<Size> = Vec::new();
    if !together {
        sizes.extend(picked.iter().cloned());
    }
    for (dim, size) in input.sizes.iter().enumerate() {
        if together && dim == first {
            sizes.extend(picked.iter().cloned());
        }
        if !places.contains(&dim) {
            sizes.push(size.clone());
        }
    }
    one(input.scalar_type, &sizes)
}
