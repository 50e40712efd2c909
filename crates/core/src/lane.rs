//! What a lane may do: pauses, the health of its receiver, its rate. Rows B4, B6, B10, D4.
//!
//! A lane is one destination of one tenant, and one row. Whatever holds it back stands in that row, never on its jobs: a
//! million jobs behind a lane that is held cost nothing. The store reads the row under its lock, asks here, and writes what
//! comes back.

use crate::{Command, Disposition, DurationMs, JobId, Kind, Rate, Timestamp};

/// How a lane's receiver is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneRules {
    /// How many attempts may begin in a time.
    pub rate: Option<Rate>,
    /// Failures in a row that say that the receiver is ill, after which the circuit opens; from 1.
    pub failures_to_open: u32,
    /// Answers of 401 or 403 in a row after which the circuit opens; from 1.
    pub refusals_to_open: u32,
    /// How long the circuit stays open the first time; doubles each time a probe fails.
    pub open_for: DurationMs,
    /// How long it stays open at most before the next probe.
    pub open_for_max: DurationMs,
    /// How long there may be failures without one success until the endpoint is disabled.
    pub disable_after: DurationMs,
}

impl LaneRules {
    /// What is in force unless configured: 10 failures or 5 refusals open the circuit, for 30 s doubling to 15 min; 5 days
    /// without a success disable the endpoint.
    pub const STANDARD: Self = Self {
        rate: None,
        failures_to_open: 10,
        refusals_to_open: 5,
        open_for: DurationMs::from_secs(30),
        open_for_max: DurationMs::from_mins(15),
        disable_after: DurationMs::from_hours(120),
    };

    /// How long the circuit stays open for the `trips`-th time in a row, from 1.
    fn open_for(&self, trips: u32) -> DurationMs {
        let doublings = trips.saturating_sub(1).min(32);
        DurationMs(self.open_for.0.saturating_mul(1 << doublings).min(self.open_for_max.0))
    }
}

/// That somebody, or a rule, holds something back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Since when.
    pub at: Timestamp,
    /// Why, for ever shown.
    pub reason: Box<str>,
    /// Who.
    pub by: Box<str>,
}

/// Whether attempts go to the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Circuit {
    /// They do.
    #[default]
    Closed,
    /// None does, for a while.
    Open {
        /// Since when attempts are held back.
        since: Timestamp,
        /// When one may probe.
        until: Timestamp,
    },
    /// One probes.
    HalfOpen {
        /// Since when attempts are held back.
        since: Timestamp,
        /// When the probe is given up.
        until: Timestamp,
        /// The job whose attempt is the probe.
        probe: JobId,
    },
}

impl Circuit {
    /// The word on the wire. An open one whose time has passed waits for its probe.
    pub fn word(self, now: Timestamp) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open { until, .. } if now < until => "open",
            Self::Open { .. } | Self::HalfOpen { .. } => "half_open",
        }
    }

    /// Since when attempts are held back, and until when at least.
    pub fn held(self) -> Option<(Timestamp, Timestamp)> {
        match self {
            Self::Closed => None,
            Self::Open { since, until } | Self::HalfOpen { since, until, .. } => Some((since, until)),
        }
    }
}

/// What the receiver's last answers say of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Failures in a row that say that it is ill.
    pub failures: u32,
    /// Answers of 401 or 403 in a row.
    pub refusals: u32,
    /// When the first failure after the last success was.
    pub failing_since: Option<Timestamp>,
    /// How often in a row the circuit has opened.
    pub trips: u32,
}

/// So many failures in a row are no chance, however rarely something is sent. Fewer, if fewer open the circuit.
const FAILURES_TO_DISABLE: u32 = 3;

