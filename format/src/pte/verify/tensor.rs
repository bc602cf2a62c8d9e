//! Checks of a tensor value: shape, element type, and data that are where it says they are.

use alloc::format;
use alloc::string::String;

use super::data::{Buffers, Data, Room};
use super::facts::{Facts, mark};
use crate::check::{Checker, Path};
use crate::pte::{AllocationDetails, DeviceType, ExtraTensorInfo, Tensor, TensorDataLocation, TensorShapeDynamism};
use crate::rules::pte as rule;
use crate::scalar::ScalarType;
use crate::tensor::{MAX_RANK, is_permutation};
use crate::wire::Table;

/// Number of bytes of a tensor.
#[derive(Clone, Copy)]
enum Bytes {
    Known(u64),
    /// More than 63 bits can say.
    Overflow,
    /// Something that was reported keeps it from being known.
    Unclear,
}

/// Checks one tensor and returns its mark.
pub(super) fn check(
    table: &Table<'_>,
    input: bool,
    plan: &Facts<'_>,
    data: &Data<'_>,
    path: &Path<'_>,
    out: &mut Checker,
) -> u8 {
    let at = Some(table.offset());
    if let Ok(offset @ (1.. | ..=-1)) = table.get(Tensor::STORAGE_OFFSET) {
        out.report(&rule::STORAGE_OFFSET, &path.field("storage_offset"), at, format!("{offset} elements"));
    }
    let dynamism = table.get(Tensor::SHAPE_DYNAMISM).unwrap_or_default();
    match dynamism {
        TensorShapeDynamism::STATIC | TensorShapeDynamism::DYNAMIC_BOUND => {}
        TensorShapeDynamism::DYNAMIC_UNBOUND => {
            let message = "no runtime can plan or resize it".into();
            out.report(&rule::UNBOUND, &path.field("shape_dynamism"), at, message);
        }
        other => out.report(&rule::DYNAMISM, &path.field("shape_dynamism"), at, format!("{other}")),
    }

    let scalar_type = table.get(Tensor::SCALAR_TYPE).ok();
    let element = scalar_type.and_then(ScalarType::size).map(|size| size as u64);
    if let (Some(number), None) = (scalar_type, element) {
        out.report(&rule::SCALAR_TYPE, &path.field("scalar_type"), at, format!("{number}"));
    }
    let mut bytes = shape(table, element, path, out);
    let allocation = table.table(Tensor::ALLOCATION_INFO.index).ok().flatten();
    let extra = Extra::check(table, path, out);
    let index = table.get(Tensor::DATA_BUFFER_IDX).unwrap_or(0);
    let external = extra.location == TensorDataLocation::EXTERNAL;
    let constant = allocation.is_none() && (external || index > 0);

    if let Bytes::Overflow = bytes {
        // The sizes of a dynamic input are bounds only, and checked again when it is set.
        let deferred = input && dynamism != TensorShapeDynamism::STATIC;
        if !deferred {
            let message = "the byte count does not fit 63 bits".into();
            out.report(&rule::OVERFLOW, &path.field("sizes"), at, message);
            bytes = Bytes::Unclear;
        }
    }
    if let Some(allocation) = &allocation {
        planned(allocation, bytes, element, &extra, plan, &path.field("allocation_info"), out);
    } else if extra.device.0 != DeviceType::CPU && extra.device.0.name().is_none() {
        unknown_device(extra.device.0, path, at, out);
    }
    if index > 0 && !external {
        let place = Place { index, bytes, path: &path.field("data_buffer_idx"), at };
        match constant {
            true => place.constant(&data.constants, element, out),
            false => place.initial(&data.initial, extra.list, out),
        }
    }
    let truth = if scalar_type == Some(ScalarType::BOOL) { mark::TRUTH } else { 0 };
    mark::TENSOR | truth | if constant { mark::CONSTANT } else { 0 }
}

