//! Messages on their way to the ledger, retention, and an operator's reset.

use posthaste_core::{
    DurationMs,
    ledger::{self, Report, Seen, Status},
};

use super::{
    super::{
        checker::Nature::{Fair, Fault},
        job_row::NOW,
        ledger_row::EntryRow,
        property::{Properties, Property},
    },
    Edges, LedgerExtra, LedgerModel, LedgerState, Mode, Retention,
    state::{ResetAsked, bit},
};

/// Resets at most, repeats of one request counted.
const RESETS: u8 = 2;

impl LedgerModel {
    /// Late, repeated, in any order.
    pub(super) fn messages(&self, state: &LedgerState, grant: u8, edges: &mut Edges<'_>) {
        if state.completes & bit(grant) != 0 {
            let mut to = state.clone();
            if let Some(broken) = self.complete(&mut to, grant) {
                edges.add_checked("complete arrives", grant, Fair, to, broken);
            }
        }
        if state.fails & bit(grant) != 0 {
            self.fail_arrives(state, grant, edges);
        }
        if self.config.mode != Mode::InOneTransaction {
            self.extend_arrives(state, grant, edges);
        }
    }

    fn fail_arrives(&self, state: &LedgerState, grant: u8, edges: &mut Edges<'_>) {
        let entry = state.entry.map(EntryRow::to_core);
        let Report::Write(failed) = self.rules.fail(entry.as_ref(), state.fence(grant)) else {
            return;
        };
        let mut broken = Properties::default();
        broken.note(Property::StaleChangesNothing, state.owner != grant);
        broken.note(Property::DoneFinal, state.is_done());
        let to = LedgerState { entry: Some(self.row(&failed)), live: 0, ..state.clone() };
        edges.add_checked("fail arrives", grant, Fair, to, broken);
    }

    /// Changes nothing that is modelled, unless it does what it must not.
    fn extend_arrives(&self, state: &LedgerState, grant: u8, edges: &mut Edges<'_>) {
        let entry = state.entry.map(EntryRow::to_core);
        let extended = ledger::extend(entry.as_ref(), state.fence(grant), DurationMs::from_secs(30), NOW);
        if let Report::Write(extended) = extended {
            let mut broken = Properties::default();
            broken.note(Property::StaleChangesNothing, state.owner != grant);
            let to = LedgerState { entry: Some(self.row(&extended)), ..state.clone() };
            edges.add_checked("heartbeat", grant, Fault, to, broken);
        }
    }

    pub(super) fn retention(&self, state: &LedgerState, edges: &mut Edges<'_>) {
        let over = state.claimers.iter().all(|claimer| claimer.runs >= self.config.runs);
        let due = match self.config.retention {
            Retention::Keeps => false,
            Retention::AfterTheLast => over,
            Retention::TooEarly | Retention::Archive => true,
        };
        if due && state.is_done() && state.locked_by == 0 {
            let to = LedgerState { entry: None, owner: 0, result: 0, archived: true, ..state.clone() };
            edges.add("retention purges the done entry", 0, Fault, to);
        }
    }

    pub(super) fn reset(&self, state: &LedgerState, edges: &mut Edges<'_>) {
        let Some(entry) = state.entry.filter(|_| state.locked_by == 0 && self.covers(LedgerExtra::Resets))
        else {
            return;
        };
        let Some(asked) = state.reset_asked else {
            if entry.status != Status::Failed {
                let asked = ResetAsked { fence: entry.fence, status: entry.status };
                let to = LedgerState { reset_asked: Some(asked), ..state.clone() };
                edges.add("operator asks for a reset", 0, Fault, to);
            }
            return;
        };
        if state.resets >= RESETS {
            return;
        }
        let seen = Seen { fence: asked.fence.into(), status: asked.status };
        let Report::Write(reset) = self.rules.reset(Some(&entry.to_core()), seen) else {
            return;
        };
        let mut to = state.clone();
        to.resets += 1;
        to.reset_hits += 1;
        // Only the first arrival, and of what the operator saw, is what the operator meant.
        let meant = entry.status == Status::Done && to.reset_hits == 1 && asked.status == Status::Done;
        to.resets_of_done += u8::from(meant);
        to.entry = self.rules.after_reset(reset).map(|reset| self.row(&reset));
        to.live = 0;
        to.owner = 0;
        to.result = 0;
        let was_done = entry.status == Status::Done;
        let what =
            if was_done { "reset arrives, entry was done" } else { "reset arrives, entry was in progress" };
        edges.add(what, 0, Fault, to);
    }
}
