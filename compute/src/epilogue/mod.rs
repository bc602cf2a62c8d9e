//! Operations done to results, element by element, while they are in the cache: activations, quantising, dequantising.
//!
//! Invariant: an operation computes with the very loop of [`pointwise`](crate::pointwise) or
//! [`quantise`](crate::quantise) that represents it, so results are equal to the bit whether it runs here or alone.

mod activation;
#[cfg(test)]
mod tests;

use std::fmt;

use arrayvec::ArrayVec;
use edgepack_format::scalar::ScalarType;

use crate::element::Scalar;
use crate::error::{Error, ErrorKind, room};
use crate::pointwise::{Lane, Params, Table, activation as loops, unary};
use crate::quantise::{Affine, dequantizer, quantizer};
use crate::simd::wide;
use crate::threads::for_each_piece;
pub(crate) use activation::{Activate, Activation, WithActivation};

/// One operation. All but the last two take FLOAT and give FLOAT.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// `min(max(x, least), greatest)`; a bound that is not wanted is an infinity. NaN stays.
    Clamp {
        /// Lower bound of results.
        least: f32,
        /// Upper bound of results, also where `least` is greater.
        greatest: f32,
    },
    /// `x`, or 0 where it is negative.
    Relu,
    /// `x`, or `slope * x` where it is negative.
    LeakyRelu {
        /// The factor of negative numbers.
        slope: f32,
    },
    /// `scale * x`, or `scale * alpha * (exp(input_scale * x) - 1)` where it is negative.
    Elu {
        /// The factor of negative results.
        alpha: f32,
        /// The factor of all results.
        scale: f32,
        /// The factor of negative numbers.
        input_scale: f32,
    },
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `x / (1 + exp(-x))`.
    Silu,
    /// `x * min(max(x + 3, 0), 6) / 6`.
    HardSwish,
    /// `x * (1 + erf(x / sqrt(2))) / 2`.
    Gelu,
    /// [`Operation::Gelu`], approximated by a hyperbolic tangent.
    GeluTanh,
    /// `tanh(x)`.
    Tanh,
    /// `exp(x)`.
    Exp,
    /// `-x`.
    Neg,
    /// `|x|`.
    Abs,
    /// `sqrt(x)`.
    Sqrt,
    /// `1 / sqrt(x)`.
    Rsqrt,
    /// Floats to integers of a type.
    Quantize {
        /// Integer type of the results.
        to: ScalarType,
        /// Scale, zero point and limits of the results.
        affine: Affine,
    },
    /// Integers of a type to FLOAT.
    Dequantize {
        /// Integer type of the operands.
        from: ScalarType,
        /// The distance of the numbers that neighbouring integers represent.
        scale: f32,
        /// The integer that represents 0.
        zero: i64,
    },
}

/// A function of FLOAT in the form its loop takes.
struct Function {
    name: &'static str,
    table: Table,
    /// Operands behind the first, and how many there are.
    operands: ([f32; 2], usize),
    /// Further numbers, and how many there are.
    params: ([f32; 3], usize),
}

impl Function {
    const fn new(name: &'static str, table: Table) -> Self {
        Function { name, table, operands: ([0.0; 2], 0), params: ([0.0; 3], 0) }
    }

    fn run(&self, from: &[u8], to: &mut [u8]) {
        let (constants, count) = &self.operands;
        let constant = |at: usize| Lane { bytes: bytemuck::bytes_of(&constants[at]), constant: true };
        let lanes = [Lane { bytes: from, constant: false }, constant(0), constant(1)];
        let params = Params(self.params.0.map(|number| Scalar::Double(number.into())));
        if let Some(body) = (self.table)(ScalarType::FLOAT) {
            (body.run)(&params, &lanes[..1 + count], to);
        }
    }
}

