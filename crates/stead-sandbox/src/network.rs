//! The hosts that a command may reach.
//!
//! Effects: none.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The hosts that a command may reach, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedHosts(Vec<HostPattern>);

/// A host name, or `*.` and a domain, which covers the names below it. Both may end with `:` and a
/// port; without one, the ports of web servers are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    name: String,
    depth: NameDepth,
    port: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameDepth {
    /// The name itself.
    Exact,
    /// Names below it.
    Below,
}

/// The ports that a pattern without a port covers.
const WEB_PORTS: [u16; 2] = [80, 443];

/// Why a text is not a pattern for hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{pattern:?} is not a host: {reason}; write a name such as `example.org`, or `*.example.org`"
)]
pub struct HostPatternError {
    pattern: String,
    reason: &'static str,
}

impl AllowedHosts {
    /// Collects patterns.
    pub fn new(patterns: impl IntoIterator<Item = HostPattern>) -> Self {
        Self(patterns.into_iter().collect())
    }

    /// Returns whether no host is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether `host` may be reached at `port`.
    pub fn allow(&self, host: &str, port: u16) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.0.iter().any(|pattern| pattern.covers(&host, port))
    }

    /// Returns the patterns.
    pub fn iter(&self) -> impl Iterator<Item = &HostPattern> {
        self.0.iter()
    }
}

impl HostPattern {
    /// Returns whether the pattern covers a name in lower case without a dot at its end.
    fn covers(&self, host: &str, port: u16) -> bool {
        let port_fits = match self.port {
            Some(own) => own == port,
            None => WEB_PORTS.contains(&port),
        };
        port_fits
            && match self.depth {
                NameDepth::Exact => host == self.name,
                NameDepth::Below => host
                    .strip_suffix(&self.name)
                    .is_some_and(|below| below.len() > 1 && below.ends_with('.')),
            }
    }

    /// Returns whether the pattern names an address, not a name.
    fn is_address(&self, address: IpAddr) -> bool {
        self.name.parse::<IpAddr>().is_ok_and(|own| own == address)
    }
}

impl AllowedHosts {
    /// Returns whether a pattern names `address` itself. Only then may an address be reached that is
    /// not public.
    pub(crate) fn name_address(&self, address: IpAddr, port: u16) -> bool {
        self.0.iter().any(|pattern| {
            pattern.is_address(address) && pattern.covers(&address.to_string(), port)
        })
    }
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        let fail = |reason| {
            let pattern = text.to_owned();
            Err(HostPatternError { pattern, reason })
        };
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !name.contains(':') => match port.parse() {
                Ok(port) => (name, Some(port)),
                Err(_) => return fail("its port is not a number up to 65535"),
            },
            Some(_) | None => (text, None),
        };
        let (name, depth) = match name.strip_prefix("*.") {
            Some(name) => (name, NameDepth::Below),
            None => (name, NameDepth::Exact),
        };
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        if name.parse::<IpAddr>().is_ok() && depth == NameDepth::Exact {
            return Ok(Self { name, depth, port });
        }
        if name.is_empty() {
            return fail("it is empty");
        }
        if name.contains('*') {
            return fail("`*` can only stand at its beginning, before a dot");
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        if !name.chars().all(is_name) || name.split('.').any(str::is_empty) {
            return fail("it has characters that names of hosts do not have");
        }
        if depth == NameDepth::Below && !name.contains('.') {
            return fail("everything below a top-level domain is too much");
        }
        Ok(Self { name, depth, port })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.depth == NameDepth::Below {
            f.write_str("*.")?;
        }
        f.write_str(&self.name)?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

/// Returns whether an address belongs to a host of the public internet: not to this machine, to a
/// private network, or to a cloud provider's metadata service.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let protocol_assignments = a == 192 && b == 0 && c == 0;
    let benchmarks = a == 198 && (b == 18 || b == 19);
    !(a == 0
        || a >= 240
        || shared
        || protocol_assignments
        || benchmarks
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = embedded_v4(address) {
        return is_public_v4(inner);
    }
    // Only 2000::/3 is assigned to hosts of the internet.
    let first = address.segments()[0];
    let documentation = first == 0x2001 && address.segments()[1] == 0xdb8;
    (0x2000..0x4000).contains(&first) && !documentation
}

/// Returns the version 4 address that an address stands for: mapped, translated (64:ff9b::/96) or
/// 6to4 (2002::/16).
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = address.segments();
    let join = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match s {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(join(high, low))
        }
        [0x2002, high, low, ..] => Some(join(high, low)),
        _ => address.to_ipv4_mapped(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(patterns: &[&str]) -> AllowedHosts {
        AllowedHosts::new(patterns.iter().map(|pattern| pattern.parse().unwrap()))
    }

    #[test]
    fn a_name_covers_itself_and_a_star_what_is_below() {
        let allowed = hosts(&[
            "pypi.org",
            "*.example.org",
            "db.example.net:5432",
            "127.0.0.1:8080",
        ]);
        for (host, port) in [
            ("pypi.org", 443),
            ("PyPI.org.", 80),
            ("a.example.org", 443),
            ("a.b.example.org", 443),
            ("db.example.net", 5432),
            ("127.0.0.1", 8080),
        ] {
            assert!(allowed.allow(host, port), "{host}:{port}");
        }
        for (host, port) in [
            ("pypi.org", 22),
            ("evil-pypi.org", 443),
            ("pypi.org.evil.net", 443),
            ("example.org", 443),
            ("evilexample.org", 443),
            (".example.org", 443),
            ("db.example.net", 443),
            ("127.0.0.1", 80),
        ] {
            assert!(!allowed.allow(host, port), "{host}:{port}");
        }
    }

    #[test]
    fn what_is_not_a_host_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "empty"),
            ("*", "beginning"),
            ("*.org", "top-level"),
            ("a.*.org", "beginning"),
            ("a..org", "characters"),
            ("http://a.org", "port"),
            ("a.org/x", "characters"),
            ("a.org:99999", "port"),
            ("a b", "characters"),
        ] {
            let error = text.parse::<HostPattern>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
        for text in ["pypi.org", "*.example.org", "db:5432", "127.0.0.1", "[::1]"] {
            let parsed = text.trim_matches(['[', ']']).parse::<HostPattern>();
            assert_eq!(
                parsed.map(|host| host.to_string()).as_deref(),
                Ok(text.trim_matches(['[', ']']))
            );
        }
    }

    #[test]
    fn only_hosts_of_the_internet_are_public() {
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.168.1.1",
            "192.0.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "2001:db8::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "151.101.0.223",
            "2606:4700::1111",
            "2002:101:101::",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }
}
