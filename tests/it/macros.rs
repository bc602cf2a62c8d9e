//! Structs of weights and options through real files: built, written, opened, and loaded back by a backend.

use std::ops::Range;
use std::sync::Arc;

use edgepack_builder::pte::{ProgramBuilder, TensorSpec};
use edgepack_builder::{BuildError, NamedDataStore, args};
use edgepack_executor::delegate::{Backend, Backends, Delegate, DelegateInit};
use edgepack_executor::embed::include_program;
use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};
use edgepack_executor::{Method, Options, Output};
use edgepack_format::named::{NamedData, StoreError};
use edgepack_format::scalar::ScalarType;
use edgepack_format::spec::CompileSpecs;
use edgepack_format::tensor::TensorView;
use edgepack_loader::{DataFile, HeldData, Program};

include_program!("data/corpus/models/dynbatch_portable.pte");

/// `y = x · scale + offset`, element by element.
#[derive(NamedData)]
struct Affine<'a> {
    #[named(shape = [_, 1], align = 64)]
    scale: TensorView<'a, f32>,
    #[named(external = "offsets")]
    offset: &'a [f32],
}

#[derive(CompileSpecs, Clone, PartialEq, Debug)]
struct AffineOptions {
    #[spec(key = "prefix")]
    key: String,
    #[spec(default = "false")]
    negate: bool,
}

struct AffineBackend;

struct Loaded {
    scale: Vec<f32>,
    offset: Vec<f32>,
}

impl Backend for AffineBackend {
    fn id(&self) -> &str {
        "Affine"
    }

    fn init(&self, cx: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError> {
        let refused = |error: &dyn std::error::Error| KernelError::argument(error.to_string());
        let options = AffineOptions::from_specs(&cx.compile_specs).map_err(|error| refused(&error))?;
        let held = HeldData::new(&*cx.named_data);
        let weights = Affine::load_at(&options.key, &held).map_err(|error| refused(&error))?;
        let sign = if options.negate { -1.0 } else { 1.0 };
        let scale = weights.scale.as_slice().iter().map(|scale| sign * scale).collect();
        let loaded = Loaded { scale, offset: weights.offset.to_vec() };
        Ok(Box::new(loaded))
    }
}

impl Delegate for Loaded {
    fn outputs(&self, count: usize) -> Range<usize> {
        1..count
    }

    fn prepare(&self, _: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        let rows: Vec<(f32, f32)> = self.scale.iter().copied().zip(self.offset.iter().copied()).collect();
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            let views = cx.views();
            let input = views.tensor(0)?.as_slice::<f32>()?;
            for ((out, x), (scale, offset)) in views.out(1)?.as_mut_slice::<f32>()?.iter_mut().zip(input).zip(&rows) {
                *out = x * scale + offset;
            }
            Ok(())
        }))
    }
}

/// A program with one delegate, and its data file.
fn built(weights: &Affine<'_>, options: &AffineOptions) -> (Vec<u8>, Vec<u8>) {
    let mut store = NamedDataStore::new();
    weights.store_at("layer.0", &mut store).unwrap();
    let mut program = ProgramBuilder::new();
    program.merge_named_data(store).unwrap();
    let mut forward = program.method("forward");
    let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [3])).unwrap();
    let delegate = forward.delegate("Affine", b"", options.to_specs()).unwrap();
    let y = forward.call_delegate(delegate, args![x], TensorSpec::like(x)).unwrap();
    forward.output(y).unwrap();
    let built = program.finish().unwrap();
    let (tag, file) = built.data_files().next().unwrap();
    assert_eq!(tag, "offsets");
    (built.to_bytes().unwrap(), file.to_bytes().unwrap())
}

fn load(program: &[u8], data: Option<&[u8]>, backend: AffineBackend) -> Result<Method, String> {
    let mut options = Options { backends: Backends::new().with(backend), ..Options::default() };
    options.data.extend(data.map(|data| Arc::new(DataFile::from_bytes(data).unwrap()) as _));
    let program = Program::from_bytes(program).unwrap();
    Method::load(&program, "forward", &edgepack_kernels::registry(), &options).map_err(|error| error.to_string())
}

