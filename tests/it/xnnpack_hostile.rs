//! Payloads of XNNPACK that verify, or nearly so, in calls that they were not made for: sizes that change from run to run,
//! scales that are not numbers, limits, arguments that are one value, named data that answer differently.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use edgepack_builder::xnnpack::{BuiltPayload, NamedBytes, PayloadBuilder, Quant, Scales, Storage, ValueId, ValueSpec};
use edgepack_executor::{Options, Output};
use edgepack_format::limits::Limits;
use edgepack_format::tensor::{TensorLayout, TensorView};
use edgepack_format::xnnpack::{
    Datatype, FullyConnected, NO_ID, Node2x1, NodeConv, NodeUnion, Pooling2D, StaticResizeBilinear2D,
};
use edgepack_loader::{Bytes, Error, NamedDataMap};
use edgepack_tests::assemble::{Assembly, Id, Spec, float};
use edgepack_tests::payload::{BACKEND, Names, floats, load, one_call, options, plain, quantized, run, unary};

/// Kinds of nodes with windows over images of four channels.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Windows {
    Float,
    FloatDepthwise,
    Bytes,
    BytesDepthwise,
    BytesTransposed,
    Rows,
    Greatest,
    GreatestBytes,
    Mean,
}

const IMAGE: [u32; 4] = [1, 4, 4, 4];

fn geometry(kind: Windows, [x, w, y]: [u32; 3]) -> NodeConv {
    let depthwise = matches!(kind, Windows::FloatDepthwise | Windows::BytesDepthwise);
    NodeConv {
        kernel_height: 1,
        kernel_width: 1,
        subsampling_height: 1,
        subsampling_width: 1,
        dilation_height: 1,
        dilation_width: 1,
        group_input_channels: if depthwise { 1 } else { 4 },
        group_output_channels: if depthwise { 1 } else { 4 },
        groups: if depthwise { 4 } else { 1 },
        input1_id: x,
        filter_id: w,
        bias_id: NO_ID,
        output_id: y,
        ..NodeConv::default()
    }
}

fn windowed(kind: Windows) -> BuiltPayload {
    let mut b = PayloadBuilder::new().storage(Storage::Region);
    let x = b.input(plain(&IMAGE)).unwrap();
    let y = b.output(plain(&IMAGE)).unwrap();
    let is_depthwise = matches!(kind, Windows::FloatDepthwise | Windows::BytesDepthwise);
    let dims = if is_depthwise { [1, 1, 1, 4] } else { [4, 1, 1, 4] };
    let count = dims.iter().product::<u32>() as usize;
    let pooling = |x: ValueId, y: ValueId| Pooling2D {
        pooling_height: 2,
        pooling_width: 1,
        stride_height: 1,
        stride_width: 1,
        dilation_height: 1,
        dilation_width: 1,
        padding_top: 1,
        input_id: x.id(),
        output_id: y.id(),
        ..Pooling2D::default()
    };
    let from = match kind {
        Windows::Float | Windows::FloatDepthwise | Windows::Greatest | Windows::Mean => x,
        Windows::Rows => {
            let rows = ValueSpec::new(Datatype::QDINT8, IMAGE);
            let q = b.value(rows.quantized(Quant::PerToken { num_nonbatch_dims: 3 })).unwrap();
            b.node(NodeUnion::Convert(unary(x, q)));
            q
        }
        _ => {
            let q = b.value(quantized(&IMAGE, 0.05, 3)).unwrap();
            b.node(NodeUnion::Convert(unary(x, q)));
            q
        }
    };
    let is_bytes =
        matches!(kind, Windows::Bytes | Windows::BytesDepthwise | Windows::BytesTransposed | Windows::GreatestBytes);
    let to = if is_bytes { b.value(quantized(&IMAGE, 0.05, 3)).unwrap() } else { y };
    match kind {
        Windows::Greatest | Windows::GreatestBytes => {
            b.node(NodeUnion::MaxPooling2d(pooling(from, to)));
        }
        Windows::Mean => {
            b.node(NodeUnion::AvgPooling2d(pooling(from, to)));
        }
        Windows::Float | Windows::FloatDepthwise => {
            let bytes: Vec<u8> = floats(count).iter().flat_map(|w| w.to_le_bytes()).collect();
            let bytes = b.constant(bytes).unwrap();
            let w = b.constant_value(plain(&dims), bytes).unwrap();
            let node = geometry(kind, [from.id(), w.id(), to.id()]);
            b.node(if is_depthwise { NodeUnion::DepthwiseConv2d(node) } else { NodeUnion::Conv2d(node) });
        }
        _ => {
            let bytes = b.constant((0..count as u8).collect::<Vec<_>>()).unwrap();
            let scales = Scales::Inline(vec![0.02; 4]);
            let channel_dim = if is_depthwise { 3 } else { 0 };
            let spec = ValueSpec::new(Datatype::QCINT8, dims).quantized(Quant::PerChannel { channel_dim, scales });
            let w = b.constant_value(spec, bytes).unwrap();
            let node = geometry(kind, [from.id(), w.id(), to.id()]);
            b.node(match kind {
                Windows::BytesDepthwise => NodeUnion::DepthwiseConv2d(node),
                Windows::BytesTransposed => NodeUnion::ConvTranspose2d(node),
                _ => NodeUnion::Conv2d(node),
            });
        }
    }
    if is_bytes {
        b.node(NodeUnion::Convert(unary(to, y)));
    }
    b.finish().unwrap()
}

