//! Values and how their numbers are meant.

use edgepack_builder::xnnpack::CompilerSink;
use edgepack_format::row::{FieldValue, Sink as _};
use edgepack_format::rules::xnnpack as rule;
use edgepack_format::xnnpack::{
    Datatype, IDENTIFIER, PerChannelGroupQuant, PerChannelQuant, PerTensorQuant, QuantParams, ValueUnion,
};
use edgepack_tests::xnnpack::hex;
use serde_json::json;

use super::base::{Rows, blocks, bytes, bytes_with_region, changed, small};
use crate::hostile_data::Case;

pub fn cases() -> Vec<Case> {
    [values(), parameters(), scales()].into_iter().flatten().collect()
}

/// A flatbuffer whose only value, or node, has a kind and no table.
pub fn without_table(slot: u16) -> Vec<u8> {
    let write = || {
        let mut sink = CompilerSink::new();
        let row = sink.table(&[(0, FieldValue::Scalar([1, 0, 0, 0, 0, 0, 0, 0], 1))])?;
        let (list, none) = (sink.refs(&[row])?, sink.refs(&[])?);
        let other = if slot == 1 { 2 } else { 1 };
        let root = sink.table(&[(slot, FieldValue::Ref(list)), (other, FieldValue::Ref(none))])?;
        sink.finish(root, IDENTIFIER)
    };
    let bytes: Result<_, edgepack_builder::Error> = write();
    bytes.unwrap()
}

fn values() -> Vec<Case> {
    let first = "xvalues[0]";
    vec![
        changed("value_of_no_kind", &rule::VALUE_KIND, first, small, |rows| rows.values[0].xvalue_union = None),
        changed("value_of_kind_9", &rule::VALUE_KIND, first, small, |rows| {
            rows.values[0].xvalue_union = Some(ValueUnion::Unknown(9));
        }),
        changed("value_without_tensor", &rule::VALUE_KIND, "xvalues[1]", bytes, |rows| {
            if let Some(ValueUnion::QuantizedTensorValue(value)) = &mut rows.values[1].xvalue_union {
                value.tensor_value = None;
            }
        }),
        Case::new("value_without_table", &rule::VALUE_KIND, first, without_table(2)),
        changed("id_twice", &rule::VALUE_ID, "xvalues[4].xvalue_union.id_out", small, |rows| {
            rows.tensor(4).id_out = 3;
        }),
        changed("id_of_nothing", &rule::VALUE_ID, "xvalues[3].xvalue_union.id_out", small, |rows| {
            rows.tensor(3).id_out = u32::MAX;
        }),
        changed("rank_5", &rule::RANK, "xvalues[0].xvalue_union.num_dims", small, |rows| rows.tensor(0).num_dims = 5),
        changed("rank_7", &rule::RANK, "xvalues[0].xvalue_union.num_dims", small, |rows| {
            rows.tensor(0).num_dims = 7;
            rows.tensor(0).dims = Some(vec![1; 7].into());
        }),
        changed("dims_absent", &rule::RANK, "xvalues[0].xvalue_union.num_dims", small, |rows| {
            rows.tensor(0).dims = None
        }),
        changed("flag_4", &rule::VALUE_FLAGS, "xvalues[3].xvalue_union.flags", small, |rows| rows.tensor(3).flags = 4),
        changed("flags_both", &rule::VALUE_FLAGS, "xvalues[0].xvalue_union.flags", small, |rows| {
            rows.tensor(0).flags = 3;
        }),
        changed("flag_on_a_constant", &rule::VALUE_FLAGS, "xvalues[1].xvalue_union.flags", small, |rows| {
            rows.tensor(1).flags = 1;
        }),
        changed("datatype_99", &rule::DATATYPE, "xvalues[0].xvalue_union.datatype", small, |rows| {
            rows.tensor(0).datatype = Datatype(99);
        }),
        changed("datatype_packed", &rule::DATATYPE, "xvalues[0].xvalue_union.datatype", small, |rows| {
            rows.tensor(0).datatype = Datatype::QPINT8;
        }),
        changed("datatype_without_parameters", &rule::DATATYPE, "xvalues[0].xvalue_union.datatype", small, |rows| {
            rows.tensor(0).datatype = Datatype::QINT8;
        }),
        changed(
            "datatype_of_other_parameters",
            &rule::DATATYPE,
            "xvalues[1].xvalue_union.tensor_value.datatype",
            bytes,
            |rows| rows.tensor(1).datatype = Datatype::QCINT8,
        ),
        changed("read_as_halves", &rule::DATATYPE, "xvalues[0].xvalue_union.dq_datatype", small, |rows| {
            rows.tensor(0).dq_datatype = Datatype::FP16;
        }),
        changed("dims_overflow", &rule::VALUE_SIZE, "xvalues[3].xvalue_union.dims", small, |rows| {
            rows.tensor(3).dims = Some(vec![u32::MAX; 4].into());
        }),
        changed("dims_large", &rule::VALUE_SIZE, "xvalues[3].xvalue_union.dims", small, |rows| {
            rows.tensor(3).dims = Some(vec![1, 1 << 12, 1 << 12, 4].into());
        }),
    ]
}

fn per_tensor(index: usize, change: impl Fn(&mut PerTensorQuant)) -> impl FnOnce(&mut Rows) {
    move |rows| {
        let Some(QuantParams::PerTensorQuant(params)) = rows.params(index) else { panic!("parameters") };
        change(params);
    }
}

