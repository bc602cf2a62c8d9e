//! A compiled module in the process: its symbols, and the function table they make.
#![allow(unsafe_code, reason = "loading and calling compiled code; each block says what the caller has agreed to")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::sync::Arc;

use edgepack_executor::mlf::{Call, Function, FunctionError, FunctionTable, Signature};
use edgepack_loader::mlf::LibraryModule;
#[cfg(any(unix, windows))]
use libloading::Library;

use crate::abi::{Frame, Packed, TensorArg};
use crate::compile::{self, Options};
use crate::error::Error;

/// A shared library where there are none: there never is a value of it.
#[cfg(not(any(unix, windows)))]
#[derive(Debug)]
enum Library {}

/// A compiled module. It stays loaded while any function of it lives.
#[derive(Clone, Debug)]
pub struct NativeLibrary {
    library: Arc<Library>,
}

impl NativeLibrary {
    /// Compiles a module, or finds it compiled, and loads it. Fails unless the options allow native code.
    pub fn compile(module: &LibraryModule, options: &Options) -> Result<NativeLibrary, Error> {
        let library = Self::load(&compile::library(module, options)?)?;
        library.set_threads(options.threads);
        Ok(library)
    }

    /// Loads a library that [`compile::library`] made.
    #[cfg(any(unix, windows))]
    pub(crate) fn load(path: &Path) -> Result<NativeLibrary, Error> {
        // SAFETY: loading runs whatever the package's code does at load. The caller of `allow_native_code` agreed to
        // run that code; `compile::library` answers no path without it.
        let library = unsafe { Library::new(path)? };
        Ok(NativeLibrary { library: Arc::new(library) })
    }

    /// Fails: this platform loads no code.
    #[cfg(not(any(unix, windows)))]
    pub(crate) fn load(path: &Path) -> Result<NativeLibrary, Error> {
        Err(Error::NoLibraries(path.to_owned()))
    }

    /// Sets the number of tasks of parallel loops that leave it open.
    pub(crate) fn set_threads(&self, threads: usize) {
        type SetThreads = unsafe extern "C" fn(c_int);
        // SAFETY: our own runtime has it, with this type; it takes any number.
        unsafe {
            if let Some(function) = self.symbol::<SetThreads>("edgepack_set_threads") {
                function(c_int::try_from(threads).unwrap_or(c_int::MAX));
            }
        }
    }

    /// A packed function: by its symbol, or by the name that an object registered it under. Its pointer is good while the
    /// library is.
    pub(crate) fn packed(&self, name: &str) -> Option<Packed> {
        type Find = unsafe extern "C" fn(*const c_char) -> Option<Packed>;
        let terminated = CString::new(name).ok()?;
        // SAFETY: our own runtime has it, with this type; it reads a terminated name. Generated functions of this name
        // have this signature; older registries declare five parameters and are called with six all the same, as their
        // own runtime does.
        unsafe { self.symbol::<Find>("edgepack_find")?(terminated.as_ptr()) }
    }

    /// A function of another signature.
    ///
    /// # Safety
    /// `F` is the type of the function of this name.
    pub(crate) unsafe fn symbol<F: Copy>(&self, name: &str) -> Option<F> {
        // SAFETY: by the caller.
        #[cfg(any(unix, windows))]
        unsafe {
            self.library.get::<F>(name).ok().map(|symbol| *symbol)
        }
        #[cfg(not(any(unix, windows)))]
        {
            let _ = name;
            match *self.library {}
        }
    }

    /// Returns whether there is such a symbol.
    pub fn has(&self, name: &str) -> bool {
        self.packed(name).is_some()
    }

    /// Returns the last error message of the code.
    pub(crate) fn last_error(&self) -> String {
        type LastError = unsafe extern "C" fn() -> *const c_char;
        // SAFETY: our own runtime has it, with this type; it answers a terminated text of this thread.
        unsafe {
            let Some(function) = self.symbol::<LastError>("edgepack_last_error") else { return String::new() };
            CStr::from_ptr(function()).to_string_lossy().into_owned()
        }
    }

    /// Returns the error that reports a failed call.
    pub(crate) fn failure(&self, function: &str, code: i32) -> Error {
        Error::Call { function: function.to_owned(), code, message: self.last_error() }
    }

    /// Calls a packed function once.
    pub(crate) fn call(&self, name: &str, tensors: &[TensorArg<'_>]) -> Result<(), Error> {
        let function = self.packed(name).ok_or_else(|| Error::Symbol(name.to_owned()))?;
        let mut frame = Frame::default();
        tensors.iter().for_each(|tensor| frame.push(*tensor));
        // SAFETY: the caller has agreed to run this code on these tensors, whose memory it owns.
        let code = unsafe { frame.call(function) };
        if code == 0 { Ok(()) } else { Err(self.failure(name, code)) }
    }
}

/// A function of a compiled module.
struct NativeFunction {
    name: String,
    function: Packed,
    frame: Frame,
    library: NativeLibrary,
}

impl Function for NativeFunction {
    fn call(&mut self, call: &mut Call<'_>) -> Result<(), FunctionError> {
        self.frame.clear();
        for index in 0..call.argument_count() {
            let argument = call.argument(index)?;
            // Generated code reads its arguments and writes its results.
            let data = argument.bytes.as_ptr().cast_mut().cast();
            self.frame.push(TensorArg { operand: argument.operand, data });
        }
        for result in call.results() {
            self.frame.push(TensorArg { operand: result.operand, data: result.bytes.as_mut_ptr().cast() });
        }
        // SAFETY: the executor's plan gives every argument and result its own bytes of the size of its operand, aligned
        // to 64, and they outlive the call. That the code keeps to them is what allowing native code trusts it with.
        let code = unsafe { self.frame.call(self.function) };
        match code {
            0 => Ok(()),
            code => Err(FunctionError(self.library.failure(&self.name, code).to_string())),
        }
    }
}

impl FunctionTable for NativeLibrary {
    fn find(&self, name: &str, _: &Signature<'_>) -> Result<Option<Box<dyn Function>>, FunctionError> {
        Ok(self.packed(name).map(|function| {
            let (name, library) = (name.to_owned(), self.clone());
            Box::new(NativeFunction { name, function, frame: Frame::default(), library }) as Box<dyn Function>
        }))
    }
}
