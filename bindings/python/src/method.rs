//! Loaded methods: inputs are copied in, the method runs without the interpreter's lock, outputs are copied out.

use edgepack::executor::{self, MemoryBytes};
use edgepack::loader::{MethodMeta, ValueMeta};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrays::{Fetched, Staged, Target};
use crate::lock::Guarded;
use crate::problem::{Problem, detached, shielded};
use crate::value;

/// A method that is ready to run. Threads may share it: one runs at a time, and each gets the outputs of its own inputs.
#[pyclass(frozen, module = "edgepack")]
pub struct Method {
    name: String,
    inputs: Vec<ValueMeta>,
    outputs: Vec<ValueMeta>,
    loaded: Guarded<executor::Method>,
}

impl Method {
    /// Wraps a method that was loaded.
    pub fn new(method: executor::Method, meta: MethodMeta) -> Self {
        let MethodMeta { name, inputs, outputs, .. } = meta;
        Method { name, inputs, outputs, loaded: Guarded::new("method", method) }
    }

    /// Copies the inputs of a call.
    fn stage(&self, args: &Bound<'_, PyTuple>) -> PyResult<Vec<Staged>> {
        let (have, want) = (args.len(), self.inputs.len());
        if have != want {
            let plural = if want == 1 { "" } else { "s" };
            let message = format!("{} takes {want} input{plural}, got {have}", self.name);
            return Err(Problem::input(have.min(want), message).into());
        }
        let inputs = args.iter().zip(&self.inputs).enumerate();
        inputs.map(|(index, (given, wanted))| Staged::of(index, &given, wanted)).collect()
    }

    /// Runs once and hands the outputs to `take`, while no other thread runs the method.
    fn execute<T>(
        &self,
        py: Python<'_>,
        inputs: &[Staged],
        take: impl FnOnce(executor::Outputs<'_>) -> PyResult<T>,
    ) -> PyResult<T> {
        let mut entered = self.loaded.enter(py)?;
        let method = entered.get()?;
        for (index, input) in inputs.iter().enumerate() {
            method.set_input(index, input.input()?).map_err(Problem::from)?;
        }
        detached(py, || Ok(method.execute()?))?;
        take(method.outputs())
    }

    fn fetch(&self, py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Vec<Fetched>> {
        let staged = self.stage(args)?;
        self.execute(py, &staged, |outputs| {
            outputs.iter().enumerate().map(|(index, output)| Fetched::of(py, index, output)).collect()
        })
    }
}

#[pymethods]
impl Method {
    /// The name that the program has for it.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Its inputs.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        value::all_to_python(py, &self.inputs)
    }

    /// Its outputs.
    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        value::all_to_python(py, &self.outputs)
    }

    /// Runs with these inputs and returns the output, or a tuple if there are several.
    #[pyo3(signature = (*inputs))]
    fn __call__<'py>(&self, py: Python<'py>, inputs: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        shielded(|| {
            let mut fetched = self.fetch(py, inputs)?;
            match (fetched.pop(), fetched.is_empty()) {
                (Some(only), true) => only.into_python(py),
                (Some(last), false) => {
                    fetched.push(last);
                    Ok(tuple(py, fetched)?.into_any())
                }
                (None, _) => Ok(PyTuple::empty(py).into_any()),
            }
        })
    }

    /// Runs with these inputs and returns a tuple of the outputs.
    #[pyo3(signature = (*inputs))]
    fn run<'py>(&self, py: Python<'py>, inputs: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
        shielded(|| tuple(py, self.fetch(py, inputs)?))
    }

    /// Runs with these inputs and copies the outputs into arrays of the caller's: one for each output, `None` for one that is
    /// not wanted; for a method with one output the array itself will do. If one does not fit, nothing is copied.
    #[pyo3(signature = (*inputs, out))]
    fn run_into(&self, py: Python<'_>, inputs: &Bound<'_, PyTuple>, out: &Bound<'_, PyAny>) -> PyResult<()> {
        shielded(|| {
            let targets = self.targets(out)?;
            let staged = self.stage(inputs)?;
            self.execute(py, &staged, |outputs| {
                for (index, (target, output)) in targets.iter().zip(outputs.iter()).enumerate() {
                    target.check(index, &output)?;
                }
                targets.iter().zip(outputs.iter()).try_for_each(|(target, output)| target.fill(py, &output))
            })
        })
    }

    /// Goes back to the state after loading: buffers have their first values again.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        shielded(|| {
            let mut entered = self.loaded.enter(py)?;
            let method = entered.get()?;
            detached(py, || Ok(method.reset()?))
        })
    }

    /// The tensors that stay from run to run, by name: copies of what they are now.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        shielded(|| {
            let state = {
                let mut entered = self.loaded.enter(py)?;
                let method = entered.get()?;
                let names = method.attributes().map_err(Problem::from)?;
                let tensors = names.into_iter().map(|name| Ok((method.attribute(&name)?, name)));
                tensors.collect::<Result<Vec<_>, executor::RunError>>().map_err(Problem::from)?
            };
            let all = PyDict::new(py);
            for (tensor, name) in state {
                let bytes = pyo3::types::PyByteArray::new(py, tensor.data());
                all.set_item(name, crate::arrays::array(py, tensor.layout(), bytes.as_any())?)?;
            }
            Ok(all)
        })
    }

    /// Writes a tensor that stays from run to run.
    fn set_state(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        shielded(|| {
            let array = crate::arrays::Array::of(value, &|message| Problem::input(0, format!("{name} {message}")))?;
            let staged = array.contiguous()?;
            let mut entered = self.loaded.enter(py)?;
            let method = entered.get()?;
            let view = staged.view()?;
            Ok(method.set_attribute(name, view).map_err(Problem::from)?)
        })
    }

    /// Bytes of its memory by purpose.
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let MemoryBytes { planned, private, scratch, constants, lent, packed, plan, program } =
            self.loaded.enter(py)?.get()?.memory_bytes();
        let all = PyDict::new(py);
        for (name, bytes) in [
            ("planned", planned),
            ("private", private),
            ("scratch", scratch),
            ("constants", constants),
            ("borrowed", lent),
            ("packed", packed),
            ("plan", plan),
            ("program", program),
        ] {
            all.set_item(name, bytes)?;
        }
        Ok(all)
    }

    /// Gives up its memory. Using it afterwards is a `ClosedError`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(self.loaded.close(py)?)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("<edgepack.Method {} with {} inputs and {} outputs>", self.name, self.inputs.len(), self.outputs.len())
    }
}

impl Method {
    fn targets(&self, out: &Bound<'_, PyAny>) -> PyResult<Vec<Target>> {
        let several = match out.cast::<PyTuple>() {
            Ok(several) => Some(several.clone()),
            Err(_) => out.cast::<pyo3::types::PyList>().ok().map(|list| list.to_tuple()),
        };
        let several = match several {
            Some(several) => several,
            None => PyTuple::new(out.py(), [out])?,
        };
        let (have, want) = (several.len(), self.outputs.len());
        if have != want {
            let message = format!("{} has {want} outputs, out has {have}", self.name);
            return Err(Problem::input(have.min(want), message).into());
        }
        let arrays = several.iter().zip(&self.outputs).enumerate();
        arrays.map(|(index, (given, output))| Target::of(index, &given, output)).collect()
    }
}

fn tuple(py: Python<'_>, fetched: Vec<Fetched>) -> PyResult<Bound<'_, PyTuple>> {
    let outputs: Vec<_> = fetched.into_iter().map(|output| output.into_python(py)).collect::<PyResult<_>>()?;
    PyTuple::new(py, outputs)
}
