//! Edge TPU packages from rows: three flatbuffers inside one another, laid out in pages as compilers do.
//!
//! [`executable`], [`multi_executable`] and [`package`] write one level each, as it is. [`PackageBuilder`] writes all of
//! them and promises that what it finishes verifies clean.

#[cfg(feature = "signing")]
mod sign;

use edgepack_format::darwinn::{
    Accept, Executable, IDENTIFIER, MultiExecutable, NEWEST_RUNTIME, OLDEST_RUNTIME, PAGE, Package, PackageRef,
    SerializedPackage,
};
use edgepack_format::limits::Limits;
use edgepack_format::row::{Blob, Table as _};

use crate::sink::FlatSink;
use crate::{BuildError, Error};

#[cfg(feature = "signing")]
pub use sign::SigningKey;

/// Layout of the levels in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// As compilers do: parameters and inner levels at pages, lengths of whole pages. A package that is at a page can
    /// be mapped for the device.
    #[default]
    Pages,
    /// As small as alignment allows. Every reader takes it, and the driver works with it by copying.
    Dense,
}

impl Layout {
    fn sink(self) -> FlatSink {
        match self {
            Layout::Pages => FlatSink::new(),
            Layout::Dense => FlatSink::new().with_most_alignment(16),
        }
    }

    /// Zeros behind the last object make whole pages.
    fn fill(self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self == Layout::Pages {
            bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
        }
        bytes
    }
}

/// The flatbuffer of an executable.
pub fn executable(row: &Executable<'_>, layout: Layout) -> Result<Vec<u8>, Error> {
    let mut sink = layout.sink();
    let root = row.encode(&mut sink)?;
    Ok(layout.fill(sink.finish_unidentified(root)?))
}

/// The flatbuffer of these executables. In memory the last comes first.
pub fn multi_executable(executables: Vec<Vec<u8>>, layout: Layout) -> Result<Vec<u8>, Error> {
    let row = MultiExecutable { serialized_executables: Some(executables.into()) };
    let mut sink = layout.sink();
    let root = row.encode(&mut sink)?;
    Ok(layout.fill(sink.finish_unidentified(root)?))
}

/// The flatbuffer of a package: `DWN1`.
pub fn package(row: &Package<'_>, layout: Layout) -> Result<Vec<u8>, Error> {
    let mut sink = layout.sink();
    let root = row.encode(&mut sink)?;
    Ok(layout.fill(sink.finish(root, IDENTIFIER)?))
}

/// Collects executables and writes a package.
#[derive(Clone, Debug)]
pub struct PackageBuilder {
    row: Package<'static>,
    executables: Vec<Executable<'static>>,
    chips: Vec<Vec<u8>>,
    layout: Layout,
    #[cfg(feature = "signing")]
    key: Option<SigningKey>,
}

impl Default for PackageBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl PackageBuilder {
    /// A package without executables, for any runtime that is known.
    pub fn new() -> Self {
        PackageBuilder {
            row: Package {
                min_runtime_version: OLDEST_RUNTIME,
                // What means nothing is written empty, as compilers do.
                signature: Some(Blob::default()),
                compiler_version: Some("".into()),
                model_identifier: Some("".into()),
                ..Package::default()
            },
            executables: Vec::new(),
            chips: Vec::new(),
            layout: Layout::Pages,
            #[cfg(feature = "signing")]
            key: None,
        }
    }

    /// The oldest runtime that can run it: 10 to 14.
    pub fn min_runtime_version(&mut self, version: i32) -> Result<&mut Self, BuildError> {
        if !(OLDEST_RUNTIME..=NEWEST_RUNTIME).contains(&version) {
            return Err(BuildError::Compiled {
                place: "the package".to_owned(),
                message: format!("runtime version {version}, known are {OLDEST_RUNTIME} to {NEWEST_RUNTIME}"),
            });
        }
        self.row.min_runtime_version = version;
        Ok(self)
    }

    /// The compiler that made it.
    pub fn compiler_version(&mut self, version: impl Into<String>) -> &mut Self {
        self.row.compiler_version = Some(version.into().into());
        self
    }

    /// A name for the model.
    pub fn model_identifier(&mut self, identifier: impl Into<String>) -> &mut Self {
        self.row.model_identifier = Some(identifier.into().into());
        self
    }

    /// Sets the chip the package is for. The driver does not look; -1 is set by [`PackageBuilder::chip`].
    pub fn virtual_chip_id(&mut self, id: i32) -> &mut Self {
        self.row.virtual_chip_id = id;
        self
    }

    /// Sets the layout of the levels.
    pub fn layout(&mut self, layout: Layout) -> &mut Self {
        self.layout = layout;
        self
    }

    /// Adds an executable. Of a pair, the one that runs comes first.
    pub fn executable(&mut self, row: Executable<'static>) -> &mut Self {
        self.executables.push(row);
        self
    }

    /// Adds a whole package for one of several chips, which makes this a package for several.
    pub fn chip(&mut self, package: Vec<u8>) -> &mut Self {
        self.row.virtual_chip_id = -1;
        self.chips.push(package);
        self
    }

    /// Signs the executables with this key.
    #[cfg(feature = "signing")]
    pub fn sign(&mut self, key: SigningKey, keypair_version: i32) -> &mut Self {
        self.row.keypair_version = keypair_version;
        self.key = Some(key);
        self
    }

    /// Encodes the package.
    pub fn finish(&self) -> Result<Vec<u8>, BuildError> {
        let mut row = self.row.clone();
        if !self.executables.is_empty() {
            let executables = self.executables.iter().map(|row| executable(row, self.layout));
            let multi = multi_executable(executables.collect::<Result<_, _>>()?, self.layout)?;
            #[cfg(feature = "signing")]
            if let Some(key) = &self.key {
                row.signature = Some(Blob(key.sign(&multi).into()));
            }
            row.serialized_multi_executable = Some(Blob(multi.into()));
        }
        if !self.chips.is_empty() {
            let chip = |bytes: &Vec<u8>| SerializedPackage { serialized_package: Some(Blob(bytes.clone().into())) };
            row.multi_chip_package = Some(self.chips.iter().map(chip).collect::<Vec<_>>().into());
        }
        let bytes = package(&row, self.layout)?;
        match PackageRef::parse_as(&bytes, &Limits::DEFAULT, Accept::default()) {
            Ok(_) => Ok(bytes),
            Err(findings) => Err(BuildError::Findings(findings)),
        }
    }
}