/// A lane's row, but for whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Nothing begins before: what the receiver asked for. No held time.
    pub not_before: Timestamp,
    /// Somebody paused it.
    pub paused: Option<Hold>,
    /// It was disabled by a rule or by its receiver, until a person enables it.
    pub disabled: Option<Hold>,
    /// Its configuration says that it takes no part.
    pub switched_off: bool,
    /// Whether attempts go to the receiver.
    pub circuit: Circuit,
    /// What is known of the receiver.
    pub health: Health,
    /// The sum of the times during which it was held, but for the one that goes on, in milliseconds.
    pub held_ms: u64,
    /// Since when it is held, if it is.
    pub held_since: Option<Timestamp>,
    /// Until when what was taken of its [`Rate`] is used up, in microseconds.
    pub rate_used_us: i64,
}

/// What an attempt's end says of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It took the message.
    Well,
    /// It did not, and works: the trouble is the message's.
    Answers,
    /// It is ill, or can't be reached.
    Ill,
    /// It refuses us: 401, 403.
    Refuses,
    /// It is gone for good: 410.
    Gone,
    /// Nothing.
    Nothing,
}

/// A change of a lane that people want to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Its circuit opened, or stays open after a probe.
    CircuitOpened {
        /// Until the next probe.
        until: Timestamp,
        /// For the how-maniest time in a row, from 1.
        trips: u32,
    },
    /// A probe ended without a word of the receiver; another may follow.
    ProbeLost,
    /// A success closed its circuit.
    CircuitClosed,
    /// It was disabled.
    Disabled,
}

/// What the end of an attempt by `command` says of a receiver that we push to; `None` if it ends none.
pub fn sign_of(command: &Command, kind: Kind) -> Option<Sign> {
    if kind == Kind::Pull {
        return None;
    }
    match command {
        Command::Finish { .. } => Some(Sign::Well),
        Command::Fail { failure, .. } => Some(match failure.disposition {
            Disposition::Retry => Sign::Ill,
            Disposition::InProgress | Disposition::PermanentMessage => Sign::Answers,
            Disposition::PermanentDestination => Sign::Refuses,
            Disposition::Gone => Sign::Gone,
        }),
        Command::Release { .. } | Command::Expire | Command::Cancel { .. } => Some(Sign::Nothing),
        Command::Lease { .. }
        | Command::Start { .. }
        | Command::Extend { .. }
        | Command::Settle { .. }
        | Command::Replay { .. }
        | Command::Resend { .. }
        | Command::Abandon { .. }
        | Command::LookUp { .. } => None,
    }
}

impl Default for Lane {
    /// A lane that nothing befell.
    fn default() -> Self {
        Self {
            not_before: Timestamp(0),
            paused: None,
            disabled: None,
            switched_off: false,
            circuit: Circuit::Closed,
            health: Health::default(),
            held_ms: 0,
            held_since: None,
            rate_used_us: 0,
        }
    }
}

impl Lane {
    /// Whether something holds it whose time doesn't count against the horizons of its jobs.
    pub fn is_held(&self) -> bool {
        self.needs_a_person() || self.circuit != Circuit::Closed
    }

    /// Whether only an act of somebody ends what holds it.
    pub fn needs_a_person(&self) -> bool {
        self.paused.is_some() || self.disabled.is_some() || self.switched_off
    }

    /// The sum of its held times, the one that goes on included, in milliseconds.
    pub fn held_total_ms(&self, now: Timestamp) -> u64 {
        let ongoing = self.held_since.map_or(0, |since| now.since(since).0);
        self.held_ms.saturating_add(ongoing)
    }

    /// When attempts may begin again; `None` before somebody acts. May be past.
    pub fn opens_at(&self) -> Option<Timestamp> {
        if self.needs_a_person() {
            return None;
        }
        Some(self.circuit.held().map_or(self.not_before, |(_, until)| self.not_before.max(until)))
    }

    /// When the next attempt may begin: [`Lane::opens_at`], and the rate.
    pub fn next_at(&self, rate: Option<Rate>) -> Option<Timestamp> {
        let opens_at = self.opens_at()?;
        Some(rate.map_or(opens_at, |rate| opens_at.max(rate.next_at(self.rate_used_us))))
    }

