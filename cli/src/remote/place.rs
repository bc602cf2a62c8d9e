//! URLs of files, checked before anything is asked of their server.

use url::{Host, Url};

use super::error::RemoteError;

/// A URL that may be asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place(Url);

/// Characters of a URL.
const LONGEST: usize = 8 << 10;

impl Place {
    /// Reads a URL. `http://` is taken of this machine if `loopback_http` says so.
    pub fn parse(text: &str, loopback_http: bool) -> Result<Place, RemoteError> {
        if text.len() > LONGEST {
            return Err(RemoteError::Url(format!("it has more than {LONGEST} characters")));
        }
        let url = Url::parse(text).map_err(|error| RemoteError::Url(error.to_string()))?;
        Place::of(url, loopback_http)
    }

    /// Reads a place that the server at this one sends to: encrypted, unless both are on this machine.
    pub fn redirected(&self, location: &str) -> Result<Place, RemoteError> {
        if location.len() > LONGEST {
            return Err(RemoteError::Redirect("to a URL that is too long"));
        }
        let url = self.0.join(location).map_err(|_| RemoteError::Redirect("to what is not a URL"))?;
        Place::of(url, !self.is_encrypted()).map_err(|error| match error {
            RemoteError::UserInfo => RemoteError::Redirect("to a URL with a user's name or password"),
            _ => RemoteError::Redirect("to what is not a file of https://"),
        })
    }

    fn of(mut url: Url, loopback_http: bool) -> Result<Place, RemoteError> {
        if url.host().is_none() {
            return Err(RemoteError::Url("there is no host in it".to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(RemoteError::UserInfo);
        }
        url.set_fragment(None);
        let place = Place(url);
        match place.0.scheme() {
            "https" => Ok(place),
            "http" if loopback_http && place.names_this_machine() => Ok(place),
            "http" => Err(RemoteError::Unencrypted),
            other => Err(RemoteError::Url(format!("{other}:// is not read"))),
        }
    }

    /// Returns whether connections are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Returns whether the host is this machine by its name alone.
    pub fn names_this_machine(&self) -> bool {
        match self.0.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }

    /// The host, with the port unless it is that of the scheme.
    pub fn authority(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Returns whether both are on one server.
    pub fn is_at(&self, other: &Place) -> bool {
        self.0.origin() == other.0.origin()
    }

    /// The whole URL, with what may be secret.
    pub fn url(&self) -> &str {
        self.0.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_checked() {
        let parse = |text: &str| Place::parse(text, true);
        assert_eq!(parse("https://Host:443/a?b#c").unwrap().url(), "https://host/a?b");
        assert_eq!(parse("https://host:8443/a").unwrap().authority(), "host:8443");
        for own in
            ["http://127.0.0.1:8/a", "http://[::1]/a", "http://localhost/a", "http://2130706433/a", "http://0x7f.1/"]
        {
            assert!(parse(own).is_ok(), "{own}");
            assert_eq!(Place::parse(own, false), Err(RemoteError::Unencrypted));
        }
        for open in ["http://example.com/", "http://10.0.0.1/", "http://localhost.example.com/", "http://0.0.0.0/"] {
            assert_eq!(parse(open), Err(RemoteError::Unencrypted), "{open}");
        }
        for user in ["https://user@host/", "https://user:password@host/", "https://:password@host/"] {
            assert_eq!(parse(user), Err(RemoteError::UserInfo));
        }
        for bad in ["https://", "ftp://host/", "file:///etc/passwd", "https:host", "data:,x"] {
            assert!(parse(bad).is_err() || parse(bad).unwrap().url() == "https://host/", "{bad}");
        }
        assert!(parse(&format!("https://host/{}", "a".repeat(LONGEST))).is_err());
    }

    #[test]
    fn redirects_stay_encrypted() {
        let from = Place::parse("https://host/a/b", false).unwrap();
        assert_eq!(from.redirected("../c").unwrap().url(), "https://host/c");
        assert_eq!(from.redirected("//other/c").unwrap().url(), "https://other/c");
        for bad in
            ["http://host/c", "http://127.0.0.1/", "file:///etc/passwd", "https://u:p@host/", "https://[", "gopher://x"]
        {
            assert!(matches!(from.redirected(bad), Err(RemoteError::Redirect(_))), "{bad}");
        }
        let own = Place::parse("http://127.0.0.1:1/a", true).unwrap();
        assert!(own.redirected("http://127.0.0.1:2/b").is_ok());
        assert!(own.redirected("http://10.0.0.1/b").is_err());
    }
}
