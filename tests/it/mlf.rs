//! Library packages made here: built, written, opened and run on functions from Rust, with no C compiler; and what is
//! refused before anything runs.

use std::collections::BTreeMap;

use edgepack_builder::mlf::{GraphBuilder, LibraryParts};
use edgepack_executor::mlf::{Call, Error, FunctionError, GraphExecutor, RustFunctions};
use edgepack_format::limits::Limits;
use edgepack_format::mlf::{DataType, Graph, Memory, Module, Param, Style, Targets};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorLayout, TensorView};
use edgepack_loader::mlf::Library;

fn float32() -> DataType {
    "float32".parse().unwrap()
}

/// `out = relu(x · w + b)`, reshaped, and the sum before the activation as a second output.
fn graph() -> Graph {
    let mut graph = GraphBuilder::new();
    let x = graph.argument("x", float32(), &[1, 2]);
    let w = graph.argument("p0", float32(), &[2, 3]);
    let b = graph.argument("p1", float32(), &[3]);
    let sums = graph.call("tvmgen_m_dense", &[x, w], &[(float32(), &[1, 3])])[0];
    let biased = graph.call("tvmgen_m_add", &[sums, b], &[(float32(), &[1, 3])])[0];
    let positive = graph.call("tvmgen_m_relu", &[biased], &[(float32(), &[1, 3])])[0];
    let flat = graph.reshape(positive, &[3]);
    graph.output(flat);
    graph.output(biased);
    graph.finish().unwrap()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn package(version: u32) -> Vec<u8> {
    let (w, b) = (bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), bytes(&[-10.0, 0.0, 1.0]));
    let param = |name, shape: &[u64], data| Param {
        name,
        device_id: 0,
        data_type: float32(),
        shape: shape.to_vec(),
        at: 0,
        data,
    };
    let module = Module {
        name: "m".into(),
        export_datetime: "2024-01-01 00:00:00Z".into(),
        style: Style::FullModel,
        executors: vec!["graph".into()],
        target: match version {
            ..=5 => Targets::ByDevice(vec![("1".into(), "rust".into())]),
            _ => Targets::List(vec!["rust".into()]),
        },
        memory: Memory { main: Some(Vec::new()), operators: Some(Vec::new()), ..Memory::default() },
        ..Module::default()
    };
    let mut parts = LibraryParts::new(version);
    let params = [param("p0", &[2, 3], &w), param("p1", &[3], &b)];
    parts.graph_module(module, &graph(), &params, Some("def @main() {}")).unwrap();
    parts.finish().unwrap()
}

fn each(call: &mut Call<'_>, f: impl Fn(f32, f32) -> f32) -> Result<(), FunctionError> {
    let a = call.argument(0)?.as_slice::<f32>()?;
    let b = call.argument(call.argument_count() - 1)?.as_slice::<f32>()?;
    for ((out, a), b) in call.result(0)?.as_slice::<f32>()?.iter_mut().zip(a).zip(b) {
        *out = f(*a, *b);
    }
    Ok(())
}

fn functions() -> RustFunctions {
    RustFunctions::new()
        .with("tvmgen_m_dense", |call| {
            let (x, w) = (call.argument(0)?.as_slice::<f32>()?, call.argument(1)?.as_slice::<f32>()?);
            for (column, out) in call.result(0)?.as_slice::<f32>()?.iter_mut().enumerate() {
                *out = x.iter().enumerate().map(|(row, x)| x * w[row * 3 + column]).sum();
            }
            Ok(())
        })
        .with("tvmgen_m_add", |call| each(call, |a, b| a + b))
        .with("tvmgen_m_relu", |call| each(call, |a, _| a.max(0.0)))
}

fn input() -> Vec<f32> {
    vec![1.0, 2.0]
}

