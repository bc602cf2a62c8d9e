//! Constants of a method that its kernels retain in another layout, shared with the other methods of the program.
//!
//! While instructions are prepared, what kernels ask for is noted and charged; then all of it is made at once, several on
//! several threads. Invariant: what is shared is known by the place of the constant in memory, and holds that memory. So
//! nothing else can be at that place while it is known.

use std::any::Any;
use std::cell::{OnceCell, RefCell};
use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use edgepack_compute::threads::{self, Cost};
use edgepack_format::finding::ErrorCode;
use edgepack_format::room::push;
use edgepack_loader::Bytes;

use super::Packer;
use crate::api::error::KernelError;
use crate::api::room::{Retained, grow};

/// Layout of what is made of a constant.
#[derive(Clone, Copy)]
pub struct Layout<'a> {
    /// Name of all that it depends on besides the bytes of the constant and the numbers: sizes, strides, instructions of the
    /// machine.
    pub name: &'a str,
    /// Numbers that the constant is changed by, as bytes. They are known by their digest.
    pub numbers: &'a [u8],
}

impl<'a> From<&'a str> for Layout<'a> {
    fn from(name: &'a str) -> Self {
        Layout { name, numbers: &[] }
    }
}

/// A constant in another layout, which is there when the method runs. Clones share it.
///
/// # Panics
///
/// If it is looked at while the method is loaded.
pub struct Shared<T>(Arc<OnceLock<Arc<Held<T>>>>);

struct Held<T> {
    made: T,
    /// The constant it was made of, if others may find it by that.
    _constant: Option<Bytes>,
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(Arc::clone(&self.0))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.get().expect("what kernels ask for is made before the method runs").made
    }
}

impl<T> Shared<T> {
    /// Something that is not shared.
    pub(crate) fn alone(made: T) -> Self {
        Shared(Arc::new(Arc::new(Held { made, _constant: None }).into()))
    }
}

/// The refusal of bytes of a source that are not where they were, though their source still lives.
pub(crate) fn changed() -> KernelError {
    KernelError::new(
        ErrorCode::InvalidExternalData,
        "a source does not lend the bytes of a constant that it lent before",
    )
}

/// Something that is still to be made.
struct Task {
    make: Box<dyn FnOnce() -> Result<(), KernelError> + Send>,
    /// Bytes of it.
    bytes: usize,
}

/// Making a byte of a constant in another layout, which is read from a file and written to new memory.
const BYTE: Cost = Cost::nanoseconds(0.2);

/// The constants of a method that is loaded, and the packer of its program, made when it is first needed.
pub(crate) struct Constants<'m> {
    all: &'m [Bytes],
    packer: &'m dyn Fn() -> Arc<Packer>,
    /// Their indices in the order of their addresses.
    by_address: OnceCell<Vec<usize>>,
    tasks: RefCell<Vec<Task>>,
}

impl<'m> Constants<'m> {
    pub(crate) fn new(all: &'m [Bytes], packer: &'m dyn Fn() -> Arc<Packer>) -> Self {
        Constants { all, packer, by_address: OnceCell::new(), tasks: RefCell::default() }
    }

    /// Returns what [`Constants::make`] will make of a constant, charged to the method. One of the program or its data is
    /// shared; any other is made at once.
    pub(crate) fn share<T: Any + Send + Sync>(
        &self,
        constant: &[u8],
        layout: Layout<'_>,
        bytes: usize,
        retained: Retained<'_>,
        make: impl Fn(&[u8]) -> Result<T, KernelError> + Send + 'static,
    ) -> Result<Shared<T>, KernelError> {
        let packer = (self.packer)();
        let Some((held, range)) = self.find(constant) else {
            packer.charge_alone(bytes, retained)?;
            return packer.new_one(|| make(constant)).map(Shared::alone);
        };
        let key = packer.key_at(constant, layout, bytes, retained)?;
        let shared: Shared<T> = Shared(Arc::default());
        let place = shared.clone();
        let make = move || {
            let holding = || {
                let constant = held.get(range).ok_or_else(changed)?;
                make(constant).map(|made| Held { made, _constant: Some(held.clone()) })
            };
            let made = packer.made_of(key, holding)?;
            packer.was_read(&held);
            // Nobody else writes to it.
            let _ = place.0.set(made);
            Ok(())
        };
        push(&mut self.tasks.borrow_mut(), Task { make: Box::new(make), bytes })?;
        Ok(shared)
    }

    /// Number of things that are still to be made.
    pub(crate) fn waiting(&self) -> usize {
        self.tasks.borrow().len()
    }

    /// Makes all that kernels asked for: what is large beside all of it on all threads, then the others, each on one.
    ///
    /// # Errors
    ///
    /// The number of the first that could not be made, in the order they were asked for, and the error.
    pub(crate) fn make(&self) -> Result<(), (usize, KernelError)> {
        let tasks = self.tasks.take();
        let all = tasks.iter().fold(0usize, |all, task| all.saturating_add(task.bytes));
        // Where all of it is not worth sharing, threads are not even started.
        let share = if BYTE.pays(all) { all / (2 * threads::current()) } else { all };
        let first = Mutex::new(None);
        let make = |number: usize, task: Task| {
            let Err(error) = (task.make)() else { return };
            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_none_or(|(known, _)| number < *known) {
                *first = Some((number, error));
            }
        };
        let mut others = Vec::new();
        grow(&mut others, tasks.len()).map_err(|error| (0, error.into()))?;
        for (number, task) in tasks.into_iter().enumerate() {
            if task.bytes > share {
                make(number, task);
            } else {
                others.push(Mutex::new(Some((number, task))));
            }
        }
        let cost = Cost::nanoseconds(BYTE.as_nanoseconds() * all as f64 / others.len().max(1) as f64);
        threads::for_each_range(cost, others.len(), |range| {
            for task in &others[range] {
                let task = task.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some((number, task)) = task {
                    make(number, task);
                }
            }
        });
        first.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// The bytes that a constant is in, and where.
    fn find(&self, constant: &[u8]) -> Option<(Bytes, Range<usize>)> {
        let by_address = self.by_address.get_or_init(|| {
            let mut indices: Vec<usize> = (0..self.all.len()).collect();
            indices.sort_unstable_by_key(|&index| self.all[index].as_ptr());
            indices
        });
        let after = by_address.partition_point(|&index| self.all[index].as_ptr() <= constant.as_ptr());
        let bytes = &self.all[*by_address.get(after.checked_sub(1)?)?];
        let start = (constant.as_ptr() as usize).checked_sub(bytes.as_ptr() as usize)?;
        let range = start..start.checked_add(constant.len())?;
        bytes.get(range.clone())?;
        Some((Bytes::clone(bytes), range))
    }
}
