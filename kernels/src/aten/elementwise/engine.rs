//! The engine of element-wise operators: brings inputs of any shape, dim order and element type into the form the loops
//! take, block by block, and the result into the output.
//!
//! The output is dense in memory, and everything is walked in its order. An input of the same shape, order and type
//! is read where it is; a repeated single element is a constant; anything else is gathered into a block of scratch and
//! converted to the type to compute in. If no input needs that, the loop runs once over the whole tensor.

use std::sync::Arc;

use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::Scalar;
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use super::blocks::{BLOCK_BYTES, Blocks, Call, Source, Steps, Store};
use super::fixed::{BLOCK, Fixed};
use super::spec::{Input, MAX_INPUTS, Spec, Types, name};
use super::types::{self, Chosen};
use crate::check::expect_same;
use crate::convert::{converter, is_aligned};
use crate::promote::expect_fit;
use edgepack_compute::epilogue::Epilogue;
use edgepack_compute::layout::broadcast;
use edgepack_compute::number::Number;
use edgepack_compute::pointwise::{Lane, Params, complex};
use edgepack_compute::threads::{for_each_piece, pays};
use edgepack_compute::transfer::Converter;
use edgepack_compute::walk::Walk;

struct Elementwise {
    call: Call,
    /// By input: the conversion to the type the loop reads, if it differs.
    load: [Option<Converter>; MAX_INPUTS],
    /// The operands, if all about them is known when the method is loaded.
    fixed: Option<Fixed>,
}

/// Looks at one instruction of an element-wise operator.
pub fn prepare(args: &Prepare<'_>, spec: &'static Spec) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(spec.out + 2)?;
    let out = args.tensor(spec.out)?.meta.dtype;
    let chosen = types::choose(args, spec, out)?;
    let store = conversion(chosen.body.result, out)?.map(Store::Converted);
    prepare_with(args, spec, chosen, store)
}

/// Looks at one instruction of an element-wise operator whose results, which are FLOAT, go through operations.
pub fn prepare_fused(
    args: &Prepare<'_>,
    spec: &'static Spec,
    epilogue: Arc<Epilogue>,
) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(spec.out + 2)?;
    let chosen = types::choose(args, spec, ScalarType::FLOAT)?;
    expect_same(("the operator", chosen.body.result), ("the first operation", epilogue.input()))?;
    expect_same(("the last operation", epilogue.output()), ("out", args.tensor(spec.out)?.meta.dtype))?;
    prepare_with(args, spec, chosen, Some(Store::Fused(epilogue)))
}

fn prepare_with(
    args: &Prepare<'_>,
    spec: &'static Spec,
    chosen: Chosen,
    store: Option<Store>,
) -> Result<Box<dyn Run>, KernelError> {
    let mut load = [None; MAX_INPUTS];
    for (load, input) in load.iter_mut().zip(spec.inputs) {
        let arg = input.arg();
        let dtype = match input {
            Input::Tensor(_) | Input::Mask(_) => args.tensor(arg)?.meta.dtype,
            Input::TensorOr(..) if !args.is_none(arg) => args.tensor(arg)?.meta.dtype,
            _ => continue,
        };
        let target = if matches!(input, Input::Mask(_)) { ScalarType::BOOL } else { chosen.compute };
        *load = conversion(dtype, target)?;
    }
    args.scratch((2 * spec.inputs.len() + 1) * BLOCK_BYTES);
    let call = Call { spec, run: chosen.body.run, compute: chosen.compute, result: chosen.body.result, store };
    let mut engine = Elementwise { call, load, fixed: None };
    engine.fixed = engine.fixed(args)?;
    Ok(Box::new(engine))
}

fn conversion(from: ScalarType, to: ScalarType) -> Result<Option<Converter>, KernelError> {
    if from == to {
        return Ok(None);
    }
    match converter(from, to) {
        Some(converter) => Ok(Some(converter)),
        None => Err(KernelError::unsupported(format!("elements of type {from} cannot become {to}"))),
    }
}

impl Elementwise {
    /// The operands, if all about them is known now.
    fn fixed(&self, args: &Prepare<'_>) -> Result<Option<Fixed>, KernelError> {
        let converts = matches!(self.call.store, Some(Store::Converted(_))) || self.load.iter().any(Option::is_some);
        if converts || !self.call.never_divides_by_zero() {
            return Ok(None);
        }
        Fixed::of(args, self.call.spec, |index| self.call.lane_width(index))
    }

