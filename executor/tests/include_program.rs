//! Programs that `include_program!` put into this test: their types, and runs on kernels that `#[kernel]` made.

mod programs {
    use edgepack_executor::embed::include_program;

    include_program!("../tests/data/corpus/models/constants_out_portable.pte", operators = ["aten::add.out"]);
    include_program!("../tests/data/corpus/models/multimethod_portable.pte", module = two);
    include_program!("../tests/data/corpus/models/dynbatch_portable.pte");
}

use edgepack_executor::Registry;
use edgepack_executor::embed::ValueSpec;
use edgepack_executor::kernel::KernelError;
use edgepack_executor::tensor::Scalar;
use edgepack_executor::typed::{Tensor, TensorMut, kernel};
use edgepack_executor::{LoadError, Options};
use edgepack_loader::MethodMeta;
use programs::{constants_out_portable, dynbatch_portable, two};

#[kernel("aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)", like = "self")]
fn add(
    a: &Tensor<'_, f32>,
    b: &Tensor<'_, f32>,
    alpha: Scalar,
    out: &mut TensorMut<'_, f32>,
) -> Result<(), KernelError> {
    let b = b.as_slice().iter().cycle();
    for (out, (a, b)) in out.as_mut_slice().iter_mut().zip(a.as_slice().iter().zip(b)) {
        *out = a + alpha.to_f64() as f32 * b;
    }
    Ok(())
}

/// Checks that the generated constants agree with the loader.
fn agree(meta: &MethodMeta, inputs: &[ValueSpec], outputs: &[ValueSpec]) {
    assert_eq!((meta.inputs.len(), meta.outputs.len()), (inputs.len(), outputs.len()));
    for (meta, spec) in meta.inputs.iter().chain(&meta.outputs).zip(inputs.iter().chain(outputs)) {
        let ValueSpec::Tensor { scalar_type, sizes, dim_order, dynamic } = *spec else { panic!("{spec:?}") };
        let meta = meta.tensor().unwrap();
        assert_eq!((meta.layout.scalar_type(), meta.dynamic), (scalar_type, dynamic));
        assert_eq!((meta.layout.sizes(), meta.layout.dim_order()), (sizes, dim_order));
    }
}

#[test]
fn the_file_is_in_the_executable_aligned_and_not_copied() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/models/multimethod_portable.pte");
    assert_eq!(two::BYTES, std::fs::read(path).unwrap());
    assert!(two::BYTES.as_ptr().addr().is_multiple_of(64));
    let program = two::program().unwrap();
    let segment = program.segment(0).unwrap();
    assert!(two::BYTES.as_ptr_range().contains(&segment.as_ptr()));
    assert!(!segment.is_heap());
}

#[test]
fn signatures_are_those_of_the_program() {
    let program = two::program().unwrap();
    let mut names = program.method_names().unwrap();
    names.sort();
    assert_eq!(names, [two::Decode::NAME, two::Encode::NAME]);
    assert_eq!((two::Decode::INPUT_COUNT, two::Decode::OUTPUT_COUNT), (1, 2));
    agree(&program.method_meta("decode").unwrap(), &two::Decode::INPUTS, &two::Decode::OUTPUTS);
    agree(&program.method_meta("encode").unwrap(), &two::Encode::INPUTS, &two::Encode::OUTPUTS);
    let meta = dynbatch_portable::program().unwrap().method_meta("forward").unwrap();
    agree(&meta, &dynbatch_portable::Forward::INPUTS, &dynbatch_portable::Forward::OUTPUTS);
    assert!(matches!(dynbatch_portable::Forward::INPUTS[0], ValueSpec::Tensor { dynamic: true, .. }));
}

#[test]
fn a_run_takes_and_gives_arrays() {
    use constants_out_portable::Forward;

    let registry = Registry::new().with_kernels(&[&ADD]);
    let mut forward = Forward::load(&registry, &Options::default()).unwrap();
    let constants = |outputs: (&[f32; 4], &[f32; 4], &[i64; 3], &[f32; 4])| (*outputs.1, *outputs.2);
    let kept = constants(forward.run(&[0.0; 4]).unwrap());
    let first = *forward.run(&[0.0; 4]).unwrap().0;
    let outputs = forward.run(&[1.0, 2.0, 3.0, 4.0]).unwrap();
    assert_eq!(*outputs.0, std::array::from_fn(|index| first[index] + (index + 1) as f32));
    assert_eq!(constants(outputs), kept);
    assert_eq!(forward.method().name(), Forward::NAME);
}

#[test]
fn what_is_missing_is_said_when_a_method_is_loaded() {
    let error = two::Decode::load(&Registry::new(), &Options::default()).err().unwrap();
    assert!(matches!(&error, LoadError::Missing(missing) if missing.operators.len() == 4), "{error}");
}
