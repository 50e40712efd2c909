//! The table of ranges against a list of addresses, and against broken copies of itself.

use std::net::IpAddr;

use proptest::prelude::*;

use super::*;

/// An address and the name of the range that forbids it; `None` for a public one.
const CASES: &[(&str, Option<&str>)] = &[
    ("169.254.169.254", Some("cloud metadata")),
    ("169.254.170.2", Some("cloud metadata")),
    ("100.100.100.200", Some("cloud metadata")),
    ("192.0.0.192", Some("cloud metadata")),
    ("168.63.129.16", Some("cloud metadata")),
    ("0.0.0.0", Some("this network")),
    ("0.255.255.255", Some("this network")),
    ("10.0.0.0", Some("private")),
    ("10.255.255.255", Some("private")),
    ("100.64.0.1", Some("shared (carrier-grade NAT)")),
    ("100.127.255.255", Some("shared (carrier-grade NAT)")),
    ("127.0.0.1", Some("loopback")),
    ("127.255.255.255", Some("loopback")),
    ("169.254.0.1", Some("link-local")),
    ("172.16.0.0", Some("private")),
    ("172.31.255.255", Some("private")),
    ("192.0.0.1", Some("protocol assignments")),
    ("192.0.2.1", Some("documentation")),
    ("192.88.99.1", Some("6to4 relay")),
    ("192.168.0.1", Some("private")),
    ("198.18.0.1", Some("benchmarking")),
    ("198.19.255.255", Some("benchmarking")),
    ("198.51.100.10", Some("documentation")),
    ("203.0.113.7", Some("documentation")),
    ("224.0.0.1", Some("multicast")),
    ("239.255.255.255", Some("multicast")),
    ("240.0.0.1", Some("reserved")),
    ("255.255.255.254", Some("reserved")),
    ("255.255.255.255", Some("broadcast")),
    // The neighbours of the ranges are public.
    ("1.0.0.0", None),
    ("8.8.8.8", None),
    ("9.255.255.255", None),
    ("11.0.0.0", None),
    ("100.63.255.255", None),
    ("100.128.0.0", None),
    ("126.255.255.255", None),
    ("128.0.0.0", None),
    ("169.253.255.255", None),
    ("172.15.255.255", None),
    ("172.32.0.0", None),
    ("192.0.1.0", None),
    ("192.0.3.0", None),
    ("192.167.255.255", None),
    ("198.17.255.255", None),
    ("198.20.0.0", None),
    ("223.255.255.255", None),
    // IPv6.
    ("fd00:ec2::254", Some("cloud metadata")),
    ("fd20:ce::254", Some("cloud metadata")),
    ("::", Some("unspecified")),
    ("::1", Some("loopback")),
    ("::2", Some("IPv4-compatible")),
    ("::7f00:1", Some("IPv4-compatible")),
    ("::8.8.8.8", Some("IPv4-compatible")),
    ("::ffff:0:7f00:1", Some("reserved")),
    ("64:ff9b:1::7f00:1", Some("local-use translation")),
    ("64:ff9b:1:ffff::1", Some("local-use translation")),
    ("64:ff9b:2::1", Some("reserved")),
    ("100::1", Some("discard-only")),
    ("2001:0:4136:e378:8000:63bf:5601:5601", Some("Teredo")),
    ("2001:2::1", Some("protocol assignments")),
    ("2001:10::1", Some("protocol assignments")),
    ("2001:db8::1", Some("documentation")),
    ("2002:7f00:1::", Some("6to4")),
    ("2002:808:808::1", Some("6to4")),
    ("3fff::1", Some("documentation")),
    ("5f00::1", Some("segment routing")),
    ("fc00::1", Some("unique local")),
    ("fdff:ffff::1", Some("unique local")),
    ("fe80::1", Some("link-local")),
    ("febf::1", Some("link-local")),
    ("fec0::1", Some("site-local")),
    ("ff02::1", Some("multicast")),
    ("200::1", Some("not global unicast")),
    ("100:0:0:1::1", Some("not global unicast")),
    ("4000::1", Some("not global unicast")),
    ("2001:200::1", None),
    ("2606:4700:4700::1111", None),
    ("2a00:1450:4001::1", None),
    ("3ffe::1", None),
    // IPv4 hidden in IPv6.
    ("::ffff:127.0.0.1", Some("loopback")),
    ("::ffff:7f00:1", Some("loopback")),
    ("::ffff:a9fe:a9fe", Some("cloud metadata")),
    ("::ffff:10.0.0.5", Some("private")),
    ("::ffff:8.8.8.8", None),
    ("64:ff9b::a9fe:a9fe", Some("cloud metadata")),
    ("64:ff9b::127.0.0.1", Some("loopback")),
    ("64:ff9b::8.8.8.8", None),
];

