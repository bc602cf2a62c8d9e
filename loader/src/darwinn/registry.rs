//! Registration: a package is verified, and what it needs and shares is noted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use edgepack_format::darwinn::{Accept, ExecutableRef, PackageRef};
use edgepack_format::finding::Findings;
use edgepack_format::room::{self, NoRoom};
use edgepack_format::tflite::ModelRef;
use edgepack_format::wire::ReadError;
use edgepack_format::{FileKind, detect};

#[cfg(feature = "signatures")]
use super::PublicKey;
use super::RegisteredModel;
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
    #[error("the model has {0} packages; `register_model` registers all of them")]
    Packages(usize),
    /// A model was asked for, and these bytes are not one.
    #[error("this is not a TensorFlow Lite model; `register` registers packages")]
    NotAModel,
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

/// A registered package. Cloning shares its bytes and is the same package.
#[derive(Clone, Debug)]
pub struct Registration {
    id: u64,
    bytes: Bytes,
    /// Of each executable, at a page.
    parameters: Vec<Bytes>,
    main: usize,
    caching: Option<usize>,
    token: u64,
    cached: u64,
    streamed: u64,
}

/// Alignment that parameters need for a device to be given their memory.
const PAGE: usize = 4096;

/// The number of the next registration; none is used twice.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Registration {
    /// Returns the number of the registration, which no other of this process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The parameters of an executable, empty if it has none. They start at a page and stay where they are until the last
    /// clone of the registration and of these bytes is gone, so a device can be given their address once.
    pub fn parameters(&self, executable: usize) -> Option<&Bytes> {
        self.parameters.get(executable)
    }

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

    /// Copies the bytes of a verified package to a page.
    fn new(bytes: &[u8]) -> Result<Self, RegisterError> {
        let paged = |bytes: &[u8]| -> Result<Bytes, NoRoom> {
            let copy = AlignedBytes::copy_to_pages(bytes).ok_or(NoRoom { bytes: bytes.len() as u64 })?;
            Ok(copy.into())
        };
        let bytes = paged(bytes)?;
        let package = PackageRef::reopen(&bytes)?;
        if package.is_multi_chip() {
            return Err(RegisterError::MultiChip);
        }
        let (main, caching) = (package.main().unwrap_or(0), package.caching());
        let executable = |index: usize| package.executables().get(index);
        let size = |index| executable(index).map_or(0, |one: &ExecutableRef<'_>| one.parameters().len() as u64);
        let token = executable(main).map_or(0, |one| one.row().parameter_caching_token);
        let (cached, streamed) = (caching.map_or(0, size), size(main));
        let mut parameters = room::with_room(package.executables().len())?;
        for one in package.executables() {
            // Compilers put them at pages of the package; packages of other layouts are copied here, once.
            let at = one.parameters().as_ptr().addr();
            let inside = at.checked_sub(bytes.as_ptr().addr()).filter(|_| at.is_multiple_of(PAGE));
            let range = inside.and_then(|start| Some(start..start.checked_add(one.parameters().len())?));
            parameters.push(match range.and_then(|range| bytes.slice(range)) {
                Some(shared) => shared,
                None => paged(one.parameters())?,
            });
        }
        drop(package);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Registration { id, bytes, parameters, main, caching, token, cached, streamed })
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
        let registration = match detect(bytes) {
            FileKind::TfLite => {
                let model = ModelRef::parse_as(bytes, &limits, self.accept).map_err(RegisterError::Invalid)?;
                let mut packages = model.packages();
                match (packages.next(), packages.count()) {
                    (Some((_, package)), 0) => self.check(package.bytes())?,
                    (first, more) => {
                        return Err(RegisterError::Packages(more.saturating_add(usize::from(first.is_some()))));
                    }
                }
            }
            _ => {
                PackageRef::parse_as(bytes, &limits, self.accept).map_err(RegisterError::Invalid)?;
                self.check(bytes)?
            }
        };
        self.registrations.push(registration.clone());
        Ok(registration)
    }

    /// Registers every package of a model: those of all its compiled operators, and further ones next to the first. The
    /// answer stays valid without the registry. If one is refused, none is registered.
    pub fn register_model(&mut self, bytes: &[u8]) -> Result<RegisteredModel, RegisterError> {
        if detect(bytes) != FileKind::TfLite {
            return Err(RegisterError::NotAModel);
        }
        let model = ModelRef::parse_as(bytes, &machine_limits(), self.accept).map_err(RegisterError::Invalid)?;
        let registered = RegisteredModel::new(&model, |package| self.check(package.bytes()))?;
        let all = registered.operators().iter().flat_map(|operator| operator.packages());
        self.registrations.extend(all.map(|(_, registration)| registration.clone()));
        Ok(registered)
    }

    /// Copies a verified package and checks its signature.
    fn check(&self, package: &[u8]) -> Result<Registration, RegisterError> {
        let registration = Registration::new(package)?;
        self.check_signature(&registration)?;
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
