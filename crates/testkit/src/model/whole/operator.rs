//! Sweeps, and what an operator asks.

use posthaste_core::{
    Answer, Attempt, CancelAnswer, Command, Evidence, StateName,
    ledger::{Report, Seen, Status},
};

use super::{
    super::{
        checker::Nature::{Fair, Fault},
        ledger_row::EntryRow,
    },
    Edges, State, WholeModel,
    state::Told,
};

impl WholeModel {
    pub(super) fn operator(&self, state: &State, edges: &mut Edges<'_>) {
        // The sweep asks of every job; core looks for the evidence.
        let (to, done) = self.ask(state, &Command::Settle { evidence: Evidence::Ledger });
        edges.add_checked("sweep settles", 0, Fair, to, done.broken);
        self.cancel(state, edges);
        self.replay(state, edges);
        self.reset(state, edges);
    }

    fn cancel(&self, state: &State, edges: &mut Edges<'_>) {
        if state.cancels >= self.config.cancels {
            return;
        }
        let (mut to, done) = self.ask(state, &Command::Cancel { reason: "not wanted".into() });
        let (_, hi) = self.explained(&to);
        to.told = match done.reply {
            Ok(Answer::Cancel(CancelAnswer::Cancelled)) if hi == 0 => Told::CancelledWithoutEffect,
            Ok(_) | Err(_) => Told::Other,
        };
        to.cancels += 1;
        edges.add_checked("operator cancels", 0, Fault, to, done.broken);
    }

    fn replay(&self, state: &State, edges: &mut Edges<'_>) {
        if state.replays >= self.config.replays {
            return;
        }
        let command = Command::Replay {
            seen: Attempt::new(state.store.job.attempt.into()),
            assume_not_done: false,
            reason: "again".into(),
        };
        let (mut to, done) = self.ask(state, &command);
        if done.reply.is_ok() && to.store.job.name() == StateName::Scheduled {
            to.replays += 1;
        }
        edges.add_checked("operator replays", 0, Fault, to, done.broken);
    }

    fn reset(&self, state: &State, edges: &mut Edges<'_>) {
        let done = |entry: &EntryRow| entry.is_committed() && state.store.job.is_dead();
        let Some(entry) = state.entry.filter(|entry| state.resets < self.config.resets && done(entry)) else {
            return;
        };
        let seen = Seen { fence: entry.fence.into(), status: Status::Done };
        if let Report::Write(reset) = self.ledger.reset(Some(&entry.to_core()), seen) {
            let entry = Some(EntryRow::of_core(&reset, false));
            let to = State { entry, resets: state.resets + 1, ..state.clone() };
            edges.add("operator resets the done entry", 0, Fault, to);
        }
    }
}
