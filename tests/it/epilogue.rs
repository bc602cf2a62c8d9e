//! Operators and the element-wise ones behind them run as one, to the bit, and only where no caller can tell.

use edgepack_format::scalar::ScalarType;
use edgepack_tests::alike::{Apart, numbers, runs_alike};
use edgepack_tests::assemble::{Assembly, Id, Spec, float};

const SIZES: [i32; 2] = [6, 40];

/// A method under construction whose tensors all have one shape.
struct Chain {
    assembly: Assembly,
    last: Id,
}

impl Chain {
    fn new() -> Self {
        let mut assembly = Assembly::new();
        let last = assembly.planned(float(&SIZES));
        assembly.inputs(&[last]);
        Chain { assembly, last }
    }

    fn next(&mut self, dtype: ScalarType) -> Id {
        self.assembly.planned(Spec::new(dtype, &SIZES))
    }

    /// `last = name(last, others, out)`.
    fn unary(mut self, name: &str, others: &[Id], dtype: ScalarType) -> Self {
        let out = self.next(dtype);
        let args: Vec<Id> = [self.last].iter().chain(others).copied().chain([out, out]).collect();
        self.assembly.call(name, &args);
        self.last = out;
        self
    }

    fn activation(mut self, name: &str) -> Self {
        let a = &mut self.assembly;
        let others = match name {
            "aten::clamp.out" => vec![a.null(), a.int(2)],
            "aten::hardtanh.out" => vec![a.double(-0.5), a.int(3)],
            "aten::leaky_relu.out" => vec![a.double(0.125)],
            "aten::elu.out" => vec![a.double(1.5), a.int(1), a.double(0.5)],
            "aten::gelu.out" => vec![a.text("none")],
            "aten::gelu.out (tanh)" => vec![a.text("tanh")],
            _ => Vec::new(),
        };
        self.unary(name.split(' ').next().unwrap(), &others, ScalarType::FLOAT)
    }

    fn quantized(mut self) -> Self {
        let a = &mut self.assembly;
        let numbers = [a.double(0.07), a.int(-3), a.int(-127), a.int(127), a.int(1)];
        self.unary("quantized_decomposed::quantize_per_tensor.out", &numbers, ScalarType::CHAR)
    }

    fn dequantized(mut self) -> Self {
        let a = &mut self.assembly;
        let numbers = [a.double(0.07), a.int(-3), a.int(-127), a.int(127), a.int(1), a.null()];
        self.unary("quantized_decomposed::dequantize_per_tensor.out", &numbers, ScalarType::FLOAT)
    }

    fn head(mut self, name: &str) -> Self {
        let (rows, width) = (SIZES[0], SIZES[1]);
        let a = &mut self.assembly;
        let square = a.constant(float(&[width, width]), &numbers((width * width) as usize));
        let same = a.constant(float(&SIZES), &numbers((rows * width) as usize));
        let bias = a.constant(float(&[width]), &numbers(width as usize));
        let (one, out) = (a.int(1), a.planned(float(&SIZES)));
        let args = match name {
            "aten::mm.out" => vec![self.last, square],
            "aten::addmm.out" => vec![bias, self.last, square, one, one],
            "aten::linear.out" => vec![self.last, square, bias],
            "aten::add.out" => vec![self.last, same, one],
            "aten::mul.out" => vec![self.last, same],
            other => panic!("{other}"),
        };
        a.call(name, &[&args[..], &[out, out]].concat());
        self.last = out;
        self
    }

    fn names(mut self) -> Vec<String> {
        self.assembly.outputs(&[self.last]);
        runs_alike(&self.assembly, &SIZES.map(|size| size as usize), Apart::Nothing)
    }
}

const HEADS: [&str; 5] = ["aten::mm.out", "aten::addmm.out", "aten::linear.out", "aten::add.out", "aten::mul.out"];

const ACTIVATIONS: [&str; 14] = [
    "aten::clamp.out",
    "aten::hardtanh.out",
    "aten::relu.out",
    "aten::leaky_relu.out",
    "aten::elu.out",
    "aten::sigmoid.out",
    "aten::gelu.out",
    "aten::gelu.out (tanh)",
    "aten::tanh.out",
    "aten::exp.out",
    "aten::neg.out",
    "aten::abs.out",
    "aten::sqrt.out",
    "aten::rsqrt.out",
];

fn fused(head: &str) -> String {
    format!("edgepack::{}.epilogue_out", head.trim_start_matches("aten::").trim_end_matches(".out"))
}

