//! Consent to run the code of a package: asked for by an option, and passed on here alone.

use crate::options::Native;
use crate::status::Status;

/// Options for compiling the code of a package, and whether that is allowed.
#[expect(unsafe_code, reason = "the user's consent is given here and nowhere else")]
pub fn options(consent: &Native) -> edgepack_native::Options {
    let options = edgepack_native::Options::default();
    // SAFETY: the user has vouched for the package's code, and for the tensors given to it, by the option's name.
    if consent.allow_native_code { unsafe { options.allow_native_code() } } else { options }
}

/// Runs the code of packages for the command that started this process, and connected itself to standard input. The
/// first thing that a program does which is started with [`HELPER`](crate::HELPER): descriptors beyond the standard ones
/// are closed.
#[cfg(unix)]
#[expect(unsafe_code, reason = "the parent asked its user for consent")]
pub fn serve() -> Status {
    // SAFETY: a parent that asks for code to be run has the user's consent, and made the library that it names; this
    // process has opened nothing.
    match unsafe { edgepack_native::child::serve() } {
        Ok(()) => Status::Fine,
        Err(error) => {
            eprintln!("error: {error}");
            Status::Usage
        }
    }
}

/// Runs no code: processes of this kind are not connected here.
#[cfg(not(unix))]
pub fn serve() -> Status {
    eprintln!("error: code of packages runs with --in-process here");
    Status::Usage
}
