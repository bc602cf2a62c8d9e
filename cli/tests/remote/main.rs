//! Files of servers, read by the command and as a library, from servers that answer well, badly, and with bad intent.

mod answers;
#[cfg(all(feature = "s3", feature = "gcs", feature = "azure"))]
mod cloud;
mod commands;
mod encrypted;
mod large;
mod server;

use std::time::Duration;

use edgepack_cli::remote::{Access, RemoteError, RemoteSource, open};
use edgepack_format::limits::Limits;

use server::Server;

/// Access to servers of this machine, which are given two seconds.
fn access() -> Access {
    Access { loopback_http: true, timeout: Duration::from_secs(2), credentials: None, limits: Limits::DEFAULT }
}

fn opened(server: &Server) -> Result<RemoteSource, RemoteError> {
    open(&server.url("file"), &access())
}
