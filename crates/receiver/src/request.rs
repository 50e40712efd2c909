//! The request as it arrived: exact bytes, nothing parsed.

use crate::{Reason, Rejection};

/// An inbound request, borrowed from whatever server received it.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The method in upper case, such as `POST`.
    pub method: &'a str,
    /// The URL as the sender knows it. Some schemes (Square, HubSpot) sign it, letter for letter.
    pub url: &'a str,
    /// Names and values in the order received. Names are compared without case.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The body exactly as it came over the wire, before any decompression or parsing.
    pub body: &'a [u8],
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Request")
            .field("method", &self.method)
            .field("headers", &self.headers.len())
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Request<'a> {
    /// Every line of the header `name`, in order.
    pub(crate) fn lines(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.headers
            .iter()
            .filter(move |(given, _)| given.eq_ignore_ascii_case(name))
            .map(|&(_, value)| value)
    }

    /// Whether the header is there at all, even empty.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.lines(name).next().is_some()
    }

    /// The one value of a header; an empty one counts as missing, two differing lines are ambiguous.
    pub(crate) fn required(&self, name: &str) -> Result<&'a [u8], Rejection> {
        let mut lines = self.lines(name);
        let first = lines.next().unwrap_or_default();
        if lines.any(|other| other != first) {
            return Err(Rejection::new(Reason::MalformedHeader, "header sent twice with different values"));
        }
        if first.is_empty() {
            return Err(Rejection::new(Reason::MissingHeader, "header absent or empty"));
        }
        Ok(first)
    }

    /// A header that only informs: its first non-empty value that is text.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        self.lines(name).filter_map(|value| std::str::from_utf8(value).ok()).find(|value| !value.is_empty())
    }
}
