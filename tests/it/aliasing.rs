//! Random programs of views and changes in place: what they are lowered to gives what they give call by call, with
//! tensors that share storages.
//!
//! `EDGEPACK_GRAPHS=N` tries so many programs, `EDGEPACK_GRAPHS_FROM=S` begins with another one.

use std::collections::BTreeMap;
use std::env;

use edgepack::eager;
use edgepack_executor::{Method, Options};
use edgepack_exir::archive::{Storage, Weight, Weights};
use edgepack_exir::graph::{
    About, Argument, Dialect, ExportedProgram, Graph, InputKind, InputSpec, Node, OutputKind, OutputSpec, Ranges, Size,
    TensorMeta, ValueId,
};
use edgepack_exir::lower::{Options as Lowering, lower};
use edgepack_exir::operators::Operators;
use edgepack_format::scalar::ScalarType;
use edgepack_loader::Program;

struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1) | 1)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 20) % end.max(1) as u64) as usize
    }

    fn dim(&mut self, rank: usize) -> i64 {
        let dim = self.below(rank) as i64;
        if self.below(2) == 0 { dim } else { dim - rank as i64 }
    }
}

fn meta(sizes: &[i64]) -> TensorMeta {
    let sizes: Vec<Size> = sizes.iter().copied().map(Size::Known).collect();
    TensorMeta::contiguous(ScalarType::FLOAT, &sizes)
}

/// A program that grows, and the tensors it has so far with their sizes.
struct Growing {
    random: Random,
    graph: Graph,
    pool: Vec<(ValueId, Vec<i64>)>,
}

impl Growing {
    fn node<const N: usize>(&mut self, op: &str, args: [(&str, Argument); N], sizes: &[i64]) -> ValueId {
        let node = self.graph.make(op, args, meta(sizes));
        let result = node.result().unwrap();
        self.graph.nodes.push(node);
        result
    }

    fn view<const N: usize>(&mut self, op: &str, args: [(&str, Argument); N], sizes: Vec<i64>) {
        let value = self.node(op, args, &sizes);
        self.pool.push((value, sizes));
    }

    fn list(&mut self, op: &str, args: Vec<(&str, Argument)>, pieces: Vec<Vec<i64>>) {
        let mut node: Node = self.graph.make(op, [], meta(&pieces[0]));
        let first = node.result().unwrap();
        let mut results = vec![first];
        results.extend(pieces[1..].iter().map(|sizes| self.graph.add_value("piece", meta(sizes))));
        for (name, arg) in args {
            node.set_arg(name, arg);
        }
        node.outputs = vec![Argument::tensors(results.iter().copied())];
        self.graph.nodes.push(node);
        self.pool.extend(results.into_iter().zip(pieces));
    }

    /// A change in place; what it gives takes the place of the tensor in the pool.
    fn change<const N: usize>(&mut self, at: usize, op: &str, args: [(&str, Argument); N], sizes: Vec<i64>) {
        let value = self.node(op, args, &sizes);
        if self.random.below(2) == 0 {
            self.pool[at].0 = value;
        }
        self.pool[at].1 = sizes;
    }

