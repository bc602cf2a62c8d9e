//! Activations and clamps.

use edgepack_executor::kernel::{KernelError, Prepare, Run};

use super::engine::prepare;
use super::{kernels, specs};
use crate::schema::position;
use edgepack_compute::pointwise::activation::*;

specs! {
    CLAMP: "aten::clamp.out", [Tensor("self"), ScalarOr("min", Least), ScalarOr("max", Greatest)], [], Promote, clamp;
    CLAMP_TENSOR: "aten::clamp.Tensor_out", [Tensor("self"), TensorOr("min", Least), TensorOr("max", Greatest)], [], Promote, clamp;
    HARDTANH: "aten::hardtanh.out", [Tensor("self"), Scalar("min_val"), Scalar("max_val")], [], First, clamp;
    RELU: "aten::relu.out", [Tensor("self")], [], First, relu;
    LEAKY_RELU: "aten::leaky_relu.out", [Tensor("self")], ["negative_slope"], First, leaky_relu;
    ELU: "aten::elu.out", [Tensor("self")], ["alpha", "scale", "input_scale"], First, elu;
    SIGMOID: "aten::sigmoid.out", [Tensor("self")], [], Float, sigmoid;
    GELU: "aten::gelu.out", [Tensor("self")], [], First, gelu;
    GELU_TANH: "aten::gelu.out", [Tensor("self")], [], First, gelu_tanh;
    LOGIT: "aten::logit.out", [Tensor("self")], [], Float, logit;
    LOGIT_CLAMPED: "aten::logit.out", [Tensor("self")], ["eps"], Float, logit_clamped;
}

fn prepare_gelu(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(GELU.out + 2)?;
    match args.text(const { position("aten::gelu.out", "approximate") })? {
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
    "aten::gelu.out" => prepare_gelu,
    "aten::logit.out" => |args| {
        let unclamped = args.is_none(const { position("aten::logit.out", "eps") });
        prepare(args, if unclamped { &LOGIT } else { &LOGIT_CLAMPED })
    },
}
