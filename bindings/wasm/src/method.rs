//! A method that is loaded: its inputs are set, it runs, its outputs are taken.

use std::sync::Arc;

use edgepack::executor::{Input, Method, Options};
use edgepack::format::FileKind;
use edgepack::format::bundle::BundleRef;
use edgepack::format::scalar::ScalarType;
use edgepack::format::tensor::{TensorBuf, TensorLayout};
use edgepack::kernels;
use edgepack::loader::{
    FileHead, MemorySource, MethodMeta, NamedDataMap, OpenOptions, Program, Source, ValueMeta, machine_limits,
};
use edgepack_cli::inputs::image::Preparation;
use edgepack_cli::interchange::Picture;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::failure::{failed, unreadable, usage};
use crate::value::{Described, output};

/// A method of a program, in memory and ready to run.
#[wasm_bindgen]
pub struct LoadedMethod {
    method: Method,
    meta: MethodMeta,
    given: Vec<Given>,
}

/// An input as it was set.
enum Given {
    /// Not yet.
    Nothing,
    /// As the program was traced.
    Traced,
    Int(i64),
    Bool(bool),
    Double(f64),
    Tensor(TensorBuf),
}

impl LoadedMethod {
    /// Loads a method of a program, or of the program in a bundle.
    pub(crate) fn load(
        source: Arc<dyn Source>,
        file: &str,
        method: Option<String>,
        data: Vec<Arc<dyn NamedDataMap>>,
    ) -> Result<LoadedMethod, JsValue> {
        let program = program(source, file)?;
        let name = match method {
            Some(name) => name,
            None => chosen(program.method_names().map_err(unreadable)?)?,
        };
        let meta = program.method_meta(&name).map_err(usage)?;
        let options = Options { backends: edgepack::backends(), data, ..Options::default() };
        let method = Method::load(&program, &name, &kernels::registry(), &options).map_err(failed)?;
        let given = meta.inputs.iter().map(|input| match input {
            ValueMeta::Tensor(_) | ValueMeta::Other(_) => Given::Nothing,
            _ => Given::Traced,
        });
        Ok(LoadedMethod { method, given: given.collect(), meta })
    }

    fn tensor(&self, index: usize) -> Result<&TensorLayout, JsValue> {
        match self.meta.inputs.get(index) {
            Some(ValueMeta::Tensor(tensor)) => Ok(&tensor.layout),
            Some(_) => Err(usage(format!("input {index} is not a tensor"))),
            None => Err(usage(format!("there is no input {index}: the method takes {}", self.meta.inputs.len()))),
        }
    }
}

/// Opens a program, or the one in a bundle.
fn program(source: Arc<dyn Source>, file: &str) -> Result<Program, JsValue> {
    let about = |error: &dyn std::fmt::Display| unreadable(format!("{file}: {error}"));
    let limits = machine_limits();
    let head = FileHead::detect(&*source, &limits).map_err(|error| about(&error))?;
    let source: Arc<dyn Source> = match head.kind {
        FileKind::Program => source,
        FileKind::Bundle => {
            let bytes = head.read(&*source, &limits).map_err(|error| about(&error))?;
            let bundle = BundleRef::parse(&bytes, &limits).map_err(|findings| about(&findings))?;
            Arc::new(MemorySource::new(bundle.program_bytes()))
        }
        kind => return Err(usage(format!("{file}: methods are loaded from programs, not from this {}", kind.name()))),
    };
    OpenOptions { limits }.open_source(source).map_err(|error| about(&error))
}

/// The only method, or `forward`.
fn chosen(names: Vec<String>) -> Result<String, JsValue> {
    match names.as_slice() {
        [only] => Ok(only.clone()),
        names if names.iter().any(|name| name == "forward") => Ok("forward".to_owned()),
        names => Err(usage(format!("name one of the methods: {}", names.join(", ")))),
    }
}

