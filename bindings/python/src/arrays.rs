//! Arrays in and out: what Python gives is copied into memory of this side, outputs become fresh arrays, and arrays of the
//! caller are filled.
//!
//! Invariants: arrays are touched with the interpreter's lock held and through the copying calls of its buffer protocol alone;
//! nothing here is borrowed when the lock is given up. Elements are never converted: another type is an error.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use edgepack::executor::tensor::TensorRef;
use edgepack::executor::{Input, Output};
use edgepack::format::scalar::ScalarType;
use edgepack::format::tensor::{TensorLayout, TensorView, is_contiguous};
use edgepack::loader::{TensorSignature, ValueMeta};
use pyo3::IntoPyObjectExt;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyByteArray, PyFloat, PyInt, PyString, PyTuple};

use crate::dtype::{name_of, named, numpy_of};
use crate::problem::Problem;

/// A copy of an input.
pub enum Staged {
    /// A tensor.
    Tensor(StagedTensor),
    /// `None`.
    Null,
    /// An integer.
    Int(i64),
    /// A bool.
    Bool(bool),
    /// A double.
    Double(f64),
    /// Text.
    Text(String),
}

/// A copy of an array, in the order of its layout. Words keep the elements aligned.
pub struct StagedTensor {
    layout: TensorLayout,
    words: Vec<u64>,
}

impl StagedTensor {
    fn room(layout: TensorLayout) -> Result<Self, Problem> {
        let count = layout.byte_len().div_ceil(8);
        let mut words = Vec::new();
        let short = |_| Problem::new("LimitError", format!("there is no memory for {} bytes", layout.byte_len()));
        words.try_reserve_exact(count).map_err(short)?;
        words.resize(count, 0);
        Ok(StagedTensor { layout, words })
    }

    /// The elements as a tensor.
    pub fn view(&self) -> Result<TensorView<'_>, Problem> {
        Ok(TensorView::new(self.layout.clone(), cast_slice(&self.words))?)
    }

    fn elements<T: Pod>(&mut self) -> &mut [T] {
        let count = self.layout.byte_len() / size_of::<T>().max(1);
        &mut cast_slice_mut(&mut self.words)[..count]
    }
}

impl Staged {
    /// Copies an input of a method.
    pub fn of(index: usize, given: &Bound<'_, PyAny>, wanted: &ValueMeta) -> PyResult<Staged> {
        if let ValueMeta::Tensor(wanted) = wanted {
            return Ok(Staged::Tensor(tensor(given, wanted, &|message| {
                Problem::input(index, format!("input {index} {message}"))
            })?));
        }
        Ok(if given.is_none() {
            Staged::Null
        } else if given.is_instance_of::<PyBool>() {
            Staged::Bool(given.extract()?)
        } else if given.is_instance_of::<PyFloat>() {
            Staged::Double(given.extract()?)
        } else if given.is_instance_of::<PyInt>() {
            match wanted {
                // As everywhere in Python an integer stands for a float.
                ValueMeta::Double(_) => Staged::Double(given.extract()?),
                _ => Staged::Int(given.extract()?),
            }
        } else if given.is_instance_of::<PyString>() {
            Staged::Text(given.extract()?)
        } else {
            let message = format!("input {index} wants {}, got {}", in_words(wanted), given.get_type().name()?);
            return Err(Problem::input(index, message).into());
        })
    }

    /// As the executor takes it.
    pub fn input(&self) -> Result<Input<'_>, Problem> {
        Ok(match self {
            Staged::Tensor(tensor) => Input::Tensor(tensor.view()?),
            Staged::Null => Input::Null,
            Staged::Int(number) => Input::Int(*number),
            Staged::Bool(value) => Input::Bool(*value),
            Staged::Double(number) => Input::Double(*number),
            Staged::Text(text) => Input::Text(text),
        })
    }
}

fn in_words(wanted: &ValueMeta) -> &'static str {
    match wanted {
        ValueMeta::Null => "None",
        ValueMeta::Int(_) => "an int",
        ValueMeta::Bool(_) => "a bool",
        ValueMeta::Double(_) => "a float",
        ValueMeta::Text(_) => "a str",
        _ => "a list, which methods do not take",
    }
}

