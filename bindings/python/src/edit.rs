//! Files taken apart and put together: bytes in, bytes out. What comes out was verified.

use std::collections::HashMap;

use edgepack::builder::{NamedDataStore, ptd};
use edgepack::edit::{self, Glob, NewTensor, Opened, Package, SplitOptions};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{Array, StagedTensor};
use crate::options::limits;
use crate::problem::{Problem, detached, shielded};
use crate::source::Given;

fn opened(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Opened> {
    let source = Given::of(source)?.open(py, false)?;
    let limits = limits(None)?;
    detached(py, move || Ok(Opened::from_source(source, limits)?))
}

/// The bytes of a file that breaks no rule.
fn written(package: &Package<'_>) -> Result<Vec<u8>, Problem> {
    let ready = package.ready()?;
    let findings = ready.verify();
    if findings.has_errors() {
        return Err(edit::Error::Unsound(findings).into());
    }
    let mut bytes = Vec::new();
    ready.write_to(&mut bytes).map_err(|error| Problem::io("the result", &error))?;
    Ok(bytes)
}

/// Moves constants out of a program into a data file: the program, the data file, the names that were moved.
#[pyfunction]
#[pyo3(signature = (program, *, matching = None, named = false))]
pub fn split<'py>(
    py: Python<'py>,
    program: &Bound<'py, PyAny>,
    matching: Option<&str>,
    named: bool,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, Vec<String>)> {
    shielded(|| {
        let opened = opened(py, program)?;
        let options = SplitOptions { matching: matching.map(Glob::new), named };
        let (program, data, keys) = detached(py, move || {
            let parts = edit::split(opened.package()?, &options)?;
            Ok((written(&parts.program)?, written(&parts.data)?, parts.keys))
        })?;
        Ok((PyBytes::new(py, &program), PyBytes::new(py, &data), keys))
    })
}

/// Moves what is in data files into a program.
#[pyfunction]
pub fn join<'py>(
    py: Python<'py>,
    program: &Bound<'py, PyAny>,
    data: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    shielded(|| {
        let program = opened(py, program)?;
        let data: Vec<Opened> = data.iter().map(|data| opened(py, data)).collect::<PyResult<_>>()?;
        let bytes = detached(py, move || {
            let data: Vec<Package<'_>> = data.iter().map(Opened::package).collect::<Result<_, _>>()?;
            written(&edit::join(program.package()?, &data)?)
        })?;
        Ok(PyBytes::new(py, &bytes))
    })
}

/// Copies the arrays of a dictionary.
fn staged(tensors: &HashMap<String, Bound<'_, PyAny>>) -> PyResult<Vec<(String, StagedTensor)>> {
    let mut names: Vec<&String> = tensors.keys().collect();
    names.sort();
    let stage = |name: &String| {
        let refuse = |message: String| Problem::new("EditError", format!("{name} {message}"));
        Ok((name.clone(), Array::of(&tensors[name], &refuse)?.contiguous()?))
    };
    names.into_iter().map(stage).collect()
}

/// Replaces the data of tensors by name.
#[pyfunction]
pub fn patch<'py>(
    py: Python<'py>,
    file: &Bound<'py, PyAny>,
    tensors: HashMap<String, Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    shielded(|| {
        let opened = opened(py, file)?;
        let staged = staged(&tensors)?;
        let bytes = detached(py, move || {
            let new: Vec<NewTensor<'_>> = staged
                .iter()
                .map(|(name, tensor)| Ok(NewTensor { name: name.as_str(), tensor: tensor.view()? }))
                .collect::<Result<_, Problem>>()?;
            written(&edit::patch(opened.package()?, &new)?)
        })?;
        Ok(PyBytes::new(py, &bytes))
    })
}

/// Makes a data file of named arrays.
#[pyfunction]
pub fn data_file<'py>(py: Python<'py>, tensors: HashMap<String, Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyBytes>> {
    shielded(|| {
        let staged = staged(&tensors)?;
        let bytes = detached(py, move || {
            let mut store = NamedDataStore::new();
            for (name, tensor) in &staged {
                store.add_tensor(name, &tensor.view()?, 16, None)?;
            }
            let file = ptd::data_file(&store, ptd::DataFormat::FlatTensor, 128)?;
            Ok(file.to_bytes()?)
        })?;
        Ok(PyBytes::new(py, &bytes))
    })
}
