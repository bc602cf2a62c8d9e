//! View of one instruction that a kernel has when a method is loaded, before anything runs.
//!
//! Shapes are upper bounds for dynamic tensors. Numbers are known only if nothing ever writes them; a kernel that needs
//! an unknown one reads it when it runs.

use std::any::Any;
use std::cell::Cell;

use edgepack_format::finding::ErrorCode;

use crate::api::error::KernelError;
use crate::api::packing::constants::{Constants, Layout, Shared, changed};
use crate::api::room::Retained;
use crate::api::state::{Dynamism, State, TensorState, Value, ValueId};
use crate::api::tensor::{PodElement, Scalar, TensorRef, TensorShape};

/// One instruction, seen at load.
pub struct Prepare<'p> {
    pub(crate) state: &'p State,
    pub(crate) args: &'p [ValueId],
    /// By value id: written by an instruction, or an input of the method.
    pub(crate) variable: &'p [bool],
    pub(crate) scratch: Cell<usize>,
    pub(crate) optimize: bool,
    pub(crate) retained: Retained<'p>,
    /// The constants of the method, where there is one.
    pub(crate) constants: Option<&'p Constants<'p>>,
}

/// A tensor, seen at load.
#[derive(Clone, Copy)]
pub struct TensorInfo<'p> {
    /// Element type and size bounds.
    pub meta: TensorShape<'p>,
    /// True if the sizes may be smaller at run time.
    pub dynamic: bool,
    /// The data, if they never change.
    pub constant: Option<TensorRef<'p>>,
}

impl<'p> Prepare<'p> {
    /// A call with these arguments.
    pub(crate) fn new(
        state: &'p State,
        args: &'p [ValueId],
        variable: &'p [bool],
        optimize: bool,
        retained: &'p Cell<u64>,
    ) -> Self {
        Prepare {
            state,
            args,
            variable,
            scratch: Cell::new(0),
            optimize,
            retained: Retained(retained),
            constants: None,
        }
    }

    /// This call, of a method with these constants.
    pub(crate) fn of_constants(self, constants: &'p Constants<'p>) -> Self {
        Prepare { constants: Some(constants), ..self }
    }

