//! Constants of a method that its kernels retain in another layout, shared with the other methods of the program.
//!
//! Invariant: what is shared is known by the place of the constant in memory, and holds that memory. So nothing else can be
//! at that place while it is known.

use std::any::Any;
use std::cell::OnceCell;
use std::ops::Deref;
use std::sync::Arc;

use edgepack_loader::Bytes;

use super::Packer;
use crate::api::error::KernelError;
use crate::api::room::Retained;

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

/// A constant in another layout. Clones share it.
pub struct Shared<T>(Arc<Held<T>>);

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
        &self.0.made
    }
}

impl<T> Shared<T> {
    /// Something that is not shared.
    pub(crate) fn alone(made: T) -> Self {
        Shared(Arc::new(Held { made, _constant: None }))
    }
}

/// The constants of a method that is loaded, and the packer of its program, made when it is first needed.
pub(crate) struct Constants<'m> {
    all: &'m [Bytes],
    packer: &'m dyn Fn() -> Arc<Packer>,
    /// Their indices in the order of their addresses.
    by_address: OnceCell<Vec<usize>>,
}

impl<'m> Constants<'m> {
    pub(crate) fn new(all: &'m [Bytes], packer: &'m dyn Fn() -> Arc<Packer>) -> Self {
        Constants { all, packer, by_address: OnceCell::new() }
    }

    /// Returns what is made of a constant, charged to the method. One of the program or its data is shared.
    pub(crate) fn share<T: Any + Send + Sync>(
        &self,
        constant: &[u8],
        layout: Layout<'_>,
        bytes: usize,
        retained: Retained<'_>,
        make: &(dyn Fn() -> Result<T, KernelError> + Sync),
    ) -> Result<Shared<T>, KernelError> {
        let held = self.find(constant);
        let make = || make().map(|made| Held { made, _constant: held.clone() });
        let packer = (self.packer)();
        let shared = packer.share((constant, layout), bytes, retained, held.is_some(), &make).map(Shared);
        held.inspect(|bytes| packer.was_read(bytes));
        shared
    }

    /// The bytes that a constant is in.
    fn find(&self, constant: &[u8]) -> Option<Bytes> {
        let by_address = self.by_address.get_or_init(|| {
            let mut indices: Vec<usize> = (0..self.all.len()).collect();
            indices.sort_unstable_by_key(|&index| self.all[index].as_ptr());
            indices
        });
        let after = by_address.partition_point(|&index| self.all[index].as_ptr() <= constant.as_ptr());
        let bytes = &self.all[*by_address.get(after.checked_sub(1)?)?];
        bytes.as_ptr_range().end.ge(&constant.as_ptr_range().end).then(|| Bytes::clone(bytes))
    }
}
