//! Every operator called by itself on edge arguments made from its schema: numbers at the ends of their types, tensors
//! of few, of one and of no elements — also with enormous sizes next to a zero —, lists of any length, options left
//! out.
//!
//! A call answers or refuses; what it answers is as long as its sizes say. Programs of the `kernels` body have arguments
//! that operators are likely to accept; these need not make sense at all, so that every check in front of a kernel is hit.

use edgepack_executor::call::{Arg, OwnedTensor, call, call_scalar};
use edgepack_executor::tensor::Scalar;
use edgepack_format::operators::{Argument, ArgumentKind, Schema, Trailing};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;

use edgepack_smith::arbitrary::Unstructured;
use edgepack_smith::{Decisions, Rng};

use super::execute::{registry, schemas};

/// Most elements of a tensor.
const MAX_ELEMENTS: usize = 600;

/// The largest size that a program can give a dimension.
const HUGE: usize = i32::MAX as usize;

/// Sizes that operators get wrong.
const SHAPES: [&[usize]; 44] = [
    &[],
    &[0],
    &[1],
    &[2],
    &[3],
    &[5],
    &[16],
    &[0, 3],
    &[3, 0],
    &[2, 3],
    &[3, 3],
    &[4, 4],
    &[1, 1],
    &[8, 16],
    &[1, 2, 3],
    &[2, 3, 4],
    &[2, 0, 4],
    &[0, 0, 0],
    &[1, 1, 4, 4],
    &[1, 2, 4, 4],
    &[2, 4, 1, 1],
    &[4, 4, 3, 3],
    &[2, 2, 3, 3],
    &[0, 2, 4, 4],
    &[1, 0, 4, 4],
    &[1, 2, 0, 4],
    &[1, 2, 4, 0],
    &[1, 2, 3, 3, 3],
    &[1, 1, 2, 2, 2],
    &[1, 1, 1, 1, 1, 1],
    &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    &[0, HUGE],
    &[HUGE, 0],
    &[0, 1 << 15, HUGE],
    &[HUGE, 1 << 28, 0, 1],
    &[1, HUGE, 0, 1 << 28],
    &[HUGE, 1, 0],
    &[0, 1, 1 << 20, 1 << 20, 1 << 19],
    &[HUGE, 0, 1 << 28],
    &[2, 0, HUGE, 4],
    &[HUGE, 1, 1, 0],
    &[1, HUGE, 1, 0],
    &[1, 1, HUGE, 0],
    &[0, HUGE, 1, 8],
];

const DTYPES: [ScalarType; 18] = [
    ScalarType::FLOAT,
    ScalarType::FLOAT,
    ScalarType::FLOAT,
    ScalarType::LONG,
    ScalarType::LONG,
    ScalarType::INT,
    ScalarType::BOOL,
    ScalarType::BYTE,
    ScalarType::CHAR,
    ScalarType::SHORT,
    ScalarType::HALF,
    ScalarType::BFLOAT16,
    ScalarType::DOUBLE,
    ScalarType::UINT16,
    ScalarType::UINT32,
    ScalarType::UINT64,
    ScalarType::COMPLEX_FLOAT,
    ScalarType::COMPLEX_DOUBLE,
];

const INTS: [i64; 32] = [
    0,
    1,
    -1,
    2,
    -2,
    3,
    -3,
    4,
    5,
    8,
    16,
    63,
    64,
    65,
    100,
    127,
    -128,
    255,
    1000,
    i32::MAX as i64,
    i32::MIN as i64,
    1 << 31,
    1 << 32,
    1 << 40,
    1 << 61,
    1 << 62,
    -(1 << 62),
    i64::MAX / 2,
    i64::MAX - 1,
    i64::MAX,
    i64::MIN,
    i64::MIN + 1,
];

const FLOATS: [f64; 16] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    1e-5,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    1e308,
    -1e308,
    1e-320,
    1e19,
    -1e19,
    4e9,
];

const TEXTS: [&str; 12] =
    ["none", "tanh", "floor", "trunc", "sum", "mean", "nearest", "bilinear", "sigmoid", "softmax", "", "?"];

/// See [`BODIES`](super::BODIES).
pub fn operators(data: &[u8]) {
    let mut u = Unstructured::new(data);
    let schemas = schemas();
    let (name, schema) = &schemas[u.below(schemas.len().max(257)) % schemas.len()];
    let operator = registry().find(name).expect("a registered operator");
    let schema = Schema::parse(schema).expect("schemas of registered operators parse");
    let mut scene = Scene::new(&mut u);
    let args: Vec<Arg> = schema.args().iter().map(|argument| scene.argument(argument)).collect();
    if schema.trailing() == Trailing::Result {
        let result = scene.scalar(&schema.returns()[0]);
        let _ = call_scalar(operator, &args, result);
        return;
    }
    for out in call(operator, &args).into_iter().flatten() {
        assert_eq!(out.layout().byte_len(), out.bytes().len(), "{name}: {:?}", out.layout());
    }
}

/// Inputs that call every operator a few times.
pub fn operator_seeds() -> Vec<Vec<u8>> {
    let count = schemas().len();
    let seed = |index: usize| {
        let mut rng = Rng::new(index as u64);
        let [high, low] = ((index % count) as u16).to_be_bytes();
        let rest = (0..16 + rng.below(96)).map(|_| rng.word() as u8).collect::<Vec<u8>>();
        [vec![high, low], rest].concat()
    };
    (0..count * 4).map(seed).collect()
}

