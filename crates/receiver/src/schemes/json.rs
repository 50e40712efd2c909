//! Finds one member of a JSON object without building the document.
//!
//! It skips what it does not need without checking it: it is no validator, and its answer is to be trusted only as far as
//! the signature covers it. Linear, after the signature fits; Mailgun, whose signature is in the body.

/// The body is not an object that could be walked through.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotAnObject;

/// The raw text of the object's member `name`, the last one if there are several, as parsers have it.
///
/// A name written with escapes is not found.
pub(super) fn top_level_member<'a>(body: &'a [u8], name: &[u8]) -> Result<Option<&'a [u8]>, NotAnObject> {
    let mut rest = body.trim_ascii_start().strip_prefix(b"{").ok_or(NotAnObject)?.trim_ascii_start();
    let mut found = None;
    if let Some(after) = rest.strip_prefix(b"}") {
        return if after.trim_ascii().is_empty() { Ok(None) } else { Err(NotAnObject) };
    }
    loop {
        let (key, after_key) = split_string(rest)?;
        rest = after_key.trim_ascii_start().strip_prefix(b":").ok_or(NotAnObject)?;
        let end = value_end(rest)?;
        let (value, after_value) = rest.split_at(end);
        if key == name {
            found = Some(value.trim_ascii());
        }
        match after_value {
            [b',', more @ ..] => rest = more.trim_ascii_start(),
            [b'}', more @ ..] if more.trim_ascii().is_empty() => return Ok(found),
            _ => return Err(NotAnObject),
        }
    }
}

/// The content of a string without escapes; `None` if the value is anything else.
pub(super) fn plain_string(value: &[u8]) -> Option<&[u8]> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    (!inner.contains(&b'\\') && !inner.contains(&b'"')).then_some(inner)
}

/// Splits a string, which begins at the first byte, into its raw content and what follows.
fn split_string(text: &[u8]) -> Result<(&[u8], &[u8]), NotAnObject> {
    let inner = text.strip_prefix(b"\"").ok_or(NotAnObject)?;
    let mut escaped = false;
    for (index, &byte) in inner.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Ok((&inner[..index], &inner[index + 1..])),
            _ => {}
        }
    }
    Err(NotAnObject)
}

/// Where the value at the start of `text` ends: at the comma or brace that belongs to the object around it.
fn value_end(text: &[u8]) -> Result<usize, NotAnObject> {
    let mut depth = 0_usize;
    let mut index = 0;
    while let Some(&byte) = text.get(index) {
        match byte {
            b'"' => {
                let (_, after) = split_string(&text[index..])?;
                index = text.len() - after.len();
                continue;
            }
            b',' | b'}' if depth == 0 => return Ok(index),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1).ok_or(NotAnObject)?,
            _ => {}
        }
        index += 1;
    }
    Err(NotAnObject)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(body: &str) -> Result<Option<&str>, NotAnObject> {
        top_level_member(body.as_bytes(), b"t")
            .map(|found| found.map(|raw| std::str::from_utf8(raw).unwrap()))
    }

    #[test]
    fn only_a_top_level_member_is_found() {
        assert_eq!(find(r#" { "a" : {"t":1} , "t" : 2 } "#), Ok(Some("2")));
        assert_eq!(find(r#"{"a":"\"t\":1,","b":[{"t":1}]}"#), Ok(None));
        assert_eq!(find(r#"{"t":1,"t":2}"#), Ok(Some("2")));
        assert_eq!(find("{}"), Ok(None));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for body in [
            "",
            "text",
            "[1]",
            "{",
            "{}x",
            r#"{"t"}"#,
            r#"{"t":1"#,
            r#"{"t":"1}"#,
            r#"{"t":1]}"#,
            r#"{"t":1}}"#,
        ] {
            assert_eq!(find(body), Err(NotAnObject), "{body}");
        }
    }
}
