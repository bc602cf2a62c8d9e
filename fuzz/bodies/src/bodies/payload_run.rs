//! Graphs of XNNPACK payloads that a generator grows: what loads runs, and answers the same with one thread and two, with
//! rewrites and without; damaged ones end in typed errors.

use edgepack_builder::BuildError;
use edgepack_builder::pte::{Arg, ProgramBuilder, TensorSpec};
use edgepack_builder::xnnpack::{BuiltPayload, PayloadBuilder, Quant, Scales, Storage, ValueId, ValueSpec};
use edgepack_executor::{Method, Options};
use edgepack_format::scalar::ScalarType;
use edgepack_format::xnnpack::{
    Cat, Datatype, ELU, FullyConnected, LeakyReLU, Node1x1, Node2x1, NodeConv, NodeUnion, Pooling2D, Shape,
    StaticConstantPad, StaticReshape, StaticResizeBilinear2D, StaticSlice, StaticTranspose,
};
use edgepack_loader::Program;
use edgepack_smith::Decisions as _;
use edgepack_smith::arbitrary::Unstructured;

use super::execute::{Answer, alike, inputs, open, registry, run_once};

/// Elements of a value at most.
const ELEMENTS: u64 = 4096;
/// No value: an absent bias.
const NONE: u32 = u32::MAX;

/// See [`BODIES`](super::BODIES).
pub fn payload_run(data: &[u8]) {
    let u = &mut Unstructured::new(data);
    let damage = u.one_in(3);
    let Ok(Some((payload, ends))) = Growing::grow(u) else { return };
    let mut bytes = payload.bytes.clone();
    if damage {
        for _ in 0..1 + u.below(4) {
            let at = u.below(bytes.len());
            bytes[at] ^= 1 << u.below(8);
        }
    }
    let program = program(&payload, bytes, &ends).expect("a program around a payload");
    let Ok(program) = open(&program) else { panic!("a program from the builder is refused") };
    let ways = [(true, 1), (true, 2), (false, 1), (false, 2)];
    let answers: Vec<Option<Vec<Option<Answer>>>> = ways.map(|way| answers(&program, way)).into();
    let same = |a: usize, b: usize| answers[a] == answers[b];
    assert!(same(0, 1) && same(2, 3), "one thread or two, the outputs differ:\n{answers:?}");
    match (&answers[0], &answers[2]) {
        (Some(plain), Some(optimized)) => {
            let pairs = plain.iter().zip(optimized);
            let mut unlike = pairs.filter(|(plain, optimized)| match (plain, optimized) {
                (Some(plain), Some(optimized)) => !(plain == optimized || alike(plain, optimized)),
                (plain, optimized) => plain.is_some() != optimized.is_some(),
            });
            assert!(unlike.next().is_none(), "optimised or not, the outputs differ:\n{plain:?}\n{optimized:?}");
        }
        (plain, optimized) => {
            let (plain, optimized) = (plain.is_some(), optimized.is_some());
            assert_eq!(plain, optimized, "loaded without rewrites, with them");
        }
    }
    assert!(damage || answers[0].is_some() || refused(&program), "a sound payload is refused without a reason");
}

/// Returns whether the load ends in an error that names a node, a limit or what is allowed.
fn refused(program: &Program) -> bool {
    let error = load(program, (true, 1)).err().map(|error| error.to_string()).unwrap_or_default();
    error.contains("node ") || error.contains("limit") || error.contains("allowed")
}

fn load(program: &Program, (no_optimize, threads): (bool, usize)) -> Result<Method, edgepack_executor::LoadError> {
    let (backends, threads) = (edgepack::backends(), Some(threads));
    let options = Options { backends, no_optimize, threads, ..Options::default() };
    Method::load(program, "forward", registry(), &options)
}

