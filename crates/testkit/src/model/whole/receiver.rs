//! The receiver's half: claim, effect, complete, answer; and what becomes of its entry in time.

use posthaste_core::ledger::{Admission, Outcome, Report, Status};

use super::{
    super::{
        checker::Nature::{Fair, Fault},
        job_row::{JobState, NOW},
        ledger_row::{self, CURRENT, EntryRow},
        property::{Properties, Property},
        wire::Said,
    },
    Edges, Effects, Pin, State, WholeExtra, WholeModel,
    state::{REPEATED, Request, Sender},
};

impl WholeModel {
    pub(super) fn receiver(&self, state: &State, place: usize, edges: &mut Edges<'_>) {
        match state.requests[place] {
            Request::Flying => {
                self.claim(state, place, edges);
                if place == REPEATED || state.senders[place] == Sender::Closed {
                    edges.add(
                        "request lost on the way",
                        number(place),
                        Fault,
                        with(state, place, Request::None),
                    );
                }
            }
            Request::Claimed => {
                if self.config.effects == Effects::WithComplete {
                    self.commit(state, place, edges);
                } else {
                    let mut to = with(state, place, Request::Did);
                    to.effects += 1;
                    edges.add("EFFECT of request", number(place), Fair, to);
                }
                self.ends_without_effect(state, place, edges);
                edges.add(
                    "handler crashes, request",
                    number(place),
                    Fault,
                    with(state, place, Request::None),
                );
            }
            Request::Did => {
                self.complete(state, place, edges);
                edges.add(
                    "handler crashes, request",
                    number(place),
                    Fault,
                    with(state, place, Request::None),
                );
            }
            Request::None | Request::Answered(_) | Request::AnsweredDuplicate => {}
        }
    }

    fn claim(&self, state: &State, place: usize, edges: &mut Edges<'_>) {
        let first_fence = self.ledger.first_fence(u64::from(CURRENT) + 1);
        let claim = ledger_row::claim(0, self.on_expired(), first_fence);
        let entry = state.entry.map(EntryRow::to_core);
        match self.ledger.admit(entry.as_ref(), &claim, NOW) {
            Admission::Granted(granted) | Admission::Repeated(granted) => {
                let mut broken = Properties::default();
                broken
                    .note(Property::DoneFinal, state.entry.is_some_and(|entry| entry.status == Status::Done));
                let mut to = with(state, place, Request::Claimed);
                let row = self.row(&granted);
                to.fences[place] = row.fence;
                to.entry = Some(row);
                edges.add_checked("claim granted, request", number(place), Fair, to, broken);
            }
            Admission::DuplicateDone(Outcome::Committed) => {
                edges.add(
                    "duplicate_done, request",
                    number(place),
                    Fair,
                    with(state, place, Request::AnsweredDuplicate),
                );
            }
            Admission::DuplicateDone(Outcome::Cancelled) => {
                let answered = Request::Answered(self.desk.rules.report_of_cancelled());
                edges.add(
                    "duplicate_done (cancelled), request",
                    number(place),
                    Fair,
                    with(state, place, answered),
                );
            }
            Admission::InProgressElsewhere { .. } | Admission::KeyReused => {
                let answered = Request::Answered(self.desk.rules.answer_to_busy());
                edges.add(
                    "in_progress_elsewhere, request",
                    number(place),
                    Fair,
                    with(state, place, answered),
                );
            }
        }
    }

    fn commit(&self, state: &State, place: usize, edges: &mut Edges<'_>) {
        let what = "EFFECT + complete + COMMIT, request";
        if let Some(mut to) = self.completed(state, place, Outcome::Committed) {
            to.effects += 1;
            to.requests[place] = Request::Answered(Said::Committed);
            edges.add(what, number(place), Fair, to);
        } else if self.ledger.rolls_back() {
            let to = with(state, place, Request::Answered(Said::Nothing));
            edges.add("complete is stale, ROLLBACK, 503, request", number(place), Fair, to);
        } else {
            let mut to = with(state, place, Request::Answered(Said::Committed));
            to.effects += 1;
            edges.add("complete is stale, COMMIT all the same, request", number(place), Fair, to);
        }
    }

    fn complete(&self, state: &State, place: usize, edges: &mut Edges<'_>) {
        if let Some(mut to) = self.completed(state, place, Outcome::Committed) {
            to.requests[place] = Request::Answered(Said::Committed);
            edges.add("complete, request", number(place), Fair, to);
        } else {
            let to = with(state, place, Request::Answered(Said::ServerError));
            edges.add("complete is stale, 500, request", number(place), Fair, to);
        }
    }

    /// The state after a complete of this request's grant; `None` if it is stale.
    fn completed(&self, state: &State, place: usize, outcome: Outcome) -> Option<State> {
        let entry = state.entry.map(EntryRow::to_core);
        match self.ledger.complete(entry.as_ref(), state.fences[place].into(), outcome) {
            Report::Write(done) => Some(State { entry: Some(self.row(&done)), ..state.clone() }),
            Report::Recorded | Report::Stale => None,
        }
    }

    fn ends_without_effect(&self, state: &State, place: usize, edges: &mut Edges<'_>) {
        let entry = state.entry.map(EntryRow::to_core);
        let mut failed = state.clone();
        if let Report::Write(entry) = self.ledger.fail(entry.as_ref(), state.fences[place].into()) {
            failed.entry = Some(self.row(&entry));
        }
        failed.requests[place] = Request::Answered(Said::Nothing);
        if self.covers(WholeExtra::Rejects) {
            let mut to = failed.clone();
            to.requests[place] = Request::Answered(Said::Rejected);
            edges.add("handler refuses for good, 422, request", number(place), Fault, to);
        }
        edges.add("handler fails, 503, request", number(place), Fault, failed);
        if self.covers(WholeExtra::Guards)
            && let Some(mut to) = self.completed(state, place, Outcome::Cancelled)
        {
            to.requests[place] = Request::Answered(self.desk.rules.report_of_cancelled());
            edges.add("no longer applies, entry done (cancelled), 2xx, request", number(place), Fault, to);
        }
    }

    fn row(&self, entry: &posthaste_core::ledger::Entry) -> EntryRow {
        EntryRow::of_core(entry, self.ledger.settled_entries_expire())
    }

    pub(super) fn entry_lease_runs_out(&self, state: &State, edges: &mut Edges<'_>) {
        let runs = |entry: &EntryRow| {
            !entry.expired && (entry.status == Status::InProgress || self.ledger.settled_entries_expire())
        };
        if let Some(entry) = state.entry.filter(runs) {
            let entry = Some(EntryRow { expired: true, ..entry });
            edges.add("entry's lease runs out", 0, Fair, State { entry, ..state.clone() });
        }
    }

    pub(super) fn retention(&self, state: &State, edges: &mut Edges<'_>) {
        let job = &state.store.job;
        let settled = matches!(job.state, JobState::Committed | JobState::Cancelled);
        let due = match self.config.pin {
            Pin::UntilSettled => settled,
            Pin::UntilNotLive => settled || job.is_dead(),
        };
        let done = state.entry.is_some_and(|entry| entry.status == Status::Done);
        if due && done && state.is_quiet() {
            edges.add("retention purges the done entry", 0, Fault, State { entry: None, ..state.clone() });
        }
    }
}

fn with(state: &State, place: usize, request: Request) -> State {
    let mut to = state.clone();
    to.requests[place] = request;
    to
}

fn number(place: usize) -> u8 {
    u8::try_from(place + 1).expect("a handful")
}
