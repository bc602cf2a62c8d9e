//! Signatures: ECDSA on P-256 over the SHA-256 of the multi-executable's bytes, in DER.
//!
//! Nothing else of a package is signed: versions, chip id and model identifier may be changed.

use edgepack_format::darwinn::PackageRef;
use p256::ecdsa::signature::Verifier as _;
use p256::ecdsa::{Signature, VerifyingKey};
use p256::pkcs8::DecodePublicKey as _;

use super::RegisterError;

/// A key that signatures are checked with.
#[derive(Clone, Debug)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Reads a public key in PEM.
    pub fn from_pem(pem: &str) -> Result<Self, RegisterError> {
        match VerifyingKey::from_public_key_pem(pem) {
            Ok(key) => Ok(PublicKey(key)),
            Err(error) => Err(RegisterError::Signature(format!("the key cannot be read: {error}"))),
        }
    }

    /// Checks that the package is signed by this key: `false` if it is not signed, an error if by another, or if the
    /// executables have changed since.
    pub fn check(&self, package: &PackageRef<'_>) -> Result<bool, RegisterError> {
        let signature = package.package().signature.as_ref().map_or(&[][..], |blob| blob.as_slice());
        if signature.is_empty() {
            return Ok(false);
        }
        let wrong = |what: &str| RegisterError::Signature(what.to_owned());
        let signature =
            Signature::from_der(signature).map_err(|_| wrong("the signature is not two integers in DER"))?;
        match self.0.verify(package.multi_executable_bytes(), &signature) {
            Ok(()) => Ok(true),
            Err(_) => Err(wrong("the signature is not that of these executables by this key")),
        }
    }
}