#[test]
fn channels_that_change_from_run_to_run_are_errors_where_weights_need_them() {
    let convolutions = [
        Windows::Float,
        Windows::FloatDepthwise,
        Windows::Bytes,
        Windows::BytesDepthwise,
        Windows::BytesTransposed,
        Windows::Rows,
    ];
    for kind in convolutions {
        let spec = || float(&[1, 4, 4, 4]).dynamic();
        let mut method = load(&one_call(&windowed(kind), &[spec()], spec()), &options()).unwrap();
        let (sizes, whole) = run(&mut method, &[(&[1, 4, 4, 4], &floats(64))]).unwrap();
        assert_eq!(sizes, [1, 4, 4, 4], "{kind:?}");
        for channels in [1, 2, 3] {
            let less = run(&mut method, &[(&[1, 4, 4, channels], &floats(16 * channels))]);
            assert!(less.is_err(), "{kind:?} of {channels} channels");
        }
        // Other heights are none of its concern, and the method is as it was.
        assert_eq!(run(&mut method, &[(&[1, 2, 4, 4], &floats(32))]).unwrap().0, [1, 2, 4, 4], "{kind:?}");
        assert_eq!(run(&mut method, &[(&[1, 4, 4, 4], &floats(64))]).unwrap().1, whole, "{kind:?}");
    }
}

#[test]
fn pooling_takes_the_channels_that_are_there() {
    for kind in [Windows::Greatest, Windows::GreatestBytes, Windows::Mean] {
        let spec = || float(&[1, 4, 4, 4]).dynamic();
        let mut method = load(&one_call(&windowed(kind), &[spec()], spec()), &options()).unwrap();
        let input = floats(4 * 4 * 3);
        let (sizes, found) = run(&mut method, &[(&[1, 4, 4, 3], &input)]).unwrap();
        assert_eq!(sizes, [1, 4, 4, 3], "{kind:?}");
        for (at, found) in found.iter().enumerate() {
            let (here, above) = (input[at], at.checked_sub(12).map(|above| input[above]));
            let want = match kind {
                Windows::Mean => above.map_or(here, |above| (above + here) / 2.0),
                _ => above.map_or(here, |above| above.max(here)),
            };
            let by = if kind == Windows::GreatestBytes { 0.026 } else { 1e-6 };
            assert!((found - want).abs() <= by, "{kind:?}: {found} at {at}, {want} is right");
        }
    }
}

/// Named data that count how often they are asked, and answer from the second time on with other bytes.
struct Changing {
    first: BTreeMap<String, Vec<u8>>,
    asked: AtomicUsize,
    seen: Mutex<Vec<String>>,
}

/// Named data with their bytes read.
fn in_memory(named: &NamedBytes) -> impl Iterator<Item = (String, Vec<u8>)> {
    named.iter().map(|(key, data)| (key.clone(), data.to_vec().unwrap()))
}

