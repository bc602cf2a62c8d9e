//! Element types as Python knows them: by PyTorch's names, which are NumPy's where it has the type.
//!
//! Invariant: `edgepack._dtypes.DTYPES` has the type of elements for each number of an element type, or `None`.

use edgepack::format::scalar::ScalarType;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;

use crate::problem::Problem;

/// The name of an element type: `float32`.
pub fn name_of(scalar_type: ScalarType) -> &'static str {
    scalar_type.names().map_or("unknown", |names| names.torch)
}

/// The element type of a name.
pub fn named(name: &str) -> Result<ScalarType, Problem> {
    let found = ScalarType::called(|names| names.torch == name);
    found.ok_or_else(|| Problem::new("Error", format!("{name} is not an element type of programs")))
}

/// The type of elements that NumPy has for it, with `ml_dtypes` if that is installed; `None` for the others.
pub fn numpy_of<'py>(py: Python<'py>, scalar_type: ScalarType) -> PyResult<Option<Bound<'py, PyAny>>> {
    static LIST: PyOnceLock<Py<PyList>> = PyOnceLock::new();
    let list = LIST.get_or_try_init(py, || {
        let names: Vec<&str> = edgepack::format::scalar::Names::ALL.iter().map(|names| names.torch).collect();
        let list = py.import("edgepack._dtypes")?.call_method1("dtypes", (names,))?;
        Ok::<_, PyErr>(list.cast_into::<PyList>()?.unbind())
    })?;
    let index = usize::try_from(scalar_type.0).unwrap_or(usize::MAX);
    let item = list.bind(py).get_item(index)?;
    Ok((!item.is_none()).then_some(item))
}
