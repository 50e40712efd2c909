//! What a handler does: claim, effect, complete, or fail and crash in between.

use posthaste_core::ledger::{Admission, Entry, OnExpired, Outcome, Previous, Report, Status};

use super::{
    super::{
        checker::Nature::{Fair, Fault},
        job_row::NOW,
        ledger_row::{self, CURRENT, EntryRow},
        property::{Properties, Property, Witness},
    },
    Edges, LedgerExtra, LedgerModel, LedgerState, Mode, Retention,
    state::{GRANTS, Phase, bit},
};

impl LedgerModel {
    pub(super) fn claimer(&self, state: &LedgerState, place: usize, edges: &mut Edges<'_>) {
        let number = number_of(place);
        let claimer = state.claimers[place];
        match claimer.phase {
            Phase::Idle | Phase::Duplicate | Phase::Ended => {
                let may_start = claimer.runs < self.config.runs && usize::from(state.grants) < GRANTS;
                if may_start && state.locked_by == 0 {
                    let mut started = state.clone();
                    started.claimers[place].runs += 1;
                    self.claim(&started, place, edges);
                }
                return;
            }
            Phase::Asking => self.claim(state, place, edges),
            Phase::Claimed => self.act(state, place, edges),
            Phase::Did => match self.config.mode {
                Mode::InOneTransaction => self.commit_all(state, place, edges),
                Mode::InTwoTransactions => self.commit_effect(state, place, edges),
                Mode::OverHttp => self.send_complete(state, place, edges),
            },
        }
        let mut to = ended(state, place);
        if to.locked_by == number {
            to.locked_by = 0;
        }
        edges.add("handler crashes", number, Fault, to);
    }

    /// The name of the claimer's present request.
    fn claim_id(&self, state: &LedgerState, place: usize) -> u8 {
        if self.covers(LedgerExtra::LostClaims) {
            number_of(place) * 2 + state.claimers[place].runs
        } else {
            0
        }
    }

    fn admit(&self, state: &LedgerState, place: usize) -> Admission {
        let first_fence = self.rules.first_fence(u64::from(CURRENT) + 1);
        let claim = ledger_row::claim(self.claim_id(state, place), self.config.on_expired, first_fence);
        let entry = state.entry.map(EntryRow::to_core);
        if entry.is_none() && state.archived && self.config.retention == Retention::Archive {
            return Admission::DuplicateDone(Outcome::Committed);
        }
        self.rules.admit(entry.as_ref(), &claim, NOW)
    }

    fn claim(&self, state: &LedgerState, place: usize, edges: &mut Edges<'_>) {
        let number = number_of(place);
        let asking = state.claimers[place].phase == Phase::Asking;
        match self.admit(state, place) {
            Admission::Granted(entry) => self.granted(state, place, &entry, edges),
            Admission::Repeated(_) => {
                let mut to = state.clone();
                to.claimers[place].phase = Phase::Claimed;
                to.claimers[place].grant = state.owner;
                let mut broken = Properties::default();
                broken.note(Property::RepeatedClaimIsOwn, state.claimers[place].grant != state.owner);
                edges.add_checked("claim repeated, the same grant", number, Fair, to, broken);
            }
            Admission::DuplicateDone(_) => {
                let mut to = state.clone();
                to.claimers[place].phase = Phase::Duplicate;
                edges.add("duplicate_done", number, Fair, to);
            }
            Admission::InProgressElsewhere { .. } if asking => {
                let own = state.entry.is_some_and(|entry| {
                    let in_force = !entry.expired || entry.on_expired == OnExpired::Hold;
                    entry.claim_id == self.claim_id(state, place) && in_force
                });
                let mut broken = Properties::default();
                broken.note(Property::RepeatedClaimIsOwn, own);
                edges.add_checked("in_progress_elsewhere", number, Fair, ended(state, place), broken);
            }
            // It comes again later: a state of its own would say nothing.
            Admission::InProgressElsewhere { .. } | Admission::KeyReused => {}
        }
    }

    fn granted(&self, state: &LedgerState, place: usize, entry: &Entry, edges: &mut Edges<'_>) {
        if usize::from(state.grants) >= GRANTS {
            return;
        }
        let number = number_of(place);
        let mut broken = Properties::default();
        broken.note(Property::DoneFinal, state.is_done());
        let mut to = state.clone();
        to.grants += 1;
        to.claimers[place].phase = Phase::Claimed;
        to.claimers[place].grant = to.grants;
        to.seen.note(Witness::Takeover, entry.previous == Previous::Expired);
        to.seen.note(Witness::RetryAfterFail, entry.previous == Previous::Failed);
        if self.config.mode == Mode::InOneTransaction {
            to.locked_by = number;
            edges.add_checked("BEGIN, claim granted", number, Fair, to, broken);
            return;
        }
        broken.note(Property::OneGrant, state.live != 0);
        to.entry = Some(self.row(entry));
        to.fences[usize::from(to.grants) - 1] = to.entry.expect("just written").fence;
        to.live = to.grants;
        to.owner = to.grants;
        let what = match entry.previous {
            Previous::None => "first_run",
            Previous::Failed => "retry_after_failure",
            Previous::Expired => "retry_after_failure (takeover)",
        };
        if self.covers(LedgerExtra::LostClaims) && state.claimers[place].phase != Phase::Asking {
            let mut lost = to.clone();
            lost.claimers[place].phase = Phase::Asking;
            edges.add_checked("claim granted, answer lost", number, Fault, lost, broken);
        }
        edges.add_checked(what, number, Fair, to, broken);
    }

