//! Element-wise steps done to results while they are in the cache: what rewrites make of activations, and of quantising
//! and dequantising, behind an operator.
//!
//! Steps have a text form, the argument `then` of the operators that take them: `aten::clamp.out 0 6; quantize 1 0.05 -3
//! -128 127; dequantize 1 0.05 -3`. A step is a name and its numbers; integers are written without a point. Invariant:
//! steps compute with the very loops of the operators they stand for, so results are theirs to the bit.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::Scalar;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::aten::elementwise::engine::{Input, Spec, limit_bits, scalar_bits};
use crate::aten::elementwise::lanes::{Lane, Loop, Params};
use crate::aten::elementwise::{activation, unary};
use crate::check::expect_same;
use crate::convert::is_aligned;
use crate::quantized::affine::{Affine, AffineLoop, dequantizer, quantizer};
use edgepack_compute::simd::wide;
use edgepack_compute::threads::for_each_piece;

/// What stands between two steps.
pub const SEPARATOR: &str = "; ";

/// An operator that can be a step: it maps every element of one FLOAT tensor by itself.
pub struct Pointwise {
    /// The name of the operator.
    pub operator: &'static str,
    /// An argument that must be this text.
    pub text: Option<(usize, &'static str)>,
    /// The name of the step: that of the operator, unless text tells steps of one operator apart.
    pub step: &'static str,
    /// How the operator is computed. Its numbers are those of the step: inputs behind the first, then params.
    pub spec: &'static Spec,
}

impl Pointwise {
    const fn new(operator: &'static str, spec: &'static Spec) -> Self {
        Pointwise { operator, text: None, step: operator, spec }
    }

    /// The arguments that are numbers of the step, in its order.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        self.spec.inputs[1..].iter().map(|input| input.arg()).chain(self.spec.params.iter().copied())
    }
}

/// A product with the sigmoid of itself: two operators of a program, of which only the step has a name.
pub const SILU: &str = "edgepack::silu";

/// The operators that can be steps.
pub static POINTWISE: &[Pointwise] = &[
    Pointwise::new(SILU, &activation::SILU),
    Pointwise::new("aten::clamp.out", &activation::CLAMP),
    Pointwise::new("aten::hardtanh.out", &activation::HARDTANH),
    Pointwise::new("aten::relu.out", &activation::RELU),
    Pointwise::new("aten::leaky_relu.out", &activation::LEAKY_RELU),
    Pointwise::new("aten::elu.out", &activation::ELU),
    Pointwise::new("aten::sigmoid.out", &activation::SIGMOID),
    Pointwise { operator: "aten::gelu.out", text: Some((1, "none")), step: "aten::gelu.none", spec: &activation::GELU },
    Pointwise {
        operator: "aten::gelu.out",
        text: Some((1, "tanh")),
        step: "aten::gelu.tanh",
        spec: &activation::GELU_TANH,
    },
    Pointwise::new("aten::tanh.out", &unary::TANH),
    Pointwise::new("aten::exp.out", &unary::EXP),
    Pointwise::new("aten::neg.out", &unary::NEG),
    Pointwise::new("aten::abs.out", &unary::ABS),
    Pointwise::new("aten::sqrt.out", &unary::SQRT),
    Pointwise::new("aten::rsqrt.out", &unary::RSQRT),
];

/// What results are held to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Clamp {
    least: f32,
    greatest: f32,
}

impl Clamp {
    /// Holds results to nothing.
    pub(crate) const NONE: Clamp = Clamp { least: f32::NEG_INFINITY, greatest: f32::INFINITY };

    /// Holds results to it; NaN stays.
    #[inline(always)]
    pub(crate) fn apply(&self, results: &mut [f32]) {
        for x in results {
            let raised = if *x < self.least { self.least } else { *x };
            *x = if raised > self.greatest { self.greatest } else { raised };
        }
    }
}

/// One step, its numbers in place.
enum Step {
    Pointwise { run: Loop, params: Params, constants: [u64; 2], inputs: usize },
    Affine { run: AffineLoop, affine: Affine },
}

/// Elements done at a time.
const BLOCK: usize = 512;

/// Steps in a row.
///
/// ```
/// use edgepack_format::scalar::ScalarType;
/// use edgepack_kernels::steps::Steps;
///
/// let steps = Steps::parse("aten::clamp.out 0 6; aten::neg.out", ScalarType::FLOAT).unwrap();
/// let (x, mut y) = ([-1.0f32, 3.0, 9.0], [0.0f32; 3]);
/// steps.run(bytemuck::cast_slice(&x), bytemuck::cast_slice_mut(&mut y));
/// assert_eq!(y, [0.0, -3.0, -6.0]);
/// ```
pub struct Steps {
    /// The first step, if it clamps: kernels may do it where the results still are in registers.
    clamp: Option<Clamp>,
    /// The others, each with the type of its results.
    rest: Vec<(Step, ScalarType)>,
    from: ScalarType,
}

