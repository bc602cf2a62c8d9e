//! Weights as delegates use them: packed once, shared, and stored where the caller wants that.
//!
//! A key in a file is a claim. So packed weights are shared by their place within one program and the data it was loaded
//! with; across programs, and through a folder, only by a digest of everything they were made of. What a load holds is
//! charged to its method once. A key is asked for once in a load, so what was looked at is what is packed.

mod cache;
pub(crate) mod constants;
pub mod entry;
mod folder;
mod key;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use edgepack_loader::{Bytes, NamedDataMap, Source};
use sha2::{Digest as _, Sha256};

pub use cache::PackCache;
pub use constants::{Layout, Shared};
pub use folder::PackFolder;

use crate::api::error::KernelError;
use crate::api::room::Retained;
use entry::Digest;
use key::Key;

/// Makes packed weights of bytes, which the function that is given writes; it answers whether there are any.
pub type Restore<'p, T> = dyn Fn(&mut dyn FnMut(&mut [u8]) -> bool) -> Option<T> + 'p;

/// Description of one packing: the weights, the layout of the result, and the functions that make it.
pub struct Packing<'p, T> {
    /// The place of the weights: one for each key, or each place in a payload, of a program and its data.
    pub place: &'p str,
    /// The weights. Their source may take back the pages once they are packed.
    pub weights: &'p Bytes,
    /// Numbers that are packed with the weights, as bytes: their scales. They are known by their digest.
    pub numbers: &'p [u8],
    /// Layout of the packed weights. It names all that the result depends on besides weights, numbers and sizes: layout
    /// version, instructions of the machine.
    pub layout: &'p str,
    /// Sizes that the result depends on.
    pub sizes: &'p [usize],
    /// Bytes of the result.
    pub bytes: usize,
    /// Packs the weights, on the threads that the method is loaded on. What it allocates can fail: only the bytes above are counted.
    pub pack: &'p (dyn Fn() -> Result<T, KernelError> + Sync),
    /// The result as bytes.
    pub content: fn(&T) -> &[u8],
    /// Makes the result of bytes, which the function that is given writes; it answers whether there are any.
    pub restore: &'p Restore<'p, T>,
}

/// Source of weights and of packed weights for delegates while a method is loaded.
pub struct Packer {
    cache: PackCache,
    folder: Option<PackFolder>,
    named: Arc<dyn NamedDataMap>,
    answers: Mutex<HashMap<String, Option<Bytes>>>,
    /// Number of the scope of the program and its data in the cache.
    scope: u64,
    charged: Mutex<Charged>,
    read: Mutex<Read>,
}

/// Charges of a method: the keys of what they were for, and bytes.
#[derive(Default)]
struct Charged {
    keys: HashSet<Key>,
    bytes: usize,
}

/// Bytes that were read and will hardly be again, until they are enough to tell their source.
#[derive(Default)]
struct Read {
    all: Vec<Bytes>,
    bytes: usize,
}

/// Bytes that a source is told of at once. Each time interrupts all threads of the process.
const ENOUGH: usize = 1 << 20;

impl Packer {
    /// A packer of one load of a program; what is found by key is in `named`, of which `data` is the caller's part.
    pub(crate) fn new(
        cache: &PackCache,
        folder: Option<&PackFolder>,
        program: &Arc<dyn Source>,
        data: &[Arc<dyn NamedDataMap>],
        named: Arc<dyn NamedDataMap>,
    ) -> Self {
        let scope = Scope { program: Arc::downgrade(program), data: data.iter().map(Arc::downgrade).collect() };
        Packer {
            cache: cache.clone(),
            folder: folder.cloned(),
            named,
            answers: Mutex::default(),
            scope: cache.scope(scope),
            charged: Mutex::default(),
            read: Mutex::default(),
        }
    }