#[test]
fn heads_absorb_activations() {
    for head in HEADS {
        for activation in ACTIVATIONS {
            assert_eq!(Chain::new().head(head).activation(activation).names(), [fused(head)], "{head} {activation}");
        }
    }
}

#[test]
fn quantising_and_dequantising_behind_an_operator_is_one_with_it() {
    for head in HEADS {
        let chain = Chain::new().head(head).activation("aten::relu.out").quantized().dequantized();
        assert_eq!(chain.names(), [fused(head)], "{head}");
    }
}

#[test]
fn an_operator_between_dequantising_and_quantising_is_one_pass() {
    let chain = Chain::new().quantized().dequantized().activation("aten::sigmoid.out").quantized();
    assert_eq!(chain.names(), ["edgepack::pointwise.out"]);
}

#[test]
fn gates_are_one_with_what_they_gate() {
    for (head, swapped) in HEADS.into_iter().flat_map(|head| [(head, false), (head, true)]) {
        let mut chain = Chain::new().head(head);
        let gated = chain.last;
        chain = chain.activation("aten::sigmoid.out");
        let factors = if swapped { [chain.last, gated] } else { [gated, chain.last] };
        chain.last = factors[0];
        let names = chain.unary("aten::mul.out", &factors[1..], ScalarType::FLOAT).names();
        assert_eq!(names, [fused(head)], "{head}");
    }
}

#[test]
fn sums_may_end_quantised_and_products_may_not() {
    let names = |head: &str| Chain::new().head(head).activation("aten::relu.out").quantized().names();
    assert_eq!(names("aten::add.out"), ["edgepack::add.epilogue_out"]);
    assert_eq!(names("aten::mm.out"), ["aten::mm.out", "edgepack::pointwise.out"]);
}

#[test]
fn what_is_read_twice_or_changes_stays() {
    let chain = Chain::new().activation("aten::exp.out");
    let seen = chain.last;
    let mut chain = chain.activation("aten::neg.out");
    chain.assembly.outputs(&[seen, chain.last]);
    let sizes = SIZES.map(|size| size as usize);
    assert_eq!(runs_alike(&chain.assembly, &sizes, Apart::Nothing), ["aten::exp.out", "aten::neg.out"]);

    // The slope is computed at each run.
    let mut chain = Chain::new().activation("aten::exp.out");
    let a = &mut chain.assembly;
    let (two, four, slope) = (a.double(2.0), a.int(4), a.double(0.0));
    a.call("executorch_prim::truediv.Scalar", &[two, four, slope]);
    let names = chain.unary("aten::leaky_relu.out", &[slope], ScalarType::FLOAT).names();
    assert_eq!(names, ["aten::exp.out", "executorch_prim::truediv.Scalar", "aten::leaky_relu.out"]);
}

#[test]
fn limits_outside_of_the_range_are_left_to_the_operator() {
    let mut chain = Chain::new().activation("aten::neg.out");
    let beyond = [chain.assembly.double(-1.0), chain.assembly.double(1e300)];
    let chain = chain.unary("aten::clamp.out", &beyond, ScalarType::FLOAT);
    assert_eq!(chain.names(), ["aten::neg.out", "aten::clamp.out"]);
}

#[test]
fn long_chains_are_several_passes() {
    let chain = (0..40).fold(Chain::new(), |chain, _| chain.activation("aten::neg.out"));
    assert_eq!(chain.names(), ["edgepack::pointwise.out"; 3]);
}

#[test]
fn results_in_the_place_of_an_operand_are_not_fused() {
    let mut a = Assembly::new();
    let (x, middle) = (a.planned_at(float(&SIZES), 0), a.planned_at(float(&SIZES), 1024));
    let over_x = a.planned_at(float(&SIZES), 0);
    a.call("aten::exp.out", &[x, middle, middle]);
    a.call("aten::neg.out", &[middle, over_x, over_x]);
    a.inputs(&[x]);
    a.outputs(&[over_x]);
    let names = runs_alike(&a, &SIZES.map(|size| size as usize), Apart::Nothing);
    assert_eq!(names, ["aten::exp.out", "aten::neg.out"]);
}

#[test]
fn long_tensors_are_shared_among_threads() {
    let sizes = [3, 50_000];
    let mut a = Assembly::new();
    let [x, y, z] = [(); 3].map(|()| a.planned(float(&sizes)));
    a.call("aten::neg.out", &[x, y, y]);
    a.call("aten::sigmoid.out", &[y, z, z]);
    a.inputs(&[x]);
    a.outputs(&[z]);
    assert_eq!(runs_alike(&a, &[3, 50_000], Apart::Nothing), ["edgepack::pointwise.out"]);
}
