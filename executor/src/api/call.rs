//! One operator called by itself, without a program: for tests of kernels, and for constant folding by tools.
//!
//! ```
//! use edgepack_executor::call::{Arg, call};
//! use edgepack_executor::kernel::{Alias, Kernel, KernelContext, Run};
//! use edgepack_format::scalar::ScalarType;
//!
//! static DOUBLE: Kernel = Kernel {
//!     name: "my::double.out",
//!     schema: "(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
//!     alias: Alias::Disjoint,
//!     is_pure: true,
//!     prepare: |_| {
//!         Ok(Box::new(|cx: &mut KernelContext<'_>| {
//!             let views = cx.views();
//!             let input = views.tensor(0)?.as_slice::<f32>()?;
//!             for (out, x) in views.out(1)?.as_mut_slice::<f32>()?.iter_mut().zip(input) {
//!                 *out = 2.0 * x;
//!             }
//!             Ok(())
//!         }) as Box<dyn Run>)
//!     },
//! };
//!
//! let outs = call(&DOUBLE, &[Arg::tensor(&[2], &[1.0f32, 2.0]), Arg::out(ScalarType::FLOAT, &[2])]).unwrap();
//! assert_eq!(outs[0].as_slice::<f32>().unwrap(), [2.0, 4.0]);
//! ```

use std::cell::Cell;

use edgepack_format::finding::ErrorCode;
use edgepack_format::operators::{Schema, Trailing};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{Dims, TensorBuf, TensorLayout};

use crate::api::context::{Access, KernelContext, bit};
use crate::api::error::KernelError;
use crate::api::kernel::Operator;
use crate::api::prepare::Prepare;
use crate::api::state::{Dynamism, NONE, Span, State, Value, ValueId};
use crate::api::storage::{Block, Region};
use crate::api::tensor::{PodElement, Scalar};

/// An argument of a single call.
#[derive(Clone, Debug)]
pub enum Arg {
    /// `None`.
    None,
    /// Integer, double or bool, as the schema asks for it.
    Scalar(Scalar),
    /// Text.
    Text(String),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A list of doubles.
    Doubles(Vec<f64>),
    /// A list of bools.
    Bools(Vec<bool>),
    /// A tensor; an output if the operator writes it.
    Tensor(OwnedTensor),
    /// A list of tensors.
    Tensors(Vec<Option<OwnedTensor>>),
}

impl Arg {
    /// A contiguous tensor. Panics if the values are not as many as the sizes say.
    pub fn tensor<T: PodElement>(sizes: &[usize], values: &[T]) -> Arg {
        Arg::Tensor(OwnedTensor::new(sizes, values))
    }

    /// A contiguous tensor of zeros, to be written.
    pub fn out(dtype: ScalarType, sizes: &[usize]) -> Arg {
        Arg::Tensor(OwnedTensor::zeros(dtype, sizes))
    }

    /// Makes an argument for `int`, or for an element type, memory format or layout by its code.
    pub fn int(value: i64) -> Arg {
        Arg::Scalar(Scalar::Int(value))
    }

    /// Makes an argument for `float`.
    pub fn double(value: f64) -> Arg {
        Arg::Scalar(Scalar::Double(value))
    }

    /// Makes an argument for `bool`.
    pub fn bool(value: bool) -> Arg {
        Arg::Scalar(Scalar::Bool(value))
    }
}

/// A tensor with its own bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedTensor {
    tensor: TensorBuf,
    dynamic: bool,
    constant: bool,
}

impl OwnedTensor {
    /// A contiguous tensor. Panics if the values are not as many as the sizes say.
    pub fn new<T: PodElement>(sizes: &[usize], values: &[T]) -> Self {
        let tensor = Self::from_bytes(T::SCALAR_TYPE, sizes, bytemuck::cast_slice(values).to_vec());
        tensor.expect("as many values as the sizes say")
    }

    /// A contiguous tensor of zeros. Panics if the sizes are no tensor's.
    pub fn zeros(dtype: ScalarType, sizes: &[usize]) -> Self {
        let layout = TensorLayout::contiguous(dtype, sizes).expect("sizes of a tensor");
        let bytes = vec![0; layout.byte_len()];
        Self::of(layout, bytes).expect("as many bytes as the layout says")
    }

    /// A contiguous tensor of these bytes, or `None` if they are not as many as its layout says.
    pub fn from_bytes(dtype: ScalarType, sizes: &[usize], bytes: Vec<u8>) -> Option<Self> {
        Self::of(TensorLayout::contiguous(dtype, sizes).ok()?, bytes)
    }

