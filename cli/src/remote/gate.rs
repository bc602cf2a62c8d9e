//! Names of hosts become addresses here, and every address is judged before a connection is made to it.

use std::sync::{Arc, Mutex, PoisonError};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use super::address::{Scope, judge};
use super::error::RemoteError;

/// The resolver of a client. Copies are one gate.
#[derive(Clone, Default, Debug)]
pub struct Gate(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Nearest scope that a connection may have.
    nearest: Scope,
    /// Unencrypted connections go to this machine alone.
    only_loopback: bool,
    /// Scope of the last host.
    found: Option<Scope>,
    refused: Option<RemoteError>,
}

impl Default for State {
    fn default() -> Self {
        State { nearest: Scope::Public, only_loopback: false, found: None, refused: None }
    }
}

impl Gate {
    /// Lets connections to hosts through of which no address is nearer than `nearest`, and if `only_loopback`, to this machine
    /// alone.
    pub fn open(&self, nearest: Scope, only_loopback: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State { nearest, only_loopback, ..State::default() };
    }

    /// Returns the scope of the host that was asked for since [`open`](Self::open), or the reason for which it was refused.
    pub fn found(&self) -> Result<Option<Scope>, RemoteError> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.refused.take().map_or(Ok(state.found), Err)
    }
}

impl Resolver for Gate {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let addresses = DefaultResolver::default().resolve(uri, config, timeout)?;
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let host = || uri.host().unwrap_or_default().to_owned();
        let judged = judge(addresses.iter().map(|address| address.ip()), state.nearest);
        let judged = judged.map_err(|refused| (refused.address, refused.why)).and_then(|scope| {
            let open = addresses.iter().find(|address| !address.ip().to_canonical().is_loopback());
            match open.filter(|_| state.only_loopback) {
                Some(address) => Err((address.ip(), "and http:// is taken of this machine alone")),
                None => Ok(scope),
            }
        });
        match judged {
            Ok(scope) => {
                state.found = Some(scope);
                Ok(addresses)
            }
            Err((address, why)) => {
                state.refused = Some(RemoteError::Address { host: host(), address, why });
                Err(ureq::Error::HostNotFound)
            }
        }
    }
}
