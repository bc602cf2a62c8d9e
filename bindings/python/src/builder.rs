//! Programs made value by value: constants, inputs, calls of operators, outputs.
//!
//! Invariant: handles remember the builder that made them; one that strays into another is refused where it is used.

use edgepack::builder::BuildError;
use edgepack::builder::pte::{Arg, IntArg, Out, ProgramBuilder as Builder, TensorArg, TensorSpec, ValueId};
use edgepack::format::pte::metadata::MetadataValue;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::arrays::{Array, StagedTensor};
use crate::dtype::named;
use crate::lock::Guarded;
use crate::problem::{Problem, shielded};

impl From<BuildError> for Problem {
    fn from(error: BuildError) -> Problem {
        Problem::new("EditError", error)
    }
}

/// A value of a method under construction, or a constant of its program.
#[pyclass(frozen, module = "edgepack")]
pub struct Handle(TensorArg);

#[pymethods]
impl Handle {
    fn __repr__(&self) -> &'static str {
        match self.0 {
            TensorArg::Constant(_) => "<edgepack.Handle of a constant>",
            _ => "<edgepack.Handle of a value>",
        }
    }
}

fn handle(py: Python<'_>, id: ValueId) -> PyResult<Bound<'_, PyAny>> {
    Ok(Bound::new(py, Handle(TensorArg::Value(id)))?.into_any())
}

/// A program under construction.
#[pyclass(frozen, module = "edgepack")]
pub struct ProgramBuilder {
    open: Guarded<Builder<'static>>,
}

fn staged(name: &str, array: &Bound<'_, PyAny>) -> PyResult<StagedTensor> {
    Array::of(array, &|message| Problem::new("EditError", format!("{name} {message}")))?.contiguous()
}

#[pymethods]
impl ProgramBuilder {
    #[new]
    fn new() -> Self {
        ProgramBuilder { open: Guarded::new("builder", Builder::new()) }
    }

    /// Adds a constant for any of the methods; equal bytes are stored once.
    fn constant<'py>(&self, py: Python<'py>, name: &str, array: &Bound<'py, PyAny>) -> PyResult<Handle> {
        shielded(|| {
            let staged = staged(name, array)?;
            let view = staged.view()?;
            let (layout, data) = (view.layout().clone(), view.data().to_vec());
            let id = self.open.enter(py)?.get()?.constant_from(name, layout, data).map_err(Problem::from)?;
            Ok(Handle(TensorArg::Constant(id)))
        })
    }

    /// Begins a method, or goes on with the one of this name.
    fn method(slf: Bound<'_, Self>, name: &str) -> PyResult<MethodBuilder> {
        slf.get().open.enter(slf.py())?.get()?.method(name);
        Ok(MethodBuilder { program: slf.unbind(), name: name.to_owned() })
    }

    /// Adds a method that takes nothing, runs nothing and gives these values.
    #[pyo3(signature = (name, *values))]
    fn getter(&self, py: Python<'_>, name: &str, values: &Bound<'_, PyTuple>) -> PyResult<()> {
        shielded(|| {
            let values = values.iter().map(|value| argument(&value)).collect::<PyResult<Vec<_>>>()?;
            Ok(self.open.enter(py)?.get()?.getter(name, values).map_err(Problem::from)?)
        })
    }

    /// Sets a setting that the program states about itself: an int, a float, text, a list of ints, or bytes.
    fn metadata(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        shielded(|| {
            let value = if value.is_instance_of::<PyInt>() {
                MetadataValue::Int(value.extract()?)
            } else if value.is_instance_of::<PyFloat>() {
                MetadataValue::Float(value.extract()?)
            } else if value.is_instance_of::<PyString>() {
                MetadataValue::Text(value.extract()?)
            } else if value.is_instance_of::<PyBytes>() {
                MetadataValue::Bytes(value.extract()?)
            } else {
                MetadataValue::Ints(value.extract()?)
            };
            Ok(self.open.enter(py)?.get()?.metadata(name, value).map_err(Problem::from)?)
        })
    }

    /// Plans memory, verifies, and returns the bytes of the program. The builder is used up.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        shielded(|| {
            let builder = self.open.take(py)?;
            let bytes = crate::problem::detached(py, move || Ok(builder.finish()?.to_bytes()?))?;
            Ok(PyBytes::new(py, &bytes))
        })
    }
}

