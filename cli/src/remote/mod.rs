//! Files of servers: read range by range, so that no more of a file comes over the network than a command needs.
//!
//! `name` tells such files from paths. With the feature `remote` the rest reads them: `place` checks URLs, `transport` asks
//! (`gate` and `address` decide where, `answer` what is believed, `tls` encrypts), and `source` is the file that commands
//! read from. Stores of clouds are in `cloud`.

mod name;

#[cfg(feature = "remote")]
mod access;
#[cfg(feature = "remote")]
mod address;
#[cfg(feature = "remote")]
mod answer;
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
mod cloud;
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
mod crypto;
#[cfg(feature = "remote")]
mod error;
#[cfg(feature = "remote")]
mod gate;
#[cfg(feature = "remote")]
mod open;
#[cfg(feature = "remote")]
mod place;
#[cfg(feature = "remote")]
mod source;
#[cfg(feature = "remote")]
mod tls;
#[cfg(feature = "remote")]
mod transport;

pub(crate) use name::{NOT_BESIDE, remote, shown};

#[cfg(feature = "remote")]
pub use access::{Access, Credentials};
#[cfg(feature = "remote")]
pub use answer::AnswerError;
#[cfg(feature = "remote")]
pub use error::RemoteError;
#[cfg(feature = "remote")]
pub use open::open;
#[cfg(feature = "remote")]
pub use source::RemoteSource;
