//! Reasons for which a file elsewhere is not read. None of them holds a secret or words of a server.

use std::io;
use std::net::IpAddr;

use super::answer::AnswerError;

/// Reason for which a file elsewhere is not read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The name is not that of a file.
    #[error("this is not a URL of a file: {0}")]
    Url(String),
    /// A user's name or password is in the URL.
    #[error(
        "a URL with a user's name or password is not taken, since others see command lines: EDGEPACK_REMOTE_HOST and \
         EDGEPACK_REMOTE_TOKEN name a host and its token"
    )]
    UserInfo,
    /// The connection would not be encrypted.
    #[error(
        "http:// is taken of this machine alone, such as http://127.0.0.1, and with --loopback-http; elsewhere it is https://"
    )]
    Unencrypted,
    /// This build has no client for the scheme.
    #[error("{scheme}:// needs a build with the feature `{feature}`")]
    Feature {
        /// Scheme of the URL.
        scheme: String,
        /// Feature of the command's crate.
        feature: &'static str,
    },
    /// Only one of the two variables is set, or one of them cannot be used.
    #[error(
        "EDGEPACK_REMOTE_HOST and EDGEPACK_REMOTE_TOKEN belong together: a host (with a port unless it is 443), and the token for it"
    )]
    Credentials,
    /// The settings of a cloud store in the environment are not complete.
    #[error(
        "the environment does not say how to reach the {0} store: it has no credentials, or an address without https"
    )]
    Store(String),
    /// A server is where it may not be.
    #[error("{host} is at {address}, {why}")]
    Address {
        /// Name of the host.
        host: String,
        /// Its address.
        address: IpAddr,
        /// Reason against it.
        why: &'static str,
    },
    /// A server sends elsewhere, to a place that is not taken.
    #[error("the server redirects {0}")]
    Redirect(&'static str),
    /// No connection.
    #[error("cannot connect: {0}")]
    Connection(String),
    /// No protected connection can be made here.
    #[error("no encrypted connection can be made: {0}")]
    Tls(String),
    /// The server took too long.
    #[error("the server took longer than {0} seconds for one answer")]
    Timeout(u64),
    /// The server does not give the file.
    #[error("the server answers with status {status}{}", hint(*status))]
    Status {
        /// Status of the answer.
        status: u16,
    },
    /// The server sends whole files alone.
    #[error("the server does not answer ranges, as it would have to: it sends the whole file; download it first")]
    NoRanges,
    /// The answer contradicts itself or the question.
    #[error("the server's answer cannot be: {0}")]
    Answer(#[from] AnswerError),
    /// The file cannot be recognised from one answer to the next.
    #[error("the server says neither ETag nor Last-Modified, so pieces may be of different files; download it first")]
    Unidentified,
    /// The file is another one than before.
    #[error("the file changed while it was read: {what} was {before} and is {after}")]
    Changed {
        /// Property that changed.
        what: &'static str,
        /// Its first value.
        before: String,
        /// Its value now.
        after: String,
    },
    /// The server has no longer the file that was opened.
    #[error("the file changed while it was read: the server has another one now")]
    Replaced,
    /// More bytes than the limits allow.
    #[error("{bytes} bytes would have been fetched, the limits allow {limit}")]
    Limit {
        /// Bytes fetched so far and those that are wanted.
        bytes: u64,
        /// Bytes that may be fetched.
        limit: u64,
    },
    /// The client failed by itself.
    #[error("the request failed")]
    Failed,
}

fn hint(status: u16) -> &'static str {
    match status {
        401 | 403 => ": it wants credentials, or others (EDGEPACK_REMOTE_HOST, EDGEPACK_REMOTE_TOKEN)",
        404 | 410 => ": there is no such file",
        429 => ": too many requests",
        _ => "",
    }
}

impl From<RemoteError> for io::Error {
    fn from(error: RemoteError) -> Self {
        let kind = match &error {
            RemoteError::Timeout(_) => io::ErrorKind::TimedOut,
            RemoteError::Status { status: 404 | 410 } => io::ErrorKind::NotFound,
            RemoteError::Status { status: 401 | 403 } => io::ErrorKind::PermissionDenied,
            RemoteError::Answer(_) | RemoteError::Changed { .. } | RemoteError::Replaced => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}
