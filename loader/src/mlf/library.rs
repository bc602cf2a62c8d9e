//! An open package. Invariant: it broke no rule when it was opened, and its bytes do not change.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use edgepack_format::finding::Findings;
use edgepack_format::limits::Limits;
use edgepack_format::mlf::interface::{Interface, interfaces};
use edgepack_format::mlf::{
    self, ArchiveLayout, Graph, Member, Metadata, Module, ModuleFiles, Package, Param, Params, Role, definitions,
    package,
};
use edgepack_format::room::{NoRoom, collect, set};
use edgepack_format::rules::mlf as rules;

use super::archive::{Archive, Unpacked};
use super::gzip::inflate;
use crate::bytes::Bytes;
use crate::error::Error;
use crate::live::Live;
use crate::machine::machine_limits;
use crate::memory_source::MemorySource;
use crate::read::read_range;
use crate::source::{FileSource, Source};

/// Result of verification.
#[derive(Debug)]
pub struct Verdict {
    /// Everything found.
    pub findings: Findings,
    /// The members, as far as the archive could be read.
    pub archive: Archive,
}

/// Verifies a package: the archive, and what is in it.
pub fn verify(bytes: &[u8], limits: &Limits) -> Verdict {
    let unpacked = Archive::read(bytes, limits);
    let mut findings = unpacked.findings;
    match unpacked.archive.members(bytes) {
        Ok(members) => findings.extend(package::verify(&members, limits).0),
        Err(error) => findings.no_room(&rules::LIMITS, String::new(), error),
    }
    Verdict { findings, archive: unpacked.archive }
}

/// A package. Cloning is cheap.
///
/// ```no_run
/// use edgepack_loader::mlf::Library;
///
/// let library = Library::open("package.tar")?;
/// let module = library.module(None)?; // the only one
/// println!("{}", module.info().name);
/// # Ok::<(), edgepack_loader::Error>(())
/// ```
#[derive(Clone)]
pub struct Library {
    inner: Arc<Inner>,
}

struct Inner {
    bytes: Bytes,
    archive: Archive,
    metadata: Metadata,
    graphs: Vec<Option<Graph>>,
    findings: Findings,
}

impl Library {
    /// Opens a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Library, Error> {
        let path = path.as_ref();
        let source = FileSource::open(path).map_err(|error| Error::Io { what: path.display().to_string(), error })?;
        Self::from_source(Arc::new(source), &machine_limits())
    }

    /// Opens a package that is in memory.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Library, Error> {
        let bytes = bytes.into();
        match inflate(&MemorySource::new(bytes.clone()), &machine_limits())? {
            Some(source) => Self::from_source(source, &machine_limits()),
            None => Self::new(bytes, &machine_limits()),
        }
    }

    /// Opens a package from any source. It is read whole, unless its bytes can be borrowed from the source; one in gzip is
    /// inflated.
    pub fn from_source(source: Arc<dyn Source>, limits: &Limits) -> Result<Library, Error> {
        let source = inflate(&*source, limits)?.unwrap_or(source);
        let range = 0..source.len();
        let bytes = read_range(&source, &Live::default(), range, limits, || "the package".to_owned())?;
        Self::new(bytes, limits)
    }

    fn new(bytes: Bytes, limits: &Limits) -> Result<Library, Error> {
        let Unpacked { mut findings, archive } = Archive::read(&bytes, limits);
        let (found, package) = package::verify(&archive.members(&bytes)?, limits);
        findings.extend(found);
        let Some(Package { metadata, modules }) = package.filter(|_| !findings.has_errors()) else {
            return Err(Error::Invalid(findings));
        };
        let graphs = collect(modules.into_iter().map(|files| files.graph))?;
        Ok(Library { inner: Arc::new(Inner { bytes, archive, metadata, graphs, findings }) })
    }

    /// Borrows the bytes of the archive.
    pub fn bytes(&self) -> &[u8] {
        &self.inner.bytes
    }

    /// Reads the layout of the archive; the reason that it cannot be kept, if something of it would be lost.
    pub fn layout(&self) -> Result<ArchiveLayout, String> {
        ArchiveLayout::read(self.bytes(), self.inner.archive.iter())
    }

    /// Returns the metadata of the package.
    pub fn metadata(&self) -> &Metadata {
        &self.inner.metadata
    }

    /// Returns the findings about unusual parts of the package; none of them is an error.
    pub fn findings(&self) -> &Findings {
        &self.inner.findings
    }

    /// Returns the files of the package.
    pub fn members(&self) -> Vec<Member<'_>> {
        self.inner.archive.files(&self.inner.bytes).collect()
    }

    /// The bytes of a file.
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        self.inner.bytes.get(self.inner.archive.find(path)?)
    }

    /// Returns the modules of the package.
    pub fn modules(&self) -> impl ExactSizeIterator<Item = LibraryModule> {
        (0..self.inner.metadata.modules.len()).map(|index| LibraryModule { library: self.clone(), index })
    }

    /// A module by name; without one, the only module.
    pub fn module(&self, name: Option<&str>) -> Result<LibraryModule, Error> {
        let missing =
            || Error::NotFound { what: "module", name: name.unwrap_or("(several, and no name was given)").to_owned() };
        let mut modules = self.modules();
        match name {
            Some(name) => modules.find(|module| module.info().name == name).ok_or_else(missing),
            None if modules.len() == 1 => modules.next().ok_or_else(missing),
            None => Err(missing()),
        }
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Metadata { version, modules } = self.metadata();
        write!(f, "Library of version {version} with {} modules", modules.len())
    }
}

