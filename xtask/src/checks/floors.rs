//! Which crate may ask for which: the floors of ARCHITECTURE.md.
//!
//! Normal and build dependencies count. Tests may use what they like, except that nothing uses `xtask`.

use crate::{
    finding::Finding,
    metadata::{Dependency, Metadata},
};

/// What a crate may use.
struct Floor {
    name: &'static str,
    /// Crates of this workspace.
    ours: &'static [&'static str],
    outside: Outside,
}

/// Which crates of others a crate may use.
enum Outside {
    /// These, and those behind a feature.
    Only { always: &'static [&'static str], optional: &'static [&'static str] },
    /// All but these.
    Except(&'static [&'static str]),
}

const CORE: &str = "posthaste-core";
const RECEIVER: &str = "posthaste-receiver";
const STORE: &str = "posthaste-store";
const ENGINE: &str = "posthaste-engine";
const ADAPTERS: &str = "posthaste-adapters";
/// Used by tests only.
pub(crate) const TESTKIT: &str = "posthaste-testkit";
/// Used by nobody.
pub(crate) const XTASK: &str = "xtask";

const FLOORS: &[Floor] = &[
    Floor {
        name: CORE,
        ours: &[],
        outside: Outside::Only { always: &["httpdate", "thiserror"], optional: &[] },
    },
    Floor {
        name: RECEIVER,
        ours: &[],
        outside: Outside::Only {
            always: &[
                "aws-lc-rs",
                "base64",
                "rustls-pki-types",
                "rustls-webpki",
                "serde",
                "serde_json",
                "thiserror",
            ],
            optional: &["axum", "rusqlite", "sqlx", "tokio-postgres"],
        },
    },
    Floor {
        name: STORE,
        ours: &[CORE],
        outside: Outside::Except(&["axum", "http", "hyper", "hyper-rustls", "hyper-util", "tower-http"]),
    },
    Floor {
        name: ENGINE,
        ours: &[CORE, RECEIVER, STORE],
        outside: Outside::Except(&[
            "axum",
            "hyper",
            "hyper-rustls",
            "hyper-util",
            "refinery",
            "rusqlite",
            "sqlx",
            "tokio-postgres",
        ]),
    },
    Floor { name: ADAPTERS, ours: &[CORE, ENGINE], outside: Outside::Except(&["axum", "rusqlite"]) },
    Floor {
        name: "posthaste",
        ours: &[CORE, RECEIVER, STORE, ENGINE, ADAPTERS],
        outside: Outside::Except(&["refinery", "rusqlite", "sqlx", "tokio-postgres"]),
    },
    Floor { name: TESTKIT, ours: &[CORE, STORE, ENGINE], outside: Outside::Except(&[]) },
    Floor {
        name: XTASK,
        ours: &[],
        outside: Outside::Only { always: &["anyhow", "serde", "serde_json"], optional: &[] },
    },
];

/// Every edge that the table above does not allow.
pub(crate) fn check(metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &metadata.members {
        let Some(floor) = FLOORS.iter().find(|floor| floor.name == member.name) else {
            findings.push(Finding::whole(&member.name, "has no floor: add it to the table in floors.rs"));
            continue;
        };
        let broken = member.dependencies.iter().filter(|dependency| !allows(floor, dependency));
        findings.extend(broken.map(|dependency| {
            Finding::whole(floor.name, format!("may not depend on {}: see the floors", dependency.name))
        }));
    }
    findings
}

fn allows(floor: &Floor, dependency: &Dependency) -> bool {
    let name = dependency.name.as_str();
    if dependency.is_dev() {
        return name != XTASK;
    }
    if FLOORS.iter().any(|other| other.name == name) {
        return floor.ours.contains(&name);
    }
    match floor.outside {
        Outside::Only { always, optional } => {
            always.contains(&name) || (dependency.optional && optional.contains(&name))
        }
        Outside::Except(refused) => !refused.contains(&name),
    }
}

/// The names by which ARCHITECTURE.md calls the crates of the workspace.
pub(crate) fn short_names(metadata: &Metadata) -> Vec<&str> {
    metadata
        .members
        .iter()
        .map(|member| member.name.strip_prefix("posthaste-").unwrap_or(&member.name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::fake;

    fn refused(member: &str, dependency: &str, kind: Option<&str>, optional: bool) -> bool {
        !check(&fake(&[(member, &[(dependency, kind, optional)])])).is_empty()
    }

    #[test]
    fn the_core_stays_pure() {
        assert!(!refused(CORE, "thiserror", None, false));
        assert!(!refused(CORE, "proptest", Some("dev"), false));
        for name in ["tokio", "serde", "tracing", STORE, TESTKIT] {
            assert!(refused(CORE, name, None, false), "{name}");
        }
        assert!(refused(CORE, "cc", Some("build"), false));
    }

    #[test]
    fn the_receiver_takes_frameworks_only_behind_features() {
        assert!(refused(RECEIVER, "rusqlite", None, false));
        assert!(!refused(RECEIVER, "rusqlite", None, true));
        assert!(refused(RECEIVER, "tokio", None, true));
    }

    #[test]
    fn no_floor_looks_up() {
        for (lower, upper) in
            [(STORE, ENGINE), (ENGINE, ADAPTERS), (ADAPTERS, STORE), (ADAPTERS, "posthaste")]
        {
            assert!(refused(lower, upper, None, false), "{lower} → {upper}");
        }
        assert!(!refused("posthaste", ADAPTERS, None, false));
    }

    #[test]
    fn drivers_and_transports_stay_on_their_floors() {
        assert!(refused(ENGINE, "hyper", None, false));
        assert!(refused(ENGINE, "rusqlite", None, false));
        assert!(refused("posthaste", "rusqlite", None, false));
        assert!(refused(STORE, "axum", None, false));
        assert!(!refused(STORE, "rusqlite", None, false));
        assert!(!refused(ADAPTERS, "hyper", None, false));
    }

    #[test]
    fn the_testkit_is_for_tests_and_xtask_for_nobody() {
        assert!(refused("posthaste", TESTKIT, None, false));
        assert!(!refused("posthaste", TESTKIT, Some("dev"), false));
        assert!(refused("posthaste", XTASK, Some("dev"), false));
    }

    #[test]
    fn a_crate_without_a_floor_is_refused() {
        assert_eq!(check(&fake(&[("posthaste-extras", &[])])).len(), 1);
    }
}
