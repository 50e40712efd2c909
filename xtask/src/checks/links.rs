//! Documentation that points somewhere points at something.

use crate::{finding::Finding, tree::File};

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Relative links of a Markdown file to files that are not among `files`.
pub(crate) fn check(file: &File, files: &[File]) -> Vec<Finding> {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let broken =
        links(&file.text).into_iter().filter(|(_, target)| is_relative(target)).filter(|(_, target)| {
            let path = target.split(['#', '?']).next().unwrap_or_default();
            !path.is_empty() && resolve(folder, path).is_none_or(|path| !exists(&path, files))
        });
    broken
        .map(|(line, target)| Finding::at(&file.path, line, format!("links to {target}, which is not there")))
        .collect()
}

/// Crates of the workspace that ARCHITECTURE.md's table of floors leaves out.
pub(crate) fn check_floors_table(files: &[File], crates: &[&str]) -> Vec<Finding> {
    let Some(file) =
        files.iter().find(|file| [ARCHITECTURE, "docs/ARCHITECTURE.md"].contains(&file.path.as_str()))
    else {
        return Vec::new();
    };
    let first_cells = file.text.lines().filter_map(|line| line.trim().strip_prefix('|')?.split('|').next());
    let listed: Vec<_> = first_cells.map(|cell| cell.trim().trim_matches(['`', '*'])).collect();
    let missing = crates
        .iter()
        .filter(|name| !listed.contains(*name) && !listed.contains(&&*format!("posthaste-{name}")));
    missing
        .map(|name| Finding::whole(&file.path, format!("its table of floors leaves out `{name}`")))
        .collect()
}

fn is_relative(target: &str) -> bool {
    !target.contains("://") && !target.starts_with("mailto:") && !target.starts_with('#')
}

/// `path`, seen from `folder`, from the root of the repository; none if it leads out of it.
fn resolve(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    let start = if path.starts_with('/') { "" } else { folder };
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn exists(path: &str, files: &[File]) -> bool {
    path.is_empty()
        || files.iter().any(|file| {
            file.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
}

/// Line and target of each link, in text that is not code: `[a](target)` and `[a]: target`.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (at, line) in text.lines().enumerate() {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            fenced = !fenced;
        } else if !fenced {
            let line = without_code(line);
            let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
            let reference = start.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
            let reference = reference.and_then(|(_, rest)| rest.split_whitespace().next());
            found.extend(
                inline.chain(reference).map(|target| (at + 1, target.trim_matches(['<', '>']).to_owned())),
            );
        }
    }
    found
}

/// The line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn links_to_nothing_are_found() {
        let text = "[a](adr/0001.md#why) [b](../README.md \"t\") [c](gone.md)\n[d]: ./gone/too.md\n[out](../../x.md)\n";
        let files = [file("docs/a.md", text), file("docs/adr/0001.md", ""), file("README.md", "")];
        let lines: Vec<_> = check(&files[0], &files).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [1, 2, 3]);
    }

    #[test]
    fn what_is_no_relative_link_is_left_alone() {
        let text = "[a](https://example.com/x) [b](#here) [c](mailto:a@b) `[d](gone.md)` [e](docs)\n```\n[f](gone.md)\n```\n";
        let files = [file("README.md", text), file("docs/a.md", "")];
        assert_eq!(check(&files[0], &files), []);
    }

    #[test]
    fn a_code_span_in_the_text_does_not_hide_the_link() {
        let files = [file("README.md", "[`code`](gone.md)")];
        assert_eq!(check(&files[0], &files).len(), 1);
    }

    #[test]
    fn the_floors_table_lists_every_crate() {
        let files = [file(
            "ARCHITECTURE.md",
            "| crate | floor |\n|---|---|\n| `core` | 0 |\n| **posthaste** | 4 |\n",
        )];
        assert_eq!(check_floors_table(&files, &["core", "posthaste"]), []);
        assert_eq!(check_floors_table(&files, &["core", "store"]).len(), 1);
        assert_eq!(check_floors_table(&[], &["core"]), []);
    }
}