impl Steps {
    /// Reads steps whose first takes elements of type `from`.
    pub fn parse(text: &str, from: ScalarType) -> Result<Steps, KernelError> {
        let mut steps = Steps { clamp: None, rest: Vec::new(), from };
        for (index, step) in text.split(SEPARATOR).enumerate() {
            let mut words = step.split(' ');
            let name = words.next().unwrap_or_default();
            let numbers: Option<Vec<Option<Scalar>>> = words.map(number).collect();
            let numbers = numbers.ok_or_else(|| bad(step))?;
            steps.push(name, &numbers, index == 0).ok_or_else(|| bad(step))?;
        }
        Ok(steps)
    }

    fn push(&mut self, name: &str, numbers: &[Option<Scalar>], first: bool) -> Option<()> {
        let from = self.result();
        let whole = |number: &Option<Scalar>| match number {
            Some(Scalar::Int(number)) => Some(*number),
            _ => None,
        };
        let zero_point = |number: &Option<Scalar>| i32::try_from(whole(number)?).ok().map(i64::from);
        let dtype = |number: &Option<Scalar>| Some(ScalarType(i8::try_from(whole(number)?).ok()?));
        let (step, to) = match (name, numbers) {
            ("quantize", [to, scale, zero, least, greatest]) => {
                let (scale, to) = ((*scale)?.to_f64() as f32, dtype(to)?);
                let affine =
                    Affine { scale, zero: zero_point(zero)?, least: whole(least)?, greatest: whole(greatest)? };
                affine.expect_in(to).ok()?;
                (Step::Affine { run: quantizer(from, to).ok()?, affine }, to)
            }
            ("dequantize", [of, scale, zero]) => {
                let affine =
                    Affine { scale: (*scale)?.to_f64() as f32, zero: zero_point(zero)?, least: 0, greatest: 0 };
                let run = dequantizer(from, ScalarType::FLOAT).ok().filter(|_| dtype(of) == Some(from))?;
                (Step::Affine { run, affine }, ScalarType::FLOAT)
            }
            _ => {
                let row = POINTWISE.iter().find(|row| row.step == name)?;
                if from != ScalarType::FLOAT || row.numbers().count() != numbers.len() {
                    return None;
                }
                if first && let Some(clamp) = clamp(row, numbers) {
                    self.clamp = Some(clamp);
                    return Some(());
                }
                (pointwise(row.spec, numbers)?, ScalarType::FLOAT)
            }
        };
        self.rest.push((step, to));
        Some(())
    }

    /// The element type of what comes out.
    pub fn result(&self) -> ScalarType {
        self.rest.last().map_or(self.from, |(_, to)| *to)
    }

    /// Steps on FLOAT that give FLOAT, as operators want them that compute in their output.
    pub(crate) fn of_floats(text: &str) -> Result<Steps, KernelError> {
        let steps = Steps::parse(text, ScalarType::FLOAT)?;
        match steps.result() {
            ScalarType::FLOAT => Ok(steps),
            other => Err(KernelError::unsupported(format!("steps that end in elements of type {other}"))),
        }
    }

    /// The clamp that comes first, for kernels that do it themselves and then call [`Steps::finish`].
    pub(crate) fn first_clamp(&self) -> Clamp {
        self.clamp.unwrap_or(Clamp::NONE)
    }

    /// Does the steps behind the first clamp.
    pub(crate) fn finish(&self, results: &mut [f32]) {
        if self.rest.is_empty() {
            return;
        }
        let (mut copy, mut buffers) = ([0f32; BLOCK], Buffers::new());
        for results in results.chunks_mut(BLOCK) {
            let copy = &mut copy[..results.len()];
            copy.copy_from_slice(results);
            self.chain(bytemuck::cast_slice(copy), bytemuck::cast_slice_mut(results), copy.len(), &mut buffers);
        }
    }

    /// Does all steps where the results are; they are FLOAT and stay it.
    pub(crate) fn in_place(&self, results: &mut [f32]) {
        for_each_piece(results, 1, |_, results| {
            if let Some(clamp) = self.clamp {
                wide(|| clamp.apply(results));
            }
            self.finish(results);
        });
    }

