//! Programs: opened and verified, their methods described and loaded.

use std::path::PathBuf;
use std::sync::Arc;

use edgepack::executor::{LoadMethod, Options};
use edgepack::format::pte::metadata::MetadataValue;
use edgepack::kernels;
use edgepack::loader::{self, MethodMeta, NamedDataMap, OpenOptions, ProgramMethod as Handle, ValueMeta};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::data::{DataFile, describe, find, names_of, view};
use crate::lock::Guarded;
use crate::method::Method;
use crate::options;
use crate::problem::{Problem, detached, shielded};
use crate::source::Given;
use crate::value;

/// A program, verified. Its methods share it: it stays in memory until the last of them is gone.
#[pyclass(frozen, module = "edgepack")]
pub struct Program {
    open: Guarded<loader::Program>,
}

impl Program {
    fn program(&self, py: Python<'_>) -> Result<loader::Program, Problem> {
        Ok(self.open.enter(py)?.get()?.clone())
    }

    fn names(&self, py: Python<'_>) -> PyResult<Vec<edgepack::edit::Named>> {
        let program = self.program(py)?;
        detached(py, move || names_of(program.source().clone(), *program.limits()))
    }
}

#[pymethods]
impl Program {
    /// Opens a path, bytes or an object with `read`, and verifies it. Of a file only the head is read, weights when they are
    /// wanted; with `mmap` they are mapped: the file must then not change while the program, a method or a view of its weights
    /// is in use. `limits` is "default", or "hostile" for files of strangers.
    #[staticmethod]
    #[pyo3(signature = (source, *, limits = None, mmap = false))]
    fn open(py: Python<'_>, source: &Bound<'_, PyAny>, limits: Option<&str>, mmap: bool) -> PyResult<Program> {
        shielded(|| {
            let limits = options::limits(limits)?;
            let source = Given::of(source)?.open(py, mmap)?;
            let program = detached(py, move || Ok(OpenOptions { limits }.open_source(source)?))?;
            Ok(Program { open: Guarded::new("program", program) })
        })
    }

    /// Names of its methods, in the order of the file.
    #[getter]
    fn methods(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let program = self.program(py)?;
        Ok(program.method_names().map_err(Problem::from)?)
    }

    /// One of its methods, not loaded.
    #[pyo3(signature = (name = "forward"))]
    fn method(&self, py: Python<'_>, name: &str) -> PyResult<ProgramMethod> {
        shielded(|| {
            let handle = self.program(py)?.method(name).map_err(Problem::from)?;
            let meta = handle.meta().map_err(Problem::from)?;
            Ok(ProgramMethod { handle, meta })
        })
    }

    /// Names of its constants, initial values and named data, each with type, shape and size.
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        shielded(|| {
            let all = PyDict::new(py);
            for entry in self.names(py)? {
                all.set_item(&entry.name, describe(py, &entry)?)?;
            }
            Ok(all)
        })
    }

    /// A constant, an initial value or named data: a read-only array, or a read-only view of bytes that are not a tensor. It
    /// borrows the bytes or the mapping that the program was opened from, and keeps them alive; of a file it is read.
    fn weight<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        shielded(|| {
            let entry = find(&self.names(py)?, name)?.clone();
            view(py, entry)
        })
    }

    /// Facts that the program states of itself: values of constant methods, and settings.
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        shielded(|| {
            let program = self.program(py)?;
            let metadata = detached(py, move || Ok(program.metadata()?))?;
            let all = PyDict::new(py);
            for (name, values) in &metadata.constant_methods {
                if let [value] = values.as_slice() {
                    match value {
                        ValueMeta::Int(number) => all.set_item(name, number)?,
                        ValueMeta::Bool(value) => all.set_item(name, value)?,
                        ValueMeta::Double(number) => all.set_item(name, number)?,
                        ValueMeta::Text(text) => all.set_item(name, text)?,
                        _ => {}
                    }
                }
            }
            for (name, bytes) in &metadata.named_data {
                let value = match MetadataValue::decode(bytes) {
                    Ok(MetadataValue::Text(text)) => text.into_bound_py_any(py)?,
                    Ok(MetadataValue::Int(number)) => number.into_bound_py_any(py)?,
                    Ok(MetadataValue::Float(number)) => number.into_bound_py_any(py)?,
                    Ok(MetadataValue::Ints(numbers)) => numbers.into_bound_py_any(py)?,
                    _ => PyBytes::new(py, bytes).into_any(),
                };
                all.set_item(name, value)?;
            }
            Ok(all)
        })
    }

    /// Gives up the file. Loaded methods and views of weights stay.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(self.open.close(py)?)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Ok(program) = self.program(py) else { return Ok("<edgepack.Program, closed>".to_owned()) };
        let names = program.method_names().map_err(Problem::from)?;
        Ok(format!("<edgepack.Program with {}>", names.join(", ")))
    }
}

