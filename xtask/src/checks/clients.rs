//! One HTTP client: whatever leaves the process goes through the guarded connector of `adapters`.

use super::Listed;
use crate::{finding::Finding, metadata::Shipped, rust_file::RustFile};

/// Packages that may not be part of the product, and why.
const REFUSED: &[Listed] = &[
    Listed { what: "curl", reason: "a second HTTP client" },
    Listed { what: "isahc", reason: "a second HTTP client" },
    Listed { what: "reqwest", reason: "a second HTTP client" },
    Listed { what: "ureq", reason: "a second HTTP client" },
    Listed { what: "native-tls", reason: "TLS is rustls, everywhere" },
    Listed { what: "openssl", reason: "TLS is rustls, everywhere" },
    Listed { what: "openssl-sys", reason: "TLS is rustls, everywhere" },
    Listed { what: "ring", reason: "cryptography is aws-lc-rs, once" },
    Listed { what: "chrono", reason: "calendars are jiff's" },
];

/// Where hyper's client may be used: the connector itself, and what cannot reach a customer's network.
const CLIENT_USERS: &[Listed] = &[
    Listed { what: "crates/adapters/", reason: "the guarded connector" },
    Listed { what: "crates/testkit/", reason: "drives the product from outside, in tests" },
    Listed {
        what: "crates/posthaste/src/cli/client.rs",
        reason: "the CLI talks to the operator's own server",
    },
    Listed {
        what: "crates/posthaste/src/demo/client.rs",
        reason: "the demo plays provider, publisher and worker",
    },
];

/// Packages that the product may not be built from.
pub(crate) fn check_packages(shipped: &Shipped) -> Vec<Finding> {
    let found = REFUSED.iter().filter_map(|refused| Some((refused, shipped.get(refused.what)?)));
    found
        .map(|(refused, way)| Finding::whole(refused.what, format!("is refused ({}): {way}", refused.reason)))
        .collect()
}

/// Uses of hyper's client outside [`CLIENT_USERS`].
pub(crate) fn check_file(file: &RustFile<'_>) -> Vec<Finding> {
    if CLIENT_USERS.iter().any(|user| file.path.starts_with(user.what)) {
        return Vec::new();
    }
    let crates = ["hyper", "hyper_util"].into_iter();
    let direct = crates.clone().flat_map(|name| file.product_uses(&[name, "client"]));
    let grouped = crates
        .flat_map(|name| file.product_uses(&[name, "{"]))
        .filter(|at| group_names_client(file, at.line));
    direct
        .chain(grouped)
        .map(|token| {
            Finding::at(file.path, token.line, "a second HTTP client: requests leave through crates/adapters")
        })
        .collect()
}

/// Whether the `use` that starts on `line` names `client` somewhere in its braces.
fn group_names_client(file: &RustFile<'_>, line: usize) -> bool {
    let statement =
        file.code.iter().skip_while(|token| token.line < line).take_while(|token| token.text != ";");
    statement.into_iter().any(|token| token.text == "client")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{metadata::read_tree, tree::File};

    fn findings(path: &str, text: &str) -> usize {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        check_file(&RustFile::new(&file)).len()
    }

    #[test]
    fn a_second_client_is_found_however_deep() {
        let tree = "0posthaste v0.1.0\n1posthaste-adapters v0.1.0\n2ring-like v1.0.0\n2reqwest v0.12.0\n";
        let found = check_packages(&read_tree(tree));
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("posthaste-adapters → reqwest"), "{}", found[0]);
    }

    #[test]
    fn hypers_client_is_used_in_one_place() {
        for text in [
            "use hyper_util::client::legacy::Client;",
            "use hyper_util::{\n    client::legacy::Client,\n    rt::TokioExecutor,\n};",
            "fn a() { hyper::client::conn::http1::handshake(io); }",
        ] {
            assert_eq!(findings("crates/posthaste/src/api.rs", text), 1, "{text}");
            assert_eq!(findings("crates/adapters/src/send.rs", text), 0, "{text}");
            assert_eq!(findings("crates/posthaste/tests/api.rs", text), 0, "{text}");
        }
        assert_eq!(findings("crates/posthaste/src/api.rs", "use hyper_util::{rt::TokioIo, server};"), 0);
    }
}
