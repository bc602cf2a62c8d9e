//! The values of a loaded method: flat arrays, no value of which ever changes its storage.
//!
//! Sizes, strides and bounds of all tensors share one array, so that loading thirty thousand values makes a handful
//! of allocations, and resizing a tensor at run time is a write in place.

use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{MAX_RANK, byte_count, write_strides};

use crate::api::room::{OutOfMemory, grow};
use crate::api::storage::Region;

/// Index of a value.
pub type ValueId = u32;

/// One value. Lists name their items by id, so they see every change of them.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// `None`.
    Null,
    /// A boxed integer.
    Int(i64),
    /// A boxed bool.
    Bool(bool),
    /// A boxed double.
    Double(f64),
    /// A tensor, an index of the plan graph.
    Tensor(u32),
    /// Text.
    Str(Span),
    /// Value ids of ints.
    IntList(Span),
    /// Literals.
    DoubleList(Span),
    /// Literals.
    BoolList(Span),
    /// Value ids of tensors.
    TensorList(Span),
    /// Value ids of tensors, [`NONE`] for a missing one.
    OptionalTensorList(Span),
}

impl Value {
    /// Returns the name of the kind of value, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "None",
            Value::Int(_) => "Int",
            Value::Bool(_) => "Bool",
            Value::Double(_) => "Double",
            Value::Tensor(_) => "Tensor",
            Value::Str(_) => "String",
            Value::IntList(_) => "IntList",
            Value::DoubleList(_) => "DoubleList",
            Value::BoolList(_) => "BoolList",
            Value::TensorList(_) => "TensorList",
            Value::OptionalTensorList(_) => "OptionalTensorList",
        }
    }
}

/// The id of a missing tensor in an optional tensor list.
pub const NONE: ValueId = u32::MAX;

/// A range of one of the shared arrays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// First element.
    pub start: u32,
    /// Number of elements.
    pub len: u32,
}

impl Span {
    /// As a range.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

/// Extent to which the sizes of a tensor may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dynamism {
    /// Not at all.
    Static,
    /// Within the sizes of the program, which are upper bounds.
    Bound,
}

/// A tensor's fixed facts and the place of its changing ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TensorState {
    /// Element type.
    pub dtype: ScalarType,
    /// Number of dimensions.
    pub rank: u8,
    /// Extent to which the sizes may change.
    pub dynamism: Dynamism,
    /// True if the data are known at load and never change: a constant of the program or a data file.
    pub constant: bool,
    /// Set by `FreeCall`; reading it is an error until something writes it.
    pub freed: bool,
    /// Start of its sizes in [`State::dims`]; strides and bounds follow, `rank` numbers each.
    dims: u32,
    /// Start of its dim order in [`State::orders`].
    order: u32,
    /// The data, as many bytes as the bounds need.
    pub region: Region,
}

/// All values of a method.
#[derive(Default)]
pub(crate) struct State {
    /// By value id.
    pub values: Vec<Value>,
    /// By tensor index.
    pub tensors: Vec<TensorState>,
    /// Sizes, strides and bounds.
    dims: Vec<usize>,
    /// Dim orders.
    orders: Vec<u8>,
    /// Items of lists of values.
    pub ids: Vec<ValueId>,
    /// Items of double lists.
    pub doubles: Vec<f64>,
    /// Items of bool lists.
    pub bools: Vec<bool>,
    /// All text.
    pub text: String,
}

/// Reason for which a tensor could not take other sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ResizeError {
    /// The number of dimensions differs.
    Rank(usize),
    /// The tensor is static and the sizes differ.
    Static,
    /// More elements than the bound allows.
    Bound,
}

impl State {
    /// Room for that many values.
    pub(crate) fn with_capacity(values: usize) -> Result<Self, OutOfMemory> {
        let mut state = State::default();
        // In exported programs two of five values are tensors, most of rank three or four.
        grow(&mut state.values, values)?;
        grow(&mut state.tensors, values / 2)?;
        grow(&mut state.dims, values.saturating_mul(4))?;
        grow(&mut state.orders, values.saturating_mul(2))?;
        Ok(state)
    }

