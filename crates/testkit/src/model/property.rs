//! What the models promise, and what a run must have seen to count.

use super::sentences::sentences;

sentences! {
    /// A promise. A model breaks it in a state or on a step; [`Property::GoodEndReachable`] is checked on the whole
    /// graph.
    Property {
        CommittedIsTrue = "committed is true: a committed job had its effect",
        TerminalFinal = "terminal is final: committed and cancelled are left by a resend only",
        StaleChangesNothing = "stale changes nothing: a report of an older attempt or grant changes no state",
        NumberUnique = "numbers are unique: no fence is given twice, no attempt's row is inserted twice",
        RowsWrittenOnce = "rows are written once: a report is put beside an attempt's end at most once",
        SameAnswer = "same answer: a report answered yes is never refused when it is repeated",
        YesIsRecorded = "yes is recorded: a report answered yes stands in its attempt's row",
        AtMostOnce = "at most once: one effect at most under on_unknown = dead_letter and reconcile",
        ExplainInterval = "explain: lo <= effects <= hi by the attempts' rows",
        HeardIsShown = "a commit that was heard is shown: its attempt's effect is reported",
        PolicyHolds = "policy holds: no attempt follows an unknown outcome under on_unknown = dead_letter",
        LostBudget = "lost leases since the last replay stay within their budget",
        LeaseRespected = "a lease is taken away only after it ran out",
        ReplayOnce = "replay once: one request for a replay is carried out at most once",
        CancelIsTrue = "cancel is true: cancelled with effect none shown means no effect, then and later",
        NoNeedlessRun = "no needless run: no attempt begins once a commit was heard",
        OneLiveLease = "one live lease: the only attempt without a row is the running one",
        ReplaySafe = "replay is safe: it repeats no effect that happened or may still happen",
        DeadLetterTrue = "dead letters are true: none whose heard commit is forgotten",
        EffectOnce = "effect once: at most one effect, and one more for each reset of a done entry",
        OneGrant = "one grant: no claim is granted while another grant is in force",
        RepeatedClaimIsOwn = "a repeated claim is not held up by its own grant",
        DoneFinal = "done is final: a done entry is granted again only after a reset",
        DoneIsTrue = "done is true: the entry of a done key is backed by a real effect",
        ResetOnce = "reset once: one request resets at most once",
        BusyIsNoFailure = "busy is no failure: in_progress answers alone dead-letter no job",
        HolderCommits = "a commit is the holder's: the attempt that a committed job names committed it",
        GoodEndReachable = "a good end stays reachable by steps that are not faults",
    }
}

sentences! {
    /// Something that must be reachable, or the run proves little.
    Witness {
        Committed = "a job is committed",
        LateCommit = "a commit is believed after the lease had run out",
        TwoEffects = "two effects",
        DeadLettered = "a job is dead-lettered",
        DeadWithEffect = "a job is dead-lettered though its effect happened",
        Cancelled = "a job is cancelled",
        ZombieSends = "an attempt acts although a newer one was leased",
        Replayed = "a replayed job is committed",
        CommitHeard = "a commit is heard while another attempt runs",
        Duplicate = "a claim is answered duplicate_done",
        Busy = "a claim is answered in_progress_elsewhere",
        Takeover = "a grant that ran out is taken over",
        RetryAfterFail = "a failed entry is granted again",
        Rollback = "an effect is rolled back because its grant is stale",
        Restored = "a job is committed after a restore",
        Resent = "a resent job is committed again",
        LookedUp = "a look-up settles a job",
    }
}

impl Property {
    const fn bit(self) -> u64 {
        1 << (self as u64)
    }
}

impl Witness {
    const fn bit(self) -> u64 {
        1 << (self as u64)
    }
}

/// A set of properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties(u64);

/// A set of witnesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Witnesses(u64);

impl Properties {
    /// Those of `all`.
    pub fn of(all: impl IntoIterator<Item = Property>) -> Self {
        Self(all.into_iter().fold(0, |bits, property| bits | property.bit()))
    }

    /// Adds `property` where `when` holds.
    pub fn note(&mut self, property: Property, when: bool) {
        if when {
            self.0 |= property.bit();
        }
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// All there are.
    pub fn all() -> Self {
        Self::of(Property::ALL.iter().copied())
    }

    /// These without `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Those in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those in either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Property> {
        Property::ALL.iter().copied().filter(move |property| self.0 & property.bit() != 0)
    }
}

impl Witnesses {
    /// Those of `all`.
    pub fn of(all: impl IntoIterator<Item = Witness>) -> Self {
        Self(all.into_iter().fold(0, |bits, witness| bits | witness.bit()))
    }

    /// Adds `witness` where `when` holds.
    pub fn note(&mut self, witness: Witness, when: bool) {
        if when {
            self.0 |= witness.bit();
        }
    }

    /// Those in either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that `other` lacks.
    pub fn missing_in(self, other: Self) -> Vec<Witness> {
        Witness::ALL.iter().copied().filter(|witness| self.0 & !other.0 & witness.bit() != 0).collect()
    }
}
