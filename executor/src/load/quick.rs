//! Values and calls as exporters write them, read in one look each.
//!
//! What is not plainly good, or not of the common kinds, is `None` and read by [`super::values`] and
//! [`super::instructions`], which say what is wrong with it.
//!
//! Invariant: what is read here is what they would have made of it; what is declined leaves no trace.

use edgepack_format::layout::Layouts;
use edgepack_format::pte::{AllocationDetails, Bool, EValue, Instruction, Int, IntList, KernelCall, Tensor};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{MAX_RANK, byte_count, is_permutation};

use super::memory::Places;
use super::{instructions, values::tag};
use crate::context::MAX_ARGS;
use crate::graph::{Graph, InstructionKind, Memory};
use crate::state::{Dynamism, Span, State, Value};
use crate::storage::Region;

// Fields by their place in the schemas below.
const TAG: usize = 0;
const VALUE: usize = 1;
const SCALAR_TYPE: usize = 0;
const STORAGE_OFFSET: usize = 1;
const SIZES: usize = 2;
const DIM_ORDER: usize = 3;
const DATA_BUFFER_IDX: usize = 4;
const ALLOCATION: usize = 5;
const DYNAMISM: usize = 6;
const EXTRA: usize = 7;

/// The layouts of one file.
pub(super) struct Quick<'a> {
    bytes: &'a [u8],
    evalue: Layouts<2, 16>,
    tensor: Layouts<8, 16>,
    allocation: Layouts<3, 4>,
    /// `Int` and `Double` alike: eight bytes in the first slot.
    number: Layouts<1, 8>,
    bool: Layouts<1, 4>,
    /// Every list has its items in the first slot.
    list: Layouts<1, 4>,
}