impl Operation {
    /// The function, unless it quantises or dequantises.
    fn function(&self) -> Option<Function> {
        Some(match *self {
            Operation::Clamp { least, greatest } => {
                Function { operands: ([least, greatest], 2), ..Function::new("clamp", loops::clamp) }
            }
            Operation::Relu => Function::new("relu", loops::relu),
            Operation::LeakyRelu { slope } => {
                Function { params: ([slope, 0.0, 0.0], 1), ..Function::new("leaky_relu", loops::leaky_relu) }
            }
            Operation::Elu { alpha, scale, input_scale } => {
                Function { params: ([alpha, scale, input_scale], 3), ..Function::new("elu", loops::elu) }
            }
            Operation::Sigmoid => Function::new("sigmoid", loops::sigmoid),
            Operation::Silu => Function::new("silu", loops::silu),
            Operation::HardSwish => Function::new("hard_swish", loops::hard_swish),
            Operation::Gelu => Function::new("gelu", loops::gelu),
            Operation::GeluTanh => Function::new("gelu_tanh", loops::gelu_tanh),
            Operation::Tanh => Function::new("tanh", unary::tanh),
            Operation::Exp => Function::new("exp", unary::exp),
            Operation::Neg => Function::new("neg", unary::neg),
            Operation::Abs => Function::new("abs", unary::abs),
            Operation::Sqrt => Function::new("sqrt", unary::sqrt),
            Operation::Rsqrt => Function::new("rsqrt", unary::rsqrt),
            Operation::Quantize { .. } | Operation::Dequantize { .. } => return None,
        })
    }

    /// Returns the element type of its results.
    pub fn output(&self) -> ScalarType {
        match self {
            Operation::Quantize { to, .. } => *to,
            _ => ScalarType::FLOAT,
        }
    }

    /// Returns whether it takes elements of this type, and its numbers are in range.
    fn takes(&self, from: ScalarType) -> bool {
        let fits_int = |zero: i64| i32::try_from(zero).is_ok();
        match *self {
            Operation::Quantize { to, affine } => {
                fits_int(affine.zero) && affine.fits(to) && quantizer(from, to).is_some()
            }
            Operation::Dequantize { from: stored, zero, .. } => {
                fits_int(zero) && stored == from && dequantizer(from, ScalarType::FLOAT).is_some()
            }
            _ => from == ScalarType::FLOAT,
        }
    }

    /// Does it to elements of type `from`, which it takes.
    fn run(&self, from: ScalarType, operands: &[u8], results: &mut [u8]) {
        match *self {
            Operation::Quantize { to, affine } => {
                if let Some(run) = quantizer(from, to) {
                    run(&affine, operands, results);
                }
            }
            Operation::Dequantize { from, scale, zero } => {
                if let Some(run) = dequantizer(from, ScalarType::FLOAT) {
                    run(&Affine { scale, zero, least: 0, greatest: 0 }, operands, results);
                }
            }
            _ => {
                if let Some(function) = self.function() {
                    function.run(operands, results);
                }
            }
        }
    }
}

/// A name and numbers: `clamp 0 6`, `quantize i8 0.05 -3 -128 127`.
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.function()) {
            (Operation::Quantize { to, affine: Affine { scale, zero, least, greatest } }, _) => {
                write!(f, "quantize {to} {scale} {zero} {least} {greatest}")
            }
            (Operation::Dequantize { from, scale, zero }, _) => write!(f, "dequantize {from} {scale} {zero}"),
            (_, Some(Function { name, operands, params, .. })) => {
                f.write_str(name)?;
                let numbers = operands.0[..operands.1].iter().chain(&params.0[..params.1]);
                numbers.into_iter().try_for_each(|number| write!(f, " {number}"))
            }
            (_, None) => Ok(()),
        }
    }
}

/// Elements done at a time.
const BLOCK: usize = 512;

/// Operations in a row, each on what the one before gives.
///
/// ```
/// use edgepack_compute::epilogue::{Epilogue, Operation};
/// use edgepack_format::scalar::ScalarType;
///
/// let clamp = Operation::Clamp { least: 0.0, greatest: 6.0 };
/// let epilogue = Epilogue::new(ScalarType::FLOAT, &[clamp, Operation::Neg]).unwrap();
/// let (x, mut y) = ([-1.0f32, 3.0, 9.0], [0.0f32; 3]);
/// epilogue.run(bytemuck::cast_slice(&x), bytemuck::cast_slice_mut(&mut y));
/// assert_eq!(y, [0.0, -3.0, -6.0]);
/// assert_eq!(epilogue.to_string(), "clamp 0 6; neg");
/// ```
#[derive(PartialEq, Debug)]
pub struct Epilogue {
    input: ScalarType,
    operations: Vec<Operation>,
}

