//! Operators against what their definitions say: random calls, computed a second time in plain loops over indices.
//!
//! Invariant: nothing here calls the library but to run an operator. Numbers are `i128` where the library has integers
//! and `f64` where it has floats; element types, promotion and rounding are written down again.

mod binary;
mod convolution;
mod logic;
mod matmul;
mod number;
mod pooling;
mod reduction;
mod running;
mod tensor;
mod unary;

use std::sync::LazyLock;

use edgepack_executor::Registry;
use edgepack_executor::call::{Arg, OwnedTensor, call};
use edgepack_format::scalar::ScalarType;
use edgepack_tests::examples::dtype_name;
use proptest::test_runner::{Config, TestCaseError};

use number::{Num, near};
use tensor::{Tensor, read};

static REGISTRY: LazyLock<Registry> = LazyLock::new(edgepack_kernels::registry);

fn config(cases: u32) -> Config {
    Config { failure_persistence: None, cases, ..Config::default() }
}

/// A number that an operator should compute, and the magnitude of the terms it is the sum of.
#[derive(Clone, Copy, Debug)]
struct Want {
    num: Num,
    scale: f64,
}

impl From<Num> for Want {
    fn from(num: Num) -> Self {
        Want { num, scale: 0.0 }
    }
}

impl From<f64> for Want {
    fn from(x: f64) -> Self {
        Num::Real(x).into()
    }
}

impl From<bool> for Want {
    fn from(x: bool) -> Self {
        Num::Whole(x.into()).into()
    }
}

impl From<usize> for Want {
    fn from(x: usize) -> Self {
        Num::Whole(x as i128).into()
    }
}

/// Expected output of a call: its sizes, and its elements in index order.
struct Expected {
    sizes: Vec<usize>,
    wants: Vec<Want>,
}

impl Expected {
    fn new<W: Into<Want>>(sizes: &[usize], wants: impl IntoIterator<Item = W>) -> Self {
        Expected { sizes: sizes.to_vec(), wants: wants.into_iter().map(Into::into).collect() }
    }
}

/// An output to be written: a type and a dim order, full of bytes that are not a result.
fn out(dtype: ScalarType, sizes: &[usize], turned: bool) -> Arg {
    let count: usize = sizes.iter().product();
    let bytes = vec![1; count * dtype.size().expect("a type with a size")];
    let tensor = OwnedTensor::from_bytes(dtype, sizes, bytes).expect("as many bytes as the sizes say");
    Arg::Tensor(tensor::turned(tensor, turned))
}

/// Text of a call for messages: the operator and its arguments.
fn shown(name: &str, args: &[Arg]) -> String {
    let arg = |arg: &Arg| match arg {
        Arg::Tensor(tensor) => {
            let layout = tensor.layout();
            format!("{}{:?} in order {:?}", dtype_name(layout.scalar_type()), layout.sizes(), layout.dim_order())
        }
        other => format!("{other:?}"),
    };
    format!("{name}({})", args.iter().map(arg).collect::<Vec<_>>().join(", "))
}

/// Calls an operator and compares every output with what is expected, give or take this much of the magnitude of its
/// terms.
fn check(name: &str, args: &[Arg], expected: &[Expected], slack: f64) -> Result<(), TestCaseError> {
    let operator = REGISTRY.find(name).ok_or_else(|| TestCaseError::fail(format!("{name} is not registered")))?;
    let outs = call(operator, args).map_err(|error| TestCaseError::fail(format!("{}: {error}", shown(name, args))))?;
    if outs.len() != expected.len() {
        return Err(TestCaseError::fail(format!("{}: {} outputs", shown(name, args), outs.len())));
    }
    for (which, (have, want)) in outs.iter().zip(expected).enumerate() {
        let dtype = have.layout().scalar_type();
        let nums = read(have);
        if have.layout().sizes() != want.sizes || nums.len() != want.wants.len() {
            let text = format!("{}: output {which} has sizes {:?}", shown(name, args), have.layout().sizes());
            return Err(TestCaseError::fail(format!("{text}, not {:?}", want.sizes)));
        }
        for (at, (have, want)) in nums.iter().zip(&want.wants).enumerate() {
            if !near(*have, *want, dtype, slack) {
                let values = |arg: &Arg| match arg {
                    Arg::Tensor(tensor) if nums.len() < 200 => format!("{:?}", read(tensor)),
                    _ => String::new(),
                };
                let inputs: Vec<String> = args.iter().map(values).collect();
                let text = format!("{}: element {at} of output {which} is {have:?}", shown(name, args));
                return Err(TestCaseError::fail(format!("{text}, not {want:?}; of {inputs:?}")));
            }
        }
    }
    Ok(())
}

/// Checks that an operator refuses a call.
fn refused(name: &str, args: &[Arg]) -> Result<(), TestCaseError> {
    let operator = REGISTRY.find(name).ok_or_else(|| TestCaseError::fail(format!("{name} is not registered")))?;
    match call(operator, args) {
        Err(_) => Ok(()),
        Ok(outs) => Err(TestCaseError::fail(format!("{} answers {outs:?}", shown(name, args)))),
    }
}

/// A tensor of the oracle as an argument.
fn arg(tensor: &Tensor, turned: bool) -> Arg {
    Arg::Tensor(tensor.owned(turned))
}
