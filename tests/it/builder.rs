//! Programs made by the builder, run: what was built is what happens.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use edgepack_builder::bundle::{BundleBuilder, CaseValue};
use edgepack_builder::ptd::{DataFormat, data_file};
use edgepack_builder::pte::{ProgramBuilder, TensorSpec};
use edgepack_builder::trace::{TraceBuilder, TracePlace, TraceValue};
use edgepack_builder::{NamedDataStore, args};
use edgepack_executor::delegate::{Backend, Backends, Delegate, DelegateInit};
use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};
use edgepack_executor::observer::{Event, Observer, Results};
use edgepack_executor::{Method, Options, Output};
use edgepack_format::bundle::{BundleRef, Value, ValueUnion};
use edgepack_format::limits::Limits;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorLayout, TensorView};
use edgepack_format::trace::TraceRef;
use edgepack_loader::{DataFile, NamedDataMap, Program};
use edgepack_tests::built::{Built, programs};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 400, ..ProptestConfig::default() })]

    /// The generator of the fuzz campaigns; its body says what has to hold.
    #[test]
    fn whatever_is_built_verifies_and_comes_back(input in vec(any::<u8>(), 0..160)) {
        edgepack_fuzz::run("builder", &input);
    }
}

fn numbers(output: Output<'_>) -> Vec<f64> {
    match output {
        Output::Tensor(tensor) => match tensor.dtype {
            ScalarType::FLOAT => tensor.as_slice::<f32>().unwrap().iter().map(|x| f64::from(*x)).collect(),
            ScalarType::LONG => tensor.as_slice::<i64>().unwrap().iter().map(|x| *x as f64).collect(),
            other => panic!("{other}"),
        },
        Output::Int(number) => vec![number as f64],
        Output::Double(number) => vec![number],
        Output::Bool(truth) => vec![f64::from(u8::from(truth))],
        other => panic!("{other:?}"),
    }
}

