//! Fuzzes a backend: generated programs call it, and two ways to compute must agree to the bit. What fails is made small.
//!
//!     cargo run --release --example fuzz_backend
//!
//! `smith/examples/own_backend.rs` is a longer one, with payloads of many operations.

use std::ops::Range;

use edgepack::executor::delegate::{Backend, Backends, Delegate, DelegateInit};
use edgepack::executor::kernel::{KernelContext, KernelError, Prepare, Run};
use edgepack::prelude::*;
use edgepack_smith::arbitrary::{self, Unstructured};
use edgepack_smith::{Decisions, DelegateCall, Delegates, Generator, shrink};

/// Multiplies by the payload's byte; the fast form adds where that is two, which is the same.
struct Scale(bool);

impl Backend for Scale {
    fn id(&self) -> &str {
        "Scale"
    }
    fn init(&self, cx: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError> {
        let factor = cx.processed.first().ok_or_else(|| KernelError::argument("the payload is empty"))?;
        Ok(Box::new(Ready(f32::from(*factor), self.0)))
    }
}

struct Ready(f32, bool);

impl Delegate for Ready {
    fn outputs(&self, count: usize) -> Range<usize> {
        1..count
    }
    fn prepare(&self, _: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        let (factor, fast) = (self.0, self.1 && self.0 == 2.0);
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let views = cx.views();
            let (x, mut y) = (views.tensor(0)?, views.out(1)?);
            let pairs = y.as_mut_slice::<f32>()?.iter_mut().zip(x.as_slice::<f32>()?);
            pairs.for_each(|(y, x)| *y = if fast { x + x } else { x * factor });
            Ok(())
        }))
    }
}

/// Calls that an exporter could make.
struct Calls;

impl Delegates for Calls {
    fn id(&self) -> &str {
        "Scale"
    }
    fn call(&self, u: &mut Unstructured<'_>) -> arbitrary::Result<DelegateCall> {
        let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[u.pick(&[1, 2, 4])]);
        let layout = layout.map_err(|_| arbitrary::Error::IncorrectFormat)?;
        let payload = vec![u.below(4) as u8];
        Ok(DelegateCall { payload, inputs: vec![layout.clone()], outputs: vec![layout], ..DelegateCall::default() })
    }
}

fn run(file: &[u8], fast: bool) -> Result<Vec<Vec<u8>>, Box<dyn std::error::Error>> {
    let program = Program::from_bytes(file)?;
    let options = Options { backends: Backends::new().with(Scale(fast)), ..Options::default() };
    let mut forward = program.method("forward")?.load(&kernels::registry(), &options)?;
    let numbers = [f32::MAX, -0.0, 1.5, f32::from_bits(1)].map(f32::to_le_bytes).concat();
    let meta = program.method_meta("forward")?;
    let layouts = meta.inputs.iter().filter_map(|input| Some(input.tensor()?.layout.clone()));
    let inputs = layouts.map(|layout| TensorView::new(layout.clone(), &numbers[..layout.byte_len()]));
    let outputs = forward.run(&inputs.collect::<Result<Vec<_>, _>>()?)?;
    Ok(outputs.iter().filter_map(|output| Some(output.tensor()?.bytes().to_vec())).collect())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let generator = Generator::new().backend(Calls);
    let differs = |file: &[u8]| !matches!((run(file, false), run(file, true)), (Ok(a), Ok(b)) if a == b);
    for seed in 0..200 {
        let file = generator.program_of(seed).bytes;
        if differs(&file) {
            let small = shrink::shrink(&file, differs).unwrap_or(file);
            return Err(format!("seed {seed}: a program of {} bytes shows it", small.len()).into());
        }
    }
    println!("200 programs: both forms agree");
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
