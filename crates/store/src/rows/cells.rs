//! Reading columns one after the other. A cell that doesn't fit is the row's fault, never a panic.

use std::borrow::Cow;

use posthaste_core::{CorruptRow, DestinationId, EventId, MessageId, MessageKey, Timestamp};
use rusqlite::types::ValueRef;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use super::texts::unescaped;

/// A row of a database.
#[derive(Clone, Copy)]
pub(crate) enum Source<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r tokio_postgres::Row),
}

impl<'r> From<&'r rusqlite::Row<'r>> for Source<'r> {
    fn from(row: &'r rusqlite::Row<'r>) -> Self {
        Self::Sqlite(row)
    }
}

impl<'r> From<&'r tokio_postgres::Row> for Source<'r> {
    fn from(row: &'r tokio_postgres::Row) -> Self {
        Self::Postgres(row)
    }
}

/// The cells of one row, from left to right.
pub(crate) struct Cells<'r> {
    row: Source<'r>,
    next: usize,
    /// Named in errors.
    id: u128,
}

type Cell<T> = Result<T, CorruptRow>;

impl<'r> Cells<'r> {
    /// From the first column on. `id` names the row in errors.
    pub(crate) fn of(row: impl Into<Source<'r>>, id: u128) -> Self {
        Self::from(row, id, 0)
    }

    /// The same, from column `next` on.
    pub(crate) fn from(row: impl Into<Source<'r>>, id: u128, next: usize) -> Self {
        Self { row: row.into(), next, id }
    }

    /// The rest of the cells, for a row that tells its own `id`.
    pub(crate) fn named(self, id: u128) -> Self {
        Self { id, ..self }
    }

    fn corrupt(&self, what: &'static str) -> CorruptRow {
        CorruptRow { id: self.id, what }
    }

    fn next(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    fn in_sqlite(row: &'r rusqlite::Row<'r>, index: usize) -> ValueRef<'r> {
        row.get_ref(index).expect("the statement has this column")
    }

