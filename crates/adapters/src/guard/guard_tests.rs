//! The guard as its callers see it: URLs, policies, resolved addresses.

use proptest::prelude::*;

use super::*;

fn guard(networks: &[&str], destinations: &[&str], plain_http: PlainHttp) -> Guard {
    Guard::new(GuardConfig {
        private_networks: networks.iter().map(|net| net.parse().unwrap()).collect(),
        destinations: destinations.iter().map(|pattern| pattern.parse().unwrap()).collect(),
        plain_http,
    })
}

/// No exceptions, but http everywhere, so that the address rules are what decides.
fn open() -> Guard {
    guard(&[], &[], PlainHttp::Anywhere)
}

fn strict() -> Guard {
    guard(&[], &[], PlainHttp::PrivateNetworksOnly)
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn host(text: &str) -> Host {
    Host::parse(text).unwrap()
}

/// A URL and the code of its refusal, or the canonical form it is accepted in.
const URLS: &[(&str, Result<&str, &str>)] = &[
    ("https://hooks.example.com", Ok("https://hooks.example.com/")),
    ("HTTPS://Hooks.Example.COM:443/a?b=c", Ok("https://hooks.example.com/a?b=c")),
    ("https://hooks.example.com./x", Ok("https://hooks.example.com/x")),
    ("https://bücher.example/", Ok("https://xn--bcher-kva.example/")),
    ("https://[2606:4700:4700::1111]:8443/", Ok("https://[2606:4700:4700::1111]:8443/")),
    ("https://8.8.8.8/", Ok("https://8.8.8.8/")),
    ("http://134744072/", Ok("http://8.8.8.8/")),
    ("https://backend:8080/hook", Ok("https://backend:8080/hook")),
    ("https://a_b.example.com/", Ok("https://a_b.example.com/")),
    // Spellings of forbidden addresses.
    ("http://2130706433/", Err("destination_address_forbidden")),
    ("http://0x7f.1/", Err("destination_address_forbidden")),
    ("http://0x7f000001/", Err("destination_address_forbidden")),
    ("http://017700000001/", Err("destination_address_forbidden")),
    ("http://0177.0.0.1/", Err("destination_address_forbidden")),
    ("http://127.1", Err("destination_address_forbidden")),
    ("http://127.0.0.1./", Err("destination_address_forbidden")),
    ("http://127.0.0.1:8080/", Err("destination_address_forbidden")),
    ("http://①②⑦.⓪.⓪.①/", Err("destination_address_forbidden")),
    ("http://127。0。0。1/", Err("destination_address_forbidden")),
    ("http://%31%32%37.0.0.1/", Err("destination_address_forbidden")),
    ("http://0/", Err("destination_address_forbidden")),
    ("http://169.254.169.254/latest/meta-data/", Err("destination_address_forbidden")),
    ("http://2852039166/", Err("destination_address_forbidden")),
    ("http://0xA9FEA9FE/", Err("destination_address_forbidden")),
    ("http://[::ffff:127.0.0.1]/", Err("destination_address_forbidden")),
    ("http://[::ffff:7f00:1]/", Err("destination_address_forbidden")),
    ("http://[::ffff:a9fe:a9fe]/", Err("destination_address_forbidden")),
    ("http://[::7f00:1]/", Err("destination_address_forbidden")),
    ("http://[::]/", Err("destination_address_forbidden")),
    ("http://[::1]/", Err("destination_address_forbidden")),
    ("http://[0:0:0:0:0:0:0:1]/", Err("destination_address_forbidden")),
    ("http://[2002:7f00:1::]/", Err("destination_address_forbidden")),
    ("http://[64:ff9b::a9fe:a9fe]/", Err("destination_address_forbidden")),
    ("http://[64:ff9b:1::7f00:1]/", Err("destination_address_forbidden")),
    ("http://[2001:0:4136:e378:8000:63bf:5601:5601]/", Err("destination_address_forbidden")),
    ("http://[fc00::1]/", Err("destination_address_forbidden")),
    ("http://[fd00:ec2::254]/", Err("destination_address_forbidden")),
    // Names of this machine.
    ("http://localhost/", Err("destination_address_forbidden")),
    ("https://LOCALHOST.:8443/", Err("destination_address_forbidden")),
    ("https://a.b.localhost/", Err("destination_address_forbidden")),
    // Not URLs, or not everybody's.
    ("", Err("url_malformed")),
    ("/relative", Err("url_malformed")),
    ("hooks.example.com", Err("url_malformed")),
    ("http:example.com", Err("url_malformed")),
    ("http:/example.com", Err("url_malformed")),
    ("https:///example.com", Err("url_host")),
    ("https://", Err("url_host")),
    ("https:\\\\example.com", Err("url_malformed")),
    ("https://good.example\\@evil.example/", Err("url_malformed")),
    ("https://exa\tmple.com/", Err("url_malformed")),
    (" https://example.com/", Err("url_malformed")),
    ("https://example.com/\r\nx: y", Err("url_malformed")),
    ("https://[fe80::1%25eth0]/", Err("url_malformed")),
    ("https://[::1/", Err("url_malformed")),
    ("https://1.2.3.4.5/", Err("url_malformed")),
    ("https://256.1.1.1/", Err("url_malformed")),
    ("https://4294967296/", Err("url_malformed")),
    ("https://exa mple.com/", Err("url_malformed")),
    ("https://exa%00mple.com/", Err("url_malformed")),
    ("ftp://example.com/", Err("url_scheme")),
    ("file:///etc/passwd", Err("url_scheme")),
    ("javascript:alert(1)", Err("url_scheme")),
    ("gopher://127.0.0.1:25/", Err("url_scheme")),
    ("http://user@host/", Err("url_userinfo")),
    ("http://user:secret@host/", Err("url_userinfo")),
    ("https://@host/", Err("url_userinfo")),
    ("https://8.8.8.8@127.0.0.1/", Err("url_userinfo")),
    ("https://host/#part", Err("url_fragment")),
    ("https://host/#", Err("url_fragment")),
    ("https://host:0/", Err("url_port")),
    ("https://host:65536/", Err("url_malformed")),
    ("https://host:-1/", Err("url_malformed")),
    ("https://a..b/", Err("url_host")),
    ("https://example.com../", Err("url_host")),
    ("https://./", Err("url_host")),
];

#[test]
fn r_d2_every_listed_url_is_judged_as_written() {
    for (text, expected) in URLS {
        let result = open().check_url(text);
        let got = result.as_ref().map(CheckedUrl::as_str).map_err(UrlRefusal::code);
        assert_eq!(got, *expected, "{text:?}");
    }
}

#[test]
fn r_d2_a_canonical_url_is_a_fixed_point() {
    for (text, expected) in URLS {
        if let Ok(canonical) = expected {
            let again = open().check_url(canonical).map(|checked| checked.as_str().to_owned());
            assert_eq!(again, Ok((*canonical).to_owned()), "{text:?}");
        }
    }
}

#[test]
fn r_d2_overlong_urls_and_names_are_refused() {
    let url = format!("https://example.com/{}", "a".repeat(URL_BYTES_MAX));
    assert_eq!(open().check_url(&url).unwrap_err().code(), "url_too_long");
    let label = format!("https://{}.example.com/", "a".repeat(LABEL_BYTES_MAX + 1));
    assert!(open().check_url(&label).is_err());
    let name = format!("https://{}example.com/", "abcdefgh.".repeat(30));
    assert!(open().check_url(&name).is_err());
    let fits = format!("https://{}.example.com/", "a".repeat(LABEL_BYTES_MAX));
    assert!(open().check_url(&fits).is_ok());
}

#[test]
fn r_d2_push_needs_https_unless_the_address_is_in_a_listed_network() {
    let code = |guard: &Guard, url| guard.check_url(url).map(drop).map_err(|refusal| refusal.code());
    assert_eq!(code(&strict(), "http://example.com/"), Err("destination_https_required"));
    assert_eq!(code(&strict(), "http://8.8.8.8/"), Err("destination_https_required"));
    assert_eq!(code(&strict(), "https://8.8.8.8/"), Ok(()));
    assert_eq!(code(&open(), "http://example.com/"), Ok(()));

    let inside = guard(&["10.0.0.0/8"], &[], PlainHttp::PrivateNetworksOnly);
    assert_eq!(code(&inside, "http://10.1.2.3/"), Ok(()));
    assert_eq!(code(&inside, "http://[::ffff:10.1.2.3]/"), Ok(()));
    assert_eq!(code(&inside, "http://[64:ff9b::10.1.2.3]/"), Ok(()));
    assert_eq!(code(&inside, "http://8.8.8.8/"), Err("destination_https_required"));
    // The name may be inside; its addresses decide.
    assert_eq!(code(&inside, "http://backend/"), Ok(()));
    let vet = |texts| inside.vet(Scheme::Http, &host("backend"), &addresses(texts));
    assert_eq!(vet(&["10.0.0.5"]), Ok(addresses(&["10.0.0.5"])));
    assert_eq!(vet(&["8.8.8.8"]), Err(AddressRefusal::PlainHttp));
    assert_eq!(vet(&["10.0.0.5", "8.8.8.8"]), Err(AddressRefusal::PlainHttp));
}

#[test]
fn r_d2_one_forbidden_address_among_many_refuses_the_name() {
    let name = host("r2.test");
    let refused = |texts: &[&str]| {
        matches!(open().vet(Scheme::Https, &name, &addresses(texts)), Err(AddressRefusal::Forbidden(_)))
    };
    assert!(refused(&["8.8.8.8", "10.0.0.5"]));
    assert!(refused(&["10.0.0.5", "8.8.8.8"]));
    assert!(refused(&["8.8.8.8", "::1"]));
    assert!(refused(&["8.8.8.8", "::ffff:169.254.169.254"]));
    assert!(!refused(&["8.8.8.8", "2606:4700:4700::1111"]));
    assert_eq!(open().vet(Scheme::Https, &name, &[]), Err(AddressRefusal::NoAddress));
}

#[test]
fn r_d2_vetted_addresses_are_canonical_and_each_dialled_once() {
    let vetted =
        open().vet(Scheme::Https, &host("a.test"), &addresses(&["::ffff:8.8.8.8", "8.8.8.8", "8.8.4.4"]));
    assert_eq!(vetted, Ok(addresses(&["8.8.8.8", "8.8.4.4"])));
}

#[test]
fn r_d2_a_private_network_opens_exactly_itself() {
    let guard = guard(&["10.1.0.0/16", "fd00:1::/32", "127.0.0.0/8"], &[], PlainHttp::Anywhere);
    let allowed = |text: &str| guard.judge(Scheme::Https, text.parse().unwrap()).is_ok();
    for text in ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "fd00:1::5", "127.0.0.1", "8.8.8.8"] {
        assert!(allowed(text), "{text}");
    }
    for text in ["10.2.0.1", "192.168.0.1", "169.254.169.254", "fd00:2::5", "::1", "::10.1.2.3"] {
        assert!(!allowed(text), "{text}");
    }
}

