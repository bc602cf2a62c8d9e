//! Semantics of running a method, on programs assembled for the purpose and operators of our own.

use std::sync::{Arc, Mutex};

use edgepack_executor::delegate::{Backend, Backends, Delegate, DelegateInit};
use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::observer::{Event, Observer, Results};
use edgepack_executor::{Arena, Input, LoadError, Method, Options, Output, RunError};
use edgepack_format::finding::ErrorCode;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorLayout, TensorView};
use edgepack_loader::{AlignedBytes, Bytes, NamedDataMap, Program};
use edgepack_tests::assemble::{Assembly, Spec, float};
use edgepack_tests::operators::registry;

fn open(assembly: &Assembly) -> Program {
    Program::from_bytes(assembly.build()).unwrap_or_else(|error| panic!("{error}"))
}

fn load(assembly: &Assembly) -> Method {
    load_with(assembly, &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn load_with(assembly: &Assembly, options: &Options) -> Result<Method, LoadError> {
    Method::load(&open(assembly), "forward", &registry(), options)
}

fn bytes(values: &[f32]) -> &[u8] {
    bytemuck::cast_slice(values)
}

fn view<'a>(sizes: &[usize], values: &'a [f32]) -> TensorView<'a> {
    TensorView::of::<f32>(sizes, bytes(values)).unwrap()
}

fn floats(output: Option<Output<'_>>) -> Vec<f32> {
    match output {
        Some(Output::Tensor(tensor)) => tensor.as_slice::<f32>().unwrap().to_vec(),
        other => panic!("no tensor: {other:?}"),
    }
}

/// `out = reverse(x + constant)`.
fn addition() -> Assembly {
    let mut a = Assembly::new();
    let x = a.planned(float(&[2]));
    let c = a.constant(float(&[2]), bytes(&[10.0, 20.0]));
    let y = a.planned(float(&[2]));
    a.call("t::add.out", &[x, c, y, y]);
    a.inputs(&[x]);
    a.outputs(&[y]);
    a
}

#[test]
fn constants_and_planned_memory() {
    let mut method = load(&addition());
    let outputs = method.run(&[view(&[2], &[1.0, 2.0])]).unwrap();
    assert_eq!(floats(outputs.get(0)), [22.0, 11.0]);
}

#[test]
fn inputs_are_checked_with_both_sides_named() {
    let mut method = load(&addition());
    let refused = |method: &mut Method, input: Input<'_>| match method.set_input(0, input).unwrap_err() {
        RunError::Input { index: 0, code, message } => (code, message),
        other => panic!("{other}"),
    };
    let tensor = |dtype, sizes, data| {
        Input::Tensor(TensorView::new(TensorLayout::contiguous(dtype, sizes).unwrap(), data).unwrap())
    };
    let cases = [
        (Input::Int(1), ErrorCode::InvalidArgument, "wants f32[2], got an integer"),
        (tensor(ScalarType::INT, &[2], &[0; 8]), ErrorCode::InvalidArgument, "wants f32[2], got i32[2]"),
        (tensor(ScalarType::FLOAT, &[3], &[0; 12]), ErrorCode::NotSupported, "wants f32[2], got f32[3]"),
    ];
    for (input, code, message) in cases {
        assert_eq!(refused(&mut method, input), (code, message.to_owned()));
    }
    assert!(matches!(method.execute(), Err(RunError::Input { index: 0, code: ErrorCode::InvalidArgument, .. })));
    assert!(matches!(method.run::<Input<'_>>(&[]), Err(RunError::Input { .. })));
}

#[test]
fn traced_numbers_text_and_none_pass_through() {
    let mut a = Assembly::new();
    let values = [a.int(7), a.bool(true), a.double(0.5), a.text("floor"), a.null()];
    a.inputs(&values);
    a.outputs(&values);
    let mut method = load(&a);
    let inputs = [Input::Int(7), Input::Bool(true), Input::Double(0.50001), Input::Text("floor"), Input::Null];
    let outputs = method.run(&inputs).unwrap();
    let shown: Vec<String> = outputs.iter().map(|output| format!("{output:?}")).collect();
    assert_eq!(shown, ["Int(7)", "Bool(true)", "Double(0.5)", "Text(\"floor\")", "Null"]);
    for (index, other) in
        [Input::Int(8), Input::Bool(false), Input::Double(0.6), Input::Text("trunc")].iter().enumerate()
    {
        let error = method.set_input(index, other).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument, "{error}");
    }
}

