//! Random exported programs: they verify clean, come back from documents and archives, and what they are lowered to
//! computes what their operators compute one by one.

use edgepack::eager;
use edgepack_executor::Registry;
use edgepack_executor::call::{Arg, OwnedTensor, call};
use edgepack_executor::tensor::Scalar;
use edgepack_executor::{Method, Options, Output};
use edgepack_exir::archive::{Archive, Storage, Weight};
use edgepack_exir::graph::{
    About, Argument, Dialect, ExportedProgram, Graph, InputKind, InputSpec, OutputKind, OutputSpec, Size, TensorMeta,
    ValueId,
};
use edgepack_exir::lower::{Options as Lowering, lower, to_edge};
use edgepack_exir::operators::Operators;
use edgepack_exir::verify::{self, verify};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorView;
use edgepack_loader::Program;
use proptest::collection::vec;
use proptest::prelude::*;

/// A program that grows call by call, with the value that every call has for one set of inputs.
struct Growing {
    registry: Registry,
    graph: Graph,
    values: Vec<(ValueId, OwnedTensor)>,
    inputs: Vec<(InputSpec, OwnedTensor)>,
}

fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32 / 8_388_608.0 - 1.0) * 2.0
        })
        .collect()
}

fn meta(sizes: &[usize]) -> TensorMeta {
    let sizes: Vec<Size> = sizes.iter().map(|size| Size::Known(*size as i64)).collect();
    TensorMeta::contiguous(ScalarType::FLOAT, &sizes)
}

impl Growing {
    fn new() -> Self {
        let registry = edgepack_kernels::registry();
        Growing { registry, graph: Graph::default(), values: Vec::new(), inputs: Vec::new() }
    }

    fn input(&mut self, sizes: &[usize], kind: InputKind, seed: u64) -> usize {
        let id = self.graph.add_input("arg", meta(sizes));
        let tensor = OwnedTensor::new(sizes, &numbers(sizes.iter().product(), seed));
        self.inputs.push((InputSpec { kind, arg: id.into() }, tensor.clone()));
        self.values.push((id, tensor));
        self.values.len() - 1
    }

    /// Appends a call, and computes it with the operator's out variant on the same arguments.
    fn call<const N: usize>(&mut self, name: &str, out: &str, args: [(&str, Given); N], sizes: &[usize]) {
        let operator = self.registry.find(out).expect("an operator of the library");
        let schema_args: Vec<Arg> = args.iter().map(|(_, given)| self.eager(given)).collect();
        let result = {
            let with_out: Vec<Arg> = schema_args.into_iter().chain([Arg::out(ScalarType::FLOAT, sizes)]).collect();
            call(operator, &with_out).unwrap_or_else(|error| panic!("{out}: {error}")).remove(0)
        };
        let named = args.map(|(name, given)| (name, self.argument(&given)));
        let id = self.graph.call(name, named, meta(sizes));
        self.values.push((id, result));
    }

    fn eager(&self, given: &Given) -> Arg {
        match given {
            Given::Value(index) => Arg::Tensor(self.values[*index].1.clone()),
            Given::Values(list) => Arg::Tensors(list.iter().map(|index| Some(self.values[*index].1.clone())).collect()),
            Given::Number(number) => Arg::tensor::<f32>(&[], &[*number]),
            Given::Int(number) => Arg::int(*number),
            Given::Bool(truth) => Arg::bool(*truth),
            Given::Ints(list) => Arg::Ints(list.clone()),
            Given::Alpha(alpha) => Arg::Scalar(Scalar::Int(*alpha)),
            Given::NoType => Arg::None,
        }
    }

    fn argument(&self, given: &Given) -> Argument {
        match given {
            Given::Value(index) => self.values[*index].0.into(),
            Given::Values(list) => Argument::tensors(list.iter().map(|index| self.values[*index].0)),
            Given::Number(number) => Argument::Float(f64::from(*number)),
            Given::Int(number) | Given::Alpha(number) => Argument::Int(*number),
            Given::Bool(truth) => Argument::Bool(*truth),
            Given::Ints(list) => Argument::ints(list.iter().copied()),
            Given::NoType => Argument::None,
        }
    }

    fn sizes(&self, index: usize) -> Vec<usize> {
        self.values[index].1.layout().sizes().to_vec()
    }

