//! Cuts Rust source into words, signs, literals and comments, well enough to count and to search.
//!
//! It is no parser: it knows just enough to never take the inside of a string or a comment for code.

/// What a [`Token`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier, keyword or number.
    Word,
    /// One sign: `{`, `:`, `#` and so on.
    Sign,
    /// A string or character literal, delimiters included.
    Literal,
    /// A comment, delimiters included; doc comments too.
    Comment,
}

/// A piece of the source. White space is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// The line on which it starts, counted from 1.
    pub(crate) line: usize,
}

/// Cuts `source` up. Unfinished strings and comments end with the file.
pub(crate) fn lex(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(first) = source[at..].chars().next() {
        let (kind, length) = next(&source[at..], first);
        let text = &source[at..at + length];
        if let Some(kind) = kind {
            tokens.push(Token { kind, text, line });
        }
        line += text.matches('\n').count();
        at += length;
    }
    tokens
}

/// Kind and length in bytes of what stands at the start of `rest`, which is never empty; white space has no kind.
fn next(rest: &str, first: char) -> (Option<Kind>, usize) {
    if let Some(length) = raw_string(rest) {
        return (Some(Kind::Literal), length);
    }
    match first {
        '/' if rest.starts_with("//") => (Some(Kind::Comment), rest.find('\n').unwrap_or(rest.len())),
        '/' if rest.starts_with("/*") => (Some(Kind::Comment), block_comment(rest)),
        '"' => (Some(Kind::Literal), quoted(rest, '"')),
        '\'' => match character(rest) {
            Some(length) => (Some(Kind::Literal), length),
            None => (Some(Kind::Sign), 1), // a lifetime
        },
        _ if is_word(first) => (Some(Kind::Word), rest.find(|c| !is_word(c)).unwrap_or(rest.len())),
        _ if first.is_whitespace() => (None, first.len_utf8()),
        _ => (Some(Kind::Sign), first.len_utf8()),
    }
}

fn is_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

/// The length of a raw string (`r"…"`, `br#"…"#`, …) at the start of `rest`, if one stands there.
fn raw_string(rest: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| {
        rest.strip_prefix(prefix).is_some_and(|after| after.trim_start_matches('#').starts_with('"'))
    })?;
    let hashes = rest[prefix.len()..].find('"')?;
    let open = prefix.len() + hashes + 1;
    let close = format!("\"{}", "#".repeat(hashes));
    Some(rest[open..].find(&close).map_or(rest.len(), |end| open + end + close.len()))
}

/// The length of a literal that starts and ends with `quote` and knows escapes.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of a character literal at the start of `rest`; none if it is a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut inside = rest[1..].chars();
    let first = inside.next()?;
    (first == '\\' || inside.next() == Some('\'')).then(|| quoted(rest, '\''))
}

/// The length of a block comment, with those nested in it.
fn block_comment(rest: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            (at, depth) = (at + 2, depth + 1);
        } else if rest[at..].starts_with("*/") {
            (at, depth) = (at + 2, depth - 1);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Kind, source: &str) -> Vec<&str> {
        lex(source).into_iter().filter(|token| token.kind == kind).map(|token| token.text).collect()
    }

    #[test]
    fn strings_and_comments_hide_their_insides() {
        let source = r##"let a = "fn {\" }"; // fn b {
            /* } /* nested */ } */ let c = r#"" }"#; let d = b'}'; let e = '\''; let f = br"}";"##;
        assert_eq!(of(Kind::Word, source), ["let", "a", "let", "c", "let", "d", "b", "let", "e", "let", "f"]);
        assert_eq!(of(Kind::Literal, source), [r#""fn {\" }""#, r##"r#"" }"#"##, "'}'", r"'\''", r#"br"}""#]);
        assert_eq!(of(Kind::Comment, source).len(), 2);
        assert!(!of(Kind::Sign, source).contains(&"}"));
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_not_literals() {
        let source = "fn a<'a>(r#type: &'a str) -> char { 'é' }";
        assert_eq!(of(Kind::Literal, source), ["'é'"]);
    }

    #[test]
    fn lines_are_counted_through_literals() {
        let lines: Vec<_> = lex("a\n\"x\ny\"\nb").iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 2, 4]);
    }

    #[test]
    fn an_unfinished_string_or_comment_ends_with_the_file() {
        for source in ["\"abc", "r#\"abc\"", "/* abc /* */", "'\\"] {
            assert_eq!(lex(source).len(), 1, "{source}");
        }
    }
}