    /// How many of `wanted` attempts may begin now. A circuit that was open lets one through.
    pub fn admits(&self, rate: Option<Rate>, wanted: usize, now: Timestamp) -> usize {
        if self.opens_at().is_none_or(|opens_at| now < opens_at) {
            return 0;
        }
        let wanted = if self.circuit == Circuit::Closed { wanted } else { wanted.min(1) };
        rate.map_or(wanted, |rate| wanted.min(rate.free(self.rate_used_us, now)))
    }

    /// The lane after attempts of `jobs` have begun, if that changes it. `until`: when their leases end.
    pub fn after_lease(
        &self,
        rate: Option<Rate>,
        jobs: &[JobId],
        until: Timestamp,
        now: Timestamp,
    ) -> Option<Self> {
        let first = jobs.first()?;
        let mut next = self.clone();
        if let Some((since, _)) = self.circuit.held() {
            next.circuit = Circuit::HalfOpen { since, until, probe: *first };
        }
        if let Some(rate) = rate {
            next.rate_used_us = rate.take(self.rate_used_us, jobs.len(), now);
        }
        (next != *self).then_some(next)
    }

    /// The lane after an attempt of `job` ended with `sign`, if that changes it.
    pub fn after_attempt(
        &self,
        rules: &LaneRules,
        job: JobId,
        sign: Sign,
        now: Timestamp,
    ) -> Option<(Self, Option<Turn>)> {
        let mut next = self.clone();
        let probed = matches!(self.circuit, Circuit::HalfOpen { probe, .. } if probe == job);
        let turn = match sign {
            Sign::Well => {
                next.health = Health::default();
                next.close()
            }
            Sign::Answers => {
                (next.health.failures, next.health.refusals) = (0, 0);
                if probed { next.close() } else { None }
            }
            Sign::Nothing => match self.circuit {
                Circuit::HalfOpen { since, .. } if probed => {
                    next.circuit = Circuit::Open { since, until: now };
                    Some(Turn::ProbeLost)
                }
                Circuit::HalfOpen { .. } | Circuit::Open { .. } | Circuit::Closed => None,
            },
            Sign::Ill | Sign::Refuses => next.after_failure(rules, probed, sign == Sign::Refuses, now),
            Sign::Gone => next.disable("the receiver answered 410: it is gone", now),
        };
        let next = next.at(now);
        (next != *self).then_some((next, turn))
    }

    fn after_failure(
        &mut self,
        rules: &LaneRules,
        probed: bool,
        refused: bool,
        now: Timestamp,
    ) -> Option<Turn> {
        let health = &mut self.health;
        health.failures = health.failures.saturating_add(1);
        health.refusals = if refused { health.refusals.saturating_add(1) } else { 0 };
        let failing_for = now.since(*health.failing_since.get_or_insert(now));
        let several = health.failures >= rules.failures_to_open.min(FAILURES_TO_DISABLE);
        if failing_for >= rules.disable_after && several {
            return self.disable("there was no success for as long as `disable_after` allows", now);
        }
        let ill = health.failures >= rules.failures_to_open || health.refusals >= rules.refusals_to_open;
        let since = match self.circuit {
            Circuit::Closed if ill => now,
            Circuit::HalfOpen { since, .. } if probed => since,
            // What began before it opened says nothing new.
            Circuit::Closed | Circuit::Open { .. } | Circuit::HalfOpen { .. } => return None,
        };
        let trips = health.trips.saturating_add(1);
        health.trips = trips;
        let until = now.after(rules.open_for(trips));
        self.circuit = Circuit::Open { since, until };
        Some(Turn::CircuitOpened { until, trips })
    }

    fn close(&mut self) -> Option<Turn> {
        self.health.trips = 0;
        let was_open = self.circuit != Circuit::Closed;
        self.circuit = Circuit::Closed;
        was_open.then_some(Turn::CircuitClosed)
    }