    /// One more call, as the choices say.
    fn grow(&mut self, [what, which, other, extra]: [u8; 4]) {
        let x = usize::from(which) % self.values.len();
        let y = usize::from(other) % self.values.len();
        let extra = usize::from(extra);
        let sizes = self.sizes(x);
        let rank = sizes.len();
        let dim = extra % rank.max(1);
        let this = ("self", Given::Value(x));
        match what % 14 {
            0..=2 => {
                const UNARY: [&str; 7] = ["relu", "neg", "abs", "sigmoid", "tanh", "cos", "clone"];
                let name = UNARY[extra % UNARY.len()];
                if name == "clone" {
                    let args = [this, ("memory_format", Given::NoType)];
                    return self.call("aten::clone", "aten::clone.out", args, &sizes);
                }
                self.call(&format!("aten::{name}"), &format!("aten::{name}.out"), [this], &sizes);
            }
            3 | 4 => {
                // The other operand: whatever broadcasts, or a number.
                let other = match broadcast(&sizes, &self.sizes(y)) {
                    Some(_) => Given::Value(y),
                    None => Given::Number(extra as f32 * 0.25 - 2.0),
                };
                let sizes = match &other {
                    Given::Value(y) => broadcast(&sizes, &self.sizes(*y)).expect("sizes that broadcast"),
                    _ => sizes,
                };
                match extra % 3 {
                    0 => self.call("aten::mul.Tensor", "aten::mul.out", [this, ("other", other)], &sizes),
                    1 => {
                        let args = [this, ("other", other), ("alpha", Given::Alpha(1 + extra as i64 % 3))];
                        self.call("aten::add.Tensor", "aten::add.out", args, &sizes);
                    }
                    _ => {
                        let args = [this, ("other", other), ("alpha", Given::Alpha(1))];
                        self.call("aten::sub.Tensor", "aten::sub.out", args, &sizes);
                    }
                }
            }
            5 => {
                let flat = vec![sizes.iter().product::<usize>()];
                let args = [this, ("size", Given::Ints(vec![flat[0] as i64]))];
                self.call("aten::view", "aten::view_copy.out", args, &flat);
            }
            6 if rank > 1 => {
                let order: Vec<usize> = (0..rank).map(|index| (index + 1 + dim) % rank).collect();
                let turned: Vec<usize> = order.iter().map(|index| sizes[*index]).collect();
                let dims = order.iter().map(|index| *index as i64).collect();
                self.call("aten::permute", "aten::permute_copy.out", [this, ("dims", Given::Ints(dims))], &turned);
            }
            7 if rank < 4 => {
                let mut longer = sizes;
                longer.insert(dim, 1);
                let args = [this, ("dim", Given::Int(dim as i64))];
                self.call("aten::unsqueeze", "aten::unsqueeze_copy.out", args, &longer);
            }
            8 if rank > 0 => {
                let mut longer = sizes;
                longer[dim] *= 2;
                if longer.iter().product::<usize>() < 4096 {
                    let args = [("tensors", Given::Values(vec![x, x])), ("dim", Given::Int(dim as i64))];
                    self.call("aten::cat", "aten::cat.out", args, &longer);
                }
            }
            9 if rank > 0 && sizes[dim] > 1 => {
                let (start, mut shorter) = (extra as i64 % 2, sizes);
                shorter[dim] -= start as usize;
                let end = i64::MAX;
                let args = [
                    this,
                    ("dim", Given::Int(dim as i64)),
                    ("start", Given::Int(start)),
                    ("end", Given::Int(end)),
                    ("step", Given::Int(1)),
                ];
                self.call("aten::slice.Tensor", "aten::slice_copy.Tensor_out", args, &shorter);
            }
            10 | 11 if rank > 0 => {
                let keep = extra % 2 == 0;
                let mut shorter = sizes;
                if keep {
                    shorter[dim] = 1;
                } else {
                    shorter.remove(dim);
                }
                let args = [this, ("dim", Given::Ints(vec![dim as i64])), ("keepdim", Given::Bool(keep))];
                if what % 2 == 0 {
                    return self.call("aten::amax", "aten::amax.out", args, &shorter);
                }
                let [this, dim, keepdim] = args;
                self.call("aten::mean.dim", "aten::mean.out", [this, dim, keepdim, ("dtype", Given::NoType)], &shorter);
            }
            12 if rank > 0 => {
                let args = [this, ("dim", Given::Int(dim as i64 - rank as i64)), ("half_to_float", Given::Bool(false))];
                self.call("aten::_softmax", "aten::_softmax.out", args, &sizes);
            }
            13 if rank == 2 => {
                let mut parameters = self.inputs.iter().filter(|(spec, _)| spec.kind != InputKind::User);
                let fits = parameters.position(|(_, tensor)| tensor.layout().sizes().first() == Some(&sizes[1]));
                // Parameters are the first values.
                if let Some(parameter) = fits {
                    let wide = [sizes[0], self.sizes(parameter)[1]];
                    self.call("aten::mm", "aten::mm.out", [this, ("mat2", Given::Value(parameter))], &wide);
                }
            }
            _ => {}
        }
    }

