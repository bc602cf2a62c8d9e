//! Encrypted connections, to a server with a certificate that an authority of this test signed.
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};

use super::server::{File, Server};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/remote/tls").join(name)
}

fn serving(file: File, version: &'static SupportedProtocolVersion) -> Server {
    let provider = Arc::new(rustls_graviola::default_provider());
    let chain = CertificateDer::pem_file_iter(path("server.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(path("server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[version]).unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let wrap = move |stream| {
        let connection = ServerConnection::new(config.clone()).map_err(std::io::Error::other)?;
        Ok(Box::new(StreamOwned::new(connection, stream)) as Box<dyn super::server::Stream>)
    };
    Server::wrapped(wrap, file)
}

fn inspect(url: &str, authorities: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_edgepack"));
    command.args(["inspect", url]).env("SSL_CERT_FILE", authorities).env_remove("SSL_CERT_DIR").stdin(Stdio::null());
    command.output().expect("the command")
}

#[test]
fn servers_are_known_by_their_authority() {
    let name = "../tests/data/corpus/models/mlp_portable.pte";
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    let file = File::new(bytes.clone(), bytes.len() as u64);
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let server = serving(file.clone(), version);
        let by_name = server.url("m.pte").replace("127.0.0.1", "localhost");
        for url in [server.url("m.pte"), by_name] {
            let output = inspect(&url, &path("authority.pem"));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
            assert!(String::from_utf8_lossy(&output.stdout).contains("ExecuTorch program"));
        }
        assert!(server.asked().len() >= 2);
    }
    // Of an authority that nobody knows, and under a name that the certificate does not have.
    let server = serving(file, &rustls::version::TLS13);
    let other = server.url("m.pte").replace("127.0.0.1", "other.localhost");
    for (url, authorities) in [(server.url("m.pte"), path("server.pem")), (other, path("authority.pem"))] {
        let output = inspect(&url, &authorities);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("error: https://"), "{said}");
    }
    assert!(server.asked().is_empty());
}
