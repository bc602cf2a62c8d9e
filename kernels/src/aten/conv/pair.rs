//! A convolution of single pixels and a depthwise one of its results as one instruction, which rewrites put into plans.
//!
//! Invariant: it is given what the two convolutions are given, and the result of the first exists in scratch memory alone.

use std::sync::Arc;

use edgepack_compute::conv::lines::{self, Step};
use edgepack_compute::conv::{Geometry, PackedWeight};
use edgepack_compute::epilogue::Epilogue;
use edgepack_compute::spatial::Images;
use edgepack_executor::kernel::{KernelContext, KernelError, Operator, Prepare, Run, Views};
use edgepack_executor::packing::Shared;
use edgepack_executor::tensor::TensorShape;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use super::{Arguments, factors, floats, measure, packed_for};
use crate::check::expect_same;
use crate::instruction::Instruction;
use crate::spatial::images;

/// Two convolutions of `f32`, one of the results of the other, each with operations behind it.
pub(crate) struct Pair {
    form: &'static Form,
    epilogues: [Option<Arc<Epilogue>>; 2],
}

/// The positions of the arguments of two convolutions.
struct Form {
    schema: &'static str,
    steps: [StepForm; 2],
    out: usize,
}

/// The positions of the arguments of one of them.
struct StepForm {
    arguments: Arguments,
    factors: Option<usize>,
}

/// The arguments of two convolutions, and what each has behind them.
macro_rules! schema {
    ($first:literal, $second:literal) => {
        concat!(
            "(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, ",
            "bool transposed, SymInt[] output_padding, SymInt groups",
            $first,
            ", Tensor second_weight, Tensor? second_bias, SymInt[] second_stride, SymInt[] second_padding, ",
            "SymInt[] second_dilation, bool second_transposed, SymInt[] second_output_padding, SymInt second_groups",
            $second,
            ", *, Tensor(a!) out) -> Tensor(a!)"
        )
    };
}

static PLAIN: Form = Form::new(schema!("", ""), false);
static SCALED: Form = Form::new(schema!(", Tensor factors", ", Tensor second_factors"), true);

/// Arguments of a convolution besides its input and its factors.
const OWN: usize = 8;

/// The position of what is between the convolutions, which is no argument.
const BETWEEN: usize = usize::MAX;

impl Form {
    const fn new(schema: &'static str, scaled: bool) -> Form {
        let first = StepForm::new(0, 1, scaled);
        let next = 1 + OWN + scaled as usize;
        let second = StepForm::new(BETWEEN, next, scaled);
        Form { schema, steps: [first, second], out: next + OWN + scaled as usize }
    }
}

impl StepForm {
    /// A convolution whose input is at a position, and all other arguments from another on.
    const fn new(input: usize, weight: usize, scaled: bool) -> StepForm {
        let arguments = Arguments {
            input,
            weight,
            bias: Some(weight + 1),
            stride: weight + 2,
            padding: weight + 3,
            dilation: weight + 4,
            transposed: weight + 5,
            output_padding: weight + 6,
            groups: weight + 7,
        };
        StepForm { arguments, factors: if scaled { Some(weight + OWN) } else { None } }
    }
}

/// An instruction whose argument at [`BETWEEN`] is a tensor of this shape.
struct Behind<'i, I> {
    instruction: &'i I,
    between: TensorShape<'i>,
}

impl<I: Instruction> Instruction for Behind<'_, I> {
    fn meta(&self, arg: usize) -> Result<TensorShape<'_>, KernelError> {
        if arg == BETWEEN { Ok(self.between) } else { self.instruction.meta(arg) }
    }

    fn meta_opt(&self, arg: usize) -> Result<Option<TensorShape<'_>>, KernelError> {
        self.instruction.meta_opt(arg)
    }

    fn bool(&self, arg: usize) -> Result<bool, KernelError> {
        self.instruction.bool(arg)
    }

    fn int(&self, arg: usize) -> Result<i64, KernelError> {
        self.instruction.int(arg)
    }

    fn ints(&self, arg: usize) -> Result<(usize, [i64; 3]), KernelError> {
        self.instruction.ints(arg)
    }
}

/// Channels of a pixel next to each other.
const LAST: [u8; 4] = [0, 2, 3, 1];

impl Pair {
    /// Two convolutions, whose output channels both have factors, or have none.
    pub fn new(scaled: bool, epilogues: [Option<Arc<Epilogue>>; 2]) -> Pair {
        Pair { form: if scaled { &SCALED } else { &PLAIN }, epilogues }
    }

