//! Options of exporters beyond the program: each option of lowering, on programs of the corpus.

use std::sync::Arc;

use edgepack_builder::pte::{Arg, BuiltProgram};
use edgepack_exir::Error;
use edgepack_exir::archive::{Archive, Storage, Weight};
use edgepack_exir::dtype::Table;
use edgepack_exir::graph::{Dialect, ExportedProgram, Graph, TensorMeta};
use edgepack_exir::lower::{Alignments, ByName, InitialState, MethodOrigins, Options, ProgramManager};
use edgepack_format::extent::FileExtent;
use edgepack_format::limits::Limits;
use edgepack_format::pte::{KernelTypes, ProgramRef, Tensor};
use edgepack_format::scalar::ScalarType;

fn corpus(name: &str) -> ExportedProgram<'static> {
    let path = format!("{}/../tests/data/corpus/pt2/{name}", env!("CARGO_MANIFEST_DIR"));
    Archive::open(path).unwrap().program().unwrap()
}

fn emit(
    program: ExportedProgram<'static>,
    options: &Options,
) -> Result<(BuiltProgram<'static>, Vec<MethodOrigins>), Error> {
    let mut manager = ProgramManager::new(options.clone());
    manager.add("forward", program)?;
    let lowered = manager.emit()?;
    Ok((lowered.program, lowered.origins))
}

/// Lowers a program of the corpus, and looks at what was written, which is valid.
fn look<T>(name: &str, options: &Options, see: impl FnOnce(&ProgramRef<'_>) -> T) -> T {
    let bytes = emit(corpus(name), options).unwrap().0.to_bytes().unwrap();
    let verdict = edgepack_format::pte::verify::verify_all(&bytes, FileExtent::of(&bytes), &Limits::DEFAULT);
    assert!(!verdict.findings.has_errors(), "{}", verdict.findings);
    see(&verdict.program.unwrap())
}

/// The memory and offset of each tensor of the first method, by whether it is an input, an output, or else.
fn places(program: &ProgramRef<'_>) -> [Vec<Option<(u32, u32)>>; 3] {
    let plan = program.plans().iter().next().unwrap().unwrap();
    let list = |list: &Option<edgepack_format::row::Scalars<'_, i32>>| -> Vec<i32> {
        list.iter().flat_map(|list| list.iter()).collect()
    };
    let (inputs, outputs) = (list(&plan.inputs), list(&plan.outputs));
    let mut found = [const { Vec::new() }; 3];
    for (index, value) in (0i32..).zip(plan.values.as_ref().unwrap().iter()) {
        let Some(KernelTypes::Tensor(Tensor { data_buffer_idx: 0, allocation_info, extra_tensor_info: None, .. })) =
            value.unwrap().val
        else {
            continue;
        };
        let place = if inputs.contains(&index) { 0 } else { 1 + usize::from(!outputs.contains(&index)) };
        found[place].push(allocation_info.map(|place| (place.memory_id, place.memory_offset_low)));
    }
    found
}

fn operators(program: &ProgramRef<'_>) -> Vec<String> {
    let plan = program.plans().iter().next().unwrap().unwrap();
    let operators = plan.operators.as_ref().unwrap().iter();
    operators.map(|row| row.unwrap().name.as_deref().unwrap().to_owned()).collect()
}

#[test]
fn each_weight_goes_to_the_file_of_its_name() {
    let tag = |name: &str| match name {
        "lin.weight" => Some("a".to_owned()),
        "lin.bias" => Some("b".to_owned()),
        _ => None,
    };
    let files = |external_weights, like_reference| {
        let options = Options { external_weights, like_reference, ..Options::default() };
        let (built, _) = emit(corpus("cond/model.pt2"), &options).unwrap();
        built.data_files().map(|(tag, _)| tag.to_owned()).collect::<Vec<_>>()
    };
    // Transposed while it is lowered, the weight still goes where it is asked to.
    for like_reference in [false, true] {
        assert_eq!(files(ByName::new(tag), like_reference), ["a", "b"]);
    }
    assert_eq!(files(ByName::new(move |name| tag(name).filter(|tag| tag == "b")), false), ["b"]);
    assert_eq!(files(ByName::all("w".to_owned()), false), ["w"]);
    assert!(files(ByName::default(), false).is_empty());
}

