//! The table of address ranges nobody delivers to by accident.
//!
//! Data and the judgement over it, nothing else: what an operator allows is [`super::Guard`]'s business. Sources are
//! the IANA special-purpose registries (RFC 6890 and its successors) and the metadata services of the large clouds.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// A forbidden range: what it is called and what it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The word used in refusals, logs and docs.
    pub name: &'static str,
    /// The addresses covered.
    pub net: IpNet,
}

/// An IPv6 prefix whose last 32 bits are the IPv4 address that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Embedding {
    /// `::ffff:0:0/96`: the operating system dials the IPv4 address.
    Mapped,
    /// `64:ff9b::/96` (RFC 6052): the network's translator dials the IPv4 address.
    Nat64,
}

/// The ranges, in order of judgement: the first that covers an address names the refusal.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) embeddings: Vec<Embedding>,
    pub(super) ranges: Vec<Range>,
    /// Outside of this nothing is assigned to hosts on the public internet.
    pub(super) global_unicast: Ipv6Net,
}

/// Every IPv6 address outside 2000::/3 that no other row names.
const NOT_GLOBAL_UNICAST: Range = Range { name: "not global unicast", net: v6([0; 8], 0) };

const fn v4(octets: [u8; 4], prefix: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]), prefix))
}

const fn v6(groups: [u16; 8], prefix: u8) -> IpNet {
    let g = groups;
    let address = Ipv6Addr::new(g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7]);
    IpNet::V6(Ipv6Net::new_assert(address, prefix))
}

const fn row(name: &'static str, net: IpNet) -> Range {
    Range { name, net }
}

/// Narrow rows stand before the wide ones that cover them, so that the refusal names the narrow one.
#[rustfmt::skip]
const RANGES: &[Range] = &[
    row("cloud metadata",              v4([169, 254, 169, 254], 32)),
    row("cloud metadata",              v4([169, 254, 170, 2], 32)),
    row("cloud metadata",              v4([100, 100, 100, 200], 32)),
    row("cloud metadata",              v4([192, 0, 0, 192], 32)),
    // Azure's WireServer: a public address that only answers from inside.
    row("cloud metadata",              v4([168, 63, 129, 16], 32)),
    row("this network",                v4([0, 0, 0, 0], 8)),
    row("private",                     v4([10, 0, 0, 0], 8)),
    row("shared (carrier-grade NAT)",  v4([100, 64, 0, 0], 10)),
    row("loopback",                    v4([127, 0, 0, 0], 8)),
    row("link-local",                  v4([169, 254, 0, 0], 16)),
    row("private",                     v4([172, 16, 0, 0], 12)),
    row("protocol assignments",        v4([192, 0, 0, 0], 24)),
    row("documentation",               v4([192, 0, 2, 0], 24)),
    row("6to4 relay",                  v4([192, 88, 99, 0], 24)),
    row("private",                     v4([192, 168, 0, 0], 16)),
    row("benchmarking",                v4([198, 18, 0, 0], 15)),
    row("documentation",               v4([198, 51, 100, 0], 24)),
    row("documentation",               v4([203, 0, 113, 0], 24)),
    row("multicast",                   v4([224, 0, 0, 0], 4)),
    row("broadcast",                   v4([255, 255, 255, 255], 32)),
    row("reserved",                    v4([240, 0, 0, 0], 4)),

    row("cloud metadata",              v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128)),
    row("cloud metadata",              v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128)),
    row("unspecified",                 v6([0, 0, 0, 0, 0, 0, 0, 0], 128)),
    row("loopback",                    v6([0, 0, 0, 0, 0, 0, 0, 1], 128)),
    row("IPv4-compatible",             v6([0, 0, 0, 0, 0, 0, 0, 0], 96)),
    row("local-use translation",       v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48)),
    row("reserved",                    v6([0, 0, 0, 0, 0, 0, 0, 0], 8)),
    row("discard-only",                v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64)),
    row("Teredo",                      v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32)),
    row("protocol assignments",        v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23)),
    row("documentation",               v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32)),
    row("6to4",                        v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16)),
    row("documentation",               v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20)),
    row("segment routing",             v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16)),
    row("unique local",                v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7)),
    row("link-local",                  v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10)),
    row("site-local",                  v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10)),
    row("multicast",                   v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8)),
];

impl Embedding {
    /// The IPv4 address inside `address`, if this prefix covers it.
    pub(super) fn embedded(self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        match (self, address.segments()) {
            (Self::Mapped, _) => address.to_ipv4_mapped(),
            (Self::Nat64, [0x64, 0xff9b, 0, 0, 0, 0, high, low]) => {
                let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
                Some(Ipv4Addr::new(a, b, c, d))
            }
            (Self::Nat64, _) => None,
        }
    }
}

impl Table {
    /// The table in force.
    pub(super) fn standard() -> Self {
        Self {
            embeddings: vec![Embedding::Mapped, Embedding::Nat64],
            ranges: RANGES.to_vec(),
            global_unicast: Ipv6Net::new_assert(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3),
        }
    }

    /// The address that is meant by `address`: the embedded IPv4 address if there is one.
    pub(super) fn meant(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(outer) => {
                self.embeddings.iter().find_map(|e| e.embedded(outer)).map_or(address, IpAddr::V4)
            }
        }
    }

    /// The range that forbids `address`, or `None` for an address of the public internet.
    pub(super) fn forbidding(&self, address: IpAddr) -> Option<Range> {
        let meant = self.meant(address);
        let named = self.ranges.iter().find(|range| range.net.contains(&meant)).copied();
        match (named, meant) {
            (None, IpAddr::V6(outer)) if !self.global_unicast.contains(&outer) => Some(NOT_GLOBAL_UNICAST),
            (named, _) => named,
        }
    }
}

#[cfg(test)]
#[path = "ranges_tests.rs"]
mod tests;
