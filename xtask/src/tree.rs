//! The repository's files, as git sees them: what is tracked, and what would be if it were added.

use std::{path::PathBuf, process::Command};

use anyhow::{Context as _, bail};

/// One file. Binary files are read lossily; no check looks at what is not text.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// Path from the repository's root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, own)| own == extension)
    }
}

/// The repository's root, which holds the folder of this crate.
pub(crate) fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}

/// Every file that is tracked or untracked, but for the ignored. Files deleted but not yet staged are left out.
pub(crate) fn read() -> anyhow::Result<Vec<File>> {
    let root = root();
    let listing = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .context("tidy asks git for the list of files, and git did not run")?;
    if !listing.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&listing.stderr).trim());
    }
    let mut files = Vec::new();
    for path in String::from_utf8_lossy(&listing.stdout).split('\0').filter(|path| !path.is_empty()) {
        let absolute = root.join(path);
        if absolute.is_file() {
            let bytes = std::fs::read(&absolute).with_context(|| format!("cannot read {path}"))?;
            files.push(File { path: path.to_owned(), text: String::from_utf8_lossy(&bytes).into_owned() });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}
