//! Memory and data of C that the library holds on to, and gives back by a call.
//!
//! Invariant: what was taken over is given back once, after its last use.
#![allow(unsafe_code, reason = "memory and functions of C are held here; each block says by whose promise")]

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

use crate::failure::Failure;
use crate::pointer::{In, Out};

/// A function that takes something back; null for none. It may be called on any thread, and must not throw.
pub type EdgepackRelease = Option<extern "C-unwind" fn(user: Out<c_void>)>;

/// Data of the caller's, given back when dropped.
pub(crate) struct Owned {
    user: Out<c_void>,
    release: EdgepackRelease,
}

// SAFETY: the pointer is handed to functions of the caller's alone, which the header says are called on any thread, and at the
// same time.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Owned {
    pub fn new(user: Out<c_void>, release: EdgepackRelease) -> Self {
        Owned { user, release }
    }

    /// The pointer, for functions of the caller's.
    pub fn user(&self) -> Out<c_void> {
        self.user
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            release(self.user);
        }
    }
}

/// A function that takes back what a callback made; null for none. It must not throw.
pub type EdgepackDrop = Option<extern "C-unwind" fn(user: Out<c_void>, state: Out<c_void>)>;

/// State that a callback made, given back when dropped, before the data of the caller's that it was made with.
pub(crate) struct State {
    state: Out<c_void>,
    drop: EdgepackDrop,
    owner: Arc<Owned>,
}

// SAFETY: the pointer is handed to functions of the caller's alone. The header says that they are called on any thread, and for
// one state one at a time: a method runs on one thread at a time, and holds its states for itself.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

impl State {
    pub fn new(owner: Arc<Owned>, state: Out<c_void>, drop: EdgepackDrop) -> Self {
        State { state, drop, owner }
    }

    /// The pointer of the caller's data, for functions of the caller's.
    pub fn user(&self) -> Out<c_void> {
        self.owner.user()
    }

    /// The pointer, for functions of the caller's.
    pub fn state(&self) -> Out<c_void> {
        self.state
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(drop) = self.drop {
            drop(self.user(), self.state);
        }
    }
}

/// Bytes that stay the caller's until they are given back.
pub(crate) struct Lent {
    data: *const u8,
    len: usize,
    /// Dropped with the bytes. Until it is set, nothing was taken over.
    owner: OnceLock<Owned>,
}

// SAFETY: the bytes are read only, and the caller does not change them (`Lent::new`).
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl Lent {
    /// Bytes that nobody changes while the result lives: the header says so where such bytes are given.
    pub fn new(data: In<c_void>, len: usize) -> Result<Self, Failure> {
        let bytes = data.bytes(len, "data")?;
        Ok(Lent { data: bytes.as_ptr(), len, owner: OnceLock::new() })
    }

    /// Says how they are given back.
    pub fn release_by(&self, release: EdgepackRelease, user: Out<c_void>) {
        // Whoever made this sets it once.
        let _ = self.owner.set(Owned::new(user, release));
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: this was a slice in `new`, so that address and length are right; by the promise of the caller, the bytes are
        // there and do not change until `owner` is dropped, which is dropped with this.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}
