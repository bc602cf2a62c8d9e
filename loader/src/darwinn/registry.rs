//! Registration: a package is verified, and what it needs and shares is noted.

use std::collections::BTreeMap;

use edgepack_format::darwinn::{Accept, ExecutableRef, PackageRef};
use edgepack_format::finding::Findings;
use edgepack_format::room::NoRoom;
use edgepack_format::tflite::ModelRef;
use edgepack_format::wire::ReadError;
use edgepack_format::{FileKind, detect};

#[cfg(feature = "signatures")]
use super::PublicKey;
use crate::aligned::AlignedBytes;
use crate::bytes::Bytes;
use crate::machine::machine_limits;

/// Reason for which a package was not registered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// It breaks rules.
    #[error("the package is not valid:\n{0}")]
    Invalid(Findings),
    /// It is for several chips.
    #[error("the package is for several chips; register those inside one by one")]
    MultiChip,
    /// A model has another number of packages than one.
    #[error("the model has {0} packages, one can be registered")]
    Packages(usize),
    /// Its signature is missing or not by any of the keys.
    #[error("{0}")]
    Signature(String),
    /// A part that was verified cannot be read: the bytes have changed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is no memory for a copy of it.
    #[error("{0} of the package")]
    Memory(#[from] NoRoom),
}

/// A registered package. Cloning shares its bytes.
#[derive(Clone, Debug)]
pub struct Registration {
    bytes: Bytes,
    main: usize,
    caching: Option<usize>,
    token: u64,
    cached: u64,
    streamed: u64,
}

impl Registration {
    /// Views the package again, without verifying it a second time.
    pub fn package(&self) -> Result<PackageRef<'_>, ReadError> {
        PackageRef::reopen(&self.bytes)
    }

    /// Returns the bytes of the package.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the index of the executable that takes inputs and gives outputs.
    pub fn main(&self) -> usize {
        self.main
    }

    /// Returns the index of the executable that loads the parameters that stay on the chip.
    pub fn caching(&self) -> Option<usize> {
        self.caching
    }

    /// Packages of one token may have their parameters on the chip together; 0 means none.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Bytes of parameters that stay on the chip.
    pub fn cached_bytes(&self) -> u64 {
        self.cached
    }

    /// Bytes of parameters that are moved for every inference.
    pub fn streamed_bytes(&self) -> u64 {
        self.streamed
    }

    fn new(bytes: Bytes) -> Result<Self, RegisterError> {
        let package = PackageRef::reopen(&bytes)?;
        if package.is_multi_chip() {
            return Err(RegisterError::MultiChip);
        }
        let (main, caching) = (package.main().unwrap_or(0), package.caching());
        let executable = |index: usize| package.executables().get(index);
        let parameters = |index| executable(index).map_or(0, |one: &ExecutableRef<'_>| one.parameters().len() as u64);
        let token = executable(main).map_or(0, |one| one.row().parameter_caching_token);
        let (cached, streamed) = (caching.map_or(0, parameters), parameters(main));
        drop(package);
        Ok(Registration { bytes, main, caching, token, cached, streamed })
    }
}

/// The packages of a process.
#[derive(Default)]
pub struct Registry {
    registrations: Vec<Registration>,
    accept: Accept,
    #[cfg(feature = "signatures")]
    keys: Option<Vec<PublicKey>>,
}

impl Registry {
    /// A registry for packages that say what they are, signed or not.
    pub fn new() -> Self {
        Self::default()
    }

    /// A registry that also takes packages that `accept` names.
    pub fn accepting(accept: Accept) -> Self {
        Registry { accept, ..Self::default() }
    }

    /// A registry for packages that are signed by one of these keys. The driver never looks.
    #[cfg(feature = "signatures")]
    pub fn demanding(keys: Vec<PublicKey>) -> Self {
        Registry { keys: Some(keys), ..Self::default() }
    }

    /// Registers a package, bare or the only one of a model. The answer stays valid without the registry.
    pub fn register(&mut self, bytes: &[u8]) -> Result<Registration, RegisterError> {
        let limits = machine_limits();
        let copy = |bytes: &[u8]| AlignedBytes::copy_of(bytes).ok_or(NoRoom { bytes: bytes.len() as u64 });
        let package = match detect(bytes) {
            FileKind::TfLite => {
                let model = ModelRef::parse_as(bytes, &limits, self.accept).map_err(RegisterError::Invalid)?;
                let mut packages = model.packages();
                match (packages.next(), packages.count()) {
                    (Some((_, package)), 0) => copy(package.bytes())?,
                    (first, more) => {
                        return Err(RegisterError::Packages(more.saturating_add(usize::from(first.is_some()))));
                    }
                }
            }
            _ => {
                PackageRef::parse_as(bytes, &limits, self.accept).map_err(RegisterError::Invalid)?;
                copy(bytes)?
            }
        };
        let registration = Registration::new(package.into())?;
        self.check_signature(&registration)?;
        self.registrations.push(registration.clone());
        Ok(registration)
    }

    #[cfg(feature = "signatures")]
    fn check_signature(&self, registration: &Registration) -> Result<(), RegisterError> {
        let Some(keys) = &self.keys else { return Ok(()) };
        let package = registration.package()?;
        match keys.iter().any(|key| key.check(&package).unwrap_or(false)) {
            true => Ok(()),
            false => Err(RegisterError::Signature("the package is not signed by any of the keys given".to_owned())),
        }
    }

    #[cfg(not(feature = "signatures"))]
    fn check_signature(&self, _: &Registration) -> Result<(), RegisterError> {
        Ok(())
    }

    /// The packages, in the order in which they came.
    pub fn registrations(&self) -> &[Registration] {
        &self.registrations
    }

    /// The packages by token, those without one left out. More than one package at a token were compiled together.
    pub fn sharing(&self) -> BTreeMap<u64, Vec<&Registration>> {
        let mut groups: BTreeMap<u64, Vec<&Registration>> = BTreeMap::new();
        for registration in self.registrations.iter().filter(|one| one.token != 0) {
            groups.entry(registration.token).or_default().push(registration);
        }
        groups
    }
}
