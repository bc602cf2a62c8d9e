//! Operators together with what is done to their results: values that rewrites put into plans, and programs never name.
//!
//! Invariant: such an operator gives what its own operator and the operations behind it would give one after the other, to
//! the bit.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use edgepack_compute::epilogue::{Epilogue, Operation};
use edgepack_compute::simd::look_up;
use edgepack_compute::threads::{Cost, for_each_piece_at};
use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Operator, Prepare, Run};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::expect_same;
use crate::convert::is_aligned;

/// Looks at one instruction of an operator and the operations behind it.
type PrepareFused = fn(&Prepare<'_>, Arc<Epilogue>) -> Result<Box<dyn Run>, KernelError>;

/// An operator that can do operations to its results.
pub(crate) struct Base {
    /// The name with operations, as observers see it.
    pub name: &'static str,
    /// The schema of the operator.
    pub schema: &'static str,
    /// The position of its output.
    pub out: usize,
    /// True if results are computed where they stay, so that the operations must end in FLOAT.
    pub in_place: bool,
    /// Looks at one instruction.
    pub prepare: PrepareFused,
}

/// An operator and the operations behind it.
pub(crate) struct Fused {
    base: &'static Base,
    epilogue: Arc<Epilogue>,
}

impl Fused {
    /// Returns the operator with its operations. The operations take FLOAT, but for those of [`POINTWISE`].
    pub fn new(base: &'static Base, epilogue: Arc<Epilogue>) -> Self {
        Fused { base, epilogue }
    }

    /// The operator, and what is done to its results.
    pub fn parts(&self) -> (&'static Base, &Arc<Epilogue>) {
        (self.base, &self.epilogue)
    }
}

impl Operator for Fused {
    fn name(&self) -> &str {
        self.base.name
    }

    fn schema(&self) -> &str {
        self.base.schema
    }

    fn prepare(&self, args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        if self.base.in_place {
            self.epilogue.expect_floats()?;
        }
        (self.base.prepare)(args, self.epilogue.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl fmt::Debug for Fused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.base.name, self.epilogue)
    }
}

/// Operations alone: several element-wise operators in one pass.
pub(crate) static POINTWISE: Base = Base {
    name: "edgepack::pointwise.out",
    schema: "(Tensor input, *, Tensor(a!) out) -> Tensor(a!)",
    out: OUT,
    in_place: false,
    prepare: prepare_pointwise,
};

const INPUT: usize = 0;
const OUT: usize = 1;

/// A byte of a table.
const LOOK_UP: Cost = Cost::nanoseconds(0.1);

fn prepare_pointwise(args: &Prepare<'_>, epilogue: Arc<Epilogue>) -> Result<Box<dyn Run>, KernelError> {
    let (input, out) = (args.tensor(INPUT)?.meta, args.tensor(OUT)?.meta);
    expect_same(("input", input.dtype), ("the first operation", epilogue.input()))?;
    expect_same(("the last operation", epilogue.output()), ("out", out.dtype))?;
    if input.dim_order != out.dim_order {
        return Err(KernelError::unsupported(format!(
            "`input` has dim order {:?}, `out` {:?}: they must be equal",
            input.dim_order, out.dim_order
        )));
    }
    let table = epilogue.table();
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let sizes = Dims::from_slice(cx.meta(INPUT)?.sizes).unwrap_or_default();
        cx.resize(OUT, &sizes)?;
        let views = cx.views();
        let (input, mut out) = (views.tensor(INPUT)?, views.out(OUT)?);
        let dtype = out.dtype;
        if !is_aligned(input.bytes(), input.dtype) || !is_aligned(out.bytes_mut(), dtype) {
            return Err(KernelError::argument("the data of `input` or `out` are not aligned to its element"));
        }
        match &table {
            Some(table) => for_each_piece_at(LOOK_UP, out.bytes_mut(), 1, |start, out| {
                let x = &input.bytes()[start..][..out.len()];
                look_up(table, bytemuck::cast_slice(x), bytemuck::cast_slice_mut(out));
            }),
            None => epilogue.run(input.bytes(), out.bytes_mut()),
        }
        Ok(())
    }))
}

/// `x * min(max(x + 3, 0), 6) / 6` of FLOAT, for those who make plans: rewrites know it as an operation.
pub static HARD_SWISH: Kernel = Kernel {
    name: "edgepack::hard_swish.out",
    schema: POINTWISE.schema,
    alias: Alias::Disjoint,
    is_pure: true,
    prepare: |args| {
        let epilogue = Epilogue::new(ScalarType::FLOAT, &[Operation::HardSwish])?;
        prepare_pointwise(args, Arc::new(epilogue))
    },
};

/// Runs a kernel of FLOAT whose output is argument `out`, and then the operations in that output.
pub(crate) fn then_in_place(
    args: &Prepare<'_>,
    out: usize,
    kernel: Box<dyn Run>,
    epilogue: Arc<Epilogue>,
) -> Result<Box<dyn Run>, KernelError> {
    expect_same(("out", args.tensor(out)?.meta.dtype), ("the first operation", ScalarType::FLOAT))?;
    Ok(Box::new(ThenInPlace { kernel, epilogue, out }))
}

struct ThenInPlace {
    kernel: Box<dyn Run>,
    epilogue: Arc<Epilogue>,
    out: usize,
}

impl Run for ThenInPlace {
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        self.kernel.run(cx)?;
        self.epilogue.in_place(cx.views().out(self.out)?.into_slice::<f32>()?);
        Ok(())
    }

    fn retained_bytes(&self) -> usize {
        self.kernel.retained_bytes()
    }
}
