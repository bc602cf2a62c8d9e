//! Programs that are lowered to XNNPACK and to portable operators: both compute the same, within what the numbers allow.
//!
//! Every value has a bound of its magnitude and a bound of how far two ways of computing it may differ, so the tolerance
//! is known before anything runs: rounding of sums for floats, a step of the scale for numbers of 8 bits.

mod bytes;

use edgepack_executor::{Method, Options, Output};
use edgepack_exir::archive::{Storage, Weight};
use edgepack_exir::backends::xnnpack;
use edgepack_exir::graph::{
    Argument, Dialect, ExportedProgram, Graph, InputKind, InputSpec, Size, TensorMeta, ValueId,
};
use edgepack_exir::lower::{ByName, Options as Lowering, ProgramManager};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorView;
use edgepack_loader::Program;
use edgepack_smith::Decisions as _;
use edgepack_smith::arbitrary::Unstructured;

use super::execute::registry;

/// Elements of a value at most.
const ELEMENTS: usize = 2048;
/// Share of the magnitude by which sums of floats may differ.
const ROUNDING: f32 = 1e-5;

/// See [`BODIES`](super::BODIES).
pub fn delegated(data: &[u8]) {
    let mut growing =
        Growing { u: &mut Unstructured::new(data), graph: Graph::default(), values: Vec::new(), constants: Vec::new() };
    let calls = 1 + growing.u.below(12);
    let sizes = [1 + growing.u.below(2), 1 + growing.u.below(6), 3 + growing.u.below(6), 3 + growing.u.below(6)];
    let rank = 2 + growing.u.below(3);
    let inputs: Vec<Vec<usize>> = (0..1 + growing.u.below(2)).map(|_| sizes[..rank].to_vec()).collect();
    for sizes in &inputs {
        growing.input(sizes);
    }
    for _ in 0..calls {
        growing.grow();
    }
    let (program, slack) = growing.finish();
    let numbers: Vec<Vec<f32>> =
        inputs.iter().enumerate().map(|(seed, sizes)| numbers(sizes.iter().product(), seed as u64, 2.0)).collect();
    let given: Vec<(&[usize], &[f32])> =
        inputs.iter().zip(&numbers).map(|(sizes, numbers)| (sizes.as_slice(), numbers.as_slice())).collect();
    let (portable, delegates) = run(&program, false, &given);
    assert_eq!(delegates, 0);
    let (found, _) = run(&program, true, &given);
    for (index, ((found, want), slack)) in found.iter().zip(&portable).zip(slack).enumerate() {
        assert_eq!(found.len(), want.len(), "output {index} has another length");
        for (found, want) in found.iter().zip(want) {
            assert!(
                (found - want).abs() <= slack,
                "output {index}: {found} for {want}, at most {slack} apart\n{program}"
            );
        }
    }
}

/// Lowers a program and runs it: its outputs, and how many nodes are in delegates.
fn run(program: &ExportedProgram<'static>, delegate: bool, inputs: &[(&[usize], &[f32])]) -> (Vec<Vec<f32>>, usize) {
    let mut manager = ProgramManager::new(Lowering::default());
    if delegate {
        manager.keep_whole(xnnpack::whole_operators());
    }
    manager.add("forward", program.clone()).expect("a sound program");
    let mut taken = 0;
    if delegate {
        let explained = xnnpack::delegate(&mut manager, &ByName::default()).expect("what is taken is written");
        taken = explained.iter().flat_map(|(_, nodes)| nodes).filter(|node| node.reason.is_none()).count();
    }
    let bytes = manager.finish().and_then(|built| Ok(built.to_bytes()?)).expect("a program that is emitted");
    let file = Program::from_bytes(bytes).expect("a program from the builder opens");
    let options = Options { backends: edgepack::backends(), ..Options::default() };
    let mut method = Method::load(&file, "forward", registry(), &options).expect("what is lowered loads");
    let bytes: Vec<Vec<u8>> =
        inputs.iter().map(|(_, numbers)| numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()).collect();
    let views =
        inputs.iter().zip(&bytes).map(|((sizes, _), bytes)| TensorView::of::<f32>(sizes, bytes).expect("a view"));
    let views: Vec<TensorView<'_>> = views.collect();
    let outputs = method.run(&views).expect("what is lowered runs");
    let read = |output| match output {
        Some(Output::Tensor(tensor)) => tensor.as_slice::<f32>().expect("floats").to_vec(),
        other => panic!("an output that is no tensor: {other:?}"),
    };
    ((0..outputs.len()).map(|index| read(outputs.get(index))).collect(), taken)
}

