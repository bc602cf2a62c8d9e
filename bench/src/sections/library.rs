//! Model Library Format: taking parameters over compared with copying their bytes, and what the graph executor adds to
//! calling the same functions directly.

use std::hint::black_box;

use edgepack_builder::mlf::{GraphBuilder, params_file};
use edgepack_executor::mlf::{GraphExecutor, RustFunctions};
use edgepack_format::limits::Limits;
use edgepack_format::mlf::{DataType, Param, Params};
use edgepack_format::tensor::TensorView;

use super::BUDGET;
use crate::clock::{Race, timed};

/// Parameters of the file, of a megabyte each.
const TENSORS: usize = 64;
/// Nodes of the chain.
const NODES: usize = 1000;
/// Elements of every tensor of the chain: so few that calling is what costs.
const ELEMENTS: usize = 16;

pub fn run() {
    params();
    chain();
}

fn float32() -> DataType {
    "float32".parse().expect("a type there is")
}

/// One unit is a kilobyte of tensors.
fn params() {
    let data = vec![7u8; 1 << 20];
    let names: Vec<String> = (0..TENSORS).map(|index| format!("p{index}")).collect();
    let param = |name| Param { name, device_id: 0, data_type: float32(), shape: vec![512, 512], at: 0, data: &data };
    let params: Vec<Param<'_>> = names.iter().map(|name| param(name)).collect();
    let file = params_file(&params).expect("parameters that fit a file");
    let mut builder = GraphBuilder::new();
    for name in &names {
        let argument = builder.argument(name.as_str(), float32(), &[512, 512]);
        builder.output(argument);
    }
    let graph = builder.finish().expect("a graph in order");
    let mut executor = GraphExecutor::new(&graph, &RustFunctions::new(), &Limits::DEFAULT).expect("it calls nothing");
    let mut memory = vec![0u8; file.len()];
    let units = file.len() / 1024;
    let mut race = Race::new(format!("parameters, {TENSORS} MiB"));
    race.lane("copy the file", units, || timed(|| memory.copy_from_slice(black_box(&file))));
    race.lane("parse and verify", units, || timed(|| Params::parse(&file, &Limits::DEFAULT).is_ok()));
    race.lane("parse, verify, set", units, || {
        timed(|| {
            let params = Params::parse(&file, &Limits::DEFAULT).expect("what was written");
            executor.set_params(&params.entries).expect("the graph's own");
        })
    });
    race.print("ns/KiB", BUDGET);
}

fn add_one(x: &[f32], y: &mut [f32]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y = x + 1.0);
}

/// One unit is a node.
fn chain() {
    let mut builder = GraphBuilder::new();
    let mut last = builder.argument("x", float32(), &[ELEMENTS as u64]);
    for _ in 0..NODES {
        last = builder.call("add_one", &[last], &[(float32(), &[ELEMENTS as u64])])[0];
    }
    builder.output(last);
    let functions = RustFunctions::new().with("add_one", |call| {
        let x = call.argument(0)?.as_slice::<f32>()?;
        add_one(x, call.result(0)?.as_slice::<f32>()?);
        Ok(())
    });
    let graph = builder.finish().expect("a graph in order");
    let mut executor = GraphExecutor::new(&graph, &functions, &Limits::DEFAULT).expect("its function is there");
    let input = TensorView::from_slice(&[ELEMENTS], &[0.5f32; ELEMENTS]).expect("as many as the shape says").untyped();
    let mut buffers = [[0.5f32; ELEMENTS], [0.0; ELEMENTS]];
    let direct: fn(&[f32], &mut [f32]) = black_box(add_one);
    let mut race = Race::new(format!("a chain of {NODES} functions on {ELEMENTS} numbers"));
    race.lane("called directly", NODES, || {
        timed(|| {
            for node in 0..NODES {
                let [a, b] = &mut buffers;
                let (from, to) = if node % 2 == 0 { (a, b) } else { (b, a) };
                direct(from, to);
            }
        })
    });
    race.lane("graph executor", NODES, || {
        timed(|| {
            executor.set_input("x", &input).expect("its input");
            executor.run().expect("nothing fails");
        })
    });
    race.print("ns/node", BUDGET);
}