#[test]
fn a_package_runs_on_functions_from_rust() {
    for version in [5, 6, 7] {
        let library = Library::from_bytes(package(version)).unwrap();
        assert!(library.findings().iter().all(|finding| finding.rule.id == "MLF-C01"), "{}", library.findings());
        let module = library.module(Some("m")).unwrap();
        let mut executor = GraphExecutor::open(&module, &functions(), &Limits::hostile()).unwrap();
        assert_eq!(executor.inputs().map(|(name, _)| name).collect::<Vec<_>>(), ["x"]);
        for run in 1..3 {
            let x: Vec<f32> = input().iter().map(|value| value * run as f32).collect();
            executor.set_input("x", &TensorView::from_slice(&[1, 2], &x).unwrap().untyped()).unwrap();
            let mut nodes = Vec::new();
            executor.run_with(&mut |ran| nodes.push((ran.node, ran.outputs().len()))).unwrap();
            assert_eq!(nodes, [(3, 1), (4, 1), (5, 1)]);
            let outputs: Vec<Vec<f32>> = (0..2)
                .map(|index| executor.output(index).unwrap().typed::<f32>().unwrap().as_slice().to_vec())
                .collect();
            let scale = run as f32;
            assert_eq!(outputs[0], [(9.0 * scale - 10.0).max(0.0), 12.0 * scale, 15.0 * scale + 1.0]);
            assert_eq!(outputs[1], [9.0 * scale - 10.0, 12.0 * scale, 15.0 * scale + 1.0]);
            assert_eq!(executor.output(0).unwrap().layout().sizes(), [3]);
        }
    }
    assert_eq!(package(7), package(7));
}

#[test]
fn what_is_missing_is_named_before_anything_runs() {
    let library = Library::from_bytes(package(7)).unwrap();
    let module = library.module(None).unwrap();
    let open = |functions: &RustFunctions, limits: &Limits| GraphExecutor::open(&module, functions, limits);
    let Err(Error::Missing(names)) = open(&RustFunctions::new(), &Limits::hostile()) else {
        panic!("nothing is missing")
    };
    assert_eq!(names, ["tvmgen_m_dense", "tvmgen_m_add", "tvmgen_m_relu"]);

    let mut small = Limits::hostile();
    small.arena_bytes = 60;
    assert!(matches!(open(&functions(), &small), Err(Error::Limit { bytes: 68.., limit: 60 })));

    let mut executor = open(&functions(), &Limits::hostile()).unwrap();
    assert!(matches!(executor.output(0), Err(Error::NotRun)));
    assert!(matches!(executor.run(), Err(Error::Unset(names)) if names == ["x"]));
    let given = input();
    let wrong = TensorView::from_slice(&[2, 1], &given).unwrap().untyped();
    assert!(matches!(executor.set_input("x", &wrong), Err(Error::Mismatch { .. })));
    let data = bytes(&input());
    let integers = TensorView::new(TensorLayout::contiguous(ScalarType::INT, &[1, 2]).unwrap(), &data).unwrap();
    assert!(matches!(executor.set_input("x", &integers), Err(Error::Mismatch { .. })));
    assert!(matches!(executor.set_input("y", &integers), Err(Error::NoInput(_))));

    let failing = functions().with("tvmgen_m_relu", |_| Err("out of order".into()));
    let mut executor = open(&failing, &Limits::hostile()).unwrap();
    executor.set_input_at(0, &TensorView::from_slice(&[1, 2], &input()).unwrap().untyped()).unwrap();
    let error = executor.run().unwrap_err();
    assert_eq!(error.to_string(), "node 5, tvmgen_m_relu: out of order");
    assert!(matches!(executor.output(0), Err(Error::NotRun)));
}

#[test]
fn storages_are_used_again() {
    let graph = graph();
    let storages: Vec<u32> = graph.entries.iter().map(|entry| entry.storage).collect();
    // The sums end with the addition, whose result stays; the activation can have their place.
    assert_eq!(storages, [0, 1, 2, 3, 4, 3, 3]);
}