impl Changing {
    fn new(named: impl Iterator<Item = (String, Vec<u8>)>) -> Arc<Self> {
        let first = named.collect();
        Arc::new(Changing { first, asked: AtomicUsize::new(0), seen: Mutex::default() })
    }
}

impl NamedDataMap for Changing {
    fn data(&self, key: &str) -> Result<Option<Bytes>, Error> {
        let Some(bytes) = self.first.get(key) else { return Ok(None) };
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut seen = self.seen.lock().unwrap();
        let again = seen.iter().any(|seen| seen == key);
        seen.push(key.to_owned());
        Ok(Some(Bytes::from(if again { Vec::new() } else { bytes.clone() })))
    }
    fn layout(&self, _: &str) -> Result<Option<TensorLayout>, Error> {
        Ok(None)
    }
    fn len(&self) -> usize {
        self.first.len()
    }
    fn key(&self, index: usize) -> Option<&str> {
        self.first.keys().nth(index).map(String::as_str)
    }
    fn contains(&self, key: &str) -> bool {
        self.first.contains_key(key)
    }
}

const ROWS: [u32; 2] = [2, 4];

/// Two products with the same weights; their scales are a constant of its own.
fn products(scale: impl FnOnce(&mut PayloadBuilder) -> Scales, [sx, sy]: [f32; 2]) -> BuiltPayload {
    let mut b = PayloadBuilder::new();
    let (x, y) = (b.input(plain(&ROWS)).unwrap(), b.output(plain(&ROWS)).unwrap());
    let bytes = b.constant((1..17u8).collect::<Vec<_>>()).unwrap();
    let scales = scale(&mut b);
    let spec = ValueSpec::new(Datatype::QCINT8, [4, 4]).quantized(Quant::PerChannel { channel_dim: 0, scales });
    let w = b.constant_value(spec, bytes).unwrap();
    let q = b.value(quantized(&ROWS, sx, 0)).unwrap();
    let r = b.value(quantized(&ROWS, sy, 0)).unwrap();
    b.node(NodeUnion::Convert(unary(x, q)));
    let product = FullyConnected { input1_id: q.id(), filter_id: w.id(), bias_id: NO_ID, output_id: r.id(), flags: 0 };
    b.node(NodeUnion::FullyConnected(product));
    b.node(NodeUnion::Convert(unary(r, y)));
    b.finish().unwrap()
}

fn inline(scale: f32) -> impl FnOnce(&mut PayloadBuilder) -> Scales {
    move |b| {
        let bytes: Vec<u8> = [scale; 4].iter().flat_map(|scale| scale.to_le_bytes()).collect();
        Scales::Constant(b.scales(bytes).unwrap(), 4)
    }
}

fn rows() -> Spec {
    float(&[2, 4])
}

#[test]
fn named_data_are_asked_for_once_however_many_calls_there_are() {
    let payload = products(inline(0.02), [0.05, 0.1]);
    let mut a = Assembly::new();
    let (x, between, y) = (a.planned(rows()), a.planned(rows()), a.planned(rows()));
    a.inputs(&[x]);
    a.delegate(BACKEND, &payload.bytes, &[x, between]);
    a.call_delegate(0, &[between, y]);
    a.outputs(&[y]);

    let map = Changing::new(in_memory(&payload.named));
    let data: Vec<Arc<dyn NamedDataMap>> = vec![map.clone()];
    let mut method = load(&a, &Options { data, ..options() }).unwrap();
    assert_eq!(map.asked.load(Ordering::Relaxed), payload.named.len(), "{:?}", map.seen.lock());
    let input = floats(8);
    let (_, once) = run(&mut method, &[(&[2, 4], &input)]).unwrap();
    assert!(once.iter().any(|y| *y != 0.0));
    // What was found the first time is what runs.
    assert_eq!(run(&mut method, &[(&[2, 4], &input)]).unwrap().1, once);
    assert_eq!(map.asked.load(Ordering::Relaxed), payload.named.len());
}

