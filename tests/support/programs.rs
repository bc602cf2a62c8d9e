//! The programs of the repository, and inputs that any of them takes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use edgepack_executor::Input;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorView;
use edgepack_loader::{DataFile, MethodMeta, NamedDataMap, Program, ValueMeta};

/// Every model of the repository's corpus, with the data files next to it.
pub fn models() -> Vec<(PathBuf, Vec<Arc<dyn NamedDataMap>>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus/models");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let programs = paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "pte"));
    let with_data = programs.map(|path| {
        let stem = format!("{}.", path.file_stem().unwrap().to_string_lossy());
        let data = paths.iter().filter(|other| {
            let name = other.file_name().unwrap().to_string_lossy();
            name.starts_with(&stem) && name.ends_with(".ptd")
        });
        let data = data.map(|path| Arc::new(DataFile::open(path).unwrap()) as Arc<dyn NamedDataMap>);
        (path.clone(), data.collect())
    });
    with_data.collect()
}

/// Inputs of a method as large as they may be: whole numbers are 1, which divides and indexes; floats are a bit pattern
/// near 2.
pub struct PlainInputs {
    meta: MethodMeta,
    bytes: Vec<Vec<u8>>,
}

impl PlainInputs {
    /// Makes them.
    pub fn of(program: &Program, method: &str) -> Self {
        let meta = program.method_meta(method).unwrap();
        let bytes = meta.inputs.iter().map(|input| {
            input.tensor().map_or(Vec::new(), |tensor| {
                let dtype = tensor.layout.scalar_type();
                let mut element = vec![0; dtype.size().unwrap()];
                match dtype.is_floating() {
                    true => *element.last_mut().unwrap() = 0x40,
                    false => element[0] = 1,
                }
                element.repeat(tensor.layout.byte_len() / element.len())
            })
        });
        PlainInputs { bytes: bytes.collect(), meta }
    }

    /// Inputs of a method with floats of both signs, of a repeating pattern.
    pub fn varied(program: &Program, method: &str) -> Self {
        let mut inputs = Self::of(program, method);
        for (input, bytes) in inputs.meta.inputs.iter().zip(&mut inputs.bytes) {
            if input.tensor().is_some_and(|tensor| tensor.layout.scalar_type() == ScalarType::FLOAT) {
                for (index, element) in bytes.chunks_exact_mut(4).enumerate() {
                    element.copy_from_slice(&((index * 7 % 23) as f32 * 0.13 - 1.4).to_le_bytes());
                }
            }
        }
        inputs
    }

    /// As a run takes them.
    pub fn views(&self) -> Vec<Input<'_>> {
        self.meta.inputs.iter().zip(&self.bytes).map(|(input, data)| view(input, data)).collect()
    }
}

fn view<'a>(input: &'a ValueMeta, data: &'a [u8]) -> Input<'a> {
    match input {
        ValueMeta::Int(value) => Input::Int(*value),
        ValueMeta::Bool(value) => Input::Bool(*value),
        ValueMeta::Double(value) => Input::Double(*value),
        ValueMeta::Text(text) => Input::Text(text),
        ValueMeta::Tensor(tensor) => Input::Tensor(TensorView::new(tensor.layout.clone(), data).unwrap()),
        _ => Input::Null,
    }
}
