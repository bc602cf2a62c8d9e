//! Nodes: kinds, ids, order, element types, dimensions, ranges of numbers.

use edgepack_builder::xnnpack::{PayloadBuilder, ValueId, ValueSpec};
use edgepack_format::finding::Rule;
use edgepack_format::rules::xnnpack as rule;
use edgepack_format::xnnpack::{
    Cat, Datatype, Node2x1, NodeConv, NodeUnion, OutputMinMax, Pooling2D, QuantParams, ScaledDotProductAttention,
    StaticConstantPad, StaticReshape, StaticResizeBilinear2D, StaticSlice, StaticTranspose,
};

use super::base::{Rows, blocks, bytes, changed, fp32, qint8, rows, small, unary};
use super::values::without_table;
use crate::hostile_data::Case;

pub fn cases() -> Vec<Case> {
    [kinds(), order(), types(), weights(), shapes(), lists(), ranges()].into_iter().flatten().collect()
}

/// A payload of one node over one input.
fn one(input: ValueSpec, output: ValueSpec, node: impl FnOnce(ValueId, ValueId) -> NodeUnion<'static>) -> Rows {
    let mut builder = PayloadBuilder::new();
    let (x, y) = (builder.input(input).unwrap(), builder.output(output).unwrap());
    builder.node(node(x, y));
    rows(builder)
}

/// A payload of one node over two inputs of the same kind.
fn two(spec: &ValueSpec, node: fn(Node2x1) -> NodeUnion<'static>) -> Rows {
    let mut builder = PayloadBuilder::new();
    let (a, b) = (builder.input(spec.clone()).unwrap(), builder.input(spec.clone()).unwrap());
    let y = builder.output(spec.clone()).unwrap();
    builder.node(node(Node2x1 { input1_id: a.id(), input2_id: b.id(), output_id: y.id(), flags: 0 }));
    rows(builder)
}

fn sum() -> Rows {
    two(&fp32(&[2, 3]), NodeUnion::Add)
}

fn sum_of_bytes() -> Rows {
    two(&qint8(&[2, 3], 0.5, 0), NodeUnion::Add)
}

fn product_of_bytes() -> Rows {
    two(&qint8(&[2, 3], 0.5, 0), NodeUnion::Multiply)
}

/// Values 0 input, 1 between, 2 output; nodes 0 and 1 Clamp.
fn chain() -> Rows {
    let mut builder = PayloadBuilder::new();
    let x = builder.input(fp32(&[4])).unwrap();
    let m = builder.value(fp32(&[4])).unwrap();
    let y = builder.output(fp32(&[4])).unwrap();
    builder.node(NodeUnion::Clamp(unary(x.id(), m.id()))).node(NodeUnion::Clamp(unary(m.id(), y.id())));
    rows(builder)
}

fn maximum() -> Rows {
    one(fp32(&[1, 4, 4, 2]), fp32(&[1, 2, 2, 2]), |x, y| {
        NodeUnion::MaxPooling2d(Pooling2D {
            pooling_height: 2,
            pooling_width: 2,
            stride_height: 2,
            stride_width: 2,
            dilation_height: 1,
            dilation_width: 1,
            input_id: x.id(),
            output_id: y.id(),
            ..Pooling2D::default()
        })
    })
}

fn resize() -> Rows {
    one(fp32(&[1, 4, 4, 2]), fp32(&[1, 8, 8, 2]), |x, y| {
        let (input_id, output_id) = (x.id(), y.id());
        NodeUnion::StaticResizeBilinear2D(StaticResizeBilinear2D {
            new_height: 8,
            new_width: 8,
            input_id,
            output_id,
            flags: 0,
        })
    })
}

fn transpose() -> Rows {
    one(fp32(&[2, 3]), fp32(&[3, 2]), |x, y| {
        let (input_id, output_id) = (x.id(), y.id());
        NodeUnion::StaticTranspose(StaticTranspose {
            num_dims: 2,
            perm: Some(vec![1, 0].into()),
            input_id,
            output_id,
            flags: 0,
        })
    })
}