impl<'a> Quick<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Quick {
            bytes,
            evalue: Layouts::new([(EValue::VAL.index, 1), (EValue::VAL.index + 1, 4)]),
            tensor: Layouts::new([
                (Tensor::SCALAR_TYPE.index, 1),
                (Tensor::STORAGE_OFFSET.index, 4),
                (Tensor::SIZES.index, 4),
                (Tensor::DIM_ORDER.index, 4),
                (Tensor::DATA_BUFFER_IDX.index, 4),
                (Tensor::ALLOCATION_INFO.index, 4),
                (Tensor::SHAPE_DYNAMISM.index, 1),
                (Tensor::EXTRA_TENSOR_INFO.index, 4),
            ]),
            allocation: Layouts::new([
                (AllocationDetails::MEMORY_ID.index, 4),
                (AllocationDetails::MEMORY_OFFSET_LOW.index, 4),
                (AllocationDetails::MEMORY_OFFSET_HIGH.index, 4),
            ]),
            number: Layouts::new([(Int::INT_VAL.index, 8)]),
            bool: Layouts::new([(Bool::BOOL_VAL.index, 1)]),
            list: Layouts::new([(IntList::ITEMS.index, 4)]),
        }
    }

    /// The value whose table is at `pos`. Lists are read if all their items were read before them.
    #[inline]
    pub fn value(&mut self, pos: usize, state: &mut State, memory: &Memory, places: &Places<'_>) -> Option<Value> {
        let bytes = self.bytes;
        let value = self.evalue.row(bytes, pos)?;
        let kind = value.u8(TAG);
        let (target, _) = value.target(bytes, VALUE)?;
        Some(match kind {
            tag::TENSOR => Value::Tensor(self.tensor(target, state, memory, places)?),
            tag::INT => Value::Int(self.number.row(bytes, target)?.u64(0) as i64),
            tag::DOUBLE => Value::Double(f64::from_bits(self.number.row(bytes, target)?.u64(0))),
            tag::BOOL => Value::Bool(self.bool.row(bytes, target)?.u8(0) != 0),
            tag::INT_LIST => {
                let items = self.list.row(bytes, target)?.vector(bytes, 0, 8, 8)?.as_chunks::<8>().0;
                let items = items.iter().map(|item| usize::try_from(u64::from_le_bytes(*item)).unwrap_or(usize::MAX));
                Value::IntList(ids(state, items, |item| matches!(item, Value::Int(_)))?)
            }
            tag::TENSOR_LIST => {
                let items = self.list.row(bytes, target)?.vector(bytes, 0, 4, 4)?.as_chunks::<4>().0;
                let items = items.iter().map(|item| u32::from_le_bytes(*item) as usize);
                Value::TensorList(ids(state, items, |item| matches!(item, Value::Tensor(_)))?)
            }
            _ => return None,
        })
    }

    #[inline(always)]
    fn tensor(&mut self, pos: usize, state: &mut State, memory: &Memory, places: &Places<'_>) -> Option<u32> {
        let row = self.tensor.row(self.bytes, pos)?;
        let dtype = ScalarType(row.u8(SCALAR_TYPE) as i8);
        let element = dtype.size()?;
        let dynamism = match row.u8(DYNAMISM) {
            0 => Dynamism::Static,
            1 => Dynamism::Bound,
            _ => return None,
        };
        let sizes = row.vector(self.bytes, SIZES, 4, 4)?.as_chunks::<4>().0;
        let order = row.vector(self.bytes, DIM_ORDER, 1, 4)?;
        let rank = sizes.len();
        let plain = row.u32(STORAGE_OFFSET) == 0 && row.field(EXTRA) == 0;
        if !plain || rank > MAX_RANK || !is_permutation(order, rank) {
            return None;
        }
        let mut list = [0; MAX_RANK];
        for (out, size) in list.iter_mut().zip(sizes) {
            *out = usize::try_from(i32::from_le_bytes(*size)).ok()?;
        }
        let bytes = byte_count(&list[..rank], element)?;
        let buffer = row.u32(DATA_BUFFER_IDX);
        let (region, constant) = match (row.field(ALLOCATION), buffer) {
            (0, 0) => return None,
            (0, _) => (places.known_constant(buffer, bytes)?, true),
            (_, 0) => {
                let (target, _) = row.target(self.bytes, ALLOCATION)?;
                let place = self.allocation.row(self.bytes, target)?;
                let arena = memory.arenas.get((place.u32(0) as usize).checked_sub(1)?)?;
                let offset = u64::from(place.u32(1)) | u64::from(place.u32(2)) << 32;
                (arena.region(usize::try_from(offset).ok()?, bytes)?, false)
            }
            _ => return None,
        };
        if !Region::is_aligned(&region, element) {
            return None;
        }
        Some(state.push_tensor(dtype, &list[..rank], order, dynamism, region, constant))
    }
}

/// Kernel calls of one file.
pub(super) struct Calls<'a> {
    bytes: &'a [u8],
    instruction: Layouts<2, 4>,
    call: Layouts<2, 4>,
}

impl<'a> Calls<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Calls {
            bytes,
            instruction: Layouts::new([(Instruction::INSTR_ARGS.index, 1), (Instruction::INSTR_ARGS.index + 1, 4)]),
            call: Layouts::new([(KernelCall::OP_INDEX.index, 4), (KernelCall::ARGS.index, 4)]),
        }
    }

    /// The instruction whose table is at `pos`, if it calls a kernel.
    #[inline]
    pub fn call(&mut self, pos: usize, graph: &mut Graph<'_>) -> Option<InstructionKind> {
        let row = self.instruction.row(self.bytes, pos)?;
        let (target, _) = row.target(self.bytes, VALUE)?;
        if row.u8(TAG) != instructions::tag::KERNEL_CALL {
            return None;
        }
        let call = self.call.row(self.bytes, target)?;
        let items = call.vector(self.bytes, 1, 4, 4)?.as_chunks::<4>().0;
        let operator = call.u32(0);
        let info = &graph.operators.get(operator as usize)?.info;
        let values = graph.state.values.len();
        let ids = items.iter().map(|item| u32::from_le_bytes(*item));
        if items.len() > MAX_ARGS || !ids.clone().all(|id| (id as usize) < values) {
            return None;
        }
        let args = Span { start: graph.args.len() as u32, len: items.len() as u32 };
        graph.args.try_reserve(items.len()).ok()?;
        graph.args.extend(ids);
        info.mark_written(&graph.args[args.range()], &mut graph.variable);
        Some(InstructionKind::Kernel { operator, args })
    }
}