    fn step(&mut self) {
        let at = self.random.below(self.pool.len());
        let (value, sizes) = self.pool[at].clone();
        let rank = sizes.len();
        let this = ("self", Argument::Value(value));
        let dim = if rank > 0 { self.random.dim(rank) } else { 0 };
        let front = if dim < 0 { dim + rank as i64 } else { dim } as usize;
        let size = sizes.get(front).copied().unwrap_or(1);
        let all: i64 = sizes.iter().product();
        let without = |front: usize| {
            let mut sizes = sizes.clone();
            sizes.remove(front);
            sizes
        };
        let with = |front: usize, size: i64| {
            let mut sizes = sizes.clone();
            sizes[front] = size;
            sizes
        };
        match self.random.below(40) {
            0 if rank > 0 => {
                let index = self.random.below(size as usize) as i64;
                self.view("aten::select.int", [this, ("dim", dim.into()), ("index", index.into())], without(front));
            }
            1 if rank > 0 => {
                let start = self.random.below(size as usize) as i64;
                let end = start + 1 + self.random.below((size - start) as usize) as i64;
                let step = 1 + self.random.below(3) as i64;
                let len = (end - start + step - 1) / step;
                let (start, end) = match self.random.below(3) {
                    0 if start > 0 => (start - size, end),
                    1 => (start, if end == size { i64::MAX } else { end }),
                    _ => (start, end),
                };
                let bounds =
                    [this, ("dim", dim.into()), ("start", start.into()), ("end", end.into()), ("step", step.into())];
                self.view("aten::slice.Tensor", bounds, with(front, len));
            }
            2 if rank > 0 => {
                let start = self.random.below(size as usize) as i64;
                let length = 1 + self.random.below((size - start) as usize) as i64;
                let args = [this, ("dim", dim.into()), ("start", start.into()), ("length", length.into())];
                self.view("aten::narrow", args, with(front, length));
            }
            3 if rank == 2 => self.view("aten::t", [this], vec![sizes[1], sizes[0]]),
            4 if rank > 1 => {
                let other = self.random.below(rank);
                let mut swapped = sizes.clone();
                swapped.swap(front, other);
                self.view(
                    "aten::transpose.int",
                    [this, ("dim0", dim.into()), ("dim1", (other as i64).into())],
                    swapped,
                );
            }
            5 if rank > 1 => {
                let turn = self.random.below(rank);
                let order: Vec<i64> = (0..rank).map(|dim| ((dim + turn) % rank) as i64).collect();
                let turned = order.iter().map(|dim| sizes[*dim as usize]).collect();
                self.view("aten::permute", [this, ("dims", Argument::ints(order))], turned);
            }
            6 if rank < 4 => {
                let place = self.random.below(rank + 1);
                let mut wide = sizes.clone();
                wide.insert(place, 1);
                self.view("aten::unsqueeze", [this, ("dim", (place as i64).into())], wide);
            }
            7 if size == 1 && rank > 0 => self.view("aten::squeeze.dim", [this, ("dim", dim.into())], without(front)),
            8 | 9 => {
                let two = all % 2 == 0 && self.random.below(2) == 0;
                let wanted = if two { vec![2, all / 2] } else { vec![all] };
                self.view("aten::reshape", [this, ("shape", Argument::ints(wanted.clone()))], wanted);
            }
            10 if rank > 1 => {
                let flat: Vec<i64> = [&[sizes[0] * sizes[1]], &sizes[2..]].concat();
                let args = [this, ("start_dim", 0.into()), ("end_dim", 1.into())];
                self.view("aten::flatten.using_ints", args, flat);
            }
            11 if rank > 0 && size > 1 => {
                let first = 1 + self.random.below(size as usize - 1) as i64;
                let lengths = [first, size - first];
                let args = vec![this, ("split_sizes", Argument::ints(lengths)), ("dim", dim.into())];
                self.list("aten::split_with_sizes", args, lengths.map(|len| with(front, len)).to_vec());
            }
            12 if rank > 0 && size > 1 && size % 2 == 0 => {
                let args = vec![this, ("chunks", 2.into()), ("dim", dim.into())];
                self.list("aten::chunk", args, vec![with(front, size / 2); 2]);
            }
            13 if rank > 0 && size < 5 => {
                let args = vec![this, ("dim", dim.into())];
                self.list("aten::unbind.int", args, vec![without(front); size as usize]);
            }
            14 if rank == 2 => {
                let offset = self.random.below(2) as i64;
                let len = sizes[0].min(sizes[1] - offset);
                if len > 0 {
                    let args = [this, ("offset", offset.into()), ("dim1", 0.into()), ("dim2", 1.into())];
                    self.view("aten::diagonal", args, vec![len]);
                }
            }
            15 if rank < 3 => {
                let wide: Vec<i64> = [&[2], sizes.as_slice()].concat();
                self.view("aten::expand", [this, ("size", Argument::ints(wide.clone()))], wide);
            }
            16 if rank > 0 && size > 2 => {
                let args = [this, ("dimension", dim.into()), ("size", 2.into()), ("step", 2.into())];
                let mut windows = with(front, (size - 2) / 2 + 1);
                windows.push(2);
                self.view("aten::unfold", args, windows);
            }
            17 => self.view("aten::detach", [this], sizes),
            18 => self.view("aten::contiguous", [this], sizes),
            19 => self.view("aten::to.dtype", [this, ("dtype", Argument::ScalarType(ScalarType::FLOAT))], sizes),
            20 => {
                self.view("aten::dropout", [("input", value.into()), ("p", 0.5.into()), ("train", false.into())], sizes)
            }
            21 if rank > 1 => {
                let mut moved = without(front);
                moved.push(size);
                let args = [this, ("source", dim.into()), ("destination", (-1).into())];
                self.view("aten::movedim.int", args, moved);
            }
            22 => self.view("aten::clone", [this], sizes),
            23 => self.view("aten::add.Tensor", [this, ("other", 1.0.into())], sizes),
            24 => self.view("aten::neg", [this], sizes),
            25 => {
                let input = self.pool[self.random.below(4)].0;
                let args = [
                    ("self", input.into()),
                    ("size", Argument::ints([2, 2])),
                    ("stride", Argument::ints([2, 1])),
                    ("storage_offset", 1.into()),
                ];
                self.view("aten::as_strided", args, vec![2, 2]);
            }
            26 => self.change(at, "aten::add_.Tensor", [this, ("other", 0.5.into())], sizes),
            27 => self.change(at, "aten::mul_.Tensor", [this, ("other", 1.5.into())], sizes),
            28 => self.change(at, "aten::neg_", [this], sizes),
            29 => self.change(at, "aten::zero_", [this], sizes),
            30 => self.change(at, "aten::fill_.Scalar", [this, ("value", 0.25.into())], sizes),
            31 => self.change(at, "aten::sigmoid_", [this], sizes),
            32 | 33 => {
                let fits = |other: &(ValueId, Vec<i64>)| sizes.ends_with(&other.1);
                let others: Vec<ValueId> = self.pool.iter().filter(|other| fits(other)).map(|other| other.0).collect();
                let source = others[self.random.below(others.len())];
                match self.random.below(3) {
                    0 => self.change(at, "aten::add_.Tensor", [this, ("other", source.into())], sizes),
                    _ => self.change(at, "aten::copy_", [this, ("src", source.into())], sizes),
                }
            }
            34 if rank == 2 && at > 3 => self.change(at, "aten::t_", [this], vec![sizes[1], sizes[0]]),
            35 if rank < 4 && at > 3 => {
                let wide = [&[1], sizes.as_slice()].concat();
                self.change(at, "aten::unsqueeze_", [this, ("dim", 0.into())], wide);
            }
            36 => {
                let same = |other: &(ValueId, Vec<i64>)| other.1 == sizes;
                let others: Vec<ValueId> = self.pool.iter().filter(|other| same(other)).map(|other| other.0).collect();
                let other = others[self.random.below(others.len())];
                let args = [("self", other.into()), ("other", 2.0.into()), ("out", value.into())];
                self.change(at, "aten::mul.Scalar_out", args, sizes);
            }
            37 if rank == 2 => {
                self.change(at, "aten::fill_diagonal_", [this, ("fill_value", 3.0.into())], sizes);
            }
            38 => self.view("aten::ravel", [this], vec![all]),
            _ => {
                let mask = self.node("aten::gt.Scalar", [this.clone(), ("other", 0.3.into())], &sizes);
                let sizes_known: Vec<Size> = sizes.iter().copied().map(Size::Known).collect();
                self.graph.set_meta(mask, TensorMeta::contiguous(ScalarType::BOOL, &sizes_known).into());
                let args = [this, ("mask", mask.into()), ("value", (-1.0).into())];
                self.change(at, "aten::masked_fill_.Scalar", args, sizes);
            }
        }
    }
}