#[test]
fn r_d2_loopback_names_keep_the_loopback_addresses_that_are_listed() {
    let guard = guard(&["127.0.0.0/8"], &[], PlainHttp::PrivateNetworksOnly);
    assert!(guard.check_url("http://localhost:8080/").is_ok());
    assert_eq!(
        guard.vet(Scheme::Http, &host("localhost"), &LOOPBACK),
        Ok(addresses(&["127.0.0.1"])),
        "::1 is not listed and is left out rather than refused"
    );
    assert!(strict().vet(Scheme::Https, &host("localhost"), &LOOPBACK).is_err());
}

#[test]
fn r_d2_destinations_limit_the_hosts() {
    let guard = guard(
        &[],
        &["hooks.example.com", "*.partner.test", "8.8.8.8", "[2606:4700::1]"],
        PlainHttp::Anywhere,
    );
    for host in [
        "hooks.example.com",
        "HOOKS.example.com.",
        "a.partner.test",
        "a.b.partner.test",
        "8.8.8.8",
        "134744072",
        "[2606:4700:0::1]",
    ] {
        assert!(guard.check_url(&format!("https://{host}/")).is_ok(), "{host}");
    }
    for host in ["example.com", "partner.test", "evilpartner.test", "a.partner.test.evil.test", "8.8.4.4"] {
        let refusal = guard.check_url(&format!("https://{host}/")).unwrap_err();
        assert_eq!(refusal, UrlRefusal::Destination, "{host}");
    }
}