fn pad() -> Rows {
    one(fp32(&[2, 3]), fp32(&[3, 3]), |x, y| {
        NodeUnion::StaticConstantPad(StaticConstantPad {
            pre_paddings: Some(vec![1, 0].into()),
            post_paddings: Some(vec![0, 0].into()),
            padding_value: 0.5,
            input_id: x.id(),
            output_id: y.id(),
            flags: 0,
        })
    })
}

fn slice() -> Rows {
    one(fp32(&[2, 3]), fp32(&[1, 3]), |x, y| {
        NodeUnion::StaticSlice(StaticSlice {
            num_dims: 2,
            offsets: Some(vec![1, 0].into()),
            sizes: Some(vec![1, 0].into()),
            input_id: x.id(),
            output_id: y.id(),
            flags: 0,
        })
    })
}

fn cat() -> Rows {
    let mut builder = PayloadBuilder::new();
    let (a, b) = (builder.input(fp32(&[2, 3])).unwrap(), builder.input(fp32(&[2, 3])).unwrap());
    let y = builder.output(fp32(&[2, 6])).unwrap();
    let ids = Cat { input3_id: u32::MAX, input4_id: u32::MAX, input5_id: u32::MAX, ..Cat::default() };
    builder.node(NodeUnion::Concatenate2(Cat {
        axis: 1,
        input1_id: a.id(),
        input2_id: b.id(),
        output_id: y.id(),
        ..ids
    }));
    rows(builder)
}

fn attention() -> Rows {
    let mut builder = PayloadBuilder::new();
    let [q, k, v] = [[1, 2, 3, 4], [1, 2, 5, 4], [1, 2, 5, 4]].map(|dims| builder.input(fp32(&dims)).unwrap().id());
    let (scale, mask) = (builder.input(fp32(&[4])).unwrap().id(), builder.input(fp32(&[3, 5])).unwrap().id());
    let y = builder.output(fp32(&[1, 2, 3, 4])).unwrap().id();
    let (query_id, key_id, value_id, scale_id, mask_id, output_id) = (q, k, v, scale, mask, y);
    let node = ScaledDotProductAttention { query_id, key_id, value_id, scale_id, mask_id, output_id, flags: 0 };
    builder.node(NodeUnion::ScaledDotProductAttention(node));
    rows(builder)
}