    fn of(layout: TensorLayout, bytes: Vec<u8>) -> Option<Self> {
        let tensor = TensorBuf::from_bytes(layout, bytes).ok()?;
        Some(OwnedTensor { tensor, dynamic: false, constant: false })
    }

    /// Returns the tensor's bytes under another dim order. Panics if it is not a permutation.
    pub fn with_dim_order(mut self, dim_order: &[u8]) -> Self {
        let layout = TensorLayout::new(self.layout().scalar_type(), self.layout().sizes(), dim_order);
        let tensor = TensorBuf::from_bytes(layout.expect("a dim order"), self.tensor.into_data());
        self.tensor = tensor.expect("as many bytes as before");
        self
    }

    /// Returns the tensor with sizes that are upper bounds.
    pub fn dynamic(mut self) -> Self {
        self.dynamic = true;
        self
    }

    /// Returns the tensor as a constant: data that an operator may read, and hold in another form, when it is prepared.
    pub fn constant(mut self) -> Self {
        self.constant = true;
        self
    }

    /// Shape and element type.
    pub fn layout(&self) -> &TensorLayout {
        self.tensor.layout()
    }

    /// The bytes in memory order.
    pub fn bytes(&self) -> &[u8] {
        self.tensor.data()
    }

    /// The elements in memory order, copied out.
    pub fn as_slice<T: PodElement>(&self) -> Option<Vec<T>> {
        (self.layout().scalar_type() == T::SCALAR_TYPE).then(|| bytemuck::pod_collect_to_vec(self.bytes()))
    }
}

/// Calls one operator. The arguments are those of its schema; what a program repeats after them is added here.
/// Returns the tensors of all output arguments, in order, with the sizes they have after the call.
pub fn call(operator: &dyn Operator, args: &[Arg]) -> Result<Vec<OwnedTensor>, KernelError> {
    let text = format!("{}{}", operator.name(), operator.schema());
    let schema = Schema::parse(&text).map_err(|error| {
        KernelError::new(ErrorCode::Internal, format!("the schema of {}: {error}", operator.name()))
    })?;
    let mut bench = Bench::default();
    let mut ids: Vec<ValueId> = args.iter().map(|arg| bench.push(arg)).collect();
    let arity = ids.len();
    let mutated = schema.mutated().fold(0, |mask, index| mask | bit(index));
    let outs: Vec<usize> = (0..arity).filter(|&index| mutated & bit(index) != 0).collect();
    if schema.trailing() != Trailing::Nothing {
        ids.extend(outs.first().map(|&out| ids[out]));
    }
    let access = Access::of(mutated, arity, ids.len());

    let variable = vec![false; bench.state.values.len()];
    let most = bench.most_memory();
    let retained = Cell::new(most as u64);
    let prepare = Prepare::new(&bench.state, &ids, &variable, true, &retained);
    let mut run = operator.prepare(&prepare)?;
    let wanted = prepare.scratch.get();
    if wanted > most {
        let message = format!("{wanted} bytes of scratch memory, arguments of these sizes account for {most}");
        return Err(KernelError::new(ErrorCode::MemoryAllocationFailed, message));
    }
    let scratch = Block::zeroed(wanted).ok_or_else(out_of_memory)?;
    let whole = scratch.region(0, scratch.len()).unwrap_or_else(Region::empty);
    run.run(&mut KernelContext {
        state: &mut bench.state,
        args: &ids,
        access,
        rerouted: &[],
        scratch: whole,
        retained: &retained,
    })?;

    let mut results = Vec::new();
    for out in outs {
        let tensors: Vec<u32> = match bench.state.values[ids[out] as usize] {
            Value::Tensor(index) => vec![index],
            Value::TensorList(span) => {
                bench.state.ids[span.range()].iter().filter_map(|&id| bench.tensor(id)).collect()
            }
            _ => continue,
        };
        results.extend(tensors.into_iter().map(|index| bench.read(index)));
    }
    Ok(results)
}

/// Calls an operator that writes its result to a number: the prim operators, whose last argument is the result.
pub fn call_scalar(operator: &dyn Operator, args: &[Arg], result: Scalar) -> Result<Scalar, KernelError> {
    let mut bench = Bench::default();
    let mut ids: Vec<ValueId> = args.iter().map(|arg| bench.push(arg)).collect();
    ids.push(bench.push(&Arg::Scalar(result)));
    let mut variable = vec![false; bench.state.values.len()];
    if let Some(last) = variable.last_mut() {
        *last = true;
    }
    let retained = Cell::new(bench.most_memory() as u64);
    let prepare = Prepare::new(&bench.state, &ids, &variable, true, &retained);
    let mut run = operator.prepare(&prepare)?;
    let (access, scratch) = (Access::default(), Region::empty());
    run.run(&mut KernelContext {
        state: &mut bench.state,
        args: &ids,
        access,
        rerouted: &[],
        scratch,
        retained: &retained,
    })?;
    bench.state.scalar(&ids, ids.len() - 1)
}

