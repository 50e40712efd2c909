//! Bulk runs: one order of an operator for many jobs, carried out a few at a time. Row B9.
//!
//! What is written here says which jobs a run is about, what it may become, and how what it did is counted. Each job is
//! decided by [`crate::transition`], as if it had been asked for alone.

use crate::{
    Answer, CancelAnswer, Cause, Class, LaneId, MessageKey, Nature, Refusal, StateName, Timestamp,
    words::words,
};

words! {
    /// What a run does with its jobs.
    RunKind {
        /// Sends dead letters round again, through the gate of a single replay.
        Replay = "replay",
        /// Calls jobs off.
        Cancel = "cancel",
    }
}

words! {
    /// How a run stands.
    RunState {
        /// It goes on.
        Running = "running",
        /// It waits for an operator.
        Paused = "paused",
        /// An operator ended it. For good.
        Stopped = "stopped",
        /// It looked at every job.
        Done = "done",
        /// It can't go on, for a reason that it tells; it may be resumed.
        Failed = "failed",
    }
}

words! {
    /// What an operator asks of a run.
    RunControl {
        /// Wait.
        Pause = "pause",
        /// Go on.
        Resume = "resume",
        /// End.
        Stop = "stop",
    }
}

impl RunState {
    /// What it becomes; `None`: that is not possible any more.
    pub fn after(self, control: RunControl) -> Option<Self> {
        match (self, control) {
            (Self::Running | Self::Paused, RunControl::Pause) => Some(Self::Paused),
            (Self::Running | Self::Paused | Self::Failed, RunControl::Resume) => Some(Self::Running),
            (Self::Running | Self::Paused | Self::Stopped | Self::Failed, RunControl::Stop) => {
                Some(Self::Stopped)
            }
            (Self::Stopped | Self::Done | Self::Failed, RunControl::Pause)
            | (Self::Stopped | Self::Done, RunControl::Resume)
            | (Self::Done, RunControl::Stop) => None,
        }
    }

    /// Whether it goes on, or may without being looked at.
    pub fn is_live(self) -> bool {
        matches!(self, Self::Running | Self::Paused)
    }
}

/// Which jobs a run is about. Everything given must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BulkFilter {
    /// Only of this state. `None`: dead letters for a replay, everything that lives for a cancel.
    pub state: Option<StateName>,
    /// Only of this destination's lane.
    pub lane: Option<LaneId>,
    /// Only dead letters of this cause.
    pub cause: Option<Cause>,
    /// Only jobs whose last ended attempt failed with this class.
    pub class: Option<Class>,
    /// Only of messages whose key begins so.
    pub key_prefix: Option<Box<str>>,
    /// Only of messages of this very type.
    pub event_type: Option<Box<str>>,
    /// Only jobs that were made then or later.
    pub created_since: Option<Timestamp>,
    /// Only jobs that were made before then.
    pub created_until: Option<Timestamp>,
    /// Only dead letters since then.
    pub dead_lettered_since: Option<Timestamp>,
    /// Only dead letters from before then.
    pub dead_lettered_until: Option<Timestamp>,
}

/// What a job's own row tells a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkRow {
    /// Its state.
    pub state: StateName,
    /// Its lane.
    pub lane: LaneId,
    /// Why it is a dead letter, if it is one.
    pub cause: Option<Cause>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was settled, if it is.
    pub settled_at: Option<Timestamp>,
}

impl BulkFilter {
    /// Whether it is about dead letters; otherwise about jobs that live.
    pub fn about_dead_letters(&self, kind: RunKind) -> bool {
        kind == RunKind::Replay || self.state == Some(StateName::DeadLettered)
    }

    /// Whether it needs no more than the job's row.
    pub fn needs_row_only(&self) -> bool {
        self.key_prefix.is_none() && self.event_type.is_none() && self.class.is_none()
    }

