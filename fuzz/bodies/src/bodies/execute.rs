//! Execution: programs are loaded and run, in two forms and twice each, and must answer the same.

use std::sync::{Arc, OnceLock};

use edgepack_executor::Registry;
use edgepack_executor::{Input, LoadError, Method, Options, Output};
use edgepack_format::limits::Limits;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorBuf, TensorLayout};
use edgepack_loader::{MemorySource, MethodMeta, OpenOptions, Program, ValueMeta};
use edgepack_smith::arbitrary::Unstructured;
use edgepack_smith::{Generator, ProgramFile, Rng};

use crate::apart::{SUMS, first_difference, without_nans};

/// Operators whose result is meant to differ from run to run.
const RANDOM: [&str; 3] = ["rand", "dropout", "bernoulli"];

/// Point that a program reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reached {
    /// The bytes were not accepted as a program.
    Refused,
    /// The program was accepted, and no method could be loaded.
    Accepted,
    /// A method was loaded, and failed when it ran.
    Loaded,
    /// A method ran to its end.
    Ran,
}

/// The operators under test.
pub(super) fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(edgepack_kernels::registry)
}

/// Names and schemas of the operators under test.
pub(super) fn schemas() -> &'static [(String, String)] {
    static SCHEMAS: OnceLock<Vec<(String, String)>> = OnceLock::new();
    SCHEMAS.get_or_init(|| {
        let registry = registry();
        let operators = registry.names().into_iter().filter_map(|name| registry.find(name));
        operators.map(|op| (op.name().to_owned(), format!("{}{}", op.name(), op.schema()))).collect()
    })
}

fn generator() -> &'static Generator {
    static GENERATOR: OnceLock<Generator> = OnceLock::new();
    GENERATOR.get_or_init(|| {
        let schemas = schemas().iter().map(|(_, schema)| schema.as_str());
        Generator::new().operators(schemas).expect("schemas of registered operators parse")
    })
}

/// See [`BODIES`](super::BODIES).
pub fn run(data: &[u8]) {
    execute(data);
}

/// See [`BODIES`](super::BODIES).
pub fn kernels(data: &[u8]) {
    reach(data);
}

/// Runs the program of an input; what it called, and how far it came.
pub fn reach(input: &[u8]) -> (Vec<String>, Reached) {
    let program = generated(input);
    if let Err(error) = open(&program.bytes) {
        panic!("a program from the generator is refused: {error}");
    }
    (program.operators, execute(&program.bytes))
}

/// The program of an input.
pub fn generated(input: &[u8]) -> ProgramFile {
    generator().program(&mut Unstructured::new(input))
}

/// Inputs that call every operator a few times.
pub fn kernel_seeds() -> Vec<Vec<u8>> {
    let count = schemas().len();
    let seed = |index: usize| {
        let (mut rng, operator) = (Rng::new(index as u64), (index % count) as u16);
        let [high, low] = operator.to_be_bytes();
        let rest = (0..24 + rng.below(160)).map(|_| rng.word() as u8).collect::<Vec<u8>>();
        // Calls are counted by the first byte, and operators are named by two.
        let operator = if count > 256 { vec![high, low] } else { vec![0, low] };
        [vec![0], operator, rest].concat()
    };
    (0..count * 4).map(seed).collect()
}

pub(super) fn open(file: &[u8]) -> Result<Program, edgepack_loader::Error> {
    let mut limits = Limits::hostile();
    // Small, so that an execution is a matter of microseconds.
    limits.arena_bytes = 1 << 20;
    limits.method_bytes = 1 << 20;
    limits.instructions = 200;
    limits.findings = 4;
    OpenOptions { limits }.open_source(Arc::new(MemorySource::new(file)))
}

