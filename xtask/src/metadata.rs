//! What cargo says about the workspace: which crate asks for what, and what the product is really built from.

use std::{collections::BTreeMap, process::Command};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::tree;

/// The part of `cargo metadata` that the checks read.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    /// The workspace's own crates.
    #[serde(rename = "packages")]
    pub(crate) members: Vec<Member>,
}

/// A crate of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A line of a manifest's dependencies.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    /// The package's own name, whatever it is renamed to.
    pub(crate) name: String,
    /// `dev` or `build`; none for what the crate itself is linked with.
    kind: Option<String>,
    pub(crate) optional: bool,
}

impl Dependency {
    pub(crate) fn is_dev(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}

impl Metadata {
    /// Asks cargo for the workspace's crates.
    pub(crate) fn load() -> anyhow::Result<Self> {
        let answer = cargo(&["metadata", "--no-deps", "--format-version", "1"])?;
        serde_json::from_str(&answer).context("cargo metadata answered in a form unknown here")
    }
}

/// The packages that the product is built from, by name, each with the way it got there (`posthaste → a → b`).
pub(crate) type Shipped = BTreeMap<String, String>;

/// Asks cargo what it builds on any platform, tests left out. `leave_out` names members that ship nothing.
///
/// `cargo tree` is asked, since `cargo metadata` also lists edges whose feature is off.
pub(crate) fn shipped(leave_out: &[&str]) -> anyhow::Result<Shipped> {
    let mut arguments =
        vec!["tree", "--workspace", "--edges", "normal,build", "--target", "all", "--prefix", "depth"];
    arguments.extend(leave_out.iter().flat_map(|name| ["--exclude", name]));
    Ok(read_tree(&cargo(&arguments)?))
}

/// Reads lines such as `2serde v1.0.229 (*)`, of which the first number is the depth.
pub(crate) fn read_tree(tree: &str) -> Shipped {
    let mut shipped = Shipped::new();
    let mut way: Vec<&str> = Vec::new();
    for line in tree.lines() {
        let Some(package) = line.split(' ').next() else { continue };
        let name = package.trim_start_matches(|c: char| c.is_ascii_digit());
        let Ok(depth) = package[..package.len() - name.len()].parse() else { continue };
        way.truncate(depth);
        way.push(name);
        shipped.entry(name.to_owned()).or_insert_with(|| way.join(" → "));
    }
    shipped
}

fn cargo(arguments: &[&str]) -> anyhow::Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(tree::root())
        .output()
        .context("cargo did not run")?;
    if !output.status.success() {
        bail!("cargo {} failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("cargo answered in another encoding than UTF-8")
}

/// A made-up dependency: its name, kind and whether it is optional.
#[cfg(test)]
pub(crate) type Line<'a> = (&'a str, Option<&'a str>, bool);

/// Metadata made up for tests.
#[cfg(test)]
pub(crate) fn fake(members: &[(&str, &[Line<'_>])]) -> Metadata {
    let dependency = |&(name, kind, optional): &Line<'_>| serde_json::json!({"name": name, "kind": kind, "optional": optional, "req": "^1"});
    let member = |(name, lines): &(&str, &[Line<'_>])| serde_json::json!({"name": name, "dependencies": lines.iter().map(dependency).collect::<Vec<_>>()});
    let answer = serde_json::json!({"packages": members.iter().map(member).collect::<Vec<_>>()});
    serde_json::from_value(answer).expect("the made-up metadata has the form that is read")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "\
0posthaste v0.1.0 (/src/crates/posthaste)
1posthaste-core v0.1.0 (/src/crates/core)
2thiserror v2.0.1
1posthaste-adapters v0.1.0 (/src/crates/adapters)
2base64 v0.23.1
2reqwest v0.12.0
3base64 v0.21.0 (*)

0posthaste-core v0.1.0 (/src/crates/core) (*)
";

    #[test]
    fn the_way_to_each_package_is_read_from_the_tree() {
        let shipped = read_tree(TREE);
        assert_eq!(shipped.len(), 6);
        assert_eq!(shipped["reqwest"], "posthaste → posthaste-adapters → reqwest");
        assert_eq!(shipped["thiserror"], "posthaste → posthaste-core → thiserror");
    }
}
