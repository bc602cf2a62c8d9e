//! Encryption of connections: rustls, with functions that are Rust and its assembler alone, and the roots of the system.

use std::sync::Arc;

use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsConfigBuilder};

use super::error::RemoteError;

/// Returns the settings of encrypted connections.
pub fn settings() -> Result<TlsConfig, RemoteError> {
    is_possible()?;
    let found = rustls_native_certs::load_native_certs();
    let roots: Vec<_> = found.certs.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
    if roots.is_empty() {
        let message = "the system has no certificates of authorities (SSL_CERT_FILE names a file of them)";
        return Err(RemoteError::Tls(message.to_owned()));
    }
    Ok(with_functions(TlsConfig::builder()).root_certs(RootCerts::Specific(Arc::new(roots))).build())
}

/// Refuses on processors without the instructions that the functions are made of, which would end the process.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub fn is_possible() -> Result<(), RemoteError> {
    match graviola::util::is_cpu_supported() {
        true => Ok(()),
        false => Err(RemoteError::Tls("this processor lacks instructions for it, such as those for AES".to_owned())),
    }
}

/// Refuses: there are no functions for this processor.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn is_possible() -> Result<(), RemoteError> {
    Err(RemoteError::Tls("there is nothing to encrypt with for this processor".to_owned()))
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn with_functions(settings: TlsConfigBuilder) -> TlsConfigBuilder {
    settings.unversioned_rustls_crypto_provider(Arc::new(rustls_graviola::default_provider()))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn with_functions(settings: TlsConfigBuilder) -> TlsConfigBuilder {
    settings
}