/// A method of a program, not loaded.
#[pyclass(frozen, module = "edgepack")]
pub struct ProgramMethod {
    handle: Handle,
    meta: MethodMeta,
}

#[pymethods]
impl ProgramMethod {
    /// The name that the program has for it.
    #[getter]
    fn name(&self) -> &str {
        &self.meta.name
    }

    /// Its inputs.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        value::all_to_python(py, &self.meta.inputs)
    }

    /// Its outputs.
    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        value::all_to_python(py, &self.meta.outputs)
    }

    /// Backends that it was lowered to, one for each delegate.
    #[getter]
    fn backends(&self) -> Vec<String> {
        self.meta.backends.clone()
    }

    /// Loads it: finds kernels for its operators, lays out its memory, packs its weights. `data` are the data files that it
    /// takes weights from: `DataFile` objects, or whatever those open. `threads` is the number of threads it computes with, as
    /// many as the machine has without it. Without `optimize` it runs instruction by instruction as it was exported.
    /// `pack_cache` is a folder in which packed weights stay for the next load. With `reference` arithmetic follows the stock
    /// kernels of ExecuTorch where PyTorch computes otherwise.
    #[pyo3(signature = (*, data = None, threads = None, optimize = true, limits = None, pack_cache = None,
        reference = false))]
    #[expect(clippy::too_many_arguments, reason = "they are options by name")]
    fn load(
        &self,
        py: Python<'_>,
        data: Option<&Bound<'_, PyAny>>,
        threads: Option<usize>,
        optimize: bool,
        limits: Option<&str>,
        pack_cache: Option<PathBuf>,
        reference: bool,
    ) -> PyResult<Method> {
        shielded(|| {
            let mut options = Options {
                backends: edgepack::backends(),
                data: data_files(py, data)?,
                no_optimize: !optimize,
                threads,
                ..Options::default()
            };
            if let Some(name) = limits {
                options.limits = Some(options::limits(Some(name))?);
            }
            let handle = self.handle.clone();
            let method = detached(py, move || {
                if let Some(folder) = pack_cache {
                    options = options.pack_cache(&folder).map_err(|error| Problem::new("AccessError", error))?;
                }
                let registry = if reference { kernels::reference_registry() } else { kernels::registry() };
                Ok(handle.load(&registry, &options)?)
            })?;
            Ok(Method::new(method, self.meta.clone()))
        })
    }

    fn __repr__(&self) -> String {
        let MethodMeta { name, inputs, outputs, .. } = &self.meta;
        format!("<edgepack.ProgramMethod {name} with {} inputs and {} outputs>", inputs.len(), outputs.len())
    }
}

/// Data files of a method: one, or several.
pub fn data_files(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Arc<dyn NamedDataMap>>> {
    let Some(given) = given.filter(|given| !given.is_none()) else { return Ok(Vec::new()) };
    let several: Vec<Bound<'_, PyAny>> =
        match given.is_instance_of::<pyo3::types::PyList>() || given.is_instance_of::<PyTuple>() {
            true => given.try_iter()?.collect::<PyResult<_>>()?,
            false => vec![given.clone()],
        };
    let open = |object: Bound<'_, PyAny>| match object.cast::<DataFile>() {
        Ok(file) => Ok(file.get().map(py)?),
        Err(_) => {
            let source = Given::of(&object)?.open(py, false)?;
            Ok(DataFile::from_source(py, source, options::limits(None)?)?.map(py)?)
        }
    };
    several.into_iter().map(open).collect()
}