fn per_channel(change: impl Fn(&mut PerChannelQuant<'static>)) -> impl FnOnce(&mut Rows) {
    move |rows| {
        let Some(QuantParams::PerChannelQuant(params)) = rows.params(2) else { panic!("parameters") };
        change(params);
    }
}

fn per_group(change: impl Fn(&mut PerChannelGroupQuant<'static>)) -> impl FnOnce(&mut Rows) {
    move |rows| {
        let Some(QuantParams::PerChannelGroupQuant(params)) = rows.params(2) else { panic!("parameters") };
        change(params);
    }
}

fn parameters() -> Vec<Case> {
    let of_bytes = "xvalues[1].xvalue_union.quant_params";
    let zero = "xvalues[1].xvalue_union.quant_params.zero_point";
    let scale = "xvalues[1].xvalue_union.quant_params.scale";
    let channels = "xvalues[2].xvalue_union.quant_params.num_scales";
    let groups = "xvalues[2].xvalue_union.quant_params.group_size";
    let rows_of = "xvalues[1].xvalue_union.quant_params.num_nonbatch_dims";
    let token = |dims: i32| {
        move |rows: &mut Rows| {
            if let Some(QuantParams::PerTokenDynamicQuant(params)) = rows.params(1) {
                params.num_nonbatch_dims = dims;
            }
        }
    };
    vec![
        changed("scale_0", &rule::SCALE, scale, bytes, per_tensor(1, |params| params.scale = 0.0)),
        changed("scale_negative", &rule::SCALE, scale, bytes, per_tensor(1, |params| params.scale = -0.5)),
        changed("scale_infinite", &rule::SCALE, scale, bytes, per_tensor(1, |params| params.scale = f32::INFINITY)),
        changed("scale_nan", &rule::SCALE, scale, bytes, per_tensor(1, |params| params.scale = f32::NAN)),
        changed("scale_subnormal", &rule::SCALE, scale, bytes, per_tensor(1, |params| params.scale = 1e-40)),
        changed("zero_point_128", &rule::ZERO_POINT, zero, bytes, per_tensor(1, |params| params.zero_point = 128)),
        changed("zero_point_of_unsigned", &rule::ZERO_POINT, zero, bytes, |rows| {
            rows.tensor(1).datatype = Datatype::QUINT8;
            per_tensor(1, |params| params.zero_point = -1)(rows);
        }),
        changed(
            "channel_dim_2",
            &rule::CHANNELS,
            "xvalues[2].xvalue_union.quant_params.channel_dim",
            bytes,
            per_channel(|params| params.channel_dim = 2),
        ),
        changed("scales_7", &rule::CHANNELS, channels, bytes, per_channel(|params| params.num_scales = 7)),
        changed(
            "scales_inline_7",
            &rule::CHANNELS,
            channels,
            bytes,
            per_channel(|params| {
                (params.scale, params.scale_buffer_idx) = (Some(vec![1.0; 7].into()), 0);
            }),
        ),
        changed("group_size_0", &rule::GROUPS, groups, blocks, per_group(|params| params.group_size = 0)),
        changed("group_size_48", &rule::GROUPS, groups, blocks, per_group(|params| params.group_size = 48)),
        changed("group_channel_1", &rule::GROUPS, groups, blocks, per_group(|params| params.channel_dim = 1)),
        changed("group_scales_15", &rule::GROUPS, channels, blocks, per_group(|params| params.num_scales = 15)),
        changed(
            "group_size_16",
            &rule::GROUP_SIZE,
            groups,
            blocks,
            per_group(|params| {
                (params.group_size, params.scale_buffer_idx) = (16, 0);
                params.scale = Some(vec![1.0; 32].into());
            }),
        ),
        changed("rows_of_3", &rule::ROWS, rows_of, blocks, token(3)),
        changed("rows_of_less", &rule::ROWS, rows_of, blocks, token(-1)),
        changed("rows_constant", &rule::ROWS, rows_of, blocks, |rows| rows.tensor(1).constant_buffer_idx = 2),
        changed("parameters_absent", &rule::PARAMETERS, of_bytes, bytes, |rows| *rows.params(1) = None),
        changed("parameters_of_kind_9", &rule::PARAMETERS, of_bytes, bytes, |rows| {
            *rows.params(1) = Some(QuantParams::Unknown(9));
        }),
        changed(
            "scales_nowhere",
            &rule::PARAMETERS,
            "xvalues[2].xvalue_union.quant_params",
            bytes,
            per_channel(|params| (params.scale, params.scale_buffer_idx) = (None, 0)),
        ),
    ]
}

fn scales() -> Vec<Case> {
    let weights = "xvalues[2].xvalue_union.quant_params";
    let inline = |scale: f32| {
        per_channel(move |params| {
            let mut scales = vec![1.0; 8];
            scales[5] = scale;
            (params.scale, params.scale_buffer_idx) = (Some(scales.into()), 0);
        })
    };
    let key = edgepack_builder::xnnpack::key_of(&0x3f80u16.to_le_bytes().repeat(16), true);
    vec![
        changed("channel_scale_0", &rule::SCALES, weights, bytes, inline(0.0)),
        changed("channel_scale_nan", &rule::SCALES, weights, bytes, inline(f32::NAN)),
        // The weights are stored behind the scales; as scales, their bytes are of no use.
        changed("channel_scale_of_the_region", &rule::SCALES, weights, bytes_with_region, |rows| {
            rows.constants[1].offset = rows.constants[2].offset;
            if let Some(QuantParams::PerChannelQuant(params)) = rows.params(2) {
                params.scale_buffer_idx = 1;
            }
        }),
        changed(
            "block_scale_negative",
            &rule::SCALES,
            weights,
            blocks,
            per_group(|params| {
                (params.scale, params.scale_buffer_idx) = (Some(vec![-1.0; 16].into()), 0);
            }),
        ),
        Case::new("block_scale_of_named_data", &rule::SCALES, weights, blocks().write())
            .around("named", json!({ key: hex(&[0; 32]) })),
    ]
}
