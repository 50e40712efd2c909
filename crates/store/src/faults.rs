//! Faults on request, for tests: read once from `POSTHASTE_FAULTS`, words between commas.
//!
//! Compiled with the feature `faults` alone; a release has none of it.
//!
//! - `kill:POINT:N` ends the process at once, as a crash would, the N-th time that it reaches a [`Point`].
//! - `answer_before_commit`, `synchronous=normal` and `synchronous=off` are mutants: each breaks a promise of
//!   durability, so that a test can show that it would notice.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// The variable.
pub const VARIABLE: &str = "POSTHASTE_FAULTS";

/// How long answers that leave too early are ahead of their commit, so that it can be seen.
const AHEAD: Duration = Duration::from_millis(5);

/// A place where the process may be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A batch has run, and nothing of it is durable.
    BeforeCommit,
    /// A batch is durable, and nothing of it is answered.
    AfterCommit,
    /// A subscriber's answer is in, and not yet reported.
    AfterSend,
    /// A chunk of a fan-out is durable, and more is to come.
    MidFanOut,
    /// A file of the archive is in place, and nothing of it has left.
    ArchiveWritten,
    /// Some of a file's records have left, and more may be to come.
    MidRetire,
    /// A schedule's firing is published, and the schedule has not moved on.
    MidFiring,
    /// A step of a bulk run is durable, and more is to come.
    MidBulk,
}

/// A value of `PRAGMA synchronous` that is too weak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weak {
    Normal,
    Off,
}

#[derive(Debug)]
struct Kill {
    point: Point,
    at: u64,
    reached: AtomicU64,
}

#[derive(Debug, Default)]
struct Faults {
    kills: Vec<Kill>,
    answer_before_commit: bool,
    synchronous: Option<Weak>,
}

fn asked_for() -> &'static Result<Faults, String> {
    static FAULTS: OnceLock<Result<Faults, String>> = OnceLock::new();
    FAULTS.get_or_init(|| match std::env::var(VARIABLE) {
        Ok(text) => parse(&text),
        Err(std::env::VarError::NotPresent) => Ok(Faults::default()),
        Err(error) => Err(format!("{VARIABLE}: {error}")),
    })
}

/// Whether every word is known. Errors: a sentence that names the one that isn't; nothing may be started then.
pub fn check() -> Result<(), &'static str> {
    asked_for().as_ref().map(|_| ()).map_err(String::as_str)
}

/// Ends the process if it was asked for here and now.
pub fn reached(point: Point) {
    let Ok(faults) = asked_for() else { return };
    for kill in faults.kills.iter().filter(|kill| kill.point == point) {
        if kill.reached.fetch_add(1, Ordering::Relaxed) + 1 == kill.at {
            std::process::abort();
        }
    }
}

/// A mutant answers what is to be answered after the commit at once, by `answer`; then nothing is left to be answered.
#[allow(clippy::disallowed_methods)] // the delay is the fault: nothing waits for it
pub(crate) fn answered_early<T, F>(
    batch: Vec<T>,
    failed: Vec<F>,
    answer: fn(Vec<T>, Vec<F>),
) -> (Vec<T>, Vec<F>) {
    if !asked_for().as_ref().is_ok_and(|faults| faults.answer_before_commit) {
        return (batch, failed);
    }
    answer(batch, failed);
    thread::sleep(AHEAD);
    (Vec::new(), Vec::new())
}

/// A mutant's settings of a connection: name, value, and how SQLite spells the value.
pub(crate) fn weakened<const N: usize>(
    mut settings: [(&'static str, &'static str, &'static str); N],
) -> [(&'static str, &'static str, &'static str); N] {
    let weak = asked_for().as_ref().ok().and_then(|faults| faults.synchronous);
    let found = settings.iter_mut().find(|(name, ..)| *name == "synchronous");
    if let (Some(weak), Some(setting)) = (weak, found) {
        (setting.1, setting.2) = match weak {
            Weak::Normal => ("NORMAL", "1"),
            Weak::Off => ("OFF", "0"),
        };
    }
    settings
}

fn parse(text: &str) -> Result<Faults, String> {
    let mut faults = Faults::default();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word {
            "answer_before_commit" => faults.answer_before_commit = true,
            "synchronous=normal" => faults.synchronous = Some(Weak::Normal),
            "synchronous=off" => faults.synchronous = Some(Weak::Off),
            _ => faults.kills.push(kill(word).ok_or_else(|| unknown(word))?),
        }
    }
    Ok(faults)
}

fn kill(word: &str) -> Option<Kill> {
    let (point, at) = word.strip_prefix("kill:")?.split_once(':')?;
    let point = match point {
        "before_commit" => Point::BeforeCommit,
        "after_commit" => Point::AfterCommit,
        "after_send" => Point::AfterSend,
        "mid_fan_out" => Point::MidFanOut,
        "archive_written" => Point::ArchiveWritten,
        "mid_retire" => Point::MidRetire,
        "mid_firing" => Point::MidFiring,
        "mid_bulk" => Point::MidBulk,
        _ => return None,
    };
    let at = at.parse().ok().filter(|at| *at > 0)?;
    Some(Kill { point, at, reached: AtomicU64::new(0) })
}

fn unknown(word: &str) -> String {
    format!(
        "{VARIABLE}: {word:?} is unknown; known are kill:POINT:N (POINT: before_commit, after_commit, after_send, \
         mid_fan_out, archive_written, mid_retire, mid_firing, mid_bulk; N from 1), answer_before_commit, synchronous=normal, \
         synchronous=off"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read() {
        let text = "kill:after_send:3, answer_before_commit,synchronous=off,kill:mid_fan_out:1,";
        let faults = parse(text).unwrap();
        let kills: Vec<_> = faults.kills.iter().map(|kill| (kill.point, kill.at)).collect();
        assert_eq!([(Point::AfterSend, 3), (Point::MidFanOut, 1)], *kills);
        assert!(faults.answer_before_commit);
        assert_eq!(Some(Weak::Off), faults.synchronous);
        assert!(parse("").unwrap().kills.is_empty());
    }

    #[test]
    fn an_unknown_word_is_refused_by_name() {
        for word in [
            "kill",
            "kill:after_send",
            "kill:elsewhere:1",
            "kill:after_commit:0",
            "kill:after_commit:x",
            "synchronous=full",
        ] {
            let error = parse(&format!("answer_before_commit,{word}")).unwrap_err();
            assert!(error.contains(&format!("{word:?} is unknown")), "{error}");
        }
    }
}
