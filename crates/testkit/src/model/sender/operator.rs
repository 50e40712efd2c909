//! Look-ups, sweeps, the engine's giving up, and what an operator asks.

use posthaste_core::{
    Answer, Attempt, CancelAnswer, Cause, Command, Evidence, LookUpVerdict, NextStep, StateName,
};

use super::{
    super::{
        checker::Nature::{Fair, Fault},
        desk::Horizon,
        job_row::{ATTEMPTS, BEFORE, JobState, NOW},
    },
    Edges, Extra, LookUps, SenderModel, State,
    state::{self, Request, Told, Worker},
};

impl SenderModel {
    /// Whether no request can act any more, now or later.
    fn is_settled_down(&self, state: &State) -> bool {
        (0..ATTEMPTS).all(|place| {
            let may_send = match state.workers[place] {
                Worker::Ready => true,
                // Where the lease is the start, nothing but time keeps it from sending.
                Worker::Held => !self.fenced(),
                Worker::None | Worker::Waiting | Worker::Closed => false,
            };
            state.requests[place] != Request::Flying && !may_send
        })
    }

    pub(super) fn look_up(&self, state: &State, edges: &mut Edges<'_>) {
        let owed = matches!(state.store.job.state, JobState::Retryable { due: true, next: NextStep::LookUp });
        match state.look_up {
            None if owed => {
                let present = state.effects != 0;
                let settled = self.is_settled_down(state);
                let answer = state::Answer { present, settled, attempt: state.store.job.attempt };
                let to = State { look_up: Some(answer), ..state.clone() };
                edges.add(
                    if present { "look-up reads present" } else { "look-up reads absent" },
                    0,
                    Fair,
                    to,
                );
            }
            None => {}
            Some(answer) => self.write_answer(state, answer, edges),
        }
    }

    fn write_answer(&self, state: &State, answer: state::Answer, edges: &mut Edges<'_>) {
        let mut written = state.clone();
        let let_go = State { look_up: None, ..state.clone() };
        match self.config.look_ups {
            LookUps::WrittenOnce => written = let_go,
            // Whoever holds the answer may also ask anew.
            LookUps::WrittenAgain => edges.add("look-up's answer let go", 0, Fair, let_go),
        }
        let settled = if self.desk.rules.judges_look_ups_when_written() {
            self.is_settled_down(state)
        } else {
            answer.settled
        };
        let command = Command::LookUp {
            seen: Attempt::new(answer.attempt.into()),
            asked_at: if settled { NOW } else { BEFORE },
            verdict: if answer.present { LookUpVerdict::Present } else { LookUpVerdict::Absent },
            settled_at: NOW,
            said: None,
        };
        let (mut to, done) = self.ask(&written, &command);
        to.found |= done.reply.is_ok() && answer.present;
        edges.add_checked("look-up's answer written", 0, Fair, to, done.broken);
        if self.covers(Extra::Horizon) {
            let (mut to, done) = self.ask_at(&written, &command, Horizon::Passed);
            to.found |= done.reply.is_ok() && answer.present;
            edges.add_checked("look-up's answer written past the horizon", 0, Fault, to, done.broken);
        }
    }

    /// The sweep asks of every job; core looks for the evidence.
    pub(super) fn settle(&self, state: &State, edges: &mut Edges<'_>) {
        let (to, done) = self.ask(state, &Command::Settle { evidence: Evidence::Ledger });
        edges.add_checked("sweep settles", 0, Fair, to, done.broken);
        if self.covers(Extra::SettledByHand) && state.effects != 0 {
            let (mut to, done) = self.ask(state, &Command::Settle { evidence: Evidence::Reconciled });
            to.found |= done.reply.is_ok();
            edges.add_checked("operator found the effect and settles", 0, Fault, to, done.broken);
        }
    }

    pub(super) fn operator(&self, state: &State, edges: &mut Edges<'_>) {
        self.cancel(state, edges);
        self.replay(state, edges);
        if state.resends < self.config.resends {
            let seen = Attempt::new(state.store.job.attempt.into());
            let (mut to, done) = self.ask(state, &Command::Resend { seen, reason: "lost data".into() });
            if done.reply.is_ok() {
                to.resends += 1;
                to.told = Told::Nothing;
                edges.add_checked("operator resends", 0, Fault, to, done.broken);
            }
        }
        if state.abandons < self.config.abandons {
            let (mut to, done) = self.ask(state, &Command::Abandon { cause: Cause::EndpointGone });
            if done.reply.is_ok() {
                to.abandons += 1;
                edges.add_checked("engine abandons", 0, Fault, to, done.broken);
            }
        }
    }

    fn cancel(&self, state: &State, edges: &mut Edges<'_>) {
        if state.cancels >= self.config.cancels {
            return;
        }
        let (mut to, done) = self.ask(state, &Command::Cancel { reason: "not wanted".into() });
        let none = to.store.records.span_with(&to.store.job).hi == 0;
        to.told = match done.reply {
            Ok(Answer::Cancel(CancelAnswer::Cancelled)) if none => Told::CancelledWithoutEffect,
            Ok(Answer::Cancel(CancelAnswer::Cancelled)) => Told::Cancelled,
            Ok(Answer::Cancel(CancelAnswer::Requested)) => Told::Requested,
            Ok(Answer::Cancel(CancelAnswer::TooLate)) => Told::TooLate,
            Ok(_) | Err(_) => Told::Nothing,
        };
        to.cancels += 1;
        edges.add_checked("operator cancels", 0, Fault, to, done.broken);
    }

    fn replay(&self, state: &State, edges: &mut Edges<'_>) {
        if state.replays >= self.config.replays {
            return;
        }
        let repeats = self.covers(Extra::RepeatedReplay);
        if repeats && state.replay_asked == 0 {
            if state.store.job.is_dead() {
                let to = State { replay_asked: state.store.job.attempt + 1, ..state.clone() };
                edges.add("operator asks for a replay", 0, Fault, to);
            }
            return;
        }
        let seen = if repeats { state.replay_asked - 1 } else { state.store.job.attempt };
        let command = Command::Replay {
            seen: Attempt::new(seen.into()),
            assume_not_done: false,
            reason: "again".into(),
        };
        let (mut to, done) = self.ask(state, &command);
        if done.reply.is_ok() && to.store.job.name() == StateName::Scheduled {
            to.replays += 1;
            to.replayed_at = state.store.job.attempt;
            to.replays_of_request += u8::from(repeats);
        }
        edges.add_checked("replay request arrives", 0, Fault, to, done.broken);
    }
}