    /// Returns whether these arguments are those of two convolutions that are faster together.
    pub fn pays(&self, args: &Prepare<'_>) -> bool {
        self.geometries(args).is_ok()
    }

    /// The shapes of both, if it pays to compute them together.
    fn geometries(&self, args: &Prepare<'_>) -> Result<([Geometry; 2], Dims), KernelError> {
        let Form { steps: [first, second], out, .. } = self.form;
        let (first, sizes) = measure(args, &first.arguments)?;
        let [n, c, h, w] = sizes[..] else { return Err(not_together()) };
        let strides = [c.saturating_mul(h).saturating_mul(w), 1, w.saturating_mul(c), c];
        let between =
            TensorShape { dtype: ScalarType::FLOAT, sizes: &[n, c, h, w], strides: &strides, dim_order: &LAST };
        let first = Geometry { out: images("the first result", &between, 2)?, ..first };
        let (second, sizes) = measure(&Behind { instruction: args, between }, &second.arguments)?;
        let (input, result) = (args.tensor(0)?, args.tensor(*out)?);
        let second = Geometry { out: images("out", &result.meta, 2)?, ..second };
        let constant = self
            .form
            .steps
            .iter()
            .all(|step| args.tensor(step.arguments.weight).is_ok_and(|weight| weight.constant.is_some()));
        let known = constant && !input.dynamic && !result.dynamic && result.meta.sizes == &sizes[..];
        if !known || !lines::pays(&first, &second) {
            return Err(not_together());
        }
        Ok(([first, second], sizes))
    }
}

#[cold]
fn not_together() -> KernelError {
    KernelError::unsupported("two convolutions that are not faster together")
}

impl Operator for Pair {
    fn name(&self) -> &str {
        "edgepack::convolution.pair_out"
    }

    fn schema(&self) -> &str {
        self.form.schema
    }

    fn prepare(&self, args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        let float = ("the operator", ScalarType::FLOAT);
        let tensor = |at: usize| Ok::<_, KernelError>(args.tensor(at)?.meta.dtype);
        expect_same(("input", tensor(0)?), float)?;
        expect_same(("out", tensor(self.form.out)?), float)?;
        for step in &self.form.steps {
            expect_same(("a weight", tensor(step.arguments.weight)?), float)?;
            if let Some(bias) = step.arguments.bias.map(|at| args.tensor_opt(at)).transpose()?.flatten() {
                expect_same(("a bias", bias.meta.dtype), float)?;
            }
        }
        for epilogue in self.epilogues.iter().flatten() {
            epilogue.expect_floats()?;
        }
        let (geometries, sizes) = self.geometries(args)?;
        let weight = |at: usize| {
            let StepForm { arguments, factors: position } = &self.form.steps[at];
            let factors = position.map(|at| factors(args, arguments, at)).transpose()?;
            packed_for(args, arguments.weight, &geometries[at], factors)?.ok_or_else(not_together)
        };
        let weights = [weight(0)?, weight(1)?];
        args.scratch(lines::scratch(&geometries[1]).saturating_mul(size_of::<f32>()));
        Ok(Box::new(Both { form: self.form, geometries, sizes, weights, epilogues: self.epilogues.clone() }))
    }
}

/// Two convolutions whose shapes never change.
struct Both {
    form: &'static Form,
    geometries: [Geometry; 2],
    /// Sizes of the result.
    sizes: Dims,
    weights: [Shared<PackedWeight>; 2],
    epilogues: [Option<Arc<Epilogue>>; 2],
}

impl Run for Both {
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        let input: Images = images("input", &cx.meta(0)?, 2)?;
        if input != self.geometries[0].input {
            return Err(KernelError::argument("`input` has other sizes than when it was loaded"));
        }
        cx.resize(self.form.out, &self.sizes)?;
        let views = cx.views();
        let steps = [self.step(&views, 0)?, self.step(&views, 1)?];
        let input = views.tensor(0)?.as_slice::<f32>()?;
        let out = views.out(self.form.out)?.into_slice::<f32>()?;
        Ok(lines::convolve([&steps[0], &steps[1]], input, floats(views.scratch()?)?, out)?)
    }
}

impl Both {
    fn step<'s>(&'s self, views: &Views<'s>, at: usize) -> Result<Step<'s>, KernelError> {
        let bias = self.form.steps[at].arguments.bias.map(|bias| views.tensor_opt(bias)).transpose()?.flatten();
        Ok(Step {
            geometry: self.geometries[at],
            weight: &self.weights[at],
            bias: bias.map(|bias| bias.as_slice::<f32>()).transpose()?,
            epilogue: self.epilogues[at].as_deref(),
        })
    }
}