fn out_of_memory() -> KernelError {
    KernelError::new(ErrorCode::MemoryAllocationFailed, "the scratch memory cannot be laid out")
}

/// A state with the blocks its tensors live in.
#[derive(Default)]
struct Bench {
    state: State,
    blocks: Vec<Block>,
}

impl Bench {
    fn push(&mut self, arg: &Arg) -> ValueId {
        let value = match arg {
            Arg::None => Value::Null,
            Arg::Scalar(Scalar::Int(value)) => Value::Int(*value),
            Arg::Scalar(Scalar::Double(value)) => Value::Double(*value),
            Arg::Scalar(Scalar::Bool(value)) => Value::Bool(*value),
            Arg::Text(text) => {
                let start = self.state.text.len() as u32;
                self.state.text.push_str(text);
                Value::Str(Span { start, len: text.len() as u32 })
            }
            Arg::Ints(ints) => {
                let ids: Vec<ValueId> = ints.iter().map(|&value| self.push(&Arg::int(value))).collect();
                Value::IntList(self.span(&ids))
            }
            Arg::Doubles(doubles) => {
                let start = self.state.doubles.len() as u32;
                self.state.doubles.extend(doubles);
                Value::DoubleList(Span { start, len: doubles.len() as u32 })
            }
            Arg::Bools(bools) => {
                let start = self.state.bools.len() as u32;
                self.state.bools.extend(bools);
                Value::BoolList(Span { start, len: bools.len() as u32 })
            }
            Arg::Tensor(tensor) => Value::Tensor(self.push_tensor(tensor)),
            Arg::Tensors(tensors) => {
                let all = tensors.iter().all(Option::is_some);
                let ids: Vec<ValueId> = tensors
                    .iter()
                    .map(|tensor| tensor.as_ref().map_or(NONE, |tensor| self.push(&Arg::Tensor(tensor.clone()))))
                    .collect();
                let span = self.span(&ids);
                if all { Value::TensorList(span) } else { Value::OptionalTensorList(span) }
            }
        };
        self.state.values.push(value);
        (self.state.values.len() - 1) as ValueId
    }

    /// The most memory that a call retains, and the most scratch memory: empty tensors can have enormous sizes, which no
    /// memory is needed for.
    fn most_memory(&self) -> usize {
        const LEAST: usize = 32 << 20;
        let bytes = self.blocks.iter().fold(0usize, |all, block| all.saturating_add(block.len()));
        bytes.saturating_mul(64).saturating_add(LEAST)
    }

    fn span(&mut self, ids: &[ValueId]) -> Span {
        let start = self.state.ids.len() as u32;
        self.state.ids.extend(ids);
        Span { start, len: ids.len() as u32 }
    }

    fn push_tensor(&mut self, tensor: &OwnedTensor) -> u32 {
        let mut block = Block::zeroed(tensor.bytes().len()).expect("a test tensor fits memory");
        block.bytes_mut().copy_from_slice(tensor.bytes());
        let region = block.region(0, block.len()).unwrap_or_else(Region::empty);
        self.blocks.push(block);
        let layout = tensor.layout();
        let dynamism = if tensor.dynamic { Dynamism::Bound } else { Dynamism::Static };
        let (sizes, order) = (layout.sizes(), layout.dim_order());
        self.state.push_tensor(layout.scalar_type(), sizes, order, dynamism, region, tensor.constant)
    }

    fn tensor(&self, id: ValueId) -> Option<u32> {
        match self.state.values.get(id as usize)? {
            Value::Tensor(index) => Some(*index),
            _ => None,
        }
    }

    fn read(&self, index: u32) -> OwnedTensor {
        let tensor = &self.state.tensors[index as usize];
        let meta = self.state.meta(tensor);
        let order: Dims<u8> = Dims::from_slice(meta.dim_order).unwrap_or_default();
        let layout = TensorLayout::new(meta.dtype, meta.sizes, &order).expect("a tensor of the state");
        // SAFETY: the block is owned by `self`, and no view is alive between calls.
        let bytes = unsafe { tensor.region.prefix(layout.byte_len()).bytes() }.to_vec();
        OwnedTensor::of(layout, bytes).expect("as many bytes as the layout says")
    }
}
