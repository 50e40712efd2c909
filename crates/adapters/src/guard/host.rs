//! Host names: the canonical form and the patterns an operator writes.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, de};
use url::Host;

/// Longest host name in its textual form without the trailing dot (RFC 1035 section 2.3.4).
pub const HOST_BYTES_MAX: usize = 253;

/// Longest label of a host name (RFC 1035 section 2.3.4).
pub const LABEL_BYTES_MAX: usize = 63;

/// A pattern of allowed hosts: exactly one host, or every name below a domain.
///
/// Written as `hooks.example.com`, `203.0.113.9`, `[2001:db8::1]` or `*.example.com`. A wildcard covers names at any
/// depth below the domain, but not the domain itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Exact(Host),
    Below(String),
}

/// A pattern that is neither a host nor `*.` followed by a domain name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("host pattern must be a host name, an address or `*.` and a domain name: {0}")]
pub struct BadHostPattern(String);

impl HostPattern {
    /// Whether this pattern covers `host`, which must be canonical.
    pub(super) fn covers(&self, host: &Host) -> bool {
        match (&self.0, host) {
            (Kind::Exact(exact), host) => exact == host,
            (Kind::Below(domain), Host::Domain(name)) => {
                name.strip_suffix(domain.as_str()).is_some_and(|head| head.len() > 1 && head.ends_with('.'))
            }
            (Kind::Below(_), Host::Ipv4(_) | Host::Ipv6(_)) => false,
        }
    }
}

impl FromStr for HostPattern {
    type Err = BadHostPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadHostPattern(text.chars().take(HOST_BYTES_MAX).collect());
        let (below, host) = text.strip_prefix("*.").map_or((false, text), |domain| (true, domain));
        // The parser takes a star as a letter; left in, it would never match and nobody would know why.
        if host.contains('*') {
            return Err(bad());
        }
        match (below, Host::parse(host).ok().and_then(canonical).ok_or_else(bad)?) {
            (false, host) => Ok(Self(Kind::Exact(host))),
            (true, Host::Domain(domain)) => Ok(Self(Kind::Below(domain))),
            (true, Host::Ipv4(_) | Host::Ipv6(_)) => Err(bad()),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Exact(host) => host.fmt(f),
            Kind::Below(domain) => write!(f, "*.{domain}"),
        }
    }
}

impl<'de> Deserialize<'de> for HostPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// The host without its trailing dot, or `None` if its labels are empty or too long.
///
/// The parser has already lower-cased it, applied IDNA and turned every spelling of an IPv4 address into the address.
pub(super) fn canonical(host: Host) -> Option<Host> {
    let Host::Domain(name) = host else { return Some(host) };
    let name = name.strip_suffix('.').unwrap_or(&name);
    let label_fits = |label: &str| !label.is_empty() && label.len() <= LABEL_BYTES_MAX;
    (name.len() <= HOST_BYTES_MAX && name.split('.').all(label_fits)).then(|| Host::Domain(name.to_owned()))
}

/// Whether `name` means this machine whatever the DNS says (RFC 6761 section 6.3).
pub(crate) fn is_loopback_name(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}
