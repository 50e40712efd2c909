//! Names that users give: keys, destinations, event ids. Checked once, then carried as types.

use std::fmt;

use crate::limits;

/// Why a name was refused. The texts say what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing there.
    #[error("{what} must not be empty")]
    Empty {
        /// What kind of name.
        what: &'static str,
    },
    /// Too long.
    #[error("{what} must be at most {max} bytes, this one has {length}")]
    TooLong {
        /// What kind of name.
        what: &'static str,
        /// The limit, in bytes.
        max: usize,
        /// What was given, in bytes.
        length: usize,
    },
    /// A byte that may not be there.
    #[error("{what} may hold only {allowed}; byte {position} is 0x{byte:02x}")]
    BadByte {
        /// What kind of name.
        what: &'static str,
        /// What is allowed.
        allowed: &'static str,
        /// Where, from 0.
        position: usize,
        /// The byte.
        byte: u8,
    },
}

/// The business identity of a message: 1 to 256 bytes of 0x21 to 0x7E, compared by bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageKey(Box<str>);

/// The id of an endpoint, queue or source: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DestinationId(Box<str>);

/// A job's identity towards receivers: `{message key}:{destination}`, for ever.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(Box<str>);

impl MessageKey {
    /// Checks `text`.
    pub fn new(text: &str) -> Result<Self, NameError> {
        check_visible("a key", text, limits::KEY_BYTES_MAX)?;
        Ok(Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl DestinationId {
    /// Checks `text`.
    pub fn new(text: &str) -> Result<Self, NameError> {
        const WHAT: &str = "a destination's id";
        check_length(WHAT, text, limits::DESTINATION_ID_CHARS_MAX)?;
        let fits = |(position, byte): (usize, u8)| {
            byte.is_ascii_alphanumeric() || (position > 0 && matches!(byte, b'.' | b'_' | b'-'))
        };
        match text.bytes().enumerate().find(|&at| !fits(at)) {
            Some((position, byte)) => Err(NameError::BadByte {
                what: WHAT,
                allowed: "letters, digits and, after the first, `.`, `_`, `-`",
                position,
                byte,
            }),
            None => Ok(Self(text.into())),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl EventId {
    /// The identity of the job that owes the message `key` to `destination`.
    pub fn of(key: &MessageKey, destination: &DestinationId) -> Self {
        Self(format!("{}:{}", key.as_str(), destination.as_str()).into())
    }

    /// Checks `text`: an event id or any other ledger key.
    pub fn new(text: &str) -> Result<Self, NameError> {
        check_visible("a ledger key", text, limits::EVENT_ID_BYTES_MAX)?;
        Ok(Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! display {
    ($($name:ident)+) => { $(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )+ };
}

display!(MessageKey DestinationId EventId);

fn check_length(what: &'static str, text: &str, max: usize) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { what });
    }
    if text.len() > max {
        return Err(NameError::TooLong { what, max, length: text.len() });
    }
    Ok(())
}

fn check_visible(what: &'static str, text: &str, max: usize) -> Result<(), NameError> {
    check_length(what, text, max)?;
    match text.bytes().enumerate().find(|(_, byte)| !byte.is_ascii_graphic()) {
        Some((position, byte)) => Err(NameError::BadByte {
            what,
            allowed: "visible ASCII, 0x21 to 0x7e (percent-encode anything else)",
            position,
            byte,
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hold_visible_ascii_of_1_to_256_bytes() {
        let longest = "k".repeat(256);
        for text in ["!", "~", "cart:8f31:expire", "a/b?c#d%20", "\"quoted\"", longest.as_str()] {
            assert_eq!(text, MessageKey::new(text).unwrap().as_str());
        }
        assert!(matches!(MessageKey::new(""), Err(NameError::Empty { .. })));
        let too_long = MessageKey::new(&"k".repeat(257)).unwrap_err();
        assert_eq!("a key must be at most 256 bytes, this one has 257", too_long.to_string());
        for (text, position) in [(" ", 0), ("a b", 1), ("ab\u{7f}", 2), ("a\n", 1), ("é", 0), ("a\0", 1)] {
            let error = MessageKey::new(text).unwrap_err();
            assert!(matches!(error, NameError::BadByte { position: p, .. } if p == position), "{text:?}");
        }
    }

    #[test]
    fn destinations_start_with_a_letter_or_digit() {
        let longest = "d".repeat(64);
        for text in ["a", "7", "fan_17", "a.b-c_d", longest.as_str()] {
            assert_eq!(text, DestinationId::new(text).unwrap().as_str());
        }
        let too_long = "d".repeat(65);
        for text in ["", "_a", ".a", "-a", "a b", "a:b", "a/b", "é", too_long.as_str()] {
            assert!(DestinationId::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_event_id_is_key_and_destination() {
        let key = MessageKey::new("ship_482:v3").unwrap();
        let event = EventId::of(&key, &DestinationId::new("fan_17").unwrap());
        assert_eq!("ship_482:v3:fan_17", event.to_string());
        let longest = "k".repeat(321);
        assert_eq!(longest, EventId::new(&longest).unwrap().as_str());
        assert!(EventId::new(&"k".repeat(322)).is_err());
    }
}