    /// The operations behind the loop.
    fn epilogue(&self) -> Option<&Epilogue> {
        match &self.call.store {
            Some(Store::Fused(epilogue)) => Some(epilogue),
            _ => None,
        }
    }

    /// Gives the output the sizes that the inputs have in common.
    fn resize(&self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        let spec = self.call.spec;
        let out = cx.meta(spec.out)?.sizes;
        let mut same = true;
        for input in spec.inputs {
            if let Some(sizes) = sizes_of(cx, *input)? {
                same &= sizes == out;
            }
        }
        if same {
            return Ok(());
        }
        let mut common = Dims::new();
        for input in spec.inputs {
            let Some(sizes) = sizes_of(cx, *input)? else { continue };
            common = broadcast(&common, sizes).ok_or_else(|| {
                let name = name(spec.schema, input.arg());
                KernelError::argument(format!("`{name}` has sizes {sizes:?}, which do not broadcast with {common:?}"))
            })?;
        }
        cx.resize(spec.out, &common)
    }

    /// The numbers among the inputs, in the type to compute in.
    fn constants(&self, cx: &KernelContext<'_>) -> Result<[u128; MAX_INPUTS], KernelError> {
        let mut constants = [0; MAX_INPUTS];
        for (constant, input) in constants.iter_mut().zip(self.call.spec.inputs) {
            *constant = match *input {
                Input::Scalar(arg) => self.number(cx, arg)?,
                Input::ScalarOr(arg, _) if !cx.is_none(arg) => self.number(cx, arg)?,
                Input::TensorOr(arg, limit) | Input::ScalarOr(arg, limit) if cx.is_none(arg) => {
                    limit.bits(self.call.compute).into()
                }
                _ => continue,
            };
        }
        Ok(constants)
    }

    fn number(&self, cx: &KernelContext<'_>, arg: usize) -> Result<u128, KernelError> {
        let scalar = cx.scalar(arg)?;
        if self.call.spec.types == Types::First {
            let dtype = cx.meta(self.call.spec.inputs[0].arg())?.dtype;
            expect_fit(name(self.call.spec.schema, arg), scalar, dtype)?;
        }
        Ok(if self.call.compute.is_complex() {
            complex::bits(scalar, self.call.compute)
        } else {
            scalar_bits(scalar, self.call.compute).into()
        })
    }

    fn params(&self, cx: &KernelContext<'_>) -> Result<Params, KernelError> {
        let mut params = Params([Scalar::Int(0); 3]);
        for (param, &arg) in params.0.iter_mut().zip(self.call.spec.params) {
            *param = cx.scalar(arg)?;
        }
        Ok(params)
    }
}

impl Run for Elementwise {
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        let spec = self.call.spec;
        if self.fixed.is_none() {
            self.resize(cx)?;
        }
        let params = self.params(cx)?;
        let mut constants = self.constants(cx)?;
        if let Some(fixed) = &self.fixed
            && fixed.run(cx, spec, self.call.run, (&params, &constants), self.epilogue())?
        {
            return Ok(());
        }
        let views = cx.views();
        let mut out = views.out(spec.out)?;
        let out_meta = out.meta();
        let count = out_meta.element_count();
        if count == 0 {
            return Ok(());
        }
        let out = out.bytes_mut();
        if !is_aligned(out, out_meta.dtype) {
            return Err(KernelError::argument("`out` is not aligned to its element"));
        }

