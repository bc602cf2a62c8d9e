#![allow(unused)]

use edgepack_executor::kernel::KernelError;
use edgepack_executor::typed::{Tensor, TensorMut, kernel};

#[kernel("t::a.out(Tensor self, floaty by, *, Tensor(a!) out -> Tensor(a!)")]
fn no_schema(x: &Tensor<f32>, by: f64, out: &mut TensorMut<f32>) {}

#[kernel("t::a.out(Tensor self, float by, *, Tensor(a!) out) -> Tensor(a!)")]
fn too_few(x: &Tensor<f32>, out: &mut TensorMut<f32>) {}

#[kernel("t::a.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")]
fn generic<T>(x: &Tensor<T>, out: &mut TensorMut<T>) {}

#[kernel("t::a.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", dtypes(f32))]
fn not_generic(x: &Tensor<f32>, out: &mut TensorMut<f32>) {}

#[kernel("t::a.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", dtypes())]
fn for_nothing<T>(x: &Tensor<T>, out: &mut TensorMut<T>) {}

#[kernel("t::a.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", dtypes(f32))]
fn undecided<T>(x: &Tensor<f32>, out: &mut TensorMut<f32>) {}

#[kernel("t::a.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", like = "other")]
fn like_nothing(x: &Tensor<f32>, out: &mut TensorMut<f32>) {}

#[kernel("t::a.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", like = "self", resize = resize)]
fn two_sizes(x: &Tensor<f32>, out: &mut TensorMut<f32>) {}

#[kernel("t::a.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", alias = true)]
fn unknown_option(x: &Tensor<f32>, out: &mut TensorMut<f32>) {}

#[kernel("t::a(Tensor self) -> Tensor")]
fn new_tensor(x: &Tensor<f32>) {}

#[kernel("t::a(Generator g) -> int")]
fn no_value(g: i64) -> i64 {
    g
}

#[kernel("t::a.out(Tensor self, *, Tensor(a!)[] out) -> ()")]
fn list_of_outs(x: &Tensor<f32>, out: &mut TensorMut<f32>) {}

#[kernel("t::a(int a) -> int")]
async fn not_now(a: i64) -> i64 {
    a
}

struct Method;

impl Method {
    #[kernel("t::a(int a) -> int")]
    fn of_a_type(&self) -> i64 {
        1
    }
}

fn main() {
    let _: Option<KernelError> = None;
}