#[test]
fn constant_methods_give_their_values() {
    let mut options = Options::default();
    options.constant_methods.push(("get_max_seq_len".to_owned(), vec![Arg::Int(128)]));
    options.constant_methods.push(("get_eos_ids".to_owned(), vec![Arg::Int(1), Arg::Double(0.5), Arg::Bool(true)]));
    let outputs: Vec<(String, usize)> = look("add/model.pt2", &options, |program| {
        let plans = program.plans();
        plans
            .iter()
            .map(|plan| plan.unwrap())
            .map(|plan| (plan.name.unwrap().to_string(), plan.outputs.unwrap().iter().count()))
            .collect()
    });
    let want = [("forward", 1), ("get_eos_ids", 3), ("get_max_seq_len", 1)];
    let mut have: Vec<(&str, usize)> = outputs.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    have.sort_unstable();
    assert_eq!(have, want);
    options.constant_methods.push(("forward".to_owned(), vec![]));
    let error = emit(corpus("add/model.pt2"), &options).map(drop).unwrap_err();
    assert!(error.to_string().contains("forward"), "{error}");
}

#[test]
fn every_instruction_says_where_it_comes_from() {
    for name in ["kv_cache/model_raw.pt2", "cond/model.pt2", "map_scan/model.pt2", "while_loop/model_raw.pt2"] {
        let (_, origins) = emit(corpus(name), &Options::default()).unwrap();
        let [MethodOrigins { method, instructions }] = origins.as_slice() else { panic!("{origins:?}") };
        assert_eq!(method, "forward");
        for (index, origin) in instructions.iter().enumerate() {
            assert_eq!(origin.index, index);
            assert!(!origin.operator.is_empty());
            let written_back = origin.node.is_none();
            assert!(written_back || !origin.from.is_empty(), "{name}: {origin:?}");
            assert_eq!(origin.from.len(), origin.debug_handles.len());
        }
        if name == "kv_cache/model_raw.pt2" {
            let matmul = instructions.iter().find(|origin| origin.operator == "aten::bmm.out").unwrap();
            assert!(matmul.from == ["matmul"] && matmul.debug_handles == [18], "{matmul:?}");
            let last = instructions.last().unwrap();
            assert!(last.node.is_none() && last.operator.starts_with("aten::copy_"), "{last:?}");
        }
        if name == "cond/model.pt2" {
            let from = |node: &str| instructions.iter().filter(|origin| origin.from == [node]).count();
            assert!(from("cond") >= 2 && from("relu") == 1 && from("mul") == 1, "{instructions:#?}");
        }
    }
}

#[test]
fn instructions_have_the_stack_traces_of_their_nodes() {
    let frames = |stack_traces| {
        let options = Options { stack_traces, ..Options::default() };
        look("kv_cache/model_raw.pt2", &options, |program| {
            let plan = program.plans().iter().next().unwrap().unwrap();
            let chain = plan.chains.as_ref().unwrap().iter().next().unwrap().unwrap();
            let lists = chain.stacktrace.iter().flat_map(|rows| rows.iter());
            let lines = |list: edgepack_format::pte::FrameList<'_>| -> Vec<String> {
                let frames = list.items.iter().flat_map(|rows| rows.iter()).map(|frame| frame.unwrap());
                frames.map(|frame| format!("{}:{}", frame.filename.unwrap(), frame.lineno)).collect()
            };
            lists.map(|list| lines(list.unwrap())).collect::<Vec<_>>()
        })
    };
    assert!(frames(false).is_empty());
    let found = frames(true);
    assert!(found.iter().filter(|lines| !lines.is_empty()).count() > 10);
    assert!(
        found.contains(&vec!["models.py:210".to_owned(), "torch/nn/modules/linear.py:134".to_owned()]),
        "{found:?}"
    );
    // What writes state back comes from no line.
    assert_eq!(found.last().unwrap(), &Vec::<String>::new());
}

#[test]
fn inputs_and_outputs_may_be_left_to_the_caller() {
    for name in ["cond/model.pt2", "dyn_batch/model.pt2", "kv_cache/model_raw.pt2"] {
        for (plan_inputs, plan_outputs) in [(false, true), (true, false), (false, false)] {
            let options = Options { plan_inputs, plan_outputs, ..Options::default() };
            let [inputs, outputs, others] = look(name, &options, places);
            assert!(inputs.iter().all(|place| place.is_some() == plan_inputs), "{name}: {inputs:?}");
            assert!(outputs.iter().all(|place| place.is_some() == plan_outputs), "{name}: {outputs:?}");
            assert!(others.iter().all(Option::is_some), "{name}: {others:?}");
        }
    }
}