/// Opens, loads and runs everything in a file.
pub fn execute(file: &[u8]) -> Reached {
    let Ok(program) = open(file) else { return Reached::Refused };
    let mut reached = Reached::Accepted;
    let segments = program.view().ok().and_then(|view| view.program().segments.as_ref().map(|list| list.len()));
    for index in 0..segments.unwrap_or(0).min(64) {
        program.segment(index as u32).expect("a verified segment");
    }
    for name in program.method_names().expect("a verified program").iter().take(8) {
        let meta = match program.method_meta(name) {
            Ok(meta) => meta,
            // The bounds of a dynamic input may be beyond any memory; no layout describes them.
            Err(error @ edgepack_loader::Error::Layout { .. }) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
            Err(error) => panic!("a verified method: {error}"),
        };
        reached = reached.max(method(&program, name, &meta));
    }
    reached
}

fn method(program: &Program, name: &str, meta: &MethodMeta) -> Reached {
    let load = |no_optimize| {
        let options = Options { no_optimize, ..Options::default() };
        match Method::load(program, name, registry(), &options) {
            Ok(method) => Some(method),
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert!(!matches!(error, LoadError::Program(edgepack_loader::Error::Read(_))), "{error}");
                None
            }
        }
    };
    let (plain, optimized) = (load(true), load(false));
    let mut reached = Reached::Accepted;
    let mut answers = Vec::new();
    for method in [plain, optimized].into_iter().flatten() {
        let mut method = method;
        reached = reached.max(Reached::Loaded);
        let mut first = None;
        for pattern in [0, 1] {
            let values = inputs(meta, pattern);
            first = run_once(&mut method, &values);
            if first.is_some() {
                reached = Reached::Ran;
            }
        }
        let Some(first) = first else { continue };
        // State may have moved on; after a reset nothing of it is left.
        let mut repeat = || {
            method.reset().expect("nobody else uses its memory");
            run_once(&mut method, &inputs(meta, 0))
        };
        let (again, once_more) = (repeat(), repeat());
        let random = method_is_random(program, name);
        assert!(random || again == once_more, "two runs from the same state differ");
        if !random {
            answers.push((first, again));
        }
    }
    if let [plain, optimized] = answers.as_slice() {
        // They may only come apart where sums are in another order, and then by rounding.
        let same = plain == optimized || {
            let first = apart(&load, meta);
            let sums = first.as_deref().is_some_and(|name| SUMS.contains(&name));
            sums && (!tame(program) || alike(&plain.0, &optimized.0) && plain.1.is_some() == optimized.1.is_some())
        };
        assert!(same, "optimised or not, the outputs differ:\n{plain:?}\n{optimized:?}");
    }
    reached
}

/// The first instruction that answers otherwise in a method loaded with rewrites than in one loaded without.
fn apart(load: &dyn Fn(bool) -> Option<Method>, meta: &MethodMeta) -> Option<String> {
    let (mut plain, mut optimized) = (load(true)?, load(false)?);
    [0, 1].into_iter().find_map(|pattern| {
        let values = inputs(meta, pattern);
        let inputs: Vec<Input<'_>> = values.iter().map(OwnedInput::borrow).collect();
        first_difference(&mut plain, &mut optimized, &inputs)
    })
}

fn method_is_random(program: &Program, name: &str) -> bool {
    calls_any(program, name, &RANDOM)
}

/// Returns whether a method has an operator whose name contains one of these words.
fn calls_any(program: &Program, name: &str, words: &[&str]) -> bool {
    let view = program.view().expect("a verified program");
    let operators = view.plan(name).and_then(|plan| plan.operators).unwrap_or_default();
    operators.iter().flatten().any(|row| {
        let name = row.name.unwrap_or_default();
        words.iter().any(|word| name.contains(word))
    })
}

/// Returns whether two answers have the same shapes, and floats that differ by rounding only. Numbers that overflowed,
/// and results that follow from comparing floats, are not compared.
pub(super) fn alike(plain: &Answer, optimized: &Answer) -> bool {
    let numbers = |bytes: &[u8]| -> Vec<f32> {
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    };
    plain.len() == optimized.len()
        && plain.iter().zip(optimized).all(|(plain, optimized)| {
            if (plain.0, &plain.1) != (optimized.0, &optimized.1) {
                return false;
            }
            if plain.0 != ScalarType::FLOAT.0 {
                return true;
            }
            let (plain, optimized) = (numbers(&plain.2), numbers(&optimized.2));
            let scale = plain.iter().fold(0f32, |scale, x| scale.max(x.abs()));
            !plain.iter().all(|x| x.abs() < 1e18)
                || plain.iter().zip(&optimized).all(|(a, b)| (a - b).abs() <= 1e-2 * scale + 1e-3)
        })
}

