//! A library package from nothing: built, written, opened, and run on functions from Rust, without a C compiler.
//!
//! With the feature `native` and the argument `--allow-native-code` the same package carries C sources of our own, which
//! are compiled and run as well; both must agree.

use edgepack::builder::mlf::{GraphBuilder, LibraryParts};
use edgepack::executor::mlf::{FunctionTable, GraphExecutor, RustFunctions};
use edgepack::format::limits::Limits;
use edgepack::format::mlf::{DataType, Memory, Module, Param, Targets};
use edgepack::format::tensor::TensorView;
use edgepack::loader::mlf::{Library, LibraryModule};

type Error = Box<dyn std::error::Error>;

/// `y = relu(x + bias)`.
fn package() -> Result<Vec<u8>, Error> {
    let float32: DataType = "float32".parse()?;
    let mut graph = GraphBuilder::new();
    let (x, bias) = (graph.argument("x", float32, &[4]), graph.argument("p0", float32, &[4]));
    let sum = graph.call("tvmgen_tiny_add", &[x, bias], &[(float32, &[4])])[0];
    let y = graph.call("tvmgen_tiny_relu", &[sum], &[(float32, &[4])])[0];
    graph.output(y);

    let data: Vec<u8> = [-1f32, 0.5, 2.0, -8.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let bias = Param { name: "p0", device_id: 0, data_type: float32, shape: vec![4], at: 0, data: &data };
    let module = Module {
        name: "tiny".into(),
        // An argument, so that the same model is the same file.
        export_datetime: "2024-01-01 00:00:00Z".into(),
        executors: vec!["graph".into()],
        target: Targets::List(vec!["c".into()]),
        memory: Memory { main: Some(Vec::new()), operators: Some(Vec::new()), ..Memory::default() },
        ..Module::default()
    };
    let mut parts = LibraryParts::new(7);
    parts.graph_module(module, &graph.finish()?, &[bias], None)?;
    parts.code("tiny", "host", "c", include_bytes!("tiny.c").as_slice());
    Ok(parts.finish()?)
}

fn functions() -> RustFunctions {
    RustFunctions::new()
        .with("tvmgen_tiny_add", |call| {
            let (x, bias) = (call.argument(0)?.as_slice::<f32>()?, call.argument(1)?.as_slice::<f32>()?);
            let mut sum = call.result(0)?;
            sum.as_slice::<f32>()?.iter_mut().zip(x.iter().zip(bias)).for_each(|(sum, (x, bias))| *sum = x + bias);
            Ok(())
        })
        .with("tvmgen_tiny_relu", |call| {
            let x = call.argument(0)?.as_slice::<f32>()?;
            call.result(0)?.as_slice::<f32>()?.iter_mut().zip(x).for_each(|(y, x)| *y = x.max(0.0));
            Ok(())
        })
}

fn run(module: &LibraryModule, functions: &dyn FunctionTable) -> Result<Vec<f32>, Error> {
    let mut executor = GraphExecutor::open(module, functions, &Limits::default())?;
    executor.set_input("x", &TensorView::from_slice(&[4], &[1f32, 2.0, 3.0, 4.0])?.untyped())?;
    executor.run_with(&mut |ran| println!("  node {} ran {}", ran.node, ran.function))?;
    Ok(executor.output(0)?.typed::<f32>()?.as_slice().to_vec())
}

fn main() -> Result<(), Error> {
    let bytes = package()?;
    let library = Library::from_bytes(bytes)?; // verified
    let module = library.module(None)?;
    println!("on functions from Rust");
    let y = run(&module, &functions())?;
    println!("  {y:?}");
    assert_eq!(y, [0.0, 2.5, 5.0, 0.0]);

    #[cfg(feature = "native")]
    if std::env::args().any(|arg| arg == "--allow-native-code") {
        println!("on the package's own code");
        // SAFETY: the code is `tiny.c` next to this file.
        let options = unsafe { edgepack::native::Options::default().allow_native_code() };
        let compiled = edgepack::native::NativeLibrary::compile(&module, &options)?;
        assert_eq!(run(&module, &compiled)?, y);
    }
    Ok(())
}
