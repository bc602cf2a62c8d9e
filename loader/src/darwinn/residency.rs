//! Content of on-chip memory: parameters of packages of one token, until a package of another token comes.

use std::collections::BTreeSet;

use super::Registration;

/// Work that has to be done for a request, before the main executable runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Submission {
    /// True if parameters of other packages were given up.
    pub evicts: bool,
    /// The executable that loads this package's parameters, if they are not on the chip.
    pub load: Option<usize>,
}

/// On-chip memory, followed from request to request. A device has one, which all that run on it share.
#[derive(Clone, Debug, Default)]
pub struct Residency {
    token: u64,
    /// Packages whose parameters are there, by [`Registration::id`].
    packages: BTreeSet<u64>,
}

impl Residency {
    /// Nothing is there, as after opening the device.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes a request, as if the load it asks for succeeds. After one that failed, [`Residency::clear`] what is noted.
    pub fn submit(&mut self, package: &Registration) -> Submission {
        let mut evicts = false;
        if package.token() == 0 || package.token() != self.token {
            evicts = !self.packages.is_empty();
            self.packages.clear();
        }
        self.token = package.token();
        let load = package.caching().filter(|_| self.packages.insert(package.id()));
        Submission { evicts, load }
    }

    /// Returns whether the parameters of a package are on the chip.
    pub fn holds(&self, package: &Registration) -> bool {
        self.packages.contains(&package.id())
    }

    /// Forgets one package: its next request loads its parameters again.
    pub fn forget(&mut self, package: u64) {
        self.packages.remove(&package);
    }

    /// The device was closed or reset, or it is unknown what it holds.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
