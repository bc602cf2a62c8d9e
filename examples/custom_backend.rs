//! A backend of your own: what it made at export is a delegate's payload, which it runs. `fused_mlp` is a larger one.
//!
//!     cargo run --example custom_backend

use std::ops::Range;

use edgepack::executor::delegate::{Backend, Backends, Delegate, DelegateInit};
use edgepack::executor::kernel::{KernelContext, KernelError, Prepare, Run};
use edgepack::prelude::*;

/// Evaluates a polynomial; its coefficients are the payload, lowest power first.
struct Polynomial;

impl Backend for Polynomial {
    fn id(&self) -> &str {
        "Polynomial"
    }
    // Once for every delegate, when a method is loaded. A payload is input of strangers: refuse what makes no sense.
    fn init(&self, cx: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError> {
        let (floats, rest) = cx.processed.as_chunks::<4>();
        match rest.is_empty() {
            true => Ok(Box::new(Ready(floats.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()))),
            false => Err(KernelError::argument(format!("{} bytes are not a list of floats", cx.processed.len()))),
        }
    }
}

struct Ready(Vec<f32>);

impl Delegate for Ready {
    fn outputs(&self, count: usize) -> Range<usize> {
        1..count // which of the arguments are written
    }
    // Once for every call; what it returns runs, and allocates nothing.
    fn prepare(&self, call: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        call.expect_len(2)?;
        let coefficients = self.0.clone();
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let views = cx.views();
            let (x, mut y) = (views.tensor(0)?, views.out(1)?);
            for (y, x) in y.as_mut_slice::<f32>()?.iter_mut().zip(x.as_slice::<f32>()?) {
                *y = coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient);
            }
            Ok(())
        }))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let payload: Vec<u8> = [1.0f32, 0.0, 2.0].iter().flat_map(|coefficient| coefficient.to_le_bytes()).collect();
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [3]))?;
    let delegate = forward.delegate("Polynomial", payload, &[])?;
    let y = forward.call_delegate(delegate, args![x], TensorSpec::like(x))?;
    forward.output(y)?;
    let program = Program::from_bytes(program.finish()?.to_bytes()?)?;

    let options = Options { backends: Backends::new().with(Polynomial), ..Options::default() };
    let mut forward = program.method("forward")?.load(&kernels::registry(), &options)?;
    let outputs = forward.run(&[TensorView::from_slice(&[3], &[0.0f32, 1.0, 2.0])?.untyped()])?;
    let y = outputs.get(0).and_then(|output| output.tensor()).ok_or("no tensor")?;
    println!("1 + 2x²: {:?}", y.as_slice::<f32>()?);
    assert_eq!(y.as_slice::<f32>()?, [1.0, 3.0, 9.0]);
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
