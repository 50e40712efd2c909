//! Many rows in one statement: an array for each column, which the statement unnests.
//!
//! Statements go unnamed (`query_typed`), with the types of their parameters, so that they work behind PgBouncer in
//! transaction mode, and in one round trip.

use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

pub(crate) use crate::rows::{cells::signed, texts::escaped};

/// One parameter: a column of many rows, or one value.
pub(crate) enum Param {
    Ints(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
    Blobs(Vec<Option<Vec<u8>>>),
    Ids(Vec<Option<Uuid>>),
    Int(Option<i64>),
    Text(Option<String>),
    Id(Option<Uuid>),
}

impl Param {
    pub(crate) fn ints<T: TryInto<i64>>(values: impl IntoIterator<Item = T>) -> Self {
        Self::Ints(values.into_iter().map(|value| Some(signed(value))).collect())
    }

    pub(crate) fn maybe_ints<T: TryInto<i64>>(values: impl IntoIterator<Item = Option<T>>) -> Self {
        Self::Ints(values.into_iter().map(|value| value.map(signed)).collect())
    }

    pub(crate) fn flags(values: impl IntoIterator<Item = bool>) -> Self {
        Self::Ints(values.into_iter().map(|value| Some(i64::from(value))).collect())
    }

    pub(crate) fn texts<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> Self {
        Self::Texts(values.into_iter().map(|value| Some(escaped(value.as_ref()).into_owned())).collect())
    }

    pub(crate) fn maybe_texts<T: AsRef<str>>(values: impl IntoIterator<Item = Option<T>>) -> Self {
        let text = |value: Option<T>| value.map(|value| escaped(value.as_ref()).into_owned());
        Self::Texts(values.into_iter().map(text).collect())
    }

    pub(crate) fn blobs<T: AsRef<[u8]>>(values: impl IntoIterator<Item = T>) -> Self {
        Self::Blobs(values.into_iter().map(|value| Some(value.as_ref().to_vec())).collect())
    }

    pub(crate) fn maybe_blobs<T: AsRef<[u8]>>(values: impl IntoIterator<Item = Option<T>>) -> Self {
        Self::Blobs(values.into_iter().map(|value| value.map(|value| value.as_ref().to_vec())).collect())
    }

    pub(crate) fn ids(values: impl IntoIterator<Item = u128>) -> Self {
        Self::Ids(values.into_iter().map(|value| Some(Uuid::from_u128(value))).collect())
    }

    pub(crate) fn maybe_ids(values: impl IntoIterator<Item = Option<u128>>) -> Self {
        Self::Ids(values.into_iter().map(|value| value.map(Uuid::from_u128)).collect())
    }

    pub(crate) fn int<T: TryInto<i64>>(value: T) -> Self {
        Self::Int(Some(signed(value)))
    }

    pub(crate) fn text(value: &str) -> Self {
        Self::Text(Some(escaped(value).into_owned()))
    }

    pub(crate) fn id(value: u128) -> Self {
        Self::Id(Some(Uuid::from_u128(value)))
    }

    pub(crate) fn maybe_id(value: Option<u128>) -> Self {
        Self::Id(value.map(Uuid::from_u128))
    }

    /// As a parameter, with its type.
    pub(crate) fn parameter(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            Self::Ints(values) => (values, Type::INT8_ARRAY),
            Self::Texts(values) => (values, Type::TEXT_ARRAY),
            Self::Blobs(values) => (values, Type::BYTEA_ARRAY),
            Self::Ids(values) => (values, Type::UUID_ARRAY),
            Self::Int(value) => (value, Type::INT8),
            Self::Text(value) => (value, Type::TEXT),
            Self::Id(value) => (value, Type::UUID),
        }
    }
}