fn numbers(count: usize, seed: u64, bound: f32) -> Vec<f32> {
    let mut rng = edgepack_smith::Rng::new(seed);
    (0..count).map(|_| ((rng.word() >> 40) as f32 / 8_388_608.0 - 1.0) * bound).collect()
}

/// A value that was grown: its sizes, a bound of its magnitude, and of what two ways of computing it may differ by.
#[derive(Clone)]
struct Grown {
    id: ValueId,
    sizes: Vec<usize>,
    bound: f32,
    slack: f32,
}

/// A constant: its name, element type, sizes and bytes.
struct Constant {
    id: ValueId,
    kind: ScalarType,
    sizes: Vec<usize>,
    bytes: Vec<u8>,
}

struct Growing<'u, 'd> {
    u: &'u mut Unstructured<'d>,
    graph: Graph,
    values: Vec<Grown>,
    constants: Vec<Constant>,
}

fn meta(kind: ScalarType, sizes: &[usize]) -> TensorMeta {
    let sizes: Vec<Size> = sizes.iter().map(|size| Size::Known(*size as i64)).collect();
    TensorMeta::contiguous(kind, &sizes)
}

fn ints<const N: usize>(numbers: [usize; N]) -> Argument {
    Argument::ints(numbers.map(|number| number as i64))
}

impl Growing<'_, '_> {
    fn input(&mut self, sizes: &[usize]) {
        let id = self.graph.add_input("x", meta(ScalarType::FLOAT, sizes));
        self.values.push(Grown { id, sizes: sizes.to_vec(), bound: 2.0, slack: 0.0 });
    }

    fn constant(&mut self, kind: ScalarType, sizes: &[usize], bytes: Vec<u8>) -> Argument {
        let id = self.graph.add_value("c", meta(kind, sizes));
        self.constants.push(Constant { id, kind, sizes: sizes.to_vec(), bytes });
        id.into()
    }

    /// A constant of floats between `-bound` and `bound`.
    fn floats(&mut self, sizes: &[usize], bound: f32) -> Argument {
        let seed = self.u.byte();
        let bytes = numbers(sizes.iter().product(), seed.into(), bound).iter().flat_map(|x| x.to_le_bytes()).collect();
        self.constant(ScalarType::FLOAT, sizes, bytes)
    }

    fn call<const N: usize>(&mut self, name: &str, args: [(&str, Argument); N], like: &Grown) {
        let rounded = like.slack + like.bound * ROUNDING;
        let id = self.graph.call(name, args, meta(ScalarType::FLOAT, &like.sizes));
        self.values.push(Grown { id, slack: rounded, ..like.clone() });
    }

