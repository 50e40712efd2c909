//! Every Rust file says at its top what it is for.

use crate::{finding::Finding, rust_file::RustFile};

/// A file without `//!` before its first line of code.
pub(crate) fn check(file: &RustFile<'_>) -> Option<Finding> {
    let head = file.text.lines().map(str::trim_start).take_while(|line| is_head(line));
    let documented =
        head.into_iter().any(|line| line.strip_prefix("//!").is_some_and(|text| !text.trim().is_empty()));
    (!documented)
        .then(|| Finding::whole(file.path, "has no `//!`: say what the module is for and may not do"))
}

/// Blank lines, comments, inner attributes.
fn is_head(line: &str) -> bool {
    line.is_empty() || line.starts_with("//") || line.starts_with("#!")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::File;

    #[test]
    fn docs_come_before_code() {
        for (text, documented) in [
            ("//! What it is.\nuse std::fmt;\n", true),
            ("// A licence.\n\n#![allow(x)]\n//! What it is.\n", true),
            ("use std::fmt;\n", false),
            ("//!\nuse std::fmt;\n", false),
            ("mod a;\n//! Too late.\n", false),
            ("", false),
        ] {
            let file = File { path: "a.rs".to_owned(), text: text.to_owned() };
            assert_eq!(check(&RustFile::new(&file)).is_none(), documented, "{text}");
        }
    }
}
