//! Texts as PostgreSQL keeps them.

use std::borrow::Cow;

/// Stands for a NUL, which PostgreSQL keeps in no text, and for itself.
const ESCAPE: char = '\u{E000}';

/// A text as PostgreSQL keeps it.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if text.contains(['\0', ESCAPE]) {
        Cow::Owned(text.replace(ESCAPE, "\u{E000}1").replace('\0', "\u{E000}0"))
    } else {
        Cow::Borrowed(text)
    }
}

/// What [`escaped`] was given.
pub(crate) fn unescaped(text: &str) -> Cow<'_, str> {
    if text.contains(ESCAPE) {
        Cow::Owned(text.replace("\u{E000}0", "\0").replace("\u{E000}1", "\u{E000}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_comes_back() {
        for text in ["", "plain", "a\0b", "\u{E000}", "\u{E000}0", "\0\u{E000}1\0", "é\0"] {
            let kept = escaped(text);
            assert!(!kept.contains('\0'), "{text:?}");
            assert_eq!(text, unescaped(&kept), "{kept:?}");
        }
    }
}
