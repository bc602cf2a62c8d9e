//! Element-wise operators block by block: operands that are not stored as the output is are gathered, or read where they are for
//! as long as they are one element or follow each other.

use std::sync::Arc;

use edgepack_compute::epilogue::Epilogue;
use edgepack_compute::pointwise::{Lane, Loop, Params};
use edgepack_compute::transfer::Converter;
use edgepack_compute::walk::Cursor;
use edgepack_executor::kernel::KernelError;
use edgepack_format::finding::ErrorCode;
use edgepack_format::scalar::ScalarType;

use super::fixed::BLOCK;
use super::spec::{Input, MAX_INPUTS, Spec, name};

/// Bytes of a block of the widest type.
pub(super) const BLOCK_BYTES: usize = BLOCK * 16;

/// A call of the loop of an operator: what is known when the method is loaded.
pub(super) struct Call {
    pub(super) spec: &'static Spec,
    pub(super) run: Loop,
    /// Types of the elements that the loop reads, and of those that it writes.
    pub(super) compute: ScalarType,
    pub(super) result: ScalarType,
    /// The conversion of the loop's results to those of the output, if they differ.
    pub(super) store: Option<Store>,
}

impl Call {
    /// Bytes of an element of an operand as the loop reads it.
    pub(super) fn lane_width(&self, index: usize) -> usize {
        let is_mask = matches!(self.spec.inputs[index], Input::Mask(_));
        if is_mask { ScalarType::BOOL } else { self.compute }.size().unwrap_or(1)
    }

    pub(super) fn never_divides_by_zero(&self) -> bool {
        self.spec.divisor.is_none() || self.compute.is_floating()
    }

    pub(super) fn check_divisor(&self, lanes: &[Lane<'_>]) -> Result<(), KernelError> {
        let Some(index) = self.spec.divisor else { return Ok(()) };
        if self.never_divides_by_zero() {
            return Ok(());
        }
        let width = self.compute.size().unwrap_or(1);
        let lane = lanes[index];
        let bytes = if lane.constant { &lane.bytes[..width] } else { lane.bytes };
        let zero = match width {
            1 => bytes.contains(&0),
            2 => bytemuck::cast_slice::<u8, u16>(bytes).contains(&0),
            4 => bytemuck::cast_slice::<u8, u32>(bytes).contains(&0),
            _ => bytemuck::cast_slice::<u8, u64>(bytes).contains(&0),
        };
        if zero {
            let name = name(self.spec.schema, self.spec.inputs[index].arg());
            return Err(KernelError::argument(format!("`{name}` holds a 0, integers cannot be divided by it")));
        }
        Ok(())
    }
}

/// A conversion of the loop's results to those of the output.
pub(super) enum Store {
    Converted(Converter),
    Fused(Arc<Epilogue>),
}

impl Store {
    pub(super) fn run(&self, from: &[u8], to: &mut [u8]) {
        match self {
            Store::Converted(convert) => convert(from, to),
            Store::Fused(epilogue) => epilogue.run(from, to),
        }
    }
}

/// Source of the elements of a lane.
#[derive(Clone)]
pub(super) enum Source<'a> {
    /// The number in the same place of the constants.
    Constant,
    /// Memory of the right type and order.
    Direct(&'a [u8]),
    /// Memory of the right order, with the bytes of an element, to be converted.
    Converted(&'a [u8], usize, Converter),
    /// Elements to be gathered, and perhaps converted.
    Gathered(Cursor<'a>, &'a [u8], usize, Option<Converter>),
}

impl Source<'_> {
    /// Returns how many elements are left of a run, if it is one.
    fn left(&self) -> Option<usize> {
        match self {
            Source::Gathered(cursor, ..) => cursor.run().map(|run| run.len),
            _ => None,
        }
    }
}

/// The elements of the output that are computed at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Steps {
    /// [`BLOCK`].
    Blocks,
    /// Whole periods of the one operand that is gathered: it is the same for all blocks, and gathered once.
    Periods(usize),
    /// Runs of the operands that would be gathered: those are read where they are.
    Runs,
}

impl Steps {
    /// The least elements of runs that are worth a step of their own.
    const LEAST: usize = 128;