/// The error of loading a product whose weights have these scales, which only the named data know.
fn refusal(scale: f32, scales: [f32; 2]) -> Option<String> {
    let key = "scale_elsewhere";
    let weights = "weights_elsewhere";
    let mut b = PayloadBuilder::new();
    let (x, y) = (b.input(plain(&ROWS)).unwrap(), b.output(plain(&ROWS)).unwrap());
    let bytes = b.named_constant(weights, 16).unwrap();
    let of_channels = Scales::Constant(b.named_constant(key, 16).unwrap(), 4);
    let spec = ValueSpec::new(Datatype::QCINT8, [4, 4]);
    let w = b.constant_value(spec.quantized(Quant::PerChannel { channel_dim: 0, scales: of_channels }), bytes).unwrap();
    let q = b.value(quantized(&ROWS, scales[0], 0)).unwrap();
    let r = b.value(quantized(&ROWS, scales[1], 0)).unwrap();
    b.node(NodeUnion::Convert(unary(x, q)));
    let product = FullyConnected { input1_id: q.id(), filter_id: w.id(), bias_id: NO_ID, output_id: r.id(), flags: 0 };
    b.node(NodeUnion::FullyConnected(product));
    b.node(NodeUnion::Convert(unary(r, y)));
    let payload = b.finish().unwrap();

    let scale: Vec<u8> = [0.02, scale, 0.02, 0.02].iter().flat_map(|scale: &f32| scale.to_le_bytes()).collect();
    let map = Changing::new([(key.to_owned(), scale), (weights.to_owned(), vec![1; 16])].into_iter());
    let data: Vec<Arc<dyn NamedDataMap>> = vec![map];
    load(&one_call(&payload, &[rows()], rows()), &Options { data, ..options() }).err().map(|error| error.to_string())
}

#[test]
fn scales_that_named_data_have_are_looked_at_and_so_are_those_that_follow_from_them() {
    assert_eq!(refusal(0.02, [0.05, 0.1]), None);
    for scale in [0.0, -0.02, f32::NAN, f32::INFINITY, 1e-40] {
        let error = refusal(scale, [0.05, 0.1]);
        assert!(error.as_ref().is_some_and(|error| error.contains("XNN-")), "{scale}: {error:?}");
    }
    // Each of them is a scale; sx * sw is 0, or sx * sw / sy is infinite or too great.
    for (scale, scales) in [(1e-30, [1e-30, 0.1]), (1e30, [1e30, 0.1]), (1e10, [1e20, 1e-20]), (1e3, [1e3, 1e-3])] {
        let error = refusal(scale, scales);
        assert!(error.is_some(), "{scale} and {scales:?}");
    }
}

#[test]
fn a_reciprocal_that_is_no_number_is_refused() {
    let mut b = PayloadBuilder::new().storage(Storage::Region);
    let (x, y) = (b.input(plain(&ROWS)).unwrap(), b.output(plain(&ROWS)).unwrap());
    // The least normal number has a reciprocal; the greatest has one that is subnormal.
    let q = b.value(quantized(&ROWS, f32::MAX, 0)).unwrap();
    b.node(NodeUnion::Convert(unary(x, q)));
    b.node(NodeUnion::Convert(unary(q, y)));
    let error = b.finish().unwrap_err().to_string();
    assert!(error.contains("XNN-Q08"), "{error}");
}

fn resized(to: u32) -> BuiltPayload {
    let mut b = PayloadBuilder::new().storage(Storage::Region);
    let x = b.input(plain(&[1, 2, 2, 4])).unwrap();
    let between = b.value(plain(&[1, to, to, 4])).unwrap();
    let y = b.output(plain(&[1, 4])).unwrap();
    let node =
        StaticResizeBilinear2D { new_height: to, new_width: to, input_id: x.id(), output_id: between.id(), flags: 0 };
    b.node(NodeUnion::StaticResizeBilinear2D(node));
    b.node(NodeUnion::GlobalAvgPooling2d(unary(between, y)));
    b.finish().unwrap()
}

#[test]
fn results_inside_are_charged_to_the_limits_of_the_method() {
    let payload = resized(512);
    let call = one_call(&payload, &[float(&[1, 2, 2, 4])], float(&[1, 4]));
    assert!(load(&call, &options()).is_ok());
    let small = |limits: Limits| load(&call, &Options { limits: Some(limits), ..options() }).err();
    // Four MiB are between the nodes.
    let memory = limited(|limits| limits.memory_bytes = 3 << 20);
    assert!(small(memory).is_some());
    let arena = limited(|limits| limits.arena_bytes = 3 << 20);
    let error = small(arena).map(|error| error.to_string());
    assert!(error.as_ref().is_some_and(|error| error.contains("the limit is 3145728")), "{error:?}");
}

