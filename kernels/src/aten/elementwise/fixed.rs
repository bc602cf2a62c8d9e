//! Calls whose operands are stored as the output is, dimensions of one element aside, in sizes that never change: what is where is
//! decided when the method is loaded, and a run is the loop alone. Numbers are read in every run: those among the inputs of a method
//! are the caller's.
//!
//! Invariant: such a call gives what the engine gives for it, to the bit.

use edgepack_compute::epilogue::Epilogue;
use edgepack_compute::layout::broadcast;
use edgepack_compute::pointwise::{Lane, Loop, Params};
use edgepack_compute::threads::for_each_piece;
use edgepack_compute::walk::Walk;
use edgepack_executor::kernel::{KernelContext, KernelError, Prepare};
use edgepack_executor::tensor::TensorShape;

use super::spec::{Input, MAX_INPUTS, Spec};
use crate::convert::is_aligned;

/// Elements per block.
pub(super) const BLOCK: usize = 512;

/// Returns whether the elements of an operand are those of the output, one after the other.
fn is_stored_as(operand: &TensorShape<'_>, out: &TensorShape<'_>) -> bool {
    operand.element_count() == out.element_count()
        && broadcast(out.sizes, operand.sizes).is_some_and(|sizes| *sizes == *out.sizes)
        && Walk::stretched(out, operand).is_linear()
}

/// The operands of such a call: the bytes of an element of each tensor, and `None` in the place of a number.
pub(super) struct Fixed([Option<usize>; MAX_INPUTS]);

impl Fixed {
    /// Looks at a call whose tensors have the type that the loop reads; `None` if it is not such a call. `width` says how many bytes
    /// the elements of an operand have.
    pub(super) fn of(
        args: &Prepare<'_>,
        spec: &Spec,
        width: impl Fn(usize) -> usize,
    ) -> Result<Option<Fixed>, KernelError> {
        let out = args.tensor(spec.out)?;
        let mut widths = [None; MAX_INPUTS];
        for (index, (place, input)) in widths.iter_mut().zip(spec.inputs).enumerate() {
            match *input {
                Input::Tensor(arg) | Input::Mask(arg) => {
                    let tensor = args.tensor(arg)?;
                    if tensor.dynamic || !is_stored_as(&tensor.meta, &out.meta) {
                        return Ok(None);
                    }
                    *place = Some(width(index));
                }
                Input::Scalar(_) => {}
                Input::TensorOr(..) | Input::ScalarOr(..) => return Ok(None),
            }
        }
        Ok((!out.dynamic).then_some(Fixed(widths)))
    }

    /// Computes the output; false if an operand is not aligned to its elements, and nothing was done.
    pub(super) fn run(
        &self,
        cx: &mut KernelContext<'_>,
        spec: &Spec,
        run: Loop,
        (params, numbers): (&Params, &[u128; MAX_INPUTS]),
        epilogue: Option<&Epilogue>,
    ) -> Result<bool, KernelError> {
        let views = cx.views();
        let mut out = views.out(spec.out)?;
        let dtype = out.meta().dtype;
        let out = out.bytes_mut();
        let mut lanes = [Lane { bytes: &[], constant: true }; MAX_INPUTS];
        for (index, (lane, input)) in lanes.iter_mut().zip(spec.inputs).enumerate() {
            *lane = match self.0[index] {
                Some(_) => {
                    let tensor = views.tensor(input.arg())?;
                    if !is_aligned(tensor.bytes(), tensor.dtype) {
                        return Ok(false);
                    }
                    Lane { bytes: tensor.bytes(), constant: false }
                }
                None => Lane { bytes: bytemuck::bytes_of(&numbers[index]), constant: true },
            };
        }
        if !is_aligned(out, dtype) {
            return Ok(false);
        }
        let (width, lanes) = (dtype.size().unwrap_or(1), &lanes[..spec.inputs.len()]);
        for_each_piece(out, width, |start, out| match epilogue {
            None => self.piece(run, params, lanes, start / width, out.len() / width, out),
            Some(epilogue) => {
                let mut results = [0f32; BLOCK];
                for (block, out) in out.chunks_mut(BLOCK * width).enumerate() {
                    let count = out.len() / width;
                    let results = bytemuck::cast_slice_mut(&mut results[..count]);
                    self.piece(run, params, lanes, start / width + block * BLOCK, count, results);
                    epilogue.run(results, out);
                }
            }
        });
        Ok(true)
    }

    /// Runs the loop over so many elements from the `first` on.
    fn piece(&self, run: Loop, params: &Params, lanes: &[Lane<'_>], first: usize, count: usize, out: &mut [u8]) {
        let mut here = [Lane { bytes: &[], constant: true }; MAX_INPUTS];
        for ((here, lane), width) in here.iter_mut().zip(lanes).zip(&self.0) {
            *here = match width {
                Some(width) => Lane { bytes: &lane.bytes[first * width..][..count * width], ..*lane },
                None => *lane,
            };
        }
        run(params, &here[..lanes.len()], out);
    }
}