    /// Whether the job's own row fits.
    pub fn fits_row(&self, kind: RunKind, row: &BulkRow) -> bool {
        let state = if self.about_dead_letters(kind) {
            row.state == StateName::DeadLettered
        } else {
            !row.state.is_settled()
        };
        let since = |at: Option<Timestamp>, bound: Option<Timestamp>| {
            bound.is_none_or(|bound| at.is_some_and(|at| at >= bound))
        };
        let until = |at: Option<Timestamp>, bound: Option<Timestamp>| {
            bound.is_none_or(|bound| at.is_some_and(|at| at < bound))
        };
        let dead_at = row.settled_at.filter(|_| row.state == StateName::DeadLettered);
        state
            && self.state.is_none_or(|state| row.state == state)
            && self.lane.is_none_or(|lane| row.lane == lane)
            && self.cause.is_none_or(|cause| row.cause == Some(cause))
            && since(Some(row.created_at), self.created_since)
            && until(Some(row.created_at), self.created_until)
            && since(dead_at, self.dead_lettered_since)
            && until(dead_at, self.dead_lettered_until)
    }

    /// Whether the job's message fits.
    pub fn fits_message(&self, key: &MessageKey, event_type: Option<&str>) -> bool {
        self.key_prefix.as_ref().is_none_or(|prefix| key.as_str().starts_with(&**prefix))
            && self.event_type.as_ref().is_none_or(|wanted| event_type == Some(wanted))
    }

    /// Whether the class of the job's last ended attempt fits.
    pub fn fits_class(&self, class: Option<Class>) -> bool {
        self.class.is_none_or(|wanted| class == Some(wanted))
    }
}

impl BulkRow {
    /// Whether it was so when a run began: what became a dead letter later, perhaps again, is not the run's to touch,
    /// nor what was made later.
    pub fn was_so_at(&self, began_at: Timestamp) -> bool {
        self.settled_at.unwrap_or(self.created_at) <= began_at
    }
}

/// What a run did with one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkOutcome {
    /// It goes round again, or is called off.
    Done,
    /// It runs; its worker is asked to stop.
    Requested,
    /// Evidence settled it, and nothing is sent.
    Settled,
    /// It stays as it is, with the code of the refusal.
    Refused(&'static str),
}

