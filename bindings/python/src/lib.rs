//! The native half of the Python package `edgepack`: objects that open and run files, and the command as a function.
//!
//! Invariants: Python objects are touched with the interpreter's lock held, files are read and methods run without it;
//! no panic crosses into Python ([`problem::shielded`]); `unsafe` is in `memory.rs` alone.
#![deny(unsafe_code)]

mod arrays;
mod builder;
mod command;
mod data;
mod dtype;
mod edit;
mod llm;
mod lock;
mod memory;
mod method;
mod options;
mod problem;
mod program;
mod source;
mod value;

use pyo3::prelude::*;

#[pymodule(name = "_edgepack")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<program::Program>()?;
    module.add_class::<program::ProgramMethod>()?;
    module.add_class::<method::Method>()?;
    module.add_class::<data::DataFile>()?;
    module.add_class::<memory::Bytes>()?;
    module.add_class::<builder::ProgramBuilder>()?;
    module.add_class::<builder::MethodBuilder>()?;
    module.add_class::<builder::Handle>()?;
    module.add_class::<llm::LanguageModel>()?;
    module.add_class::<llm::Session>()?;
    module.add_class::<llm::Generation>()?;
    module.add_function(wrap_pyfunction!(command::command, module)?)?;
    module.add_function(wrap_pyfunction!(command::main, module)?)?;
    module.add_function(wrap_pyfunction!(edit::split, module)?)?;
    module.add_function(wrap_pyfunction!(edit::join, module)?)?;
    module.add_function(wrap_pyfunction!(edit::patch, module)?)?;
    module.add_function(wrap_pyfunction!(edit::data_file, module)?)?;
    module.add_function(wrap_pyfunction!(problem::panic_for_tests, module)?)?;
    Ok(())
}