    /// One more value, as the choices say.
    fn grow(&mut self) {
        let x = self.values[self.u.below(self.values.len())].clone();
        let this = || ("self", Argument::from(x.id));
        let rank = x.sizes.len();
        match self.u.below(16) {
            0 => self.function(&x),
            1 | 2 => self.pair(&x),
            3..=5 if rank == 4 => self.convolve(&x, false),
            3 if rank == 3 => self.convolve(&x, true),
            6 if rank > 1 => self.product(&x),
            7 if rank == 4 => self.window(&x),
            8 => {
                let mut dims: Vec<usize> = (0..rank).collect();
                dims.rotate_left(self.u.below(rank));
                let (a, b) = (self.u.below(rank), self.u.below(rank));
                dims.swap(a, b);
                let like = Grown { sizes: dims.iter().map(|dim| x.sizes[*dim]).collect(), ..x.clone() };
                let order = Argument::ints(dims.iter().map(|dim| *dim as i64));
                self.call("aten::permute", [this(), ("dims", order)], &like);
            }
            9 if rank > 1 => {
                let at = self.u.below(rank - 1);
                let mut sizes = x.sizes.clone();
                let merged = sizes.remove(at + 1);
                sizes[at] *= merged;
                let like = Grown { sizes, ..x.clone() };
                let size = Argument::ints(like.sizes.iter().map(|size| *size as i64));
                self.call("aten::view_copy", [this(), ("size", size)], &like);
            }
            10 => self.behind(&x),
            11 => {
                let dim = self.u.below(rank);
                let start = self.u.below(x.sizes[dim]);
                let end = start + 1 + self.u.below(x.sizes[dim] - start);
                let mut like = x.clone();
                like.sizes[dim] = end - start;
                let [dim, start, end] = [dim, start, end].map(|number| Argument::Int(number as i64));
                self.call("aten::slice.Tensor", [this(), ("dim", dim), ("start", start), ("end", end)], &like);
            }
            12 => {
                let dim = Argument::Int(self.u.below(rank) as i64);
                // It spreads differences, but not more than they are.
                let like = Grown { bound: 1.0, slack: (2.0 * x.slack).exp_m1(), ..x.clone() };
                self.call("aten::_softmax", [this(), ("dim", dim), ("half_to_float", false.into())], &like);
            }
            13 if rank == 4 => {
                let (keep, dims) = (self.u.one_in(2), [&[2, 3][..], &[2], &[3]][self.u.below(3)]);
                let mut like = x.clone();
                dims.iter().for_each(|dim| like.sizes[*dim] = 1);
                if !keep {
                    like.sizes = (0..rank).filter(|dim| !dims.contains(dim)).map(|dim| like.sizes[dim]).collect();
                }
                let name = if self.u.one_in(2) { "aten::mean.dim" } else { "aten::amax" };
                self.call(
                    name,
                    [this(), ("dim", Argument::ints(dims.iter().map(|dim| *dim as i64))), ("keepdim", keep.into())],
                    &like,
                );
            }
            14 => self.pad(&x, 0.5),
            _ => self.bytes(&x),
        }
    }

    fn function(&mut self, x: &Grown) {
        let this = ("self", Argument::from(x.id));
        let like = |bound: f32, factor: f32| Grown { bound, slack: x.slack * factor, ..x.clone() };
        match self.u.below(10) {
            0 => self.call("aten::relu", [this], x),
            1 => self.call("aten::tanh", [this], &like(1.0, 1.0)),
            2 => self.call("aten::sigmoid", [this], &like(1.0, 1.0)),
            3 => self.call("aten::abs", [this], x),
            4 => self.call("aten::neg", [this], x),
            5 => self.call(
                "aten::hardtanh",
                [this, ("min_val", (-1.5).into()), ("max_val", 2.0.into())],
                &like(2.0, 1.0),
            ),
            6 => self.call("aten::gelu", [this], &like(x.bound, 1.2)),
            7 => self.call("aten::hardswish", [this], &like(x.bound, 1.6)),
            8 => self.call("aten::leaky_relu", [this, ("negative_slope", 0.25.into())], x),
            _ => self.call("aten::clamp", [this, ("min", (-0.5).into())], x),
        }
    }

    fn pair(&mut self, x: &Grown) {
        let y = self.values[self.u.below(self.values.len())].clone();
        let fits = y.sizes == x.sizes;
        let (other, bound, slack) = match fits {
            true => (Argument::from(y.id), y.bound, y.slack),
            false => {
                // A number for each index along a dimension.
                let from = self.u.below(x.sizes.len());
                let mut sizes = x.sizes[from..].to_vec();
                sizes[1..].fill(1);
                (self.floats(&sizes, 1.0), 1.0, 0.0)
            }
        };
        let args = [("self", Argument::from(x.id)), ("other", other)];
        let sum = Grown { bound: x.bound + bound, slack: x.slack + slack, ..x.clone() };
        match self.u.below(4) {
            0 => self.call("aten::sub.Tensor", args, &sum),
            1 if x.bound * bound < 64.0 => {
                let slack = x.slack * bound + slack * x.bound + slack * x.slack;
                self.call("aten::mul.Tensor", args, &Grown { bound: x.bound * bound, slack, ..x.clone() });
            }
            2 => self.call("aten::maximum", args, &sum),
            _ => self.call("aten::add.Tensor", args, &sum),
        }
    }

