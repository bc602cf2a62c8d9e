//! Nodes of XNNPACK against what they mean: those that no exporter of today writes and the library does not run any more, and
//! those between permutations that need not move anything.

use edgepack_builder::xnnpack::{BuiltPayload, PayloadBuilder, Quant, Scales, Storage, ValueId, ValueSpec};
use edgepack_executor::Options;
use edgepack_format::tensor::TensorView;
use edgepack_format::xnnpack::{
    Datatype, FullyConnected, NO_ID, Node2x1, NodeUnion, ScaledDotProductAttention, StaticSlice, StaticTranspose,
};
use edgepack_tests::assemble::float;
use edgepack_tests::payload::{Names, floats, load, one_call, options, plain, quantized, run, unary};

const HEADS: usize = 2;
const ROWS: usize = 3;
const COLUMNS: usize = 5;
const DEPTH: usize = 4;

fn little_endian(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// `softmax(q * scale @ k^T + mask) @ v`, head by head.
fn attended(query: &[f32], key: &[f32], value: &[f32], scale: &[f32], mask: &[f32]) -> Vec<f32> {
    let mut result = Vec::new();
    for (head, row) in (0..HEADS).flat_map(|head| (0..ROWS).map(move |row| (head, row))) {
        let q = &query[(head * ROWS + row) * DEPTH..][..DEPTH];
        let scores: Vec<f64> = (0..COLUMNS)
            .map(|column| {
                let k = &key[(head * COLUMNS + column) * DEPTH..][..DEPTH];
                let sum: f64 = (0..DEPTH).map(|d| f64::from(q[d]) * f64::from(scale[d]) * f64::from(k[d])).sum();
                (sum + f64::from(mask[row * COLUMNS + column])).exp()
            })
            .collect();
        let all: f64 = scores.iter().sum();
        for d in 0..DEPTH {
            let of = |column: usize| f64::from(value[(head * COLUMNS + column) * DEPTH + d]);
            let sum: f64 = scores.iter().enumerate().map(|(column, score)| score / all * of(column)).sum();
            result.push(sum as f32);
        }
    }
    result
}

#[test]
fn attention_of_older_releases_is_its_formula() {
    let of = |rows: usize| [1, HEADS as u32, rows as u32, DEPTH as u32];
    let scale = [0.5f32, 0.25, 0.5, 1.0];
    let mask: Vec<f32> = floats(ROWS * COLUMNS).iter().map(|x| x / 2.0).collect();
    let mut b = PayloadBuilder::new().storage(Storage::Region);
    let inputs = [of(ROWS), of(COLUMNS), of(COLUMNS)].map(|dims| b.input(plain(&dims)).unwrap());
    let scales = b.constant(little_endian(&scale)).unwrap();
    let scales = b.constant_value(plain(&[DEPTH as u32]), scales).unwrap();
    let masked = b.constant(little_endian(&mask)).unwrap();
    let masked = b.constant_value(plain(&[ROWS as u32, COLUMNS as u32]), masked).unwrap();
    let y = b.output(plain(&of(ROWS))).unwrap();
    b.node(NodeUnion::ScaledDotProductAttention(ScaledDotProductAttention {
        query_id: inputs[0].id(),
        key_id: inputs[1].id(),
        value_id: inputs[2].id(),
        scale_id: scales.id(),
        mask_id: masked.id(),
        output_id: y.id(),
        flags: 0,
    }));
    let payload = b.finish().unwrap();

    let spec = |rows: usize| float(&[1, HEADS as i32, rows as i32, DEPTH as i32]);
    let call = one_call(&payload, &[spec(ROWS), spec(COLUMNS), spec(COLUMNS)], spec(ROWS));
    let (query, both) = (floats(HEADS * ROWS * DEPTH), floats(2 * HEADS * COLUMNS * DEPTH));
    let (key, value) = both.split_at(HEADS * COLUMNS * DEPTH);
    let (q, k) = ([1, HEADS, ROWS, DEPTH], [1, HEADS, COLUMNS, DEPTH]);
    let mut method = load(&call, &options()).unwrap();
    let (sizes, found) = run(&mut method, &[(&q, &query), (&k, key), (&k, value)]).unwrap();
    assert_eq!(sizes, q);
    let want = attended(&query, key, value, &scale, &mask);
    let furthest = found.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
    assert!(furthest <= 2e-6, "{furthest}");
}

/// A product of rows with 8-bit weights; rows are quantised by a node, or when the input is read.
fn product_of_rows(when_read: bool) -> Vec<f32> {
    let storage = if when_read { Storage::Bare } else { Storage::Region };
    let mut b = PayloadBuilder::new().storage(storage);
    let x = match when_read {
        true => b.input(plain(&[3, 8]).read_dynamically()).unwrap(),
        false => b.input(plain(&[3, 8])).unwrap(),
    };
    let y = b.output(plain(&[3, 4])).unwrap();
    let bytes = b.constant((0..32u8).map(|byte| byte.wrapping_mul(37)).collect::<Vec<_>>()).unwrap();
    let scales = Scales::Inline(vec![0.01, 0.02, 0.03, 0.04]);
    let spec = ValueSpec::new(Datatype::QCINT8, [4, 8]).quantized(Quant::PerChannel { channel_dim: 0, scales });
    let w = b.constant_value(spec, bytes).unwrap();
    let rows = match when_read {
        true => x,
        false => {
            let rows = ValueSpec::new(Datatype::QDINT8, [3, 8]);
            let rows = b.value(rows.quantized(Quant::PerToken { num_nonbatch_dims: 1 })).unwrap();
            b.node(NodeUnion::Convert(unary(x, rows)));
            rows
        }
    };
    let node = FullyConnected { input1_id: rows.id(), filter_id: w.id(), bias_id: NO_ID, output_id: y.id(), flags: 0 };
    b.node(NodeUnion::FullyConnected(node));
    let payload = b.finish().unwrap();
    let mut method = load(&one_call(&payload, &[float(&[3, 8])], float(&[3, 4])), &options()).unwrap();
    run(&mut method, &[(&[3, 8], &floats(24))]).unwrap().1
}

#[test]
fn an_input_that_is_quantised_when_it_is_read_is_one_behind_a_conversion() {
    let found = product_of_rows(true);
    assert!(found.iter().any(|y| y.abs() > 0.1), "{found:?}");
    assert_eq!(found, product_of_rows(false));
}

/// Whether products are fused into sums on this machine.
fn fuses() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return cfg!(target_arch = "aarch64");
}

