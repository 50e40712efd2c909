//! Nothing is skipped silently: a test that needs a service fails without it, a slow one stands behind a feature.

use crate::{finding::Finding, rust_file::RustFile};

/// `#[ignore]` on tests and `ignore` on examples in doc comments.
pub(crate) fn check(file: &RustFile<'_>) -> Vec<Finding> {
    let attributes =
        file.code.windows(3).filter(|window| window.iter().map(|t| t.text).eq(["#", "[", "ignore"]));
    let attributes = attributes.map(|window| window[0].line);
    let examples =
        file.text.lines().enumerate().filter(|(_, line)| is_ignored_example(line)).map(|(at, _)| at + 1);
    let lines = attributes.chain(examples);
    lines
        .map(|line| {
            Finding::at(file.path, line, "is skipped: put it behind a feature, or mark it `no_run` or `text`")
        })
        .collect()
}

fn is_ignored_example(line: &str) -> bool {
    let comment = line.trim_start();
    let text = comment.strip_prefix("///").or_else(|| comment.strip_prefix("//!")).map(str::trim_start);
    let fence = text.and_then(|text| text.strip_prefix("```"));
    fence.is_some_and(|words| words.split([',', ' ', '-']).any(|word| word == "ignore"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::File;

    #[test]
    fn skipped_tests_and_examples_are_found() {
        let text = "/// ```ignore\n/// a();\n/// ```\n#[test]\n#[ignore = \"slow\"]\nfn a() {}\n\
            /// ```no_run\n/// ```\n// #[ignore]\nconst B: &str = \"#[ignore]\";\n";
        let file = File { path: "a.rs".to_owned(), text: text.to_owned() };
        let lines: Vec<_> = check(&RustFile::new(&file)).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [5, 1]);
    }
}