    /// The program whose outputs are the last values, with what they should be.
    fn finish(mut self, outputs: usize) -> (ExportedProgram<'static>, Vec<OwnedTensor>, Vec<OwnedTensor>) {
        let mut weights = edgepack_exir::archive::Weights::default();
        for (spec, tensor) in &self.inputs {
            if let InputKind::Buffer { name, .. } = &spec.kind {
                let storage = Storage::owned(name.as_str(), tensor.bytes().to_vec());
                let weight = Weight::contiguous(storage, ScalarType::FLOAT, tensor.layout().sizes()).unwrap();
                weights.state.insert(name.clone(), weight);
            }
        }
        let last: Vec<(ValueId, OwnedTensor)> = self.values.iter().rev().take(outputs).cloned().collect();
        self.graph.outputs = last.iter().map(|(id, _)| (*id).into()).collect();
        let (inputs, given): (Vec<_>, Vec<_>) = self.inputs.into_iter().unzip();
        let user = inputs.iter().zip(given).filter(|(spec, _)| spec.kind == InputKind::User);
        let given = user.map(|(_, tensor)| tensor).collect();
        let program = ExportedProgram {
            outputs: last.iter().map(|(id, _)| OutputSpec { kind: OutputKind::User, arg: (*id).into() }).collect(),
            graph: self.graph,
            inputs,
            weights,
            ranges: Default::default(),
            dialect: Dialect::Aten,
            about: About::default(),
        };
        (program, given, last.into_iter().map(|(_, tensor)| tensor).collect())
    }
}

/// An argument, for the graph and for the call.
#[derive(Clone)]
enum Given {
    Value(usize),
    Values(Vec<usize>),
    Number(f32),
    Int(i64),
    Bool(bool),
    Ints(Vec<i64>),
    Alpha(i64),
    NoType,
}

fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |sizes: &[usize], index: usize| (index + sizes.len()).checked_sub(rank).map_or(1, |index| sizes[index]);
    (0..rank)
        .map(|index| match (at(a, index), at(b, index)) {
            (a, b) if a == b => Some(a),
            (1, b) => Some(b),
            (a, 1) => Some(a),
            _ => None,
        })
        .collect()
}

fn errors(program: &ExportedProgram<'_>, dialect: Dialect) -> Vec<String> {
    let operators = Operators::new();
    let findings = verify(program, &verify::Options::new(&operators).dialect(dialect));
    let errors = findings.iter().filter(|finding| finding.rule.severity == edgepack_format::finding::Severity::Error);
    errors.map(ToString::to_string).collect()
}

