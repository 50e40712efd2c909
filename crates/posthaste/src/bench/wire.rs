//! As much of HTTP/1.1 as the load's own children speak: a head, `content-length`, keep-alive. No general client.

use anyhow::{bail, ensure};

/// Bytes of the largest head that is read.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// A whole answer at the start of some bytes.
pub(super) struct Answer<'a> {
    pub(super) status: u16,
    pub(super) body: &'a [u8],
    /// Bytes of head and body.
    pub(super) len: usize,
    /// The other side will close the connection.
    pub(super) closes: bool,
}

impl Answer<'_> {
    pub(super) fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// A whole request at the start of some bytes.
pub(super) struct Asked<'a> {
    pub(super) path: &'a [u8],
    pub(super) webhook_id: &'a [u8],
    pub(super) event_id: &'a [u8],
    pub(super) len: usize,
}

/// The answer at the start of `bytes`; `None` if it isn't all there yet.
pub(super) fn answer(bytes: &[u8]) -> anyhow::Result<Option<Answer<'_>>> {
    let Some(head) = head(bytes)? else { return Ok(None) };
    let status = head.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    let Some(status) = status else { bail!("the answer is no HTTP/1.1") };
    let (mut length, mut closes) = (None, false);
    for (name, value) in headers(head) {
        if name.eq_ignore_ascii_case(b"content-length") {
            length = number(value);
        } else if name.eq_ignore_ascii_case(b"connection") {
            closes = value.eq_ignore_ascii_case(b"close");
        }
    }
    let Some(length) = length.or_else(|| (status == 204).then_some(0)) else {
        bail!("an answer without content-length");
    };
    let len = head.len() + length;
    Ok(bytes.get(head.len()..len).map(|body| Answer { status, body, len, closes }))
}

/// The request at the start of `bytes`; `None` if it isn't all there yet.
pub(super) fn request(bytes: &[u8]) -> anyhow::Result<Option<Asked<'_>>> {
    let Some(head) = head(bytes)? else { return Ok(None) };
    let path = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let mut asked = Asked { path, webhook_id: b"", event_id: b"", len: head.len() };
    for (name, value) in headers(head) {
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                asked.len += number(value).unwrap_or_default();
            }
            10 if name.eq_ignore_ascii_case(b"webhook-id") => asked.webhook_id = value,
            15 if name.eq_ignore_ascii_case(b"idempotency-key") => asked.event_id = value,
            _ => {}
        }
    }
    Ok((bytes.len() >= asked.len).then_some(asked))
}

/// The head with the empty line that ends it.
fn head(bytes: &[u8]) -> anyhow::Result<Option<&[u8]>> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    ensure!(end.is_some() || bytes.len() < HEAD_BYTES_MAX, "a head of more than {HEAD_BYTES_MAX} bytes");
    Ok(end.map(|end| &bytes[..end + 4]))
}

fn headers(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    head.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_when_it_is_whole() {
        let text = b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\nconnection: close\r\n\r\n{}HTTP";
        for end in 0..text.len() - 4 {
            assert!(answer(&text[..end]).unwrap().is_none(), "{end}");
        }
        let whole = answer(text).unwrap().unwrap();
        assert_eq!((202, b"{}".as_slice(), text.len() - 4), (whole.status, whole.body, whole.len));
        assert!(whole.closes && whole.is_good());
        assert!(answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }

    #[test]
    fn a_request_is_taken_when_it_is_whole() {
        let text = b"POST /ok/a HTTP/1.1\r\nwebhook-id: job_1\r\nidempotency-key: k:a\r\ncontent-length: 3\r\n\r\nabc";
        assert!(request(&text[..text.len() - 1]).unwrap().is_none());
        let whole = request(text).unwrap().unwrap();
        assert_eq!(b"/ok/a".as_slice(), whole.path);
        assert_eq!((b"job_1".as_slice(), b"k:a".as_slice()), (whole.webhook_id, whole.event_id));
        assert_eq!(text.len(), whole.len);
    }
}
