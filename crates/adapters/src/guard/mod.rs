//! The address guard: which destinations this process may speak to.
//!
//! It judges twice: the URL when a destination is registered and again before each send, and every resolved address
//! when a connection is made. It resolves nothing and dials nothing itself; the connector dials exactly the addresses
//! that [`Guard::vet`] returned, so that a name cannot change its meaning between judgement and connect.
//!
//! Not covered: a network's own NAT64 prefix (only the well-known one is unwrapped) and 6to4 or Teredo, which are
//! refused whatever they embed.

mod host;
mod ranges;
mod refusal;
mod target;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use posthaste_engine::ports::UrlJudge;
use url::Host;

pub(crate) use self::host::is_loopback_name;
pub use self::{
    host::{BadHostPattern, HOST_BYTES_MAX, HostPattern, LABEL_BYTES_MAX},
    ranges::Range,
    refusal::{AddressRefusal, UrlRefusal},
    target::{CheckedUrl, Scheme, URL_BYTES_MAX},
};

/// What the operator allows beyond the public internet over `https`.
#[derive(Clone, Debug)]
pub struct GuardConfig {
    /// Networks that may be dialled although they are special-purpose. Compared with the address itself and with the
    /// IPv4 address embedded in it. Empty: none.
    pub private_networks: Vec<IpNet>,
    /// Hosts that may be destinations. Empty: any.
    pub destinations: Vec<HostPattern>,
    /// Where plain `http` may go.
    pub plain_http: PlainHttp,
}

/// Where plain `http` may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainHttp {
    /// Only to addresses in `private_networks`; the public internet is spoken to over `https`.
    PrivateNetworksOnly,
    /// Anywhere the other rules allow.
    Anywhere,
}

/// The addresses that mean this machine (RFC 6761 section 6.3).
pub(crate) const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// The guard. Cheap to share behind an `Arc`; it never changes.
#[derive(Clone, Debug)]
pub struct Guard {
    table: ranges::Table,
    config: GuardConfig,
}

impl Guard {
    /// A guard with the standard table of ranges and the operator's exceptions.
    pub fn new(config: GuardConfig) -> Self {
        Self { table: ranges::Table::standard(), config }
    }

    /// Judges `text` as a destination and returns its canonical form.
    ///
    /// No name is resolved: a name that passes here is judged again by its addresses at each connect. Host spellings
    /// (decimal, octal, hexadecimal, full-width) become the address they mean and are judged as such.
    pub fn check_url(&self, text: &str) -> Result<CheckedUrl, UrlRefusal> {
        let checked = target::parse(text)?;
        let patterns = &self.config.destinations;
        if !patterns.is_empty() && !patterns.iter().any(|pattern| pattern.covers(checked.host())) {
            return Err(UrlRefusal::Destination);
        }
        match checked.host() {
            Host::Ipv4(address) => drop(self.judge(checked.scheme(), IpAddr::V4(*address))?),
            Host::Ipv6(address) => drop(self.judge(checked.scheme(), IpAddr::V6(*address))?),
            Host::Domain(name) if is_loopback_name(name) => {
                drop(self.vet_any(checked.scheme(), &LOOPBACK)?);
            }
            Host::Domain(_) => self.judge_unresolved(checked.scheme())?,
        }
        Ok(checked)
    }

    /// Judges the addresses `host` resolved to and returns those to dial, each once.
    ///
    /// One refused address refuses them all: an answer that mixes public and private addresses is either an attack
    /// or a mistake. Loopback names are the exception, since nobody else answers for them: of `127.0.0.1` and `::1`
    /// the allowed ones are kept.
    pub fn vet(
        &self,
        scheme: Scheme,
        host: &Host,
        addresses: &[IpAddr],
    ) -> Result<Vec<IpAddr>, AddressRefusal> {
        match host {
            Host::Domain(name) if is_loopback_name(name) => self.vet_any(scheme, addresses),
            Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_) => self.vet_all(scheme, addresses),
        }
    }

    /// Judges one address and returns the form to dial: a mapped IPv4 address becomes the IPv4 address.
    pub fn judge(&self, scheme: Scheme, address: IpAddr) -> Result<IpAddr, AddressRefusal> {
        let listed = self.is_listed(address);
        match (self.table.forbidding(address), scheme) {
            (Some(range), _) if !listed => Err(AddressRefusal::Forbidden(range)),
            (None, Scheme::Http) if !listed && self.config.plain_http == PlainHttp::PrivateNetworksOnly => {
                Err(AddressRefusal::PlainHttp)
            }
            (Some(_) | None, Scheme::Http | Scheme::Https) => Ok(address.to_canonical()),
        }
    }

    /// Whether a private network of the operator covers `address` or the IPv4 address it embeds.
    fn is_listed(&self, address: IpAddr) -> bool {
        let meant = self.table.meant(address);
        self.config.private_networks.iter().any(|net| net.contains(&address) || net.contains(&meant))
    }

    /// A name over plain http can only end well if there is a private network for it to be in.
    fn judge_unresolved(&self, scheme: Scheme) -> Result<(), AddressRefusal> {
        let hopeless = scheme == Scheme::Http
            && self.config.plain_http == PlainHttp::PrivateNetworksOnly
            && self.config.private_networks.is_empty();
        if hopeless { Err(AddressRefusal::PlainHttp) } else { Ok(()) }
    }

    fn vet_all(&self, scheme: Scheme, addresses: &[IpAddr]) -> Result<Vec<IpAddr>, AddressRefusal> {
        let mut vetted = Vec::with_capacity(addresses.len());
        for address in addresses {
            let address = self.judge(scheme, *address)?;
            if !vetted.contains(&address) {
                vetted.push(address);
            }
        }
        if vetted.is_empty() { Err(AddressRefusal::NoAddress) } else { Ok(vetted) }
    }

    fn vet_any(&self, scheme: Scheme, addresses: &[IpAddr]) -> Result<Vec<IpAddr>, AddressRefusal> {
        let judged: Vec<_> = addresses.iter().map(|address| self.judge(scheme, *address)).collect();
        let first_refusal = judged.iter().find_map(|result| result.err());
        let vetted: Vec<_> = judged.into_iter().filter_map(Result::ok).collect();
        if vetted.is_empty() { Err(first_refusal.unwrap_or(AddressRefusal::NoAddress)) } else { Ok(vetted) }
    }
}

impl UrlJudge for Guard {
    fn check(&self, url: &str) -> Result<(), String> {
        self.check_url(url).map(drop).map_err(|refusal| refusal.to_string())
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
