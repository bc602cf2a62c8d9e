//! Factors and solutions of systems of linear equations, and complex numbers as pairs of real ones.

use edgepack_format::scalar::ScalarType;

use super::numbers::broadcast;
use super::spatial::COMPLEX;
use super::{Call, ShapeFunction, made, one};
use crate::graph::{Argument, Size, TensorMeta};

pub(super) const RULES: &[(&str, ShapeFunction)] = &[
    ("inverse", |call| with_status(call, "A")),
    ("cholesky", |call| with_status(call, "self")),
    ("lu_factors", |call| {
        let (matrix, pivots, status) = factors(call)?;
        Some(vec![matrix, pivots, status])
    }),
    ("determinant", |call| {
        let (matrix, pivots, status) = factors(call)?;
        Some(vec![made(matrix.scalar_type, &status.sizes), matrix, pivots])
    }),
    ("log_determinant", |call| {
        let (matrix, pivots, status) = factors(call)?;
        let each = made(matrix.scalar_type, &status.sizes);
        Some(vec![each.clone(), each, matrix, pivots])
    }),
    ("solve", solve),
    ("lu_solve", |call| {
        let (batch, b) = (&call.tensor("LU")?.sizes, call.tensor("B")?);
        together(batch, &b.sizes).and_then(|sizes| one(b.scalar_type, &sizes))
    }),
    ("triangular_solve", |call| {
        let (a, b) = (call.tensor("self")?, call.tensor("B")?);
        together(&a.sizes, &b.sizes).and_then(|sizes| one(b.scalar_type, &sizes))
    }),
    ("qr", qr),
    ("svd", svd),
    ("eigen", |call| {
        let a = call.tensor("A")?;
        let (_, values) = a.sizes.split_last()?;
        let real = real_of(a.scalar_type);
        let vectors = if call.flag("compute_v") { a.sizes.clone() } else { vec![Size::Known(0)] };
        Some(vec![made(real, values), made(a.scalar_type, &vectors)])
    }),
    ("complex", |call| {
        let (real, imag) = (call.tensor("real")?, call.tensor("imag")?);
        let (_, complex) = COMPLEX.iter().find(|(part, _)| *part == real.scalar_type)?;
        one(*complex, &broadcast([real.sizes.as_slice(), imag.sizes.as_slice()])?)
    }),
    ("complex_parts", |call| {
        let input = call.tensor("self")?;
        let mut sizes = input.sizes.clone();
        sizes.push(Size::Known(2));
        one(real_of(input.scalar_type), &sizes)
    }),
];

fn real_of(scalar_type: ScalarType) -> ScalarType {
    COMPLEX.iter().find(|(_, complex)| *complex == scalar_type).map_or(scalar_type, |(real, _)| *real)
}

/// Everything before the last two dimensions.
fn batch(sizes: &[Size]) -> Option<&[Size]> {
    sizes.len().checked_sub(2).and_then(|len| sizes.get(..len))
}

/// The sizes of the second with the batches of both.
fn together(a: &[Size], b: &[Size]) -> Option<Vec<Size>> {
    let mut sizes = broadcast([batch(a)?, batch(b)?])?;
    sizes.extend(b.iter().skip(b.len().saturating_sub(2)).cloned());
    Some(sizes)
}

fn with_status(call: &Call<'_>, name: &str) -> Option<Vec<TensorMeta>> {
    let input = call.tensor(name)?;
    Some(vec![made(input.scalar_type, &input.sizes), made(ScalarType::INT, batch(&input.sizes)?)])
}

/// A factored matrix, its pivots and its status.
fn factors(call: &Call<'_>) -> Option<(TensorMeta, TensorMeta, TensorMeta)> {
    let input = call.tensor("A")?;
    let [.., rows, columns] = input.sizes.as_slice() else { return None };
    let outer = batch(&input.sizes)?;
    let mut pivots = outer.to_vec();
    pivots.push(rows.smaller(columns));
    Some((made(input.scalar_type, &input.sizes), made(ScalarType::INT, &pivots), made(ScalarType::INT, outer)))
}

fn solve(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let (a, b) = (call.tensor("A")?, call.tensor("B")?);
    let (matrix, pivots, status) = factors(call)?;
    let vector = b.rank() == 1 || b.rank().checked_add(1)? == a.rank() && a.sizes.starts_with(&b.sizes);
    let sizes = match vector {
        true => a.sizes.split_last()?.1.to_vec(),
        false => together(&a.sizes, &b.sizes)?,
    };
    Some(vec![made(b.scalar_type, &sizes), matrix, pivots, status])
}

fn qr(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("A")?;
    let [outer @ .., rows, columns] = input.sizes.as_slice() else { return None };
    let least = rows.smaller(columns);
    let with = |a: &Size, b: &Size| {
        let sizes: Vec<Size> = outer.iter().chain([a, b]).cloned().collect();
        made(input.scalar_type, &sizes)
    };
    Some(match call.arg("mode") {
        Some(Argument::Text(mode)) if mode == "complete" => vec![with(rows, rows), with(rows, columns)],
        Some(Argument::Text(mode)) if mode == "r" => {
            vec![made(input.scalar_type, &[Size::Known(0)]), with(&least, columns)]
        }
        _ => vec![with(rows, &least), with(&least, columns)],
    })
}

fn svd(call: &Call<'_>) -> Option<Vec<TensorMeta>> {
    let input = call.tensor("A")?;
    let [outer @ .., rows, columns] = input.sizes.as_slice() else { return None };
    let least = rows.smaller(columns);
    let full = call.flag("full_matrices");
    let with = |sizes: &[&Size]| -> Vec<Size> { outer.iter().chain(sizes.iter().copied()).cloned().collect() };
    let values = made(real_of(input.scalar_type), &with(&[&least]));
    if !call.flag("compute_uv") {
        let nothing = made(input.scalar_type, &[Size::Known(0)]);
        return Some(vec![nothing.clone(), values, nothing]);
    }
    let left = with(&[rows, if full { rows } else { &least }]);
    let right = with(&[if full { columns } else { &least }, columns]);
    Some(vec![made(input.scalar_type, &left), values, made(input.scalar_type, &right)])
}
