//! A convolution of single pixels and a depthwise one of its results as one instruction, which rewrites put into plans.

use std::any::Any;
use std::sync::Arc;

use edgepack_compute::conv::lines::{self, Step};
use edgepack_compute::epilogue::Epilogue;
use edgepack_executor::kernel::{KernelContext, KernelError, Operator, Prepare, Run};
use edgepack_format::scalar::ScalarType;

use super::{Arguments, Form, Single, Weight, bias, expect_types, geometry};

/// Two convolutions of `f32`, one of the results of the other, each with operations behind it.
pub(crate) struct Pair {
    form: &'static PairForm,
    epilogues: [Option<Arc<Epilogue>>; 2],
}

/// The positions of the arguments of two convolutions. What is between them is memory for some of its lines.
struct PairForm {
    schema: &'static str,
    first: Form,
    second: Form,
}

/// The arguments of two convolutions, and what each has behind them.
macro_rules! schema {
    ($first:literal, $second:literal) => {
        concat!(
            "(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, ",
            "bool transposed, SymInt[] output_padding, SymInt groups",
            $first,
            ", Tensor(b!) between, Tensor second_weight, Tensor? second_bias, SymInt[] second_stride, ",
            "SymInt[] second_padding, SymInt[] second_dilation, bool second_transposed, ",
            "SymInt[] second_output_padding, SymInt second_groups",
            $second,
            ", *, Tensor(a!) out) -> Tensor(a!)"
        )
    };
}

static PLAIN: PairForm = PairForm::new(schema!("", ""), false);
static SCALED: PairForm = PairForm::new(schema!(", Tensor factors", ", Tensor second_factors"), true);

/// Arguments of a convolution between its input and its factors or its output.
const OWN: usize = 8;

impl PairForm {
    const fn new(schema: &'static str, scaled: bool) -> PairForm {
        let first = Form::behind(0, scaled);
        let second = Form::behind(first.out, scaled);
        PairForm { schema, first, second }
    }
}

impl Form {
    /// A convolution of the tensor at a position, all other arguments behind it.
    const fn behind(input: usize, scaled: bool) -> Form {
        let arguments = Arguments {
            input,
            weight: input + 1,
            bias: Some(input + 2),
            stride: input + 3,
            padding: input + 4,
            dilation: input + 5,
            transposed: input + 6,
            output_padding: input + 7,
            groups: input + OWN,
        };
        let next = input + OWN + 1;
        match scaled {
            true => Form { arguments, factors: Some(next), out: next + 1 },
            false => Form { arguments, factors: None, out: next },
        }
    }
}

impl Pair {
    /// Two convolutions with constant weights, whose output channels both have factors, or have none.
    pub fn new(scaled: bool, epilogues: [Option<Arc<Epilogue>>; 2]) -> Pair {
        Pair { form: if scaled { &SCALED } else { &PLAIN }, epilogues }
    }
}

impl Operator for Pair {
    fn name(&self) -> &str {
        "edgepack::convolution.pair_out"
    }

    fn schema(&self) -> &str {
        self.form.schema
    }

    fn prepare(&self, args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        let PairForm { first, second, .. } = self.form;
        expect_types(args, first, ScalarType::FLOAT)?;
        expect_types(args, second, ScalarType::FLOAT)?;
        for epilogue in self.epilogues.iter().flatten() {
            epilogue.expect_floats()?;
        }
        let [before, behind] = self.epilogues.clone();
        let singles = [Single::new(args, first, before)?, Single::new(args, second, behind)?];
        Ok(Box::new(Both { singles, epilogues: self.epilogues.clone() }))
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// Two convolutions: some lines at a time where that pays, and else one after the other.
struct Both {
    singles: [Single; 2],
    epilogues: [Option<Arc<Epilogue>>; 2],
}

impl Run for Both {
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        let [first, second] = &mut self.singles;
        let geometries = [geometry(cx, first.form)?, geometry(cx, second.form)?];
        let (Weight::Packed(weight), Weight::Packed(taps)) = (&first.weight, &second.weight) else {
            first.run(cx)?;
            return second.run(cx);
        };
        if !lines::pays(&geometries[0], &geometries[1]) {
            first.run(cx)?;
            return second.run(cx);
        }
        let views = cx.views();
        let [before, behind] = &self.epilogues;
        let [geometry, next] = geometries;
        let steps = [
            &Step { geometry, weight, bias: bias(&views, first.form)?, epilogue: before.as_deref() },
            &Step { geometry: next, weight: taps, bias: bias(&views, second.form)?, epilogue: behind.as_deref() },
        ];
        let input = views.tensor(first.form.arguments.input)?.as_slice::<f32>()?;
        let between = views.out(first.form.out)?.into_slice::<f32>()?;
        let out = views.out(second.form.out)?.into_slice::<f32>()?;
        Ok(lines::convolve(steps, input, between, out)?)
    }

    fn retained_bytes(&self) -> usize {
        self.singles.iter().map(Run::retained_bytes).sum()
    }
}
