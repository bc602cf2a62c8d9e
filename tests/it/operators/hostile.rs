//! Arguments no exporter writes: every operator answers with a result or an error.
//!
//! One or two arguments of an example are put in place of something else: another kind, type, shape, dim order, or value.

use std::panic::{AssertUnwindSafe, catch_unwind};

use edgepack_executor::call::{Arg, OwnedTensor};
use edgepack_executor::kernel::Operator;
use edgepack_executor::tensor::Scalar;
use edgepack_format::operators::Schema;
use edgepack_format::scalar::ScalarType;
use edgepack_kernels::registry;
use edgepack_tests::catalogue::{channels_last, types};
use edgepack_tests::examples::{DTYPES, Example, all, ordered, schema_text};
use proptest::prelude::Rng;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Choices from the random numbers of the test runner.
struct Choices<'r>(&'r mut TestRng);

impl Choices<'_> {
    fn below(&mut self, end: usize) -> usize {
        self.0.next_u32() as usize % end
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

const INTS: [i64; 14] = [0, 1, -1, 2, -2, 3, 5, 7, 100, -100, i32::MAX as i64, i32::MIN as i64, i64::MAX, i64::MIN];
const DOUBLES: [f64; 9] = [0.0, -0.0, 0.5, -1.5, 1e300, -1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
const SIZES: [usize; 6] = [0, 1, 2, 3, 4, 7];

fn any_tensor(choose: &mut Choices<'_>, base: Option<&OwnedTensor>) -> OwnedTensor {
    let dtype = choose.one(DTYPES);
    let (dtype, mut sizes) = match base {
        Some(base) if choose.below(2) == 0 => (base.layout().scalar_type(), base.layout().sizes().to_vec()),
        Some(base) => (dtype, base.layout().sizes().to_vec()),
        None => (dtype, Vec::new()),
    };
    match choose.below(6) {
        0 => sizes = (0..choose.below(7)).map(|_| choose.one(&SIZES)).collect(),
        1 => sizes.insert(0, choose.one(&SIZES)),
        2 if !sizes.is_empty() => {
            sizes.pop();
        }
        3 | 4 if !sizes.is_empty() => {
            let dim = choose.below(sizes.len());
            sizes[dim] = choose.one(&SIZES);
        }
        _ => {}
    }
    let width = dtype.size().unwrap_or(1);
    let count = sizes.iter().product::<usize>() * width;
    let kind = choose.below(4);
    let bytes = (0..count).map(|at| match kind {
        // What is true is 1.
        _ if dtype == ScalarType::BOOL => choose.below(2) as u8,
        0 => choose.below(256) as u8,
        1 if at % width == 0 => choose.below(9) as u8,
        2 => 255,
        _ => 0,
    });
    let bytes = bytes.collect();
    let tensor = OwnedTensor::from_bytes(dtype, &sizes, bytes).expect("bytes of the layout");
    let tensor = if choose.below(3) == 0 { ordered(&tensor, &channels_last(sizes.len())) } else { tensor };
    match choose.below(6) {
        0 => tensor.dynamic(),
        1 => tensor.constant(),
        _ => tensor,
    }
}

fn anything(choose: &mut Choices<'_>, base: &Arg) -> Arg {
    let tensor = match base {
        Arg::Tensor(tensor) => Some(tensor),
        _ => None,
    };
    // Mostly the kind that belongs there, so that more than the check of kinds is reached.
    match (choose.below(12), base) {
        (0, _) => Arg::None,
        (1, _) => Arg::int(choose.one(&INTS)),
        (2, _) => Arg::double(choose.one(&DOUBLES)),
        (3, _) => Arg::bool(choose.below(2) == 0),
        (4, _) => Arg::Text(choose.one(&["", "none", "tanh", "trunc", "floor", "\u{1f980}"]).to_owned()),
        (5, _) => Arg::Tensor(any_tensor(choose, tensor)),
        (_, Arg::Tensor(tensor)) => Arg::Tensor(any_tensor(choose, Some(tensor))),
        (6, Arg::Tensors(_)) => Arg::Tensors(Vec::new()),
        (_, Arg::Tensors(items)) => {
            let mut items = items.clone();
            items.extend((0..choose.below(3)).map(|_| None));
            for item in &mut items {
                match choose.below(4) {
                    0 => *item = Some(any_tensor(choose, item.as_ref())),
                    1 => *item = None,
                    _ => {}
                }
            }
            items.truncate(choose.below(6));
            Arg::Tensors(items)
        }
        (_, Arg::Ints(items)) => {
            let mut items = items.clone();
            for item in &mut items {
                if choose.below(2) == 0 {
                    *item = choose.one(&INTS);
                }
            }
            items.extend((0..choose.below(2)).map(|_| choose.one(&INTS)));
            items.truncate(choose.below(20));
            Arg::Ints(items)
        }
        (_, Arg::Doubles(items)) => Arg::Doubles((0..=items.len()).map(|_| choose.one(&DOUBLES)).collect()),
        (_, Arg::Bools(items)) => Arg::Bools((0..choose.below(items.len() + 2)).map(|at| at % 2 == 0).collect()),
        (_, Arg::Scalar(Scalar::Bool(value))) => Arg::bool(!value),
        (_, Arg::Scalar(Scalar::Double(_))) => Arg::double(choose.one(&DOUBLES)),
        _ => Arg::int(choose.one(&INTS)),
    }
}

/// Calls an operator with some arguments put in place of others, and says how it panicked if it did.
fn provoke(choose: &mut Choices<'_>, operator: &dyn Operator, example: &Example, dtype: ScalarType) -> Option<String> {
    let text = schema_text(operator);
    let schema = Schema::parse(&text).expect("a schema");
    let mut args = example.args(&schema, dtype)?;
    for _ in 0..=choose.below(3) {
        let at = choose.below(args.len());
        args[at] = anything(choose, &args[at]);
    }
    let panic = catch_unwind(AssertUnwindSafe(|| example.call(operator, &schema, &args).is_ok())).err()?;
    let message = panic.downcast_ref::<String>().cloned();
    let message = message.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    Some(format!("{}: {}: {args:?}", example.name, message.unwrap_or_default()))
}

#[test]
fn wrong_arguments_are_errors() {
    let registry = registry();
    let seed: Vec<u8> = b"arguments no exporter writes....".to_vec();
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut choose = Choices(&mut rng);
    let rounds = TestRunner::new(Config::default()).config().cases as usize;
    let mut panics = Vec::new();
    for example in all() {
        let operator = registry.find(&example.name).unwrap();
        let types = types(operator, &[&example]);
        for _ in 0..rounds {
            let other = choose.one(DTYPES);
            let dtype = if types.is_empty() || choose.below(4) == 0 { other } else { choose.one(&types) };
            if let Some(panic) = provoke(&mut choose, operator, &example, dtype) {
                panics.push(panic);
                break;
            }
        }
    }
    assert!(panics.is_empty(), "{} operators panic:\n{}", panics.len(), panics.join("\n"));
}
