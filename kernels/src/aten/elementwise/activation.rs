//! Activations and clamps.

use edgepack_executor::kernel::{KernelError, Prepare, Run};
use edgepack_format::scalar::ScalarType;

use super::engine::Input::{Scalar, ScalarOr, Tensor, TensorOr};
use super::engine::Limit::{Greatest, Least};
use super::engine::prepare;
use super::lanes::{Body, Lane, Params, Values, loops};
use super::schema::UNARY;
use super::unary::vectorised;
use super::{kernels, specs};
use edgepack_compute::float::Float;
use edgepack_compute::number::Compute;

loops! {
    clamp: all<C: Compute> -> C, |p; a, least, greatest| a.greater_of(least).lesser_of(greatest);
    relu: real<C: Compute> -> C, |p; a| if a.less(C::ZERO) { C::ZERO } else { a };
    leaky_relu: float<C: Float> -> C, |p; a| if a.less_or_same(C::ZERO) { a.times(p[0]) } else { a };
    elu: float<C: Float> -> C, |p; a| {
        let [alpha, scale, input_scale] = p;
        if a.less_or_same(C::ZERO) { a.times(input_scale).exp_m1().times(alpha.times(scale)) } else { a.times(scale) }
    };
    sigmoid_plain: float<C: Float> -> C, |p; a| C::ONE.over(C::ONE.plus(a.negative().exp()));
    gelu_plain: float<C: Float> -> C, |p; a| {
        let half = C::of(0.5);
        half.times(a).times(C::ONE.plus(a.times(C::of(std::f64::consts::FRAC_1_SQRT_2)).erf()))
    };
    gelu_tanh_plain: float<C: Float> -> C, |p; a| {
        let cubic = a.plus(C::of(0.044715).times(a).times(a).times(a));
        let inner = C::of(std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2).times(cubic);
        C::of(0.5).times(a).times(C::ONE.plus(inner.tanh()))
    };
    logit: float<C: Float> -> C, |p; a| a.over(C::ONE.minus(a)).ln();
    logit_clamped: float<C: Float> -> C, |p; a| {
        let a = a.greater_of(p[0]).lesser_of(C::ONE.minus(p[0]));
        a.over(C::ONE.minus(a)).ln()
    };
}

fn sigmoid(compute: ScalarType) -> Option<Body> {
    if compute == ScalarType::FLOAT { Some(vectorised::<rten_vecmath::Sigmoid>()) } else { sigmoid_plain(compute) }
}

/// `a * sigmoid(a)`, in the two loops of the operators it is made of.
fn silu(compute: ScalarType) -> Option<Body> {
    fn run(params: &Params, lanes: &[Lane<'_>], out: &mut [u8]) {
        if let Some(sigmoid) = sigmoid(ScalarType::FLOAT) {
            (sigmoid.run)(params, lanes, out);
        }
        let out: &mut [f32] = bytemuck::cast_slice_mut(out);
        if let Values::Each(input) = lanes[0].values::<f32>() {
            out.iter_mut().zip(input).for_each(|(y, x)| *y *= x);
        }
    }
    (compute == ScalarType::FLOAT).then_some(Body { run, result: ScalarType::FLOAT })
}

fn gelu(compute: ScalarType) -> Option<Body> {
    if compute == ScalarType::FLOAT { Some(vectorised::<rten_vecmath::Gelu>()) } else { gelu_plain(compute) }
}

fn gelu_tanh(compute: ScalarType) -> Option<Body> {
    if compute == ScalarType::FLOAT { Some(vectorised::<rten_vecmath::ApproxGelu>()) } else { gelu_tanh_plain(compute) }
}

const GELU_SCHEMA: &str = "(Tensor self, *, str approximate=\"none\", Tensor(a!) out) -> Tensor(a!)";
const LOGIT_SCHEMA: &str = "(Tensor self, float? eps=None, *, Tensor(a!) out) -> Tensor(a!)";

specs! {
    pub(crate) CLAMP: "(Tensor self, Scalar? min=None, Scalar? max=None, *, Tensor(a!) out) -> Tensor(a!)",
        [Tensor(0), ScalarOr(1, Least), ScalarOr(2, Greatest)], [], 3, Promote, clamp;
    CLAMP_TENSOR: "(Tensor self, Tensor? min=None, Tensor? max=None, *, Tensor(a!) out) -> Tensor(a!)",
        [Tensor(0), TensorOr(1, Least), TensorOr(2, Greatest)], [], 3, Promote, clamp;
    pub(crate) HARDTANH: "(Tensor self, Scalar min_val=-1, Scalar max_val=1, *, Tensor(a!) out) -> Tensor(a!)",
        [Tensor(0), Scalar(1), Scalar(2)], [], 3, First, clamp;
    pub(crate) RELU: UNARY, [Tensor(0)], [], 1, First, relu;
    pub(crate) LEAKY_RELU: "(Tensor self, Scalar negative_slope=0.01, *, Tensor(a!) out) -> Tensor(a!)",
        [Tensor(0)], [1], 2, First, leaky_relu;
    pub(crate) ELU: "(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1, *, Tensor(a!) out) -> Tensor(a!)",
        [Tensor(0)], [1, 2, 3], 4, First, elu;
    pub(crate) SIGMOID: UNARY, [Tensor(0)], [], 1, Float, sigmoid;
    pub(crate) SILU: UNARY, [Tensor(0)], [], 1, First, silu;
    pub(crate) GELU: GELU_SCHEMA, [Tensor(0)], [], 2, First, gelu;
    pub(crate) GELU_TANH: GELU_SCHEMA, [Tensor(0)], [], 2, First, gelu_tanh;
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

#[cfg(test)]
mod tests {
    use super::super::lanes::{Lane, Params, Table};
    use super::super::unary;
    use super::*;

    fn applied(table: Table, x: &[f32]) -> Vec<f32> {
        let mut out = vec![0f32; x.len()];
        let lane = Lane { bytes: bytemuck::cast_slice(x), constant: false };
        let params = Params([edgepack_executor::tensor::Scalar::Int(0); 3]);
        (table(ScalarType::FLOAT).unwrap().run)(&params, &[lane], bytemuck::cast_slice_mut(&mut out));
        out
    }

    #[test]
    fn vectorised_loops_agree_with_plain_ones() {
        let mut x: Vec<f32> = (-400..400).map(|i| i as f32 * 0.05).collect();
        x.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1e-20, -1e-20, 100.0, -100.0, 88.7, -103.0]);
        let pairs: [(&str, Table, Table, f32); 6] = [
            ("exp", unary::exp, unary::exp_plain, 1e-37),
            ("tanh", unary::tanh, unary::tanh_plain, 1e-30),
            ("erf", unary::erf, unary::erf_plain, 3e-7),
            ("sigmoid", sigmoid, sigmoid_plain, 1e-30),
            ("gelu", gelu, gelu_plain, 1e-6),
            ("gelu by tanh", gelu_tanh, gelu_tanh_plain, 1e-6),
        ];
        for (name, fast, slow, absolute) in pairs {
            for ((x, fast), slow) in x.iter().zip(applied(fast, &x)).zip(applied(slow, &x)) {
                let near = fast == slow || (fast - slow).abs() <= 2e-6 * slow.abs() + absolute;
                assert!(near || fast.is_nan() && slow.is_nan(), "{name}({x}) is {slow}, vectorised {fast}");
            }
        }
    }
}
