//! Inputs and outputs of a method as its program describes them.

use edgepack::loader::ValueMeta;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use crate::dtype::name_of;

/// The kind of a value: `tensor`, `int`, `none`.
pub fn kind_of(value: &ValueMeta) -> &'static str {
    match value {
        ValueMeta::Null => "none",
        ValueMeta::Int(_) => "int",
        ValueMeta::Bool(_) => "bool",
        ValueMeta::Double(_) => "float",
        ValueMeta::Text(_) => "str",
        ValueMeta::Tensor(_) => "tensor",
        ValueMeta::Other(kind) => kind,
        _ => "unknown",
    }
}

/// As an `edgepack.Value`.
pub fn to_python<'py>(py: Python<'py>, value: &ValueMeta) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class =
        CLASS.get_or_try_init(py, || Ok::<_, PyErr>(py.import("edgepack._types")?.getattr("Value")?.unbind()))?;
    let none = || py.None().into_bound(py);
    let traced = match value {
        ValueMeta::Int(number) => number.into_bound_py_any(py)?,
        ValueMeta::Bool(value) => value.into_bound_py_any(py)?,
        ValueMeta::Double(number) => number.into_bound_py_any(py)?,
        ValueMeta::Text(text) => text.into_bound_py_any(py)?,
        _ => none(),
    };
    let Some(tensor) = value.tensor() else {
        return class.bind(py).call1((kind_of(value), none(), none(), none(), false, none(), traced));
    };
    let layout = &tensor.layout;
    class.bind(py).call1((
        kind_of(value),
        name_of(layout.scalar_type()),
        PyTuple::new(py, layout.sizes())?,
        PyTuple::new(py, layout.dim_order())?,
        tensor.dynamic,
        tensor.name.as_deref(),
        traced,
    ))
}

/// As a tuple of `edgepack.Value`.
pub fn all_to_python<'py>(py: Python<'py>, values: &[ValueMeta]) -> PyResult<Bound<'py, PyTuple>> {
    let values: Vec<_> = values.iter().map(|value| to_python(py, value)).collect::<PyResult<_>>()?;
    PyTuple::new(py, values)
}