/// Checks sizes and dim order.
fn shape(table: &Table<'_>, element: Option<u64>, path: &Path<'_>, out: &mut Checker) -> Bytes {
    let at = Some(table.offset());
    let (Ok(sizes), Ok(order)) = (table.get(Tensor::SIZES), table.get(Tensor::DIM_ORDER)) else {
        return Bytes::Unclear;
    };
    for (name, absent) in [("sizes", sizes.is_none()), ("dim_order", order.is_none())] {
        if absent {
            out.report(&rule::SIZES, &path.field(name), at, "there are none".into());
        }
    }
    let Some(sizes) = sizes else { return Bytes::Unclear };
    let rank = sizes.len();
    if rank > MAX_RANK {
        out.report(
            &rule::RANK,
            &path.field("sizes"),
            at,
            format!("{rank} dimensions, at most {MAX_RANK} are possible"),
        );
        return Bytes::Unclear;
    }
    if let Some(order) = order {
        let path = path.field("dim_order");
        if order.len() != rank {
            let message = format!("{} entries for {rank} dimensions", order.len());
            out.report(&rule::DIM_ORDER_LENGTH, &path, at, message);
        } else if !is_permutation(&order.to_le_bytes(), rank) {
            out.report(&rule::DIM_ORDER, &path, at, format!("{order:?}"));
        }
    }
    // Zeros do not hide an overflow, as in `byte_count`: strides would be too large.
    let (mut count, mut empty, mut negative) = (Some(1u64), false, false);
    for (dim, size) in sizes.iter().enumerate() {
        match u64::try_from(size) {
            Ok(size) => {
                empty |= size == 0;
                count = count.and_then(|count| count.checked_mul(size.max(1))).filter(|&count| fits(count));
            }
            Err(_) => {
                negative = true;
                out.report(&rule::NEGATIVE_SIZE, &path.field("sizes").index(dim), at, format!("{size}"));
            }
        }
    }
    match (count, element) {
        _ if negative => Bytes::Unclear,
        (_, None) => Bytes::Unclear,
        (None, Some(_)) => Bytes::Overflow,
        (Some(count), Some(element)) => match count.checked_mul(element).filter(|&bytes| fits(bytes)) {
            Some(bytes) => Bytes::Known(if empty { 0 } else { bytes }),
            None => Bytes::Overflow,
        },
    }
}

fn fits(count: u64) -> bool {
    i64::try_from(count).is_ok()
}

/// Fields of the extra table, or their defaults.
struct Extra {
    location: TensorDataLocation,
    device: (DeviceType, i8),
    list: u64,
}

impl Extra {
    fn check(table: &Table<'_>, path: &Path<'_>, out: &mut Checker) -> Extra {
        let Ok(Some(extra)) = table.table(Tensor::EXTRA_TENSOR_INFO.index) else {
            return Extra { location: TensorDataLocation::SEGMENT, device: (DeviceType::CPU, 0), list: 0 };
        };
        let path = path.field("extra_tensor_info");
        let at = Some(extra.offset());
        let location = extra.get(ExtraTensorInfo::LOCATION).unwrap_or_default();
        match location {
            TensorDataLocation::SEGMENT => {}
            TensorDataLocation::EXTERNAL => {
                let name = extra.string(ExtraTensorInfo::FULLY_QUALIFIED_NAME.index);
                if name.is_ok_and(|name| name.is_none_or(|name| name.is_empty())) {
                    let message = "an external tensor without a name".into();
                    out.report(&rule::EXTERNAL_NAME, &path.field("fully_qualified_name"), at, message);
                }
            }
            other => out.report(&rule::LOCATION, &path.field("location"), at, format!("{other}")),
        }
        Extra {
            location,
            device: (
                extra.get(ExtraTensorInfo::DEVICE_TYPE).unwrap_or_default(),
                extra.get(ExtraTensorInfo::DEVICE_INDEX).unwrap_or_default(),
            ),
            list: extra.get(ExtraTensorInfo::MUTABLE_DATA_SEGMENTS_IDX).unwrap_or_default(),
        }
    }
}

fn unknown_device(device: DeviceType, path: &Path<'_>, at: Option<u32>, out: &mut Checker) {
    out.report(&rule::TENSOR_DEVICE, &path.field("extra_tensor_info").field("device_type"), at, format!("{device}"));
}

