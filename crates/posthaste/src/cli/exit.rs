//! How a command ends: 0 done, 1 refused or failed, 2 usage (clap's), 3 server unreachable.

use std::process::ExitCode;

/// A command came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// As asked.
    Done,
    /// It has printed what is wrong: exit 1 without another word.
    Refused,
}

/// A command failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Refused or failed; the text says why and what would be right.
    Refused(String),
    /// Nobody answers at the server's address.
    Unreachable(String),
    /// The arguments don't go together.
    Usage(String),
}

impl Failure {
    pub(super) fn refused(text: impl Into<String>) -> Self {
        Self::Refused(text.into())
    }

    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self::Usage(text.into())
    }
}

/// Prints a failure, and gives the exit code.
pub(super) fn report(end: Result<Outcome, Failure>) -> ExitCode {
    let (text, code) = match end {
        Ok(Outcome::Done) => return ExitCode::SUCCESS,
        Ok(Outcome::Refused) => return ExitCode::FAILURE,
        Err(Failure::Refused(text)) => (text, 1),
        Err(Failure::Usage(text)) => (text, 2),
        Err(Failure::Unreachable(text)) => (text, 3),
    };
    super::output::error(&text);
    ExitCode::from(code)
}
