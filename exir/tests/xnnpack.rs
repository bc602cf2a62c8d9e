//! Parts of programs given to XNNPACK: which they are, and what their payloads say.

use edgepack_exir::archive::{Storage, Weight};
use edgepack_exir::backends::xnnpack::{self, Explained, Reason, Scheme};
use edgepack_exir::graph::{
    Argument, Dialect, ExportedProgram, Expr, Graph, InputKind, InputSpec, Interval, Size, TensorMeta, ValueId,
};
use edgepack_exir::lower::{ByName, Options, ProgramManager};
use edgepack_format::limits::Limits;
use edgepack_format::scalar::ScalarType;
use edgepack_format::xnnpack::Payload;

fn meta(sizes: &[i64]) -> TensorMeta {
    let sizes: Vec<Size> = sizes.iter().map(|size| Size::Known(*size)).collect();
    TensorMeta::contiguous(ScalarType::FLOAT, &sizes)
}

/// A program that grows call by call.
#[derive(Default)]
struct Growing {
    graph: Graph,
    constants: Vec<(ValueId, Vec<i64>, ScalarType, Vec<u8>)>,
}

impl Growing {
    fn input(&mut self, sizes: &[i64]) -> ValueId {
        self.graph.add_input("x", meta(sizes))
    }

    /// A constant of one number again and again.
    fn constant(&mut self, sizes: &[i64], number: f32) -> Argument {
        let id = self.graph.add_value("w", meta(sizes));
        let bytes = number.to_le_bytes().repeat(sizes.iter().product::<i64>() as usize);
        self.constants.push((id, sizes.to_vec(), ScalarType::FLOAT, bytes));
        id.into()
    }

    /// A call that quantises, or goes back, with one scale and zero point.
    fn converted(&mut self, name: &str, x: ValueId, to: ScalarType) -> ValueId {
        let meta = TensorMeta { scalar_type: to, ..self.graph.tensor(x).unwrap().clone() };
        let args = [
            ("input", x.into()),
            ("scale", 0.25.into()),
            ("zero_point", 3i64.into()),
            ("quant_min", (-128i64).into()),
            ("quant_max", 127i64.into()),
            ("dtype", Argument::ScalarType(ScalarType::CHAR)),
        ];
        self.graph.call(name, args, meta)
    }

    fn quantised(&mut self, x: ValueId) -> ValueId {
        let bytes = self.converted("quantized_decomposed::quantize_per_tensor", x, ScalarType::CHAR);
        self.converted("quantized_decomposed::dequantize_per_tensor", bytes, ScalarType::FLOAT)
    }

    fn call<const N: usize>(&mut self, name: &str, args: [(&str, Argument); N], sizes: &[i64]) -> ValueId {
        self.graph.call(name, args, meta(sizes))
    }

    fn unary(&mut self, name: &str, x: ValueId) -> ValueId {
        let meta = self.graph.tensor(x).unwrap().clone();
        self.graph.call(name, [("self", x.into())], meta)
    }

    fn convolution(&mut self, x: ValueId, filter: &[i64], sizes: &[i64]) -> ValueId {
        let weight = self.constant(filter, 0.5);
        self.convolved(x, weight, sizes)
    }

    fn convolved(&mut self, x: ValueId, weight: Argument, sizes: &[i64]) -> ValueId {
        let args = [
            ("input", x.into()),
            ("weight", weight),
            ("bias", Argument::None),
            ("stride", Argument::ints([1, 1])),
            ("padding", Argument::ints([0, 0])),
            ("dilation", Argument::ints([1, 1])),
            ("transposed", false.into()),
            ("output_padding", Argument::ints([0, 0])),
            ("groups", 1i64.into()),
        ];
        self.call("aten::convolution", args, sizes)
    }

    fn linear(&mut self, x: ValueId, weight: &[i64; 2], sizes: &[i64]) -> ValueId {
        let weight = self.constant(weight, 0.25);
        self.call("aten::linear", [("input", x.into()), ("weight", weight)], sizes)
    }