        let mut walks = [const { None }; MAX_INPUTS];
        let mut inputs = [None; MAX_INPUTS];
        for (index, input) in spec.inputs.iter().enumerate() {
            let arg = input.arg();
            let tensor = match input {
                Input::Tensor(_) | Input::Mask(_) => Some(views.tensor(arg)?),
                Input::TensorOr(..) => views.tensor_opt(arg)?,
                Input::Scalar(_) | Input::ScalarOr(..) => None,
            };
            let Some(tensor) = tensor else { continue };
            walks[index] = Some(Walk::stretched(&out_meta, &tensor.meta()));
            inputs[index] = Some(tensor);
        }
        let mut sources = [const { Source::Constant }; MAX_INPUTS];
        let (mut whole, mut steps) = (self.call.store.is_none(), None);
        for index in 0..spec.inputs.len() {
            let (Some(walk), Some(tensor)) = (&walks[index], inputs[index]) else { continue };
            let (width, bytes) = (tensor.dtype.size().unwrap_or(1), tensor.bytes());
            let aligned = is_aligned(bytes, tensor.dtype);
            sources[index] = match self.load[index] {
                convert if walk.is_constant() && aligned => {
                    let first = &bytes[..width];
                    let constant = bytemuck::bytes_of_mut(&mut constants[index]);
                    match convert {
                        None => constant[..width].copy_from_slice(first),
                        Some(convert) => {
                            convert(first, &mut constant[..self.call.lane_width(index)]);
                        }
                    }
                    Source::Constant
                }
                None if walk.is_linear() && aligned => Source::Direct(bytes),
                Some(convert) if walk.is_linear() && aligned => Source::Converted(bytes, width, convert),
                convert => {
                    let runs = if convert.is_none() && aligned { walk.run() } else { 0 };
                    steps = Some(Steps::with(steps, walk.period(), runs));
                    Source::Gathered(walk.cursor(), bytes, width, convert)
                }
            };
            whole &= matches!(sources[index], Source::Constant | Source::Direct(_));
        }
        let out_width = out_meta.dtype.size().unwrap_or(1);
        let inputs = spec.inputs.len();
        if whole {
            let widths: [usize; MAX_INPUTS] =
                std::array::from_fn(|index| if index < inputs { self.call.lane_width(index) } else { 0 });
            let mut lanes = [Lane { bytes: &[], constant: true }; MAX_INPUTS];
            for ((lane, source), constant) in lanes.iter_mut().zip(&sources).zip(&constants) {
                *lane = match source {
                    Source::Direct(bytes) => Lane { bytes, constant: false },
                    _ => Lane { bytes: bytemuck::bytes_of(constant), constant: true },
                };
            }
            self.call.check_divisor(&lanes)?;
            for_each_piece(out, out_width, |start, out| {
                let (first, len) = (start / out_width, out.len() / out_width);
                let mut lanes = lanes;
                for (lane, width) in lanes.iter_mut().zip(widths).filter(|(lane, _)| !lane.constant) {
                    lane.bytes = &lane.bytes[first * width..][..len * width];
                }
                (self.call.run)(&params, &lanes[..inputs], out);
            });
            return Ok(());
        }

        let (params, constants, steps) = (&params, &constants, steps.unwrap_or(Steps::Blocks));
        let blocks = Blocks { of: &self.call, params, sources: &sources[..inputs], constants, steps, out_width };
        if self.call.never_divides_by_zero() && pays(out.len()) {
            let unit = BLOCK * out_width;
            for_each_piece(out, unit, |start, out| {
                let mut buffers = [[0u128; BLOCK]; 2 * MAX_INPUTS + 1];
                let buffers = bytemuck::cast_slice_mut(buffers.as_flattened_mut());
                // Only what `check_divisor` finds fails, and it has nothing to look for.
                let _ = blocks.run(start / out_width, out, buffers);
            });
            return Ok(());
        }
        blocks.run(0, out, views.scratch()?)
    }
}

fn sizes_of<'c>(cx: &'c KernelContext<'_>, input: Input) -> Result<Option<&'c [usize]>, KernelError> {
    Ok(match input {
        Input::Tensor(arg) | Input::Mask(arg) => Some(cx.meta(arg)?.sizes),
        Input::TensorOr(arg, _) => cx.meta_opt(arg)?.map(|meta| meta.sizes),
        Input::Scalar(_) | Input::ScalarOr(..) => None,
    })
}

/// A number in an element type, in the first bytes of a word.
pub fn scalar_bits(scalar: Scalar, dtype: ScalarType) -> u64 {
    with_element!(dtype, T => bits(T::from_scalar(scalar)), else => 0)
}

fn bits<T: bytemuck::Pod>(value: T) -> u64 {
    let mut word = 0u64;
    bytemuck::bytes_of_mut(&mut word)[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
    word
}
