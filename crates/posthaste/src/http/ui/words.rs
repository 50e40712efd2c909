//! What the words of a page mean to the person who reads it, and what they may do. Row F2.

use posthaste_core::{AttemptOutcome, Cause, Effect, NextStep, State, StateName, Timestamp};
use posthaste_store::AttemptView;

/// What a state means.
pub(super) const fn meaning(state: StateName) -> &'static str {
    match state {
        StateName::Scheduled => "Waits for its due time; no attempt has failed.",
        StateName::Leased => "One attempt is running.",
        StateName::Retryable => "An attempt failed or was lost; the next one follows by itself.",
        StateName::Committed => "The receiver has it.",
        StateName::DeadLettered => "Given up. It waits for a person.",
        StateName::Cancelled => "Called off. It will not run.",
    }
}

/// What the operator may do in a state.
pub(super) const fn action(state: StateName) -> &'static str {
    match state {
        StateName::Scheduled => "Nothing is needed. Cancel it if it should not run.",
        StateName::Leased => "Wait for its end. A cancel asks the worker to stop.",
        StateName::Retryable => "Look at the last error. Cancel it if no attempt can help.",
        StateName::Committed => "Nothing is needed.",
        StateName::DeadLettered => {
            "Mend the cause, then replay it: `posthaste jobs replay`. Or cancel it with a reason."
        }
        StateName::Cancelled => {
            "Nothing can be done with it. Publish under another key if it is wanted after all."
        }
    }
}

/// What the job waits for or ended by, beyond its state.
pub(super) fn more(state: &State) -> Option<&'static str> {
    match state {
        State::DeadLettered { cause, .. } => Some(of_cause(*cause)),
        State::Retryable { next: NextStep::LookUp, .. } => {
            Some("The last attempt's outcome is looked up before anything is tried again.")
        }
        State::Scheduled { .. }
        | State::Leased(_)
        | State::Retryable { .. }
        | State::Committed { .. }
        | State::Cancelled { .. } => None,
    }
}

const fn of_cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Exhausted => {
            "Its attempts or its time ran out. Another try is safe where no attempt may have acted."
        }
        Cause::Permanent => "The receiver refused it for good. Another try helps only after a change.",
        Cause::InvalidPayload => "It is authentic, but not of the expected shape. It was not executed.",
        Cause::MissingKey => "No key could be derived from it. It was not executed.",
        Cause::KeyReused => "Its key was used for another payload. It was not executed.",
        Cause::OutcomeUnknown => "It may have happened. Ask the receiver before another try.",
        Cause::EndpointGone => "The endpoint said that it is gone, or was deleted.",
        Cause::LeaseLost => "Its workers were lost too often. See why they die; an attempt may have acted.",
    }
}

/// How an ended attempt looks: a word for the style, and a sentence that tells apart an attempt that never reached the
/// receiver, one that may have acted, and one whose commit was only heard late.
pub(super) fn verdict(view: &AttemptView) -> (&'static str, &'static str) {
    let report = view.late.as_ref().map_or(view.end.report, |late| late.report);
    let late = view.late.is_some() || (view.commit_heard_at.is_some() && !view.end.reported);
    match (report.outcome, report.effect) {
        (AttemptOutcome::Committed, _) if late => ("good", "committed; its acknowledgement came late"),
        (AttemptOutcome::Committed, Effect::Confirmed) => ("good", "committed, by the receiver's ledger"),
        (AttemptOutcome::Committed, _) => ("good", "committed"),
        (AttemptOutcome::Duplicate, _) => ("good", "no-op: it was done before"),
        (AttemptOutcome::Cancelled, _) => ("calm", "called off; nothing was done"),
        (AttemptOutcome::Released, _) => ("calm", "given back untried"),
        (AttemptOutcome::Failed | AttemptOutcome::LeaseLost, _) if view.commit_heard_at.is_some() => {
            ("doubt", "committed, as was heard afterwards; the acknowledgement was lost")
        }
        (AttemptOutcome::Failed, Effect::None) => ("bad", "failed; the receiver did not act"),
        (AttemptOutcome::Failed, _) => ("doubt", "failed; the receiver may have acted"),
        (AttemptOutcome::LeaseLost, Effect::None) => ("bad", "lost before it began"),
        (AttemptOutcome::LeaseLost, _) => ("doubt", "lost while it ran; it may have acted"),
    }
}

/// How long it is from `from` to `to`, in the largest unit that says something.
pub(super) fn age(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.since(from).0 / 1_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_their_largest_units() {
        for (seconds, text) in
            [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3_660, "1 h 1 min"), (90_000, "1 d 1 h")]
        {
            assert_eq!(text, age(Timestamp(0), Timestamp(seconds * 1_000)));
        }
    }
}