/// A random program with the layouts its tensors have.
fn program(seed: u64) -> Option<ExportedProgram<'static>> {
    let mut growing = Growing { random: Random::new(seed), graph: Graph::default(), pool: Vec::new() };
    let mut inputs = Vec::new();
    let shapes: [&[i64]; 4] = [&[3, 4], &[4, 6], &[4, 6], &[6]];
    let elements = (0..12).map(|number| number as f32 / 4.0 - 1.0).flat_map(f32::to_ne_bytes).collect();
    let weight = Weight::contiguous(Storage::owned("state", elements), ScalarType::FLOAT, &[3, 4]).unwrap();
    for (index, sizes) in shapes.into_iter().enumerate() {
        let value = growing.graph.add_input(if index == 0 { "b_state" } else { "x" }, meta(sizes));
        let kind = match index {
            0 => InputKind::Buffer { name: "state".to_owned(), persistent: true },
            _ => InputKind::User,
        };
        inputs.push(InputSpec { kind, arg: value.into() });
        growing.pool.push((value, sizes.to_vec()));
    }
    for _ in 0..4 + growing.random.below(14) {
        growing.step();
    }
    let Growing { mut graph, pool, .. } = growing;
    graph.outputs = pool.iter().map(|(value, _)| Argument::Value(*value)).collect();
    let outputs = graph.outputs.iter().map(|arg| OutputSpec { kind: OutputKind::User, arg: arg.clone() }).collect();
    let weights = Weights { state: BTreeMap::from([("state".to_owned(), weight)]), ..Weights::default() };
    let dialect = Dialect::Training;
    let mut program =
        ExportedProgram { graph, inputs, outputs, weights, ranges: Ranges::new(), dialect, about: About::default() };
    let given = eager::random_inputs(&program, seed).unwrap();
    // Operators that PyTorch refuses to run in place have no layouts.
    let layouts = eager::layouts(&program, &edgepack_kernels::registry(), &Operators::new(), &given).ok()?;
    for (value, (strides, offset)) in layouts {
        let Some(mut meta) = program.graph.tensor(value).cloned() else { continue };
        meta.strides = strides.into_iter().map(Size::Known).collect();
        meta.storage_offset = Size::Known(offset);
        program.graph.set_meta(value, meta.into());
    }
    Some(program)
}

