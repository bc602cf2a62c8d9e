//! Fuzzes a backend of your own: programs with calls of its delegates are generated and run in two ways, and a failure is
//! made small.
//!
//!     cargo run --release -p edgepack-smith --example own_backend
//!
//! The backend runs a chain of operations over floats. Its fast form joins neighbours before it runs them; the
//! invariant is that the results are those of one operation after the other. The first set of rules preserves it. The
//! second does not, for numbers at the ends of the range of a float, which is easily overlooked and quickly found.

use std::error::Error;
use std::ops::Range;

use edgepack_executor::Registry;
use edgepack_executor::delegate::{Backend, Backends, Delegate, DelegateInit};
use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};
use edgepack_executor::{Method, Options};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorLayout, TensorView};
use edgepack_loader::Program;
use edgepack_smith::arbitrary::{self, Unstructured};
use edgepack_smith::{Decisions, DelegateCall, Delegates, Generator, Rng, shrink};

const ID: &str = "Chain";

/// The operations of a payload, one byte each.
const NEGATE: u8 = 0;
const RELU: u8 = 1;
const DOUBLE: u8 = 2;
const HALVE: u8 = 3;

/// Rules by which neighbours are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rules {
    /// Not at all.
    None,
    /// Two negations are nothing, `relu` twice is `relu`.
    Sound,
    /// Doubling and halving are nothing, too.
    Overlooked,
}

/// The run side.
struct Chain(Rules);

struct Ready(Vec<u8>);

impl Backend for Chain {
    fn id(&self) -> &str {
        ID
    }

    fn init(&self, cx: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError> {
        let mut joined: Vec<u8> = Vec::new();
        for &operation in cx.processed.iter() {
            match (self.0, joined.last(), operation) {
                (_, _, 4..) => return Err(KernelError::argument(format!("{operation} is not an operation"))),
                (Rules::Sound | Rules::Overlooked, Some(&NEGATE), NEGATE) => drop(joined.pop()),
                (Rules::Sound | Rules::Overlooked, Some(&RELU), RELU) => {}
                (Rules::Overlooked, Some(&DOUBLE), HALVE) => drop(joined.pop()),
                _ => joined.push(operation),
            }
        }
        Ok(Box::new(Ready(joined)))
    }
}

impl Delegate for Ready {
    fn outputs(&self, count: usize) -> Range<usize> {
        1..count
    }

    fn prepare(&self, _: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        let operations = self.0.clone();
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let views = cx.views();
            let (x, mut out) = (views.tensor(0)?, views.out(1)?);
            for (out, x) in out.as_mut_slice::<f32>()?.iter_mut().zip(x.as_slice::<f32>()?) {
                *out = operations.iter().fold(*x, |x, operation| match *operation {
                    NEGATE => -x,
                    RELU => x.max(0.0),
                    DOUBLE => x * 2.0,
                    _ => x * 0.5,
                });
            }
            Ok(())
        }))
    }
}

/// The export side: which payloads there are.
struct Payloads;

impl Delegates for Payloads {
    fn id(&self) -> &str {
        ID
    }

    fn call(&self, u: &mut Unstructured<'_>) -> arbitrary::Result<DelegateCall> {
        let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[u.pick(&[2, 1, 4])]);
        let layout = layout.map_err(|_| arbitrary::Error::IncorrectFormat)?;
        let payload = (0..u.below(9)).map(|_| u.below(4) as u8).collect();
        Ok(DelegateCall { payload, inputs: vec![layout.clone()], outputs: vec![layout], ..DelegateCall::default() })
    }
}

/// The bits of everything a program gives.
fn run(file: &[u8], rules: Rules) -> Result<Vec<Vec<u32>>, Box<dyn Error>> {
    let program = Program::from_bytes(file)?;
    let options = Options { backends: Backends::new().with(Chain(rules)), ..Options::default() };
    let mut method = Method::load(&program, "forward", &Registry::new(), &options)?;
    let meta = program.method_meta("forward")?;
    // Numbers that programs get wrong.
    let numbers = [f32::MAX, -0.0, 1.5, f32::from_bits(1)].map(f32::to_le_bytes).concat();
    let layouts = meta.inputs.iter().filter_map(|input| input.tensor().map(|tensor| tensor.layout.clone()));
    let inputs: Result<Vec<_>, _> =
        layouts.map(|layout| TensorView::new(layout.clone(), &numbers[..layout.byte_len()])).collect();
    let outputs = method.run(&inputs?)?;
    let tensors = outputs.iter().filter_map(|output| output.tensor());
    tensors.map(|tensor| Ok(tensor.as_slice::<f32>()?.iter().map(|x| x.to_bits()).collect())).collect()
}

/// Returns a description of the broken invariant, if it is broken.
fn fails(file: &[u8], rules: Rules) -> Option<String> {
    let (plain, joined) = (run(file, Rules::None), run(file, rules));
    match (plain, joined) {
        (Ok(plain), Ok(joined)) if plain == joined => None,
        (Ok(plain), Ok(joined)) => Some(format!("one by one {plain:x?}, joined {joined:x?}")),
        (plain, joined) => Some(format!("one by one {:?}, joined {:?}", plain.err(), joined.err())),
    }
}

/// Looks for a failure in this many programs; the smallest input that shows one.
fn campaign(programs: u64, rules: Rules) -> Option<Vec<u8>> {
    let generator = Generator::new().backend(Payloads);
    let file = |input: &[u8]| generator.program(&mut Unstructured::new(input)).bytes;
    for seed in 0..programs {
        let mut rng = Rng::new(seed);
        let mut input: Vec<u8> = (0..40).map(|_| rng.word() as u8).collect();
        if fails(&file(&input), rules).is_some() {
            // A shorter input is a smaller program. A file without its input is what `shrink::shrink` is for.
            shrink::bytes(&mut input, |input| fails(&file(input), rules).is_some());
            return Some(input);
        }
    }
    None
}

fn main() {
    for rules in [Rules::Sound, Rules::Overlooked] {
        match campaign(2000, rules) {
            None => println!("{rules:?}: the invariant holds in 2000 programs"),
            Some(input) => {
                let program = Generator::new().backend(Payloads).program(&mut Unstructured::new(&input));
                println!("{rules:?}: input {input:?}, a program of {} bytes", program.bytes.len());
                println!("    {}", fails(&program.bytes, rules).unwrap_or_default());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_format::extent::FileExtent;
    use edgepack_format::limits::Limits;
    use edgepack_format::pte::ProgramRef;

    #[test]
    fn sound_rules_keep_the_invariant() {
        assert_eq!(campaign(500, Rules::Sound), None);
    }

    #[test]
    fn what_was_overlooked_is_found_and_made_small() {
        let input = campaign(500, Rules::Overlooked).expect("a failure");
        let file = Generator::new().backend(Payloads).program(&mut Unstructured::new(&input));
        assert_eq!(file.delegates, 1);
        let program = ProgramRef::parse(&file.bytes, FileExtent::of(&file.bytes), &Limits::hostile()).unwrap();
        let rows = program.program().backend_delegate_data.clone().unwrap();
        let payloads: Vec<_> = rows.iter().map(|row| row.unwrap().data.unwrap().as_slice().to_vec()).collect();
        assert!(payloads.iter().all(|payload| payload.starts_with(&[DOUBLE, HALVE])), "{payloads:?}");
    }
}