/// Checks a place in planned memory.
fn planned(
    table: &Table<'_>,
    bytes: Bytes,
    element: Option<u64>,
    extra: &Extra,
    plan: &Facts<'_>,
    path: &Path<'_>,
    out: &mut Checker,
) {
    let at = Some(table.offset());
    let (Ok(id), Ok(low), Ok(high)) = (
        table.get(AllocationDetails::MEMORY_ID),
        table.get(AllocationDetails::MEMORY_OFFSET_LOW),
        table.get(AllocationDetails::MEMORY_OFFSET_HIGH),
    ) else {
        return;
    };
    let Some(sizes) = &plan.arenas else { return };
    let size = match sizes.get(id as usize) {
        // Negative sizes were reported; nothing fits into them.
        Some(size) if id > 0 => u64::try_from(size).unwrap_or(0),
        _ => {
            let message = format!("{id}, the plan has memories 1 to {}", sizes.len().saturating_sub(1));
            out.report(&rule::ARENA_ID, &path.field("memory_id"), at, message);
            return;
        }
    };
    let offset = AllocationDetails { memory_id: id, memory_offset_low: low, memory_offset_high: high }.memory_offset();
    let too_far: Option<String> = match bytes {
        Bytes::Known(bytes) if offset.checked_add(bytes).is_some_and(|end| end <= size) => None,
        Bytes::Known(bytes) => Some(format!("{bytes} bytes")),
        Bytes::Overflow => Some("more than 2^63 bytes".into()),
        Bytes::Unclear => None,
    };
    if let Some(bytes) = too_far {
        out.report(&rule::ARENA_RANGE, path, at, format!("{bytes} from {offset:#x} on, memory {id} has {size}"));
    }
    if let Some(element) = element
        && !offset.is_multiple_of(element)
    {
        let message = format!("offset {offset:#x} for elements of {element} bytes");
        out.report(&rule::ARENA_ALIGNMENT, path, at, message);
    }
    let device = plan.devices.get(id as usize).copied().unwrap_or((DeviceType::CPU, 0));
    if device != extra.device {
        let message = format!("{}:{}, its memory is on {}:{}", extra.device.0, extra.device.1, device.0, device.1);
        out.report(&rule::TENSOR_DEVICE, path, at, message);
    }
}

/// A reference from a tensor to its bytes.
struct Place<'p> {
    index: u32,
    bytes: Bytes,
    path: &'p Path<'p>,
    at: Option<u32>,
}

impl Place<'_> {
    fn constant(&self, buffers: &Buffers<'_>, element: Option<u64>, out: &mut Checker) {
        match buffers.room(self.index) {
            Room::Bytes { offset, left } => {
                self.fits(&rule::CONSTANT_RANGE, offset, left, out);
                if let Some(element) = element
                    && !offset.is_multiple_of(element)
                {
                    let message = format!("offset {offset:#x} for elements of {element} bytes");
                    out.report(&rule::CONSTANT_ALIGNMENT, self.path, self.at, message);
                }
            }
            Room::Missing(count) => {
                out.report(&rule::CONSTANT_INDEX, self.path, self.at, format!("{} of {count}", self.index));
            }
            Room::Unclear => {}
        }
    }

    fn initial(&self, lists: &[Buffers<'_>], list: u64, out: &mut Checker) {
        let Some(buffers) = usize::try_from(list).ok().and_then(|list| lists.get(list)) else {
            out.report(&rule::INITIAL_INDEX, self.path, self.at, format!("in list {list} of {}", lists.len()));
            return;
        };
        match buffers.room(self.index) {
            Room::Bytes { offset, left } => self.fits(&rule::INITIAL_RANGE, offset, left, out),
            Room::Missing(count) => {
                out.report(&rule::INITIAL_INDEX, self.path, self.at, format!("{} of {count}", self.index));
            }
            Room::Unclear => {}
        }
        if list != 0 {
            out.report(&rule::INITIAL_LIST, self.path, self.at, format!("list {list}"));
        }
    }

    fn fits(&self, broken: &'static crate::finding::Rule, offset: u64, left: u64, out: &mut Checker) {
        let want: String = match self.bytes {
            Bytes::Known(bytes) if bytes <= left => return,
            Bytes::Known(bytes) => format!("{bytes}"),
            Bytes::Overflow => "more than 2^63".into(),
            Bytes::Unclear => return,
        };
        let message = format!("{want} bytes from {offset:#x} on, {left} are there");
        out.report(broken, self.path, self.at, message);
    }
}
