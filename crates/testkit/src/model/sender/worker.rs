//! Workers, their requests, and their reports on the way.

use posthaste_core::{Command, DurationMs, Start};

use super::{
    super::{
        checker::Nature::{self, Fair, Fault},
        desk::Horizon,
        property::Property,
        wire::Said,
    },
    Edges, Extra, SenderModel, State,
    state::{Request, Worker, bit, place},
};

impl SenderModel {
    pub(super) fn worker(&self, state: &State, attempt: u8, edges: &mut Edges<'_>) {
        match state.workers[place(attempt)] {
            Worker::None | Worker::Closed => return,
            Worker::Held => {
                self.start(state, attempt, edges);
                self.end_unsent(state, attempt, edges);
                if self.covers(Extra::Guards) {
                    self.report("guard: no longer applies", Said::Cancelled, state, attempt, Fault, edges);
                }
            }
            Worker::Ready => {
                edges.add("send", attempt, Fair, sent(state, attempt));
                self.end_unsent(state, attempt, edges);
            }
            Worker::Waiting => self.wait(state, attempt, edges),
        }
        let mut to = state.clone();
        to.workers[place(attempt)] = Worker::Closed;
        edges.add("node crashes", attempt, Fault, to);
        self.extend(state, attempt, edges);
    }

    fn start(&self, state: &State, attempt: u8, edges: &mut Edges<'_>) {
        if self.config.start == Start::WithLease {
            edges.add("send", attempt, Fair, sent(state, attempt));
            return;
        }
        let (mut to, done) = self.ask(state, &Command::Start { fence: fence(state, attempt) });
        let goes_on = done.reply.is_ok() || self.desk.rules.sends_without_start();
        to.workers[place(attempt)] = if goes_on { Worker::Ready } else { Worker::Closed };
        let what = if done.reply.is_ok() { "start recorded" } else { "start refused" };
        edges.add_checked(what, attempt, Fair, to, done.broken);
    }

    fn end_unsent(&self, state: &State, attempt: u8, edges: &mut Edges<'_>) {
        if self.covers(Extra::Errors) {
            self.report("connection refused", Said::Nothing, state, attempt, Fault, edges);
        }
        if state.releases < self.config.releases {
            let counted = State { releases: state.releases + 1, ..state.clone() };
            self.report("drain: releases", Said::Released, &counted, attempt, Fault, edges);
        }
    }

    fn wait(&self, state: &State, attempt: u8, edges: &mut Edges<'_>) {
        if let Request::Answered(said) = state.requests[place(attempt)] {
            let mut answered = state.clone();
            answered.requests[place(attempt)] = Request::Gone;
            self.report("answer arrives", said, &answered, attempt, Fair, edges);
        }
        self.report("answer lost", Said::Unknown, state, attempt, Fault, edges);
        if self.covers(Extra::BusyUnknown) {
            self.report("work taken by another", Said::BusyUnknown, state, attempt, Fault, edges);
        }
        if self.desk.rules.releases_what_was_sent() && state.releases < self.config.releases {
            let counted = State { releases: state.releases + 1, ..state.clone() };
            self.report("drain: releases what was sent", Said::Released, &counted, attempt, Fault, edges);
        }
    }

    /// The process ends and its report is on the way.
    fn report(
        &self,
        what: &'static str,
        said: Said,
        state: &State,
        attempt: u8,
        nature: Nature,
        edges: &mut Edges<'_>,
    ) {
        let mut to = state.clone();
        to.workers[place(attempt)] = Worker::Closed;
        to.net[place(attempt)].add(said);
        if said == Said::Committed && self.covers(Extra::ConfusedClient) {
            let mut confused = to.clone();
            confused.net[place(attempt)].add(Said::Nothing);
            edges.add("answer arrives, a confused client says failed too", attempt, Fault, confused);
        }
        edges.add(what, attempt, nature, to);
    }

    /// Changes nothing that is modelled, unless it does what it must not.
    fn extend(&self, state: &State, attempt: u8, edges: &mut Edges<'_>) {
        let lease_for = DurationMs::from_secs(30);
        let command = Command::Extend { fence: fence(state, attempt), lease_for, checkpoint: None };
        let (to, mut done) = self.ask(state, &command);
        let held = state.store.job.is_held_by(attempt);
        done.broken.note(Property::StaleChangesNothing, done.reply.is_ok() && !held);
        edges.add_checked("extend", attempt, Fault, to, done.broken);
    }

    pub(super) fn receiver(&self, state: &State, attempt: u8, edges: &mut Edges<'_>) {
        if state.requests[place(attempt)] != Request::Flying {
            return;
        }
        let answers = |effect: u8, said| {
            let mut to = state.clone();
            to.requests[place(attempt)] = Request::Answered(said);
            to.effects |= effect;
            to
        };
        edges.add("EFFECT", attempt, Fair, answers(bit(attempt), Said::Committed));
        if self.covers(Extra::Errors) {
            edges.add("EFFECT, then 500", attempt, Fault, answers(bit(attempt), Said::ServerError));
            edges.add("receiver answers 503, no effect", attempt, Fault, answers(0, Said::Nothing));
            edges.add("receiver answers 422, no effect", attempt, Fault, answers(0, Said::Rejected));
        }
        if state.workers[place(attempt)] == Worker::Closed {
            let mut to = state.clone();
            to.requests[place(attempt)] = Request::Gone;
            edges.add("request lost on the way", attempt, Fault, to);
        }
    }

    pub(super) fn reports(&self, state: &State, attempt: u8, edges: &mut Edges<'_>) {
        for said in state.net[place(attempt)].iter() {
            self.arrives(state, attempt, said, Horizon::Ahead, edges);
            if self.covers(Extra::Horizon) && state.store.job.attempt == attempt {
                self.arrives(state, attempt, said, Horizon::Passed, edges);
            }
        }
    }

    fn arrives(&self, state: &State, attempt: u8, said: Said, horizon: Horizon, edges: &mut Edges<'_>) {
        let command = said.command(&*self.desk.rules, state.store.epoch, attempt);
        let (mut to, done) = self.ask_at(state, &command, horizon);
        let mut broken = done.broken;
        if said == Said::Committed {
            to.heard |= bit(attempt);
        }
        if self.covers(Extra::Answers) {
            let before = state.answered_yes[place(attempt)].has(said);
            broken.note(Property::SameAnswer, before && done.reply.is_err());
            if done.reply.is_ok() {
                to.answered_yes[place(attempt)].add(said);
            }
        }
        let what = if done.reply.is_ok() { said.accepted() } else { said.refused() };
        let nature = if horizon == Horizon::Ahead { Fair } else { Fault };
        edges.add_checked(what, attempt, nature, to, broken);
    }
}

fn sent(state: &State, attempt: u8) -> State {
    let mut to = state.clone();
    to.workers[place(attempt)] = Worker::Waiting;
    to.requests[place(attempt)] = Request::Flying;
    to
}

fn fence(state: &State, attempt: u8) -> posthaste_core::Fence {
    super::super::wire::fence(state.store.epoch, attempt)
}
