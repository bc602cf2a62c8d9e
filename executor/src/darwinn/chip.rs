//! A device that several runners share: what is in its on-chip memory, which parameters are mapped, and what has to be
//! done again after a failure.
//!
//! Invariant: after a request that did not end well, nothing that was known of the device is taken for true. The device is
//! reset, its on-chip memory counts as empty, and every runner maps and links again before its next run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use edgepack_loader::{Registration, Residency};

use super::device::{Device, Mapping, Place, Program};
use super::error::RunError;
use super::transfer::Buffer;

/// A device. Clones are the same device, and runners on several threads take turns.
pub struct Chip<D> {
    shared: Arc<Mutex<Shared<D>>>,
}

impl<D> Clone for Chip<D> {
    fn clone(&self) -> Self {
        Chip { shared: self.shared.clone() }
    }
}

/// Mapped parameters of an executable.
struct Parameters {
    address: u64,
    place: Place,
}

/// State of a device.
pub(super) struct Shared<D> {
    pub(super) device: D,
    pub(super) residency: Residency,
    /// Number of times that everything was forgotten.
    pub(super) epoch: u64,
    parameters: BTreeMap<Program, Parameters>,
    /// Packages that the device was told of, with the number of their runners.
    packages: BTreeMap<u64, usize>,
    /// True while a request is under way, and after one that neither ended nor was cleaned up.
    unfinished: bool,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// The number of a runner; none is used twice.
pub(super) fn next_runner() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl<D: Device> Chip<D> {
    /// A device that was just opened.
    pub fn new(device: D) -> Self {
        let shared = Shared {
            device,
            residency: Residency::new(),
            epoch: 0,
            parameters: BTreeMap::new(),
            packages: BTreeMap::new(),
            unfinished: false,
        };
        Chip { shared: Arc::new(Mutex::new(shared)) }
    }

    /// Calls back with the device, while no runner uses it.
    pub fn with_device<T>(&self, visit: impl FnOnce(&mut D) -> T) -> T {
        visit(&mut self.lock().device)
    }

    /// Returns whether the parameters that a package keeps on the chip are there.
    pub fn holds(&self, package: &Registration) -> bool {
        let shared = self.lock();
        !shared.unfinished && shared.residency.holds(package)
    }

    /// Resets the device. Runners map their buffers and load parameters again.
    pub fn reset(&self) -> Result<(), RunError> {
        self.lock().recover()
    }

    /// Calls back with the state for a request; one that fails or panics leaves nothing behind.
    pub(super) fn request<T>(&self, work: impl FnOnce(&mut Shared<D>) -> Result<T, RunError>) -> Result<T, RunError> {
        let mut shared = self.lock();
        if shared.unfinished {
            shared.recover()?;
        }
        shared.unfinished = true;
        let result = work(&mut shared);
        match result {
            Ok(_) => shared.unfinished = false,
            // If this fails, too, the next request tries again.
            Err(_) => drop(shared.recover()),
        }
        result
    }

    /// Notes that a runner of a package is there.
    pub(super) fn enter(&self, package: u64) {
        *self.lock().packages.entry(package).or_default() += 1;
    }

    /// Takes back the addresses of a runner that is gone; the last of a package takes the package along.
    pub(super) fn leave(&self, package: u64, epoch: Option<u64>, buffers: impl Iterator<Item = (Program, Buffer)>) {
        let mut shared = self.lock();
        // After a reset the device knows none of them.
        if epoch == Some(shared.epoch) {
            buffers
                .filter(|(_, buffer)| *buffer != Buffer::Parameter)
                .for_each(|(program, buffer)| shared.device.unmap(program, &buffer));
        }
        let runners = shared.packages.get(&package).copied().unwrap_or(1) - 1;
        if runners > 0 {
            shared.packages.insert(package, runners);
            return;
        }
        shared.packages.remove(&package);
        let mapped: Vec<Program> = shared.parameters.keys().filter(|one| one.package == package).copied().collect();
        for program in mapped {
            shared.parameters.remove(&program);
            shared.device.unmap(program, &Buffer::Parameter);
        }
        shared.residency.forget(package);
        shared.device.release(package);
    }

    /// A request that panicked has left `unfinished` behind, so a poisoned lock tells nothing more.
    fn lock(&self) -> MutexGuard<'_, Shared<D>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Device> Shared<D> {
    /// Forgets everything and resets the device.
    fn recover(&mut self) -> Result<(), RunError> {
        self.unfinished = true;
        self.epoch += 1;
        self.residency.clear();
        self.parameters.clear();
        self.device.reset()?;
        self.unfinished = false;
        Ok(())
    }

    /// Maps a buffer, parameters only if no other runner of the package has: address and place.
    pub(super) fn map(&mut self, mapping: Mapping<'_>) -> Result<(u64, Place), RunError> {
        let program = mapping.program.owner(mapping.buffer);
        let mapping = Mapping { program, ..mapping };
        if let Some(found) = self.parameters.get(&program) {
            return Ok((found.address, found.place));
        }
        let address = self.device.map(&mapping)?;
        if *mapping.buffer == Buffer::Parameter {
            self.parameters.insert(program, Parameters { address, place: mapping.place });
        }
        Ok((address, mapping.place))
    }

    /// The place of the parameters of a program that are mapped already.
    pub(super) fn mapped(&self, program: Program, buffer: &Buffer) -> Option<Place> {
        self.parameters.get(&program.owner(buffer)).filter(|_| *buffer == Buffer::Parameter).map(|one| one.place)
    }
}