/// `a @ b` in four dimensions whose second one changes; sums are taken in order, as XNNPACK takes them.
#[test]
fn batches_of_several_dimensions_may_change_their_sizes() {
    let mut b = PayloadBuilder::new().storage(Storage::Region);
    let (x, z) = (b.input(plain(&[2, 3, 4, 5])).unwrap(), b.input(plain(&[2, 3, 5, 2])).unwrap());
    let y = b.output(plain(&[2, 3, 4, 2])).unwrap();
    let node = Node2x1 { input1_id: x.id(), input2_id: z.id(), output_id: y.id(), flags: 0 };
    b.node(NodeUnion::BatchMatrixMultiply(node));
    let payload = b.finish().unwrap();
    let spec = |sizes: [i32; 4]| float(&sizes).dynamic();
    let call = one_call(&payload, &[spec([2, 3, 4, 5]), spec([2, 3, 5, 2])], spec([2, 3, 4, 2]));
    let mut method = load(&call, &options()).unwrap();
    for (heads, rows) in [(3, 4), (2, 3), (1, 4), (3, 1)] {
        let (left, right) = (floats(2 * heads * rows * 5), floats(2 * heads * 5 * 2));
        let (a, b) = ([2, heads, rows, 5], [2, heads, 5, 2]);
        let (sizes, found) = run(&mut method, &[(&a, &left), (&b, &right)]).unwrap();
        assert_eq!(sizes, [2, heads, rows, 2]);
        for (at, found) in found.iter().enumerate() {
            let (matrix, row, column) = (at / (rows * 2), at / 2 % rows, at % 2);
            let want = (0..5).fold(0f32, |sum, k| {
                let (x, y) = (left[(matrix * rows + row) * 5 + k], right[(matrix * 5 + k) * 2 + column]);
                if fuses() { x.mul_add(y, sum) } else { sum + x * y }
            });
            assert_eq!(*found, want, "at {at}");
        }
    }
}

#[test]
fn weights_whose_scales_would_be_those_of_a_bias_are_refused() {
    let product = |bias: bool| {
        let mut b = PayloadBuilder::new().storage(Storage::Region);
        let (x, y) = (b.input(plain(&[3, 8])).unwrap(), b.output(plain(&[3, 4])).unwrap());
        let bytes = b.constant(vec![3u8; 32]).unwrap();
        let scales = Scales::Inline(vec![0.01, 0.02, 0.03, 0.04]);
        let spec = ValueSpec::new(Datatype::QCINT8, [4, 8]).quantized(Quant::PerChannel { channel_dim: 0, scales });
        let w = b.constant_value(spec, bytes).unwrap();
        let added = b.constant(little_endian(&[1.0; 4])).unwrap();
        let added = b.constant_value(plain(&[4]), added).unwrap();
        let bias_id = if bias { added.id() } else { NO_ID };
        let node = FullyConnected { input1_id: x.id(), filter_id: w.id(), bias_id, output_id: y.id(), flags: 0 };
        b.node(NodeUnion::FullyConnected(node));
        load(&one_call(&b.finish().unwrap(), &[float(&[3, 8])], float(&[3, 4])), &options())
    };
    assert!(product(false).is_ok());
    let error = product(true).err().map(|error| error.to_string());
    assert!(error.as_ref().is_some_and(|error| error.contains("node 0, FullyConnected: its weights")), "{error:?}");
}

fn permuted(dims: &[u32], from: ValueId, to: ValueId) -> StaticTranspose<'static> {
    let perm = Some(dims.to_vec().into());
    StaticTranspose { num_dims: dims.len() as u32, perm, input_id: from.id(), output_id: to.id(), flags: 0 }
}