#[test]
fn lowered_programs_see_every_change() {
    let number = |name: &str, default: u64| env::var(name).map_or(default, |text| text.parse().unwrap());
    let (count, from) = (number("EDGEPACK_GRAPHS", 1500), number("EDGEPACK_GRAPHS_FROM", 0));
    let registry = edgepack_kernels::registry();
    let operators = Operators::new();
    let (mut agreed, mut without_layout, mut refused) = (0u64, 0u64, BTreeMap::<String, u64>::new());
    for seed in from..from + count {
        let Some(program) = program(seed) else {
            without_layout += 1;
            continue;
        };
        let built = match lower(vec![("forward".to_owned(), program.clone())], &Lowering::default()) {
            Ok(built) => built,
            Err(error) => {
                let message = error.to_string();
                let reason = message.split_once("`: ").map_or(message.as_str(), |(_, reason)| reason).to_owned();
                *refused.entry(reason).or_default() += 1;
                continue;
            }
        };
        let file = Program::from_bytes(built.to_bytes().unwrap()).unwrap();
        let mut method = Method::load(&file, "forward", &registry, &Options::default())
            .unwrap_or_else(|error| panic!("program {seed} does not load: {error}\n{program}"));
        let runs: Vec<_> = (0..2).map(|run| eager::random_inputs(&program, seed + run).unwrap()).collect();
        let judged = eager::lowering(&program, &mut method, &registry, &operators, &runs)
            .unwrap_or_else(|error| panic!("program {seed}: {error}\n{program}"));
        assert!(judged.agrees(), "program {seed}: {:#?}\n{program}", judged.differences);
        agreed += 1;
    }
    println!("{agreed} programs agree, {without_layout} do what PyTorch refuses, refused here: {refused:#?}");
    assert!(agreed * 10 > count * 8, "too few were lowered");
    // Programs are refused only for what PyTorch refuses, too, or leaves open.
    let known =
        ["a change of a tensor whose elements are repeated in memory", "a change of a view whose elements overlap"];
    let unknown: Vec<_> =
        refused.keys().filter(|reason| !known.iter().any(|known| reason.starts_with(known))).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn another_program_is_noticed() {
    let (registry, operators) = (edgepack_kernels::registry(), Operators::new());
    let one = program(1).unwrap();
    let mut other = one.clone();
    let x = other.inputs[1].arg.value().unwrap();
    let doubled = other.graph.make("aten::mul_.Tensor", [("self", x.into()), ("other", 2.0.into())], meta(&[4, 6]));
    other.graph.nodes.insert(0, doubled);
    let built = lower(vec![("forward".to_owned(), other)], &Lowering::default()).unwrap();
    let file = Program::from_bytes(built.to_bytes().unwrap()).unwrap();
    let mut method = Method::load(&file, "forward", &registry, &Options::default()).unwrap();
    let runs = [eager::random_inputs(&one, 0).unwrap()];
    let judged = eager::lowering(&one, &mut method, &registry, &operators, &runs).unwrap();
    assert!(!judged.agrees());
}