/// The first node of a good payload with one change.
fn node(
    id: &'static str,
    rule: &'static Rule,
    good: fn() -> Rows,
    change: impl FnOnce(&mut NodeUnion<'static>),
) -> Case {
    changed(id, rule, "xnodes[0]", good, |rows| change(rows.kind(0)))
}

fn convolved(id: &'static str, rule: &'static Rule, change: impl FnOnce(&mut NodeConv)) -> Case {
    node(id, rule, small, |kind| match kind {
        NodeUnion::Conv2d(node) => change(node),
        other => panic!("{other:?}"),
    })
}

fn kinds() -> Vec<Case> {
    let none = |rows: &mut Rows| rows.nodes[0].xnode_union = None;
    vec![
        changed("node_of_no_kind", &rule::NODE_KIND, "xnodes[0]", small, none),
        node("node_of_kind_99", &rule::NODE_KIND, small, |kind| *kind = NodeUnion::Unknown(99)),
        Case::new("node_without_table", &rule::NODE_KIND, "xnodes[0]", without_table(1)),
        Case::new("attention", &rule::REFUSED_KIND, "xnodes[0]", attention().write()),
        convolved("id_of_no_value", &rule::NODE_IDS, |node| node.filter_id = 77),
        convolved("input_left_out", &rule::NODE_IDS, |node| node.input1_id = u32::MAX),
        changed("bounds_reversed", &rule::BOUNDS, "xnodes[0]", small, |rows| {
            rows.nodes[0].output_min_max = Some(OutputMinMax { output_min: 6.0, output_max: 0.0 });
        }),
        changed("bounds_nan", &rule::BOUNDS, "xnodes[0]", small, |rows| {
            rows.nodes[0].output_min_max = Some(OutputMinMax { output_min: f32::NAN, output_max: 0.0 });
        }),
        convolved("flag_64", &rule::FLAGS, |node| node.flags = 0x40),
    ]
}

fn order() -> Vec<Case> {
    let clamp =
        |rows: &mut Rows, index: usize, input, output| *rows.kind(index) = NodeUnion::Clamp(unary(input, output));
    vec![
        changed("made_twice", &rule::PRODUCER, "xnodes[1]", chain, |rows| clamp(rows, 1, 0, 1)),
        changed("input_made", &rule::PRODUCER, "xnodes[1]", chain, |rows| clamp(rows, 1, 1, 0)),
        convolved("constant_made", &rule::PRODUCER, |node| node.output_id = 2),
        changed("never_made", &rule::PRODUCER, "xvalues[1]", chain, |rows| {
            rows.nodes.remove(0);
        }),
        changed("circle", &rule::CYCLE, "xnodes[0]", chain, |rows| clamp(rows, 0, 2, 1)),
        changed("circle_of_one", &rule::CYCLE, "xnodes[0]", chain, |rows| clamp(rows, 0, 1, 1)),
        changed("output_not_made", &rule::OUTPUT, "xvalues[2]", chain, |rows| {
            rows.nodes.pop();
        }),
    ]
}

fn types() -> Vec<Case> {
    let first = "xnodes[0]";
    let other = |rows: &mut Rows, scale: f32| match rows.params(2) {
        Some(QuantParams::PerTensorQuant(params)) => params.scale = scale,
        params => panic!("{params:?}"),
    };
    vec![
        changed("sum_of_two_types", &rule::SIGNATURE, first, sum, |rows| rows.tensor(1).datatype = Datatype::FP16),
        changed("gelu_of_ints", &rule::SIGNATURE, first, sum, |rows| {
            *rows.kind(0) = NodeUnion::Gelu(unary(0, 2));
            [0, 1, 2].into_iter().for_each(|index| rows.tensor(index).datatype = Datatype::INT32);
        }),
        changed("product_without_scales", &rule::SIGNATURE, "xnodes[1]", bytes, |rows| {
            let Some(NodeUnion::FullyConnected(node)) = &mut rows.nodes[1].xnode_union else { panic!("a product") };
            node.input1_id = 0;
        }),
        changed("conversion_to_int", &rule::SIGNATURE, first, chain, |rows| {
            *rows.kind(0) = NodeUnion::Convert(unary(0, 1));
            rows.tensor(1).datatype = Datatype::INT32;
        }),
        changed("copy_of_other_numbers", &rule::SAME_NUMBERS, first, sum_of_bytes, |rows| {
            *rows.kind(0) = NodeUnion::Copy(unary(0, 2));
            other(rows, 0.25);
        }),
    ]
}

fn weights() -> Vec<Case> {
    let product = |id, change: fn(&mut Rows)| changed(id, &rule::WEIGHTS, "xnodes[1]", blocks, change);
    vec![
        convolved("kernel_0", &rule::SIZES, |node| node.kernel_height = 0),
        convolved("stride_0", &rule::SIZES, |node| node.subsampling_width = 0),
        convolved("dilation_0", &rule::SIZES, |node| node.dilation_height = 0),
        convolved("groups_0", &rule::SIZES, |node| node.groups = 0),
        node("depthwise_channels", &rule::SIZES, small, |kind| {
            let NodeUnion::Conv2d(node) = *kind else { panic!("a convolution") };
            *kind = NodeUnion::DepthwiseConv2d(NodeConv { group_output_channels: 3, ..node });
        }),
        node("window_stride", &rule::SIZES, maximum, |kind| {
            if let NodeUnion::MaxPooling2d(node) = kind {
                node.stride_height = 3;
            }
        }),
        node("image_of_no_pixels", &rule::SIZES, resize, |kind| {
            if let NodeUnion::StaticResizeBilinear2D(node) = kind {
                node.new_width = 0;
            }
        }),
        convolved("kernel_of_5", &rule::WEIGHTS, |node| node.kernel_width = 5),
        convolved("channels_of_4", &rule::WEIGHTS, |node| node.groups = 2),
        changed("bias_of_3", &rule::WEIGHTS, "xnodes[0]", small, |rows| {
            rows.tensor(2).dims = Some(vec![3].into());
        }),
        changed("scales_of_rows", &rule::WEIGHTS, "xnodes[1]", bytes, |rows| match rows.params(2) {
            Some(QuantParams::PerChannelQuant(params)) => {
                (params.channel_dim, params.scale_buffer_idx) = (1, 0);
                params.scale = Some(vec![1.0; 64].into());
            }
            params => panic!("{params:?}"),
        }),
        product("rows_of_another_length", |rows| {
            [0, 1].into_iter().for_each(|index| rows.tensor(index).dims = Some(vec![2, 63].into()));
        }),
        product("bias_of_blocks", |rows| {
            let Some(NodeUnion::FullyConnected(node)) = &mut rows.nodes[1].xnode_union else { panic!("a product") };
            node.bias_id = 0;
        }),
    ]
}

fn shapes() -> Vec<Case> {
    let new_shape = |list: Vec<u32>| {
        move |rows: &mut Rows| match rows.kind(1) {
            NodeUnion::StaticReshape(node) => {
                *node = StaticReshape { num_dims: list.len() as u32, new_shape: Some(list.into()), ..node.clone() };
            }
            other => panic!("{other:?}"),
        }
    };
    let second = "xnodes[1]";
    vec![
        changed("reshape_to_more", &rule::RESHAPE, second, small, new_shape(vec![1, 17, 4])),
        changed("reshape_of_two_open", &rule::RESHAPE, second, small, new_shape(vec![0, 0, 4])),
        changed("reshape_to_parts", &rule::RESHAPE, second, small, new_shape(vec![0, 5])),
        changed("declared", &rule::DECLARED, "xnodes[0]", sum, |rows| rows.tensor(2).dims = Some(vec![3, 2].into())),
        changed("broadcast", &rule::INPUT_SHAPES, "xnodes[0]", sum, |rows| {
            rows.tensor(1).dims = Some(vec![2, 2].into())
        }),
        changed("matrices", &rule::INPUT_SHAPES, "xnodes[0]", sum, |rows| {
            let NodeUnion::Add(node) = *rows.kind(0) else { panic!("a sum") };
            *rows.kind(0) = NodeUnion::BatchMatrixMultiply(node);
        }),
        changed("cat_of_other_rows", &rule::INPUT_SHAPES, "xnodes[0]", cat, |rows| {
            rows.tensor(1).dims = Some(vec![3, 2].into());
        }),
        changed("image_of_rank_3", &rule::INPUT_SHAPES, "xnodes[0]", resize, |rows| {
            rows.tensor(0).num_dims = 3;
            rows.tensor(0).dims = Some(vec![4, 4, 2].into());
        }),
        node("image_too_large", &rule::RESULT_SIZE, resize, |kind| {
            if let NodeUnion::StaticResizeBilinear2D(node) = kind {
                (node.new_height, node.new_width) = (1 << 14, 1 << 14);
            }
        }),
        node("image_beyond_numbers", &rule::RESULT_SIZE, pad, |kind| {
            if let NodeUnion::StaticConstantPad(node) = kind {
                node.pre_paddings = Some(vec![u32::MAX, 0].into());
            }
        }),
        changed("windows_too_many", &rule::RESULT_SIZE, "xnodes[0]", maximum, |rows| {
            if let NodeUnion::MaxPooling2d(node) = rows.kind(0) {
                (node.pooling_height, node.pooling_width, node.stride_height) = (1 << 10, 1 << 10, 1);
                (node.padding_bottom, node.stride_width) = (1 << 11, 1);
            }
        }),
    ]
}

fn lists() -> Vec<Case> {
    let perm = |id, list: Option<Vec<u32>>, num_dims| {
        node(id, &rule::DIMENSION_LISTS, transpose, |kind| {
            if let NodeUnion::StaticTranspose(node) = kind {
                *node = StaticTranspose { perm: list.map(Into::into), num_dims, ..node.clone() };
            }
        })
    };
    vec![
        perm("perm_repeats", Some(vec![1, 1]), 2),
        perm("perm_beyond", Some(vec![2, 0]), 2),
        perm("perm_of_3", Some(vec![1, 0, 2]), 3),
        perm("perm_absent", None, 2),
        perm("perm_num_dims", Some(vec![1, 0]), 3),
        node("pad_lengths", &rule::DIMENSION_LISTS, pad, |kind| {
            if let NodeUnion::StaticConstantPad(node) = kind {
                node.post_paddings = Some(vec![0].into());
            }
        }),
        node("slice_lengths", &rule::DIMENSION_LISTS, slice, |kind| {
            if let NodeUnion::StaticSlice(node) = kind {
                node.sizes = Some(vec![1].into());
            }
        }),
        node("axis_beyond", &rule::DIMENSION_LISTS, cat, |kind| {
            if let NodeUnion::Concatenate2(node) = kind {
                node.axis = 2;
            }
        }),
    ]
}

/// A product of rows of so many bytes that sums may wrap.
fn long_rows() -> Rows {
    let mut builder = PayloadBuilder::new();
    let x = builder.input(qint8(&[1, 70_000], 0.5, 0)).unwrap();
    let w = builder.named_constant("w", 70_000).unwrap();
    let w = builder.constant_value(qint8(&[1, 70_000], 0.5, 0), w).unwrap();
    let y = builder.output(qint8(&[1, 1], 0.5, 0)).unwrap();
    let node = edgepack_format::xnnpack::FullyConnected {
        input1_id: x.id(),
        filter_id: w.id(),
        bias_id: u32::MAX,
        output_id: y.id(),
        flags: 0,
    };
    builder.node(NodeUnion::FullyConnected(node));
    rows(builder)
}

fn ranges() -> Vec<Case> {
    let scale = |rows: &mut Rows, index: usize, scale: f32| match rows.params(index) {
        Some(QuantParams::PerTensorQuant(params)) => params.scale = scale,
        params => panic!("{params:?}"),
    };
    let inline = |rows: &mut Rows, scale: f32| match rows.params(2) {
        Some(QuantParams::PerChannelQuant(params)) => {
            (params.scale, params.scale_buffer_idx) = (Some(vec![scale; 8].into()), 0);
        }
        params => panic!("{params:?}"),
    };
    let first = "xnodes[0]";
    vec![
        changed("sum_ratio", &rule::SCALE_RANGE, first, sum_of_bytes, |rows| scale(rows, 2, 0.5 / 256.0)),
        changed("sum_ratio_small", &rule::SCALE_RANGE, first, sum_of_bytes, |rows| scale(rows, 1, 0.0004)),
        changed("product_ratio", &rule::SCALE_RANGE, first, product_of_bytes, |rows| scale(rows, 2, 1e-4)),
        changed("weight_scale", &rule::SCALE_RANGE, "xnodes[1]", bytes, |rows| inline(rows, 256.0)),
        changed("scale_vanishes", &rule::DERIVED, "xnodes[1]", bytes, |rows| {
            scale(rows, 1, 1e-20);
            inline(rows, 1e-20);
        }),
        changed("reciprocal_vanishes", &rule::DERIVED, first, bytes, |rows| scale(rows, 1, 3e38)),
        Case::new("long_rows", &rule::ACCUMULATOR, first, long_rows().write()),
    ]
}