    fn convolve(&mut self, x: &Grown, flat: bool) {
        let channels = x.sizes[1];
        let groups = if self.u.one_in(3) { channels } else { 1 };
        let (transposed, multiplier) = (self.u.one_in(4), 1 + self.u.below(3));
        let outputs = if groups == 1 { 1 + self.u.below(6) } else { channels * multiplier };
        let kernel = [if flat { 1 } else { 1 + self.u.below(3) }, 1 + self.u.below(3)];
        let (stride, padding) = ([1 + self.u.below(2), 1 + self.u.below(2)], [self.u.below(2), self.u.below(2)]);
        let dilation = [1 + self.u.below(2), 1 + self.u.below(2)];
        let filter = match transposed {
            true => [channels, outputs / groups, kernel[0], kernel[1]],
            false => [outputs, channels / groups, kernel[0], kernel[1]],
        };
        let mut sizes = x.sizes.clone();
        sizes[1] = outputs;
        for (axis, size) in sizes.iter_mut().enumerate().skip(2) {
            let axis = axis - 2 + usize::from(flat);
            let reach = dilation[axis] * (kernel[axis] - 1) + 1;
            let room = match transposed {
                true => ((*size - 1) * stride[axis] + reach).checked_sub(2 * padding[axis]).filter(|size| *size > 0),
                false => (*size + 2 * padding[axis]).checked_sub(reach).map(|room| room / stride[axis] + 1),
            };
            let Some(room) = room else { return };
            *size = room;
        }
        if sizes.iter().product::<usize>() > ELEMENTS {
            return;
        }
        let sum = (channels / groups * kernel[0] * kernel[1]) as f32;
        let weight = match flat {
            true => self.floats(&[filter[0], filter[1], filter[3]], 1.0 / sum),
            false => self.floats(&filter, 1.0 / sum),
        };
        let bias = if self.u.one_in(3) { Argument::None } else { self.floats(&[outputs], 0.5) };
        let pair = |[a, b]: [usize; 2]| if flat { ints([b]) } else { ints([a, b]) };
        let args = [
            ("input", Argument::from(x.id)),
            ("weight", weight),
            ("bias", bias),
            ("stride", pair(stride)),
            ("padding", pair(padding)),
            ("dilation", pair(dilation)),
            ("transposed", transposed.into()),
            ("output_padding", pair([0, 0])),
            ("groups", Argument::Int(groups as i64)),
        ];
        // Every number of the filter times as many inputs as there can be.
        let like = Grown { sizes, bound: x.bound + 0.5, ..x.clone() };
        self.call("aten::convolution", args, &like);
        if !flat && self.u.one_in(3) {
            self.norm(outputs);
        }
    }

    /// A batch norm behind the last value.
    fn norm(&mut self, channels: usize) {
        let Some(x) = self.values.last().cloned() else { return };
        let (weight, bias) = (self.floats(&[channels], 1.0), self.floats(&[channels], 0.5));
        let mean = self.floats(&[channels], 0.5);
        let variance = self.constant(ScalarType::FLOAT, &[channels], 1f32.to_le_bytes().repeat(channels));
        let like = Grown { bound: x.bound + 1.0, ..x.clone() };
        let args = [
            ("input", Argument::from(x.id)),
            ("weight", weight),
            ("bias", bias),
            ("running_mean", mean),
            ("running_var", variance),
            ("momentum", 0.1.into()),
            ("eps", 1e-5.into()),
        ];
        let all = meta(ScalarType::FLOAT, &x.sizes);
        let none = || meta(ScalarType::FLOAT, &[0]);
        let mut node = self.graph.make("aten::_native_batch_norm_legit_no_training", args, all);
        let rest = [self.graph.add_value("mean", none()), self.graph.add_value("variance", none())];
        node.outputs.extend(rest.map(Argument::Value));
        let result = node.result().expect("a node with results");
        self.graph.nodes.push(node);
        self.values.push(Grown { id: result, slack: like.slack + like.bound * ROUNDING, ..like });
    }

    fn product(&mut self, x: &Grown) {
        let (last, outputs) = (x.sizes[x.sizes.len() - 1], 1 + self.u.below(8));
        let weight = self.floats(&[outputs, last], 1.0 / last as f32);
        let bias = if self.u.one_in(2) { Argument::None } else { self.floats(&[outputs], 0.5) };
        let mut like = Grown { bound: x.bound + 0.5, ..x.clone() };
        *like.sizes.last_mut().expect("dimensions") = outputs;
        self.call("aten::linear", [("input", x.id.into()), ("weight", weight), ("bias", bias)], &like);
    }