#[test]
fn r_d2_a_listed_destination_is_still_judged_by_address() {
    let guard = guard(&[], &["localhost", "127.0.0.1"], PlainHttp::Anywhere);
    assert!(guard.check_url("https://127.0.0.1/").is_err());
    assert!(guard.check_url("https://localhost/").is_err());
}

#[test]
fn r_d2_bad_host_patterns_are_refused_and_good_ones_print_back() {
    for text in
        ["", "*", "*.", "*.*.example.com", "a.*.com", "*.127.0.0.1", "a b", "user@host", "*example.com"]
    {
        assert!(text.parse::<HostPattern>().is_err(), "{text:?}");
    }
    for text in ["hooks.example.com", "*.example.com", "8.8.8.8", "[2606:4700::1]"] {
        assert_eq!(text.parse::<HostPattern>().map(|pattern| pattern.to_string()), Ok(text.to_owned()));
    }
}

#[test]
fn r_d2_refusals_of_a_name_do_not_tell_its_address() {
    let refusal = open().vet(Scheme::Https, &host("x.test"), &addresses(&["10.20.30.40"])).unwrap_err();
    assert!(!refusal.to_string().contains("10.20.30.40"), "{refusal}");
}

proptest! {
    #[test]
    fn r_d2_the_guard_never_panics_and_what_it_accepts_it_accepts_again(
        text in prop_oneof![
            any::<String>(),
            "https?://[0-9a-fx.:\\[\\]%@/#?]{0,40}",
            "(?i)https?:/{0,3}[a-z0-9.\\-_\u{80}-\u{2ff}]{0,80}(:[0-9]{0,6})?(/[ -~]{0,20})?",
        ],
    ) {
        if let Ok(checked) = open().check_url(&text) {
            let again = open().check_url(checked.as_str());
            prop_assert_eq!(again.as_ref(), Ok(&checked));
        }
    }

    #[test]
    fn r_d2_every_spelling_of_an_address_is_judged_like_the_address(bits: u32) {
        let address = Ipv4Addr::from_bits(bits);
        let [a, b, c, d] = address.octets();
        let expected = open().check_url(&format!("http://{address}/")).map(|url| url.as_str().to_owned());
        for spelling in [
            format!("http://{bits}/"),
            format!("http://{bits:#x}/"),
            format!("http://0{bits:o}/"),
            format!("http://{a}.{}/", bits & 0xff_ffff),
            format!("http://{a:#x}.0{b:o}.{c}.{d:#X}/").replace("0X", "0x"),
            format!("http://{address}./"),
        ] {
            let got = open().check_url(&spelling).map(|url| url.as_str().to_owned());
            prop_assert_eq!(got, expected.clone(), "{}", spelling);
        }
    }

    #[test]
    fn r_d2_any_address_is_judged_without_panic(bits: u128, v4: u32) {
        for address in [IpAddr::V6(Ipv6Addr::from_bits(bits)), IpAddr::V4(Ipv4Addr::from_bits(v4))] {
            let _ = strict().vet(Scheme::Http, &host("a.test"), &[address]);
        }
    }
}
