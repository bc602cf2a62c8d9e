//! Products against their definition, in every layout and element type.

use super::*;
use edgepack_compute::number::Cast;
use edgepack_compute::random::Random;
use edgepack_executor::call::{Arg, OwnedTensor, call};
use edgepack_executor::tensor::{PodElement, Scalar};

fn matrix<T: PodElement>(rows: usize, cols: usize, values: &[T], by_column: bool) -> OwnedTensor {
    if !by_column {
        return OwnedTensor::new(&[rows, cols], values);
    }
    let transposed: Vec<T> = (0..rows * cols).map(|at| values[at % rows * cols + at / rows]).collect();
    OwnedTensor::new(&[rows, cols], &transposed).with_dim_order(&[1, 0])
}

/// `addmm` against its definition, in every layout, for one element type.
fn suite<T: Number>()
where
    i64: Cast<T>,
{
    let mut random = Random::new(51);
    for round in 0..32 {
        let [m, k, n] = [random.below(9) + 1, random.below(40), random.below(40) + 1];
        let (a, b): (Vec<T>, Vec<T>) = (random.values(m * k), random.values(k * n));
        let shape = [vec![n], vec![1, n], vec![m, n], vec![m, 1], vec![]][round % 5].clone();
        let add: Vec<T> = random.values(shape.iter().product());
        let (beta, alpha) = ([1, 0, 2][round % 3], [1, 3][round % 2]);
        let out = OwnedTensor::zeros(T::SCALAR_TYPE, &[m, n]);
        let out = if round & 8 == 0 { out } else { out.with_dim_order(&[1, 0]) };
        let args = [
            Arg::tensor(&shape, &add),
            Arg::Tensor(matrix(m, k, &a, round & 2 != 0)),
            Arg::Tensor(matrix(k, n, &b, round & 4 != 0)),
            Arg::int(beta),
            Arg::int(alpha),
            Arg::Tensor(out),
        ];
        let have = call(&ADDMM, &args).unwrap()[0].as_slice::<T>().unwrap();
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let of = |x: T| Cast::<i64>::cast(x);
            let sum: i64 = (0..k).map(|l| of(a[i * k + l]) * of(b[l * n + j])).sum();
            let row = if shape.first() == Some(&m) && shape.len() == 2 { i } else { 0 };
            let column = if shape.last() == Some(&n) { j } else { 0 };
            let added = of(add[row * shape.last().copied().unwrap_or(1) + column]);
            let want: T = (alpha * sum + beta * added).cast();
            let at = if round & 8 == 0 { i * n + j } else { j * m + i };
            assert_eq!(of(have[at]), of(want), "{} round {round} at {i},{j}", T::SCALAR_TYPE);
        }
    }
}

#[test]
fn addmm_agrees_with_its_definition() {
    suite::<f32>();
    suite::<f64>();
    suite::<half::bf16>();
    suite::<i8>();
    suite::<i64>();
}

#[test]
fn large_products_of_every_form_agree() {
    let mut random = Random::new(52);
    let (batch, m, k, n) = (3, 17, 50, 33);
    let (a, b) = (random.floats(batch * m * k), random.floats(batch * k * n));
    let out = Arg::out(ScalarType::FLOAT, &[batch, m, n]);
    let have = call(&BMM, &[Arg::tensor(&[batch, m, k], &a), Arg::tensor(&[batch, k, n], &b), out]).unwrap();
    let have = have[0].as_slice::<f32>().unwrap();
    let weight: Vec<f32> = (0..n * k).map(|at| b[at % k * n + at / k]).collect();
    let bias = random.floats(n);
    let out = Arg::out(ScalarType::FLOAT, &[batch, m, n]);
    let weight = Arg::Tensor(OwnedTensor::new(&[n, k], &weight).constant());
    let args = [Arg::tensor(&[batch, m, k], &a), weight, Arg::tensor(&[n], &bias), out];
    let rows = call(&LINEAR, &args).unwrap()[0].as_slice::<f32>().unwrap();
    let once: [Vec<f32>; 2] = [vec![k, n], vec![1, k, n]].map(|sizes| {
        let matrix = Arg::Tensor(OwnedTensor::new(&sizes, &b[..k * n]).constant());
        let args = [Arg::tensor(&[batch, m, k], &a), matrix, Arg::out(ScalarType::FLOAT, &[batch, m, n])];
        call(&REPEATED, &args).unwrap()[0].as_slice().unwrap()
    });
    let stacks = Arg::Tensor(OwnedTensor::new(&[2, k, n], &b[..2 * k * n]).constant());
    let args = [Arg::tensor(&[batch, m, k], &a), stacks, Arg::out(ScalarType::FLOAT, &[batch, m, n])];
    assert!(call(&REPEATED, &args).is_err(), "two matrices are not one");
    for (at, have) in have.iter().enumerate() {
        let (z, i, j) = (at / (m * n), at / n % m, at % n);
        let product = |z_b: usize| -> f32 { (0..k).map(|l| a[(z * m + i) * k + l] * b[(z_b * k + l) * n + j]).sum() };
        assert!((have - product(z)).abs() < 1e-4);
        assert!((rows[at] - product(0) - bias[j]).abs() < 1e-4);
        once.iter().for_each(|once| assert!((once[at] - product(0)).abs() < 1e-4));
    }
}