/// The cases `table` judges wrongly: address, expected, got.
fn failures(table: &Table) -> Vec<String> {
    let judged = CASES.iter().map(|(text, expected)| {
        let address: IpAddr = text.parse().unwrap();
        (text, *expected, table.forbidding(address).map(|range| range.name))
    });
    judged.filter(|(_, expected, got)| expected != got).map(|case| format!("{case:?}")).collect()
}

#[test]
fn r_d2_every_listed_address_is_judged_as_the_registries_say() {
    assert_eq!(failures(&Table::standard()), Vec::<String>::new());
}

#[test]
fn r_d2_a_table_without_any_one_of_its_rows_is_caught() {
    for (index, row) in RANGES.iter().enumerate() {
        let mut mutant = Table::standard();
        mutant.ranges.remove(index);
        assert_ne!(failures(&mutant), Vec::<String>::new(), "nothing noticed the loss of {row:?}");
    }
}

#[test]
fn r_d2_a_judge_that_does_not_unwrap_embedded_addresses_is_caught() {
    for dropped in [Embedding::Mapped, Embedding::Nat64] {
        let mut mutant = Table::standard();
        mutant.embeddings.retain(|embedding| *embedding != dropped);
        assert_ne!(failures(&mutant), Vec::<String>::new(), "nothing noticed the loss of {dropped:?}");
    }
}

#[test]
fn r_d2_a_judge_that_lets_unassigned_ipv6_pass_is_caught() {
    let mutant = Table { global_unicast: Ipv6Net::default(), ..Table::standard() };
    assert_ne!(failures(&mutant), Vec::<String>::new());
}

#[test]
fn r_d2_rows_are_written_as_networks() {
    for row in RANGES {
        assert_eq!(row.net, row.net.trunc(), "{row:?} has host bits");
    }
}

proptest! {
    #[test]
    fn r_d2_embedding_an_ipv4_address_never_changes_the_judgement(bits: u32) {
        let table = Table::standard();
        let plain = Ipv4Addr::from_bits(bits);
        let [a, b, c, d] = plain.octets();
        let nat64 = Ipv6Addr::new(
            0x64, 0xff9b, 0, 0, 0, 0, u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]),
        );
        let expected = table.forbidding(IpAddr::V4(plain));
        prop_assert_eq!(table.forbidding(IpAddr::V6(plain.to_ipv6_mapped())), expected);
        prop_assert_eq!(table.forbidding(IpAddr::V6(nat64)), expected);
    }

    #[test]
    fn r_d2_what_the_standard_library_calls_local_is_never_public(bits: u32) {
        let address = Ipv4Addr::from_bits(bits);
        let local = address.is_private() || address.is_loopback() || address.is_link_local()
            || address.is_broadcast() || address.is_documentation() || address.is_multicast()
            || address.is_unspecified();
        prop_assert!(!local || Table::standard().forbidding(IpAddr::V4(address)).is_some());
    }

    #[test]
    fn r_d2_only_global_unicast_ipv6_is_ever_public(bits: u128) {
        let address = Ipv6Addr::from_bits(bits);
        let table = Table::standard();
        let embedded = table.meant(IpAddr::V6(address)).is_ipv4();
        let allowed = table.forbidding(IpAddr::V6(address)).is_none();
        prop_assert!(embedded || !allowed || table.global_unicast.contains(&address));
    }
}