fn sample<'a>() -> (Affine<'a>, AffineOptions) {
    let scale = TensorView::from_slice(&[3, 1], &[1.0, 2.0, 3.0]).unwrap();
    let options = AffineOptions { key: "layer.0".into(), negate: true };
    (Affine { scale, offset: &[0.5, 0.25, 0.125] }, options)
}

#[test]
fn a_backend_gets_its_options_and_weights_as_structs() {
    let (weights, options) = sample();
    let (program, data) = built(&weights, &options);
    let mut method = load(&program, Some(&data), AffineBackend).unwrap();
    let input = [1.0f32, 1.0, 1.0];
    let outputs = method.run(&[TensorView::from_slice(&[3], &input).unwrap()]).unwrap();
    let Some(Output::Tensor(tensor)) = outputs.get(0) else { panic!("no tensor") };
    assert_eq!(tensor.as_slice::<f32>().unwrap(), [-0.5, -1.75, -2.875]);
}

#[test]
fn what_is_missing_is_said_by_key_when_the_method_is_loaded() {
    let (weights, options) = sample();
    let (program, data) = built(&weights, &options);
    let error = load(&program, None, AffineBackend).err().unwrap();
    let want = "layer.0.offset: there is no such key, a tensor of f32 of sizes [_] is expected";
    assert_eq!(error, format!("delegates[0] (Affine): {want} (InvalidArgument)"));

    let elsewhere = AffineOptions { key: "layer.1".into(), ..options };
    let (program, _) = built(&weights, &elsewhere);
    let error = load(&program, Some(&data), AffineBackend).err().unwrap();
    assert!(error.contains("layer.1.scale: ") && error.contains("layer.1.offset: "), "{error}");
}

#[test]
fn borrowed_tensors_point_into_what_is_held() {
    let (weights, options) = sample();
    let (program, data) = built(&weights, &options);
    let program = Program::from_bytes(program).unwrap();
    let (inside, outside) = (program.named_data().unwrap(), DataFile::from_bytes(data).unwrap());

    #[derive(NamedData)]
    struct Inside<'a> {
        #[named(shape = [3, 1])]
        scale: TensorView<'a, f32>,
    }
    let held = HeldData::new(&inside);
    let (first, second) = (Inside::load_at("layer.0", &held).unwrap(), Inside::load_at("layer.0", &held).unwrap());
    assert_eq!(first.scale, weights.scale);
    // Read once, borrowed twice.
    assert_eq!(first.scale.data().as_ptr(), second.scale.data().as_ptr());

    #[derive(NamedData)]
    struct Outside<'a> {
        offset: &'a [f32],
    }
    let held = HeldData::new(&outside);
    assert_eq!(Outside::load_at("layer.0", &held).unwrap().offset, weights.offset);
}

#[test]
fn a_store_says_which_key_it_refuses() {
    let (weights, _) = sample();
    let mut store = NamedDataStore::new();
    store.add("scale", vec![1, 2, 3], 1, None).unwrap();
    let error = weights.store(&mut store).unwrap_err();
    assert!(
        matches!(&error, StoreError::Sink { key, error: BuildError::Conflict { .. } } if key == "scale"),
        "{error}"
    );
}

#[test]
fn an_included_program_computes_what_the_file_does() {
    let registry = edgepack_kernels::registry();
    let mut forward = dynbatch_portable::Forward::load(&registry, &Options::default()).unwrap();
    let mut method =
        Method::load(&dynbatch_portable::program().unwrap(), "forward", &registry, &Options::default()).unwrap();
    for rows in [1, 3, 10] {
        let values: Vec<f32> = (0..rows * 8).map(|index| index as f32 / 7.0 - 1.0).collect();
        let input = TensorView::from_slice(&[rows, 8], &values).unwrap();
        let outputs = method.run(std::slice::from_ref(&input)).unwrap();
        let want = outputs.get(0).unwrap().tensor().unwrap().as_slice::<f32>().unwrap();
        let have = forward.run(input).unwrap();
        assert_eq!((have.sizes, have.as_slice()), (&[rows, 4][..], want));
    }
    let values = [0.0; 88];
    let error = forward.run(TensorView::from_slice(&[11, 8], &values).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "input 0 wants f32[10, 8] or smaller, got f32[11, 8]");
}