impl Epilogue {
    /// Makes a list of operations whose first takes elements of type `input`. Refuses an operation that does not take what
    /// the one before gives, and one whose numbers are out of range.
    pub fn new(input: ScalarType, operations: &[Operation]) -> Result<Self, Error> {
        let mut epilogue = Epilogue { input, operations: room(operations.len())? };
        operations.iter().try_for_each(|operation| epilogue.push(*operation))?;
        Ok(epilogue)
    }

    /// Makes the list of these operations and then others, which take what these give.
    pub fn followed_by(&self, others: &Epilogue) -> Result<Self, Error> {
        let mut epilogue = Epilogue { input: self.input, operations: room(self.len() + others.len())? };
        epilogue.operations.extend_from_slice(&self.operations);
        others.operations.iter().try_for_each(|operation| epilogue.push(*operation))?;
        Ok(epilogue)
    }

    fn push(&mut self, operation: Operation) -> Result<(), Error> {
        let from = self.output();
        if !operation.takes(from) {
            let message = format!("`{operation}` does not take elements of type {from}");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        self.operations.push(operation);
        Ok(())
    }

    /// Returns the number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Returns the element type of what goes in.
    pub fn input(&self) -> ScalarType {
        self.input
    }

    /// Returns the element type of what comes out.
    pub fn output(&self) -> ScalarType {
        self.operations.last().map_or(self.input, Operation::output)
    }

    /// Refuses all but FLOAT at both ends: what computes in its output can do nothing else.
    pub fn expect_floats(&self) -> Result<(), Error> {
        match (self.input, self.output()) {
            (ScalarType::FLOAT, ScalarType::FLOAT) => Ok(()),
            (input, output) => Err(Error::new(
                ErrorKind::Unsupported,
                format!("operations from elements of type {input} to {output} behind results of type f32"),
            )),
        }
    }

    /// The operation that comes first, if it is an activation that loops do themselves; and the operations behind it.
    fn split(&self) -> (Activation, &[Operation]) {
        let (activation, rest) = match self.operations.split_first() {
            Some((Operation::Relu, rest)) => (Activation::Least(0.0), rest),
            // Bounds that are NaN make NaN of everything in the loop of the operation, and nothing in ours.
            Some((&Operation::Clamp { least, greatest }, rest)) if !least.is_nan() && !greatest.is_nan() => {
                (Activation::clamp(least, greatest), rest)
            }
            Some((&Operation::LeakyRelu { slope }, rest)) if slope > 0.0 && slope <= 1.0 => {
                (Activation::LeakyRelu { slope }, rest)
            }
            Some((Operation::HardSwish, rest)) => (Activation::HardSwish, rest),
            Some((Operation::Silu, rest)) => (Activation::Silu, rest),
            _ => return (Activation::None, &self.operations),
        };
        (activation, rest)
    }

    /// The activation that comes first, for loops that do it themselves and then call [`Epilogue::finish`].
    pub(crate) fn activation(&self) -> Activation {
        self.split().0
    }

    /// Returns whether there are operations behind the activation.
    pub(crate) fn has_more(&self) -> bool {
        !self.split().1.is_empty()
    }

    /// Does the operations behind the activation in place; [`Epilogue::expect_floats`] allows it.
    pub(crate) fn finish(&self, results: &mut [f32]) {
        let (_, operations) = self.split();
        if operations.is_empty() {
            return;
        }
        let (mut copy, mut buffers) = (ArrayVec::<f32, BLOCK>::new(), None);
        for results in results.chunks_mut(BLOCK) {
            copy.clear();
            // A block fits.
            let _ = copy.try_extend_from_slice(results);
            let (from, to) = (bytemuck::cast_slice(&copy), bytemuck::cast_slice_mut(results));
            chain(ScalarType::FLOAT, operations, from, to, copy.len(), &mut buffers);
        }
    }

    /// Does all operations in place, on all threads where results are many.
    ///
    /// # Panics
    ///
    /// Unless [`Epilogue::expect_floats`] allows it.
    pub fn in_place(&self, results: &mut [f32]) {
        assert!(self.expect_floats().is_ok(), "operations that change the element type have no place to do so");
        let activation = self.activation();
        for_each_piece(results, 1, |_, results| {
            wide(|| activation.apply(results));
            self.finish(results);
        });
    }

    /// Does all operations to as many elements as the output has room for, on all threads where they are many. Both slices
    /// are aligned to their elements, and the input has as many.
    pub fn run(&self, from: &[u8], to: &mut [u8]) {
        let widths = [self.input, self.output()].map(|dtype| dtype.size().unwrap_or(1));
        for_each_piece(to, widths[1], |start, to| self.run_piece(&from[start / widths[1] * widths[0]..], to, widths));
    }

    /// The result of every byte, in the order of [`look_up`](crate::simd::look_up), if bytes become bytes.
    pub fn table(&self) -> Option<[i8; 256]> {
        if [self.input, self.output()].iter().any(|dtype| dtype.size() != Some(1)) {
            return None;
        }
        let (mut bytes, mut results) = ([0; 256], [0; 256]);
        bytes.iter_mut().zip(i8::MIN..=i8::MAX).for_each(|(to, byte)| *to = byte);
        self.run_piece(bytemuck::bytes_of(&bytes), bytemuck::bytes_of_mut(&mut results), [1, 1]);
        Some(results)
    }

    fn run_piece(&self, from: &[u8], to: &mut [u8], widths: [usize; 2]) {
        let (activation, operations) = match self.split() {
            // Its own loop goes from one place to the other as fast.
            (Activation::Silu, _) => (Activation::None, &self.operations[..]),
            split => split,
        };
        let (mut done, mut buffers) = (ArrayVec::<f32, BLOCK>::new(), None);
        for (from, to) in from.chunks(BLOCK * widths[0]).zip(to.chunks_mut(BLOCK * widths[1])) {
            let count = to.len() / widths[1];
            let from = &from[..count * widths[0]];
            if activation == Activation::None {
                chain(self.input, operations, from, to, count, &mut buffers);
                continue;
            }
            done.clear();
            let _ = done.try_extend_from_slice(bytemuck::cast_slice(from));
            wide(|| activation.apply(&mut done));
            chain(self.input, operations, bytemuck::cast_slice(&done), to, count, &mut buffers);
        }
    }
}

/// Does operations to one block of elements of type `input`. Buffers are made where there are several.
fn chain(
    input: ScalarType,
    operations: &[Operation],
    from: &[u8],
    to: &mut [u8],
    count: usize,
    buffers: &mut Option<Buffers>,
) {
    let Some((last, rest)) = operations.split_last() else { return to.copy_from_slice(from) };
    if rest.is_empty() {
        return last.run(input, from, to);
    }
    let buffers = buffers.get_or_insert_with(Buffers::new);
    let [mut here, mut there] = buffers.0.each_mut().map(|buffer| bytemuck::cast_slice_mut::<u32, u8>(buffer));
    let (mut dtype, mut len) = (input, 0);
    for (index, operation) in rest.iter().enumerate() {
        let next = count * operation.output().size().unwrap_or(1);
        operation.run(dtype, if index == 0 { from } else { &here[..len] }, &mut there[..next]);
        (here, there, dtype, len) = (there, here, operation.output(), next);
    }
    last.run(dtype, &here[..len], to);
}

/// Results of operations that are not the last: words, as large as the elements of any of them.
struct Buffers([[u32; BLOCK]; 2]);

impl Buffers {
    fn new() -> Self {
        Buffers([[0; BLOCK]; 2])
    }
}

/// The operations, `; ` between them.
impl fmt::Display for Epilogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, operation) in self.operations.iter().enumerate() {
            write!(f, "{}{operation}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}