    fn in_postgres<T: FromSql<'r>>(
        &self,
        row: &'r tokio_postgres::Row,
        index: usize,
        what: &'static str,
    ) -> Cell<Option<T>> {
        row.try_get(index).map_err(|_| self.corrupt(what))
    }

    pub(crate) fn maybe_int<T: TryFrom<i64>>(&mut self) -> Cell<Option<T>> {
        const NONE: &str = "a number is none";
        let index = self.next();
        let value = match self.row {
            Source::Sqlite(row) => match Self::in_sqlite(row, index) {
                ValueRef::Null => None,
                ValueRef::Integer(value) => Some(value),
                ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => return Err(self.corrupt(NONE)),
            },
            Source::Postgres(row) => self.in_postgres::<i64>(row, index, NONE)?,
        };
        let Some(value) = value else { return Ok(None) };
        T::try_from(value).map(Some).map_err(|_| self.corrupt("a number is out of range"))
    }

    pub(crate) fn int<T: TryFrom<i64>>(&mut self) -> Cell<T> {
        self.maybe_int()?.ok_or_else(|| self.corrupt("a number is missing"))
    }

    pub(crate) fn at(&mut self) -> Cell<Timestamp> {
        self.int().map(Timestamp)
    }

    pub(crate) fn maybe_at(&mut self) -> Cell<Option<Timestamp>> {
        Ok(self.maybe_int()?.map(Timestamp))
    }

    pub(crate) fn flag(&mut self) -> Cell<bool> {
        match self.int::<i64>()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.corrupt("a flag is neither 0 nor 1")),
        }
    }

    pub(crate) fn maybe_str(&mut self) -> Cell<Option<Cow<'r, str>>> {
        const NONE: &str = "a text is none";
        let index = self.next();
        match self.row {
            Source::Sqlite(row) => match Self::in_sqlite(row, index) {
                ValueRef::Null => Ok(None),
                ValueRef::Text(text) => match std::str::from_utf8(text) {
                    Ok(text) => Ok(Some(Cow::Borrowed(text))),
                    Err(_) => Err(self.corrupt("a text is not UTF-8")),
                },
                ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => Err(self.corrupt(NONE)),
            },
            Source::Postgres(row) => Ok(self.in_postgres(row, index, NONE)?.map(unescaped)),
        }
    }

    pub(crate) fn str(&mut self) -> Cell<Cow<'r, str>> {
        self.maybe_str()?.ok_or_else(|| self.corrupt("a text is missing"))
    }

    pub(crate) fn maybe_text(&mut self) -> Cell<Option<Box<str>>> {
        Ok(self.maybe_str()?.map(Box::from))
    }

    pub(crate) fn text(&mut self) -> Cell<Box<str>> {
        self.str().map(Box::from)
    }

    pub(crate) fn maybe_bytes(&mut self) -> Cell<Option<&'r [u8]>> {
        const NONE: &str = "a blob is none";
        let index = self.next();
        match self.row {
            Source::Sqlite(row) => match Self::in_sqlite(row, index) {
                ValueRef::Null => Ok(None),
                ValueRef::Blob(bytes) => Ok(Some(bytes)),
                ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) => Err(self.corrupt(NONE)),
            },
            Source::Postgres(row) => self.in_postgres(row, index, NONE),
        }
    }

    pub(crate) fn bytes(&mut self) -> Cell<&'r [u8]> {
        self.maybe_bytes()?.ok_or_else(|| self.corrupt("a blob is missing"))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Cell<[u8; N]> {
        self.bytes()?.try_into().map_err(|_| self.corrupt("a blob has another length"))
    }

    pub(crate) fn id(&mut self) -> Cell<u128> {
        self.maybe_id()?.ok_or_else(|| self.corrupt("an id is missing"))
    }

    pub(crate) fn maybe_id(&mut self) -> Cell<Option<u128>> {
        match self.row {
            Source::Sqlite(_) => {
                let Some(bytes) = self.maybe_bytes()? else { return Ok(None) };
                let bytes = bytes.try_into().map_err(|_| self.corrupt("a blob has another length"))?;
                Ok(Some(u128::from_be_bytes(bytes)))
            }
            Source::Postgres(row) => {
                let index = self.next();
                Ok(self.in_postgres::<Uuid>(row, index, "an id is none")?.map(|id| id.as_u128()))
            }
        }
    }

    /// A word of a closed vocabulary.
    pub(crate) fn maybe_word<T>(&mut self, parse: fn(&str) -> Option<T>) -> Cell<Option<T>> {
        let Some(word) = self.maybe_str()? else { return Ok(None) };
        parse(&word).map(Some).ok_or_else(|| self.corrupt("a word is unknown"))
    }

    pub(crate) fn word<T>(&mut self, parse: fn(&str) -> Option<T>) -> Cell<T> {
        self.maybe_word(parse)?.ok_or_else(|| self.corrupt("a word is missing"))
    }

    pub(crate) fn key(&mut self) -> Cell<MessageKey> {
        MessageKey::new(&self.str()?).map_err(|_| self.corrupt("a key is none"))
    }

    pub(crate) fn event_id(&mut self) -> Cell<EventId> {
        EventId::new(&self.str()?).map_err(|_| self.corrupt("a ledger's key is none"))
    }

    pub(crate) fn destination(&mut self) -> Cell<DestinationId> {
        DestinationId::new(&self.str()?).map_err(|_| self.corrupt("a destination's id is none"))
    }

    pub(crate) fn maybe_destination(&mut self) -> Cell<Option<DestinationId>> {
        let Some(text) = self.maybe_str()? else { return Ok(None) };
        DestinationId::new(&text).map(Some).map_err(|_| self.corrupt("a destination's id is none"))
    }

    pub(crate) fn message_id(&mut self) -> Cell<MessageId> {
        self.id().map(MessageId)
    }
}

/// A number as SQL stores it. None of ours is beyond 2⁶³, and if one were, the largest would be near enough.
pub(crate) fn signed(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}
