//! Products of matrices, and sums over pairs.

use edgepack_format::scalar::ScalarType;

use super::numbers::broadcast;
use super::{Call, ShapeFunction, made, one};
use crate::graph::{Size, TensorMeta};

pub(super) const RULES: &[(&str, ShapeFunction)] = &[
    ("mm", mm),
    ("bmm", bmm),
    ("addmm", addmm),
    ("baddbmm", baddbmm),
    ("mv", mv),
    ("dot", dot),
    ("linear", linear),
    ("matmul", matmul),
    ("distances", distances),
    ("pairs", pairs),
    ("embedding", embedding),
    ("embedding_bag", embedding_bag),
    ("embedding_gradient", embedding_gradient),
    ("attention", attention),
    ("outer", outer),
];

/// Rows and columns of the last two dimensions.
fn ends(meta: &TensorMeta) -> Option<(&[Size], &Size, &Size)> {
    let (columns, rest) = meta.sizes.split_last()?;
    let (rows, batch) = rest.split_last()?;
    Some((batch, rows, columns))
}

fn mm(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (a, b) = (call.tensor("self")?, call.tensor("mat2")?);
    one(a.scalar_type, &[ends(a)?.1.clone(), ends(b)?.2.clone()])
}

fn bmm(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (a, b) = (call.tensor("self")?, call.tensor("mat2")?);
    one(a.scalar_type, &[a.sizes.first()?.clone(), ends(a)?.1.clone(), ends(b)?.2.clone()])
}

fn addmm(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (a, b) = (call.tensor("mat1")?, call.tensor("mat2")?);
    one(a.scalar_type, &[ends(a)?.1.clone(), ends(b)?.2.clone()])
}

fn baddbmm(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (a, b) = (call.tensor("batch1")?, call.tensor("batch2")?);
    one(a.scalar_type, &[a.sizes.first()?.clone(), ends(a)?.1.clone(), ends(b)?.2.clone()])
}

fn mv(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let a = call.tensor("self")?;
    one(a.scalar_type, &[ends(a)?.1.clone()])
}

fn dot(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    one(call.tensor("self")?.scalar_type, &[])
}

fn linear(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (input, weight) = (call.tensor("input")?, call.tensor("weight")?);
    let mut sizes = input.sizes.clone();
    sizes.pop()?;
    if weight.rank() > 1 {
        sizes.push(weight.sizes.first()?.clone());
    }
    one(input.scalar_type, &sizes)
}

fn matmul(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (a, b) = (call.tensor("self")?, call.tensor("other")?);
    let mut sizes = match (a.rank(), b.rank()) {
        (0, _) | (_, 0) => return None,
        (1, 1) => Vec::new(),
        (1, _) => ends(b)?.0.to_vec(),
        (_, 1) => ends(a)?.0.to_vec(),
        _ => broadcast([ends(a)?.0, ends(b)?.0])?,
    };
    if a.rank() > 1 {
        sizes.push(ends(a)?.1.clone());
    }
    if b.rank() > 1 {
        sizes.push(ends(b)?.2.clone());
    }
    one(a.scalar_type, &sizes)
}

fn distances(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (a, b) = (call.tensor("x1")?, call.tensor("x2")?);
    let ((batch_a, rows, _), (batch_b, columns, _)) = (ends(a)?, ends(b)?);
    let mut sizes = broadcast([batch_a, batch_b])?;
    sizes.extend([rows.clone(), columns.clone()]);
    one(a.scalar_type, &sizes)
}

fn pairs(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("self")?;
    let rows = input.sizes.first()?;
    one(input.scalar_type, &[rows.times(&rows.minus(&Size::Known(1))).over(&Size::Known(2))])
}

fn embedding(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (weight, indices) = (call.tensor("weight")?, call.tensor("indices")?);
    let mut sizes = indices.sizes.clone();
    sizes.extend(weight.sizes.iter().skip(1).cloned());
    one(weight.scalar_type, &sizes)
}

fn embedding_bag(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (weight, indices, offsets) = (call.tensor("weight")?, call.tensor("indices")?, call.tensor("offsets")?);
    let mut bags = offsets.sizes.first()?.clone();
    if call.flag("include_last_offset") {
        bags = bags.minus(&Size::Known(1));
    }
    let nothing = made(offsets.scalar_type, &[Size::Known(0)]);
    let of_each = match call.int("mode")? {
        2 => made(offsets.scalar_type, &[bags.clone(), weight.sizes.get(1)?.clone()]),
        _ => made(offsets.scalar_type, std::slice::from_ref(&bags)),
    };
    let padded = call.int("padding_idx").is_some_and(|row| row >= 0);
    let places = if call.int("mode")? == 0 && !padded { nothing } else { made(indices.scalar_type, &indices.sizes) };
    let result = made(weight.scalar_type, &[bags.clone(), weight.sizes.get(1)?.clone()]);
    Some(vec![result, places, made(offsets.scalar_type, &[bags]), of_each])
}

fn embedding_gradient(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let gradient = call.tensor("grad_output")?;
    one(gradient.scalar_type, &[call.size("num_weights")?, gradient.sizes.last()?.clone()])
}

fn attention(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (query, value) = (call.tensor("query")?, call.tensor("value")?);
    let mut sizes = query.sizes.clone();
    *sizes.last_mut()? = value.sizes.last()?.clone();
    one(query.scalar_type, &sizes)
}

fn outer(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (a, b) = (call.tensor("self")?, call.tensor("vec2")?);
    let scalar_type: ScalarType = super::promote(a.scalar_type, b.scalar_type);
    one(scalar_type, &[a.sizes.first()?.clone(), b.sizes.first()?.clone()])
}
