#![allow(unused)]

use edgepack_executor::typed::{Tensor, TensorMut, kernel};

#[kernel("t::a.out(Tensor self, float by, int[] dims, *, Tensor(a!) out) -> Tensor(a!)")]
fn parameters(x: &Tensor<f32>, by: f32, dims: &[i64], out: &Tensor<f32>) {}

#[kernel("t::b.out(Tensor self, float? by, *, Tensor(a!) out) -> Tensor(a!)")]
fn optional(x: Option<Tensor<f32>>, by: f64, out: &mut TensorMut<f32>) {}

#[kernel("t::c(int a) -> int")]
fn result(a: i64) -> f64 {
    a as f64
}

#[kernel("t::d(int a) -> int")]
fn foreign_error(a: i64) -> Result<i64, String> {
    Ok(a)
}

fn main() {}
