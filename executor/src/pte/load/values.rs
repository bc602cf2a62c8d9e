//! Reads the values of a plan into flat state: single slots, no rows.

use edgepack_format::finding::ErrorCode;
use edgepack_format::notation::ValueName;
use edgepack_format::pte::fast::FastValues;
use edgepack_format::pte::{
    AllocationDetails, Bool, BoolList, Double, DoubleList, EValue, ExtraTensorInfo, Int, IntList, KernelTypes,
    OptionalTensorList, String, Tensor, TensorDataLocation, TensorList, TensorShapeDynamism,
};
use edgepack_format::row::{Scalar, Scalars};
use edgepack_format::tensor::{MAX_RANK, byte_count, is_permutation};
use edgepack_format::wire;

use super::Source;
use super::memory::{Place, Places};
use super::quick;
use crate::api::room::{grow, no_room};
use crate::api::state::{Dynamism, NONE, Span, State, Value};
use crate::api::storage::Region;
use crate::pte::error::LoadError;
use crate::pte::plan_graph::Memory;

/// Reads all values. Without the fast reader, everything is read row by row.
pub(super) fn read(
    source: &Source<'_>,
    tables: &wire::Tables<'_>,
    state: &mut State,
    memory: &mut Memory,
    places: &mut Places<'_>,
    mut fast: Option<FastValues<'_>>,
) -> Result<(), LoadError> {
    let mut lists = false;
    for index in 0..tables.len() {
        let position = tables.position(index)?;
        state.grow_by_one()?;
        if let Some(value) = fast.as_mut().and_then(|fast| quick::value(fast, position, state, memory, places)) {
            state.values.push(value);
            continue;
        }
        let value = match tables.get(index)?.union(EValue::VAL.index)? {
            Some((KernelTypes::NULL, _)) => Value::Null,
            Some((tag, Some(table))) => match tag {
                KernelTypes::INT => Value::Int(table.get(Int::INT_VAL)?),
                KernelTypes::BOOL => Value::Bool(table.get(Bool::BOOL_VAL)?),
                KernelTypes::DOUBLE => Value::Double(table.get(Double::DOUBLE_VAL)?),
                KernelTypes::TENSOR => Value::Tensor(tensor(source, index, &table, state, memory, places)?),
                KernelTypes::INT_LIST => {
                    lists = true;
                    Value::IntList(ids(index, table.get(IntList::ITEMS)?, tables.len(), state, false)?)
                }
                KernelTypes::TENSOR_LIST => {
                    lists = true;
                    Value::TensorList(ids(index, table.get(TensorList::ITEMS)?, tables.len(), state, false)?)
                }
                KernelTypes::OPTIONAL_TENSOR_LIST => {
                    lists = true;
                    Value::OptionalTensorList(ids(
                        index,
                        table.get(OptionalTensorList::ITEMS)?,
                        tables.len(),
                        state,
                        true,
                    )?)
                }
                KernelTypes::DOUBLE_LIST => {
                    let items = present(index, table.get(DoubleList::ITEMS)?)?;
                    Value::DoubleList(extend(&mut state.doubles, items.iter(), items.len())?)
                }
                KernelTypes::BOOL_LIST => {
                    let items = present(index, table.get(BoolList::ITEMS)?)?;
                    Value::BoolList(extend(&mut state.bools, items.iter(), items.len())?)
                }
                KernelTypes::STRING => {
                    let text = present(index, table.get(String::STRING_VAL)?)?;
                    let start = state.text.len() as u32;
                    let room = state.text.try_reserve(text.len());
                    room.map_err(|_| no_room("text", text.len() as u64))?;
                    state.text.push_str(&text);
                    Value::Str(Span { start, len: text.len() as u32 })
                }
                other => return Err(invalid(index, format!("a value of the unknown kind {other}"))),
            },
            _ => return Err(invalid(index, "no value".into())),
        };
        state.values.push(value);
    }
    if lists { check_lists(state) } else { Ok(()) }
}

fn invalid(index: usize, message: std::string::String) -> LoadError {
    LoadError::value(index, ErrorCode::InvalidProgram, message)
}

fn present<T>(index: usize, payload: Option<T>) -> Result<T, LoadError> {
    payload.ok_or_else(|| invalid(index, "its content is missing".into()))
}

fn extend<T>(list: &mut Vec<T>, items: impl Iterator<Item = T>, count: usize) -> Result<Span, LoadError> {
    grow(list, count)?;
    let start = list.len();
    list.extend(items);
    Ok(Span { start: start as u32, len: (list.len() - start) as u32 })
}

