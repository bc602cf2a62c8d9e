//! Values one by one: kind, id, rank, flags, element type, size, quantisation, constant.

use alloc::format;
use alloc::string::ToString;

use super::report::Report;
use super::scales::is_scale;
use crate::row::Scalars;
use crate::rules::xnnpack as rule;
use crate::xnnpack::constants::Constant;
use crate::xnnpack::datatype::Meaning;
use crate::xnnpack::tables::{
    Datatype, NO_ID, PerChannelGroupQuant, PerChannelQuant, PerTensorQuant, QuantParams, TensorValue, Value, ValueUnion,
};
use crate::xnnpack::value::{INPUT, MAX_RANK, OUTPUT, Shape};

/// Runtimes of today want blocks of a multiple of so many elements.
const BLOCK: i32 = 32;

pub(super) fn check(report: &mut Report<'_, '_>) {
    let payload = report.payload;
    let tables = payload.graph.xvalues.as_ref().map(|rows| rows.tables());
    for (index, value) in payload.values.iter().enumerate() {
        let table = tables.and_then(|tables| tables.get(index).ok());
        let union = table.and_then(|table| table.union(Value::XVALUE_UNION.index).ok().flatten());
        match (&value.xvalue_union, value.tensor()) {
            (None, _) => report.whole_value(&rule::VALUE_KIND, index, "it is of no kind".to_string()),
            (Some(ValueUnion::Unknown(tag)), _) => {
                report.whole_value(&rule::VALUE_KIND, index, format!("kind {tag} is not known"));
            }
            (Some(_), Some(tensor)) if union.is_none_or(|(_, table)| table.is_some()) => {
                of_tensor(index, value, tensor, report);
            }
            _ => report.whole_value(&rule::VALUE_KIND, index, "its table is absent".to_string()),
        }
    }
    for (first, index) in payload.ids.repeated() {
        report.value(&rule::VALUE_ID, index, "id_out", format!("value {first} has it already"));
    }
}

fn of_tensor(index: usize, value: &Value<'_>, tensor: &TensorValue<'_>, report: &mut Report<'_, '_>) {
    if tensor.id_out == NO_ID {
        report.value(&rule::VALUE_ID, index, "id_out", "it stands for no value".to_string());
    }
    let rank = tensor.dims.as_ref().map_or(0, Scalars::len);
    let has_rank = u64::from(tensor.num_dims) == rank as u64 && rank <= MAX_RANK;
    if !has_rank {
        let message = format!("{} dimensions, the list has {rank}", tensor.num_dims);
        report.value(&rule::RANK, index, "num_dims", message);
    }
    let flags = tensor.flags;
    if flags & !(INPUT | OUTPUT) != 0 || flags == INPUT | OUTPUT {
        report.value(&rule::VALUE_FLAGS, index, "flags", format!("{flags:#x}"));
    } else if flags != 0 && tensor.is_constant() {
        report.value(&rule::VALUE_FLAGS, index, "flags", format!("{flags:#x} on a constant"));
    }
    let has_type = datatype(index, value, tensor, report);
    constant_index(index, tensor.constant_buffer_idx, report);
    let Some(shape) = tensor.shape().filter(|_| has_rank && has_type) else { return };
    match tensor.byte_len() {
        Some(bytes) if bytes <= report.out.limits().arena_bytes => has_bytes(index, tensor, bytes, report),
        Some(bytes) => {
            let message = format!("{bytes} bytes, the limit is {}", report.out.limits().arena_bytes);
            report.value(&rule::VALUE_SIZE, index, "dims", message);
        }
        None => report.value(&rule::VALUE_SIZE, index, "dims", "the product overflows".to_string()),
    }
    match value.quant_params() {
        Some(QuantParams::PerTensorQuant(params)) => per_tensor(index, tensor.datatype, params, report),
        Some(QuantParams::PerChannelQuant(params)) => per_channel(index, &shape, params, report),
        Some(QuantParams::PerChannelGroupQuant(params)) => per_group(index, &shape, params, report),
        Some(QuantParams::PerTokenDynamicQuant(params)) => {
            let rows = params.num_nonbatch_dims;
            if !usize::try_from(rows).is_ok_and(|rows| rows <= shape.rank()) {
                let message = format!("{rows} of {} dimensions", shape.rank());
                report.params(&rule::ROWS, index, "num_nonbatch_dims", message);
            } else if tensor.is_constant() {
                report.params(&rule::ROWS, index, "num_nonbatch_dims", "of a constant".to_string());
            }
        }
        Some(QuantParams::Unknown(_)) | None => {}
    }
}

/// Checks that the element type is one of this kind of value.
fn datatype(index: usize, value: &Value<'_>, tensor: &TensorValue<'_>, report: &mut Report<'_, '_>) -> bool {
    let datatype = tensor.datatype;
    let dynamic = tensor.dq_datatype;
    if dynamic != Datatype::INVALID
        && !(dynamic == Datatype::QINT8 && datatype == Datatype::FP32 && tensor.is_input() && !value.is_quantized())
    {
        report.value(&rule::DATATYPE, index, "dq_datatype", format!("{datatype} read as {dynamic}"));
    }
    let meaning = match value.quant_params() {
        None if !value.is_quantized() => Meaning::Plain,
        Some(QuantParams::PerTensorQuant(_)) => Meaning::PerTensor,
        Some(QuantParams::PerChannelQuant(_)) => Meaning::PerChannel,
        Some(QuantParams::PerChannelGroupQuant(_)) => Meaning::PerGroup,
        Some(QuantParams::PerTokenDynamicQuant(_)) => Meaning::PerToken,
        None => {
            report.whole_params(&rule::PARAMETERS, index, "absent".to_string());
            return false;
        }
        Some(QuantParams::Unknown(tag)) => {
            report.whole_params(&rule::PARAMETERS, index, format!("kind {tag} is not known"));
            return false;
        }
    };
    let is_known = datatype.meaning() == Some(meaning);
    if !is_known {
        report.value(&rule::DATATYPE, index, "datatype", format!("{datatype} in a value that is {meaning:?}"));
    }
    is_known
}