fn run(bytes: Vec<u8>, inputs: &[OwnedTensor], no_optimize: bool) -> Vec<Vec<f32>> {
    let program = Program::from_bytes(bytes).unwrap_or_else(|error| panic!("{error}"));
    let options = Options { no_optimize, ..Options::default() };
    let mut method = Method::load(&program, "forward", &edgepack_kernels::registry(), &options).unwrap();
    let views: Vec<TensorView<'_>> =
        inputs.iter().map(|tensor| TensorView::of::<f32>(tensor.layout().sizes(), tensor.bytes()).unwrap()).collect();
    let outputs = method.run(&views).unwrap();
    let read = |output| match output {
        Some(Output::Tensor(tensor)) => tensor.as_slice::<f32>().unwrap().to_vec(),
        other => panic!("no tensor: {other:?}"),
    };
    (0..outputs.len()).map(|index| read(outputs.get(index))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_are_lowered_to_what_they_compute(
        steps in vec(any::<[u8; 4]>(), 1..24),
        (rows, columns, wide) in (1usize..5, 1usize..5, 1usize..5),
        outputs in 1usize..4,
        seed in any::<u64>(),
    ) {
        let mut growing = Growing::new();
        let buffer = |name: &str| InputKind::Buffer { name: name.to_owned(), persistent: true };
        growing.input(&[columns, wide], buffer("weight"), seed);
        growing.input(&[wide, columns], buffer("back"), seed ^ 1);
        growing.input(&[rows, columns], InputKind::User, seed ^ 2);
        growing.input(&[columns], InputKind::User, seed ^ 3);
        steps.into_iter().for_each(|step| growing.grow(step));
        let (program, inputs, want) = growing.finish(outputs);

        prop_assert_eq!(errors(&program, Dialect::Aten), Vec::<String>::new());
        let mut archive = Vec::new();
        program.save(&mut archive).unwrap();
        let again = Archive::parse(&archive).unwrap().program().unwrap();
        prop_assert_eq!(again.to_document(), program.to_document());
        prop_assert_eq!(again.to_string(), program.to_string());

        for like_reference in [false, true] {
            let options = Lowering { like_reference, ..Lowering::default() };
            let edge = to_edge(program.clone(), &options).unwrap();
            prop_assert_eq!(errors(&edge, Dialect::Edge), Vec::<String>::new());
            let bytes = lower(vec![("forward".to_owned(), again.clone())], &options).unwrap().to_bytes().unwrap();
            for no_optimize in [false, true] {
                let have = run(bytes.clone(), &inputs, no_optimize);
                prop_assert_eq!(have.len(), want.len());
                for (have, want) in have.iter().zip(&want) {
                    let want = want.as_slice::<f32>().unwrap();
                    prop_assert_eq!(have.len(), want.len());
                    for (have, want) in have.iter().zip(&want) {
                        let close = (have - want).abs() <= 1e-4 * (1.0 + want.abs());
                        prop_assert!(close || have == want || have.is_nan() && want.is_nan(), "{have} for {want}\n{program}");
                    }
                }
            }
        }
    }
}

/// Floats as integers of the same, a smaller and a larger size, one of them changed in between.
#[test]
fn bytes_are_seen_as_another_type() {
    let like = |scalar_type, sizes: &[i64]| {
        TensorMeta::contiguous(scalar_type, &sizes.iter().copied().map(Size::Known).collect::<Vec<_>>())
    };
    let as_type = |value: ValueId, scalar_type| [("self", value.into()), ("dtype", Argument::ScalarType(scalar_type))];
    let mut graph = Graph::default();
    let x = graph.add_input("x", like(ScalarType::FLOAT, &[2, 4]));
    let doubled = graph.call("aten::add.Tensor", [("self", x.into()), ("other", x.into())], meta(&[2, 4]));
    let views: Vec<ValueId> = [(ScalarType::INT, 4), (ScalarType::SHORT, 8), (ScalarType::LONG, 2)]
        .map(|(dtype, last)| graph.call("aten::view.dtype", as_type(doubled, dtype), like(dtype, &[2, last])))
        .to_vec();
    let one = graph.call(
        "aten::add.Tensor",
        [("self", views[0].into()), ("other", 1.into())],
        like(ScalarType::INT, &[2, 4]),
    );
    let back = graph.call("aten::view.dtype", as_type(one, ScalarType::FLOAT), meta(&[2, 4]));
    let outputs: Vec<ValueId> = views.into_iter().chain([back]).collect();
    graph.outputs = outputs.iter().map(|id| (*id).into()).collect();
    let program = ExportedProgram::from_graph(graph, Dialect::Aten);
    assert_eq!(errors(&program, Dialect::Aten), Vec::<String>::new());
    let mut archive = Vec::new();
    program.save(&mut archive).unwrap();
    let again = Archive::parse(&archive).unwrap().program().unwrap();

    let registry = edgepack_kernels::registry();
    let given: Vec<f32> = numbers(8, 5);
    let bits: Vec<i32> = given.iter().map(|x| (x + x).to_bits().cast_signed()).collect();
    let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_ne_bytes()).collect();
    let next: Vec<u8> = bits.iter().flat_map(|bits| (bits + 1).to_ne_bytes()).collect();
    for like_reference in [false, true] {
        let options = Lowering { like_reference, ..Lowering::default() };
        assert_eq!(errors(&to_edge(program.clone(), &options).unwrap(), Dialect::Edge), Vec::<String>::new());
        let built = lower(vec![("forward".to_owned(), again.clone())], &options).unwrap().to_bytes().unwrap();
        let file = Program::from_bytes(built).unwrap();
        let mut method = Method::load(&file, "forward", &registry, &Options::default()).unwrap();
        let tensor = OwnedTensor::new(&[2, 4], &given);
        let outputs = method.run(&[TensorView::of::<f32>(&[2, 4], tensor.bytes()).unwrap()]).unwrap();
        for (index, (dtype, last, want)) in [
            (ScalarType::INT, 4, &bytes),
            (ScalarType::SHORT, 8, &bytes),
            (ScalarType::LONG, 2, &bytes),
            (ScalarType::FLOAT, 4, &next),
        ]
        .into_iter()
        .enumerate()
        {
            let Some(Output::Tensor(tensor)) = outputs.get(index) else { panic!("no tensor") };
            assert_eq!((tensor.dtype, tensor.sizes), (dtype, [2, last].as_slice()));
            assert_eq!(tensor.bytes(), want.as_slice(), "output {index}");
        }
        let runs = [eager::random_inputs(&program, 7).unwrap()];
        let judged = eager::lowering(&program, &mut method, &registry, &Operators::new(), &runs).unwrap();
        assert!(judged.agrees(), "{:#?}", judged.differences);
    }
}
