//! The archive: files of lines, written whole, never changed, and found again by the store's own index.
//!
//! A file is gzip over lines of JSON, with a manifest beside it. It is in place, synced and read back before anything
//! that is in it leaves the store, so that a crash between the two leaves a line twice and never loses one.

mod cells;
mod entry_line;
mod file;
mod folder;
mod lines;
mod verify;
mod wire;

use bytes::Bytes;

pub(crate) use self::file::{Packed, Packer, line_at};
pub(crate) use self::verify::problems_of;
pub use self::{
    file::hex,
    folder::FolderArchive,
    lines::{LineError, Record},
};
use crate::ports::BoxFuture;

/// Where files are kept.
pub trait Archive: Send + Sync {
    /// Keeps `bytes` under `name`, in place of what may be there.
    ///
    /// Durability: on return they survive a crash and a loss of power, whole; before, nothing or an older file is
    /// there. Cancel: safe; what is left half-written is under another name.
    fn put(&self, name: &str, bytes: Bytes) -> BoxFuture<'_, Result<(), ArchiveError>>;

    /// The file as it is; `None` if there is none.
    fn get(&self, name: &str) -> BoxFuture<'_, Result<Option<Bytes>, ArchiveError>>;

    /// Where that is, for people: `file:/var/archive`.
    fn place(&self) -> &str;
}

const _: fn(&dyn Archive) = |_| ();

/// What is wrong with the archive. For the operator; holds no secret.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It can't be written or read now. Try again later.
    #[error("{place}: {problem}")]
    Unavailable {
        /// Which archive.
        place: String,
        /// What the system or the server said.
        problem: String,
    },
    /// A file is not there.
    #[error("the file {file} is missing from {place}: bring it back there from a backup")]
    Missing {
        /// Which archive.
        place: String,
        /// Which file.
        file: String,
    },
    /// A file is not what was written.
    #[error("the file {file} in {place} is damaged: {problem}")]
    Damaged {
        /// Which archive.
        place: String,
        /// Which file.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// No archive is configured where something was archived.
    #[error("no archive is configured: set `retention.archive` to where the file {file} is")]
    NotConfigured {
        /// Which file.
        file: String,
    },
}

/// What stands beside `file`.
pub(crate) fn manifest_name(file: &str) -> String {
    format!("{file}.manifest.json")
}
