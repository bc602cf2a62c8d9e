//! Calls whose operands are stored as the output is, in sizes and with numbers that never change: what is where is decided when
//! the method is loaded, and a run is the loop alone.
//!
//! Invariant: such a call gives what the engine gives for it, to the bit.

use edgepack_compute::epilogue::Epilogue;
use edgepack_compute::pointwise::{Lane, Loop, Params};
use edgepack_compute::threads::for_each_piece;
use edgepack_executor::kernel::{KernelContext, KernelError, Prepare};
use edgepack_executor::tensor::Scalar;

use super::engine::{BLOCK, MAX_INPUTS};
use super::spec::{Input, Spec};
use crate::convert::is_aligned;

/// The operands of such a call.
pub(super) struct Fixed {
    operands: [Operand; MAX_INPUTS],
    params: Params,
}

/// Source of the elements of an operand.
#[derive(Clone, Copy)]
enum Operand {
    /// The tensor at this position, with so many bytes an element.
    Tensor(usize, usize),
    /// A number in the type to compute in.
    Number(u128),
}

impl Fixed {
    /// Looks at a call whose tensors have the type that the loop reads; `None` if it is not such a call. `number` brings a number
    /// at a position into the type to compute in, and `lane` says how many bytes the elements of an operand have.
    pub(super) fn of(
        args: &Prepare<'_>,
        spec: &Spec,
        number: impl Fn(usize, Scalar) -> Result<u128, KernelError>,
        lane: impl Fn(usize) -> usize,
    ) -> Result<Option<Fixed>, KernelError> {
        let out = args.tensor(spec.out)?;
        let mut operands = [Operand::Number(0); MAX_INPUTS];
        for (index, (operand, input)) in operands.iter_mut().zip(spec.inputs).enumerate() {
            let arg = input.arg();
            let known = match *input {
                Input::Tensor(_) | Input::Mask(_) => {
                    let tensor = args.tensor(arg)?;
                    let alike = tensor.meta.sizes == out.meta.sizes && tensor.meta.dim_order == out.meta.dim_order;
                    (alike && !tensor.dynamic).then(|| Operand::Tensor(arg, lane(index)))
                }
                // What the engine refuses when it runs is left to it.
                Input::Scalar(_) => match args.scalar(arg) {
                    Ok(Some(scalar)) => number(arg, scalar).ok().map(Operand::Number),
                    _ => None,
                },
                Input::TensorOr(..) | Input::ScalarOr(..) => None,
            };
            let Some(known) = known else { return Ok(None) };
            *operand = known;
        }
        let mut params = Params([Scalar::Int(0); 3]);
        for (param, &arg) in params.0.iter_mut().zip(spec.params) {
            let Ok(Some(scalar)) = args.scalar(arg) else { return Ok(None) };
            *param = scalar;
        }
        Ok((!out.dynamic).then_some(Fixed { operands, params }))
    }

    /// Computes the output; false if an operand is not aligned to its elements, and nothing was done.
    pub(super) fn run(
        &self,
        cx: &mut KernelContext<'_>,
        spec: &Spec,
        run: Loop,
        epilogue: Option<&Epilogue>,
    ) -> Result<bool, KernelError> {
        let views = cx.views();
        let mut out = views.out(spec.out)?;
        let dtype = out.meta().dtype;
        let out = out.bytes();
        let mut lanes = [Lane { bytes: &[], constant: true }; MAX_INPUTS];
        for (lane, operand) in lanes.iter_mut().zip(&self.operands).take(spec.inputs.len()) {
            *lane = match operand {
                Operand::Tensor(arg, _) => {
                    let tensor = views.tensor(*arg)?;
                    if !is_aligned(tensor.bytes(), tensor.dtype) {
                        return Ok(false);
                    }
                    Lane { bytes: tensor.bytes(), constant: false }
                }
                Operand::Number(bits) => Lane { bytes: bytemuck::bytes_of(bits), constant: true },
            };
        }
        if !is_aligned(out, dtype) {
            return Ok(false);
        }
        let width = dtype.size().unwrap_or(1);
        for_each_piece(out, width, |start, out| match epilogue {
            None => self.piece(run, &lanes[..spec.inputs.len()], start / width, out.len() / width, out),
            Some(epilogue) => {
                let mut results = [0f32; BLOCK];
                for (block, out) in out.chunks_mut(BLOCK * width).enumerate() {
                    let count = out.len() / width;
                    let results = bytemuck::cast_slice_mut(&mut results[..count]);
                    self.piece(run, &lanes[..spec.inputs.len()], start / width + block * BLOCK, count, results);
                    epilogue.run(results, out);
                }
            }
        });
        Ok(true)
    }

    /// Runs the loop over so many elements from the `first` on.
    fn piece(&self, run: Loop, lanes: &[Lane<'_>], first: usize, count: usize, out: &mut [u8]) {
        let mut here = [Lane { bytes: &[], constant: true }; MAX_INPUTS];
        for ((here, lane), operand) in here.iter_mut().zip(lanes).zip(&self.operands) {
            *here = match operand {
                Operand::Tensor(_, width) => Lane { bytes: &lane.bytes[first * width..][..count * width], ..*lane },
                Operand::Number(_) => *lane,
            };
        }
        run(&self.params, &here[..lanes.len()], out);
    }
}