/// Sizes and element type that the tensors of one call have in common, most of the time.
struct Scene<'s, 't> {
    u: &'s mut Unstructured<'t>,
    sizes: Vec<usize>,
    dtype: ScalarType,
}

impl<'s, 't> Scene<'s, 't> {
    fn new(u: &'s mut Unstructured<'t>) -> Self {
        let (sizes, dtype) = (u.pick(&SHAPES).to_vec(), u.pick(&DTYPES));
        Scene { u, sizes, dtype }
    }

    fn argument(&mut self, argument: &Argument<'_>) -> Arg {
        if argument.optional && self.u.one_in(3) {
            return Arg::None;
        }
        let Some(list) = argument.list else { return self.single(argument) };
        let count = match list.len {
            Some(len) if !self.u.one_in(4) => len as usize,
            _ => self.u.below(5),
        };
        match argument.kind {
            ArgumentKind::Tensor => Arg::Tensors(
                (0..count)
                    .map(|_| match list.optional_items && self.u.one_in(4) {
                        true => None,
                        false => Some(self.tensor(argument.mutated)),
                    })
                    .collect(),
            ),
            ArgumentKind::Float => Arg::Doubles((0..count).map(|_| self.u.pick(&FLOATS)).collect()),
            ArgumentKind::Bool => Arg::Bools((0..count).map(|_| self.u.one_in(2)).collect()),
            _ => Arg::Ints((0..count).map(|_| self.int()).collect()),
        }
    }

    fn single(&mut self, argument: &Argument<'_>) -> Arg {
        match argument.kind {
            ArgumentKind::Tensor => Arg::Tensor(self.tensor(argument.mutated)),
            ArgumentKind::Str => Arg::Text(self.u.pick(&TEXTS).to_owned()),
            _ => Arg::Scalar(self.scalar(argument)),
        }
    }

    fn scalar(&mut self, argument: &Argument<'_>) -> Scalar {
        match argument.kind {
            ArgumentKind::Bool => Scalar::Bool(self.u.one_in(2)),
            ArgumentKind::Float => Scalar::Double(self.u.pick(&FLOATS)),
            ArgumentKind::Scalar => match self.u.below(4) {
                0 => Scalar::Double(self.u.pick(&FLOATS)),
                1 => Scalar::Bool(self.u.one_in(2)),
                _ => Scalar::Int(self.int()),
            },
            ArgumentKind::ScalarType if !self.u.one_in(4) => Scalar::Int(self.u.pick(&DTYPES).0.into()),
            _ => Scalar::Int(self.int()),
        }
    }

    /// Small half of the time, so that several of one call can be right together.
    fn int(&mut self) -> i64 {
        match self.u.one_in(2) {
            true => self.u.pick(&INTS),
            false => self.u.below(7) as i64 - 2,
        }
    }

    fn tensor(&mut self, out: bool) -> OwnedTensor {
        let mut sizes = match self.u.below(6) {
            0 => self.u.pick(&SHAPES).to_vec(),
            // One dimension other than the rest have it.
            1 if !self.sizes.is_empty() => {
                let (mut sizes, dim) = (self.sizes.clone(), self.u.below(self.sizes.len()));
                sizes[dim] = self.u.pick(&[1, 0, 2, 4, 7, HUGE]);
                sizes
            }
            2 if out => vec![self.u.pick(&[4, 9, 1, 0]); self.sizes.len()],
            _ => self.sizes.clone(),
        };
        let dtype = if self.u.one_in(5) { self.u.pick(&DTYPES) } else { self.dtype };
        let layout = TensorLayout::contiguous(dtype, &sizes);
        if layout.is_err() || layout.is_ok_and(|layout| layout.element_count() > MAX_ELEMENTS) {
            sizes = vec![2; self.sizes.len().min(9)];
        }
        let mut bytes = OwnedTensor::zeros(dtype, &sizes).bytes().to_vec();
        match self.u.below(4) {
            0 => {}
            1 => bytes.fill(0xff),
            2 => bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = u8::from(at % 3 == 0)),
            _ => {
                let mut rng = Rng::new(self.u.byte().into());
                bytes.iter_mut().for_each(|byte| *byte = rng.word() as u8);
            }
        }
        if dtype == ScalarType::BOOL {
            bytes.iter_mut().for_each(|byte| *byte &= 1);
        }
        let rank = sizes.len();
        let mut tensor = OwnedTensor::from_bytes(dtype, &sizes, bytes).expect("as many bytes as its layout has");
        match self.u.below(8) {
            0 if rank == 4 => tensor = tensor.with_dim_order(&[0, 2, 3, 1]),
            0 if rank == 5 => tensor = tensor.with_dim_order(&[0, 2, 3, 4, 1]),
            1 => tensor = tensor.with_dim_order(&(0..rank as u8).rev().collect::<Vec<u8>>()),
            _ => {}
        }
        if self.u.one_in(if out { 2 } else { 6 }) {
            tensor = tensor.dynamic();
        }
        if !out && self.u.one_in(4) {
            tensor = tensor.constant();
        }
        tensor
    }
}
