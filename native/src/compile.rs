//! From sources and objects to a shared library: each file a translation unit of its own, linked with the small runtime,
//! stored under the hash of everything that went into it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use edgepack_format::mlf::{Member, ObjectCode};
use edgepack_loader::mlf::LibraryModule;
use sha2::{Digest, Sha256};

use crate::cache;
use crate::error::{Error, io_error};
use crate::shim;

/// Options of compiling native code, and the permission to do so.
#[derive(Clone, Debug)]
pub struct Options {
    allowed: bool,
    /// The C compiler; `cc` if not given. It must understand the options of gcc and clang.
    pub compiler: OsString,
    /// Folder of compiled libraries; if not given, a folder of the user's cache (`XDG_CACHE_HOME`, `HOME`), or one of
    /// the user's own in the system's temporary folder. Code is loaded from there, so a folder that others own or
    /// may write to is refused.
    pub cache: Option<PathBuf>,
    /// True if the compiler optimises. Contraction of multiplications and additions is always off, so that results do
    /// not depend on the processor.
    pub optimize: bool,
    /// Tasks of a parallel loop of compiled objects, where the code leaves their number open: each has a thread. 1 if not
    /// given. C code has no parallel loops.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { allowed: false, compiler: "cc".into(), cache: None, optimize: true, threads: 1 }
    }
}

impl Options {
    /// With leave to compile and call the package's own code, which has all rights of the process. Without it nothing is
    /// compiled.
    ///
    /// # Safety
    ///
    /// The code does nothing worse than read and write the tensors it is given, of the types and sizes it was compiled
    /// for. What the package says about them is checked at every call; where it says nothing, as older ones do of whole
    /// models, the caller gives as many and as large ones as the code expects.
    #[expect(unsafe_code, reason = "the one act of trust on which every call of compiled code rests")]
    pub unsafe fn allow_native_code(self) -> Self {
        Options { allowed: true, ..self }
    }

    fn flags(&self) -> Vec<&'static str> {
        let mut flags =
            vec!["-std=gnu11", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off", "-w", "-include", "stdbool.h"];
        flags.push(if self.optimize { "-O2" } else { "-O1" });
        flags
    }
}

/// Arguments of the linker behind the objects. Symbols that nothing defines are an error of the linker, which names them,
/// instead of the end of the process when one is called.
#[cfg(target_os = "macos")]
const LINK: [&str; 2] = ["-lm", "-pthread"];
/// Arguments of the linker behind the objects. Symbols that nothing defines are an error of the linker, which names them,
/// instead of the end of the process when one is called.
#[cfg(not(target_os = "macos"))]
const LINK: [&str; 5] = ["-Wl,-z,defs", "-Wl,-z,noexecstack", "-lm", "-ldl", "-pthread"];

/// The part of a path that names the file, with nothing but letters, digits, dots and underscores.
fn plain(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' }).collect()
}

/// The shared library of a module: found in the cache, or compiled.
pub(crate) fn library(module: &LibraryModule, options: &Options) -> Result<PathBuf, Error> {
    if !options.allowed {
        return Err(Error::NotAllowed);
    }
    let (sources, objects, headers) = (module.sources(), module.objects(), module.headers());
    if sources.is_empty() && objects.is_empty() {
        return Err(Error::NoCode(module.info().name.clone()));
    }
    objects.iter().try_for_each(fits_here)?;
    let parent = cache::folder(options.cache.as_deref())?;
    let folder = parent.join(key(&[&sources, &objects, &headers], options));
    let library = folder.join(format!("module.{}", std::env::consts::DLL_EXTENSION));
    if library.is_file() {
        return Ok(library);
    }
    // Processes that make one library at the same time use folders of their own; the last one to finish wins.
    let work = Work::new(&parent)?;
    let made = compile(&work.0, &sources, &objects, &headers, options)?;
    fs::create_dir_all(&folder).map_err(io_error(&folder))?;
    fs::rename(&made, &library).map_err(io_error(&library))?;
    Ok(library)
}

/// Checks by its header that an object can be linked into this process.
fn fits_here(object: &Member<'_>) -> Result<(), Error> {
    let (have, want) = (ObjectCode::of(object.bytes), ObjectCode::of_this_process());
    if have == want {
        return Ok(());
    }
    Err(Error::Machine { file: object.path.to_owned(), have: have.to_string(), want: want.to_string() })
}

/// The name of everything that decides what the library is.
fn key(parts: &[&[Member<'_>]], options: &Options) -> String {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    add(options.compiler.as_encoded_bytes());
    options.flags().iter().for_each(|flag| add(flag.as_bytes()));
    shim::HEADERS.iter().for_each(|(_, text)| add(text.as_bytes()));
    shim::RUNTIME.iter().for_each(|(_, text)| add(text.as_bytes()));
    LINK.iter().for_each(|flag| add(flag.as_bytes()));
    for part in parts {
        add(&(part.len() as u64).to_le_bytes());
        for member in *part {
            add(member.path.as_bytes());
            add(member.bytes);
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A folder that goes away again.
struct Work(PathBuf);

impl Work {
    fn new(parent: &Path) -> Result<Work, Error> {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("work-{}-{next}", std::process::id()));
        fs::create_dir(&path).map_err(io_error(&path))?;
        Ok(Work(path))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // A folder that stays is found in the cache and does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(io_error(folder))?;
    }
    fs::write(path, content).map_err(io_error(path))
}

fn compile(
    work: &Path,
    sources: &[Member<'_>],
    objects: &[Member<'_>],
    headers: &[Member<'_>],
    options: &Options,
) -> Result<PathBuf, Error> {
    let include = work.join("include");
    for (path, text) in shim::HEADERS {
        write(&include.join(path), text.as_bytes())?;
    }
    for header in headers {
        write(&include.join(plain(header.path)), header.bytes)?;
    }
    let ours = shim::RUNTIME.iter();
    let mut units: Vec<_> = ours
        .map(|(name, text)| (work.join(format!("edgepack_{name}")), text.as_bytes(), "the runtime".to_owned()))
        .collect();
    for (index, source) in sources.iter().enumerate() {
        // All of it is C, whatever the extension: newer code passes `void*` where C++ would want a cast.
        let path = work.join(format!("{index}_{}.c", plain(source.path)));
        units.push((path, source.bytes, source.path.to_owned()));
    }
    let mut linked = Vec::new();
    for (path, text, name) in &units {
        write(path, text)?;
        let object = path.with_extension("o");
        let mut command = Command::new(&options.compiler);
        command.args(options.flags()).arg("-I").arg(&include).arg("-c").arg(path).arg("-o").arg(&object);
        run(command, name, options)?;
        linked.push(object);
    }
    for (index, object) in objects.iter().enumerate() {
        let path = work.join(format!("{index}_linked.o"));
        write(&path, object.bytes)?;
        linked.push(path);
    }
    let library = work.join("module");
    let mut command = Command::new(&options.compiler);
    command.arg("-shared").arg("-o").arg(&library).args(&linked).args(LINK);
    run(command, "the library", options)?;
    Ok(library)
}

fn run(mut command: Command, file: &str, options: &Options) -> Result<(), Error> {
    const MOST: usize = 2000;
    let compiler = options.compiler.to_string_lossy().into_owned();
    let output = command.output().map_err(|error| Error::Io { what: compiler.clone(), error })?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).chars().take(MOST).collect();
    Err(Error::Compiler { compiler, file: file.to_owned(), message })
}