/// Loads a payload of one input and one output, and runs it: the names of what runs, and the results.
fn run_one(
    payload: &BuiltPayload,
    input: [usize; 4],
    output: [usize; 4],
    no_optimize: bool,
) -> (Vec<String>, Vec<f32>) {
    let spec = |sizes: [usize; 4]| float(&sizes.map(|size| size as i32));
    let call = one_call(payload, &[spec(input)], spec(output));
    let mut method = load(&call, &Options { no_optimize, ..options() }).unwrap();
    let numbers = floats(input.iter().product());
    let mut names = Names::default();
    let view = [TensorView::of::<f32>(&input, bytemuck::cast_slice(&numbers)).unwrap()];
    method.run_observed(&view, Some(&mut names)).unwrap();
    (names.0, run(&mut method, &[(&input, &numbers)]).unwrap().1)
}

/// A pixel's channels times a number, or a number for each channel, between permutations: what runs, and the results.
fn scaled_between_permutations(factors: usize, no_optimize: bool) -> (Vec<String>, Vec<f32>) {
    let (pixels, planes) = ([1, 5, 7, 6], [1, 6, 5, 7]);
    let of = |dims: &[u32]| quantized(dims, 0.02, 3);
    let mut b = PayloadBuilder::new().storage(Storage::Region);
    let (x, y) = (b.input(plain(&pixels)).unwrap(), b.output(plain(&pixels)).unwrap());
    let [first, last] = [0; 2].map(|_| b.value(of(&pixels)).unwrap());
    let [from, to] = [0; 2].map(|_| b.value(of(&planes)).unwrap());
    let bytes = b.constant((0..factors as u8).map(|byte| 90 + 5 * byte).collect::<Vec<_>>()).unwrap();
    let by = b.constant_value(of(&[1, factors as u32, 1, 1]), bytes).unwrap();
    b.node(NodeUnion::Convert(unary(x, first)));
    b.node(NodeUnion::StaticTranspose(permuted(&[0, 3, 1, 2], first, from)));
    b.node(NodeUnion::Multiply(Node2x1 { input1_id: from.id(), input2_id: by.id(), output_id: to.id(), flags: 0 }));
    b.node(NodeUnion::StaticTranspose(permuted(&[0, 2, 3, 1], to, last)));
    b.node(NodeUnion::Convert(unary(last, y)));
    let sizes = pixels.map(|size| size as usize);
    run_one(&b.finish().unwrap(), sizes, sizes, no_optimize)
}

/// One number meets the elements of every order; one for each channel does not.
#[test]
fn images_between_permutations_are_scaled_where_they_are() {
    for (factors, permutations) in [(1, 0), (6, 2)] {
        let (names, found) = scaled_between_permutations(factors, false);
        let moved = names.iter().filter(|name| name.contains("permute")).count();
        assert_eq!(moved, permutations, "{names:?}");
        assert_eq!(found, scaled_between_permutations(factors, true).1);
        assert!(found.iter().any(|y| y.abs() > 0.1), "{found:?}");
    }
}

/// Some channels of an image between permutations: sizes that a slice takes whole are not cut, so nothing is moved for them.
#[test]
fn a_slice_cuts_only_what_it_takes_a_part_of() {
    let of = |dims: &[u32]| quantized(dims, 0.02, 3);
    let mut b = PayloadBuilder::new().storage(Storage::Region);
    let (x, y) = (b.input(plain(&[1, 5, 7, 6])).unwrap(), b.output(plain(&[1, 5, 7, 3])).unwrap());
    let (first, last) = (b.value(of(&[1, 5, 7, 6])).unwrap(), b.value(of(&[1, 5, 7, 3])).unwrap());
    let (from, to) = (b.value(of(&[1, 6, 5, 7])).unwrap(), b.value(of(&[1, 3, 5, 7])).unwrap());
    b.node(NodeUnion::Convert(unary(x, first)));
    b.node(NodeUnion::StaticTranspose(permuted(&[0, 3, 1, 2], first, from)));
    b.node(NodeUnion::StaticSlice(StaticSlice {
        num_dims: 4,
        offsets: Some(vec![0, 2, 0, 0].into()),
        sizes: Some(vec![1, 3, 5, 7].into()),
        input_id: from.id(),
        output_id: to.id(),
        flags: 0,
    }));
    b.node(NodeUnion::StaticTranspose(permuted(&[0, 2, 3, 1], to, last)));
    b.node(NodeUnion::Convert(unary(last, y)));
    let payload = b.finish().unwrap();
    let (names, found) = run_one(&payload, [1, 5, 7, 6], [1, 5, 7, 3], false);
    let moving: Vec<&String> = names.iter().filter(|name| name.starts_with("aten::")).collect();
    assert_eq!(moving, ["aten::slice_copy.Tensor_out"], "{names:?}");
    assert_eq!(found, run_one(&payload, [1, 5, 7, 6], [1, 5, 7, 3], true).1);
    let input = floats(5 * 7 * 6);
    let want = input.chunks(6).flat_map(|pixel| &pixel[2..5]);
    assert!(found.iter().zip(want).all(|(found, want)| (found - want).abs() <= 0.011), "{found:?}");
}