fn load(built: &Built, name: &str) -> Method {
    let program = Program::from_bytes(built.program.to_bytes().unwrap()).unwrap_or_else(|error| panic!("{error}"));
    let mut options = Options::default();
    for (_, file) in built.program.data_files() {
        options.data.push(Arc::new(DataFile::from_bytes(file.to_bytes().unwrap()).unwrap()));
    }
    Method::load(&program, name, &edgepack_kernels::registry(), &options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn built_programs_compute_what_was_meant() {
    for built in programs() {
        let mut methods: HashMap<&str, Method> = HashMap::new();
        for (number, run) in built.runs.iter().enumerate() {
            let method = methods.entry(run.method).or_insert_with(|| load(&built, run.method));
            let views = run
                .inputs
                .iter()
                .map(|(sizes, values)| TensorView::of::<f32>(sizes, bytemuck::cast_slice(values)).unwrap());
            let views: Vec<_> = views.collect();
            let outputs = method.run(&views).unwrap_or_else(|error| panic!("{} run {number}: {error}", built.name));
            let found: Vec<_> = outputs.iter().map(numbers).collect();
            assert_eq!(found, run.outputs, "{} run {number}", built.name);
        }
    }
}

#[test]
fn building_again_gives_the_same_bytes() {
    for (first, second) in programs().iter().zip(programs()) {
        assert_eq!(first.program.to_bytes().unwrap(), second.program.to_bytes().unwrap(), "{}", first.name);
        for ((tag, file), (_, again)) in first.program.data_files().zip(second.program.data_files()) {
            assert_eq!(file.to_bytes().unwrap(), again.to_bytes().unwrap(), "{} {tag}", first.name);
        }
    }
}

#[test]
fn a_bundle_carries_its_cases() {
    let built = programs().swap_remove(0);
    let bytes = built.program.to_bytes().unwrap();
    let runs: Vec<_> = built.runs.iter().filter(|run| run.method == "forward").collect();
    let outputs: Vec<Vec<f32>> = runs.iter().map(|run| run.outputs[0].iter().map(|x| *x as f32).collect()).collect();
    let view = |values| CaseValue::from(TensorView::of::<f32>(&[2, 2], bytemuck::cast_slice(values)).unwrap());
    let mut bundle = BundleBuilder::new(&bytes).unwrap();
    for (run, output) in runs.iter().zip(&outputs) {
        bundle.case("forward", &[view(&run.inputs[0].1)], &[view(output)]).unwrap();
    }
    let bundled = bundle.to_bytes().unwrap();
    let parsed = BundleRef::parse(&bundled, &Limits::DEFAULT).unwrap();
    let program = Program::from_bytes(parsed.program_bytes().to_vec()).unwrap();
    let mut method = Method::load(&program, "forward", &edgepack_kernels::registry(), &Options::default()).unwrap();
    let cases = parsed.cases("forward").unwrap();
    assert_eq!(cases.len(), 2);
    for case in cases.iter().map(Result::unwrap) {
        let bytes = |rows: edgepack_format::row::Rows<'_, Value<'_>>| match rows.get(0).unwrap().val.unwrap() {
            ValueUnion::Tensor(tensor) => tensor.data.unwrap().as_slice().to_vec(),
            other => panic!("{other:?}"),
        };
        let (input, want) = (bytes(case.inputs.unwrap()), bytes(case.expected_outputs.unwrap()));
        let outputs = method.run(&[TensorView::of::<f32>(&[2, 2], &input).unwrap()]).unwrap();
        assert_eq!(outputs.get(0).unwrap().tensor().unwrap().bytes(), want);
    }
}

/// Multiplies by the first byte of the entry its payload names.
struct Named;

struct Scale(f32);

impl Backend for Named {
    fn id(&self) -> &str {
        "Named"
    }
    fn init(&self, cx: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError> {
        let key = std::str::from_utf8(&cx.processed).map_err(|_| KernelError::argument("the key is not text"))?;
        match cx.named_data.data(key) {
            Ok(Some(data)) => Ok(Box::new(Scale(f32::from(data[0])))),
            _ => Err(KernelError::argument("there is no such data")),
        }
    }
}

impl Delegate for Scale {
    fn outputs(&self, count: usize) -> Range<usize> {
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
fn delegates_find_their_data_in_the_program_and_beside_it() {
    for external in [None, Some("beside")] {
        let mut program = ProgramBuilder::new();
        program.named_data("factor", vec![7; 4], 32, external).unwrap();
        let mut forward = program.method("forward");
        let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [2])).unwrap();
        let delegate = forward.delegate("Named", b"factor", &[]).unwrap();
        let y = forward.call_delegate(delegate, args![x], TensorSpec::like(x)).unwrap();
        forward.output(y).unwrap();
        let built = Built { name: "named", program: program.finish().unwrap(), runs: Vec::new() };
        let program = Program::from_bytes(built.program.to_bytes().unwrap()).unwrap();
        let mut options = Options { backends: Backends::new().with(Named), ..Options::default() };
        for (_, file) in built.program.data_files() {
            options.data.push(Arc::new(DataFile::from_bytes(file.to_bytes().unwrap()).unwrap()));
        }
        let mut method = Method::load(&program, "forward", &edgepack_kernels::registry(), &options).unwrap();
        let x = [1.0f32, 2.0];
        let view = TensorView::of::<f32>(&[2], bytemuck::cast_slice(&x)).unwrap();
        let outputs = method.run(&[view]).unwrap();
        assert_eq!(outputs.iter().map(numbers).collect::<Vec<_>>(), [[7.0, 14.0]], "{external:?}");
    }
}

#[test]
fn data_files_of_both_formats_are_read_back() {
    let mut store = NamedDataStore::new();
    store.add("b", vec![1; 48], 64, None).unwrap();
    store.add("a", vec![1; 48], 3, None).unwrap();
    store.add("c", vec![2; 12], 1, None).unwrap();
    for format in [DataFormat::FlatTensor, DataFormat::FlatData] {
        let bytes = data_file(&store, format, 128).unwrap().to_bytes().unwrap();
        let file = DataFile::from_bytes(bytes).unwrap();
        assert_eq!(file.len(), 3);
        for (key, want) in [("a", &[1u8; 48][..]), ("b", &[1; 48]), ("c", &[2; 12])] {
            assert_eq!(&*file.data(key).unwrap().unwrap(), want, "{format:?} {key}");
        }
    }
    let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[3, 4]).unwrap();
    store.add_with_layout("d", vec![1; 48], layout, 1, None).unwrap();
    assert!(data_file(&store, DataFormat::FlatData, 128).is_err());
    assert!(data_file(&store, DataFormat::FlatTensor, 128).is_ok());
}

/// Feeds a trace from what the executor shows.
struct Recorder {
    trace: TraceBuilder,
    clock: u64,
}

impl Observer for Recorder {
    fn started(&mut self) {
        self.trace.block("Execute");
    }
    fn after(&mut self, event: &Event<'_>, results: &Results<'_>) {
        let place = TracePlace::instruction(event.chain as u32, event.instruction as u32);
        for tensor in results.tensors() {
            let layout = TensorLayout::new(tensor.dtype, tensor.sizes, tensor.dim_order).unwrap();
            let view = TensorView::new(layout, tensor.bytes()).unwrap();
            self.trace.value(Some(event.name), place, &TraceValue::Tensor(view), false).unwrap();
        }
        let name = format!("native_call_{}", event.name);
        self.trace.profile(&name, place, self.clock..self.clock + 10, None).unwrap();
        self.clock += 10;
    }
}

#[test]
fn a_run_becomes_a_trace() {
    let built = programs().swap_remove(0);
    let mut method = load(&built, "forward");
    let mut recorder = Recorder { trace: TraceBuilder::new(), clock: 0 };
    let x = [1.0f32; 4];
    let view = TensorView::of::<f32>(&[2, 2], bytemuck::cast_slice(&x)).unwrap();
    method.run_observed(&[view], Some(&mut recorder)).unwrap();
    let trace = recorder.trace.finish().unwrap();
    let parsed = TraceRef::reopen(&trace.etdump).unwrap();
    let block = parsed.blocks().get(0).unwrap();
    assert_eq!(block.events.unwrap().len(), 4);
    let written: Vec<f32> = bytemuck::pod_collect_to_vec(&trace.debug_buffer[64..80]);
    assert_eq!(written, [1.5, -2.5, 3.5, -4.5]);
}
