//! Exports a program from weights in a safetensors file: a linear layer behind a `relu`.
//!
//!     cargo run --features safetensors --example export_safetensors

use edgepack::prelude::*;
use safetensors::tensor::{SafeTensors, serialize};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Weights as some training left them.
    let (weight, bias) = ([0.5f32, -1.0, 2.0, 0.25, 1.0, -0.5], [0.1f32, -0.2]);
    let weight = TensorView::from_slice(&[2, 3], &weight)?.untyped();
    let bias = TensorView::from_slice(&[2], &bias)?.untyped();
    let file = serialize(
        [("weight", (&weight).try_into()?), ("bias", (&bias).try_into()?)]
            as [(&str, safetensors::tensor::TensorView<'_>); 2],
        None,
    )?;

    // Tensors of the file become constants; nothing is copied until the program is written.
    let file = SafeTensors::deserialize(&file)?;
    let mut program = ProgramBuilder::new();
    let weight = program.constant("weight", &file.tensor("weight")?.try_into()?)?;
    let bias = program.constant("bias", &file.tensor("bias")?.try_into()?)?;
    let mut forward = program.method("forward");
    let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [1, 3]))?;
    let columns = TensorSpec::new(ScalarType::FLOAT, [3, 2]);
    let columns = forward.call("aten::permute_copy.out", args![weight, [1i64, 0]], columns)?;
    let y = TensorSpec::new(ScalarType::FLOAT, [1, 2]);
    let y = forward.call("aten::addmm.out", args![bias, x, columns, 1i64, 1i64], y)?;
    let y = forward.call("aten::relu.out", args![y], TensorSpec::like(y))?;
    forward.output(y)?;
    let bytes = program.finish()?.to_bytes()?;

    let program = Program::from_bytes(bytes)?;
    let mut forward = program.method("forward")?.load(&kernels::registry(), &Options::default())?;
    let outputs = forward.run(&[TensorView::from_slice(&[1, 3], &[1.0f32, 2.0, 3.0])?.untyped()])?;
    let y = outputs.get(0).and_then(|output| output.tensor()).ok_or("no tensor")?;
    println!("relu(x · weightᵀ + bias) = {:?}", y.as_slice::<f32>()?);
    assert_eq!(y.as_slice::<f32>()?, [4.6, 0.55]);
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