/// Copies an array that is to fit a tensor of a program, in that tensor's order of dimensions.
pub fn tensor(
    given: &Bound<'_, PyAny>,
    wanted: &TensorSignature,
    refuse: &dyn Fn(String) -> Problem,
) -> PyResult<StagedTensor> {
    let layout = &wanted.layout;
    let fits = |sizes: &[usize]| {
        let bounds = layout.sizes();
        let within = |(size, bound): (&usize, &usize)| if wanted.dynamic { size <= bound } else { size == bound };
        sizes.len() == bounds.len() && sizes.iter().zip(bounds).all(within)
    };
    let wants = |what: String| {
        let smaller = if wanted.dynamic { " or smaller" } else { "" };
        refuse(format!("wants {layout}{smaller}, got {what}"))
    };
    let told = |scalar_type: ScalarType, sizes: &[usize]| match TensorLayout::contiguous(scalar_type, sizes) {
        Ok(have) => wants(have.to_string()),
        Err(error) => wants(error.to_string()),
    };
    // Arrays of the right type in the usual order need no help of Python.
    if is_contiguous(layout.dim_order()) {
        let scalar_type = layout.scalar_type();
        let direct = match scalar_type {
            ScalarType::FLOAT => direct::<f32>(given, scalar_type, &fits, &told)?,
            ScalarType::DOUBLE => direct::<f64>(given, scalar_type, &fits, &told)?,
            ScalarType::BYTE => direct::<u8>(given, scalar_type, &fits, &told)?,
            ScalarType::CHAR => direct::<i8>(given, scalar_type, &fits, &told)?,
            ScalarType::SHORT => direct::<i16>(given, scalar_type, &fits, &told)?,
            ScalarType::INT => direct::<i32>(given, scalar_type, &fits, &told)?,
            ScalarType::LONG => direct::<i64>(given, scalar_type, &fits, &told)?,
            ScalarType::UINT16 => direct::<u16>(given, scalar_type, &fits, &told)?,
            ScalarType::UINT32 => direct::<u32>(given, scalar_type, &fits, &told)?,
            ScalarType::UINT64 => direct::<u64>(given, scalar_type, &fits, &told)?,
            _ => None,
        };
        if let Some(staged) = direct {
            return Ok(staged);
        }
    }
    let array = Array::of(given, refuse)?;
    if array.scalar_type != layout.scalar_type() || !fits(&array.sizes) {
        return Err(told(array.scalar_type, &array.sizes).into());
    }
    array.copy(layout.dim_order())
}

/// Copies a buffer of elements of this type; `None` if it has others, or there is no buffer.
fn direct<T: Element + Pod>(
    given: &Bound<'_, PyAny>,
    scalar_type: ScalarType,
    fits: &dyn Fn(&[usize]) -> bool,
    told: &dyn Fn(ScalarType, &[usize]) -> Problem,
) -> PyResult<Option<StagedTensor>> {
    let Ok(buffer) = PyBuffer::<T>::get(given) else { return Ok(None) };
    if !is_native(&buffer) {
        return Ok(None);
    }
    let sizes = buffer.shape();
    if !fits(sizes) {
        return Err(told(scalar_type, sizes).into());
    }
    let mut staged = StagedTensor::room(TensorLayout::contiguous(scalar_type, sizes).map_err(Problem::from)?)?;
    buffer.copy_to_slice(given.py(), staged.elements::<T>())?;
    Ok(Some(staged))
}

/// Returns whether elements are in the byte order of this machine.
fn is_native<T: Element>(buffer: &PyBuffer<T>) -> bool {
    match buffer.format().to_bytes().first() {
        Some(b'>' | b'!') => cfg!(target_endian = "big"),
        Some(b'<') => cfg!(target_endian = "little"),
        _ => true,
    }
}

/// Any array, with the name of its type as NumPy, PyTorch or `ml_dtypes` has it.
pub struct Array<'py> {
    array: Bound<'py, PyAny>,
    /// Element type.
    pub scalar_type: ScalarType,
    /// Elements along each dimension.
    pub sizes: Vec<usize>,
}