#[test]
fn dynamic_inputs_stay_within_every_bound() {
    let mut a = Assembly::new();
    let x = a.planned(float(&[4, 3]).dynamic());
    let y = a.planned(float(&[4, 3]).dynamic());
    a.call("t::add.out", &[x, x, y, y]);
    a.inputs(&[x]);
    a.outputs(&[y]);
    let mut method = load(&a);
    for rows in [1usize, 4, 2, 0] {
        let values: Vec<f32> = (0..rows * 3).map(|i| i as f32).collect();
        let want: Vec<f32> = values.iter().rev().map(|x| 2.0 * x).collect();
        let outputs = method.run(&[view(&[rows, 3], &values)]).unwrap();
        assert_eq!(outputs.get(0).unwrap().tensor().unwrap().sizes, [rows, 3]);
        assert_eq!(floats(outputs.get(0)), want);
    }
    // Twelve elements fit, six columns do not.
    let error = method.run(&[view(&[2, 6], &[0.0; 12])]).err().unwrap();
    assert_eq!(error.code(), ErrorCode::NotSupported);
}

#[test]
fn another_dim_order_is_refused_unless_it_is_the_same_memory() {
    let mut a = Assembly::new();
    let x = a.planned(float(&[2, 3]).dim_order(&[1, 0]));
    let one = a.planned(float(&[1, 3]).dim_order(&[1, 0]));
    a.inputs(&[x, one]);
    a.outputs(&[x]);
    let mut method = load(&a);
    assert_eq!(method.set_input(0, view(&[2, 3], &[0.0; 6])).unwrap_err().code(), ErrorCode::InvalidArgument);
    let layout = TensorLayout::new(ScalarType::FLOAT, &[2, 3], &[1, 0]).unwrap();
    method.set_input(0, TensorView::new(layout, bytes(&[0.0; 6])).unwrap()).unwrap();
    method.set_input(1, view(&[1, 3], &[0.0; 3])).unwrap();
}

