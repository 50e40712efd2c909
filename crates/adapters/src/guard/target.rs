//! Reading a destination's URL: one spelling in, one canonical form out.
//!
//! Stricter than the URL standard wherever two parsers could disagree about the host.

use http::Uri;
use url::{Host, Url};

use super::{UrlRefusal, host};

/// Longest URL accepted as a destination, in bytes as registered.
pub const URL_BYTES_MAX: usize = 2_048;

/// The two schemes a destination can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Plain text.
    Http,
    /// TLS.
    Https,
}

/// A URL that passed the guard, in canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedUrl {
    scheme: Scheme,
    host: Host,
    port: u16,
    url: Url,
    uri: Uri,
}

impl CheckedUrl {
    /// The canonical text, to be stored in place of what was registered.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// The scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The canonical host: lower case, IDNA applied, no trailing dot, addresses as addresses.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port, explicit or the scheme's own. Never 0.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The same URL in the form the HTTP client takes.
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }
}

/// Parses `text` and applies the rules that need no policy.
pub(super) fn parse(text: &str) -> Result<CheckedUrl, UrlRefusal> {
    if text.len() > URL_BYTES_MAX {
        return Err(UrlRefusal::TooLong(text.len()));
    }
    let scheme = read_spelling(text)?;
    let mut url = Url::parse(text).map_err(|_| UrlRefusal::Malformed("it cannot be parsed"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlRefusal::Userinfo);
    }
    if url.fragment().is_some() {
        return Err(UrlRefusal::Fragment);
    }
    let host = url.host().ok_or(UrlRefusal::Host)?.to_owned();
    let host = host::canonical(host).ok_or(UrlRefusal::Host)?;
    let port = url.port_or_known_default().filter(|port| *port != 0).ok_or(UrlRefusal::Port)?;
    url.set_host(Some(&host.to_string())).map_err(|_| UrlRefusal::Host)?;
    let uri = url.as_str().parse().map_err(|_| UrlRefusal::Malformed("it cannot be sent"))?;
    Ok(CheckedUrl { scheme, host, port, url, uri })
}

/// Refuses spellings that the URL standard repairs silently and other parsers read differently.
fn read_spelling(text: &str) -> Result<Scheme, UrlRefusal> {
    if text.bytes().any(|byte| byte.is_ascii_control() || byte == b' ' || byte == b'\\') {
        return Err(UrlRefusal::Malformed("it contains a space, a control character or a backslash"));
    }
    let (scheme, rest) = text.split_once(':').ok_or(UrlRefusal::Malformed("it has no scheme"))?;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return Err(UrlRefusal::Scheme),
    };
    let rest = rest.strip_prefix("//").ok_or(UrlRefusal::Malformed("two slashes must follow the scheme"))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Err(UrlRefusal::Host);
    }
    if authority.contains('@') { Err(UrlRefusal::Userinfo) } else { Ok(scheme) }
}
