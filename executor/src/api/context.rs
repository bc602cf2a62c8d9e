//! View of a call that a kernel has while it runs: its arguments, resolved.
//!
//! A call has two phases. First the kernel reads numbers and shapes and resizes its outputs, through `&mut`
//! [`KernelContext`]. Then it takes [`Views`], which freeze the shapes and hand out bytes: inputs as often as wanted,
//! every output once. That the memory of an output is in no other view was proven when the method was loaded; inputs
//! that would overlap were given a copy.

use std::cell::Cell;
use std::ops::Range;

use edgepack_format::finding::ErrorCode;
use edgepack_format::notation::ValueName;

use crate::api::error::KernelError;
use crate::api::room::Retained;
use crate::api::state::{NONE, ResizeError, Span, State, TensorState, Value, ValueId};
use crate::api::storage::Region;
use crate::api::tensor::{Scalar, TensorMut, TensorRef, TensorShape};

/// Treatment of the memory of each argument in one instruction; decided at load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Access {
    /// Bit per argument: a tensor (or list of tensors) the operator writes.
    pub outs: u128,
    /// Bit per argument: an input that starts where an output starts, and the kernel allows it.
    pub in_place: u128,
    /// Bit per argument: an input that is the very tensor of an output, or a list with one. Kernels look at its shape
    /// before they resize their outputs, so it must keep it.
    pub kept: u128,
}

/// The most arguments an instruction may have for a kernel.
pub(crate) const MAX_ARGS: usize = 128;

pub(crate) fn bit(index: usize) -> u128 {
    1u128.checked_shl(index as u32).unwrap_or(0)
}

impl Access {
    /// Of a call of `len` arguments, the first `arity` of them those of the operator's schema, `outs` what it writes. What a
    /// program repeats after them is the result again: no kernel reads it, and marked so it cannot be taken a second time.
    pub fn of(outs: u128, arity: usize, len: usize) -> Self {
        let repeated = (arity..len).fold(0u128, |mask, arg| mask | bit(arg));
        Access { outs: outs & !repeated, in_place: repeated, kept: 0 }
    }

    pub fn is_out(&self, index: usize) -> bool {
        self.outs & bit(index) != 0
    }
}

/// An input that is read from a copy, because its own memory overlaps an output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rerouted {
    /// Index among the tensors of the method.
    pub tensor: u32,
    /// Region of the copy.
    pub copy: Region,
}

/// The arguments of one instruction.
pub struct KernelContext<'m> {
    pub(crate) state: &'m mut State,
    pub(crate) args: &'m [ValueId],
    pub(crate) access: Access,
    /// Sorted by tensor.
    pub(crate) rerouted: &'m [Rerouted],
    pub(crate) scratch: Region,
    /// Bytes that kernels of the method may still retain.
    pub(crate) retained: &'m Cell<u64>,
}

impl<'m> KernelContext<'m> {
    /// Returns what a kernel asks before it retains memory of its own.
    pub fn retained(&self) -> Retained<'m> {
        Retained(self.retained)
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

    /// Returns an integer, or the code of an element type; an error if the argument is of another kind.
    pub fn int(&self, arg: usize) -> Result<i64, KernelError> {
        self.state.int(self.args, arg)
    }

    /// Returns an integer; `None` if the argument is.
    pub fn int_opt(&self, arg: usize) -> Result<Option<i64>, KernelError> {
        if self.is_none(arg) { Ok(None) } else { self.int(arg).map(Some) }
    }

    /// Returns a truth value; an error if the argument is of another kind.
    pub fn bool(&self, arg: usize) -> Result<bool, KernelError> {
        self.state.bool(self.args, arg)
    }

    /// A floating point number; an integer is converted.
    pub fn double(&self, arg: usize) -> Result<f64, KernelError> {
        self.state.double(self.args, arg)
    }

    /// A floating point number or `None`.
    pub fn double_opt(&self, arg: usize) -> Result<Option<f64>, KernelError> {
        if self.is_none(arg) { Ok(None) } else { self.double(arg).map(Some) }
    }