/// A module of an open package. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct LibraryModule {
    library: Library,
    index: usize,
}

/// Place of the parameters of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Linked {
    /// In the parameter file.
    File,
    /// In the code: the graph has no arguments for them.
    Code,
    /// In both: the code has or provides them, and the file has them too.
    Both,
}

impl LibraryModule {
    /// Returns the package that the module is in.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Returns what the package says about it.
    pub fn info(&self) -> &Module {
        // The index comes from `modules`.
        static NONE: std::sync::LazyLock<Module> = std::sync::LazyLock::new(Module::default);
        self.library.inner.metadata.modules.get(self.index).unwrap_or(&NONE)
    }

    /// The graph, of what the graph executor runs.
    pub fn graph(&self) -> Option<&Graph> {
        self.library.inner.graphs.get(self.index)?.as_ref()
    }

    /// The parameter file; empty if there is none, or no memory for the list of what is in it.
    pub fn params(&self) -> Params<'_> {
        self.read_params().unwrap_or_default()
    }

    fn read_params(&self) -> Result<Params<'_>, NoRoom> {
        let bytes = self.library.file(&mlf::place::params(&self.info().name)).unwrap_or_default();
        match Params::parse(bytes, &Limits::DEFAULT) {
            Ok(params) => Ok(params),
            Err(findings) if findings.is_short_of_memory() => Err(NoRoom { bytes: bytes.len() as u64 }),
            // What verified once reads again, so there is none.
            Err(_) => Ok(Params::default()),
        }
    }

    /// The parameters that arguments of the graph want, in the order of the file.
    pub fn wanted_params(&self) -> Result<Vec<Param<'_>>, NoRoom> {
        let names = self.graph().map(|graph| set(graph.args().map(|(_, name, _)| name))).unwrap_or_default();
        let mut params = self.read_params()?.entries;
        params.retain(|param| names.contains(param.name));
        Ok(params)
    }

    fn files(&self, role: Role<'_>) -> Vec<Member<'_>> {
        let single = self.library.metadata().modules.len() == 1;
        let mine = |path: &str| single || mlf::place::is_code_of(path, &self.info().name);
        let members = self.library.members().into_iter();
        members.filter(|member| Role::of(member.path) == role && mine(member.path)).collect()
    }

    /// Its C and C++ files.
    pub fn sources(&self) -> Vec<Member<'_>> {
        self.files(Role::Source)
    }

    /// Returns the module's compiled files.
    pub fn objects(&self) -> Vec<Member<'_>> {
        self.files(Role::Object)
    }

    /// The headers of the package.
    pub fn headers(&self) -> Vec<Member<'_>> {
        let members = self.library.members().into_iter();
        members.filter(|member| Role::of(member.path) == Role::Header).collect()
    }

    /// The model before it was compiled.
    pub fn relay(&self) -> Option<&str> {
        let path = mlf::place::relay(self.library.metadata().version, &self.info().name);
        std::str::from_utf8(self.library.file(&path)?).ok()
    }

    /// Returns what the parts of the package say about the module's inputs and outputs.
    ///
    /// # Errors
    ///
    /// There is no memory for what they say.
    pub fn interfaces(&self) -> Result<Vec<Interface>, NoRoom> {
        let files = ModuleFiles {
            graph: self.graph().cloned(),
            params: Some(self.params()),
            relay: self.relay(),
            sources: self.sources(),
            objects: Vec::new(),
            headers: self.headers(),
        };
        interfaces(self.info(), &files)
    }

    /// Returns the place of its parameters.
    pub fn linked(&self) -> Linked {
        /// Name that versions 4 and 5 give the function that provides parameters.
        const LOOKUP: &str = "_lookup_linked_param";
        if self.params().entries.is_empty() {
            return Linked::Code;
        }
        let lends =
            |source: &Member<'_>| definitions(source.bytes).is_ok_and(|list| list.iter().any(|one| one.name == LOOKUP));
        let compiled_in = self.graph().is_none() || self.sources().iter().any(lends);
        if compiled_in { Linked::Both } else { Linked::File }
    }
}