#[wasm_bindgen]
impl LoadedMethod {
    /// Name of the method.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        self.meta.name.clone()
    }

    /// Its inputs and outputs, as JSON.
    pub fn signature(&self) -> Result<String, JsValue> {
        let describe = |values: &[ValueMeta]| values.iter().map(Described::of).collect::<Vec<_>>();
        let both = (describe(&self.meta.inputs), describe(&self.meta.outputs));
        serde_json::to_string(&both).map_err(failed)
    }

    /// Bytes of memory that the method takes, weights that are repacked and planned memory included.
    #[wasm_bindgen(js_name = memoryBytes)]
    pub fn memory_bytes(&self) -> f64 {
        self.method.memory_bytes().heap() as f64
    }

    /// Sets an input to these elements, little-endian and in index order. Without sizes they are those of the method.
    #[wasm_bindgen(js_name = setTensor)]
    pub fn set_tensor(
        &mut self,
        index: usize,
        dtype: &str,
        sizes: Option<Vec<u32>>,
        elements: &Uint8Array,
    ) -> Result<(), JsValue> {
        let wanted = self.tensor(index)?;
        let element = ScalarType::from_text(dtype).ok_or_else(|| usage(format!("{dtype:?} is not an element type")))?;
        let sizes: Vec<usize> = match &sizes {
            Some(sizes) => sizes.iter().map(|size| *size as usize).collect(),
            None => wanted.sizes().to_vec(),
        };
        let layout = TensorLayout::contiguous(element, &sizes).map_err(usage)?;
        let (have, want) = (elements.length() as usize, layout.byte_len());
        if have != want {
            return Err(usage(format!("input {index}: {have} bytes, {layout} has {want}")));
        }
        let order = wanted.dim_order().to_vec();
        // The bytes of the last time are written over where they are as many.
        let mut data = match std::mem::replace(&mut self.given[index], Given::Nothing) {
            Given::Tensor(old) if old.layout().byte_len() == want => old.into_data(),
            _ => {
                let mut fresh = Vec::new();
                fresh.try_reserve_exact(want).map_err(usage)?;
                fresh.resize(want, 0);
                fresh
            }
        };
        elements.copy_to(&mut data);
        let mut tensor = TensorBuf::from_bytes(layout, data).map_err(usage)?;
        if !order.is_sorted() && order.len() == sizes.len() {
            tensor = tensor.in_order(&order).map_err(usage)?;
        }
        self.given[index] = Given::Tensor(tensor);
        Ok(())
    }

    /// Sets an input that is an integer, a bool or a double.
    #[wasm_bindgen(js_name = setNumber)]
    pub fn set_number(&mut self, index: usize, value: &JsValue) -> Result<(), JsValue> {
        let wrong = |what| usage(format!("input {index} is {what}"));
        self.given[index] = match self.meta.inputs.get(index) {
            Some(ValueMeta::Int(_)) => {
                let whole = value.as_f64().filter(|value| value.fract() == 0.0).map(|value| value as i64);
                let big = i64::try_from(value.clone()).ok();
                Given::Int(big.or(whole).ok_or_else(|| wrong("an integer"))?)
            }
            Some(ValueMeta::Bool(_)) => Given::Bool(value.as_bool().ok_or_else(|| wrong("a bool"))?),
            Some(ValueMeta::Double(_)) => Given::Double(value.as_f64().ok_or_else(|| wrong("a double"))?),
            Some(_) => return Err(usage(format!("input {index} is not a number"))),
            None => return Err(usage(format!("there is no input {index}: the method takes {}", self.given.len()))),
        };
        Ok(())
    }

    /// Sets an input to a picture: rows of pixels of red, green, blue and transparency, as a canvas has them, prepared as
    /// `edgepack run --image` says.
    #[wasm_bindgen(js_name = setPicture)]
    pub fn set_picture(
        &mut self,
        index: usize,
        pixels: &Uint8Array,
        width: usize,
        height: usize,
        preparation: &str,
    ) -> Result<(), JsValue> {
        let layout = self.tensor(index)?.clone();
        let preparation: Preparation = preparation.parse().map_err(|error: String| usage(error))?;
        let pixels = pixels.to_vec();
        if width.checked_mul(height).and_then(|count| count.checked_mul(4)) != Some(pixels.len()) || pixels.is_empty() {
            return Err(usage(format!("{} bytes are not {width} times {height} pixels", pixels.len())));
        }
        let pixels = pixels.chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
        let tensor = preparation.tensor(&Picture { width, height, pixels }, &layout);
        let tensor = tensor.map_err(|error| usage(format!("input {index}: {error}")))?;
        self.given[index] = Given::Tensor(tensor.in_order(layout.dim_order()).map_err(usage)?);
        Ok(())
    }

    /// Runs the method.
    pub fn run(&mut self) -> Result<(), JsValue> {
        let mut inputs = Vec::with_capacity(self.given.len());
        for (index, (given, meta)) in self.given.iter().zip(&self.meta.inputs).enumerate() {
            inputs.push(match (given, meta) {
                (Given::Tensor(tensor), _) => Input::Tensor(tensor.view()),
                (Given::Int(value), _) | (Given::Traced, ValueMeta::Int(value)) => Input::Int(*value),
                (Given::Bool(value), _) | (Given::Traced, ValueMeta::Bool(value)) => Input::Bool(*value),
                (Given::Double(value), _) | (Given::Traced, ValueMeta::Double(value)) => Input::Double(*value),
                (Given::Traced, ValueMeta::Text(text)) => Input::Text(text),
                (Given::Traced, ValueMeta::Null) => Input::Null,
                _ => return Err(usage(format!("input {index} was not set"))),
            });
        }
        self.method.run(&inputs).map_err(failed)?;
        Ok(())
    }

    /// Copies of the outputs of the last run; each is an array of its kind and what there is to say of it.
    pub fn outputs(&self) -> Result<Array, JsValue> {
        self.method.outputs().iter().map(|value| output(value).map(JsValue::from)).collect()
    }
}
