//! Words that have no place in this repository.
//!
//! The words are put together by `concat!`, so that this file does not hold what it refuses.

use crate::{finding::Finding, tree::File};

/// What refused words are taken for.
enum Match {
    /// Wherever they stand.
    Anywhere,
    /// Not as a part of a longer name or path.
    Whole,
    /// When a number follows.
    BeforeNumber,
    /// Unless the line also says so.
    Unless(&'static str),
}

struct Rule {
    /// In lower case; compared without case.
    words: &'static [&'static str],
    matching: Match,
    reason: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        words: &[concat!("/wo", "rk"), concat!("../sha", "red")],
        matching: Match::Whole,
        reason: "a path of one machine",
    },
    Rule {
        words: &[
            concat!("://crates", ".io"),
            concat!("index.crates", ".io"),
            concat!("static.crates", ".io"),
            concat!("registry.npm", "js.org"),
            concat!("npm", "js.com"),
            concat!("pypi", ".org"),
            concat!("python", "hosted.org"),
            concat!("proxy.go", "lang.org"),
        ],
        matching: Match::Anywhere,
        reason: "a registry's host: name the package alone",
    },
    Rule {
        words: &[concat!("iss", "ue #")],
        matching: Match::BeforeNumber,
        reason: "a tracker's number: say what was wrong",
    },
    Rule {
        words: &[
            concat!("this ses", "sion"),
            concat!("next ses", "sion"),
            concat!("previous ses", "sion"),
            concat!("the ses", "sion ends"),
        ],
        matching: Match::Anywhere,
        reason: "how the work was done is not part of it",
    },
    Rule {
        words: &[concat!("exactly-once ", "delivery"), concat!("exactly once ", "delivery")],
        matching: Match::Unless("never"),
        reason: "nobody can promise it",
    },
];

/// Files that cargo writes and nobody can word otherwise.
const GENERATED: &[&str] = &["Cargo.lock"];

/// Lines with refused words.
pub(crate) fn check(file: &File) -> Vec<Finding> {
    if GENERATED.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let lines = file.text.lines().enumerate();
    lines
        .flat_map(|(at, line)| {
            let line = line.to_lowercase();
            RULES.iter().filter_map(move |rule| Some((at + 1, found(rule, &line)?, rule.reason)))
        })
        .map(|(line, word, reason)| Finding::at(&file.path, line, format!("says `{word}`: {reason}")))
        .collect()
}

fn found(rule: &Rule, line: &str) -> Option<&'static str> {
    let stands = |word: &str| line.match_indices(word).any(|(at, _)| matches(&rule.matching, line, at, word));
    rule.words.iter().copied().find(|word| stands(word))
}

fn matches(matching: &Match, line: &str, at: usize, word: &str) -> bool {
    let (before, after) = (line[..at].chars().next_back(), line[at + word.len()..].chars().next());
    let joins =
        |neighbour: Option<char>| neighbour.is_some_and(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    match matching {
        Match::Anywhere => true,
        Match::Whole => !joins(before) && before != Some('.') && !joins(after),
        Match::BeforeNumber => after.is_some_and(|c| c.is_ascii_digit()),
        Match::Unless(denial) => !line.contains(denial),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> bool {
        !check(&File { path: "docs/a.md".to_owned(), text: line.to_owned() }).is_empty()
    }

    #[test]
    fn every_refused_word_is_found() {
        for word in RULES.iter().flat_map(|rule| rule.words) {
            // A number follows, for the rule that asks for one; a sign between keeps the others whole.
            assert!(
                refused(&format!("See {}!", word.to_uppercase())) || refused(&format!("See {word}1")),
                "{word}"
            );
        }
        for line in [
            concat!("cd /wo", "rk && ls"),
            concat!("file:///wo", "rk/main/a.rs"),
            concat!("[a](../../sha", "red/a.md)"),
            concat!("fixes iss", "ue #12"),
        ] {
            assert!(refused(line), "{line}");
        }
    }

    #[test]
    fn honest_words_pass() {
        for line in [
            "the TLS session is resumed",
            "SET idle_in_transaction_session_timeout = '5s'",
            "requests.Session()",
            "a framework/library, a network, target/work",
            "an issue # of style",
            "crates such as tokio; docs.rs/tokio",
            concat!("We never promise exactly-once ", "delivery."),
        ] {
            assert!(!refused(line), "{line}");
        }
    }

    #[test]
    fn a_promise_of_the_impossible_is_refused() {
        assert!(refused(concat!("posthaste gives you exactly-once ", "delivery")));
    }
}
