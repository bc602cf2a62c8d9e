//! Programs: opened, verified, and their segments read on demand.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use edgepack_format::FileKind;
use edgepack_format::limits::Limits;
use edgepack_format::pte::ProgramRef;
use edgepack_format::room;

use crate::aligned::AlignedBytes;
use crate::bytes::Bytes;
use crate::error::Error;
use crate::live::Live;
use crate::machine::machine_limits;
use crate::memory_source::MemorySource;
use crate::open::FileHead;
use crate::read::read_range;
use crate::source::{FileSource, Source, StaticSource};

use super::meta::MethodMeta;

/// Options of opening a program.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// Ceilings for reading it; also the ceilings of the methods loaded from it. The default is that of this machine:
    /// [`machine_limits`].
    pub limits: Limits,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions { limits: machine_limits() }
    }
}

impl OpenOptions {
    /// Opens a program from any source.
    pub fn open_source(self, source: Arc<dyn Source>) -> Result<Program, Error> {
        Program::from_source(source, self.limits)
    }
}

/// A verified program that owns its bytes. Cloning shares them.
///
/// ```
/// use edgepack_loader::Program;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/models/mlp_portable.pte");
/// let program = Program::open(path)?; // verified; segments are read when they are asked for
/// assert_eq!(program.method_names()?, ["forward"]);
/// let meta = program.method_meta("forward")?;
/// assert_eq!(meta.inputs[0].tensor().unwrap().layout.to_string(), "f32[3, 8]");
///
/// // What is broken says by which rule, and where.
/// let broken = Program::from_bytes(std::fs::read(path)?[..1000].to_vec()).err().unwrap();
/// assert!(broken.to_string().contains("PTE-"), "{broken}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Program {
    inner: Arc<Inner>,
}

struct Inner {
    /// The flatbuffer with its header: what was verified.
    head: AlignedBytes,
    source: Arc<dyn Source>,
    live: Live,
    limits: Limits,
}

impl Program {
    /// Opens a file. Its flatbuffer is read and verified; segments are read when they are asked for.
    pub fn open(path: impl AsRef<Path>) -> Result<Program, Error> {
        let path = path.as_ref();
        let source = FileSource::open(path).map_err(|error| Error::Io { what: path.display().to_string(), error })?;
        OpenOptions::default().open_source(Arc::new(source))
    }

    /// Opens a file that is in memory. Segments are borrowed from these bytes.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Program, Error> {
        OpenOptions::default().open_source(Arc::new(MemorySource::new(bytes)))
    }

    /// Opens a file that is part of the executable. Segments are borrowed from these bytes, nothing of them is copied.
    pub fn from_static(bytes: &'static [u8]) -> Result<Program, Error> {
        OpenOptions::default().open_source(Arc::new(StaticSource(bytes)))
    }

    fn from_source(source: Arc<dyn Source>, limits: Limits) -> Result<Program, Error> {
        let located = FileHead::of_source(FileKind::Program, &*source)?;
        let head = located.read(&*source, &limits)?;
        ProgramRef::parse(&head, located.extent, &limits).map_err(Error::Invalid)?;
        Ok(Program { inner: Arc::new(Inner { head, source, live: Live::default(), limits }) })
    }

    /// The typed view of the flatbuffer.
    pub fn view(&self) -> Result<ProgramRef<'_>, Error> {
        Ok(ProgramRef::reopen(&self.inner.head)?)
    }

    /// Its flatbuffer with the file's header, 64-byte aligned, in memory as long as the program is. Segments are elsewhere.
    pub fn flatbuffer(&self) -> &[u8] {
        &self.inner.head
    }

    /// The ceilings it was opened with.
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Returns the source of its bytes.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.inner.source
    }

    /// Names of all methods, in order of the file.
    pub fn method_names(&self) -> Result<Vec<String>, Error> {
        let view = self.view()?;
        let mut names = Vec::new();
        for plan in view.plans().iter() {
            room::push(&mut names, plan?.name.unwrap_or_default().into_owned())?;
        }
        Ok(names)
    }

    /// One method, by name.
    pub fn method(&self, name: &str) -> Result<ProgramMethod, Error> {
        match self.view()?.plan(name) {
            Some(_) => Ok(ProgramMethod { program: self.clone(), name: name.to_owned() }),
            None => Err(Error::NotFound { what: "method", name: name.to_owned() }),
        }
    }

    /// Returns the inputs and outputs of a method.
    pub fn method_meta(&self, name: &str) -> Result<MethodMeta, Error> {
        let view = self.view()?;
        match view.plan(name) {
            Some(plan) => MethodMeta::of(&plan),
            None => Err(Error::NotFound { what: "method", name: name.to_owned() }),
        }
    }

    /// The bytes of a segment: borrowed from the source, or read now. They are released with the last clone.
    pub fn segment(&self, index: u32) -> Result<Bytes, Error> {
        let range = self
            .view()?
            .segment_range(index)
            .ok_or_else(|| Error::NotFound { what: "segment", name: index.to_string() })?;
        read_range(&self.inner.source, &self.inner.live, range, &self.inner.limits, || format!("segment {index}"))
    }
}

/// A method of a program, not loaded.
#[derive(Clone, Debug)]
pub struct ProgramMethod {
    program: Program,
    name: String,
}

impl ProgramMethod {
    /// The program it belongs to.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the name of the method.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the inputs and outputs of the method.
    pub fn meta(&self) -> Result<MethodMeta, Error> {
        self.program.method_meta(&self.name)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program from {}", self.inner.source.name())
    }
}
