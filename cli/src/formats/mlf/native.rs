//! Consent to run the code of a package: asked for by an option, and passed on here alone.

use crate::options::Native;

/// Options for compiling the code of a package, and whether that is allowed.
#[expect(unsafe_code, reason = "the user's consent is given here and nowhere else")]
pub fn options(consent: Native) -> edgepack_native::Options {
    let options = edgepack_native::Options::default();
    // SAFETY: the user has vouched for the package's code, and for the tensors given to it, by the option's name.
    if consent.allow_native_code { unsafe { options.allow_native_code() } } else { options }
}