    /// Does all steps to as many elements as the output has room for. Both slices are aligned to their elements.
    pub fn run(&self, from: &[u8], to: &mut [u8]) {
        let widths = [self.from, self.result()].map(|dtype| dtype.size().unwrap_or(1));
        for_each_piece(to, widths[1], |start, to| self.run_piece(&from[start / widths[1] * widths[0]..], to, widths));
    }

    fn run_piece(&self, from: &[u8], to: &mut [u8], widths: [usize; 2]) {
        let (mut clamped, mut buffers) = ([0f32; BLOCK], Buffers::new());
        for (from, to) in from.chunks(BLOCK * widths[0]).zip(to.chunks_mut(BLOCK * widths[1])) {
            let count = to.len() / widths[1];
            let from = &from[..count * widths[0]];
            match self.clamp {
                None => self.chain(from, to, count, &mut buffers),
                Some(clamp) => {
                    let clamped = &mut clamped[..count];
                    clamped.copy_from_slice(bytemuck::cast_slice(from));
                    wide(|| clamp.apply(clamped));
                    self.chain(bytemuck::cast_slice(clamped), to, count, &mut buffers);
                }
            }
        }
    }

    /// Does the steps behind the first clamp to one block.
    fn chain(&self, from: &[u8], to: &mut [u8], count: usize, buffers: &mut Buffers) {
        let Some((last, rest)) = self.rest.split_last() else { return to.copy_from_slice(from) };
        let [mut here, mut there] = buffers.0.each_mut().map(|buffer| bytemuck::cast_slice_mut::<u32, u8>(buffer));
        let mut len = 0;
        for (index, (step, dtype)) in rest.iter().enumerate() {
            let next = count * dtype.size().unwrap_or(1);
            step.run(if index == 0 { from } else { &here[..len] }, &mut there[..next]);
            (here, there, len) = (there, here, next);
        }
        last.0.run(if rest.is_empty() { from } else { &here[..len] }, to);
    }
}

/// What steps in the middle write: words, wide enough for every element type of a step.
struct Buffers([[u32; BLOCK]; 2]);

impl Buffers {
    fn new() -> Self {
        Buffers([[0; BLOCK]; 2])
    }
}

impl Step {
    fn run(&self, from: &[u8], to: &mut [u8]) {
        match self {
            Step::Affine { run, affine } => run(affine, from, to),
            Step::Pointwise { run, params, constants, inputs } => {
                let constant = |at: usize| Lane { bytes: bytemuck::bytes_of(&constants[at]), constant: true };
                let lanes = [Lane { bytes: from, constant: false }, constant(0), constant(1)];
                run(params, &lanes[..*inputs], to);
            }
        }
    }
}

/// A number of a step: an integer if it has no point; `none` for one that is not given.
fn number(word: &str) -> Option<Option<Scalar>> {
    if word == "none" {
        return Some(None);
    }
    let integer = word.parse().map(Scalar::Int).ok();
    integer.or_else(|| word.parse().map(Scalar::Double).ok()).map(Some)
}

/// The limits of a step that clamps. No limit may be NaN: what is held to it would not be what the loop gives.
fn clamp(row: &Pointwise, numbers: &[Option<Scalar>]) -> Option<Clamp> {
    let limit = |number: &Option<Scalar>, none: f32| number.map_or(none, |number| number.to_f64() as f32);
    let clamp = match (row.operator, numbers) {
        ("aten::relu.out", []) => Clamp { least: 0.0, ..Clamp::NONE },
        ("aten::clamp.out" | "aten::hardtanh.out", [least, greatest]) => {
            Clamp { least: limit(least, Clamp::NONE.least), greatest: limit(greatest, Clamp::NONE.greatest) }
        }
        _ => return None,
    };
    (!clamp.least.is_nan() && !clamp.greatest.is_nan()).then_some(clamp)
}

fn pointwise(spec: &Spec, numbers: &[Option<Scalar>]) -> Option<Step> {
    let body = (spec.table)(ScalarType::FLOAT).filter(|body| body.result == ScalarType::FLOAT)?;
    let (inputs, params) = numbers.split_at_checked(spec.inputs.len() - 1)?;
    let mut constants = [0; 2];
    for ((constant, input), number) in constants.iter_mut().zip(&spec.inputs[1..]).zip(inputs) {
        *constant = match (input, number) {
            (Input::ScalarOr(_, limit), None) => limit_bits(*limit, ScalarType::FLOAT),
            (_, number) => scalar_bits((*number)?, ScalarType::FLOAT),
        };
    }
    let mut given = Params([Scalar::Int(0); 3]);
    for (place, number) in given.0.iter_mut().zip(params) {
        *place = (*number)?;
    }
    Some(Step::Pointwise { run: body.run, params: given, constants, inputs: spec.inputs.len() })
}