/// Returns whether all weights are of a size that neither overflows in between nor makes rounding count.
fn tame(program: &Program) -> bool {
    let segments = program.view().ok().and_then(|view| view.program().segments.as_ref().map(|list| list.len()));
    (0..segments.unwrap_or(0)).all(|index| {
        let segment = program.segment(index as u32).expect("a verified segment");
        let numbers = segment.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        numbers.filter(|number| !number.is_nan()).all(|number| number.abs() < 1e4)
    })
}

/// Outputs of a run: element type, sizes and bytes of each output, every NaN replaced by one.
pub(super) type Answer = Vec<(i8, Vec<usize>, Vec<u8>)>;

pub(super) fn run_once(method: &mut Method, inputs: &[OwnedInput]) -> Option<Answer> {
    let inputs: Vec<Input<'_>> = inputs.iter().map(OwnedInput::borrow).collect();
    let outputs = match method.run(&inputs) {
        Ok(outputs) => outputs,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    Some(outputs.iter().map(answer).collect())
}

fn answer(output: Output<'_>) -> (i8, Vec<usize>, Vec<u8>) {
    match output {
        Output::Tensor(tensor) => {
            let dtype = tensor.dtype;
            assert_eq!(tensor.bytes().len(), tensor.byte_len());
            (dtype.0, tensor.sizes.to_vec(), without_nans(dtype, tensor.bytes()))
        }
        other => (-1, Vec::new(), format!("{other:?}").into_bytes()),
    }
}

pub(super) enum OwnedInput {
    Value(ValueMeta),
    Tensor(TensorBuf),
}

impl OwnedInput {
    fn borrow(&self) -> Input<'_> {
        match self {
            OwnedInput::Tensor(tensor) => Input::Tensor(tensor.view()),
            OwnedInput::Value(ValueMeta::Int(value)) => Input::Int(*value),
            OwnedInput::Value(ValueMeta::Bool(value)) => Input::Bool(*value),
            OwnedInput::Value(ValueMeta::Double(value)) => Input::Double(*value),
            OwnedInput::Value(ValueMeta::Text(value)) => Input::Text(value),
            OwnedInput::Value(_) => Input::Null,
        }
    }
}

/// Inputs as the method describes them: zeros, or numbers in a pattern and dynamic sizes below their bounds.
pub(super) fn inputs(meta: &MethodMeta, pattern: u8) -> Vec<OwnedInput> {
    let make = |value: &ValueMeta| {
        let Some(tensor) = value.tensor() else { return OwnedInput::Value(value.clone()) };
        let (layout, dtype) = (&tensor.layout, tensor.layout.scalar_type());
        let mut sizes = layout.sizes().to_vec();
        if pattern == 1 && tensor.dynamic {
            sizes.iter_mut().for_each(|size| *size -= *size / 2);
        }
        let size = dtype.size().unwrap_or(1);
        let mut data = vec![0; sizes.iter().product::<usize>() * size];
        if pattern == 1 {
            for (index, element) in data.chunks_exact_mut(size).enumerate() {
                let number = (index % 5) as f32 - 1.0;
                match dtype {
                    ScalarType::FLOAT => element.copy_from_slice(&number.to_le_bytes()),
                    ScalarType::DOUBLE => element.copy_from_slice(&f64::from(number).to_le_bytes()),
                    ScalarType::HALF => element.copy_from_slice(&[0, 0x3c]),
                    ScalarType::BFLOAT16 => element.copy_from_slice(&[0x80, 0x3f]),
                    _ => element[0] = (index % 3) as u8,
                }
            }
        }
        let layout = TensorLayout::new(dtype, &sizes, layout.dim_order()).expect("sizes below those of a tensor");
        OwnedInput::Tensor(TensorBuf::from_bytes(layout, data).expect("bytes of the layout"))
    };
    meta.inputs.iter().map(make).collect()
}
