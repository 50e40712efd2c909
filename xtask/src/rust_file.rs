//! One Rust file, cut up once for all checks: its code, its comments, and which of it is tests.

use std::ops::Range;

use crate::{
    lexer::{self, Kind, Token},
    tree::File,
};

/// A lexed Rust file.
#[derive(Debug)]
pub(crate) struct RustFile<'a> {
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
    /// Words and signs, in order; literals and comments are left out.
    pub(crate) code: Vec<Token<'a>>,
    /// String and character literals outside test items.
    pub(crate) literals: Vec<Token<'a>>,
    /// Indexes into `code` of items under `#[test]`, `#[cfg(test)]` and their like.
    test_items: Vec<Range<usize>>,
}

impl<'a> RustFile<'a> {
    pub(crate) fn new(file: &'a File) -> Self {
        let tokens = lexer::lex(&file.text);
        let code: Vec<_> =
            tokens.iter().copied().filter(|token| matches!(token.kind, Kind::Word | Kind::Sign)).collect();
        let test_items = test_items(&code);
        let test_lines: Vec<_> = test_items.iter().map(|item| lines(&code, item)).collect();
        let literals = tokens
            .into_iter()
            .filter(|token| token.kind == Kind::Literal)
            .filter(|token| !test_lines.iter().any(|lines| lines.contains(&token.line)))
            .collect();
        Self { path: &file.path, text: &file.text, code, literals, test_items }
    }

    /// Whether the whole file is tests: it lies in a folder `tests`, or is named after them.
    pub(crate) fn is_test_file(&self) -> bool {
        let (folders, name) = self.path.rsplit_once('/').unwrap_or(("", self.path));
        folders.split('/').any(|folder| folder == "tests")
            || name == "tests.rs"
            || name.ends_with("_tests.rs")
    }

    /// Whether `code[index]` is test code.
    pub(crate) fn is_test(&self, index: usize) -> bool {
        self.is_test_file() || self.test_items.iter().any(|item| item.contains(&index))
    }

    /// Where the path `segments` (`["Instant", "now"]`) stands in code that is not test code.
    pub(crate) fn product_uses(&self, segments: &[&str]) -> Vec<Token<'a>> {
        let wanted = segments.join(" : : ");
        let wanted: Vec<_> = wanted.split(' ').collect();
        let places = self.code.windows(wanted.len()).enumerate();
        places
            .filter(|(at, window)| {
                window.iter().map(|t| t.text).eq(wanted.iter().copied()) && !self.is_test(*at)
            })
            .map(|(_, window)| window[0])
            .collect()
    }
}

/// The index just after the sign that closes `code[open]`; the end of the code if nothing does.
pub(crate) fn after_group(code: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in code.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// The index of the `{` that opens the body of the item that starts at `from`; none if `;` ends it first.
pub(crate) fn body_of(code: &[Token<'_>], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(token) = code.get(at) {
        match token.text {
            "{" => return Some(at),
            ";" => return None,
            "(" | "[" => at = after_group(code, at),
            _ => at += 1,
        }
    }
    None
}

fn lines(code: &[Token<'_>], item: &Range<usize>) -> Range<usize> {
    let line = |index: usize| code.get(index).map_or(usize::MAX, |token| token.line);
    line(item.start)..line(item.end - 1).saturating_add(1)
}

fn test_items(code: &[Token<'_>]) -> Vec<Range<usize>> {
    let mut items: Vec<Range<usize>> = Vec::new();
    for at in 0..code.len().saturating_sub(1) {
        if code[at].text != "#" || code[at + 1].text != "[" {
            continue;
        }
        let after = after_group(code, at + 1);
        if code.get(at + 2..after - 1).is_some_and(is_test_attribute) {
            let end = body_of(code, after).map_or(after, |body| after_group(code, body));
            items.push(at..end);
        }
    }
    items
}

/// `test`, `tokio::test(…)` and `cfg(…test…)` are; `cfg(not(test))` and `cfg_attr(test, …)` are not.
fn is_test_attribute(attribute: &[Token<'_>]) -> bool {
    let has = |word| attribute.iter().any(|token| token.text == word);
    let path_end = attribute.iter().position(|token| token.text == "(").unwrap_or(attribute.len());
    match attribute.first().map(|token| token.text) {
        Some("cfg") => has("test") && !has("not"),
        _ => path_end > 0 && attribute[path_end - 1].text == "test",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product_lines(path: &str, text: &str) -> Vec<usize> {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        RustFile::new(&file).product_uses(&["Instant", "now"]).iter().map(|token| token.line).collect()
    }

    #[test]
    fn test_items_are_told_from_the_product() {
        let text = "fn a() { std::time::Instant::now(); }\n\
            #[tokio::test(start_paused = true)] async fn b() { Instant::now(); }\n\
            #[cfg(test)] mod t { fn c() { Instant::now(); } }\n\
            #[cfg(not(test))] fn d() { Instant::now(); }\n\
            #[cfg(test)] mod elsewhere; fn e() { Instant::now(); }\n\
            // Instant::now()\n";
        assert_eq!(product_lines("crates/core/src/a.rs", text), [1, 4, 5]);
        assert_eq!(product_lines("crates/core/tests/a.rs", text), [0; 0]);
        assert_eq!(product_lines("crates/core/src/a_tests.rs", text), [0; 0]);
    }

    #[test]
    fn half_a_file_is_no_reason_to_panic() {
        for text in ["#[", "#[test]", "#[cfg(test)] mod x {", "#", "#[]", "fn"] {
            assert_eq!(product_lines("a.rs", text), [0; 0], "{text}");
        }
    }
}