    /// Makes sure that there is room for one more value, whatever tensor it is.
    #[inline]
    pub(crate) fn grow_by_one(&mut self) -> Result<(), OutOfMemory> {
        grow(&mut self.values, 1)?;
        grow(&mut self.tensors, 1)?;
        grow(&mut self.dims, 3 * MAX_RANK)?;
        grow(&mut self.orders, MAX_RANK)
    }

    /// Bytes that all of this takes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let State { values, tensors, dims, orders, ids, doubles, bools, text } = self;
        let numbers = dims.capacity() * size_of::<usize>() + doubles.capacity() * size_of::<f64>();
        let rows = values.capacity() * size_of::<Value>() + tensors.capacity() * size_of::<TensorState>();
        rows + numbers + ids.capacity() * size_of::<ValueId>() + orders.capacity() + bools.capacity() + text.capacity()
    }

    /// Returns the tensors of a value: of a tensor itself, of a list all that are there.
    pub(crate) fn tensors_of(&self, id: ValueId) -> impl Iterator<Item = u32> {
        let (one, items) = match self.values.get(id as usize) {
            Some(Value::Tensor(tensor)) => (Some(*tensor), Span::default()),
            Some(Value::TensorList(span) | Value::OptionalTensorList(span)) => (None, *span),
            _ => (None, Span::default()),
        };
        let tensor = |item: &ValueId| match self.values.get(*item as usize) {
            Some(Value::Tensor(tensor)) => Some(*tensor),
            _ => None,
        };
        one.into_iter().chain(self.ids[items.range()].iter().filter(|item| **item != NONE).filter_map(tensor))
    }

    /// Adds a tensor whose sizes are its bounds: at most [`MAX_RANK`], and `dim_order` is a permutation of their indices.
    pub fn push_tensor(
        &mut self,
        dtype: ScalarType,
        sizes: &[usize],
        dim_order: &[u8],
        dynamism: Dynamism,
        region: Region,
        constant: bool,
    ) -> u32 {
        let (dims, order, rank) = (self.dims.len(), self.orders.len(), sizes.len());
        let mut numbers = [0; 3 * MAX_RANK];
        let (current, rest) = numbers.split_at_mut(rank);
        let (strides, bounds) = rest.split_at_mut(rank);
        for ((current, bound), &size) in current.iter_mut().zip(bounds).zip(sizes) {
            (*current, *bound) = (size, size);
        }
        write_strides(sizes, dim_order, strides);
        self.dims.extend_from_slice(&numbers[..3 * rank]);
        self.orders.extend_from_slice(dim_order);
        self.tensors.push(TensorState {
            dtype,
            rank: rank as u8,
            dynamism,
            constant,
            freed: false,
            dims: dims as u32,
            order: order as u32,
            region,
        });
        (self.tensors.len() - 1) as u32
    }

    /// Current sizes.
    #[inline]
    pub fn sizes(&self, tensor: &TensorState) -> &[usize] {
        &self.dims[tensor.dims as usize..][..tensor.rank as usize]
    }

    /// Current strides, in elements.
    #[inline]
    pub fn strides(&self, tensor: &TensorState) -> &[usize] {
        &self.dims[tensor.dims as usize + tensor.rank as usize..][..tensor.rank as usize]
    }

    /// The sizes of the program: upper bounds for a dynamic tensor.
    #[inline]
    pub fn bounds(&self, tensor: &TensorState) -> &[usize] {
        &self.dims[tensor.dims as usize + 2 * tensor.rank as usize..][..tensor.rank as usize]
    }

    /// Dimensions from outermost to innermost in memory.
    #[inline]
    pub fn dim_order(&self, tensor: &TensorState) -> &[u8] {
        &self.orders[tensor.order as usize..][..tensor.rank as usize]
    }

    /// Lays a tensor out in another order: a permutation of its dimensions. Its elements take as many bytes as before.
    pub fn reorder(&mut self, tensor: u32, dim_order: &[u8]) {
        let tensor = &self.tensors[tensor as usize];
        let (start, rank) = (tensor.dims as usize, tensor.rank as usize);
        self.orders[tensor.order as usize..][..rank].copy_from_slice(dim_order);
        let (sizes, rest) = self.dims[start..].split_at_mut(rank);
        write_strides(sizes, dim_order, &mut rest[..rank]);
    }

    /// Gives a tensor the sizes of the program again.
    pub fn restore_bounds(&mut self, tensor: u32) {
        let tensor = &self.tensors[tensor as usize];
        let (start, rank) = (tensor.dims as usize, tensor.rank as usize);
        let order = &self.orders[tensor.order as usize..][..rank];
        self.dims.copy_within(start + 2 * rank..start + 3 * rank, start);
        let (sizes, rest) = self.dims[start..].split_at_mut(rank);
        write_strides(sizes, order, &mut rest[..rank]);
    }

    /// Fails if a tensor cannot take these sizes.
    pub fn check_sizes(&self, tensor: u32, sizes: &[usize]) -> Result<(), ResizeError> {
        let tensor = &self.tensors[tensor as usize];
        if sizes == self.sizes(tensor) { Ok(()) } else { self.check_change(tensor, sizes) }
    }

    fn check_change(&self, tensor: &TensorState, sizes: &[usize]) -> Result<(), ResizeError> {
        if sizes.len() != tensor.rank as usize {
            return Err(ResizeError::Rank(sizes.len()));
        }
        if tensor.dynamism == Dynamism::Static {
            return Err(ResizeError::Static);
        }
        let element = tensor.dtype.size().unwrap_or(1);
        let bound = byte_count(self.bounds(tensor), element).unwrap_or(0);
        match byte_count(sizes, element) {
            Some(bytes) if bytes <= bound => Ok(()),
            _ => Err(ResizeError::Bound),
        }
    }

    /// Gives a tensor other sizes and recomputes its strides.
    pub fn resize(&mut self, tensor: u32, sizes: &[usize]) -> Result<(), ResizeError> {
        let tensor = self.tensors[tensor as usize];
        if sizes == self.sizes(&tensor) {
            return Ok(());
        }
        self.check_change(&tensor, sizes)?;
        let rank = tensor.rank as usize;
        let (old, rest) = self.dims[tensor.dims as usize..].split_at_mut(rank);
        old.copy_from_slice(sizes);
        write_strides(old, &self.orders[tensor.order as usize..][..rank], &mut rest[..rank]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(dynamism: Dynamism) -> State {
        let mut state = State::default();
        state.push_tensor(ScalarType::FLOAT, &[4, 3], &[1, 0], dynamism, Region::empty(), false);
        state
    }

    #[test]
    fn strides_follow_the_dim_order() {
        let state = tensor(Dynamism::Static);
        assert_eq!(state.strides(&state.tensors[0]), [1, 4]);
        assert_eq!(state.bounds(&state.tensors[0]), [4, 3]);
    }

    #[test]
    fn resizing_keeps_rank_and_bound() {
        let mut state = tensor(Dynamism::Bound);
        assert_eq!(state.resize(0, &[2, 3]), Ok(()));
        assert_eq!(state.strides(&state.tensors[0]), [1, 2]);
        assert_eq!(state.resize(0, &[6, 2]), Ok(()));
        assert_eq!(state.resize(0, &[0, 3]), Ok(()));
        assert_eq!(state.resize(0, &[5, 3]), Err(ResizeError::Bound));
        assert_eq!(state.resize(0, &[usize::MAX, 2]), Err(ResizeError::Bound));
        assert_eq!(state.resize(0, &[12]), Err(ResizeError::Rank(1)));
        assert_eq!(tensor(Dynamism::Static).resize(0, &[3, 4]), Err(ResizeError::Static));
    }
}