#[test]
fn places_under_windows_are_charged_before_anything_is_reserved() {
    let mut b = PayloadBuilder::new().storage(Storage::Region);
    let (x, y) = (b.input(plain(&[1, 16, 16, 1])).unwrap(), b.output(plain(&[1, 1, 1, 1])).unwrap());
    b.node(NodeUnion::MaxPooling2d(Pooling2D {
        pooling_height: 16,
        pooling_width: 16,
        stride_height: 1,
        stride_width: 1,
        dilation_height: 1,
        dilation_width: 1,
        input_id: x.id(),
        output_id: y.id(),
        ..Pooling2D::default()
    }));
    let payload = b.finish().unwrap();
    // The payload says one pixel; the call has 49 rows and columns of them.
    let call = one_call(&payload, &[float(&[1, 64, 64, 1])], float(&[1, 49, 49, 1]));
    let with = |arena_bytes| {
        load(&call, &Options { limits: Some(limited(|limits| limits.arena_bytes = arena_bytes)), ..options() })
    };
    assert!(with(8 << 20).is_ok());
    let error = with(1 << 20).err().map(|error| error.to_string());
    assert!(error.as_ref().is_some_and(|error| error.contains("windows")), "{error:?}");
}

/// `y = a - b`.
fn difference() -> BuiltPayload {
    let mut b = PayloadBuilder::new().storage(Storage::Region);
    let (x, z) = (b.input(plain(&ROWS)).unwrap(), b.input(plain(&ROWS)).unwrap());
    let (y, t) = (b.output(plain(&ROWS)).unwrap(), b.output(plain(&ROWS)).unwrap());
    let node = |to: ValueId| Node2x1 { input1_id: x.id(), input2_id: z.id(), output_id: to.id(), flags: 0 };
    b.node(NodeUnion::Subtract(node(y)));
    b.node(NodeUnion::Multiply(node(t)));
    b.finish().unwrap()
}

fn pair_of(args: impl FnOnce(&mut Assembly, [Id; 4]) -> [Id; 4]) -> Assembly {
    let mut a = Assembly::new();
    let ids = [0; 4].map(|_| a.planned(rows()));
    a.inputs(&ids[..2]);
    let args = args(&mut a, ids);
    a.delegate(BACKEND, &difference().bytes, &args);
    a.outputs(&args[2..]);
    a
}

#[test]
fn one_value_cannot_be_two_outputs() {
    let error = load(&pair_of(|_, [a, b, y, _]| [a, b, y, y]), &options()).err().map(|error| error.to_string());
    assert!(error.as_ref().is_some_and(|error| error.contains("two outputs share memory")), "{error:?}");
    // Nor can two values that share memory.
    let error = load(&pair_of(|a, [x, z, y, _]| [x, z, y, a.again(y)]), &options()).err();
    assert!(error.is_some());
}

#[test]
fn an_argument_that_is_input_and_output_is_read_as_it_was() {
    let (a, b) = (floats(8), floats(16)[8..].to_vec());
    let mut call = Assembly::new();
    let [x, z, y, t, u] = [0; 5].map(|_| call.planned(rows()));
    call.inputs(&[x, z]);
    call.delegate(BACKEND, &difference().bytes, &[x, z, y, t]);
    // The first result is the first input; the second one is made of it behind that.
    call.call_delegate(0, &[y, z, y, u]);
    call.outputs(&[u, y]);
    for no_optimize in [false, true] {
        let mut method = load(&call, &Options { no_optimize, ..options() }).unwrap();
        let (_, product) = run(&mut method, &[(&[2, 4], &a), (&[2, 4], &b)]).unwrap();
        let want: Vec<f32> = a.iter().zip(&b).map(|(a, b)| (a - b) * b).collect();
        assert_eq!(product, want);
    }
}