/// Adds the items of a list, if each is a value that was read and fits.
#[inline(always)]
fn ids(
    state: &mut State,
    items: impl ExactSizeIterator<Item = usize> + Clone,
    fits: impl Fn(&Value) -> bool,
) -> Option<Span> {
    if !items.clone().all(|item| state.values.get(item).is_some_and(&fits)) {
        return None;
    }
    state.ids.try_reserve(items.len()).ok()?;
    let span = Span { start: state.ids.len() as u32, len: items.len() as u32 };
    // Below the number of values, which fits.
    state.ids.extend(items.map(|item| item as u32));
    Some(span)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use edgepack_loader::{MergedData, Program};

    use super::super::{Source, memory, values};
    use super::*;
    use crate::account::Account;
    use crate::arena::Arena;
    use crate::error::LoadError;
    use crate::options::Options;

    /// What reading all values comes to, as text: addresses too, unless something was copied to be aligned.
    fn read(source: &Source<'_>, quick: bool) -> Result<String, LoadError> {
        let mut memory = Memory::default();
        let mut account = Account::new(source.program.limits());
        memory::arenas(source, &mut memory, &mut account)?;
        let tables = source.plan.values.clone().unwrap_or_default().tables();
        let mut state = State::with_capacity(tables.len())?;
        let mut places = Places::new(source, account)?;
        let quick = quick.then(|| Quick::new(tables.buffer()));
        values::read(source, &tables, &mut state, &mut memory, &mut places, quick)?;
        let tensors = state.tensors.iter().map(|tensor| {
            let address = memory.private.is_empty().then(|| tensor.region.addresses());
            let shape = (state.sizes(tensor), state.strides(tensor), state.bounds(tensor), state.dim_order(tensor));
            let (dtype, dynamism, constant) = (tensor.dtype, tensor.dynamism, tensor.constant);
            format!("{dtype} {dynamism:?} {constant} {shape:?} {} {address:?}\n", tensor.region.len())
        });
        let tensors: String = tensors.collect();
        Ok(format!("{:?}\n{:?}\n{tensors}", state.values, state.ids))
    }

    #[test]
    fn values_are_what_the_long_way_makes_of_them() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/models");
        let mut methods = 0;
        for entry in std::fs::read_dir(corpus).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "pte") {
                continue;
            }
            let program = Program::from_bytes(std::fs::read(&path).unwrap()).unwrap();
            let view = program.view().unwrap();
            for plan in view.plans().iter() {
                let plan = plan.unwrap();
                let sizes = plan.non_const_buffer_sizes.iter().flat_map(|sizes| sizes.iter());
                let arenas = sizes.enumerate().map(|(id, size)| (id as u32, Arena::new(size as usize).unwrap()));
                let options = Options { arenas: arenas.collect(), ..Options::default() };
                let data = MergedData::new([]).unwrap();
                let source = Source { program: &program, view: &view, plan: &plan, options: &options, data: &data };
                match (read(&source, true), read(&source, false)) {
                    (Ok(quick), Ok(long)) => assert_eq!(quick, long, "{}", path.display()),
                    (Err(quick), Err(long)) => assert_eq!(quick.to_string(), long.to_string(), "{}", path.display()),
                    (quick, long) => panic!("{}: {quick:?}, {long:?}", path.display()),
                }
                methods += 1;
            }
        }
        assert!(methods > 50, "{methods} methods");
    }
}