/// A method under construction.
#[pyclass(frozen, module = "edgepack")]
pub struct MethodBuilder {
    program: Py<ProgramBuilder>,
    name: String,
}

#[pymethods]
impl MethodBuilder {
    /// The next input, a tensor; with `dynamic` its sizes are upper bounds.
    #[pyo3(signature = (dtype, shape, *, dynamic = false))]
    fn input<'py>(
        &self,
        py: Python<'py>,
        dtype: &str,
        shape: Vec<usize>,
        dynamic: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        shielded(|| {
            let spec = TensorSpec::new(named(dtype)?, shape);
            let spec = if dynamic { spec.dynamic() } else { spec };
            let id = self.with(py, |method| method.input(spec))?;
            handle(py, id)
        })
    }

    /// Makes a number or a text the next input. Runtimes take only the one given here.
    fn input_value<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        shielded(|| {
            let value = argument(value)?;
            let id = self.with(py, |method| method.input_value(value))?;
            handle(py, id)
        })
    }

    /// State: a tensor that stays from one run to the next and begins with these values.
    fn state<'py>(&self, py: Python<'py>, name: &str, initial: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        shielded(|| {
            let staged = staged(name, initial)?;
            let view = staged.view()?;
            let (spec, data) = (TensorSpec::of(view.layout()), view.data().to_vec());
            let id = self.with(py, |method| method.state_from(name, spec, data, 0))?;
            handle(py, id)
        })
    }

    /// Calls an operator by its full name, such as `aten::add.out`, or by schema, with the arguments in the schema's order but
    /// for those that only receive results; trailing ones with defaults may be left out.
    ///
    /// A result is a tensor like another (`like=x`), a new one (`out=("float32", (2, 3))`), or a value that is there
    /// (`out=x`); of several results `out` is a list. Returns the result, a tuple of several, or `None`.
    #[pyo3(signature = (operator, *args, out = None, like = None))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        operator: &str,
        args: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
        like: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        shielded(|| {
            let args = args.iter().map(|given| argument(&given)).collect::<PyResult<Vec<_>>>()?;
            let outs = match (out, like) {
                (Some(_), Some(_)) => return Err(PyTypeError::new_err("out and like say the same: give one of them")),
                (None, None) => Vec::new(),
                (None, Some(like)) => vec![Out::Tensor(TensorSpec::like(tensor(like)?))],
                (Some(out), None) => match out.cast::<PyList>() {
                    Ok(several) => several.iter().map(|out| result(&out)).collect::<PyResult<_>>()?,
                    Err(_) => vec![result(out)?],
                },
            };
            let ids = self.with(py, |method| method.call(operator, args, outs))?;
            match ids.as_slice() {
                [] => Ok(py.None().into_bound(py)),
                [id] => handle(py, *id),
                several => {
                    let handles = several.iter().map(|id| handle(py, *id)).collect::<PyResult<Vec<_>>>()?;
                    PyTuple::new(py, handles)?.into_bound_py_any(py)
                }
            }
        })
    }

    /// Makes values the next outputs: tensors, numbers, texts.
    #[pyo3(signature = (*values))]
    fn output(&self, py: Python<'_>, values: &Bound<'_, PyTuple>) -> PyResult<()> {
        shielded(|| {
            let values = values.iter().map(|value| argument(&value)).collect::<PyResult<Vec<_>>>()?;
            self.with(py, |method| values.into_iter().try_for_each(|value| method.output(value).map(drop)))
        })
    }
}

