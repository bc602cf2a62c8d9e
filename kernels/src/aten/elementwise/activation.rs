//! Activations and clamps.

use super::engine::prepare;
use super::schema::UNARY;
use super::spec::Input::{Scalar, ScalarOr, Tensor, TensorOr};
use super::{kernels, specs};
use edgepack_compute::pointwise::Limit::{Greatest, Least};
use edgepack_compute::pointwise::activation::*;
use edgepack_executor::kernel::{KernelError, Prepare, Run};

const GELU_SCHEMA: &str = "(Tensor self, *, str approximate=\"none\", Tensor(a!) out) -> Tensor(a!)";
const LOGIT_SCHEMA: &str = "(Tensor self, float? eps=None, *, Tensor(a!) out) -> Tensor(a!)";

specs! {
    CLAMP: "(Tensor self, Scalar? min=None, Scalar? max=None, *, Tensor(a!) out) -> Tensor(a!)",
        [Tensor(0), ScalarOr(1, Least), ScalarOr(2, Greatest)], [], 3, Promote, clamp;
    CLAMP_TENSOR: "(Tensor self, Tensor? min=None, Tensor? max=None, *, Tensor(a!) out) -> Tensor(a!)",
        [Tensor(0), TensorOr(1, Least), TensorOr(2, Greatest)], [], 3, Promote, clamp;
    HARDTANH: "(Tensor self, Scalar min_val=-1, Scalar max_val=1, *, Tensor(a!) out) -> Tensor(a!)",
        [Tensor(0), Scalar(1), Scalar(2)], [], 3, First, clamp;
    RELU: UNARY, [Tensor(0)], [], 1, First, relu;
    LEAKY_RELU: "(Tensor self, Scalar negative_slope=0.01, *, Tensor(a!) out) -> Tensor(a!)",
        [Tensor(0)], [1], 2, First, leaky_relu;
    ELU: "(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1, *, Tensor(a!) out) -> Tensor(a!)",
        [Tensor(0)], [1, 2, 3], 4, First, elu;
    SIGMOID: UNARY, [Tensor(0)], [], 1, Float, sigmoid;
    GELU: GELU_SCHEMA, [Tensor(0)], [], 2, First, gelu;
    GELU_TANH: GELU_SCHEMA, [Tensor(0)], [], 2, First, gelu_tanh;
    LOGIT: LOGIT_SCHEMA, [Tensor(0)], [], 2, Float, logit;
    LOGIT_CLAMPED: LOGIT_SCHEMA, [Tensor(0)], [1], 2, Float, logit_clamped;
}

fn prepare_gelu(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(4)?;
    match args.text(1)? {
        "none" => prepare(args, &GELU),
        "tanh" => prepare(args, &GELU_TANH),
        other => Err(KernelError::argument(format!("`approximate` is {other:?}, not \"none\" or \"tanh\""))),
    }
}

kernels! {
    "aten::clamp.out" => CLAMP,
    "aten::clamp.Tensor_out" => CLAMP_TENSOR,
    "aten::hardtanh.out" => HARDTANH,
    "aten::relu.out" => RELU,
    "aten::leaky_relu.out" => LEAKY_RELU,
    "aten::elu.out" => ELU,
    "aten::sigmoid.out" => SIGMOID;
    "aten::gelu.out" GELU_SCHEMA => prepare_gelu,
    "aten::logit.out" LOGIT_SCHEMA =>
        |args| prepare(args, if args.is_none(1) { &LOGIT } else { &LOGIT_CLAMPED }),
}
