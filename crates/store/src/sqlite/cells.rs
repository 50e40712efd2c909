//! Reading columns one after the other. A cell that doesn't fit is the row's fault, never a panic.

use posthaste_core::{CorruptRow, DestinationId, MessageId, MessageKey, Timestamp};
use rusqlite::{Row, types::ValueRef};

/// The cells of one row, from left to right.
pub(super) struct Cells<'r> {
    row: &'r Row<'r>,
    next: usize,
    /// Named in errors.
    id: u128,
}

type Cell<T> = Result<T, CorruptRow>;

impl<'r> Cells<'r> {
    /// From the first column on. `id` names the row in errors.
    pub(super) fn of(row: &'r Row<'r>, id: u128) -> Self {
        Self { row, next: 0, id }
    }

    /// The same, from column `next` on.
    pub(super) fn from(row: &'r Row<'r>, id: u128, next: usize) -> Self {
        Self { row, next, id }
    }

    fn corrupt(&self, what: &'static str) -> CorruptRow {
        CorruptRow { id: self.id, what }
    }

    fn cell(&mut self) -> ValueRef<'r> {
        let value = self.row.get_ref(self.next).expect("the statement has this column");
        self.next += 1;
        value
    }

    pub(super) fn maybe_int<T: TryFrom<i64>>(&mut self) -> Cell<Option<T>> {
        match self.cell() {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(value) => match T::try_from(value) {
                Ok(value) => Ok(Some(value)),
                Err(_) => Err(self.corrupt("a number is out of range")),
            },
            ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => {
                Err(self.corrupt("a number is none"))
            }
        }
    }

    pub(super) fn int<T: TryFrom<i64>>(&mut self) -> Cell<T> {
        self.maybe_int()?.ok_or_else(|| self.corrupt("a number is missing"))
    }

    pub(super) fn at(&mut self) -> Cell<Timestamp> {
        self.int().map(Timestamp)
    }

    pub(super) fn maybe_at(&mut self) -> Cell<Option<Timestamp>> {
        Ok(self.maybe_int()?.map(Timestamp))
    }

    pub(super) fn flag(&mut self) -> Cell<bool> {
        match self.int::<i64>()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.corrupt("a flag is neither 0 nor 1")),
        }
    }

    pub(super) fn maybe_str(&mut self) -> Cell<Option<&'r str>> {
        match self.cell() {
            ValueRef::Null => Ok(None),
            ValueRef::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => Ok(Some(text)),
                Err(_) => Err(self.corrupt("a text is not UTF-8")),
            },
            ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => {
                Err(self.corrupt("a text is none"))
            }
        }
    }

    pub(super) fn str(&mut self) -> Cell<&'r str> {
        self.maybe_str()?.ok_or_else(|| self.corrupt("a text is missing"))
    }

    pub(super) fn maybe_text(&mut self) -> Cell<Option<Box<str>>> {
        Ok(self.maybe_str()?.map(Box::from))
    }

    pub(super) fn text(&mut self) -> Cell<Box<str>> {
        self.str().map(Box::from)
    }

    pub(super) fn maybe_bytes(&mut self) -> Cell<Option<&'r [u8]>> {
        match self.cell() {
            ValueRef::Null => Ok(None),
            ValueRef::Blob(bytes) => Ok(Some(bytes)),
            ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) => {
                Err(self.corrupt("a blob is none"))
            }
        }
    }

    pub(super) fn bytes(&mut self) -> Cell<&'r [u8]> {
        self.maybe_bytes()?.ok_or_else(|| self.corrupt("a blob is missing"))
    }

    pub(super) fn array<const N: usize>(&mut self) -> Cell<[u8; N]> {
        self.bytes()?.try_into().map_err(|_| self.corrupt("a blob has another length"))
    }

    pub(super) fn id(&mut self) -> Cell<u128> {
        self.array().map(u128::from_be_bytes)
    }

    pub(super) fn maybe_id(&mut self) -> Cell<Option<u128>> {
        let Some(bytes) = self.maybe_bytes()? else { return Ok(None) };
        let bytes = bytes.try_into().map_err(|_| self.corrupt("a blob has another length"))?;
        Ok(Some(u128::from_be_bytes(bytes)))
    }

    /// A word of a closed vocabulary.
    pub(super) fn maybe_word<T>(&mut self, parse: fn(&str) -> Option<T>) -> Cell<Option<T>> {
        let Some(word) = self.maybe_str()? else { return Ok(None) };
        parse(word).map(Some).ok_or_else(|| self.corrupt("a word is unknown"))
    }

    pub(super) fn word<T>(&mut self, parse: fn(&str) -> Option<T>) -> Cell<T> {
        self.maybe_word(parse)?.ok_or_else(|| self.corrupt("a word is missing"))
    }

    pub(super) fn key(&mut self) -> Cell<MessageKey> {
        MessageKey::new(self.str()?).map_err(|_| self.corrupt("a key is none"))
    }

    pub(super) fn destination(&mut self) -> Cell<DestinationId> {
        DestinationId::new(self.str()?).map_err(|_| self.corrupt("a destination's id is none"))
    }

    pub(super) fn maybe_destination(&mut self) -> Cell<Option<DestinationId>> {
        let Some(text) = self.maybe_str()? else { return Ok(None) };
        DestinationId::new(text).map(Some).map_err(|_| self.corrupt("a destination's id is none"))
    }

    pub(super) fn message_id(&mut self) -> Cell<MessageId> {
        self.id().map(MessageId)
    }
}

/// A number as SQLite stores it. None of ours is beyond 2⁶³, and if one were, the largest would be near enough.
pub(super) fn signed(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}