    /// A number of any kind.
    pub fn scalar(&self, arg: usize) -> Result<Scalar, KernelError> {
        self.state.scalar(self.args, arg)
    }

    /// A number of any kind or `None`.
    pub fn scalar_opt(&self, arg: usize) -> Result<Option<Scalar>, KernelError> {
        if self.is_none(arg) { Ok(None) } else { self.scalar(arg).map(Some) }
    }

    /// Text.
    pub fn text(&self, arg: usize) -> Result<&str, KernelError> {
        self.state.str(self.args, arg)
    }

    /// Text or `None`.
    pub fn text_opt(&self, arg: usize) -> Result<Option<&str>, KernelError> {
        if self.is_none(arg) { Ok(None) } else { self.text(arg).map(Some) }
    }

    /// A list of integers, each read now.
    pub fn ints(&self, arg: usize) -> Result<Ints<'_>, KernelError> {
        self.state.ints(self.args, arg)
    }

    /// A list of integers or `None`.
    pub fn ints_opt(&self, arg: usize) -> Result<Option<Ints<'_>>, KernelError> {
        if self.is_none(arg) { Ok(None) } else { self.ints(arg).map(Some) }
    }

    /// A list of doubles.
    pub fn doubles(&self, arg: usize) -> Result<&[f64], KernelError> {
        self.state.doubles(self.args, arg)
    }

    /// A list of bools.
    pub fn bools(&self, arg: usize) -> Result<&[bool], KernelError> {
        self.state.bools(self.args, arg)
    }

    /// Shape and element type of a tensor, input or output.
    pub fn meta(&self, arg: usize) -> Result<TensorShape<'_>, KernelError> {
        Ok(self.state.meta(self.state.tensor(self.args, arg)?))
    }

    /// Shape and element type of a tensor that may be `None`.
    pub fn meta_opt(&self, arg: usize) -> Result<Option<TensorShape<'_>>, KernelError> {
        if self.is_none(arg) { Ok(None) } else { self.meta(arg).map(Some) }
    }

    /// Number of tensors in a list (optional or not).
    pub fn list_len(&self, arg: usize) -> Result<usize, KernelError> {
        self.state.tensor_list(self.args, arg).map(|span| span.len as usize)
    }

    /// Shape and element type of item `item` of a list; `None` for a missing one.
    pub fn list_meta(&self, arg: usize, item: usize) -> Result<Option<TensorShape<'_>>, KernelError> {
        Ok(self.state.list_tensor(self.args, arg, item)?.map(|tensor| self.state.meta(tensor)))
    }

    /// Gives an output other sizes, within its bounds.
    pub fn resize(&mut self, arg: usize, sizes: &[usize]) -> Result<(), KernelError> {
        let tensor = self.state.tensor_index(self.args, arg)?;
        self.resize_tensor(tensor, sizes)
    }

    /// Gives item `item` of an output list other sizes, within its bounds.
    pub fn resize_item(&mut self, arg: usize, item: usize, sizes: &[usize]) -> Result<(), KernelError> {
        match self.state.list_tensor_index(self.args, arg, item)? {
            Some(tensor) => self.resize_tensor(tensor, sizes),
            None => Err(KernelError::argument(format!("argument {arg}: output {item} of the list is None"))),
        }
    }

    fn resize_tensor(&mut self, tensor: u32, sizes: &[usize]) -> Result<(), KernelError> {
        if self.access.kept != 0 && self.is_kept(tensor) {
            let now = self.state.sizes(&self.state.tensors[tensor as usize]);
            return match now == sizes {
                true => Ok(()),
                false => Err(KernelError::argument(format!(
                    "the output needs sizes {sizes:?}, but it is an input too, with sizes {now:?}"
                ))),
            };
        }
        self.state.resize(tensor, sizes).map_err(|error| {
            let tensor = &self.state.tensors[tensor as usize];
            let (now, bound) = (self.state.sizes(tensor), self.state.bounds(tensor));
            let why = match error {
                ResizeError::Rank(_) => format!("has {} dimensions", tensor.rank),
                ResizeError::Static => format!("is static with sizes {now:?}"),
                ResizeError::Bound => format!("holds at most {bound:?}"),
            };
            KernelError::unsupported(format!("the output needs sizes {sizes:?}, but {why}"))
        })
    }

    /// Returns whether an input of this call that must keep its shape is this tensor.
    fn is_kept(&self, tensor: u32) -> bool {
        let kept = self.args.iter().enumerate().filter(|(arg, _)| self.access.kept & bit(*arg) != 0);
        kept.into_iter().any(|(_, id)| self.state.tensors_of(*id).any(|of| of == tensor))
    }

    /// Writes an integer result.
    pub fn set_int(&mut self, arg: usize, value: i64) -> Result<(), KernelError> {
        self.set(arg, Value::Int(value))
    }

    /// Writes a floating point result.
    pub fn set_double(&mut self, arg: usize, value: f64) -> Result<(), KernelError> {
        self.set(arg, Value::Double(value))
    }

    /// Writes a bool result.
    pub fn set_bool(&mut self, arg: usize, value: bool) -> Result<(), KernelError> {
        self.set(arg, Value::Bool(value))
    }

    fn set(&mut self, arg: usize, value: Value) -> Result<(), KernelError> {
        let id = arg_id(self.args, arg)?;
        let slot = &mut self.state.values[id as usize];
        if !slot.is_number() {
            let message =
                format!("the result is an {}, but {id} is a {}", value.kind(), slot.kind(), id = ValueName(id));
            return Err(KernelError::kind(message));
        }
        // Exporters box a placeholder of any numeric kind where a number is computed.
        *slot = value;
        Ok(())
    }

    /// Returns whether two tensors start at the same byte of memory.
    pub fn same_storage(&self, a: usize, b: usize) -> Result<bool, KernelError> {
        let (a, b) = (self.state.tensor(self.args, a)?, self.state.tensor(self.args, b)?);
        Ok(a.region.same_start(&b.region))
    }

    /// Marks the tensors that were written as no longer freed.
    pub(crate) fn take_back(&mut self) {
        for arg in (0..self.args.len()).filter(|&arg| self.access.is_out(arg)) {
            match self.state.values[self.args[arg] as usize] {
                Value::Tensor(tensor) => self.state.tensors[tensor as usize].freed = false,
                Value::TensorList(span) => {
                    for item in span.range() {
                        if let Value::Tensor(tensor) = self.state.values[self.state.ids[item] as usize] {
                            self.state.tensors[tensor as usize].freed = false;
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// The tensors the instruction wrote, to look at after it has run.
    pub(crate) fn written(&self) -> (Vec<TensorRef<'_>>, Vec<Range<usize>>) {
        let (mut tensors, mut lists) = (Vec::new(), Vec::new());
        for (_, &id) in self.args.iter().enumerate().filter(|(arg, _)| self.access.is_out(*arg)) {
            let start = tensors.len();
            tensors.extend(self.state.tensors_of(id).map(|tensor| {
                let tensor = &self.state.tensors[tensor as usize];
                let meta = self.state.meta(tensor);
                // SAFETY: the instruction is over, so no output is in use; the context borrows the method.
                TensorRef::new(meta, unsafe { tensor.region.prefix(meta.byte_len()).bytes() })
            }));
            if matches!(self.state.values[id as usize], Value::TensorList(_) | Value::OptionalTensorList(_)) {
                lists.push(start..tensors.len());
            }
        }
        (tensors, lists)
    }

    /// The shapes of the tensors the instruction read.
    pub(crate) fn read(&self) -> Vec<TensorShape<'_>> {
        let ins = self.args.iter().enumerate().filter(|(arg, _)| !self.access.is_out(*arg));
        let tensors = ins.flat_map(|(_, &id)| self.state.tensors_of(id));
        tensors.map(|tensor| self.state.meta(&self.state.tensors[tensor as usize])).collect()
    }

    /// Freezes shapes and gives access to bytes.
    pub fn views(&mut self) -> Views<'_> {
        Views { cx: self, taken: Cell::new(0), scratch_taken: Cell::new(false) }
    }
}

/// Access to the bytes of a call's tensors. Inputs may be read any number of times, an output is handed out once.
pub struct Views<'v> {
    cx: &'v KernelContext<'v>,
    taken: Cell<u128>,
    scratch_taken: Cell<bool>,
}

impl<'v> Views<'v> {
    /// The arguments that are no tensors, and shapes.
    pub fn context(&self) -> &'v KernelContext<'v> {
        self.cx
    }

    /// Views an input; without bytes where the operator writes it in place, an error if it was freed.
    #[inline]
    pub fn tensor(&self, arg: usize) -> Result<TensorRef<'v>, KernelError> {
        let index = self.cx.state.tensor_index(self.cx.args, arg)?;
        self.read(arg, index)
    }

    /// An input that may be `None`.
    pub fn tensor_opt(&self, arg: usize) -> Result<Option<TensorRef<'v>>, KernelError> {
        if self.cx.is_none(arg) { Ok(None) } else { self.tensor(arg).map(Some) }
    }

    /// Item `item` of a list of inputs; `None` for a missing one.
    pub fn item(&self, arg: usize, item: usize) -> Result<Option<TensorRef<'v>>, KernelError> {
        let index = self.cx.state.list_tensor_index(self.cx.args, arg, item)?;
        index.map(|index| self.read(arg, index)).transpose()
    }

    fn read(&self, arg: usize, index: u32) -> Result<TensorRef<'v>, KernelError> {
        let cx = self.cx;
        let tensor = &cx.state.tensors[index as usize];
        let meta = cx.state.meta(tensor);
        if (cx.access.outs | cx.access.in_place) & bit(arg) != 0 {
            return Ok(TensorRef::in_place(meta));
        }
        if tensor.freed {
            return Err(KernelError::new(
                ErrorCode::InvalidState,
                format!("argument {arg} was freed and not written since"),
            ));
        }
        let region = match cx.rerouted.binary_search_by_key(&index, |rerouted| rerouted.tensor) {
            Ok(at) => cx.rerouted[at].copy,
            Err(_) => tensor.region,
        };
        let region = whole(region, &meta)?;
        // SAFETY: the memory is alive while the method is borrowed, and no output of this instruction overlaps it:
        // where one does, the plan marked the argument `in_place` or rerouted it to a copy.
        Ok(TensorRef::new(meta, unsafe { region.bytes() }))
    }

    /// An output. A second request for the same one is an error.
    #[inline]
    pub fn out(&self, arg: usize) -> Result<TensorMut<'v>, KernelError> {
        self.take(arg)?;
        let index = self.cx.state.tensor_index(self.cx.args, arg)?;
        self.write(arg, index)
    }

    /// All tensors of an output list, in order.
    pub fn out_list(
        &self,
        arg: usize,
    ) -> Result<impl ExactSizeIterator<Item = Result<TensorMut<'v>, KernelError>> + '_, KernelError> {
        self.take(arg)?;
        let span = self.cx.state.tensor_list(self.cx.args, arg)?;
        Ok((0..span.len as usize).map(move |item| match self.cx.state.list_tensor_index(self.cx.args, arg, item)? {
            Some(index) => self.write(arg, index),
            None => Err(KernelError::argument(format!("argument {arg}: output {item} of the list is None"))),
        }))
    }

    fn take(&self, arg: usize) -> Result<(), KernelError> {
        let bit = bit(arg);
        if self.cx.access.outs & bit == 0 {
            return Err(KernelError::new(
                ErrorCode::Internal,
                format!("argument {arg} is not an output of this operator"),
            ));
        }
        if self.taken.get() & bit != 0 {
            return Err(KernelError::new(ErrorCode::Internal, format!("output {arg} was taken before")));
        }
        self.taken.set(self.taken.get() | bit);
        Ok(())
    }

    fn write(&self, arg: usize, index: u32) -> Result<TensorMut<'v>, KernelError> {
        let tensor = &self.cx.state.tensors[index as usize];
        if !tensor.region.is_writable() {
            return Err(KernelError::argument(format!("argument {arg} is an output, but its memory is read-only")));
        }
        let meta = self.cx.state.meta(tensor);
        let region = whole(tensor.region, &meta)?;
        // SAFETY: alive as above. Outputs of one instruction do not overlap each other (the plan refuses it), every
        // output is handed out once (`taken`; the items of a list are distinct by the same rule), and inputs that
        // overlap it are without data or read from a copy.
        Ok(TensorMut::new(meta, unsafe { region.bytes_mut() }))
    }

    /// The scratch memory asked for with [`Prepare::scratch`](crate::api::prepare::Prepare::scratch), 64-byte aligned, of
    /// any content. Handed out once per call.
    pub fn scratch(&self) -> Result<&'v mut [u8], KernelError> {
        if self.scratch_taken.replace(true) {
            return Err(KernelError::new(ErrorCode::Internal, "scratch was taken before"));
        }
        // SAFETY: the scratch block belongs to the method, is part of no tensor, and is handed out once per call.
        Ok(unsafe { self.cx.scratch.bytes_mut() })
    }
}