/// Answers of three runs on two patterns of inputs; `None` if the method does not load.
fn answers(program: &Program, way: (bool, usize)) -> Option<Vec<Option<Answer>>> {
    let meta = program.method_meta("forward").expect("a method");
    let mut method = match load(program, way) {
        Ok(method) => method,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    Some([0, 1, 1].map(|pattern| run_once(&mut method, &inputs(&meta, pattern))).into())
}

/// Sizes and element types of inputs and outputs.
struct Ends {
    inputs: Vec<Vec<u32>>,
    outputs: Vec<(ScalarType, Vec<u32>)>,
}

/// A program with one call of the payload.
fn program(payload: &BuiltPayload, bytes: Vec<u8>, ends: &Ends) -> Result<Vec<u8>, BuildError> {
    let spec = |element: ScalarType, dims: &[u32]| {
        let sizes: Vec<usize> = dims.iter().map(|dim| *dim as usize).collect();
        TensorSpec::new(element, sizes)
    };
    let mut program = ProgramBuilder::new();
    for (key, bytes) in &payload.named {
        program.named_data(key, bytes.clone(), 16, None)?;
    }
    let mut forward = program.method("forward");
    let mut args: Vec<Arg> = Vec::new();
    for dims in &ends.inputs {
        args.push(forward.input(spec(ScalarType::FLOAT, dims))?.into());
    }
    let delegate = forward.delegate("XnnpackBackend", bytes, &[])?;
    let outs: Vec<TensorSpec> = ends.outputs.iter().map(|(element, dims)| spec(*element, dims)).collect();
    for id in forward.call_delegate(delegate, args, outs)? {
        forward.output(id)?;
    }
    program.finish()?.to_bytes()
}

/// A value that was grown: its element type is single precision, or 8 bits with this scale and zero point.
#[derive(Clone)]
struct Grown {
    id: ValueId,
    dims: Vec<u32>,
    byte: Option<(f32, i32)>,
}

impl Grown {
    fn shape(&self) -> Shape {
        Shape::new(self.dims.iter().copied()).expect("a rank that there can be")
    }
}

struct Growing<'u, 'd> {
    u: &'u mut Unstructured<'d>,
    builder: PayloadBuilder,
    values: Vec<Grown>,
}

type Made = Result<Option<()>, BuildError>;

impl Growing<'_, '_> {
    fn grow(u: &mut Unstructured<'_>) -> Result<Option<(BuiltPayload, Ends)>, BuildError> {
        let storage = u.pick(&[Storage::Region, Storage::Named, Storage::Bare]);
        let mut growing = Growing { u, builder: PayloadBuilder::new().storage(storage), values: Vec::new() };
        let mut ends = Ends { inputs: Vec::new(), outputs: Vec::new() };
        for _ in 0..1 + growing.u.below(2) {
            let rank = growing.u.pick(&[4, 2, 3, 1]);
            let dims: Vec<u32> = (0..rank).map(|_| 1 + growing.u.below(9) as u32).collect();
            let id = growing.builder.input(ValueSpec::new(Datatype::FP32, dims.clone()))?;
            growing.values.push(Grown { id, dims: dims.clone(), byte: None });
            ends.inputs.push(dims);
        }
        for _ in 0..1 + growing.u.below(10) {
            growing.node()?;
        }
        let mut outputs = vec![growing.values.len() - 1];
        if growing.u.one_in(4) {
            outputs.push(growing.u.below(growing.values.len()));
        }
        for index in outputs {
            let from = growing.values[index].clone();
            let id = growing.builder.output(spec(&from.dims, from.byte))?;
            let node = Node1x1 { input_id: from.id.id(), output_id: id.id(), flags: 0 };
            growing.builder.node(NodeUnion::Copy(node));
            let element = if from.byte.is_some() { ScalarType::CHAR } else { ScalarType::FLOAT };
            ends.outputs.push((element, from.dims));
        }
        growing.builder.finish().map(|built| Some((built, ends)))
    }

    fn any(&mut self) -> Grown {
        // Late ones mostly, so that graphs are deep.
        let back = if self.u.one_in(3) { self.u.below(self.values.len()) } else { 0 };
        self.values[self.values.len() - 1 - back].clone()
    }

    fn small(&mut self, most: usize) -> u32 {
        1 + self.u.below(most) as u32
    }

    fn scale(&mut self) -> f32 {
        self.u.pick(&[0.05, 0.125, 0.01, 1.0, 0.003])
    }

    fn params(&mut self) -> (f32, i32) {
        (self.scale(), self.u.pick(&[0, -128, 3, -5, 127]))
    }

    /// Adds a node of these inputs, if it makes anything small enough.
    fn add(&mut self, inputs: &[Shape], byte: Option<(f32, i32)>, node: impl Fn(u32) -> NodeUnion<'static>) -> Made {
        let Ok(shape) = node(0).result_shape(inputs) else { return Ok(None) };
        if shape.elements().is_none_or(|elements| elements == 0 || elements > ELEMENTS) {
            return Ok(None);
        }
        let id = self.builder.value(spec(shape.dims(), byte))?;
        let bounds = self.u.pick(&[None, Some((0.0, 6.0)), Some((0.0, f32::INFINITY)), Some((-1.0, 1.0))]);
        let is_fused = matches!(
            node(0),
            NodeUnion::Conv2d(_)
                | NodeUnion::DepthwiseConv2d(_)
                | NodeUnion::FullyConnected(_)
                | NodeUnion::Add(_)
                | NodeUnion::Multiply(_)
                | NodeUnion::Subtract(_)
                | NodeUnion::Clamp(_)
        );
        self.builder.node_with(node(id.id()), bounds.filter(|_| is_fused), 0);
        self.values.push(Grown { id, dims: shape.dims().to_vec(), byte });
        Ok(Some(()))
    }

    fn node(&mut self) -> Made {
        let x = self.any();
        let input_id = x.id.id();
        let shape = [x.shape()];
        match self.u.below(15) {
            0 => self.unary(&x),
            1 => self.binary(&x),
            2 => self.linear(&x),
            3 => self.convolution(&x),
            4 => self.pooling(&x),
            5 => {
                let (by, rank) = (self.u.below(x.dims.len()) as u32, x.dims.len() as u32);
                let perm: Vec<u32> = (0..rank).map(|dim| (dim + by) % rank).collect();
                self.add(&shape, x.byte, |output_id| {
                    let perm = Some(perm.clone().into());
                    NodeUnion::StaticTranspose(StaticTranspose { num_dims: rank, perm, input_id, output_id, flags: 0 })
                })
            }
            6 => {
                let all: u32 = x.dims.iter().product();
                let inner = self.small(9);
                let dims = if all.is_multiple_of(inner) { vec![1, 1, all / inner, inner] } else { vec![all] };
                let dims = if self.u.one_in(2) { dims } else { vec![1, all] };
                self.add(&shape, x.byte, |output_id| {
                    let (num_dims, new_shape) = (dims.len() as u32, Some(dims.clone().into()));
                    NodeUnion::StaticReshape(StaticReshape { num_dims, new_shape, input_id, output_id, flags: 0 })
                })
            }
            7 => {
                let (y, axis) = (self.any(), self.u.below(x.dims.len()) as u32);
                let y = if y.byte == x.byte { y } else { x.clone() };
                let (input1_id, input2_id) = (input_id, y.id.id());
                self.add(&[x.shape(), y.shape()], x.byte, |output_id| {
                    NodeUnion::Concatenate2(Cat { axis, input1_id, input2_id, output_id, ..Cat::default() })
                })
            }
            8 => {
                let offsets: Vec<u32> = x.dims.iter().map(|dim| self.u.below(*dim as usize) as u32).collect();
                let sizes: Vec<u32> =
                    x.dims.iter().zip(&offsets).map(|(dim, at)| 1 + self.u.below((dim - at) as usize) as u32).collect();
                self.add(&shape, x.byte, |output_id| {
                    let (num_dims, offsets, sizes) = (sizes.len() as u32, offsets.clone(), sizes.clone());
                    let (offsets, sizes) = (Some(offsets.into()), Some(sizes.into()));
                    NodeUnion::StaticSlice(StaticSlice { num_dims, offsets, sizes, input_id, output_id, flags: 0 })
                })
            }
            9 => {
                let [before, after] =
                    [(); 2].map(|()| x.dims.iter().map(|_| self.u.below(3) as u32).collect::<Vec<_>>());
                self.add(&shape, x.byte, |output_id| {
                    let (pre_paddings, post_paddings) = (Some(before.clone().into()), Some(after.clone().into()));
                    let padding_value = 0.5;
                    let flags = 0;
                    NodeUnion::StaticConstantPad(StaticConstantPad {
                        pre_paddings,
                        post_paddings,
                        padding_value,
                        input_id,
                        output_id,
                        flags,
                    })
                })
            }
            10 => {
                let (new_height, new_width) = (self.small(12), self.small(12));
                let flags = self.u.pick(&[0, 1, 2]);
                self.add(&shape, x.byte, |output_id| {
                    let node = StaticResizeBilinear2D { new_height, new_width, input_id, output_id, flags };
                    NodeUnion::StaticResizeBilinear2D(node)
                })
            }
            11 | 12 => {
                let byte = if x.byte.is_none() || self.u.one_in(4) { Some(self.params()) } else { None };
                self.add(&shape, byte, |output_id| NodeUnion::Convert(Node1x1 { input_id, output_id, flags: 0 }))
            }
            13 => self.rows(&x),
            _ => {
                let y = self.any();
                let (input1_id, input2_id, flags) = (input_id, y.id.id(), self.u.pick(&[0, 1]));
                let byte = x.byte.map(|_| self.params());
                self.add(&[x.shape(), y.shape()], byte, |output_id| {
                    NodeUnion::BatchMatrixMultiply(Node2x1 { input1_id, input2_id, output_id, flags })
                })
            }
        }
    }

    fn unary(&mut self, x: &Grown) -> Made {
        let input_id = x.id.id();
        let (which, slope) = (self.u.below(20), self.u.pick(&[0.25, 1.5]));
        let byte = x.byte.map(|params| if self.u.one_in(2) { self.params() } else { params });
        self.add(&[x.shape()], byte, |output_id| {
            let node = Node1x1 { input_id, output_id, flags: 0 };
            match which {
                0 => NodeUnion::Clamp(node),
                1 => NodeUnion::Sigmoid(node),
                2 => NodeUnion::Tanh(node),
                3 => NodeUnion::Abs(node),
                4 => NodeUnion::Negate(node),
                5 => NodeUnion::Square(node),
                6 => NodeUnion::Floor(node),
                7 => NodeUnion::Ceiling(node),
                8 => NodeUnion::Hardswish(node),
                9 => NodeUnion::Softmax(node),
                10 => NodeUnion::SquareRoot(node),
                11 => NodeUnion::Exp(node),
                12 => NodeUnion::Gelu(node),
                13 => NodeUnion::ReciprocalSquareRoot(node),
                14 => NodeUnion::Copy(node),
                15 => NodeUnion::GlobalAvgPooling2d(node),
                16 => NodeUnion::ELU(ELU { alpha: slope, input_id, output_id, flags: 0 }),
                17 => NodeUnion::Log(node),
                _ => NodeUnion::LeakyReLU(LeakyReLU { negative_slope: slope, input_id, output_id, flags: 0 }),
            }
        })
    }

    fn binary(&mut self, x: &Grown) -> Made {
        let y = self.any();
        let y = if y.byte.is_some() == x.byte.is_some() { y } else { x.clone() };
        let (input1_id, input2_id, which) = (x.id.id(), y.id.id(), self.u.below(7));
        let byte = x.byte.map(|_| self.params());
        self.add(&[x.shape(), y.shape()], byte, |output_id| {
            let node = Node2x1 { input1_id, input2_id, output_id, flags: 0 };
            match which {
                0 => NodeUnion::Add(node),
                1 => NodeUnion::Multiply(node),
                2 => NodeUnion::Subtract(node),
                3 => NodeUnion::Maximum(node),
                4 => NodeUnion::Minimum(node),
                5 => NodeUnion::Div(node),
                _ => NodeUnion::PReLU(node),
            }
        })
    }

    /// Weights of `channels` along dimension `along` for an input of these parameters, and the biases.
    fn weights(&mut self, dims: Vec<u32>, along: usize, byte: Option<(f32, i32)>) -> Result<(u32, u32), BuildError> {
        let (count, channels) = (dims.iter().product::<u32>(), dims[along]);
        let seed = u32::from(self.u.byte());
        let pattern = |count: u32| (0..count).map(move |index| (index * 7 + seed) % 13);
        let has_bias = !self.u.one_in(4);
        let Some((scale, _)) = byte else {
            let numbers =
                |count| pattern(count).flat_map(|n| (n as f32 * 0.25 - 1.5).to_le_bytes()).collect::<Vec<u8>>();
            let constant = self.builder.constant(numbers(count))?;
            let filter = self.builder.constant_value(ValueSpec::new(Datatype::FP32, dims), constant)?;
            if !has_bias {
                return Ok((filter.id(), NONE));
            }
            let constant = self.builder.constant(numbers(channels))?;
            let bias = self.builder.constant_value(ValueSpec::new(Datatype::FP32, [channels]), constant)?;
            return Ok((filter.id(), bias.id()));
        };
        let own: Vec<f32> = pattern(channels).map(|n| 0.01 + n as f32 * 0.002).collect();
        let bytes = pattern(count).map(|n| (n as i8 - 6).wrapping_mul(17) as u8).collect::<Vec<u8>>();
        let (channel_dim, constant) = (along as i32, self.builder.constant(bytes)?);
        let scales = self.stored_scales(&own)?;
        let quant = Quant::PerChannel { channel_dim, scales };
        let filter = ValueSpec::new(Datatype::QCINT8, dims).quantized(quant);
        let filter = self.builder.constant_value(filter, constant)?;
        if !has_bias {
            return Ok((filter.id(), NONE));
        }
        let products: Vec<f32> = own.iter().map(|own| own * scale).collect();
        let numbers = pattern(channels).flat_map(|n| (n as i32 * 31 - 150).to_le_bytes()).collect::<Vec<u8>>();
        let constant = self.builder.constant(numbers)?;
        let scales = self.stored_scales(&products)?;
        let quant = Quant::PerChannel { channel_dim: 0, scales };
        let bias = ValueSpec::new(Datatype::QCINT32, [channels]).quantized(quant);
        Ok((filter.id(), self.builder.constant_value(bias, constant)?.id()))
    }

    /// Scales in the flatbuffer, or as a constant.
    fn stored_scales(&mut self, scales: &[f32]) -> Result<Scales, BuildError> {
        if self.u.one_in(2) {
            return Ok(Scales::Inline(scales.to_vec()));
        }
        let bytes: Vec<u8> = scales.iter().flat_map(|scale| scale.to_le_bytes()).collect();
        Ok(Scales::Constant(self.builder.scales(bytes)?, scales.len() as u32))
    }

    fn linear(&mut self, x: &Grown) -> Made {
        let (columns, rows) = (x.dims.last().copied().unwrap_or(1), self.small(20));
        let (filter_id, bias_id) = self.weights(vec![rows, columns], 0, x.byte)?;
        let filter = Shape::new([rows, columns]).expect("two dimensions");
        let byte = x.byte.map(|_| self.params());
        let input1_id = x.id.id();
        let shapes = [x.shape(), filter, Shape::new([rows]).expect("one dimension")];
        let shapes = if bias_id == NONE { &shapes[..2] } else { &shapes[..] };
        self.add(shapes, byte, |output_id| {
            NodeUnion::FullyConnected(FullyConnected { input1_id, filter_id, bias_id, output_id, flags: 0 })
        })
    }

    /// A product of rows that are quantised when they are known.
    fn rows(&mut self, x: &Grown) -> Made {
        let (columns, rows) = (x.dims.last().copied().unwrap_or(1), self.small(20));
        if x.byte.is_some() {
            return Ok(None);
        }
        let quant = Quant::PerToken { num_nonbatch_dims: 1 };
        let q = self.builder.value(ValueSpec::new(Datatype::QDINT8, x.dims.clone()).quantized(quant))?;
        self.builder.node(NodeUnion::Convert(Node1x1 { input_id: x.id.id(), output_id: q.id(), flags: 0 }));
        let (datatype, row) = if columns.is_multiple_of(2) && self.u.one_in(2) {
            (Datatype::QCINT4, columns / 2)
        } else {
            (Datatype::QCINT8, columns)
        };
        let bytes: Vec<u8> = (0..rows * row).map(|index| (index * 37 % 251) as u8).collect();
        let constant = self.builder.constant(bytes)?;
        let own: Vec<f32> = (0..rows).map(|row| 0.01 + row as f32 * 0.001).collect();
        let scales = self.stored_scales(&own)?;
        let filter = ValueSpec::new(datatype, [rows, columns]).quantized(Quant::PerChannel { channel_dim: 0, scales });
        let filter_id = self.builder.constant_value(filter, constant)?.id();
        let shapes = [x.shape(), Shape::new([rows, columns]).expect("two dimensions")];
        let input1_id = q.id();
        self.add(&shapes, None, |output_id| {
            NodeUnion::FullyConnected(FullyConnected { input1_id, filter_id, bias_id: NONE, output_id, flags: 0 })
        })
    }

    fn convolution(&mut self, x: &Grown) -> Made {
        let [_, _, _, channels] = x.dims[..] else { return Ok(None) };
        let which = self.u.below(3);
        let (height, width, stride) = (self.small(3), self.small(3), self.small(2));
        let groups = if channels.is_multiple_of(2) && self.u.one_in(3) { 2 } else { 1 };
        let made = self.small(5);
        let (dims, along, groups, group_made) = match which {
            1 => (vec![1, height, width, channels * made], 3, channels, made),
            _ => (vec![groups * made, height, width, channels / groups], 0, groups, made),
        };
        let biases = dims[along];
        let filter = Shape::new(dims.iter().copied()).expect("four dimensions");
        let (filter_id, bias_id) = self.weights(dims, along, x.byte)?;
        let [padding_top, padding_right, padding_bottom, padding_left] = [(); 4].map(|()| self.u.below(2) as u32);
        let dilation = if which == 2 { 1 } else { self.small(2) };
        let byte = x.byte.map(|_| self.params());
        let input1_id = x.id.id();
        let shapes = [x.shape(), filter, Shape::new([biases]).expect("one dimension")];
        let shapes = if bias_id == NONE { &shapes[..2] } else { &shapes[..] };
        self.add(shapes, byte, |output_id| {
            let node = NodeConv {
                padding_top,
                padding_right,
                padding_bottom,
                padding_left,
                kernel_height: height,
                kernel_width: width,
                subsampling_height: stride,
                subsampling_width: stride,
                dilation_height: dilation,
                dilation_width: dilation,
                group_input_channels: channels / groups,
                group_output_channels: group_made,
                groups,
                adjustment_height: 0,
                adjustment_width: 0,
                input1_id,
                filter_id,
                bias_id,
                output_id,
                flags: 0,
            };
            match which {
                0 => NodeUnion::Conv2d(node),
                1 => NodeUnion::DepthwiseConv2d(node),
                _ => NodeUnion::ConvTranspose2d(node),
            }
        })
    }

    fn pooling(&mut self, x: &Grown) -> Made {
        let is_mean = x.byte.is_none() && self.u.one_in(2);
        let (pooling_height, pooling_width, stride) = (self.small(3), self.small(3), self.small(2));
        let pad = self.u.below(2) as u32;
        let dilation = u32::from(!is_mean);
        let input_id = x.id.id();
        self.add(&[x.shape()], x.byte, |output_id| {
            let node = Pooling2D {
                padding_top: pad,
                padding_right: pad,
                padding_bottom: pad,
                padding_left: pad,
                pooling_height,
                pooling_width,
                stride_height: stride,
                stride_width: stride,
                dilation_height: dilation,
                dilation_width: dilation,
                input_id,
                output_id,
                flags: 0,
            };
            if is_mean { NodeUnion::AvgPooling2d(node) } else { NodeUnion::MaxPooling2d(node) }
        })
    }
}

/// A value of these dimensions: 8-bit with parameters, or single precision.
fn spec(dims: &[u32], byte: Option<(f32, i32)>) -> ValueSpec {
    match byte {
        Some((scale, zero_point)) => {
            ValueSpec::new(Datatype::QINT8, dims).quantized(Quant::PerTensor { scale, zero_point })
        }
        None => ValueSpec::new(Datatype::FP32, dims),
    }
}

/// Graphs of one kind of node and of several.
pub fn payload_run_seeds() -> Vec<Vec<u8>> {
    let seed = |index: usize| {
        let mut rng = edgepack_smith::Rng::new(index as u64);
        (0..24 + rng.below(100)).map(|_| rng.word() as u8).collect()
    };
    (0..200).map(seed).collect()
}
