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

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(uri: &str, nearest: Scope, only_loopback: bool) -> Result<Option<Scope>, RemoteError> {
        let gate = Gate::default();
        gate.open(nearest, only_loopback);
        let resolved = gate.resolve(&uri.parse().unwrap(), &Config::default(), NextTimeout::default());
        let found = gate.found();
        assert_eq!(resolved.is_ok(), found.is_ok(), "{uri}");
        found
    }

    #[test]
    fn nothing_leads_nearer() {
        for (uri, own) in [
            ("https://10.0.0.1/x", Scope::Private),
            ("https://[fd00::1]/x", Scope::Private),
            ("https://100.64.0.1/x", Scope::Private),
            ("https://127.0.0.1/x", Scope::Loopback),
            ("https://localhost/x", Scope::Loopback),
            ("https://[::1]/x", Scope::Loopback),
            ("https://[::ffff:10.0.0.1]/x", Scope::Private),
        ] {
            assert_eq!(ask(uri, own, false), Ok(Some(own)), "{uri}");
            let refused = ask(uri, Scope::Public, false);
            assert!(matches!(refused, Err(RemoteError::Address { .. })), "{uri}: {refused:?}");
        }
        assert!(ask("https://127.0.0.1/x", Scope::Private, false).is_err());
        assert_eq!(ask("https://1.1.1.1/x", Scope::Loopback, false), Ok(Some(Scope::Public)));
        // Where connections are not encrypted, they do not leave the machine, whatever a name leads to.
        assert!(ask("http://1.1.1.1/x", Scope::Loopback, true).is_err());
        assert!(ask("http://10.0.0.1/x", Scope::Loopback, true).is_err());
        assert_eq!(ask("http://127.0.0.1/x", Scope::Loopback, true), Ok(Some(Scope::Loopback)));
    }
}
