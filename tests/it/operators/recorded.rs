//! Operators on their own, with outputs the stock runtime computed: `tests/data/corpus/ops`.
//!
//! A recording's metadata names its `calls`, `OPERATOR@EXAMPLE:TYPE` each, EXAMPLE counting those of the operator. From
//! them the program next to it is built again. `EDGEPACK_RECORD=DIR` writes a program for every operator and type into
//! a folder, with inputs for it, to be run elsewhere.

use std::path::Path;
use std::{env, fs};

use edgepack_executor::call::OwnedTensor;
use edgepack_format::scalar::ScalarType;
use edgepack_kernels::registry;
use edgepack_tests::catalogue::{by_name, types};
use edgepack_tests::examples::{DTYPES, all, dtype_name, program};
use safetensors::tensor::{Dtype, TensorView};

#[test]
fn recorded_programs_are_those_of_their_examples() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus/ops");
    let examples = all();
    let named = by_name(&examples);
    let mut count = 0;
    for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.extension().is_none_or(|extension| extension != "safetensors") {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
        let Some(calls) = header.metadata().as_ref().and_then(|metadata| metadata.get("calls")) else { continue };
        let call = |word: &str| {
            let (name, which) = word.split_once('@').unwrap();
            let (example, dtype) = which.split_once(':').unwrap();
            let dtype = DTYPES.iter().copied().find(|known| dtype_name(*known) == dtype).unwrap();
            (named[name][example.parse::<usize>().unwrap()], dtype)
        };
        let calls: Vec<_> = calls.split(' ').map(call).collect();
        let (fresh, _) = program(&calls).unwrap().unwrap();
        let pte = path.with_extension("pte");
        if env::var_os("EDGEPACK_BLESS").is_some() {
            fs::write(&pte, &fresh).unwrap();
        }
        assert!(fs::read(&pte).unwrap() == fresh, "{} is stale; .ci/generate writes it", pte.display());
        count += 1;
    }
    assert!(count > 50, "{count} recordings");
}

/// The name of a type in a file of tensors, which has none for complex numbers.
fn dtype(dtype: ScalarType) -> Option<Dtype> {
    Some(match dtype {
        ScalarType::BOOL => Dtype::BOOL,
        ScalarType::BYTE => Dtype::U8,
        ScalarType::CHAR => Dtype::I8,
        ScalarType::SHORT => Dtype::I16,
        ScalarType::INT => Dtype::I32,
        ScalarType::LONG => Dtype::I64,
        ScalarType::UINT16 => Dtype::U16,
        ScalarType::UINT32 => Dtype::U32,
        ScalarType::UINT64 => Dtype::U64,
        ScalarType::HALF => Dtype::F16,
        ScalarType::BFLOAT16 => Dtype::BF16,
        ScalarType::FLOAT => Dtype::F32,
        ScalarType::DOUBLE => Dtype::F64,
        _ => return None,
    })
}

fn inputs(tensors: &[OwnedTensor]) -> Option<Vec<(String, TensorView<'_>)>> {
    let mut views = Vec::new();
    for (index, tensor) in tensors.iter().enumerate() {
        let layout = tensor.layout();
        let view = TensorView::new(dtype(layout.scalar_type())?, layout.sizes().to_vec(), tensor.bytes()).ok()?;
        views.push((format!("forward.0.in.{index}"), view));
    }
    Some(views)
}

#[test]
fn every_operator_becomes_a_program() {
    let folder = env::var_os("EDGEPACK_RECORD");
    let (registry, examples) = (registry(), all());
    let mut failures = Vec::new();
    for (name, examples) in by_name(&examples) {
        let operator = registry.find(name).unwrap();
        for (index, example) in examples.iter().enumerate() {
            for dtype in types(operator, &[example]) {
                match program(&[(example, dtype)]) {
                    Ok(Some((bytes, tensors))) => {
                        let (Some(folder), Some(views)) = (&folder, inputs(&tensors)) else { continue };
                        let stem = format!("{}@{index}:{}", name.replace("::", "-"), dtype_name(dtype));
                        let stem = Path::new(folder).join(stem);
                        fs::write(format!("{}.pte", stem.display()), bytes).unwrap();
                        let file = safetensors::serialize(views, None).unwrap();
                        fs::write(format!("{}.safetensors", stem.display()), file).unwrap();
                    }
                    Err(error) => failures.push(format!("{name} with {}: {error}", dtype_name(dtype))),
                    Ok(None) => {}
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
