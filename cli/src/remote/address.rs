//! Addresses that may be connected to.
//!
//! Invariant: whoever names a server decides how near it may be, and nothing a server says brings a request nearer: neither
//! a redirect nor a name that has other addresses later.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Distance of an address, the farthest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Scope {
    /// Anywhere.
    Public,
    /// In networks of an organisation or provider.
    Private,
    /// On this machine.
    Loopback,
}

/// Returns the scope of an address; `None` if nothing is read from there: links without routers, where machines are given
/// their credentials, addresses of many or of nobody, and those of examples.
pub fn scope(address: IpAddr) -> Option<Scope> {
    match address {
        IpAddr::V4(address) => scope_v4(address),
        IpAddr::V6(address) => scope_v6(address),
    }
}

fn scope_v4(address: Ipv4Addr) -> Option<Scope> {
    Some(match address.octets() {
        [127, ..] => Scope::Loopback,
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] | [100, 64..=127, ..] => Scope::Private,
        [0 | 224..=255, ..] | [169, 254, ..] | [198, 18 | 19, ..] => return None,
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 51, 100, _] | [203, 0, 113, _] => return None,
        _ => Scope::Public,
    })
}

fn scope_v6(address: Ipv6Addr) -> Option<Scope> {
    let parts = address.segments();
    let embedded = |high: u16, low: u16| scope_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    Some(match parts {
        [0, 0, 0, 0, 0, 0, 0, 1] => Scope::Loopback,
        // Addresses of IPv4, as they are, translated, and in tunnels.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => return embedded(high, low),
        [0x2002, high, low, ..] => return embedded(high, low),
        [0x64, 0xff9b, 1, ..] | [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => Scope::Private,
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => return None,
        [0x2000..=0x3fff, ..] => Scope::Public,
        _ => return None,
    })
}

/// Reason against an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The address.
    pub address: IpAddr,
    /// Reason against it.
    pub why: &'static str,
}

/// Returns the nearest scope of the addresses of a host, none of which is nearer than `nearest`.
pub fn judge(addresses: impl IntoIterator<Item = IpAddr>, nearest: Scope) -> Result<Scope, Refused> {
    let mut found = Scope::Public;
    for address in addresses {
        let why = match scope(address) {
            None => "from where nothing is read",
            Some(scope) if scope <= nearest => {
                found = found.max(scope);
                continue;
            }
            Some(Scope::Loopback) => "this machine, which the URL does not name",
            Some(_) => "in a private network, where nothing from outside leads",
        };
        return Err(Refused { address, why });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_scopes() {
        let of = |text: &str| scope(text.parse().unwrap());
        for public in
            ["1.1.1.1", "100.63.0.1", "100.128.0.1", "172.15.0.1", "172.32.0.1", "2606:4700::1111", "2002:101:101::"]
        {
            assert_eq!(of(public), Some(Scope::Public), "{public}");
        }
        for private in [
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.255.255",
            "fc00::1",
            "fdff::1",
            "fec0::1",
            "::ffff:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:a00:1::",
        ] {
            assert_eq!(of(private), Some(Scope::Private), "{private}");
        }
        for loopback in ["127.0.0.1", "127.255.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::127.0.0.1", "2002:7f00:1::1"]
        {
            assert_eq!(of(loopback), Some(Scope::Loopback), "{loopback}");
        }
        for none in [
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "::",
            "::7f00:1",
            "fe80::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "100::1",
            "192.0.2.1",
            "198.18.0.1",
            "4000::1",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn nothing_nearer_than_allowed_is_taken() {
        let [public, private, own]: [IpAddr; 3] =
            ["1.1.1.1", "10.0.0.1", "127.0.0.1"].map(|text| text.parse().unwrap());
        assert_eq!(judge([public], Scope::Public), Ok(Scope::Public));
        assert_eq!(judge([public, private], Scope::Private), Ok(Scope::Private));
        assert_eq!(judge([own, public], Scope::Loopback), Ok(Scope::Loopback));
        assert_eq!(judge([public, private], Scope::Public).unwrap_err().address, private);
        assert_eq!(judge([own], Scope::Private).unwrap_err().address, own);
    }
}
