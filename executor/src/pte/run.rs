//! Runs. What a run takes (locks of shared memories, bytes of the caller) it gives back when it ends, however it ends: a
//! kernel, a delegate, an observer or an input that panics leaves the method as an error would.

use edgepack_compute::threads;
use edgepack_format::finding::ErrorCode;
use edgepack_format::room;

use crate::api::state::Value;
use crate::pte::bind::{input_error, inputs_in_words};
use crate::pte::error::{LoadError, RunError};
use crate::pte::input::ToInput;
use crate::pte::load::write_initial_values;
use crate::pte::method::Method;
use crate::pte::observer::{Observer, Watcher};
use crate::pte::outputs::Outputs;

/// A method that holds the locks of its shared memories. Dropping it gives back the locks and the borrowed memory.
pub(crate) struct Running<'m> {
    method: &'m mut Method,
}

impl<'m> Running<'m> {
    /// Takes the locks. An input in a memory that another method has held since it was set is not set any more.
    pub(crate) fn begin(method: &'m mut Method) -> Result<Self, RunError> {
        let Method { memory, inputs, holder, .. } = method;
        let changed = |index: usize| {
            inputs.iter_mut().filter(|slot| slot.shared == Some(index)).for_each(|slot| slot.set = false);
        };
        memory.arenas.acquire(*holder, changed).map_err(|memory_id| RunError::Busy { memory_id })?;
        Ok(Running { method })
    }

    /// Method that is running; its shared memories are locked.
    pub(crate) fn method(&self) -> &Method {
        self.method
    }

    /// The method, to be changed.
    pub(crate) fn method_mut(&mut self) -> &mut Method {
        self.method
    }

    /// Runs all instructions on the inputs that are set.
    fn execute(&mut self, observer: Watcher<'_, '_>) -> Result<(), RunError> {
        let method = &mut *self.method;
        if let Some(index) = method.inputs.iter().position(|slot| !slot.set) {
            return Err(input_error(index, ErrorCode::InvalidArgument, "was not set".into()));
        }
        method.inputs.iter_mut().filter(|slot| !slot.survives).for_each(|slot| slot.set = false);
        match method.threads.clone() {
            Some(threads) => threads.run(|| method.interpret(observer))?,
            None => threads::together(|| method.interpret(observer))?,
        }
        method.publish_outputs();
        Ok(())
    }

    /// Writes initial values, and copies of the outputs as they are then.
    fn start(&mut self) {
        write_initial_values(&self.method.initial);
        self.method.publish_outputs();
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.method.take_back_inputs();
        self.method.memory.arenas.release();
    }
}

impl Method {
    /// Sets one input; tensors are copied. It stays set until a run uses its memory for something else, as most planned
    /// programs do, or another method runs on the shared memory it is in.
    pub fn set_input(&mut self, index: usize, input: impl ToInput) -> Result<(), RunError> {
        Running::begin(self)?.method.bind(index, input.to_input(), false)
    }

    /// Runs with these inputs, all of them, in order. Inputs without planned memory are read where they are.
    pub fn run<I: ToInput>(&mut self, inputs: &[I]) -> Result<Outputs<'_>, RunError> {
        self.run_observed(inputs, None)
    }

    /// Runs as [`Method::run`] does, watched by an observer.
    pub fn run_observed<I: ToInput>(
        &mut self,
        inputs: &[I],
        observer: Option<&mut (dyn Observer + Send + '_)>,
    ) -> Result<Outputs<'_>, RunError> {
        #[cfg(feature = "tracing")]
        let _span = tracing::debug_span!(target: "edgepack", "run", method = self.name).entered();
        if inputs.len() != self.inputs.len() {
            let which = if inputs.len() < self.inputs.len() { "is missing" } else { "is one too many" };
            let (have, want) = (inputs.len(), inputs_in_words(self.inputs.len()));
            let message = format!("{which}: the method takes {want}, got {have}");
            return Err(input_error(inputs.len().min(self.inputs.len()), ErrorCode::InvalidArgument, message));
        }
        let mut running = Running::begin(self)?;
        for (index, input) in inputs.iter().enumerate() {
            running.method.bind(index, input.to_input(), true)?;
        }
        running.execute(observer)?;
        drop(running);
        Ok(self.outputs())
    }

    /// Runs with the inputs set before.
    pub fn execute(&mut self) -> Result<(), RunError> {
        Running::begin(self)?.execute(None)
    }

    /// The outputs of the last run.
    pub fn outputs(&self) -> Outputs<'_> {
        Outputs { method: self }
    }

    /// Returns the method to its state right after loading: planned memory zeroed, initial values written, numbers as in
    /// the file, inputs unset.
    pub fn reset(&mut self) -> Result<(), RunError> {
        let mut running = Running::begin(self)?;
        let Method { state, numbers, inputs, .. } = &mut *running.method;
        let mut regions = Vec::new();
        room::grow(&mut regions, state.tensors.len()).map_err(edgepack_loader::Error::from)?;
        for index in 0..state.tensors.len() {
            let tensor = &mut state.tensors[index];
            tensor.freed = false;
            if !tensor.constant {
                regions.push(tensor.region);
                state.restore_bounds(index as u32);
            }
        }
        // Tensors share memory: every byte is zeroed once, however many there are.
        regions.sort_unstable_by_key(|region| region.addresses().start);
        let mut end = 0;
        for region in regions {
            let range = region.addresses();
            let rest = region.after((end.max(range.start) - range.start) as usize);
            end = end.max(range.end);
            // SAFETY: the method is exclusively borrowed and holds the locks of its shared memories; no view is alive, and
            // nothing is borrowed.
            unsafe { rest.bytes_mut() }.fill(0);
        }
        for &(id, value) in &*numbers {
            state.values[id as usize] = value;
        }
        for slot in inputs {
            slot.set = matches!(state.values[slot.value as usize], Value::Null);
        }
        running.start();
        Ok(())
    }

    /// Writes initial values for the first time.
    pub(crate) fn start(&mut self) -> Result<(), LoadError> {
        match Running::begin(self) {
            Ok(mut running) => running.start(),
            Err(error) => return Err(LoadError::method(error.code(), error.to_string())),
        }
        Ok(())
    }
}