#[test]
fn parts_of_the_file_are_aligned_as_asked() {
    let alignments = Alignments { segment: Some(4096), tensor: Some(64), delegate: Some(32), memory: Some(256) };
    let options = Options { alignments, like_reference: true, ..Options::default() };
    look("cond/model.pt2", &options, |program| {
        let offsets = places(program).into_iter().flatten().flatten().map(|(_, offset)| offset);
        assert!(offsets.clone().count() > 5);
        assert!(offsets.into_iter().all(|offset| offset % 256 == 0));
        let table = &program.program();
        let offsets = table.constant_segment.as_ref().unwrap().offsets.as_ref().unwrap();
        assert!(offsets.iter().all(|offset| offset % 64 == 0));
    });
    let alignments = Alignments { memory: Some(24), ..Alignments::default() };
    let error = emit(corpus("add/model.pt2"), &Options { alignments, ..Options::default() }).map(drop).unwrap_err();
    assert!(error.to_string().contains("24"), "{error}");
}

#[test]
fn values_are_planned_in_the_memory_of_their_name() {
    let pools = ByName::new(|name| match name {
        "x" => Some(2),
        "addmm" => Some(3),
        _ => None,
    });
    let memory = |place: &Option<(u32, u32)>| place.map(|(memory, _)| memory);
    let options = Options { pools: pools.clone(), ..Options::default() };
    let [inputs, outputs, others] = look("cond/model.pt2", &options, places);
    assert_eq!(inputs.iter().map(memory).collect::<Vec<_>>(), [Some(2), Some(1)]);
    assert_eq!(outputs.iter().map(memory).collect::<Vec<_>>(), [Some(3)]);
    assert!(others.iter().all(|place| memory(place) == Some(1)), "{others:?}");
    // What has a place is planned.
    let options = Options { pools, plan_inputs: false, ..Options::default() };
    let [inputs, ..] = look("cond/model.pt2", &options, places);
    assert_eq!(inputs.iter().map(memory).collect::<Vec<_>>(), [Some(2), None]);
}

#[test]
fn a_view_in_another_memory_is_a_copy() {
    let meta = |sizes: &[i64]| {
        TensorMeta::contiguous(ScalarType::FLOAT, &sizes.iter().map(|size| (*size).into()).collect::<Vec<_>>())
    };
    let mut graph = Graph::default();
    let x = graph.add_input("x", meta(&[2, 3]));
    let y = graph.call("aten::relu", [("self", x.into())], meta(&[2, 3]));
    let size = edgepack_exir::graph::Argument::ints([6]);
    let flat = graph.call("aten::view_copy", [("self", y.into()), ("size", size)], meta(&[6]));
    let z = graph.call("aten::neg", [("self", flat.into())], meta(&[6]));
    graph.outputs.push(z.into());
    let instructions = |pool: &'static [(&'static str, u32)]| {
        let pools = ByName::new(|name| pool.iter().find(|(known, _)| *known == name).map(|(_, id)| *id));
        let program = ExportedProgram::from_graph(graph.clone(), Dialect::Aten);
        let (_, origins) = emit(program, &Options { pools, ..Options::default() }).unwrap();
        origins[0].instructions.len()
    };
    assert_eq!(instructions(&[]), 2);
    assert_eq!(instructions(&[("relu", 2)]), 2);
    assert_eq!(instructions(&[("relu", 2), ("view_copy", 2)]), 2);
    assert_eq!(instructions(&[("relu", 2), ("view_copy", 3)]), 3);
}

#[test]
fn element_types_are_held_against_the_table_that_is_given() {
    let table = |types: &str| {
        let text = format!(
            "- func: aten::add.Tensor\n  namespace: edge\n  inherits: aten::add.Tensor\n  type_alias:\n    T0: [{types}]\n  \
             type_constraint:\n  - self: T0\n    other: T0\n    alpha: T0\n    __ret_0: T0\n"
        );
        Options { edge_table: Some(Arc::new(Table::parse(&text).unwrap())), ..Options::default() }
    };
    assert!(emit(corpus("add/model.pt2"), &table("Float, Int")).is_ok());
    let error = emit(corpus("add/model.pt2"), &table("Half")).map(drop).unwrap_err().to_string();
    assert!(error.contains("EXIR-T01") && error.contains("add"), "{error}");
}