#[test]
fn each_mutable_segment_is_honoured_and_reset_restores_it() {
    let mut a = Assembly::new();
    let first = a.mutable(float(&[2]), 0, bytes(&[1.0, 2.0]));
    let second = a.mutable(float(&[2]), 1, bytes(&[30.0, 40.0]));
    let fresh = a.planned(float(&[2]));
    a.call("t::add.out", &[first, second, fresh, fresh]);
    a.mov(fresh, first);
    a.outputs(&[fresh]);
    let mut method = load(&a);
    let none: [Input<'_>; 0] = [];
    assert_eq!(floats(method.run(&none).unwrap().get(0)), [42.0, 31.0]);
    assert_eq!(floats(method.run(&none).unwrap().get(0)), [71.0, 72.0]);
    method.reset().unwrap();
    assert_eq!(floats(method.run(&none).unwrap().get(0)), [42.0, 31.0]);
}

#[test]
fn lists_see_what_instructions_change() {
    let mut a = Assembly::new();
    let (n, one) = (a.int(5), a.int(1));
    let list = a.ints(&[n, one]);
    let x = a.planned(float(&[2]));
    let y = a.planned(float(&[2]));
    a.call("t::fill_ints.out", &[list, x, x]);
    a.call("t::inc", &[n, n]);
    a.call("t::fill_ints.out", &[list, y, y]);
    a.outputs(&[x, y]);
    let mut method = load(&a);
    let none: [Input<'_>; 0] = [];
    let outputs = method.run(&none).unwrap();
    assert_eq!((floats(outputs.get(0)), floats(outputs.get(1))), (vec![5.0, 1.0], vec![6.0, 1.0]));
    method.reset().unwrap();
    assert_eq!(floats(method.run(&none).unwrap().get(0)), [5.0, 1.0]);
}

#[test]
fn a_computed_number_may_change_its_kind_but_not_inside_a_list() {
    let mut a = Assembly::new();
    let n = a.int(5);
    let placeholder = a.int(0);
    a.call("t::half", &[n, placeholder]);
    a.outputs(&[placeholder]);
    let none: [Input<'_>; 0] = [];
    assert!(matches!(load(&a).run(&none).unwrap().get(0), Some(Output::Double(2.5))));

    let list = a.ints(&[placeholder]);
    let x = a.planned(float(&[1]));
    a.call("t::fill_ints.out", &[list, x, x]);
    let error = load(&a).run(&none).err().unwrap();
    assert_eq!(error.code(), ErrorCode::InvalidType, "{error}");
}

#[test]
fn loops_run_until_their_condition() {
    let mut a = Assembly::new();
    let (i, limit, always) = (a.int(0), a.int(1000), a.bool(false));
    let less = a.bool(true);
    let x = a.planned(float(&[1]));
    let one = a.constant(float(&[1]), bytes(&[1.0]));
    let head = a.here();
    a.call("t::lt", &[i, limit, less]);
    let exit = a.here() + 4;
    a.jump_false(less, exit);
    a.call("t::add.out", &[x, one, x, x]);
    a.call("t::inc", &[i, i]);
    a.jump_false(always, head);
    a.outputs(&[x, i]);
    let mut method = load(&a);
    let none: [Input<'_>; 0] = [];
    let outputs = method.run(&none).unwrap();
    assert_eq!(floats(outputs.get(0)), [1000.0]);
    assert!(matches!(outputs.get(1), Some(Output::Int(1000))));
}

#[test]
fn an_endless_loop_ends_at_the_budget() {
    let mut a = Assembly::new();
    let never = a.bool(false);
    a.jump_false(never, 0);
    let mut method = load(&a);
    let none: [Input<'_>; 0] = [];
    let error = method.run(&none).err().unwrap();
    assert!(matches!(error, RunError::Budget { limit: 10_000_000, .. }), "{error}");
    assert_eq!(error.code(), ErrorCode::InvalidProgram);
}

#[test]
fn a_bool_tensor_is_false_if_any_element_is() {
    for (elements, taken) in [([1u8, 1], 1.0), ([1, 0], 0.0)] {
        let mut a = Assembly::new();
        let condition = a.constant(Spec::new(ScalarType::BOOL, &[2]), &elements);
        let x = a.planned(float(&[1]));
        let one = a.constant(float(&[1]), bytes(&[1.0]));
        a.jump_false(condition, 2);
        a.call("t::add.out", &[x, one, x, x]);
        a.outputs(&[x]);
        let none: [Input<'_>; 0] = [];
        assert_eq!(floats(load(&a).run(&none).unwrap().get(0)), [taken]);
    }
}

#[test]
fn moving_a_tensor_copies_its_bytes_and_sizes() {
    let mut a = Assembly::new();
    let x = a.planned(float(&[3]).dynamic());
    let y = a.planned(float(&[3]).dynamic());
    a.mov(x, y);
    a.call("t::add.out", &[y, y, x, x]);
    a.inputs(&[x]);
    a.outputs(&[y, x]);
    let mut method = load(&a);
    let outputs = method.run(&[view(&[2], &[1.0, 2.0])]).unwrap();
    assert_eq!((floats(outputs.get(0)), floats(outputs.get(1))), (vec![1.0, 2.0], vec![4.0, 2.0]));
}

#[test]
fn moves_between_kinds_are_refused_at_load() {
    let mut a = Assembly::new();
    let x = a.planned(float(&[1]));
    let n = a.int(1);
    a.mov(n, x);
    assert_eq!(load_with(&a, &Options::default()).err().unwrap().code(), ErrorCode::InvalidProgram);
}

#[test]
fn reading_what_was_freed_is_an_error_until_it_is_written() {
    let mut a = Assembly::new();
    let x = a.planned(float(&[1]));
    let y = a.planned(float(&[1]));
    a.free(x);
    a.call("t::add.out", &[y, y, x, x]);
    a.call("t::add.out", &[x, y, y, y]);
    a.outputs(&[y]);
    let none: [Input<'_>; 0] = [];
    let mut method = load(&a);
    method.run(&none).unwrap();
    method.run(&none).unwrap();

    a.free(x);
    a.call("t::add.out", &[x, y, y, y]);
    let error = load(&a).run(&none).err().unwrap();
    assert_eq!(error.code(), ErrorCode::InvalidState, "{error}");
}

#[test]
fn chains_run_in_order() {
    let mut a = Assembly::new();
    let x = a.planned(float(&[1]));
    let one = a.constant(float(&[1]), bytes(&[1.0]));
    let never = a.bool(false);
    a.chain();
    a.call("t::add.out", &[x, one, x, x]);
    a.jump_false(never, 3);
    a.call("t::add.out", &[x, one, x, x]);
    a.chain();
    a.call("t::add.out", &[x, x, x, x]);
    a.outputs(&[x]);
    let none: [Input<'_>; 0] = [];
    assert_eq!(floats(load(&a).run(&none).unwrap().get(0)), [2.0]);
}

#[test]
fn overlapping_inputs_are_read_from_a_copy() {
    // The output covers the second half of one input and the first half of the other.
    let mut a = Assembly::new();
    let x = a.planned_at(float(&[4]), 0);
    let y = a.planned_at(float(&[4]), 16);
    let out = a.planned_at(float(&[4]), 8);
    a.call("t::add.out", &[x, y, out, out]);
    a.inputs(&[x, y]);
    a.outputs(&[out]);
    let mut method = load(&a);
    let outputs = method.run(&[view(&[4], &[1., 2., 3., 4.]), view(&[4], &[10., 20., 30., 40.])]).unwrap();
    assert_eq!(floats(outputs.get(0)), [44., 33., 22., 11.]);
}

#[test]
fn kernels_that_allow_it_work_in_place() {
    let mut a = Assembly::new();
    let x = a.planned_at(float(&[2]), 0);
    let same = a.planned_at(float(&[2]), 0);
    let shifted = a.planned_at(float(&[2]), 4);
    a.call("t::neg.out", &[x, same, same]);
    a.call("t::neg.out", &[same, shifted, shifted]);
    a.inputs(&[x]);
    a.outputs(&[shifted]);
    assert_eq!(floats(load(&a).run(&[view(&[2], &[1., 2.])]).unwrap().get(0)), [1., 2.]);
}

#[test]
fn outputs_that_overlap_or_are_constants_are_refused() {
    let mut a = Assembly::new();
    let x = a.planned_at(float(&[2]), 64);
    let (u, v) = (a.planned_at(float(&[2]), 0), a.planned_at(float(&[2]), 4));
    let both = a.tensors(&[u, v]);
    a.call("t::two.out", &[x, u, v, both]);
    let error = load_with(&a, &Options::default()).err().unwrap();
    assert!(error.to_string().contains("two outputs share memory"), "{error}");

    let mut a = Assembly::new();
    let x = a.planned(float(&[1]));
    let c = a.constant(float(&[1]), bytes(&[1.0]));
    a.call("t::add.out", &[x, x, c, c]);
    let error = load_with(&a, &Options::default()).err().unwrap();
    assert!(error.to_string().contains("an output is a constant"), "{error}");
}

#[test]
fn everything_missing_is_named_at_once() {
    let mut a = Assembly::new();
    let x = a.planned(float(&[1]));
    a.call("no::such.out", &[x, x]);
    a.call("t::add.out", &[x, x, x, x]);
    a.call("nor::this", &[x]);
    a.delegate("SomeBackend", b"", &[x]);
    a.call("no::such.out", &[x, x]);
    match load_with(&a, &Options::default()) {
        Err(LoadError::Missing(missing)) => {
            assert_eq!(missing.operators, ["no::such.out", "nor::this"]);
            assert_eq!(missing.backends, ["SomeBackend"]);
        }
        other => panic!("{:?}", other.err()),
    }
}

#[test]
fn calls_that_do_not_fit_their_schema_are_refused_at_load() {
    type Build = fn(&mut Assembly) -> Vec<i32>;
    let cases: [(Build, &str); 3] = [
        (|a| vec![a.planned(float(&[1])); 3], "a call with 3 values, the operator takes 4"),
        (
            |a| {
                let (x, n) = (a.planned(float(&[1])), a.int(1));
                vec![x, n, x, x]
            },
            "`b` is %1, a Int",
        ),
        (
            |a| {
                let x = a.planned(float(&[1]));
                let list = a.tensors(&[x]);
                vec![x, x, list, list]
            },
            "`out` is %1, a TensorList",
        ),
    ];
    for (build, message) in cases {
        let mut a = Assembly::new();
        let args = build(&mut a);
        a.call("t::add.out", &args);
        let error = load_with(&a, &Options::default()).err().unwrap().to_string();
        assert!(error.contains(message), "{error}");
        assert!(error.contains("forward chains[0].instructions[0] (t::add.out)"), "{error}");
    }
}

#[test]
fn unplanned_inputs_are_read_where_they_are() {
    let mut a = Assembly::new();
    let x = a.unplanned(float(&[2]));
    let y = a.unplanned(float(&[2]));
    a.call("t::add.out", &[x, x, y, y]);
    a.inputs(&[x]);
    a.outputs(&[y]);
    let mut method = load(&a);
    for values in [[1.0f32, 2.0], [3.0, 4.0]] {
        let outputs = method.run(&[view(&[2], &values)]).unwrap();
        assert_eq!(floats(outputs.get(0)), [2.0 * values[1], 2.0 * values[0]]);
    }
    // An input that was borrowed for a call is not retained.
    assert!(matches!(method.execute(), Err(RunError::Input { index: 0, .. })));
    method.set_input(0, view(&[2], &[5.0, 6.0])).unwrap();
    method.execute().unwrap();
    assert_eq!(floats(method.outputs().get(0)), [12.0, 10.0]);
    // Unaligned bytes are copied.
    let mut raw = [0u8; 9];
    raw[1..].copy_from_slice(bytes(&[7.0, 8.0]));
    let unaligned = TensorView::new(TensorLayout::contiguous(ScalarType::FLOAT, &[2]).unwrap(), &raw[1..]).unwrap();
    assert_eq!(floats(method.run(&[unaligned]).unwrap().get(0)), [16.0, 14.0]);
}

#[test]
fn an_unplanned_input_that_is_also_an_output_is_kept() {
    let mut a = Assembly::new();
    let x = a.unplanned(float(&[1]));
    a.inputs(&[x]);
    a.outputs(&[x]);
    let mut method = load(&a);
    let values = vec![3.0f32];
    method.run(&[view(&[1], &values)]).unwrap();
    drop(values);
    assert_eq!(floats(method.outputs().get(0)), [3.0]);
}

struct Weights(Vec<f32>);

impl NamedDataMap for Weights {
    fn data(&self, key: &str) -> Result<Option<Bytes>, edgepack_loader::Error> {
        Ok((key == "w").then(|| bytes(&self.0).to_vec().into()))
    }
    fn layout(&self, key: &str) -> Result<Option<TensorLayout>, edgepack_loader::Error> {
        Ok((key == "w").then(|| TensorLayout::contiguous(ScalarType::FLOAT, &[2]).unwrap()))
    }
    fn len(&self) -> usize {
        1
    }
    fn key(&self, index: usize) -> Option<&str> {
        (index == 0).then_some("w")
    }
    fn contains(&self, key: &str) -> bool {
        key == "w"
    }
}

/// Named data with one range of bytes under every key of its list.
struct OneRange(Bytes, &'static [&'static str]);

impl NamedDataMap for OneRange {
    fn data(&self, key: &str) -> Result<Option<Bytes>, edgepack_loader::Error> {
        Ok(self.contains(key).then(|| self.0.clone()))
    }
    fn layout(&self, key: &str) -> Result<Option<TensorLayout>, edgepack_loader::Error> {
        Ok(self.contains(key).then(|| TensorLayout::contiguous(ScalarType::FLOAT, &[2]).unwrap()))
    }
    fn len(&self) -> usize {
        self.1.len()
    }
    fn key(&self, index: usize) -> Option<&str> {
        self.1.get(index).copied()
    }
    fn contains(&self, key: &str) -> bool {
        self.1.contains(&key)
    }
}

#[test]
fn constants_over_one_misaligned_range_share_a_copy() {
    let whole = Bytes::from(AlignedBytes::copy_of(&[&[0; 2], bytes(&[1.0, 2.0])].concat()).unwrap());
    let range = whole.slice(2..10).unwrap();
    let private = |keys: &'static [&'static str]| {
        let mut a = Assembly::new();
        let mut x = a.planned(float(&[2]));
        a.inputs(&[x]);
        for key in keys {
            let (c, y) = (a.external(float(&[2]), key), a.planned(float(&[2])));
            a.call("t::add.out", &[x, c, y, y]);
            x = y;
        }
        a.outputs(&[x]);
        let options = Options { data: vec![Arc::new(OneRange(range.clone(), keys))], ..Options::default() };
        let mut method = load_with(&a, &options).unwrap();
        let result = floats(method.run(&[view(&[2], &[10.0, 20.0])]).unwrap().get(0));
        (method.memory_bytes().private, result)
    };
    let (one, two, three) = (private(&["a"]), private(&["a", "b"]), private(&["a", "b", "c"]));
    assert_eq!((one.1, two.1), (vec![22.0, 11.0], vec![13.0, 23.0]));
    assert!(one.0 >= 8 && one.0 == two.0 && one.0 == three.0, "{} {} {}", one.0, two.0, three.0);
}

#[test]
fn external_constants_come_from_any_map_and_must_match() {
    let external = |spec: Spec, name| {
        let mut a = Assembly::new();
        let w = a.external(spec, name);
        let y = a.planned(float(&[2]));
        a.call("t::add.out", &[w, w, y, y]);
        a.outputs(&[y]);
        a
    };
    let options = |values: &[f32]| Options { data: vec![Arc::new(Weights(values.to_vec()))], ..Options::default() };
    let none: [Input<'_>; 0] = [];

    let mut method = load_with(&external(float(&[2]), "w"), &options(&[1.0, 2.0])).unwrap();
    assert_eq!(floats(method.run(&none).unwrap().get(0)), [4.0, 2.0]);

    let code = |assembly, options| load_with(&assembly, &options).err().unwrap().code();
    assert_eq!(code(external(float(&[2]), "w"), Options::default()), ErrorCode::InvalidState);
    assert_eq!(code(external(float(&[2]), "v"), options(&[1.0, 2.0])), ErrorCode::NotFound);
    assert_eq!(code(external(float(&[2, 1]), "w"), options(&[1.0, 2.0])), ErrorCode::InvalidExternalData);
    assert_eq!(
        code(external(Spec::new(ScalarType::INT, &[2]), "w"), options(&[1.0, 2.0])),
        ErrorCode::InvalidExternalData
    );
    // Fewer bytes than the layout says.
    assert_eq!(code(external(float(&[2]), "w"), options(&[1.0])), ErrorCode::InvalidExternalData);
    // One key in two maps.
    let twice =
        Options { data: vec![Arc::new(Weights(vec![0.0; 2])), Arc::new(Weights(vec![0.0; 2]))], ..Options::default() };
    assert_eq!(code(external(float(&[2]), "w"), twice), ErrorCode::InvalidArgument);
}

/// Scales its one input by its payload's first byte.
struct Scaler;

struct Scale(f32);

impl Backend for Scaler {
    fn id(&self) -> &str {
        "Scaler"
    }
    fn init(&self, cx: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError> {
        match cx.processed.first() {
            Some(&factor) => Ok(Box::new(Scale(factor.into()))),
            None => Err(KernelError::argument("the payload is empty")),
        }
    }
}

impl Delegate for Scale {
    fn outputs(&self, count: usize) -> std::ops::Range<usize> {
        1..count
    }
    fn prepare(&self, _: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        let factor = self.0;
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let views = cx.views();
            for (out, x) in views.out(1)?.as_mut_slice::<f32>()?.iter_mut().zip(views.tensor(0)?.as_slice::<f32>()?) {
                *out = x * factor;
            }
            Ok(())
        }))
    }
}

#[test]
fn delegates_are_made_and_called() {
    let with = |payload: &[u8]| {
        let mut a = Assembly::new();
        let (x, y) = (a.planned(float(&[2])), a.planned(float(&[2])));
        a.delegate("Scaler", payload, &[x, y]);
        a.inputs(&[x]);
        a.outputs(&[y]);
        a
    };
    let options = Options { backends: Backends::new().with(Scaler), ..Options::default() };
    let mut method = load_with(&with(&[3]), &options).unwrap();
    assert_eq!(floats(method.run(&[view(&[2], &[1.0, 2.0])]).unwrap().get(0)), [3.0, 6.0]);

    let error = load_with(&with(&[]), &options).err().unwrap();
    assert_eq!(error.to_string(), "delegates[0] (Scaler): the payload is empty (InvalidArgument)");
}

#[test]
fn methods_can_share_a_planned_memory_but_not_at_the_same_time() {
    let mut a = Assembly::new();
    let x = a.planned(float(&[1]));
    let one = a.constant(float(&[1]), bytes(&[1.0]));
    a.call("t::add.out", &[x, one, x, x]);
    a.outputs(&[x]);
    let options = Options { arenas: vec![(1, Arena::new(64).unwrap())], ..Options::default() };
    let (mut first, mut second) = (load_with(&a, &options).unwrap(), load_with(&a, &options).unwrap());
    let none: [Input<'_>; 0] = [];
    first.run(&none).unwrap();
    assert_eq!(floats(second.run(&none).unwrap().get(0)), [2.0]);
    let small = Options { arenas: vec![(1, Arena::new(2).unwrap())], ..Options::default() };
    assert_eq!(load_with(&a, &small).err().unwrap().code(), ErrorCode::MemoryAllocationFailed);
}

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Observer for &Log {
    fn before(&mut self, event: &Event<'_>) {
        self.0.lock().unwrap().push(format!("{}:{} {}", event.chain, event.instruction, event.name));
    }
    fn after(&mut self, _: &Event<'_>, results: &Results<'_>) {
        let sizes: Vec<String> = results.tensors().iter().map(|tensor| format!("{:?}", tensor.sizes)).collect();
        self.0.lock().unwrap().push(sizes.join(" "));
    }
}

#[test]
fn an_observer_sees_every_call_and_its_results() {
    let mut a = addition();
    let (z, w) = (a.planned(float(&[2])), a.planned(float(&[2])));
    let both = a.tensors(&[z, w]);
    a.call("t::two.out", &[2, z, w, both]);
    let log = Log::default();
    load(&a).run_observed(&[view(&[2], &[0.0; 2])], Some(&mut &log)).unwrap();
    assert_eq!(*log.0.lock().unwrap(), ["0:0 t::add.out", "[2]", "0:1 t::two.out", "[2] [2]"]);
}

#[test]
fn a_method_can_be_sent_to_another_thread() {
    let mut method = load(&addition());
    let sum = std::thread::spawn(move || {
        let outputs = method.run(&[view(&[2], &[1.0, 2.0])]).unwrap();
        floats(outputs.get(0)).iter().sum::<f32>()
    });
    assert_eq!(sum.join().unwrap(), 33.0);
}

#[test]
fn scratch_beyond_any_memory_is_refused() {
    static WANTS: Kernel = Kernel {
        name: "t::wants.out",
        schema: "(Tensor a, int bytes, *, Tensor(a!) out) -> Tensor(a!)",
        alias: Alias::Disjoint,
        is_pure: false,
        prepare: |args| {
            args.scratch(args.int(1)?.unwrap_or(0) as usize);
            Ok(Box::new(|_: &mut KernelContext<'_>| Ok(())) as Box<dyn Run>)
        },
    };
    let registry = registry().with_kernels(&[&WANTS]);
    // As bytes: the ends of what a number holds, which rounding up to the alignment of blocks takes to zero.
    for wanted in [-1, -2, -63, -64, -65, i64::MAX, i64::MAX - 63, i64::MIN] {
        let mut a = Assembly::new();
        let (x, y) = (a.planned(float(&[2])), a.planned(float(&[2])));
        let bytes = a.int(wanted);
        a.call("t::wants.out", &[x, bytes, y, y]);
        a.inputs(&[x]);
        a.outputs(&[y]);
        match Method::load(&open(&a), "forward", &registry, &Options::default()) {
            Err(error) => assert!(error.to_string().contains("bytes of scratch memory"), "{error}"),
            Ok(_) => panic!("{wanted} bytes of scratch memory were there"),
        }
    }
}