impl BulkOutcome {
    /// What a run counts, by what the core answered.
    pub fn of(reply: &Result<Answer, Refusal>, nature: Option<Nature>) -> Self {
        match (reply, nature) {
            (Err(refusal), _) => Self::Refused(refusal.code()),
            (Ok(Answer::Cancel(CancelAnswer::Requested)), _) => Self::Requested,
            (Ok(Answer::Cancel(CancelAnswer::TooLate)), _) => Self::Refused("too_late"),
            (Ok(Answer::Moved { .. }), Some(Nature::SettledInstead)) => Self::Settled,
            (Ok(Answer::Moved { .. } | Answer::Cancel(CancelAnswer::Cancelled)), _) => Self::Done,
            (Ok(Answer::Leased { .. } | Answer::Extended { .. }), _) => Self::Refused("wrong_state"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_b9_what_ended_stays_ended_and_what_failed_may_go_on() {
        use RunControl::*;
        use RunState::*;
        for (state, expected) in [
            (Running, [Some(Paused), Some(Running), Some(Stopped)]),
            (Paused, [Some(Paused), Some(Running), Some(Stopped)]),
            (Stopped, [None, None, Some(Stopped)]),
            (Done, [None, None, None]),
            (Failed, [None, Some(Running), Some(Stopped)]),
        ] {
            assert_eq!(expected, [Pause, Resume, Stop].map(|control| state.after(control)), "{state}");
        }
        assert_eq!([true, true], [Running, Paused].map(RunState::is_live));
        assert_eq!([false; 3], [Stopped, Done, Failed].map(RunState::is_live));
    }

    fn dead() -> BulkRow {
        BulkRow {
            state: StateName::DeadLettered,
            lane: LaneId(7),
            cause: Some(Cause::Exhausted),
            created_at: Timestamp(100),
            settled_at: Some(Timestamp(200)),
        }
    }

    #[test]
    fn r_b9_a_filter_fits_only_if_all_of_it_fits() {
        let row = dead();
        let fits = |filter: BulkFilter| filter.fits_row(RunKind::Replay, &row);
        let any = BulkFilter::default;
        assert!(fits(any()));
        assert!(fits(BulkFilter { lane: Some(LaneId(7)), cause: Some(Cause::Exhausted), ..any() }));
        assert!(!fits(BulkFilter { lane: Some(LaneId(7)), cause: Some(Cause::Permanent), ..any() }));
        assert!(!fits(BulkFilter { lane: Some(LaneId(8)), cause: Some(Cause::Exhausted), ..any() }));
        assert!(!fits(BulkFilter { state: Some(StateName::Scheduled), ..any() }));
        let at = |at: i64| Some(Timestamp(at));
        for (since, until, expected) in
            [(100, 101, true), (101, 200, false), (0, 100, false), (100, 100, false)]
        {
            let created = BulkFilter { created_since: at(since), created_until: at(until), ..any() };
            assert_eq!(expected, fits(created), "{since} to {until}");
            let (since, until) = (at(since + 100), at(until + 100));
            let dead = BulkFilter { dead_lettered_since: since, dead_lettered_until: until, ..any() };
            assert_eq!(expected, fits(dead), "{since:?} to {until:?}");
        }
    }

    #[test]
    fn r_b8_a_cancel_is_about_what_lives_unless_it_names_dead_letters() {
        let live = BulkRow { state: StateName::Leased, cause: None, settled_at: None, ..dead() };
        let done = BulkRow { state: StateName::Committed, cause: None, ..dead() };
        let fits = |state, row: &BulkRow| {
            BulkFilter { state, ..BulkFilter::default() }.fits_row(RunKind::Cancel, row)
        };
        assert_eq!([true, false, false], [live, dead(), done].map(|row| fits(None, &row)));
        let named = Some(StateName::DeadLettered);
        assert_eq!([false, true, false], [live, dead(), done].map(|row| fits(named, &row)));
        assert!(!fits(Some(StateName::Committed), &done), "what is done can't be called off");
        assert!(!fits(Some(StateName::Retryable), &live));
        let since = BulkFilter { dead_lettered_since: Some(Timestamp(0)), ..BulkFilter::default() };
        assert!(!since.fits_row(RunKind::Cancel, &live), "what lives is no dead letter");
    }

    #[test]
    fn r_b9_what_came_after_a_run_began_is_not_its_to_touch() {
        assert!(dead().was_so_at(Timestamp(200)));
        assert!(!dead().was_so_at(Timestamp(199)));
        let live = BulkRow { state: StateName::Scheduled, settled_at: None, ..dead() };
        assert!(live.was_so_at(Timestamp(100)));
        assert!(!live.was_so_at(Timestamp(99)));
    }

    #[test]
    fn r_b9_a_filter_by_message_and_class_fits_exactly() {
        let key = MessageKey::new("order:17").unwrap();
        let filter = |prefix: Option<&str>, event_type: Option<&str>| BulkFilter {
            key_prefix: prefix.map(Into::into),
            event_type: event_type.map(Into::into),
            ..BulkFilter::default()
        };
        assert!(filter(None, None).fits_message(&key, None));
        assert!(filter(Some("order:"), Some("paid")).fits_message(&key, Some("paid")));
        assert!(!filter(Some("order:"), Some("paid")).fits_message(&key, None));
        assert!(!filter(Some("rder:"), None).fits_message(&key, Some("paid")));
        let classed = BulkFilter { class: Some(Class::Timeout), ..BulkFilter::default() };
        assert_eq!(
            [true, false, false],
            [Some(Class::Timeout), Some(Class::Reset), None].map(|class| classed.fits_class(class))
        );
        assert_eq!([true, false], [filter(None, None).needs_row_only(), classed.needs_row_only()]);
    }

    #[test]
    fn r_b9_what_was_done_is_counted_by_what_it_came_to() {
        let moved = || Ok(Answer::Moved { state: StateName::Scheduled, due_at: None });
        assert_eq!(BulkOutcome::Done, BulkOutcome::of(&moved(), Some(Nature::Plain)));
        assert_eq!(BulkOutcome::Settled, BulkOutcome::of(&moved(), Some(Nature::SettledInstead)));
        let cancel = |answer| BulkOutcome::of(&Ok(Answer::Cancel(answer)), None);
        assert_eq!(BulkOutcome::Done, cancel(CancelAnswer::Cancelled));
        assert_eq!(BulkOutcome::Requested, cancel(CancelAnswer::Requested));
        assert_eq!(BulkOutcome::Refused("too_late"), cancel(CancelAnswer::TooLate));
        let refused = Err(Refusal::AttemptChanged { current: None });
        assert_eq!(BulkOutcome::Refused("attempt_changed"), BulkOutcome::of(&refused, None));
    }
}