#[test]
fn broken_graphs_are_refused_by_the_executor_too() {
    let mut graph = graph();
    graph.entries[4].storage = 3;
    let Err(Error::Invalid(findings)) = GraphExecutor::new(&graph, &functions(), &Limits::hostile()) else {
        panic!("an overlap was accepted")
    };
    assert_eq!(findings.first_error().unwrap().rule.id, "MLF-S07");
}

#[test]
fn conversions_say_what_they_would_lose() {
    let library = Library::from_bytes(package(7)).unwrap();
    let parts = LibraryParts::of(library.metadata().clone(), &library.members());
    let losses: BTreeMap<u32, usize> = (0..=8).map(|version| (version, parts.losses(version).len())).collect();
    assert_eq!(losses, [(0, 1), (1, 2), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 1)].into());
    for version in 2..7 {
        let other = parts.to_version(version).unwrap().finish().unwrap();
        assert_eq!(Library::from_bytes(other).unwrap().metadata().version, version);
    }
}

#[test]
fn native_code_is_not_run_unless_it_is_allowed() {
    let mut parts = {
        let library = Library::from_bytes(package(7)).unwrap();
        let files =
            library.members().iter().map(|member| (member.path.to_owned(), member.bytes.to_vec())).collect::<Vec<_>>();
        let mut parts = LibraryParts::new(7);
        parts.metadata = library.metadata().clone();
        parts.modules = vec![Default::default()];
        for (path, bytes) in files.into_iter().filter(|(path, _)| path != "metadata.json") {
            parts.files.insert(path, bytes.into());
        }
        parts
    };
    let source = SOURCE.as_bytes();
    assert_eq!(parts.code("m", "host", "c", source), "codegen/host/src/m_lib0.c");
    let library = Library::from_bytes(parts.finish().unwrap()).unwrap();
    let module = library.module(None).unwrap();
    let refused = edgepack_native::NativeLibrary::compile(&module, &edgepack_native::Options::default());
    assert!(matches!(refused, Err(edgepack_native::Error::NotAllowed)));

    let native = edgepack_native::NativeLibrary::compile(&module, &edgepack_tests::mlf::native()).unwrap();
    let mut outputs = Vec::new();
    for functions in [&native as &dyn edgepack_executor::mlf::FunctionTable, &functions()] {
        let mut executor = GraphExecutor::open(&module, functions, &Limits::hostile()).unwrap();
        executor.set_input("x", &TensorView::from_slice(&[1, 2], &input()).unwrap().untyped()).unwrap();
        executor.run().unwrap();
        outputs.push((0..2).map(|index| executor.output(index).unwrap().data().to_vec()).collect::<Vec<_>>());
    }
    assert_eq!(outputs[0], outputs[1]);
}

/// Source of the three functions, in C of our own.
const SOURCE: &str = r#"
#include "tvm/runtime/c_runtime_api.h"
#define ARG(i) ((float*)((DLTensor*)((TVMValue*)args)[i].v_handle)->data)
#define PACKED(name) int32_t name(void* args, int32_t* codes, int32_t count, void* out, int32_t* out_code, void* resource)
TVM_DLL PACKED(tvmgen_m_dense) {
  for (int column = 0; column < 3; ++column) {
    float sum = 0;
    for (int row = 0; row < 2; ++row) sum += ARG(0)[row] * ARG(1)[row * 3 + column];
    ARG(2)[column] = sum;
  }
  return 0;
}
TVM_DLL PACKED(tvmgen_m_add) {
  for (int i = 0; i < 3; ++i) ARG(2)[i] = ARG(0)[i] + ARG(1)[i];
  return 0;
}
TVM_DLL PACKED(tvmgen_m_relu) {
  for (int i = 0; i < 3; ++i) ARG(1)[i] = ARG(0)[i] > 0 ? ARG(0)[i] : 0;
  return 0;
}
"#;