    fn window(&mut self, x: &Grown) {
        let (kernel, stride) = (2 + self.u.below(2), 1 + self.u.below(2));
        let mut like = x.clone();
        for size in &mut like.sizes[2..] {
            let Some(room) = size.checked_sub(kernel) else { return };
            *size = room / stride + 1;
        }
        let args = [("self", x.id.into()), ("kernel_size", ints([kernel, kernel])), ("stride", ints([stride, stride]))];
        if self.u.one_in(2) {
            return self.call("aten::avg_pool2d", args, &like);
        }
        let mut node = self.graph.make("aten::max_pool2d_with_indices", args, meta(ScalarType::FLOAT, &like.sizes));
        let indices = self.graph.add_value("indices", meta(ScalarType::LONG, &like.sizes));
        node.outputs.push(indices.into());
        let result = node.result().expect("a node with results");
        self.graph.nodes.push(node);
        self.values.push(Grown { id: result, ..like });
    }

    fn behind(&mut self, x: &Grown) {
        let dim = self.u.below(x.sizes.len());
        let rest = |sizes: &[usize]| {
            let mut sizes = sizes.to_vec();
            sizes[dim] = 0;
            sizes
        };
        let alike = |y: &&Grown| y.sizes.len() == x.sizes.len() && rest(&y.sizes) == rest(&x.sizes);
        let mut items: Vec<Grown> = self.values.iter().filter(alike).cloned().collect();
        items.truncate(7);
        items.push(x.clone());
        let mut like = x.clone();
        like.sizes[dim] = items.iter().map(|item| item.sizes[dim]).sum();
        like.bound = items.iter().map(|item| item.bound).fold(0.0, f32::max);
        like.slack = items.iter().map(|item| item.slack).fold(0.0, f32::max);
        if like.sizes.iter().product::<usize>() <= ELEMENTS {
            let items = Argument::tensors(items.iter().map(|item| item.id));
            self.call("aten::cat", [("tensors", items), ("dim", Argument::Int(dim as i64))], &like);
        }
    }

    fn pad(&mut self, x: &Grown, value: f32) {
        let pads = [self.u.below(3), self.u.below(3)];
        let mut like = Grown { bound: x.bound.max(value), ..x.clone() };
        *like.sizes.last_mut().expect("dimensions") += pads[0] + pads[1];
        if like.sizes.iter().product::<usize>() <= ELEMENTS {
            self.call(
                "aten::constant_pad_nd",
                [("self", x.id.into()), ("pad", ints(pads)), ("value", f64::from(value).into())],
                &like,
            );
        }
    }

    /// Program, and how far each of its outputs may be from itself computed otherwise.
    fn finish(mut self) -> (ExportedProgram<'static>, Vec<f32>) {
        let mut outputs: Vec<Grown> = Vec::new();
        for value in self.values.iter().rev().take(1 + self.u.below(3)) {
            let is_input = self.graph.inputs.iter().any(|input| input.value() == Some(value.id));
            if !is_input {
                outputs.push(value.clone());
            }
        }
        self.graph.outputs = outputs.iter().map(|output| output.id.into()).collect();
        let mut program = ExportedProgram::from_graph(self.graph, Dialect::Aten);
        for (index, Constant { id, kind, sizes, bytes }) in self.constants.into_iter().enumerate() {
            let name = format!("constant_{index}");
            let weight = Weight::contiguous(Storage::owned(name.as_str(), bytes), kind, &sizes).expect("a constant");
            program.weights.constants.insert(name.clone(), weight);
            program.graph.inputs.insert(index, id.into());
            program.inputs.insert(index, InputSpec { kind: InputKind::Constant(name), arg: id.into() });
        }
        (program, outputs.into_iter().map(|output| output.slack).collect())
    }
}

/// Decisions to start from.
pub fn delegated_seeds() -> Vec<Vec<u8>> {
    let seed = |index: usize| {
        let mut rng = edgepack_smith::Rng::new(0x10_0e5 + index as u64);
        (0..32 + rng.below(160)).map(|_| rng.word() as u8).collect()
    };
    (0..160).map(seed).collect()
}
