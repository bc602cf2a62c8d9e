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

/// On-chip memory, followed from request to request.
#[derive(Clone, Debug, Default)]
pub struct Residency {
    token: u64,
    /// Packages whose parameters are there, by where their bytes are: a clone of a registration is the same package.
    packages: BTreeSet<usize>,
}

impl Residency {
    /// Nothing is there, as after opening the device.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes a request. The registration must live as long as this.
    pub fn submit(&mut self, package: &Registration) -> Submission {
        let mut evicts = false;
        if package.token() == 0 || package.token() != self.token {
            evicts = !self.packages.is_empty();
            self.packages.clear();
        }
        self.token = package.token();
        let identity = package.bytes().as_ptr().addr();
        let load = package.caching().filter(|_| self.packages.insert(identity));
        Submission { evicts, load }
    }

    /// The device was closed.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
