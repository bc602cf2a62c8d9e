//! Loaded methods: their inputs are read, their outputs seen, in memory of their own.
//!
//! Invariant: one call at a time. A second one, from another thread or from a callback of the first, is refused; after a
//! panic every one is.

use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard, TryLockError};

use edgepack::executor::{Input, Method, Output};
use edgepack::format::tensor::TensorView;

use crate::entry;
use crate::error::{EdgepackCode, EdgepackError};
use crate::failure::Failure;
use crate::handles::{close, get, handle, put};
use crate::options::EdgepackOptions;
use crate::pointer::{In, Out};
use crate::program::EdgepackProgram;
use crate::text::Terminated;
use crate::value::EdgepackValue;

/// A method, ready to run. It holds memory and state of its own, and all that it needs of its program.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgepackMethod {
    /// Number of the object; zero for none.
    pub id: u64,
}

handle!(EdgepackMethod, Method, MethodObject, "a method");

pub(crate) struct MethodObject(Mutex<Loaded>);

struct Loaded {
    method: Method,
    /// By output: its text with a zero byte, if it is one and was asked for.
    texts: Vec<Option<Terminated>>,
}

/// Bytes of memory of a method, by purpose.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EdgepackMemory {
    /// Planned by the exporter.
    pub planned: usize,
    /// Values that the program gives no memory.
    pub private_values: usize,
    /// Scratch of kernels.
    pub scratch: usize,
    /// Constants that were read into memory.
    pub constants: usize,
    /// Constants borrowed from the file's bytes.
    pub borrowed: usize,
    /// Packed weights.
    pub packed: usize,
    /// Values and instructions.
    pub plan: usize,
    /// Flatbuffer of the program, which its methods share.
    pub program: usize,
}

impl MethodObject {
    pub fn new(method: Method) -> Self {
        let texts = (0..method.output_count()).map(|_| None).collect();
        MethodObject(Mutex::new(Loaded { method, texts }))
    }

    fn lock(&self) -> Result<MutexGuard<'_, Loaded>, Failure> {
        match self.0.try_lock() {
            Ok(loaded) => Ok(loaded),
            Err(TryLockError::WouldBlock) => {
                Err(Failure::state("the method is in use, by another thread or by the caller of this callback"))
            }
            Err(TryLockError::Poisoned(_)) => Err(Failure::state(
                "the method panicked in an earlier call, and cannot be used: close it and load it again",
            )),
        }
    }
}

impl Loaded {
    /// An output, as C sees it until the method is used again.
    fn output(&mut self, index: usize) -> Result<EdgepackValue, Failure> {
        let Loaded { method, texts } = self;
        let output = method.outputs().get(index).ok_or_else(|| Failure::missing("output", index))?;
        let slot = texts.get_mut(index);
        Ok(EdgepackValue::output(output, |text| match slot {
            Some(slot) => slot.insert(Terminated::new(text)).text(),
            None => crate::text::EdgepackText::EMPTY,
        }))
    }

    /// Returns whether some of these bytes are those of an output, which a caller may give as an input again.
    fn is_own(&self, bytes: &[u8]) -> bool {
        let given = bytes.as_ptr_range();
        let mut tensors = self.method.outputs().iter().filter_map(|output| output.tensor());
        !bytes.is_empty()
            && tensors.any(|tensor| {
                let own = tensor.bytes().as_ptr_range();
                own.start < given.end && given.start < own.end
            })
    }

    /// A copy of the data of an input that are memory of the method's own: that is written while the input is read.
    fn copy_of_own(&self, input: &Input<'_>) -> Result<Option<Vec<u8>>, Failure> {
        let Input::Tensor(view) = input else { return Ok(None) };
        if !self.is_own(view.data()) {
            return Ok(None);
        }
        let mut copy = Vec::new();
        copy.try_reserve_exact(view.data().len()).map_err(|_| edgepack::loader::Error::Memory {
            what: "a copy of an input".to_owned(),
            bytes: view.data().len() as u64,
        })?;
        copy.extend_from_slice(view.data());
        Ok(Some(copy))
    }

    /// Runs on inputs.
    fn run(&mut self, values: &[EdgepackValue]) -> Result<(), Failure> {
        let mut inputs: Vec<Input<'_>> =
            values.iter().enumerate().map(|(index, value)| value.input(index)).collect::<Result<_, _>>()?;
        let mut copies = Vec::new();
        for (index, input) in inputs.iter().enumerate() {
            if let Some(copy) = self.copy_of_own(input)? {
                copies.push((index, copy));
            }
        }
        for (index, copy) in &copies {
            if let Some(input) = inputs.get_mut(*index) {
                *input = with_data(input, copy)?;
            }
        }
        self.method.run(&inputs)?;
        Ok(())
    }
}

/// The tensor of an input with other data.
fn with_data<'a>(input: &Input<'a>, data: &'a [u8]) -> Result<Input<'a>, Failure> {
    match input {
        Input::Tensor(view) => match TensorView::new(view.layout().clone(), data) {
            Ok(view) => Ok(Input::Tensor(view)),
            Err(error) => Err(Failure::argument(error.to_string())),
        },
        other => Ok(other.clone()),
    }
}

/// Loads a method: its operators and backends are found, its memory is laid out, its weights are read. Options of zero are
/// the operators and backends of the library, and no others.
///
/// Ownership: the method is the caller's, who closes it; program and options may be closed before.
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_method_load(
    program: EdgepackProgram,
    name: In<c_char>,
    options: EdgepackOptions,
    method: Out<EdgepackMethod>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        method.check(1, "method")?;
        let program = get(program)?;
        let (registry, options) = options.read()?;
        let loaded = Method::load(&program.program, name.text("the method's name")?, &registry, &options)?;
        method.write(put(MethodObject::new(loaded)), "method")
    })
}