#[test]
fn equal_conversions_of_one_value_are_computed_once_across_delegates() {
    let payload = products(inline(0.02), [0.05, 0.1]);
    let other = products(inline(0.03), [0.05, 0.2]);
    let apart = products(inline(0.03), [0.06, 0.2]);
    let mut a = Assembly::new();
    let x = a.planned(rows());
    let [first, second, third] = [0; 3].map(|_| a.planned(rows()));
    a.inputs(&[x]);
    a.delegate(BACKEND, &payload.bytes, &[x, first]);
    a.delegate(BACKEND, &other.bytes, &[x, second]);
    // Another scale is another conversion.
    a.delegate(BACKEND, &apart.bytes, &[x, third]);
    a.outputs(&[first, second, third]);

    let named: Vec<_> = [&payload, &other, &apart].iter().flat_map(|payload| in_memory(&payload.named)).collect();
    let observed = |no_optimize: bool| {
        let data: Vec<Arc<dyn NamedDataMap>> = vec![Arc::new(Steady(named.iter().cloned().collect()))];
        let mut method = load(&a, &Options { no_optimize, data, ..options() }).unwrap();
        let input = floats(8);
        let input = TensorView::of::<f32>(&[2, 4], bytemuck::cast_slice(&input)).unwrap();
        let mut names = Names::default();
        let outputs = method.run_observed(&[input], Some(&mut names)).unwrap();
        let tensors = outputs.iter().map(|output| match output {
            Output::Tensor(tensor) => tensor.as_slice::<f32>().unwrap().to_vec(),
            other => panic!("{other:?}"),
        });
        let conversions = names.0.iter().filter(|name| name.contains("::quantize_per_tensor")).count();
        (tensors.collect::<Vec<_>>(), conversions)
    };
    let ((plain, every), (shared, once)) = (observed(true), observed(false));
    assert_eq!((every, once), (3, 2));
    assert_eq!(plain, shared);
    assert!(plain[0] != plain[1]);
}

#[test]
fn conversions_of_memory_that_changed_are_computed_again() {
    let payload = products(inline(0.02), [0.05, 0.1]);
    let mut a = Assembly::new();
    let x = a.planned(rows());
    let changing = a.planned(rows());
    let other = a.planned_at(rows(), 32);
    let [first, second, third] = [0; 3].map(|_| a.planned(rows()));
    let one = a.int(1);
    a.inputs(&[x]);
    a.call("aten::add.out", &[x, x, one, changing, changing]);
    a.delegate(BACKEND, &payload.bytes, &[changing, first]);
    // The same value once more, with other numbers; and another value at the same place.
    a.call("aten::add.out", &[changing, x, one, changing, changing]);
    a.call_delegate(0, &[changing, second]);
    a.call("aten::mul.out", &[x, x, other, other]);
    a.call_delegate(0, &[other, third]);
    a.outputs(&[first, second, third]);
    let outputs = |no_optimize: bool| {
        let data: Vec<Arc<dyn NamedDataMap>> = vec![Arc::new(Steady(in_memory(&payload.named).collect()))];
        let mut method = load(&a, &Options { no_optimize, data, ..options() }).unwrap();
        let input = floats(8);
        let input = TensorView::of::<f32>(&[2, 4], bytemuck::cast_slice(&input)).unwrap();
        let outputs = method.run(&[input]).unwrap();
        let tensors = outputs.iter().map(|output| match output {
            Output::Tensor(tensor) => tensor.as_slice::<f32>().unwrap().to_vec(),
            other => panic!("{other:?}"),
        });
        tensors.collect::<Vec<_>>()
    };
    let plain = outputs(true);
    assert_eq!(outputs(false), plain);
    assert!(plain[0] != plain[1] && plain[1] != plain[2] && plain[0] != plain[2]);
}

/// Named data that are always the same.
struct Steady(BTreeMap<String, Vec<u8>>);

impl NamedDataMap for Steady {
    fn data(&self, key: &str) -> Result<Option<Bytes>, Error> {
        Ok(self.0.get(key).cloned().map(Bytes::from))
    }
    fn layout(&self, _: &str) -> Result<Option<TensorLayout>, Error> {
        Ok(None)
    }
    fn len(&self) -> usize {
        self.0.len()
    }
    fn key(&self, index: usize) -> Option<&str> {
        self.0.keys().nth(index).map(String::as_str)
    }
    fn contains(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }
}

/// The default limits with a change.
fn limited(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}
