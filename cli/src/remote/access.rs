//! Permissions and bounds of reading from servers.

use std::fmt;
use std::time::Duration;

use edgepack_format::limits::Limits;

use super::error::RemoteError;
use super::place::Place;

/// Permissions and bounds of reading from servers.
#[derive(Clone, Debug)]
pub struct Access {
    /// `http://` is taken of this machine.
    pub loopback_http: bool,
    /// Time for one answer, from the question to its last byte.
    pub timeout: Duration,
    /// Token for one host.
    pub credentials: Option<Credentials>,
    /// Ceilings, of which `fetch_bytes` counts here.
    pub limits: Limits,
}

/// Time for one answer if nothing else is said: two megabytes in a minute come over the slowest line.
const TIMEOUT: Duration = Duration::from_secs(60);

impl Access {
    /// Access with what the environment says: `EDGEPACK_REMOTE_HOST` and `EDGEPACK_REMOTE_TOKEN`.
    pub fn of_environment(loopback_http: bool, limits: Limits) -> Result<Access, RemoteError> {
        let read = |name| match std::env::var(name) {
            Ok(value) if value.is_empty() => Ok(None),
            Ok(value) => Ok(Some(value)),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(RemoteError::Credentials),
        };
        let credentials = match (read("EDGEPACK_REMOTE_HOST")?, read("EDGEPACK_REMOTE_TOKEN")?) {
            (Some(host), Some(token)) => Some(Credentials::new(&host, &token)?),
            (None, None) => None,
            _ => return Err(RemoteError::Credentials),
        };
        Ok(Access { loopback_http, timeout: TIMEOUT, credentials, limits })
    }
}

/// A token for one host. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    host: String,
    header: String,
}

impl Credentials {
    /// A token for a host, which has its port behind it unless that is the port of the scheme.
    pub fn new(host: &str, token: &str) -> Result<Credentials, RemoteError> {
        let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !plain(host) || !plain(token) || host.contains('/') {
            return Err(RemoteError::Credentials);
        }
        Ok(Credentials { host: host.to_ascii_lowercase(), header: format!("Bearer {token}") })
    }

    /// Returns the header for a place, if the token is for its host.
    pub fn header(&self, place: &Place) -> Option<&str> {
        (place.authority() == self.host).then_some(&self.header)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("host", &self.host).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_for_one_host() {
        let credentials = Credentials::new("Host:8443", "secret").unwrap();
        let at = |url: &str| credentials.header(&Place::parse(url, false).unwrap()).is_some();
        assert!(at("https://host:8443/a"));
        assert!(!at("https://host/a") && !at("https://other:8443/a") && !at("https://host.other:8443/"));
        assert!(!format!("{credentials:?}").contains("secret"));
        for (host, token) in [("", "a"), ("host", ""), ("host", "a\r\nb"), ("https://host", "a"), ("host", "a b")] {
            assert_eq!(Credentials::new(host, token), Err(RemoteError::Credentials));
        }
    }
}
