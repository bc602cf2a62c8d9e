//! An operator of your own: a function whose schema is checked against its signature when this is compiled.
//!
//!     cargo run --example custom_kernel

use edgepack::prelude::*;

#[kernel("my::leaky.out(Tensor self, float slope, *, Tensor(a!) out) -> Tensor(a!)", like = "self")]
fn leaky(input: &Tensor<'_, f32>, slope: f64, out: &mut TensorMut<'_, f32>) -> Result<(), KernelError> {
    let slope = slope as f32;
    out.as_mut_slice().iter_mut().zip(input.as_slice()).for_each(|(y, &x)| *y = if x < 0.0 { x * slope } else { x });
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A program that calls it: the builder learns the schema, the runtime the function.
    let mut program = ProgramBuilder::new();
    program.operator("my::leaky.out(Tensor self, float slope, *, Tensor(a!) out) -> Tensor(a!)")?;
    let mut forward = program.method("forward");
    let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [3]))?;
    let y = forward.call("my::leaky.out", args![x, 0.5], TensorSpec::like(x))?;
    forward.output(y)?;
    let program = Program::from_bytes(program.finish()?.to_bytes()?)?;

    let registry = kernels::registry().with_kernels(&[&LEAKY]);
    let mut forward = program.method("forward")?.load(&registry, &Options::default())?;
    let outputs = forward.run(&[TensorView::from_slice(&[3], &[-2.0f32, 0.0, 3.0])?.untyped()])?;
    let y = outputs.get(0).and_then(|output| output.tensor()).ok_or("no tensor")?;
    println!("{:?}", y.as_slice::<f32>()?);
    assert_eq!(y.as_slice::<f32>()?, [-1.0, 0.0, 3.0]);
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
