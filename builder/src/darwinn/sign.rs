//! Signatures of packages: ECDSA on P-256 over the SHA-256 of the multi-executable, in DER.

use p256::ecdsa::signature::Signer as _;
use p256::pkcs8::DecodePrivateKey as _;

use crate::BuildError;

/// A private key.
#[derive(Clone)]
pub struct SigningKey(p256::ecdsa::SigningKey);

impl SigningKey {
    /// Reads a PKCS#8 key in PEM.
    pub fn from_pem(pem: &str) -> Result<Self, BuildError> {
        match p256::ecdsa::SigningKey::from_pkcs8_pem(pem) {
            Ok(key) => Ok(SigningKey(key)),
            Err(error) => Err(BuildError::Key(error.to_string())),
        }
    }

    /// From the number that is the key; 0 and numbers beyond the curve's order are none.
    pub fn from_bytes(number: &[u8; 32]) -> Result<Self, BuildError> {
        match p256::ecdsa::SigningKey::from_slice(number) {
            Ok(key) => Ok(SigningKey(key)),
            Err(error) => Err(BuildError::Key(error.to_string())),
        }
    }

    /// The public key in PEM, as verifiers take it.
    pub fn public_pem(&self) -> Result<String, BuildError> {
        use p256::pkcs8::EncodePublicKey as _;
        let pem = self.0.verifying_key().to_public_key_pem(p256::pkcs8::LineEnding::LF);
        pem.map_err(|error| BuildError::Key(error.to_string()))
    }

    /// The signature of these bytes. The same bytes have the same one.
    pub fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        let signature: p256::ecdsa::Signature = self.0.sign(bytes);
        signature.to_der().as_bytes().to_vec()
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the key itself.
        f.write_str("SigningKey")
    }
}
