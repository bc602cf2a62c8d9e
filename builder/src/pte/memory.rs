//! Gives the tensors of a method their places in planned memory.
//!
//! Tensors that name no memory share one per device: that of the host first, then by kind and number of the device, in
//! memories that no tensor names.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_format::pte::{DeviceType, EValue, ExecutionPlan, KernelTypes, NonConstBufferDevice};

use super::parts::Method;
use super::resolve::show;
use super::values::{Role, Value};
use crate::BuildError;
use crate::error::Error;
use crate::plan::{Block, Lifetime, NoPlan, OVER_READ, Strategy, details, lifetimes_with, place};

/// A tensor that needs a place.
struct Wanted {
    value: usize,
    memory: Option<u32>,
    offset: Option<u64>,
    device: (DeviceType, i8),
    bytes: u64,
}

/// Plans the memory of a method into its row.
pub(super) fn assign(
    plan: &mut ExecutionPlan<'_>,
    method: &Method,
    align: u64,
    strategy: Strategy,
    getter: bool,
) -> Result<(), BuildError> {
    let wanted = wanted(method);
    if getter && wanted.is_empty() {
        return Ok(());
    }
    let defaults = default_memories(method, &wanted)?;
    let views = views(method);
    let lifetimes = lifetimes_with(plan, &views).map_err(Error::Read)?;
    let mut memories: BTreeMap<u32, Vec<(usize, Block)>> = BTreeMap::new();
    let mut devices: BTreeMap<u32, (DeviceType, i8)> = BTreeMap::new();
    for tensor in &wanted {
        let Some(memory) = tensor.memory.or_else(|| defaults.get(&tensor.device).copied()) else { continue };
        // What nothing touches needs a place, but no time.
        let lifetime = lifetimes.get(tensor.value).copied().flatten().unwrap_or(Lifetime { first: 0, last: 0 });
        let block = Block { bytes: tensor.bytes, lifetime, fixed: tensor.offset };
        memories.entry(memory).or_default().push((tensor.value, block));
        devices.insert(memory, tensor.device);
    }
    let extra = match method.delegates.iter().any(|delegate| delegate.backend == OVER_READ.0) {
        true => OVER_READ.1,
        false => 0,
    };
    // A method without planned tensors still has the one memory that exporters give it.
    let last = memories.keys().next_back().copied().unwrap_or(1);
    let mut sizes = vec![0i64; last as usize];
    for (memory, tensors) in &memories {
        let blocks: Vec<Block> = tensors.iter().map(|(_, block)| *block).collect();
        let in_memory = || format!("memory {memory} of method `{}`", method.name);
        let too_large = || BuildError::Memory {
            place: in_memory(),
            message: format!("{} tensors need more than 63 bits of bytes", blocks.len()),
        };
        let placement = place(&blocks, align, strategy).map_err(|cause| match cause {
            NoPlan::Overflow => too_large(),
            cause => BuildError::Memory { place: in_memory(), message: cause.to_string() },
        })?;
        let bytes =
            placement.bytes.checked_add(extra).and_then(|bytes| i64::try_from(bytes).ok()).ok_or_else(too_large)?;
        if let Some(size) = sizes.get_mut((*memory as usize).saturating_sub(1)) {
            *size = bytes;
        }
        for ((value, _), offset) in tensors.iter().zip(placement.offsets) {
            if let Some(values) = &mut plan.values
                && let Some(EValue { val: Some(KernelTypes::Tensor(tensor)) }) =
                    values.to_mut().map_err(Error::Read)?.get_mut(*value)
            {
                tensor.allocation_info = Some(details(*memory, offset));
            }
        }
    }
    for (base, view) in &views {
        if let Some(values) = &mut plan.values {
            let values = values.to_mut().map_err(Error::Read)?;
            let place = match values.get(*base) {
                Some(EValue { val: Some(KernelTypes::Tensor(tensor)) }) => tensor.allocation_info,
                _ => None,
            };
            if let Some(EValue { val: Some(KernelTypes::Tensor(tensor)) }) = values.get_mut(*view) {
                tensor.allocation_info = place;
            }
        }
    }
    sizes.insert(0, 0);
    plan.non_const_buffer_sizes = Some(sizes.into());
    let elsewhere = devices.iter().filter(|(_, device)| **device != (DeviceType::CPU, 0));
    let elsewhere: Vec<_> = elsewhere
        .map(|(memory, (device_type, device_index))| NonConstBufferDevice {
            buffer_idx: i32::try_from(*memory).unwrap_or(i32::MAX),
            device_type: *device_type,
            device_index: *device_index,
        })
        .collect();
    plan.non_const_buffer_device = (!elsewhere.is_empty()).then(|| elsewhere.into());
    Ok(())
}

/// The views of a method: what each is of, and itself.
fn views(method: &Method) -> Vec<(usize, usize)> {
    let view = |(index, value): (usize, &Value)| match value {
        Value::Tensor(tensor) => match tensor.role {
            Role::View(base) => Some((base, index)),
            _ => None,
        },
        _ => None,
    };
    method.values.iter().enumerate().filter_map(view).collect()
}

/// The tensors of a method that have planned memory.
fn wanted(method: &Method) -> Vec<Wanted> {
    let boundary = method.boundary();
    let mut found = Vec::new();
    for (value, tensor) in method.values.iter().enumerate() {
        let Value::Tensor(tensor) = tensor else { continue };
        let (input, output) = boundary.get(&value).copied().unwrap_or_default();
        let by_method = (!input || method.plan_inputs) && (!output || method.plan_outputs);
        let unbound = tensor.dynamism == edgepack_format::pte::TensorShapeDynamism::DYNAMIC_UNBOUND;
        let planned = match tensor.role {
            Role::Constant(_) | Role::View(_) => false,
            Role::State { .. } => true,
            Role::Plain => tensor.place.planned.unwrap_or(by_method && !unbound || tensor.place.memory.is_some()),
        };
        if planned {
            found.push(Wanted {
                value,
                memory: tensor.place.memory,
                offset: tensor.place.offset,
                device: tensor.place.device,
                bytes: tensor.layout.byte_len() as u64,
            });
        }
    }
    found
}

/// The memory of each device for tensors that name none.
fn default_memories(method: &Method, wanted: &[Wanted]) -> Result<BTreeMap<(DeviceType, i8), u32>, BuildError> {
    let mut devices: Vec<_> =
        wanted.iter().filter(|tensor| tensor.memory.is_none()).map(|tensor| tensor.device).collect();
    // The host is device kind 0.
    devices.sort_by_key(|(kind, index)| (kind.0, *index));
    devices.dedup();
    let mut taken: BTreeSet<u32> = wanted.iter().filter_map(|tensor| tensor.memory).collect();
    let mut defaults = BTreeMap::new();
    for device in devices {
        // The first memory, if tensors of this device named it; never another that a caller named for a purpose.
        let first = wanted.iter().any(|tensor| tensor.memory == Some(1) && tensor.device == device).then_some(1);
        let free = || (1..=u32::MAX).find(|memory| !taken.contains(memory));
        let memory = first.or_else(free).ok_or_else(|| BuildError::Memory {
            place: format!("method `{}`", method.name),
            message: format!("no memory is left for {}", show(device)),
        })?;
        taken.insert(memory);
        defaults.insert(device, memory);
    }
    Ok(defaults)
}
