//! Builds a program from nothing and saves it: `relu(x @ weight) + bias` over a batch of any size from 1 to 64.
//!
//! usage: build TO.pt2
//!
//! `torch.export.load` reads the result, and `edgepack_exir::lower` lowers it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;

use edgepack_exir::Error;
use edgepack_exir::archive::{Storage, Weight, Weights};
use edgepack_exir::graph::{
    About, Argument, Dialect, ExportedProgram, Expr, Graph, InputKind, InputSpec, Interval, OutputKind, OutputSpec,
    Size, TensorMeta,
};
use edgepack_format::scalar::ScalarType;

fn main() -> ExitCode {
    let Some(to) = std::env::args().nth(1) else {
        eprintln!("usage: build TO.pt2");
        return ExitCode::from(2);
    };
    match save(&to) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{to}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn save(to: &str) -> Result<(), Error> {
    let program = program()?;
    println!("{program}");
    program.save(BufWriter::new(File::create(to)?))
}

fn program() -> Result<ExportedProgram<'static>, Error> {
    let float = |sizes: &[Size]| TensorMeta::contiguous(ScalarType::FLOAT, sizes);
    let batch = Size::Symbolic(Expr::Symbol("s0".to_owned(), "positive=True, integer=True".to_owned()), Some(2));

    let mut graph = Graph::default();
    // Parameters come before the inputs that the caller gives.
    let weight = graph.add_input("p_weight", float(&[3.into(), 2.into()]));
    let bias = graph.add_input("p_bias", float(&[2.into()]));
    let x = graph.add_input("x", float(&[batch.clone(), 3.into()]));
    let rows = float(&[batch, 2.into()]);
    let product = graph.call("aten::mm", [("self", x.into()), ("mat2", weight.into())], rows.clone());
    let positive = graph.call("aten::relu", [("self", product.into())], rows.clone());
    let sum = graph.call("aten::add.Tensor", [("self", positive.into()), ("other", bias.into())], rows);
    graph.outputs = vec![sum.into()];

    let parameter = |name: &str, value| InputSpec { kind: InputKind::Parameter(name.to_owned()), arg: value };
    Ok(ExportedProgram {
        inputs: vec![
            parameter("weight", Argument::Value(weight)),
            parameter("bias", Argument::Value(bias)),
            InputSpec { kind: InputKind::User, arg: x.into() },
        ],
        outputs: vec![OutputSpec { kind: OutputKind::User, arg: sum.into() }],
        weights: Weights {
            state: BTreeMap::from([
                ("weight".to_owned(), floats("weight", &[3, 2], &[1.0, -1.0, 0.5, 2.0, -3.0, 0.25])?),
                ("bias".to_owned(), floats("bias", &[2], &[0.125, -4.0])?),
            ]),
            ..Weights::default()
        },
        ranges: BTreeMap::from([("s0".to_owned(), Interval { min: Some(1), max: Some(64) })]),
        dialect: Dialect::Aten,
        about: About::default(),
        graph,
    })
}

/// A parameter of these numbers.
fn floats(name: &str, sizes: &[usize], numbers: &[f32]) -> Result<Weight<'static>, Error> {
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let mut weight = Weight::contiguous(Storage::owned(name, bytes), ScalarType::FLOAT, sizes)?;
    weight.is_param = true;
    Ok(weight)
}