impl<'py> Array<'py> {
    /// Looks at an object as `edgepack._arrays.array` does: arrays, and what has `__dlpack__` or `__array_interface__`.
    pub fn of(given: &Bound<'py, PyAny>, refuse: &dyn Fn(String) -> Problem) -> PyResult<Self> {
        let (array, name, sizes, problem): (Bound<'py, PyAny>, String, Vec<usize>, Option<String>) =
            helpers(given.py())?.call_method1("array", (given,))?.extract()?;
        match problem {
            None => Ok(Array { array, scalar_type: named(&name)?, sizes }),
            Some(problem) => Err(refuse(problem).into()),
        }
    }

    /// Copies the elements in this order of dimensions.
    pub fn copy(&self, dim_order: &[u8]) -> PyResult<StagedTensor> {
        let py = self.array.py();
        let layout = TensorLayout::new(self.scalar_type, &self.sizes, dim_order).map_err(Problem::from)?;
        let order = PyTuple::new(py, dim_order)?;
        let flat = helpers(py)?.call_method1("flat_bytes", (&self.array, order))?;
        let buffer = PyBuffer::<u8>::get(&flat)?;
        let mut staged = StagedTensor::room(layout)?;
        buffer.copy_to_slice(py, staged.elements::<u8>())?;
        Ok(staged)
    }

    /// Copies the elements in the usual order.
    pub fn contiguous(&self) -> PyResult<StagedTensor> {
        let order: Vec<u8> = (0..u8::try_from(self.sizes.len()).unwrap_or(u8::MAX)).collect();
        self.copy(&order)
    }
}

/// The module with what is easier said in Python.
fn helpers(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static MODULE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("edgepack._arrays")?.into_any().unbind()))?;
    Ok(module.bind(py))
}

/// An output that was copied out of a method's memory.
pub enum Fetched {
    /// A tensor: its shape and elements.
    Tensor(FetchedTensor),
    /// `None`.
    Null,
    /// An integer.
    Int(i64),
    /// A bool.
    Bool(bool),
    /// A double.
    Double(f64),
    /// Text.
    Text(String),
}

/// The elements of an output in memory that belongs to Python.
pub struct FetchedTensor {
    layout: TensorLayout,
    bytes: Py<PyByteArray>,
}

impl Fetched {
    /// Copies an output.
    pub fn of(py: Python<'_>, index: usize, output: Output<'_>) -> PyResult<Fetched> {
        Ok(match output {
            Output::Null => Fetched::Null,
            Output::Int(number) => Fetched::Int(number),
            Output::Bool(value) => Fetched::Bool(value),
            Output::Double(number) => Fetched::Double(number),
            Output::Text(text) => Fetched::Text(text.to_owned()),
            Output::Tensor(tensor) => {
                let layout = TensorLayout::new(tensor.dtype, tensor.sizes, tensor.dim_order).map_err(Problem::from)?;
                Fetched::Tensor(FetchedTensor { bytes: PyByteArray::new(py, &truths(&tensor)).unbind(), layout })
            }
            Output::List(kind) => {
                return Err(
                    Problem::new("RunError", format!("output {index} is a {kind}, which is not given out")).into()
                );
            }
        })
    }

    /// As Python sees it: arrays for tensors.
    pub fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Fetched::Tensor(FetchedTensor { layout, bytes }) => array(py, &layout, bytes.bind(py).as_any()),
            Fetched::Null => Ok(py.None().into_bound(py)),
            Fetched::Int(number) => number.into_bound_py_any(py),
            Fetched::Bool(value) => value.into_bound_py_any(py),
            Fetched::Double(number) => number.into_bound_py_any(py),
            Fetched::Text(text) => text.into_bound_py_any(py),
        }
    }
}

/// The bytes of a tensor; those of a bool are 0 and 1, whatever the program wrote.
fn truths<'a>(tensor: &TensorRef<'a>) -> std::borrow::Cow<'a, [u8]> {
    let bytes = tensor.bytes();
    match tensor.dtype == ScalarType::BOOL && bytes.iter().any(|byte| *byte > 1) {
        true => bytes.iter().map(|byte| u8::from(*byte != 0)).collect(),
        false => bytes.into(),
    }
}

/// An array over the bytes of a buffer, which it holds; it may be written if the buffer may.
pub fn array<'py>(py: Python<'py>, layout: &TensorLayout, buffer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || Ok::<_, PyErr>(py.import("numpy")?.getattr("ndarray")?.unbind()))?;
    let element = layout.scalar_type().size().unwrap_or(1);
    let shape = PyTuple::new(py, layout.sizes())?;
    let strides = || PyTuple::new(py, layout.strides().iter().map(|stride| stride * element).collect::<Vec<_>>());
    match numpy_of(py, layout.scalar_type())? {
        Some(dtype) if is_contiguous(layout.dim_order()) => class.bind(py).call1((shape, dtype, buffer)),
        Some(dtype) => class.bind(py).call1((shape, dtype, buffer, 0, strides()?)),
        None => helpers(py)?.call_method1("raw_tensor", (name_of(layout.scalar_type()), shape, strides()?, buffer)),
    }
}