/// Checks that a constant is in the list; 0 is none.
fn constant_index(index: usize, constant: u32, report: &mut Report<'_, '_>) {
    let len = report.payload.constants.len();
    if constant != 0 && constant as usize >= len {
        report.value(&rule::CONSTANT_INDEX, index, "constant_buffer_idx", format!("constant {constant} of {len}"));
    }
}

fn constant<'v>(index: u32, report: &Report<'v, '_>) -> Option<&'v Constant<'v>> {
    let index = usize::try_from(index).ok().filter(|index| *index != 0)?;
    report.payload.constants.get(index).filter(|constant| **constant != Constant::None)
}

fn has_bytes(index: usize, tensor: &TensorValue<'_>, want: u64, report: &mut Report<'_, '_>) {
    let Some(have) = constant(tensor.constant_buffer_idx, report).map(Constant::size) else { return };
    if have < want {
        let message = format!("constant {} has {have} bytes, {want} are needed", tensor.constant_buffer_idx);
        report.value(&rule::CONSTANT_LENGTH, index, "constant_buffer_idx", message);
    }
}

fn per_tensor(index: usize, datatype: Datatype, params: &PerTensorQuant, report: &mut Report<'_, '_>) {
    if !is_scale(params.scale) {
        report.params(&rule::SCALE, index, "scale", format!("{}", params.scale));
    }
    let range = match datatype {
        Datatype::QINT8 => -128..=127,
        Datatype::QUINT8 => 0..=255,
        _ => 0..=0,
    };
    if !range.contains(&params.zero_point) {
        let message = format!("{} of {datatype}", params.zero_point);
        report.params(&rule::ZERO_POINT, index, "zero_point", message);
    }
}

fn per_channel(index: usize, shape: &Shape, params: &PerChannelQuant<'_>, report: &mut Report<'_, '_>) {
    let Some(want) = params.scale_count(Some(shape.dims())) else {
        let message = format!("{} of {} dimensions", params.channel_dim, shape.rank());
        report.params(&rule::CHANNELS, index, "channel_dim", message);
        return;
    };
    let inline = params.scale.as_ref().map(Scalars::len);
    let stored = Scales { inline, constant: params.scale_buffer_idx, count: params.num_scales, bytes: 4 };
    if let Some(have) = stored.check(index, want, report) {
        report.params(&rule::CHANNELS, index, "num_scales", format!("{have} scales, {want} channels"));
    }
}

fn per_group(index: usize, shape: &Shape, params: &PerChannelGroupQuant<'_>, report: &mut Report<'_, '_>) {
    if params.group_size > 0 && params.group_size.checked_rem(BLOCK) != Some(0) {
        report.params(&rule::GROUP_SIZE, index, "group_size", format!("{}", params.group_size));
    }
    let want = params.scale_count(Some(shape.dims())).filter(|_| params.channel_dim == 0);
    let Some(want) = want else {
        let (dims, size) = (shape.dims(), params.group_size);
        let message = format!("{dims:?} in blocks of {size} along channel {}", params.channel_dim);
        report.params(&rule::GROUPS, index, "group_size", message);
        return;
    };
    let inline = [params.scale.as_ref().map(Scalars::len), params.scale_bf16.as_ref().map(Scalars::len)];
    let inline = inline.into_iter().flatten().find(|len| *len > 0);
    let stored = Scales { inline, constant: params.scale_buffer_idx, count: params.num_scales, bytes: 2 };
    if let Some(have) = stored.check(index, want, report) {
        report.params(&rule::GROUPS, index, "num_scales", format!("{have} scales, {want} blocks"));
    }
}

/// Place and number of a value's scales.
struct Scales {
    /// Number of scales in the flatbuffer.
    inline: Option<usize>,
    /// The constant with them; 0 for none.
    constant: u32,
    /// Number of those of the constant, as the value says.
    count: u32,
    /// Bytes of each there.
    bytes: u64,
}

impl Scales {
    /// The number of scales, if it is not what is wanted.
    fn check(&self, index: usize, want: u64, report: &mut Report<'_, '_>) -> Option<u64> {
        let len = report.payload.constants.len();
        match (self.constant, self.inline) {
            (0, None | Some(0)) if want > 0 => {
                report.whole_params(&rule::PARAMETERS, index, "there are no scales".to_string());
                None
            }
            (0, inline) => Some(inline.unwrap_or(0) as u64).filter(|have| *have != want),
            (constant, _) if constant as usize >= len => {
                let message = format!("constant {constant} of {len}");
                report.params(&rule::CONSTANT_INDEX, index, "scale_buffer_idx", message);
                None
            }
            (number, _) => {
                let bytes = want.saturating_mul(self.bytes);
                let have = constant(number, report).map(Constant::size);
                if let Some(have) = have.filter(|have| *have < bytes) {
                    let message = format!("constant {number} has {have} bytes, {bytes} are needed");
                    report.params(&rule::CONSTANT_LENGTH, index, "scale_buffer_idx", message);
                }
                Some(u64::from(self.count)).filter(|have| *have != want)
            }
        }
    }
}