    /// Returns what the kernel asks before it retains memory of its own.
    pub fn retained(&self) -> Retained<'p> {
        self.retained
    }

    /// Number of arguments, the repeated return value included.
    #[expect(clippy::len_without_is_empty, reason = "an instruction without arguments is not a special case")]
    pub fn len(&self) -> usize {
        self.args.len()
    }

    /// Returns whether the argument is `None`.
    pub fn is_none(&self, arg: usize) -> bool {
        matches!(self.state.value(self.args, arg), Ok(Value::Null))
    }

    /// Returns whether work at load that makes runs faster is wanted, such as packing weights.
    pub fn optimize(&self) -> bool {
        self.optimize
    }

    fn info(&self, tensor: &TensorState) -> TensorInfo<'p> {
        Self::known(self.state, tensor)
    }

    /// Returns the facts about a tensor that are known at load.
    pub(crate) fn known(state: &'p State, tensor: &TensorState) -> TensorInfo<'p> {
        let meta = TensorShape {
            sizes: state.bounds(tensor),
            dtype: tensor.dtype,
            strides: state.strides(tensor),
            dim_order: state.dim_order(tensor),
        };
        let constant = tensor.constant.then(|| {
            // SAFETY: constant regions are read-only memory that the program keeps alive; see `storage`.
            TensorRef::new(meta, unsafe { tensor.region.prefix(meta.byte_len()).bytes() })
        });
        TensorInfo { meta, dynamic: tensor.dynamism == Dynamism::Bound, constant }
    }

    /// A tensor, input or output.
    pub fn tensor(&self, arg: usize) -> Result<TensorInfo<'p>, KernelError> {
        let state = self.state;
        state.tensor(self.args, arg).map(|tensor| self.info(tensor))
    }

    /// A tensor that may be `None`.
    pub fn tensor_opt(&self, arg: usize) -> Result<Option<TensorInfo<'p>>, KernelError> {
        if self.is_none(arg) { Ok(None) } else { self.tensor(arg).map(Some) }
    }

    /// Number of tensors in a list.
    pub fn list_len(&self, arg: usize) -> Result<usize, KernelError> {
        self.state.tensor_list(self.args, arg).map(|span| span.len as usize)
    }

    /// Item `item` of a list of tensors; `None` for a missing one.
    pub fn item(&self, arg: usize, item: usize) -> Result<Option<TensorInfo<'p>>, KernelError> {
        let state = self.state;
        Ok(state.list_tensor(self.args, arg, item)?.map(|tensor| self.info(tensor)))
    }

    /// Returns a constant argument in another layout of so many bytes, such as packed weights. It is there when the method runs:
    /// made of the elements when all instructions are prepared, or by another instruction or method of the program for a layout
    /// of the same name. It is charged to the method, and is not part of [`Run::retained_bytes`](crate::kernel::Run::retained_bytes).
    ///
    /// # Errors
    ///
    /// The argument is not a constant tensor of these elements, or the limits of the method do not leave so many bytes. If `make`
    /// fails, the method is not loaded.
    pub fn share<E: PodElement, T: Any + Send + Sync>(
        &self,
        arg: usize,
        layout: Layout<'_>,
        bytes: usize,
        make: impl Fn(&[E]) -> Result<T, KernelError> + Send + 'static,
    ) -> Result<Shared<T>, KernelError> {
        let constant = self.tensor(arg)?.constant.ok_or_else(|| {
            KernelError::new(ErrorCode::Internal, format!("argument {arg} is not constant, and cannot be shared"))
        })?;
        let elements = constant.as_slice::<E>()?;
        match self.constants {
            Some(constants) => {
                let make = move |bytes: &[u8]| make(bytemuck::try_cast_slice(bytes).map_err(|_| changed())?);
                constants.share(constant.bytes(), layout, bytes, self.retained, make)
            }
            None => {
                self.retained.charge(bytes)?;
                make(elements).map(Shared::alone)
            }
        }
    }

    /// Returns whether the argument is a number (or `None`) that nothing writes.
    pub fn is_fixed(&self, arg: usize) -> bool {
        self.args.get(arg).is_some_and(|&id| !self.variable[id as usize])
    }

    fn fixed<T>(&self, arg: usize, value: Result<T, KernelError>) -> Result<Option<T>, KernelError> {
        // A wrong kind is an error now, even where the number itself is known only later.
        value.map(|value| self.is_fixed(arg).then_some(value))
    }

    /// An integer, if it is fixed.
    pub fn int(&self, arg: usize) -> Result<Option<i64>, KernelError> {
        self.fixed(arg, self.state.int(self.args, arg))
    }

    /// A bool, if it is fixed.
    pub fn bool(&self, arg: usize) -> Result<Option<bool>, KernelError> {
        self.fixed(arg, self.state.bool(self.args, arg))
    }

    /// A floating point number, if it is fixed.
    pub fn double(&self, arg: usize) -> Result<Option<f64>, KernelError> {
        self.fixed(arg, self.state.double(self.args, arg))
    }

    /// A number of any kind, if it is fixed.
    pub fn scalar(&self, arg: usize) -> Result<Option<Scalar>, KernelError> {
        self.fixed(arg, self.state.scalar(self.args, arg))
    }

    /// Returns the kind of number of the argument, fixed or not: kinds never change.
    pub fn scalar_kind(&self, arg: usize) -> Result<Scalar, KernelError> {
        self.state.scalar(self.args, arg)
    }

    /// Text, which never changes.
    pub fn text(&self, arg: usize) -> Result<&'p str, KernelError> {
        let state = self.state;
        state.str(self.args, arg)
    }

    /// A list of integers, if every item is fixed.
    pub fn ints(&self, arg: usize) -> Result<Option<Vec<i64>>, KernelError> {
        let list = self.state.ints(self.args, arg)?;
        Ok(list.fixed(self.variable).then(|| list.iter().collect()))
    }

    /// Asks for scratch memory while the instruction runs. The largest request of a method is what is allocated.
    pub fn scratch(&self, bytes: usize) {
        self.scratch.set(self.scratch.get().max(bytes));
    }

    /// An error unless the call has `count` arguments.
    pub fn expect_len(&self, count: usize) -> Result<(), KernelError> {
        if self.args.len() == count {
            return Ok(());
        }
        Err(KernelError::new(
            ErrorCode::InvalidProgram,
            format!("the call has {} arguments, the operator takes {count}", self.args.len()),
        ))
    }
}
