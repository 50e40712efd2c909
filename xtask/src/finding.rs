//! What a check has to say: one broken rule at one place.

use std::fmt;

/// One broken rule. Sorts by place, so that a report reads from the first file to the last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path from the repository's root, or the name of what has no path (a crate, a package).
    pub(crate) place: String,
    /// Counted from 1; 0 when the whole file or crate is meant.
    pub(crate) line: usize,
    /// What is wrong and what to do about it.
    pub(crate) message: String,
}

impl Finding {
    /// A finding at one line of a file.
    pub(crate) fn at(place: &str, line: usize, message: impl Into<String>) -> Self {
        Self { place: place.to_owned(), line, message: message.into() }
    }

    /// A finding about a whole file, crate or package.
    pub(crate) fn whole(place: &str, message: impl Into<String>) -> Self {
        Self::at(place, 0, message)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.place, self.message),
            line => write!(out, "{}:{line}: {}", self.place, self.message),
        }
    }
}