#[cold]
fn bad(step: &str) -> KernelError {
    KernelError::argument(format!("`{step}` is no step here"))
}

/// `edgepack::pointwise.out`: several element-wise operators in one pass. Programs do not name it.
pub static STEPS: Kernel = Kernel {
    name: "edgepack::pointwise.out",
    schema: "(Tensor input, *, Tensor(a!) out, str then) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare,
};

/// The argument of [`STEPS`] that is its output; the steps follow.
pub(crate) const OUT: usize = 1;

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (input, out) = (args.tensor(0)?.meta, args.tensor(OUT)?.meta);
    let steps = Steps::parse(args.text(OUT + 1)?, input.dtype)?;
    expect_same(("the last step", steps.result()), ("out", out.dtype))?;
    if input.dim_order != out.dim_order {
        return Err(KernelError::unsupported(format!(
            "`input` has dim order {:?}, `out` {:?}: they must be equal",
            input.dim_order, out.dim_order
        )));
    }
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let sizes = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
        cx.resize(OUT, &sizes)?;
        let views = cx.views();
        let (input, mut out) = (views.tensor(0)?, views.out(OUT)?);
        let dtype = out.dtype;
        if !is_aligned(input.bytes(), input.dtype) || !is_aligned(out.bytes(), dtype) {
            return Err(KernelError::argument("the data of `input` or `out` are not aligned to its element"));
        }
        steps.run(input.bytes(), out.bytes());
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_change_types_in_the_middle_and_at_the_end() {
        let steps = Steps::parse("quantize 1 0.5 3 -128 127", ScalarType::FLOAT).unwrap();
        assert_eq!(steps.result(), ScalarType::CHAR);
        // More than a block, so that blocks are put together again.
        let x: Vec<f32> = (0..1300).map(|i| i as f32 * 0.25 - 100.0).collect();
        let mut quantized = vec![0i8; x.len()];
        steps.run(bytemuck::cast_slice(&x), bytemuck::cast_slice_mut(&mut quantized));
        let want = |x: f32| ((x / 0.5).round_ties_even() + 3.0).clamp(-128.0, 127.0);
        assert!(x.iter().zip(&quantized).all(|(&x, &q)| want(x) == f32::from(q)));

        let text = "aten::hardtanh.out -2 40.0; quantize 1 0.5 3 -128 127; dequantize 1 0.5 3; aten::abs.out";
        let steps = Steps::of_floats(text).unwrap();
        let (mut in_place, mut apart) = (x.clone(), vec![0f32; x.len()]);
        steps.in_place(&mut in_place);
        steps.run(bytemuck::cast_slice(&x), bytemuck::cast_slice_mut(&mut apart));
        let want = |x: f32| ((want(x.clamp(-2.0, 40.0)) - 3.0) * 0.5).abs();
        assert!(x.iter().zip(&in_place).all(|(&x, &y)| want(x) == y));
        assert_eq!(in_place, apart);
    }

    #[test]
    fn what_is_no_step_is_named() {
        for (text, from) in [
            ("", ScalarType::FLOAT),
            ("aten::add.out 1", ScalarType::FLOAT),
            ("aten::clamp.out 0", ScalarType::FLOAT),
            ("aten::leaky_relu.out none", ScalarType::FLOAT),
            ("aten::relu.out", ScalarType::CHAR),
            ("aten::relu.out; dequantize 1 0.5 0", ScalarType::FLOAT),
            ("quantize 1 0.5 0 -129 127", ScalarType::FLOAT),
            ("quantize 1 0.5 0.5 -128 127", ScalarType::FLOAT),
            ("quantize 6 0.5 0 -128 127", ScalarType::FLOAT),
            ("quantize 999 0.5 0 -128 127", ScalarType::FLOAT),
            ("dequantize 0 0.5 0", ScalarType::CHAR),
            ("dequantize 1 0.5 4000000000", ScalarType::CHAR),
            ("aten::relu.out;aten::relu.out", ScalarType::FLOAT),
        ] {
            let error = Steps::parse(text, from).err().unwrap_or_else(|| panic!("`{text}` was read"));
            assert!(error.message.ends_with("is no step here"), "`{text}`: {error}");
        }
        assert!(Steps::of_floats("quantize 1 0.5 0 -128 127").is_err());
    }
}