    /// Takes note that bytes were read. Their pages are most of what is in memory besides what is made of them, and come back if
    /// they are read again. What was not told of when the load ends is told of then, with all constants.
    pub(crate) fn was_read(&self, bytes: &Bytes) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.all.try_reserve(1).is_err() {
            return;
        }
        read.all.push(bytes.clone());
        read.bytes = read.bytes.saturating_add(bytes.len());
        if read.bytes >= ENOUGH {
            let Read { all, .. } = std::mem::take(&mut *read);
            drop(read);
            Bytes::release_all(all.iter());
        }
    }

    /// Returns the bytes of a key, for which the map is asked once: a map that would answer differently later is not asked
    /// again.
    pub fn data(&self, key: &str) -> Result<Option<Bytes>, edgepack_loader::Error> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        match answers.entry(key.to_owned()) {
            Entry::Occupied(known) => Ok(known.get().clone()),
            Entry::Vacant(place) => Ok(place.insert(self.named.data(key)?).clone()),
        }
    }

    /// Returns packed weights: those that are held, those of the folder, or new ones.
    ///
    /// # Errors
    ///
    /// The packed weights exceed the limits of the method, which is checked before anything is read; or packing fails.
    pub fn pack<T: Any + Send + Sync>(
        &self,
        packing: &Packing<'_, T>,
        retained: Retained<'_>,
    ) -> Result<Arc<T>, KernelError> {
        let Packing { place, layout, sizes, numbers, .. } = packing;
        let key = Key::of(&[
            b"place",
            &self.scope.to_ne_bytes(),
            place.as_bytes(),
            &packing.weights.len().to_ne_bytes(),
            layout.as_bytes(),
            bytemuck::cast_slice(sizes),
            &digest_of(numbers),
        ]);
        self.charge(&key, packing.bytes, retained)?;
        let packed = self.cache.shared(key, || match &self.folder {
            Some(folder) => self.stored(folder, packing),
            None => self.new_one(packing.pack).map(Arc::new),
        })?;
        self.was_read(packing.weights);
        Ok(packed)
    }

    /// Charges the method for what is made of a constant at a place in memory, in a layout of so many bytes, and returns its key.
    fn key_at(
        &self,
        place: &[u8],
        layout: Layout<'_>,
        bytes: usize,
        retained: Retained<'_>,
    ) -> Result<Key, KernelError> {
        let Layout { name, numbers } = layout;
        let [at, len] = [place.as_ptr() as usize, place.len()].map(usize::to_ne_bytes);
        let key = Key::of(&[b"at", &self.scope.to_ne_bytes(), &at, &len, name.as_bytes(), &digest_of(numbers)]);
        self.charge(&key, bytes, retained)?;
        Ok(key)
    }

    /// Returns what is made of a constant and has this key. It has to hold the memory of the constant, so that nothing else is at
    /// that place while it lives.
    fn made_of<T: Any + Send + Sync>(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<T, KernelError>,
    ) -> Result<Arc<T>, KernelError> {
        self.cache.shared(key, || self.new_one(make).map(Arc::new))
    }

    /// Charges the method for what is made of a constant, and not shared.
    fn charge_alone(&self, bytes: usize, retained: Retained<'_>) -> Result<(), KernelError> {
        retained.charge(bytes)?;
        self.charged().bytes += bytes;
        Ok(())
    }

    /// Charges the method once for what has a key.
    fn charge(&self, key: &Key, bytes: usize, retained: Retained<'_>) -> Result<(), KernelError> {
        let mut charged = self.charged();
        if !charged.keys.contains(key) {
            retained.charge(bytes)?;
            charged.bytes += bytes;
            charged.keys.insert(key.clone());
        }
        Ok(())
    }

    fn charged(&self) -> MutexGuard<'_, Charged> {
        self.charged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes of packed weights that the method was charged for.
    pub(crate) fn charged_bytes(&self) -> usize {
        self.charged().bytes
    }

    /// Returns the packed weights of the folder, or packs new ones and stores them in the folder.
    fn stored<T: Any + Send + Sync>(
        &self,
        folder: &PackFolder,
        packing: &Packing<'_, T>,
    ) -> Result<Arc<T>, KernelError> {
        let digest = digest(packing);
        self.cache.shared(Key::of(&[b"sha256", &digest]), || {
            let mut read = |content: &mut [u8]| content.len() == packing.bytes && folder.read(&digest, content);
            if folder.found(&digest, packing.bytes).is_some()
                && let Some(known) = (packing.restore)(&mut read)
            {
                return Ok(Arc::new(known));
            }
            let made = self.new_one(packing.pack)?;
            // A folder that cannot be written to is one that nothing is found in.
            let _ = folder.write(&digest, (packing.content)(&made));
            Ok(Arc::new(made))
        })
    }

    fn new_one<T>(&self, pack: impl FnOnce() -> Result<T, KernelError>) -> Result<T, KernelError> {
        self.cache.count_packing();
        pack()
    }
}

/// The digest of numbers; nothing, if there are none.
fn digest_of(numbers: &[u8]) -> Vec<u8> {
    if numbers.is_empty() { Vec::new() } else { entry::digest(numbers).to_vec() }
}

/// The digest of everything that packed weights are made of.
fn digest<T>(packing: &Packing<'_, T>) -> Digest {
    let mut digest = Sha256::new();
    let mut part = |bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    part(b"edgepack packing 2");
    part(std::env::consts::ARCH.as_bytes());
    part(packing.layout.as_bytes());
    packing.sizes.iter().for_each(|size| part(&(*size as u64).to_le_bytes()));
    part(packing.numbers);
    part(packing.weights);
    digest.finalize().into()
}

/// A program and the data it is loaded with, known by where they are in memory: that place is not given to anything else
/// while this lives.
pub(crate) struct Scope {
    program: Weak<dyn Source>,
    data: Vec<Weak<dyn NamedDataMap>>,
}

impl Scope {
    fn is_alive(&self) -> bool {
        self.program.strong_count() > 0
    }
}

impl PartialEq for Scope {
    fn eq(&self, other: &Scope) -> bool {
        let same =
            |(a, b): (&Weak<dyn NamedDataMap>, &Weak<dyn NamedDataMap>)| std::ptr::addr_eq(a.as_ptr(), b.as_ptr());
        std::ptr::addr_eq(self.program.as_ptr(), other.program.as_ptr())
            && self.data.len() == other.data.len()
            && self.data.iter().zip(&other.data).all(same)
    }
}
