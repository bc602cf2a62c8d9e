//! Signatures of questions to cloud stores.

use std::sync::Arc;

use object_store::client::CryptoProvider;

use super::error::RemoteError;

/// Returns the functions that questions are signed with.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub fn provider() -> Result<Arc<dyn CryptoProvider>, RemoteError> {
    super::tls::is_possible()?;
    Ok(Arc::new(functions::Functions))
}

/// Refuses: there are no such functions for this processor.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn provider() -> Result<Arc<dyn CryptoProvider>, RemoteError> {
    Err(RemoteError::Tls("there is nothing to sign with for this processor".to_owned()))
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod functions {
    use graviola::hashing::hmac::Hmac;
    use graviola::hashing::{Hash, HashContext, HashOutput, Sha256};
    use graviola::signing::rsa::SigningKey;
    use object_store::client::{CryptoProvider, DigestAlgorithm, DigestContext, HmacContext, Signer, SigningAlgorithm};
    use object_store::{Error, Result};
    use ureq::tls::{PemItem, parse_pem};

    use super::super::error::RemoteError;

    #[derive(Debug)]
    pub struct Functions;

    fn refused() -> Error {
        Error::Generic { store: "environment", source: Box::new(RemoteError::Store("cloud".to_owned())) }
    }

    impl CryptoProvider for Functions {
        fn digest(&self, algorithm: DigestAlgorithm) -> Result<Box<dyn DigestContext>> {
            match algorithm {
                DigestAlgorithm::Sha256 => Ok(Box::new(Running { context: Some(Sha256::new()), output: None })),
                _ => Err(refused()),
            }
        }

        fn hmac(&self, algorithm: DigestAlgorithm, secret: &[u8]) -> Result<Box<dyn HmacContext>> {
            match algorithm {
                DigestAlgorithm::Sha256 => {
                    Ok(Box::new(Running { context: Some(Hmac::<Sha256>::new(secret)), output: None }))
                }
                _ => Err(refused()),
            }
        }

        fn sign(&self, algorithm: SigningAlgorithm, pem: &[u8]) -> Result<Box<dyn Signer>> {
            let SigningAlgorithm::RS256 = algorithm else { return Err(refused()) };
            let key = parse_pem(pem).find_map(|item| match item {
                Ok(PemItem::PrivateKey(key)) => {
                    SigningKey::from_pkcs8_der(key.der()).or_else(|_| SigningKey::from_pkcs1_der(key.der())).ok()
                }
                _ => None,
            });
            Ok(Box::new(Key(key.ok_or_else(refused)?)))
        }
    }

    /// A computation, then its result.
    struct Running<C> {
        context: Option<C>,
        output: Option<HashOutput>,
    }

    type Sha256Context = <Sha256 as Hash>::Context;

    impl DigestContext for Running<Sha256Context> {
        fn update(&mut self, data: &[u8]) {
            self.context.iter_mut().for_each(|context| context.update(data));
        }

        fn finish(&mut self) -> Result<&[u8]> {
            let output = self.context.take().ok_or_else(refused)?.finish();
            let output: &HashOutput = self.output.insert(output);
            Ok(output.as_ref())
        }
    }

    impl HmacContext for Running<Hmac<Sha256>> {
        fn update(&mut self, data: &[u8]) {
            self.context.iter_mut().for_each(|context| context.update(data));
        }

        fn finish(&mut self) -> Result<&[u8]> {
            let output = self.context.take().ok_or_else(refused)?.finish();
            let output: &HashOutput = self.output.insert(output);
            Ok(output.as_ref())
        }
    }

    struct Key(SigningKey);

    impl Signer for Key {
        fn sign(&self, text: &[u8]) -> Result<Vec<u8>> {
            let mut signature = vec![0; self.0.modulus_len_bytes()];
            let len = self.0.sign_pkcs1_sha256(&mut signature, text).map_err(|_| refused())?.len();
            signature.truncate(len);
            Ok(signature)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn digests_are_those_of_the_standards() {
            let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let mut digest = Functions.digest(DigestAlgorithm::Sha256).unwrap();
            digest.update(b"a");
            digest.update(b"bc");
            let want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
            assert_eq!(hex(digest.finish().unwrap()), want);
            assert!(digest.finish().is_err());
            // RFC 4231, case 2.
            let mut hmac = Functions.hmac(DigestAlgorithm::Sha256, b"Jefe").unwrap();
            hmac.update(b"what do ya want for nothing?");
            let want = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
            assert_eq!(hex(hmac.finish().unwrap()), want);
            assert!(Functions.sign(SigningAlgorithm::RS256, b"no key").is_err());
        }
    }
}
