//! From an error to a value: what broke, and whether the request may have left.

use std::{error::Error, io};

use hyper_util::client::legacy;
use posthaste_core::TransportFault;
use posthaste_engine::ports::SendOutcome;

use super::dial::DialError;

/// Longest detail, in bytes. Set by the port.
const DETAIL_BYTES_MAX: usize = 300;

/// Whether a connection had been chosen for the request when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handed {
    /// None was: nothing can have left.
    Never,
    /// One was: the client may have written to it at any time since.
    ToConnection,
}

/// An end without an answer.
pub(super) fn unanswered(fault: TransportFault, handed: Handed, detail: &str) -> SendOutcome {
    SendOutcome::Unanswered { fault, sent: handed == Handed::ToConnection, detail: shortened(detail) }
}

/// The outcome of a request that the client gave up.
///
/// The client reports "canceled" only for a request it gives back unserialised (a pooled connection that turned out
/// closed); every other error after the hand-over may have been preceded by bytes on the wire.
pub(super) fn read(error: &legacy::Error, handed: Handed) -> SendOutcome {
    if let Some(dial) = causes(error).find_map(|cause| cause.downcast_ref::<DialError>()) {
        return read_dial(dial);
    }
    let canceled = causes(error).filter_map(|cause| cause.downcast_ref::<hyper::Error>());
    let handed = if canceled.into_iter().any(hyper::Error::is_canceled) { Handed::Never } else { handed };
    let text: Vec<_> = causes(error).skip(1).map(ToString::to_string).collect();
    unanswered(fault_of(error), handed, &text.join(": "))
}

fn read_dial(error: &DialError) -> SendOutcome {
    let fault = match error {
        DialError::Refused(refusal) => {
            return SendOutcome::Blocked { reason: shortened(&refusal.to_string()) };
        }
        DialError::Names(_) => TransportFault::Dns,
        DialError::Connect(_) | DialError::Internal(_) => TransportFault::Connect,
        DialError::Handshake(_) => TransportFault::Tls,
        DialError::Timeout(_) => TransportFault::Timeout,
    };
    unanswered(fault, Handed::Never, &error.to_string())
}

/// The first cause that says something decisive; an answer that makes no sense is a protocol fault.
fn fault_of(error: &(dyn Error + 'static)) -> TransportFault {
    causes(error).find_map(decisive).unwrap_or(TransportFault::Protocol)
}

// A library's enum of dozens of kinds: those that say something here are named, the rest say nothing.
#[expect(clippy::wildcard_enum_match_arm)]
fn decisive(cause: &(dyn Error + 'static)) -> Option<TransportFault> {
    if let Some(error) = cause.downcast_ref::<hyper::Error>() {
        return match error {
            error if error.is_timeout() => Some(TransportFault::Timeout),
            error if error.is_parse() => Some(TransportFault::Protocol),
            error if error.is_incomplete_message() || error.is_canceled() || error.is_closed() => {
                Some(TransportFault::Reset)
            }
            _ => None,
        };
    }
    let error = cause.downcast_ref::<io::Error>()?;
    if error.get_ref().is_some_and(<dyn Error + Send + Sync>::is::<rustls::Error>) {
        return Some(TransportFault::Tls);
    }
    match error.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected
        | io::ErrorKind::UnexpectedEof => Some(TransportFault::Reset),
        io::ErrorKind::TimedOut => Some(TransportFault::Timeout),
        _ => None,
    }
}

pub(super) fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

/// At most [`DETAIL_BYTES_MAX`] bytes, without control characters: a receiver's words may be among them.
pub(super) fn shortened(text: &str) -> String {
    let mut short = String::with_capacity(text.len().min(DETAIL_BYTES_MAX));
    for letter in text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }) {
        if short.len() + letter.len_utf8() > DETAIL_BYTES_MAX {
            break;
        }
        short.push(letter);
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_d3_details_are_short_and_printable() {
        let text = format!("a\r\nb\u{1b}[31m{}", "ü".repeat(400));
        let short = shortened(&text);
        assert!(short.len() <= DETAIL_BYTES_MAX && short.len() > DETAIL_BYTES_MAX - 2);
        assert!(!short.chars().any(char::is_control));
    }
}