    fn act(&self, state: &LedgerState, place: usize, edges: &mut Edges<'_>) {
        let number = number_of(place);
        let grant = state.claimers[place].grant;
        let mut to = state.clone();
        to.claimers[place].phase = Phase::Did;
        if self.config.mode == Mode::OverHttp {
            self.effect(&mut to, grant);
            edges.add("EFFECT", number, Fair, to);
        } else {
            edges.add("effect in the open transaction", number, Fair, to);
        }
        let mut to = ended(state, place);
        if self.config.mode == Mode::InOneTransaction {
            to.locked_by = 0;
            if let Admission::Granted(entry) = self.admit(state, place)
                && let Report::Write(failed) = self.rules.fail(Some(&entry), entry.fence)
            {
                to.entry = Some(self.row(&failed));
            }
            edges.add("ROLLBACK, then failed", number, Fault, to);
        } else {
            to.fails |= bit(grant);
            edges.add("handler failed, no effect, sends fail", number, Fault, to);
        }
    }

    pub(super) fn effect(&self, to: &mut LedgerState, grant: u8) {
        if !(self.covers(LedgerExtra::KeyDownstream) && to.effects > 0) {
            to.effects += 1;
        }
        to.effect_by |= bit(grant);
    }

    /// Claim, effect and complete commit at once.
    fn commit_all(&self, state: &LedgerState, place: usize, edges: &mut Edges<'_>) {
        let grant = state.claimers[place].grant;
        let Admission::Granted(entry) = self.admit(state, place) else {
            return;
        };
        let Report::Write(done) = self.rules.complete(Some(&entry), entry.fence, Outcome::Committed) else {
            return;
        };
        let mut to = ended(state, place);
        to.locked_by = 0;
        to.entry = Some(self.row(&done));
        to.fences[usize::from(grant) - 1] = to.entry.expect("just written").fence;
        to.owner = grant;
        to.result = grant;
        self.effect(&mut to, grant);
        self.committed("COMMIT", grant, number_of(place), to, Properties::default(), edges);
    }

    fn commit_effect(&self, state: &LedgerState, place: usize, edges: &mut Edges<'_>) {
        let (number, grant) = (number_of(place), state.claimers[place].grant);
        let mut to = ended(state, place);
        let broken = self.complete(&mut to, grant);
        if let Some(broken) = broken {
            self.effect(&mut to, grant);
            self.committed("complete + COMMIT", grant, number, to, broken, edges);
        } else if self.rules.rolls_back() {
            to.seen.note(Witness::Rollback, true);
            edges.add("complete is stale, ROLLBACK", number, Fair, to);
        } else {
            self.effect(&mut to, grant);
            edges.add("complete is stale, COMMIT all the same", number, Fair, to);
        }
    }

    fn committed(
        &self,
        what: &'static str,
        grant: u8,
        number: u8,
        to: LedgerState,
        broken: Properties,
        edges: &mut Edges<'_>,
    ) {
        if self.covers(LedgerExtra::DishonestFail) {
            let mut dishonest = to.clone();
            dishonest.fails |= bit(grant);
            edges.add_checked("COMMIT, answer lost, sends fail", number, Fault, dishonest, broken);
        }
        edges.add_checked(what, number, Fair, to, broken);
    }

    fn send_complete(&self, state: &LedgerState, place: usize, edges: &mut Edges<'_>) {
        let (number, grant) = (number_of(place), state.claimers[place].grant);
        let mut to = ended(state, place);
        to.completes |= bit(grant);
        if self.covers(LedgerExtra::DishonestFail) {
            let mut dishonest = to.clone();
            dishonest.fails |= bit(grant);
            edges.add("sends complete, hears nothing, sends fail", number, Fault, dishonest);
        }
        edges.add("sends complete", number, Fair, to);
    }

    /// Writes a complete of `grant` down, and says what that breaks; `None` if it is stale.
    pub(super) fn complete(&self, to: &mut LedgerState, grant: u8) -> Option<Properties> {
        let entry = to.entry.map(EntryRow::to_core);
        let Report::Write(done) = self.rules.complete(entry.as_ref(), to.fence(grant), Outcome::Committed)
        else {
            return None;
        };
        let mut broken = Properties::default();
        broken.note(Property::StaleChangesNothing, to.owner != grant);
        broken.note(Property::DoneFinal, entry.is_some_and(|entry| entry.status == Status::Done));
        to.entry = Some(self.row(&done));
        to.result = grant;
        to.live = 0;
        Some(broken)
    }
}

fn ended(state: &LedgerState, place: usize) -> LedgerState {
    let mut to = state.clone();
    to.claimers[place].phase = Phase::Ended;
    to
}

fn number_of(place: usize) -> u8 {
    u8::try_from(place + 1).expect("a handful")
}