/// The region of exactly the tensor's current bytes.
fn whole(region: Region, meta: &TensorShape<'_>) -> Result<Region, KernelError> {
    let bytes = meta.byte_len();
    if region.len() < bytes {
        return Err(KernelError::new(
            ErrorCode::InvalidState,
            format!("a tensor of {bytes} bytes has only {} bytes of memory", region.len()),
        ));
    }
    Ok(region.prefix(bytes))
}

/// A list of integers whose items are values of the program.
#[derive(Clone, Copy)]
pub struct Ints<'v> {
    state: &'v State,
    ids: &'v [ValueId],
}

impl Ints<'_> {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Item `index`, if there is one.
    pub fn at(&self, index: usize) -> Option<i64> {
        // That every item is an Int was checked when the list was made.
        match self.state.values[*self.ids.get(index)? as usize] {
            Value::Int(value) => Some(value),
            _ => None,
        }
    }

    /// Returns whether none of the items is ever written.
    pub(crate) fn fixed(&self, variable: &[bool]) -> bool {
        self.ids.iter().all(|&id| !variable[id as usize])
    }

    /// The items as they are now.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = i64> + '_ {
        (0..self.len()).map(|index| self.at(index).unwrap_or_default())
    }
}

#[cold]
fn wrong_kind(arg: usize, want: &str, have: &Value) -> KernelError {
    KernelError::kind(format!("argument {arg} is a {}, the operator wants a {want}", have.kind()))
}

