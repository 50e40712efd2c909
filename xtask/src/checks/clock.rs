//! Time is an argument: who may read a clock.
//!
//! Core, receiver, store and engine are told what time it is, through the port `Clock` or as a parameter.

use super::Listed;
use crate::{finding::Finding, rust_file::RustFile};

/// How a clock is read.
const READS: &[[&str; 2]] =
    &[["SystemTime", "now"], ["Instant", "now"], ["Utc", "now"], ["Timestamp", "now"], ["Zoned", "now"]];

/// Folders and files that may. A folder ends in `/`; `…/demo` means `demo.rs` and `demo/`.
const READERS: &[Listed] = &[
    Listed { what: "crates/adapters/", reason: "holds the clock adapter, and times what it sends" },
    Listed { what: "crates/posthaste/src/cli", reason: "a person waits in front of it" },
    Listed { what: "crates/posthaste/src/bench", reason: "measures" },
    Listed { what: "crates/posthaste/src/demo", reason: "shows time passing" },
    Listed { what: "crates/store/examples/", reason: "measures" },
    Listed { what: "crates/testkit/", reason: "is for tests" },
    Listed { what: "xtask/", reason: "is no part of the product" },
];

/// Clock readings outside [`READERS`].
pub(crate) fn check(file: &RustFile<'_>) -> Vec<Finding> {
    if READERS.iter().any(|reader| file.path.starts_with(reader.what)) {
        return Vec::new();
    }
    let readings =
        READS.iter().flat_map(|read| file.product_uses(read).into_iter().map(move |at| (read, at)));
    readings
        .map(|([clock, _], at)| {
            Finding::at(file.path, at.line, format!("reads a clock ({clock}): take the time as an argument"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::File;

    #[test]
    fn only_the_listed_places_read_a_clock() {
        let text = "fn a() { std::time::SystemTime::now(); }";
        for (path, expected) in [
            ("crates/core/src/job.rs", 1),
            ("crates/store/src/sqlite.rs", 1),
            ("crates/engine/src/dispatch.rs", 1),
            ("crates/posthaste/src/api.rs", 1),
            ("crates/adapters/src/clock.rs", 0),
            ("crates/posthaste/src/demo.rs", 0),
            ("crates/engine/tests/dispatch.rs", 0),
        ] {
            let file = File { path: path.to_owned(), text: text.to_owned() };
            assert_eq!(check(&RustFile::new(&file)).len(), expected, "{path}");
        }
    }
}
