//! `golden`: runs the tests of every crate with golden files and lets them write what they see.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

use crate::{
    metadata::{Member, Metadata},
    tree,
};

/// The crate whose `expect![[…]]` and `expect_file![…]` hold the golden texts.
const LIBRARY: &str = "expect-test";
/// Tells [`LIBRARY`] to write instead of compare.
const UPDATE: (&str, &str) = ("UPDATE_EXPECT", "1");

/// Blesses what the tests print today. `rest` goes to `cargo test`. Read the diff before you commit it.
pub(crate) fn bless(rest: &[&str]) -> anyhow::Result<ExitCode> {
    let metadata = Metadata::load()?;
    let crates = with_golden_files(&metadata.members);
    if crates.is_empty() {
        bail!("no crate of the workspace depends on {LIBRARY}");
    }
    println!("golden files of: {}", crates.join(", "));
    let packages = crates.iter().flat_map(|name| ["-p", name]);
    let status = Command::new("cargo")
        .arg("test")
        .args(packages)
        .args(rest)
        .env(UPDATE.0, UPDATE.1)
        .current_dir(tree::root())
        .status()
        .context("cargo did not run")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn with_golden_files(members: &[Member]) -> Vec<&str> {
    members
        .iter()
        .filter(|member| member.dependencies.iter().any(|dependency| dependency.name == LIBRARY))
        .map(|member| member.name.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::fake;

    #[test]
    fn crates_with_golden_files_are_those_that_use_the_library() {
        let metadata = fake(&[
            ("posthaste", &[("tempfile", Some("dev"), false)]),
            ("posthaste-core", &[(LIBRARY, Some("dev"), false)]),
        ]);
        assert_eq!(with_golden_files(&metadata.members), ["posthaste-core"]);
    }
}