/// An array of the caller's that an output is copied into.
pub enum Target {
    /// Nothing is wanted of this output.
    Skipped,
    /// A buffer.
    Array(Box<dyn Fill>),
}

/// A writable buffer of elements of one type.
pub trait Fill {
    /// Elements along each dimension.
    fn sizes(&self) -> &[usize];
    /// Copies elements into it, in index order.
    fn fill(&self, py: Python<'_>, words: &[u64]) -> PyResult<()>;
}

impl<T: Element + Pod> Fill for PyBuffer<T> {
    fn sizes(&self) -> &[usize] {
        self.shape()
    }

    fn fill(&self, py: Python<'_>, words: &[u64]) -> PyResult<()> {
        let elements: &[T] = cast_slice(words);
        self.copy_from_slice(py, &elements[..self.item_count()])
    }
}

impl Target {
    /// Takes the array for an output; `None` skips it. Its memory is held, not looked at.
    pub fn of(index: usize, given: &Bound<'_, PyAny>, output: &ValueMeta) -> PyResult<Target> {
        if given.is_none() {
            return Ok(Target::Skipped);
        }
        let refuse = |message: String| Problem::input(index, format!("out {index} {message}"));
        let ValueMeta::Tensor(signature) = output else {
            return Err(refuse("is for an output that is not a tensor: give None".to_owned()).into());
        };
        let layout = &signature.layout;
        let (view, name, sizes, problem): (Bound<'_, PyAny>, String, Vec<usize>, Option<String>) =
            helpers(given.py())?.call_method1("target", (given,))?.extract()?;
        if let Some(problem) = problem {
            return Err(refuse(problem).into());
        }
        let fits = sizes.len() == layout.sizes().len()
            && sizes.iter().zip(layout.sizes()).all(|(have, want)| have == want || signature.dynamic && have < want);
        if name != name_of(layout.scalar_type()) || !fits {
            let have = TensorLayout::contiguous(named(&name)?, &sizes).map_err(Problem::from)?;
            let smaller = if signature.dynamic { " or smaller" } else { "" };
            return Err(refuse(format!("wants {layout}{smaller}, got {have}")).into());
        }
        let buffer: Box<dyn Fill> = match layout.scalar_type().size() {
            Some(1) => Box::new(PyBuffer::<u8>::get(&view)?),
            Some(2) => Box::new(PyBuffer::<u16>::get(&view)?),
            Some(4) => Box::new(PyBuffer::<u32>::get(&view)?),
            Some(8) => Box::new(PyBuffer::<u64>::get(&view)?),
            _ => return Err(refuse(format!("has elements of {name}, which are not copied")).into()),
        };
        Ok(Target::Array(buffer))
    }

    /// Makes sure that an output fits, before anything is copied.
    pub fn check(&self, index: usize, output: &Output<'_>) -> Result<(), Problem> {
        let Target::Array(buffer) = self else { return Ok(()) };
        match output {
            Output::Tensor(tensor) if tensor.sizes == buffer.sizes() => Ok(()),
            Output::Tensor(tensor) => {
                let message = format!("out {index} has the shape {:?}, the output {:?}", buffer.sizes(), tensor.sizes);
                Err(Problem::input(index, message))
            }
            _ => Err(Problem::input(index, format!("output {index} is not a tensor"))),
        }
    }

    /// Copies an output that was checked.
    pub fn fill(&self, py: Python<'_>, output: &Output<'_>) -> PyResult<()> {
        let (Target::Array(buffer), Output::Tensor(tensor)) = (self, output) else { return Ok(()) };
        let layout = TensorLayout::new(tensor.dtype, tensor.sizes, tensor.dim_order).map_err(Problem::from)?;
        let bytes = truths(tensor);
        let view = TensorView::new(layout.clone(), &bytes).map_err(Problem::from)?;
        let usual = TensorLayout::contiguous(layout.scalar_type(), layout.sizes()).map_err(Problem::from)?;
        let mut staged = StagedTensor::room(usual.clone())?;
        match is_contiguous(layout.dim_order()) {
            true => staged.elements::<u8>().copy_from_slice(view.data()),
            false => {
                let turned = view.in_order(usual.dim_order()).map_err(Problem::from)?;
                staged.elements::<u8>().copy_from_slice(turned.data());
            }
        }
        buffer.fill(py, &staged.words)
    }
}