    fn disable(&mut self, reason: &str, now: Timestamp) -> Option<Turn> {
        if self.disabled.is_some() {
            return None;
        }
        self.disabled = Some(Hold { at: now, reason: reason.into(), by: "posthaste".into() });
        Some(Turn::Disabled)
    }

    /// The lane after it was paused; `None` if it is already.
    pub fn paused(&self, hold: Hold, now: Timestamp) -> Option<Self> {
        self.paused.is_none().then(|| Self { paused: Some(hold), ..self.clone() }.at(now))
    }

    /// The lane after its pause ended; `None` if there is none. Failures before it are forgotten: a pause is no failure.
    pub fn resumed(&self, now: Timestamp) -> Option<Self> {
        self.paused.as_ref()?;
        let health = Health { failing_since: None, ..self.health };
        Some(Self { paused: None, health, ..self.clone() }.at(now))
    }

    /// The lane after it was disabled; `None` if it is already.
    pub fn disabled(&self, hold: Hold, now: Timestamp) -> Option<Self> {
        self.disabled.is_none().then(|| Self { disabled: Some(hold), ..self.clone() }.at(now))
    }

    /// The lane after a person enabled it, with a closed circuit, no memory of failures, and whatever its receiver asked
    /// for let go; `None` if it is as good as new.
    pub fn enabled(&self, now: Timestamp) -> Option<Self> {
        let next = Self {
            disabled: None,
            circuit: Circuit::Closed,
            health: Health::default(),
            not_before: Timestamp(0),
            ..self.clone()
        }
        .at(now);
        (next != *self).then_some(next)
    }

    /// The lane after its configuration said whether it takes part, if that changes it.
    pub fn switched(&self, off: bool, now: Timestamp) -> Option<Self> {
        (self.switched_off != off).then(|| Self { switched_off: off, ..self.clone() }.at(now))
    }

    /// The lane after its destination was deleted, if that changes it: what a new one of the same name finds.
    pub fn deleted(&self, now: Timestamp) -> Option<Self> {
        let next = Self {
            paused: None,
            disabled: None,
            switched_off: false,
            circuit: Circuit::Closed,
            health: Health::default(),
            not_before: Timestamp(0),
            ..self.clone()
        }
        .at(now);
        (next != *self).then_some(next)
    }

    /// With the accounts of its held time brought up to `now`.
    fn at(mut self, now: Timestamp) -> Self {
        match (self.is_held(), self.held_since) {
            (true, None) => self.held_since = Some(now),
            (false, Some(_)) => {
                self.held_ms = self.held_total_ms(now);
                self.held_since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
        self
    }
}

/// Whether a tenant's new work may begin. Row B10.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// Somebody paused it.
    pub paused: Option<Hold>,
    /// The sum of the pauses that are over, in milliseconds.
    pub held_ms: u64,
}

impl Scheduling {
    /// The sum of its pauses, the one that goes on included, in milliseconds.
    pub fn held_total_ms(&self, now: Timestamp) -> u64 {
        let ongoing = self.paused.as_ref().map_or(0, |hold| now.since(hold.at).0);
        self.held_ms.saturating_add(ongoing)
    }

    /// The last due time whose fresh work may begin at `now`: what became due since the pause began waits for its end.
    pub fn fresh_until(&self, now: Timestamp) -> Timestamp {
        self.paused.as_ref().map_or(now, |hold| now.min(Timestamp(hold.at.0.saturating_sub(1))))
    }

    /// After it was paused; `None` if it is already.
    pub fn paused(&self, hold: Hold) -> Option<Self> {
        self.paused.is_none().then_some(Self { paused: Some(hold), held_ms: self.held_ms })
    }

    /// After its pause ended; `None` if there is none.
    pub fn resumed(&self, now: Timestamp) -> Option<Self> {
        self.paused.as_ref()?;
        Some(Self { paused: None, held_ms: self.held_total_ms(now) })
    }
}