    fn finish(mut self, outputs: &[ValueId]) -> ExportedProgram<'static> {
        self.graph.outputs = outputs.iter().map(|id| (*id).into()).collect();
        let mut program = ExportedProgram::from_graph(self.graph, Dialect::Aten);
        for (index, (id, sizes, scalar_type, bytes)) in self.constants.into_iter().enumerate() {
            let sizes: Vec<usize> = sizes.iter().map(|size| *size as usize).collect();
            let name = format!("w{index}");
            let storage = Storage::owned(name.as_str(), bytes);
            let weight = Weight::contiguous(storage, scalar_type, &sizes).unwrap();
            program.weights.constants.insert(name.clone(), weight);
            program.graph.inputs.insert(index, id.into());
            program.inputs.insert(index, InputSpec { kind: InputKind::Constant(name), arg: id.into() });
        }
        program
    }
}

fn manager(program: ExportedProgram<'static>) -> ProgramManager<'static> {
    let mut manager = ProgramManager::new(Options::default());
    manager.keep_whole(xnnpack::whole_operators()).add("forward", program).unwrap();
    manager
}

fn delegated(program: ExportedProgram<'static>) -> (ProgramManager<'static>, Vec<Explained>) {
    let mut manager = manager(program);
    let mut explained = xnnpack::delegate(&mut manager, &ByName::default()).unwrap();
    (manager, explained.remove(0).1)
}

/// The kinds of nodes of each payload, in order.
fn payloads(manager: &ProgramManager<'_>) -> Vec<Vec<String>> {
    let modules = manager.export("forward").unwrap().about.modules;
    let kinds = |bytes: &[u8]| {
        let payload = Payload::parse(bytes, &Limits::DEFAULT).unwrap();
        let kind = |line: String| line.split(" = ").nth(1).unwrap().split('(').next().unwrap().to_owned();
        payload.nodes().iter().map(|node| kind(node.to_string())).collect()
    };
    modules.iter().map(|module| kinds(module.payload.as_ref().unwrap())).collect()
}

fn nodes(program: ExportedProgram<'static>) -> Vec<String> {
    let mut payloads = payloads(&delegated(program).0);
    assert_eq!(payloads.len(), 1);
    payloads.remove(0)
}

#[test]
fn images_change_their_order_at_the_border_alone_and_norms_and_ranges_are_part_of_convolutions() {
    let mut g = Growing::default();
    let x = g.input(&[1, 3, 8, 8]);
    let y = g.convolution(x, &[4, 3, 3, 3], &[1, 4, 6, 6]);
    let constants = [1.0, 0.0, 0.5, 2.0].map(|number| g.constant(&[4], number));
    let [weight, bias, mean, variance] = constants;
    let args = [
        ("input", y.into()),
        ("weight", weight),
        ("bias", bias),
        ("running_mean", mean),
        ("running_var", variance),
        ("momentum", 0.1.into()),
        ("eps", 1e-5.into()),
    ];
    let mut norm = g.graph.make("aten::_native_batch_norm_legit_no_training", args, meta(&[1, 4, 6, 6]));
    let rest = [g.graph.add_value("mean", meta(&[0])), g.graph.add_value("variance", meta(&[0]))];
    norm.outputs.extend(rest.map(Argument::Value));
    let y = norm.result().unwrap();
    g.graph.nodes.push(norm);
    let y = g.unary("aten::relu", y);
    let y = g.convolution(y, &[2, 4, 1, 1], &[1, 2, 6, 6]);
    let y = g.unary("aten::tanh", y);
    assert_eq!(nodes(g.finish(&[y])), ["StaticTranspose", "Conv2d", "Conv2d", "Tanh", "StaticTranspose"]);
}

#[test]
fn permutations_are_names_until_a_node_asks_for_an_order() {
    let mut g = Growing::default();
    let x = g.input(&[2, 3, 4]);
    let there = g.call("aten::permute", [("self", x.into()), ("dims", Argument::ints([2, 0, 1]))], &[4, 2, 3]);
    let y = g.unary("aten::tanh", there);
    let back = g.call("aten::permute", [("self", y.into()), ("dims", Argument::ints([1, 2, 0]))], &[2, 3, 4]);
    assert_eq!(nodes(g.finish(&[back])), ["Tanh", "Copy"]);
}

#[test]
fn rows_are_quantised_once_for_all_products() {
    let mut g = Growing::default();
    let x = g.input(&[4, 64]);
    let outputs = [0; 3].map(|_| g.linear(x, &[8, 64], &[4, 8]));
    let mut manager = manager(g.finish(&outputs));
    let layers = xnnpack::quantise(&mut manager, Scheme::Blocks(32)).unwrap().remove(0).1;
    assert!(layers.iter().all(|layer| layer.sqnr.is_some_and(|sqnr| sqnr > 40.0)), "{layers:?}");
    xnnpack::delegate(&mut manager, &ByName::default()).unwrap();
    let products = ["Convert", "FullyConnected", "FullyConnected", "FullyConnected"];
    assert_eq!(payloads(&manager), [products]);
    // Equal weights are stored once: bytes and scales.
    assert_eq!(manager.export("forward").unwrap().about.modules[0].named_data.len(), 2);
}

#[test]
fn weights_that_no_scheme_fits_stay_and_say_why() {
    let mut g = Growing::default();
    let x = g.input(&[4, 48]);
    let y = g.linear(x, &[8, 48], &[4, 8]);
    let mut manager = manager(g.finish(&[y]));
    let layers = xnnpack::quantise(&mut manager, Scheme::Blocks(32)).unwrap().remove(0).1;
    assert_eq!(layers[0].left, Some("its rows do not consist of whole blocks"));
    let layers = xnnpack::quantise(&mut manager, Scheme::Rows).unwrap().remove(0).1;
    assert_eq!((layers.len(), layers[0].left), (1, None));
    // What is quantised is not quantised again.
    assert!(xnnpack::quantise(&mut manager, Scheme::Rows).unwrap().remove(0).1.is_empty());
}

#[test]
fn parts_are_as_few_as_the_order_allows() {
    let mut g = Growing::default();
    let (x, other) = (g.input(&[2, 3]), g.input(&[2, 3]));
    let a = g.unary("aten::abs", x);
    let left = g.unary("aten::erf", a);
    let b = g.unary("aten::neg", left);
    // Nothing of the first part makes it, so it can be in the second.
    let c = g.unary("aten::tanh", other);
    let sum = g.call("aten::add.Tensor", [("self", b.into()), ("other", c.into())], &[2, 3]);
    let (manager, explained) = delegated(g.finish(&[sum]));
    assert_eq!(payloads(&manager), [vec!["Abs"], vec!["Tanh", "Negate", "Add"]]);
    let left: Vec<_> =
        explained.iter().filter_map(|node| Some((node.operator.as_str(), node.reason.clone()?))).collect();
    assert_eq!(left, [("aten::erf", Reason::Operator("aten::erf".to_owned()))]);
}

#[test]
fn zeros_around_bytes_are_bytes_so_that_the_convolution_behind_reads_bytes() {
    let mut g = Growing::default();
    let x = g.input(&[1, 2, 4, 4]);
    let x = g.quantised(x);
    let pads = [("self", x.into()), ("pad", Argument::ints([0, 1, 0, 1])), ("value", 0.0.into())];
    let x = g.call("aten::constant_pad_nd", pads, &[1, 2, 5, 5]);
    let like = |scalar_type| TensorMeta { scalar_type, ..meta(&[3, 2, 2, 2]) };
    let bytes = g.graph.add_value("w", like(ScalarType::CHAR));
    g.constants.push((bytes, vec![3, 2, 2, 2], ScalarType::CHAR, vec![7; 24]));
    let args = [
        ("input", bytes.into()),
        ("scale", 0.5.into()),
        ("zero_point", 0i64.into()),
        ("quant_min", (-127i64).into()),
        ("quant_max", 127i64.into()),
        ("dtype", Argument::ScalarType(ScalarType::CHAR)),
    ];
    let name = "quantized_decomposed::dequantize_per_tensor";
    let weight = g.graph.call(name, args, like(ScalarType::FLOAT));
    let y = g.convolved(x, weight.into(), &[1, 3, 4, 4]);
    let y = g.quantised(y);
    let mut kinds = nodes(g.finish(&[y]));
    kinds.retain(|kind| kind != "StaticTranspose");
    assert_eq!(kinds, ["Convert", "StaticConstantPad", "Conv2d", "Convert"]);
}

#[test]
fn largest_numbers_along_height_or_width_are_windows_of_all_of_it() {
    let largest = |name: &str, dim: Argument, keepdim: bool, sizes: &[i64], indices: bool| {
        let mut g = Growing::default();
        let x = g.input(&[1, 3, 4, 5]);
        let y = g.unary("aten::tanh", x);
        let mut node = g.graph.make(name, [("self", y.into()), ("dim", dim), ("keepdim", keepdim.into())], meta(sizes));
        let mut outputs = vec![node.result().unwrap()];
        if name == "aten::max.dim" {
            let sizes: Vec<Size> = sizes.iter().map(|size| Size::Known(*size)).collect();
            let places = g.graph.add_value("places", TensorMeta::contiguous(ScalarType::LONG, &sizes));
            node.outputs.push(Argument::Value(places));
            outputs.extend(indices.then_some(places));
        }
        g.graph.nodes.push(node);
        delegated(g.finish(&outputs))
    };
    let pooled = |kinds: &[&str], (manager, _): (ProgramManager<'_>, Vec<Explained>)| {
        assert_eq!(payloads(&manager), [kinds]);
        let module = &manager.export("forward").unwrap().about.modules[0];
        let payload = Payload::parse(module.payload.as_ref().unwrap(), &Limits::DEFAULT).unwrap();
        payload.nodes().iter().map(ToString::to_string).find(|node| node.contains("MaxPooling2d")).unwrap()
    };
    let ends = ["Tanh", "StaticTranspose", "MaxPooling2d"];
    let of_width = pooled(
        &[&ends[..], &["StaticTranspose"]].concat(),
        largest("aten::max.dim", 3i64.into(), true, &[1, 3, 4, 1], false),
    );
    assert!(of_width.contains("window [1, 5]"), "{of_width}");
    let of_height = pooled(
        &[&ends[..], &["StaticReshape", "StaticTranspose"]].concat(),
        largest("aten::max.dim", (-2i64).into(), false, &[1, 3, 5], false),
    );
    assert!(of_height.contains("window [4, 1]"), "{of_height}");
    let of_both = pooled(
        &[&ends[..], &["StaticReshape"]].concat(),
        largest("aten::amax", Argument::ints([2, 3]), false, &[1, 3], false),
    );
    assert!(of_both.contains("window [4, 5]"), "{of_both}");
    let reason = |(_, explained): (_, Vec<Explained>)| explained[1].reason.clone();
    assert_eq!(reason(largest("aten::max.dim", 3i64.into(), true, &[1, 3, 4, 1], true)), Some(Reason::Result(1)));
    let channels = Reason::Argument { argument: "dim", why: "windows are of height and width alone" };
    assert_eq!(reason(largest("aten::max.dim", 1i64.into(), true, &[1, 1, 4, 5], false)), Some(channels));
}

#[test]
fn views_alone_are_no_delegate() {
    let mut g = Growing::default();
    let x = g.input(&[2, 3]);
    let y = g.call("aten::view_copy", [("self", x.into()), ("size", Argument::ints([6]))], &[6]);
    let (manager, explained) = delegated(g.finish(&[y]));
    assert!(payloads(&manager).is_empty());
    assert_eq!(explained[0].reason, Some(Reason::Alone));
}

#[test]
fn every_node_that_stays_has_a_reason() {
    let mut g = Growing::default();
    let x = g.input(&[2, 3]);
    let sum = [("self", x.into()), ("other", x.into()), ("alpha", 2i64.into())];
    let a = g.call("aten::add.Tensor", sum, &[2, 3]);
    let power = g.call("aten::pow.Tensor_Scalar", [("self", x.into()), ("exponent", 3i64.into())], &[2, 3]);
    let whole = TensorMeta::contiguous(ScalarType::INT, &[2i64.into()]);
    let n = g.graph.add_input("n", whole.clone());
    let n = g.graph.call("aten::neg", [("self", n.into())], whole);
    let steps = [("self", x.into()), ("dim", 1i64.into()), ("step", 2i64.into())];
    let odd = g.call("aten::slice_copy.Tensor", steps, &[2, 2]);
    let (_, explained) = delegated(g.finish(&[a, power, n, odd]));
    let reasons: Vec<String> = explained.iter().map(|node| node.reason.as_ref().unwrap().to_string()).collect();
    let want = [
        "argument `alpha`: nodes have no factor",
        "argument `exponent`: nodes compute the power 2 alone",
        "`n` has elements of type i32; nodes take f32 and f16",
        "argument `step`: nodes take neighbours",
    ];
    assert_eq!(reasons, want);
}

#[test]
fn sizes_are_bounds_and_one_formula_is_found_by_the_node() {
    let mut g = Growing::default();
    let rows = Size::Symbolic(Expr::symbol("s0"), Some(3));
    let like = |sizes: &[Size]| TensorMeta::contiguous(ScalarType::FLOAT, sizes);
    let x = g.graph.add_input("x", like(&[rows.clone(), 2i64.into(), 4i64.into()]));
    let number = Argument::Value(g.graph.add_value("rows", edgepack_exir::graph::Meta::Int(rows.clone())));
    let mut sym = g.graph.make("aten::sym_size.int", [("self", x.into()), ("dim", 0i64.into())], like(&[]));
    sym.outputs = vec![number.clone()];
    g.graph.nodes.push(sym);
    let y = g.graph.call("aten::tanh", [("self", x.into())], g.graph.tensor(x).unwrap().clone());
    let size = Argument::List(edgepack_exir::graph::ListKind::Ints, vec![number, 8i64.into()]);
    let y = g.graph.call("aten::view_copy", [("self", y.into()), ("size", size)], like(&[rows, 8i64.into()]));
    let mut program = g.finish(&[y]);
    program.ranges.insert("s0".to_owned(), Interval { min: Some(1), max: Some(7) });
    let (manager, explained) = delegated(program);
    assert!(explained.iter().all(|node| node.reason.is_none()), "{explained:?}");
    let module = &manager.export("forward").unwrap().about.modules[0];
    let payload = Payload::parse(module.payload.as_ref().unwrap(), &Limits::DEFAULT).unwrap();
    let dims: Vec<Vec<u32>> =
        payload.values().iter().map(|value| value.tensor().unwrap().dims.as_ref().unwrap().iter().collect()).collect();
    assert_eq!(dims, [vec![7, 2, 4], vec![7, 8], vec![7, 2, 4]]);
    assert!(manager.finish().is_ok());
}

#[test]
fn weights_go_to_the_file_of_their_tag() {
    let mut g = Growing::default();
    let x = g.input(&[1, 4]);
    let y = g.linear(x, &[2, 4], &[1, 2]);
    let mut manager = manager(g.finish(&[y]));
    xnnpack::delegate(&mut manager, &ByName::all("weights".to_owned())).unwrap();
    let built = manager.finish().unwrap();
    let files: Vec<&str> = built.data_files().map(|(tag, _)| tag).collect();
    assert_eq!(files, ["weights"]);
}

#[test]
fn composites_that_no_backend_takes_are_written_out() {
    let mut g = Growing::default();
    let (x, w) = (g.input(&[3, 4]), g.input(&[2, 4]));
    let y = g.call("aten::linear", [("input", x.into()), ("weight", w.into())], &[3, 2]);
    let (manager, explained) = delegated(g.finish(&[y]));
    assert_eq!(explained[0].reason, Some(Reason::NotConstant("weight")));
    let built = manager.emit().unwrap();
    let operators: Vec<_> = built.origins[0].instructions.iter().map(|origin| origin.operator.clone()).collect();
    assert!(operators.iter().all(|name| !name.contains("linear")), "{operators:?}");
}
