//! Random library packages: parameters, graphs and whole packages come back as they were written, and graphs compute what
//! their functions compute one by one.

use std::collections::BTreeMap;

use edgepack_builder::mlf::{GraphBuilder, LibraryParts, graph_text, params_file};
use edgepack_executor::mlf::{GraphExecutor, RustFunctions};
use edgepack_format::limits::Limits;
use edgepack_format::mlf::{DataType, Graph, Memory, Module, Param, Params, Reference, Targets};
use edgepack_format::tensor::TensorView;
use edgepack_loader::mlf::Library;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn float32() -> DataType {
    "float32".parse().expect("a type there is")
}

/// Result of the functions of [`functions`].
fn compute(function: &str, a: &[f32], b: &[f32]) -> Vec<f32> {
    let both = a.iter().zip(b.iter().cycle());
    match function {
        "add" => both.map(|(a, b)| a + b).collect(),
        "mul" => both.map(|(a, b)| a * b * 0.5).collect(),
        _ => a.iter().map(|a| a.max(-1.0)).collect(),
    }
}

fn functions() -> RustFunctions {
    ["add", "mul", "clip"].into_iter().fold(RustFunctions::new(), |table, name| {
        table.with(name, move |call| {
            let a = call.argument(0)?.as_slice::<f32>()?;
            let b = call.argument(call.argument_count() - 1)?.as_slice::<f32>()?;
            let values = compute(name, a, b);
            call.result(0)?.as_slice::<f32>()?.copy_from_slice(&values);
            Ok(())
        })
    })
}

/// A graph with a value for everything in it.
struct Made {
    graph: Graph,
    given: Vec<(String, Vec<u64>, Vec<f32>)>,
    want: Vec<Vec<f32>>,
}

/// A graph in which every node takes two tensors made before and makes one.
fn graph(rows: u64, columns: u64, arguments: usize, steps: &[(u8, u8, u8)], outputs: usize) -> Made {
    let mut builder = GraphBuilder::new();
    let mut made: Vec<(Reference, Vec<u64>, Vec<f32>)> = Vec::new();
    let mut given = Vec::new();
    let count = (rows * columns) as usize;
    for index in 0..arguments {
        let shape = if index % 2 == 0 { vec![rows, columns] } else { vec![rows * columns] };
        let values: Vec<f32> = (0..count).map(|at| ((at * 7 + index * 3) % 11) as f32 * 0.25 - 1.25).collect();
        let name = if index == 0 { "x".to_owned() } else { format!("p{index}") };
        made.push((builder.argument(name.clone(), float32(), &shape), shape.clone(), values.clone()));
        given.push((name, shape, values));
    }
    for (what, first, second) in steps {
        let (a, shape, x) = made[usize::from(*first) % made.len()].clone();
        let (b, _, y) = made[usize::from(*second) % made.len()].clone();
        let next = match what % 4 {
            3 => {
                let shape = if shape.len() == 2 { vec![rows * columns] } else { vec![rows, columns] };
                (builder.reshape(a, &shape), shape, x)
            }
            which => {
                let function = ["add", "mul", "clip"][usize::from(which)];
                let inputs = if function == "clip" { vec![a] } else { vec![a, b] };
                let result = builder.call(function, &inputs, &[(float32(), &shape)])[0];
                (result, shape, compute(function, &x, &y))
            }
        };
        made.push(next);
    }
    let last: Vec<_> = made.iter().rev().take(outputs).collect();
    last.iter().for_each(|(reference, ..)| builder.output(*reference));
    let want = last.iter().map(|(.., values)| values.clone()).collect();
    Made { graph: builder.finish().expect("a graph in order"), given, want }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn parameters_come_back_to_the_byte(
        tensors in vec((select(vec!["float32", "int8", "int64", "float16", "uint8", "float64"]), vec(0u64..5, 0..4)), 0..8),
        seed in any::<u8>(),
    ) {
        let rows: Vec<(String, DataType, Vec<u64>, Vec<u8>)> = tensors
            .into_iter()
            .enumerate()
            .map(|(index, (data_type, shape))| {
                let data_type: DataType = data_type.parse().unwrap();
                let count = shape.iter().product::<u64>() * data_type.bytes();
                let data = (0..count).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect();
                (format!("p{index}"), data_type, shape, data)
            })
            .collect();
        let params: Vec<Param<'_>> = rows
            .iter()
            .map(|(name, data_type, shape, data)| {
                Param { name, device_id: 0, data_type: *data_type, shape: shape.clone(), at: 0, data }
            })
            .collect();
        let file = params_file(&params).unwrap();
        let again = Params::parse(&file, &Limits::hostile()).unwrap();
        prop_assert_eq!(again.entries.len(), params.len());
        for (again, param) in again.entries.iter().zip(&params) {
            prop_assert_eq!(&Param { at: 0, ..again.clone() }, param);
            prop_assert_eq!(&file[again.at..again.at + again.data.len()], param.data);
        }
        prop_assert_eq!(params_file(&again.entries).unwrap(), file);
    }

    #[test]
    fn packages_come_back_and_compute_what_their_functions_do(
        (rows, columns, arguments) in (1u64..5, 1u64..5, 1usize..5),
        steps in vec(any::<(u8, u8, u8)>(), 1..20),
        outputs in 1usize..4,
        version in 5u32..8,
    ) {
        let Made { graph, given, want } = graph(rows, columns, arguments, &steps, outputs);
        let text = graph_text(&graph);
        prop_assert_eq!(&Graph::parse(text.as_bytes(), &Limits::hostile()).unwrap(), &graph);

        // The first argument is the input, the others are parameters.
        let data: Vec<Vec<u8>> = given.iter().map(|(.., values)| bytes(values)).collect();
        let params: Vec<Param<'_>> = given
            .iter()
            .zip(&data)
            .skip(1)
            .map(|((name, shape, _), data)| {
                Param { name, device_id: 0, data_type: float32(), shape: shape.clone(), at: 0, data }
            })
            .collect();
        let module = Module {
            name: "m".into(),
            export_datetime: "2024-01-01 00:00:00Z".into(),
            executors: vec!["graph".into()],
            target: match version {
                ..=5 => Targets::ByDevice(vec![("1".into(), "c".into())]),
                _ => Targets::List(vec!["c".into()]),
            },
            memory: Memory { main: Some(Vec::new()), operators: Some(Vec::new()), ..Memory::default() },
            ..Module::default()
        };
        let mut parts = LibraryParts::new(version);
        parts.graph_module(module, &graph, &params, Some("def @main() {}")).unwrap();
        let file = parts.finish().unwrap();
        let library = Library::from_bytes(file.as_slice()).unwrap();
        let again = LibraryParts::of(library.metadata().clone(), &library.members());
        prop_assert_eq!(again.finish().unwrap(), file);
        let members: BTreeMap<&str, &[u8]> = library.members().iter().map(|member| (member.path, member.bytes)).collect();
        prop_assert!(members.contains_key("metadata.json"));

        let module = library.module(None).unwrap();
        let mut executor = GraphExecutor::open(&module, &functions(), &Limits::hostile()).unwrap();
        let (_, shape, values) = &given[0];
        let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        for _ in 0..2 {
            executor.set_input("x", &TensorView::from_slice(&shape, values).unwrap().untyped()).unwrap();
            executor.run().unwrap();
            for (index, want) in want.iter().enumerate() {
                let have = executor.output(index).unwrap();
                prop_assert_eq!(have.typed::<f32>().unwrap().as_slice(), want.as_slice());
            }
        }
    }
}
