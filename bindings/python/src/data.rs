//! Data with names in a file: weights of programs, entries of data files. Read when they are asked for.

use std::sync::Arc;

use edgepack::edit::{Named, Opened, named};
use edgepack::format::limits::Limits;
use edgepack::format::ptd::Accept;
use edgepack::loader::{self, NamedDataMap, Source};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrays::array;
use crate::dtype::name_of;
use crate::lock::Guarded;
use crate::memory::Bytes;
use crate::options::limits;
use crate::problem::{Problem, detached, shielded};
use crate::source::Given;

/// Lists what has a name in a file.
pub fn names_of(source: Arc<dyn Source>, limits: Limits) -> Result<Vec<Named>, Problem> {
    let opened = Opened::from_source(source, limits)?;
    let package = opened.package()?;
    Ok(named(&package)?)
}

/// Finds one of them.
pub fn find<'n>(entries: &'n [Named], name: &str) -> Result<&'n Named, Problem> {
    let missing = || Problem::new("NotFound", format!("there is no tensor and no data of the name {name:?}"));
    entries.iter().find(|entry| entry.name == name).ok_or_else(missing)
}

/// Reads one, or borrows it: a read-only array, or a read-only view of bytes that are not a tensor.
pub fn view<'py>(py: Python<'py>, entry: Named) -> PyResult<Bound<'py, PyAny>> {
    let Named { name, layout, content } = entry;
    let bytes = detached(py, move || content.held().map_err(|error| Problem::io(&name, &error)))?;
    let bytes = Bound::new(py, Bytes::from(bytes))?.into_any();
    match layout {
        Some(layout) => array(py, &layout, &bytes),
        None => py.import("builtins")?.call_method1("memoryview", (bytes,)),
    }
}

/// Type, shape and size of what a name stands for, which is not read.
pub fn describe<'py>(py: Python<'py>, entry: &Named) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("dtype", entry.layout.as_ref().map(|layout| name_of(layout.scalar_type())))?;
    facts.set_item("shape", entry.layout.as_ref().map(|layout| PyTuple::new(py, layout.sizes())).transpose()?)?;
    facts.set_item("bytes", entry.content.len())?;
    Ok(facts)
}

/// A data file: named tensors, and named bytes, by which programs find their weights.
#[pyclass(frozen, mapping, module = "edgepack")]
pub struct DataFile {
    open: Guarded<OpenData>,
}

struct OpenData {
    map: Arc<loader::DataFile>,
    entries: Vec<Named>,
}

impl DataFile {
    /// Opens a file of any generation.
    pub fn from_source(py: Python<'_>, source: Arc<dyn Source>, limits: Limits) -> PyResult<DataFile> {
        let open = detached(py, move || {
            let map = Arc::new(loader::DataFile::from_source(source.clone(), limits, Accept::ALL)?);
            Ok(OpenData { map, entries: names_of(source, limits)? })
        })?;
        Ok(DataFile { open: Guarded::new("data file", open) })
    }

    /// As methods take it.
    pub fn map(&self, py: Python<'_>) -> Result<Arc<dyn NamedDataMap>, Problem> {
        let map = self.open.enter(py)?.get()?.map.clone();
        Ok(map)
    }
}

#[pymethods]
impl DataFile {
    /// Opens a path, bytes or an object with `read`, and verifies it.
    #[staticmethod]
    #[pyo3(signature = (source, *, limits = None, mmap = false))]
    fn open(py: Python<'_>, source: &Bound<'_, PyAny>, limits: Option<&str>, mmap: bool) -> PyResult<DataFile> {
        shielded(|| {
            let limits = self::limits(limits)?;
            DataFile::from_source(py, Given::of(source)?.open(py, mmap)?, limits)
        })
    }

    /// Its names, in the order of the file.
    fn keys(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.open.enter(py)?.get()?.entries.iter().map(|entry| entry.name.clone()).collect())
    }

    /// Description of what a name stands for, which is not read.
    fn describe<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        let entry = find(&self.open.enter(py)?.get()?.entries, name)?.clone();
        describe(py, &entry)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        shielded(|| {
            let entry = find(&self.open.enter(py)?.get()?.entries, name)?.clone();
            view(py, entry)
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.open.enter(py)?.get()?.entries.len())
    }

    fn __contains__(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        Ok(find(&self.open.enter(py)?.get()?.entries, name).is_ok())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pyo3::types::PyList::new(py, self.keys(py)?)?.try_iter()?.into_any())
    }

    /// Gives up the file. Arrays that were taken from it stay.
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
        let mut entered = self.open.enter(py)?;
        Ok(match entered.get() {
            Ok(open) => format!("<edgepack.DataFile with {} names>", open.entries.len()),
            Err(_) => "<edgepack.DataFile, closed>".to_owned(),
        })
    }
}