    /// The steps for the operands before, if one is gathered, and one more that is: its elements come again after a period, and
    /// its runs have so many elements.
    pub(super) fn with(before: Option<Steps>, period: Option<usize>, runs: usize) -> Steps {
        match (before, period) {
            (None, Some(period @ 1..=BLOCK)) => Steps::Periods(period),
            (None | Some(Steps::Runs), _) if runs >= Steps::LEAST => Steps::Runs,
            _ => Steps::Blocks,
        }
    }
}

/// The blocks of an output, and where their operands come from.
pub(super) struct Blocks<'a> {
    pub(super) of: &'a Call,
    pub(super) params: &'a Params,
    pub(super) sources: &'a [Source<'a>],
    pub(super) constants: &'a [u128; MAX_INPUTS],
    pub(super) steps: Steps,
    /// Bytes of an element of the output.
    pub(super) out_width: usize,
}

impl Blocks<'_> {
    /// Computes a piece of the output that begins at an element.
    pub(super) fn run(&self, first: usize, out: &mut [u8], scratch: &mut [u8]) -> Result<(), KernelError> {
        let Blocks { of, params, constants, out_width, .. } = *self;
        let (count, inputs) = (out.len() / out_width, self.sources.len());
        let mut sources = [const { Source::Constant }; MAX_INPUTS];
        sources[..inputs].clone_from_slice(self.sources);
        for source in &mut sources {
            if let Source::Gathered(cursor, ..) = source {
                cursor.advance(first);
            }
        }
        let result_width = of.result.size().unwrap_or(1);
        let mut start = 0;
        while start < count {
            let most = match self.steps {
                Steps::Blocks => BLOCK,
                Steps::Periods(period) => BLOCK / period * period,
                Steps::Runs => {
                    let most = if of.store.is_some() { BLOCK } else { count };
                    sources[..inputs].iter().filter_map(Source::left).fold(most, usize::min)
                }
            };
            let len = most.min(count - start);
            let is_known = start > 0 && matches!(self.steps, Steps::Periods(_));
            let mut buffers = scratch.chunks_exact_mut(BLOCK_BYTES);
            let mut lanes = [Lane { bytes: &[], constant: true }; MAX_INPUTS];
            for (index, source) in sources[..inputs].iter_mut().enumerate() {
                let lane_width = of.lane_width(index);
                let mut constant = false;
                let bytes: &[u8] = match source {
                    Source::Constant => {
                        constant = true;
                        bytemuck::bytes_of(&constants[index])
                    }
                    Source::Direct(bytes) => &bytes[(first + start) * lane_width..][..len * lane_width],
                    Source::Converted(bytes, width, convert) => {
                        let buffer = &mut buffers.next().ok_or_else(no_scratch)?[..len * lane_width];
                        convert(&bytes[(first + start) * *width..][..len * *width], buffer);
                        buffer
                    }
                    Source::Gathered(cursor, bytes, width, _)
                        if self.steps == Steps::Runs
                            && let Some(run) = cursor.run() =>
                    {
                        cursor.pass(len);
                        constant = run.repeats;
                        let elements = if run.repeats { 1 } else { len };
                        &bytes[run.first * *width..][..elements * *width]
                    }
                    Source::Gathered(cursor, bytes, width, convert) => {
                        let raw = &mut buffers.next().ok_or_else(no_scratch)?[..len * *width];
                        if !is_known {
                            cursor.gather(*width, bytes, raw);
                        }
                        match convert {
                            None => raw,
                            Some(convert) => {
                                let buffer = &mut buffers.next().ok_or_else(no_scratch)?[..len * lane_width];
                                convert(raw, buffer);
                                buffer
                            }
                        }
                    }
                };
                lanes[index] = Lane { bytes, constant };
            }
            of.check_divisor(&lanes)?;
            let target = &mut out[start * out_width..][..len * out_width];
            match &of.store {
                None => (of.run)(params, &lanes[..inputs], target),
                Some(store) => {
                    let buffer = &mut buffers.next().ok_or_else(no_scratch)?[..len * result_width];
                    (of.run)(params, &lanes[..inputs], buffer);
                    store.run(buffer, target);
                }
            }
            start += len;
        }
        Ok(())
    }
}

fn no_scratch() -> KernelError {
    KernelError::new(ErrorCode::Internal, "the scratch memory is smaller than asked for")
}
