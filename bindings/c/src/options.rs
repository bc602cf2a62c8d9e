//! Options of loading methods: threads, limits, data files, operators and backends of the caller's.

use std::ffi::c_char;
use std::mem::take;
use std::sync::{Mutex, OnceLock, PoisonError};

use edgepack::executor::delegate::OptionValue;
use edgepack::executor::{Options, Registry};
use edgepack::kernels;

use crate::backend::{Backend, EdgepackBackend};
use crate::data::EdgepackData;
use crate::entry;
use crate::error::{EdgepackCode, EdgepackError};
use crate::failure::Failure;
use crate::file::path;
use crate::handles::{close, get, handle, put};
use crate::kernel::{EdgepackKernel, Kernel};
use crate::limits::{EdgepackLimits, limits};
use crate::pointer::{In, Out};

/// Options of loading methods. Methods take what the options are when they are loaded.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgepackOptions {
    /// Number of the object; zero for none.
    pub id: u64,
}

handle!(EdgepackOptions, Options, OptionsObject, "options");

pub(crate) struct OptionsObject(Mutex<(Registry, Options)>);

/// The operators of the library, and no options.
fn defaults() -> (Registry, Options) {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    let registry = REGISTRY.get_or_init(kernels::registry).clone();
    (registry, Options { backends: edgepack::backends(), ..Options::default() })
}

impl EdgepackOptions {
    /// The operators, and all else, as they are now.
    pub(crate) fn read(self) -> Result<(Registry, Options), Failure> {
        if self.id == 0 {
            return Ok(defaults());
        }
        Ok(get(self)?.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn change(self, change: impl FnOnce(&mut Registry, &mut Options)) -> Result<(), Failure> {
        get(self)?.change(change);
        Ok(())
    }
}

impl OptionsObject {
    /// Changes the options. An operator that is replaced is dropped when nothing is locked: that may call functions of the
    /// caller's.
    fn change(&self, change: impl FnOnce(&mut Registry, &mut Options)) {
        let mut both = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = both.clone();
        let (registry, options) = &mut *both;
        change(registry, options);
        drop(both);
        drop(before);
    }
}

/// Makes options: the operators and backends of the library, threads as the machine has them.
///
/// Ownership: the options are the caller's, who closes them; methods that were loaded with them keep what they need.
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_options_new(options: Out<EdgepackOptions>, error: Out<EdgepackError>) -> EdgepackCode {
    entry::call(error, || {
        options.check(1, "options")?;
        options.write(put(OptionsObject(Mutex::new(defaults()))), "options")
    })
}

/// Sets the number of threads that a method has to itself; 0 for those of the process. Results do not depend on it.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_options_set_threads(
    options: EdgepackOptions,
    threads: usize,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    /// More than any machine has; each takes memory.
    const MOST: usize = 1024;
    entry::call(error, || {
        if threads > MOST {
            return Err(Failure::argument(format!("{threads} threads, at most {MOST} are possible")));
        }
        options.change(|_, options| {
            options.threads = (threads > 0).then_some(threads);
        })
    })
}

/// Sets whether methods are made faster when they are loaded, as they are unless `optimize` is 0.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_options_set_optimize(
    options: EdgepackOptions,
    optimize: u32,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        options.change(|_, options| {
            options.no_optimize = optimize == 0;
        })
    })
}

/// Sets the ceilings of methods. Without them, those that their program was opened with are theirs.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_options_set_limits(
    options: EdgepackOptions,
    limits: EdgepackLimits,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let limits = self::limits(limits)?;
        options.change(|_, options| {
            options.limits = Some(limits);
        })
    })
}

/// Adds named data in which weights are found, besides those inside of the program.
///
/// Ownership: the data may be closed before the options. Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_options_add_data(
    options: EdgepackOptions,
    data: EdgepackData,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let map = get(data)?.map.clone();
        options.change(|_, options| {
            options.data.push(map);
        })
    })
}

/// Stores packed weights in a folder, where later loads find them. The folder is made if it does not exist; one of another
/// user, or that others may write to, is refused.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_options_set_pack_folder(
    options: EdgepackOptions,
    folder: In<c_char>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let folder = path(&folder)?;
        let opened = edgepack::executor::PackFolder::open(folder)
            .map_err(|error| Failure::new(edgepack::format::finding::ErrorCode::AccessFailed, error.to_string()))?;
        options.change(|_, options| {
            options.folder = Some(opened);
        })
    })
}

/// Adds an operator of the caller's; one of the same name is replaced in these options.
///
/// Ownership: the struct and its texts are copied. `kernel->release` is called with `user` when neither these options nor any
/// method that was loaded with them needs the operator; if this function fails, it is not called.
/// Threads: any, at any time; those of the callbacks are said where the struct is.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_options_add_kernel(
    options: EdgepackOptions,
    kernel: In<EdgepackKernel>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let kernel = kernel.one("kernel")?;
        let object = get(options)?;
        let ours = Kernel::checked(kernel)?;
        object.change(|registry, _| *registry = take(registry).with(ours.hold()));
        Ok(())
    })
}

/// Adds a backend of the caller's; it goes before an earlier one of the same id.
///
/// Ownership: the struct and its texts are copied. `backend->release` is called with `user` when neither these options nor
/// any method that was loaded with them needs the backend; if this function fails, it is not called.
/// Threads: any, at any time; those of the callbacks are said where the struct is.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_options_add_backend(
    options: EdgepackOptions,
    backend: In<EdgepackBackend>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let backend = backend.one("backend")?;
        let object = get(options)?;
        let ours = Backend::checked(backend)?;
        object.change(|_, options| options.backends = take(&mut options.backends).with(ours.hold()));
        Ok(())
    })
}

/// Gives a backend an option that is a number.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_options_set_backend_int(
    options: EdgepackOptions,
    backend: In<c_char>,
    name: In<c_char>,
    value: i64,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || set_option(options, &backend, &name, value.into()))
}

/// Gives a backend an option that is true, or false for 0.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_options_set_backend_bool(
    options: EdgepackOptions,
    backend: In<c_char>,
    name: In<c_char>,
    value: u32,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || set_option(options, &backend, &name, (value != 0).into()))
}

/// Gives a backend an option that is text.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_options_set_backend_text(
    options: EdgepackOptions,
    backend: In<c_char>,
    name: In<c_char>,
    value: In<c_char>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || set_option(options, &backend, &name, value.text("the value")?.into()))
}

fn set_option(
    options: EdgepackOptions,
    backend: &In<c_char>,
    name: &In<c_char>,
    value: OptionValue,
) -> Result<(), Failure> {
    let (backend, name) = (backend.text("the backend's id")?, name.text("the option's name")?);
    options.change(|_, options| {
        options.backends = take(&mut options.backends).with_option(backend, name, value);
    })
}

/// Closes options. Methods that were loaded with them keep what they need. Zero is closed at any time.
///
/// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if they were closed before.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_options_close(options: EdgepackOptions) -> EdgepackCode {
    entry::call(Out::NULL, || close(options))
}
