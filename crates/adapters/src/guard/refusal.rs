//! Why the guard said no: one variant per rule, with a stable code for the API.

use super::Range;

/// Why an address is not dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressRefusal {
    /// It lies in a special-purpose range and no private network that the operator allowed.
    #[error(
        "the address is neither public nor in a listed private network; its range is {name} ({net})",
        name = .0.name, net = .0.net
    )]
    Forbidden(Range),
    /// It is public, and plain `http` is allowed to private networks only.
    #[error("plain http is allowed to listed private networks only; use https")]
    PlainHttp,
    /// The name has no address at all.
    #[error("the name has no address")]
    NoAddress,
}

/// Why a URL is not accepted as a destination. Sorted by what the caller changes: the text, the host, the policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlRefusal {
    /// Not an absolute URL, or one that other parsers would read differently.
    #[error("the url must be absolute and well-formed, like https://host/path: {0}")]
    Malformed(&'static str),
    /// Longer than [`super::URL_BYTES_MAX`].
    #[error("the url must have at most {max} bytes; it has {0}", max = super::URL_BYTES_MAX)]
    TooLong(usize),
    /// A scheme other than `http` and `https`.
    #[error("the scheme must be https, or http where that is allowed")]
    Scheme,
    /// `user@` or `user:password@` before the host.
    #[error("the url must not carry credentials")]
    Userinfo,
    /// A `#` part, which would never be sent.
    #[error("the url must not have a fragment")]
    Fragment,
    /// Port 0.
    #[error("the port must be from 1 to 65535")]
    Port,
    /// An empty or overlong host name or label.
    #[error("the host must be a name of at most 253 bytes with labels of 1 to 63 bytes, or an address")]
    Host,
    /// No pattern of `destinations` covers the host.
    #[error("the host must be one of the allowed destinations")]
    Destination,
    /// The address, written out or implied by the name, is refused.
    #[error(transparent)]
    Address(#[from] AddressRefusal),
}

impl AddressRefusal {
    /// Stable machine-readable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Forbidden(_) => "destination_address_forbidden",
            Self::PlainHttp => "destination_https_required",
            Self::NoAddress => "destination_has_no_address",
        }
    }
}

impl UrlRefusal {
    /// Stable machine-readable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "url_malformed",
            Self::TooLong(_) => "url_too_long",
            Self::Scheme => "url_scheme",
            Self::Userinfo => "url_userinfo",
            Self::Fragment => "url_fragment",
            Self::Port => "url_port",
            Self::Host => "url_host",
            Self::Destination => "destination_not_allowed",
            Self::Address(refusal) => refusal.code(),
        }
    }
}