impl MethodBuilder {
    fn with<T>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut edgepack::builder::pte::MethodBuilder<'_, 'static>) -> Result<T, BuildError>,
    ) -> PyResult<T> {
        let mut entered = self.program.get().open.enter(py)?;
        let made = change(&mut entered.get()?.method(&self.name));
        Ok(made.map_err(Problem::from)?)
    }
}

fn tensor(given: &Bound<'_, PyAny>) -> PyResult<TensorArg> {
    match given.cast::<Handle>() {
        Ok(handle) => Ok(handle.get().0),
        Err(_) => {
            Err(PyTypeError::new_err(format!("a value or constant of the builder is wanted, not {}", given.repr()?)))
        }
    }
}

/// A result: a value that is there, or type and shape of a tensor to make.
fn result(given: &Bound<'_, PyAny>) -> PyResult<Out> {
    if let Ok(handle) = given.cast::<Handle>() {
        return match handle.get().0 {
            TensorArg::Value(id) => Ok(Out::Value(id)),
            _ => Err(Problem::new("EditError", "a constant cannot receive a result").into()),
        };
    }
    let (dtype, shape): (String, Vec<usize>) = given.extract()?;
    Ok(Out::Tensor(TensorSpec::new(named(&dtype)?, shape)))
}

/// An argument of an operator.
fn argument(given: &Bound<'_, PyAny>) -> PyResult<Arg> {
    if given.is_none() {
        return Ok(Arg::None);
    }
    if let Ok(handle) = given.cast::<Handle>() {
        return Ok(match handle.get().0 {
            TensorArg::Value(id) => Arg::Value(id),
            TensorArg::Constant(id) => Arg::Constant(id),
            _ => return Err(PyTypeError::new_err("an unknown kind of value")),
        });
    }
    if given.is_instance_of::<PyBool>() {
        return Ok(Arg::Bool(given.extract()?));
    }
    if given.is_instance_of::<PyInt>() {
        return Ok(Arg::Int(given.extract()?));
    }
    if given.is_instance_of::<PyFloat>() {
        return Ok(Arg::Double(given.extract()?));
    }
    if given.is_instance_of::<PyString>() {
        return Ok(Arg::Text(given.extract()?));
    }
    if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        return list(&given.try_iter()?.collect::<PyResult<Vec<_>>>()?);
    }
    Err(PyTypeError::new_err(format!("{} is not an argument of an operator", given.repr()?)))
}

/// A list: of bools, of ints, of floats, or of tensors, some of which may be missing.
fn list(items: &[Bound<'_, PyAny>]) -> PyResult<Arg> {
    let all = |is: &dyn Fn(&Bound<'_, PyAny>) -> bool| !items.is_empty() && items.iter().all(is);
    if all(&|item| item.is_instance_of::<PyBool>()) {
        return Ok(Arg::Bools(items.iter().map(|item| item.extract()).collect::<PyResult<_>>()?));
    }
    if all(&|item| item.is_instance_of::<Handle>()) {
        return Ok(Arg::Tensors(items.iter().map(tensor).collect::<PyResult<_>>()?));
    }
    if all(&|item| item.is_none() || item.is_instance_of::<Handle>()) {
        let item = |item: &Bound<'_, PyAny>| if item.is_none() { Ok(None) } else { tensor(item).map(Some) };
        return Ok(Arg::OptionalTensors(items.iter().map(item).collect::<PyResult<_>>()?));
    }
    if all(&|item| item.is_instance_of::<PyFloat>()) {
        return Ok(Arg::Doubles(items.iter().map(|item| item.extract()).collect::<PyResult<_>>()?));
    }
    let item = |item: &Bound<'_, PyAny>| match item.cast::<Handle>().map(|handle| handle.get().0) {
        Ok(TensorArg::Value(id)) => Ok(IntArg::Value(id)),
        _ => Ok(IntArg::Literal(item.extract()?)),
    };
    Ok(Arg::Ints(items.iter().map(item).collect::<PyResult<_>>()?))
}