fn arg_id(args: &[ValueId], arg: usize) -> Result<ValueId, KernelError> {
    args.get(arg).copied().ok_or_else(|| {
        KernelError::new(ErrorCode::InvalidProgram, format!("argument {arg} is missing: the call has {}", args.len()))
    })
}

/// Typed access to the arguments of an instruction; shared by both phases of a kernel.
impl State {
    #[inline]
    pub(crate) fn value(&self, args: &[ValueId], arg: usize) -> Result<&Value, KernelError> {
        // Ids were checked at load.
        Ok(&self.values[arg_id(args, arg)? as usize])
    }

    #[inline]
    pub(crate) fn tensor_index(&self, args: &[ValueId], arg: usize) -> Result<u32, KernelError> {
        match self.value(args, arg)? {
            Value::Tensor(index) => Ok(*index),
            other => Err(wrong_kind(arg, "Tensor", other)),
        }
    }

    #[inline]
    pub(crate) fn tensor(&self, args: &[ValueId], arg: usize) -> Result<&TensorState, KernelError> {
        self.tensor_index(args, arg).map(|index| &self.tensors[index as usize])
    }

    #[inline]
    pub(crate) fn meta(&self, tensor: &TensorState) -> TensorShape<'_> {
        TensorShape {
            dtype: tensor.dtype,
            sizes: self.sizes(tensor),
            strides: self.strides(tensor),
            dim_order: self.dim_order(tensor),
        }
    }

    pub(crate) fn tensor_list(&self, args: &[ValueId], arg: usize) -> Result<Span, KernelError> {
        match self.value(args, arg)? {
            Value::TensorList(span) | Value::OptionalTensorList(span) => Ok(*span),
            other => Err(wrong_kind(arg, "TensorList", other)),
        }
    }

    pub(crate) fn list_tensor_index(
        &self,
        args: &[ValueId],
        arg: usize,
        item: usize,
    ) -> Result<Option<u32>, KernelError> {
        let span = self.tensor_list(args, arg)?;
        match self.ids[span.range()].get(item) {
            None => Err(KernelError::argument(format!("argument {arg}: item {item} of a list of {}", span.len))),
            Some(&NONE) => Ok(None),
            Some(&id) => match &self.values[id as usize] {
                Value::Tensor(index) => Ok(Some(*index)),
                Value::Null => Ok(None),
                other => Err(wrong_kind(arg, "Tensor", other)),
            },
        }
    }

    pub(crate) fn list_tensor(
        &self,
        args: &[ValueId],
        arg: usize,
        item: usize,
    ) -> Result<Option<&TensorState>, KernelError> {
        Ok(self.list_tensor_index(args, arg, item)?.map(|index| &self.tensors[index as usize]))
    }

    pub(crate) fn int(&self, args: &[ValueId], arg: usize) -> Result<i64, KernelError> {
        match self.value(args, arg)? {
            Value::Int(value) => Ok(*value),
            other => Err(wrong_kind(arg, "Int", other)),
        }
    }

    pub(crate) fn bool(&self, args: &[ValueId], arg: usize) -> Result<bool, KernelError> {
        match self.value(args, arg)? {
            Value::Bool(value) => Ok(*value),
            other => Err(wrong_kind(arg, "Bool", other)),
        }
    }

    pub(crate) fn double(&self, args: &[ValueId], arg: usize) -> Result<f64, KernelError> {
        match self.value(args, arg)? {
            Value::Double(value) => Ok(*value),
            Value::Int(value) => Ok(*value as f64),
            other => Err(wrong_kind(arg, "Double", other)),
        }
    }

    pub(crate) fn scalar(&self, args: &[ValueId], arg: usize) -> Result<Scalar, KernelError> {
        match self.value(args, arg)? {
            Value::Int(value) => Ok(Scalar::Int(*value)),
            Value::Double(value) => Ok(Scalar::Double(*value)),
            Value::Bool(value) => Ok(Scalar::Bool(*value)),
            other => Err(wrong_kind(arg, "number", other)),
        }
    }

    pub(crate) fn str(&self, args: &[ValueId], arg: usize) -> Result<&str, KernelError> {
        match self.value(args, arg)? {
            Value::Str(span) => Ok(&self.text[span.range()]),
            other => Err(wrong_kind(arg, "String", other)),
        }
    }

    pub(crate) fn ints(&self, args: &[ValueId], arg: usize) -> Result<Ints<'_>, KernelError> {
        match self.value(args, arg)? {
            Value::IntList(span) => {
                let ids = &self.ids[span.range()];
                // Numbers that are computed may have changed their kind since loading.
                match ids.iter().find(|&&id| !matches!(self.values[id as usize], Value::Int(_))) {
                    None => Ok(Ints { state: self, ids }),
                    Some(&id) => Err(KernelError::kind(format!(
                        "argument {arg} is a list with {id}, a {}, in it",
                        self.values[id as usize].kind(),
                        id = ValueName(id)
                    ))),
                }
            }
            other => Err(wrong_kind(arg, "IntList", other)),
        }
    }

    pub(crate) fn doubles(&self, args: &[ValueId], arg: usize) -> Result<&[f64], KernelError> {
        match self.value(args, arg)? {
            Value::DoubleList(span) => Ok(&self.doubles[span.range()]),
            other => Err(wrong_kind(arg, "DoubleList", other)),
        }
    }

    pub(crate) fn bools(&self, args: &[ValueId], arg: usize) -> Result<&[bool], KernelError> {
        match self.value(args, arg)? {
            Value::BoolList(span) => Ok(&self.bools[span.range()]),
            other => Err(wrong_kind(arg, "BoolList", other)),
        }
    }
}