/// Products of 16-bit floats are those of `f32`, rounded once, for every layout, factor and number of panels.
fn halves_suite<T: edgepack_compute::half::Narrow>(relative: f32)
where
    i64: Cast<T>,
{
    let mut random = Random::new(53);
    let exact = |values: &[T]| {
        let mut wide = vec![0f32; values.len()];
        T::widen(values, &mut wide);
        wide
    };
    for round in 0..24 {
        let [m, k, n] = [random.below(70) + 1, random.below(300) + 1, random.below(200) + 1];
        let mut draw = |count: usize| {
            let mut narrow = vec![T::from_scalar(Scalar::Int(0)); count];
            T::narrow(&random.floats(count), &mut narrow);
            narrow
        };
        let (a, b, add) = (draw(m * k), draw(k * n), draw(n));
        let (beta, alpha) = ([1, 0, 2][round % 3], [1, 3][round % 2]);
        let by_column = round & 8 != 0;
        let out = OwnedTensor::zeros(T::SCALAR_TYPE, &[m, n]);
        let args = [
            Arg::tensor(&[n], &add),
            Arg::Tensor(matrix(m, k, &a, round & 2 != 0)),
            Arg::Tensor(matrix(k, n, &b, round & 4 != 0)),
            Arg::int(beta),
            Arg::int(alpha),
            Arg::Tensor(if by_column { out.with_dim_order(&[1, 0]) } else { out }),
        ];
        let have = exact(&call(&ADDMM, &args).unwrap()[0].as_slice::<T>().unwrap());
        let (a, b, add) = (exact(&a), exact(&b), exact(&add));
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let sum: f32 = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
            let want = alpha as f32 * sum + beta as f32 * add[j];
            let have = have[if by_column { j * m + i } else { i * n + j }];
            assert!((have - want).abs() <= relative * want.abs() + 1e-3, "round {round}: {have} for {want}");
        }
    }
}

#[test]
fn products_of_halves_are_rounded_once() {
    halves_suite::<half::f16>(1.0 / 1024.0);
    halves_suite::<half::bf16>(1.0 / 128.0);
}

#[test]
fn a_factor_of_zero_hides_what_is_added() {
    let one = || Arg::tensor(&[1, 1], &[2.0f32]);
    let args = |beta| {
        [
            Arg::tensor(&[1], &[f32::NAN]),
            one(),
            one(),
            Arg::int(beta),
            Arg::int(1),
            Arg::out(ScalarType::FLOAT, &[1, 1]),
        ]
    };
    assert_eq!(call(&ADDMM, &args(0)).unwrap()[0].as_slice::<f32>().unwrap(), [4.0]);
    assert!(call(&ADDMM, &args(1)).unwrap()[0].as_slice::<f32>().unwrap()[0].is_nan());
}

#[test]
fn refusals_name_both_sides() {
    let args = [
        Arg::tensor(&[4, 16], &[0.0f32; 64]),
        Arg::tensor(&[8, 32], &[0.0f32; 256]),
        Arg::out(ScalarType::FLOAT, &[4, 32]),
    ];
    let error = call(&MM, &args).unwrap_err();
    assert_eq!(error.message, "`self` is 4x16, `mat2` is 8x32: inner sizes differ");
}