#[test]
fn declared_operators_are_lowered() {
    let mut options = Options::default();
    let text = "my::join(Tensor a, Tensor b) -> Tensor gives sizes [a[:-1], a[-1] + b[-1]] as promote a b\n\
                my::join.out(Tensor a, Tensor b, *, Tensor(a!) out) -> Tensor(a!)\n";
    options.operators.declare(text).unwrap();
    let float = |sizes: [i64; 2]| TensorMeta::contiguous(ScalarType::FLOAT, &sizes.map(Into::into));
    let program = |wanted: [i64; 2]| {
        let mut graph = Graph::default();
        let (a, b) = (graph.add_input("a", float([2, 3])), graph.add_input("b", float([2, 4])));
        let y = graph.call("my::join", [("a", a.into()), ("b", b.into())], float(wanted));
        graph.outputs.push(y.into());
        ExportedProgram::from_graph(graph, Dialect::Aten)
    };
    let (_, origins) = emit(program([2, 7]), &options).unwrap();
    assert_eq!(origins[0].instructions[0].operator, "my::join.out");
    let mut manager = ProgramManager::new(options.clone());
    manager.add("forward", program([2, 7])).unwrap();
    assert!(manager.verify().is_empty(), "{}", manager.verify());
    let mut manager = ProgramManager::new(options);
    manager.add("forward", program([2, 8])).unwrap();
    assert!(manager.verify().has_errors());
}

#[test]
fn preserved_operators_stay() {
    let mut options = Options::default();
    let usual = look("kv_cache/model_raw.pt2", &options, operators);
    assert!(!usual.contains(&"aten::linear".to_owned()), "{usual:?}");
    options.operators.preserve("aten::linear").unwrap();
    let kept = look("kv_cache/model_raw.pt2", &options, operators);
    assert!(kept.contains(&"aten::linear".to_owned()) && !kept.contains(&"aten::mm".to_owned()), "{kept:?}");
    for (name, why) in [
        ("aten::batch_norm", "no out variant"),
        ("aten::reshape", "a view"),
        ("aten::relu_", "in place"),
        ("my::op", "not known"),
        ("linear", "namespace::name"),
    ] {
        let error = options.operators.preserve(name).map(drop).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    assert!(options.operators.preserve("aten::silu.default").is_ok() && options.operators.is_preserved("aten::silu"));
}

#[test]
fn state_begins_with_what_was_recorded() {
    let weight = |scalar_type, sizes: &[usize], bytes: Vec<u8>| {
        Weight::contiguous(Storage::owned("recorded", bytes), scalar_type, sizes).unwrap()
    };
    let begin = |name: &str, weight: Weight<'static>| Options {
        initial_state: InitialState::Nothing,
        state: [(name.to_owned(), weight)].into(),
        ..Options::default()
    };
    let lowered = |options: &Options| {
        let (built, _) = emit(corpus("kv_cache/model_raw.pt2"), options)?;
        Ok::<_, Error>(built.to_bytes().unwrap())
    };
    let plain = lowered(&Options { initial_state: InitialState::Nothing, ..Options::default() }).unwrap();
    let seven = 7i32.to_le_bytes().to_vec();
    let bytes =
        lowered(&begin("counter", weight(ScalarType::LONG, &[1], 0x0123_4567_89abi64.to_le_bytes().to_vec()))).unwrap();
    let has = |bytes: &[u8]| bytes.windows(8).any(|window| window == 0x0123_4567_89abi64.to_le_bytes());
    assert!(has(&bytes) && !has(&plain));
    for (options, message) in [
        (begin("counter", weight(ScalarType::INT, &[1], seven)), "the recorded state i32 [1]"),
        (begin("counter", weight(ScalarType::LONG, &[2], vec![0; 16])), "the recorded state i64 [2]"),
        (begin("nothing", weight(ScalarType::LONG, &[1], vec![0; 8])), "those that are: counter, k_cache, v_cache"),
        (begin("wq.weight", weight(ScalarType::FLOAT, &[8, 8], vec![0; 256])), "no buffer of that name is changed"),
    ] {
        let error = lowered(&options).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}