/// Runs a method on `input_count` inputs, all of them, in order, and returns its first `output_count` outputs, which may be
/// fewer than it has; `outputs` may be null for none. Inputs are read during the call only; an output of this method may be
/// an input of its next run. If a run fails, `outputs` is not written.
///
/// Ownership: what the outputs lead to is the method's, until it is run, reset or closed.
/// Threads: any, one call at a time: another one is refused with EDGEPACK_CODE_INVALID_STATE.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_method_run(
    method: EdgepackMethod,
    inputs: In<EdgepackValue>,
    input_count: usize,
    outputs: Out<EdgepackValue>,
    output_count: usize,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let object = get(method)?;
        let mut loaded = object.lock()?;
        outputs.check(output_count, "outputs")?;
        let have = loaded.method.output_count();
        if output_count > have {
            return Err(Failure::argument(format!("the method has {have} outputs, {output_count} are wanted")));
        }
        loaded.run(inputs.slice(input_count, "inputs")?)?;
        for index in 0..output_count {
            outputs.write_at(index, output_count, loaded.output(index)?, "outputs")?;
        }
        Ok(())
    })
}

/// Sets one input, which is copied. It stays set until a run uses its memory for something else, as most programs do.
///
/// Threads: any, one call at a time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_method_set_input(
    method: EdgepackMethod,
    index: usize,
    value: In<EdgepackValue>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let object = get(method)?;
        let mut loaded = object.lock()?;
        let input = value.one("value")?.input(index)?;
        match loaded.copy_of_own(&input)? {
            Some(copy) => loaded.method.set_input(index, with_data(&input, &copy)?)?,
            None => loaded.method.set_input(index, input)?,
        }
        Ok(())
    })
}

/// Runs a method on the inputs that were set before.
///
/// Threads: any, one call at a time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_method_execute(method: EdgepackMethod, error: Out<EdgepackError>) -> EdgepackCode {
    entry::call(error, || Ok(get(method)?.lock()?.method.execute()?))
}

/// Takes a method back to its state after loading: mutable buffers have their initial values, inputs are not set.
///
/// Threads: any, one call at a time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_method_reset(method: EdgepackMethod, error: Out<EdgepackError>) -> EdgepackCode {
    entry::call(error, || Ok(get(method)?.lock()?.method.reset()?))
}

/// Returns the number of inputs and of outputs; each of the pointers may be null.
///
/// Threads: any, one call at a time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_method_counts(
    method: EdgepackMethod,
    inputs: Out<usize>,
    outputs: Out<usize>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let object = get(method)?;
        let loaded = object.lock()?;
        inputs.write_if_wanted(loaded.method.input_count(), "inputs")?;
        outputs.write_if_wanted(loaded.method.output_count(), "outputs")
    })
}

/// Returns an output of the last run by `value`; before the first run, what the file has there.
///
/// Ownership: what it leads to is the method's, until it is run, reset or closed. Threads: any, one call at a time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_method_output(
    method: EdgepackMethod,
    index: usize,
    value: Out<EdgepackValue>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        value.check(1, "value")?;
        let object = get(method)?;
        let mut loaded = object.lock()?;
        value.write(loaded.output(index)?, "value")
    })
}

/// Copies the bytes of an output tensor of the last run, of which there have to be `len`.
///
/// Threads: any, one call at a time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_method_copy_output(
    method: EdgepackMethod,
    index: usize,
    mut data: Out<c_void>,
    len: usize,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let object = get(method)?;
        let loaded = object.lock()?;
        let bytes = match loaded.method.outputs().get(index) {
            Some(Output::Tensor(tensor)) => tensor.bytes(),
            Some(_) => {
                return Err(Failure::new(
                    edgepack::format::finding::ErrorCode::InvalidType,
                    format!("output {index} is no tensor"),
                ));
            }
            None => return Err(Failure::missing("output", index)),
        };
        if bytes.len() != len {
            return Err(Failure::argument(format!(
                "output {index} has {} bytes, there is room for {len}",
                bytes.len()
            )));
        }
        let (from, to) = (bytes.as_ptr().addr(), data.as_ptr().addr());
        if from < to.saturating_add(len) && to < from.saturating_add(len) {
            return Err(Failure::argument("data is the output itself"));
        }
        data.bytes(len, "data")?.copy_from_slice(bytes);
        Ok(())
    })
}

/// Returns the memory of a method by `memory`. Kernels may pack weights in the first run: before it the numbers can be lower.
///
/// Threads: any, one call at a time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_method_memory(
    method: EdgepackMethod,
    memory: Out<EdgepackMemory>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let object = get(method)?;
        let bytes = object.lock()?.method.memory_bytes();
        let found = EdgepackMemory {
            planned: bytes.planned,
            private_values: bytes.private,
            scratch: bytes.scratch,
            constants: bytes.constants,
            borrowed: bytes.lent,
            packed: bytes.packed,
            plan: bytes.plan,
            program: bytes.program,
        };
        memory.write(found, "memory")
    })
}

/// Closes a method. One that runs on another thread is gone when that run is over. Zero is closed at any time.
///
/// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if it was closed before.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_method_close(method: EdgepackMethod) -> EdgepackCode {
    entry::call(Out::NULL, || close(method))
}