/// Copies value indices; whether they name the right kind is known only when all values are read.
fn ids<T: Scalar + Into<i64>>(
    index: usize,
    items: Option<Scalars<'_, T>>,
    values: usize,
    state: &mut State,
    optional: bool,
) -> Result<Span, LoadError> {
    let items = present(index, items)?;
    let start = state.ids.len();
    grow(&mut state.ids, items.len())?;
    for item in items.iter() {
        let item: i64 = item.into();
        match u32::try_from(item) {
            Ok(id) if (id as usize) < values => state.ids.push(id),
            _ if optional && item == -1 => state.ids.push(NONE),
            _ => return Err(invalid(index, format!("its item is {item} of {values}", item = ValueName(item)))),
        }
    }
    Ok(Span { start: start as u32, len: items.len() as u32 })
}

fn check_lists(state: &State) -> Result<(), LoadError> {
    for (index, value) in state.values.iter().enumerate() {
        let (span, fits): (_, fn(&Value) -> bool) = match value {
            Value::IntList(span) => (span, |item| matches!(item, Value::Int(_))),
            Value::TensorList(span) => (span, |item| matches!(item, Value::Tensor(_))),
            Value::OptionalTensorList(span) => (span, |item| matches!(item, Value::Tensor(_) | Value::Null)),
            _ => continue,
        };
        for &id in &state.ids[span.range()] {
            if id != NONE && !fits(&state.values[id as usize]) {
                let kind = state.values[id as usize].kind();
                let message = format!("a {} with {id}, a {kind}, in it", value.kind(), id = ValueName(id));
                return Err(LoadError::value(index, ErrorCode::InvalidType, message));
            }
        }
    }
    Ok(())
}

fn tensor(
    source: &Source<'_>,
    index: usize,
    table: &wire::Table<'_>,
    state: &mut State,
    memory: &mut Memory,
    places: &mut Places<'_>,
) -> Result<u32, LoadError> {
    let dtype = table.get(Tensor::SCALAR_TYPE)?;
    let sizes = present(index, table.get(Tensor::SIZES)?)?;
    let dim_order = present(index, table.get(Tensor::DIM_ORDER)?)?;
    let data_buffer_idx = table.get(Tensor::DATA_BUFFER_IDX)?;
    let allocation: Option<AllocationDetails> = table.get(Tensor::ALLOCATION_INFO)?;
    let dynamism = match table.get(Tensor::SHAPE_DYNAMISM)? {
        TensorShapeDynamism::STATIC => Dynamism::Static,
        // Without a bound the file's sizes are one, as in the reference: that much memory the tensor has.
        TensorShapeDynamism::DYNAMIC_BOUND | TensorShapeDynamism::DYNAMIC_UNBOUND => Dynamism::Bound,
        other => {
            let message = format!("shape dynamism {other} cannot be run");
            return Err(LoadError::value(index, ErrorCode::NotSupported, message));
        }
    };
    if table.get(Tensor::STORAGE_OFFSET)? != 0 {
        return Err(LoadError::value(index, ErrorCode::NotSupported, "a storage offset other than 0"));
    }

    let Some(element) = dtype.size() else {
        return Err(invalid(index, format!("{dtype} is not an element type")));
    };
    if sizes.len() > MAX_RANK || sizes.len() != dim_order.len() {
        return Err(invalid(index, format!("{} sizes, dim_order has {}", sizes.len(), dim_order.len())));
    }
    let mut order = [0u8; MAX_RANK];
    let order = &mut order[..dim_order.len()];
    for (out, dim) in order.iter_mut().zip(dim_order.iter()) {
        *out = dim;
    }
    if !is_permutation(order, order.len()) {
        return Err(LoadError::value(index, ErrorCode::Internal, format!("dim_order {order:?} is not a permutation")));
    }
    let mut list = [0; MAX_RANK];
    for (out, size) in list.iter_mut().zip(sizes.iter()) {
        let Ok(size) = usize::try_from(size) else {
            return Err(invalid(index, format!("size {size}")));
        };
        *out = size;
    }
    let Some(bytes) = byte_count(&list[..order.len()], element) else {
        return Err(invalid(index, "its byte count overflows".into()));
    };

    let extra: Option<ExtraTensorInfo<'_>> = table.get(Tensor::EXTRA_TENSOR_INFO)?;
    let external = extra.as_ref().is_some_and(|extra| extra.location == TensorDataLocation::EXTERNAL);
    let next = state.tensors.len() as u32;
    let mutable_set = extra.as_ref().map_or(0, |extra| extra.mutable_data_segments_idx);
    let wanted = Place { index, tensor: next, dtype, element, bytes, allocation, data_buffer_idx, mutable_set };
    let (region, constant) = if external {
        // The name was checked by the verifier; an empty one finds nothing.
        let name = extra.and_then(|extra| extra.fully_qualified_name).unwrap_or_default();
        places.external(source, memory, &wanted, &name, &sizes, order)?
    } else {
        places.internal(source, memory, &wanted)?
    };
    Ok(state.push_tensor(dtype, &list[..order.len()], order, dynamism, region.unwrap_or(Region::empty()), constant))
}
