//! The statements against the pure rules of the core: the same random commands, the same answers, the same rows.

use posthaste_core::{
    DurationMs, Timestamp,
    ledger::{self, Admission, Claim, Entry, OnExpired, Outcome, Report, Seen, Status},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

use crate::support::{self, Claimed, Database, Ledger, Row, Statements};

const KEYS: [&str; 3] = ["a", "b", "c"];
const HOUR_MS: i64 = 3_600_000;
/// What a step of time adds: more than some leases, less than others.
const STEP_MS: i64 = 2 * HOUR_MS;
/// Real time that may pass meanwhile.
const SLACK_MS: i64 = 120_000;

/// One key: the core's entry, and every fence that was ever told.
#[derive(Default)]
struct Model {
    entry: Option<Entry>,
    fences: Vec<i64>,
}

struct Pair<'a> {
    ledger: Ledger<'a>,
    models: [Model; KEYS.len()],
    now: Timestamp,
    random: StdRng,
    trace: Vec<String>,
}

#[test]
fn r_c1_c3_the_statements_do_what_the_pure_rules_say() {
    let seed = support::seed();
    support::each(|database| {
        let statements = Statements::ours(database.dialect());
        let steps = if cfg!(feature = "long-tests") { 20_000 } else { 1_500 };
        let mut pair = Pair {
            ledger: statements.on(database),
            models: Default::default(),
            now: Timestamp(1_000_000_000_000),
            random: StdRng::seed_from_u64(seed),
            trace: Vec::new(),
        };
        for _ in 0..steps {
            pair.step(database);
        }
    });
}

impl Pair<'_> {
    fn step(&mut self, database: &dyn Database) {
        let at = self.random.random_range(0..KEYS.len());
        match self.random.random_range(0..20) {
            0..7 => self.claim(at),
            7..11 => self.complete(at),
            11..14 => self.fail(at),
            14..16 => self.extend(at),
            16..18 => self.reset(at),
            18 => self.pass(),
            _ => self.purge(),
        }
        let row = self.ledger.get(KEYS[at]);
        let model = self.models[at].entry.as_ref();
        let same = match (&row, model) {
            (None, None) => true,
            (Some(row), Some(entry)) => alike(row, entry, self.now),
            _ => false,
        };
        let trace = &self.trace[self.trace.len().saturating_sub(12)..];
        assert!(same, "{}: {row:?} is not {model:?} after {trace:#?}", database.name());
    }

    fn claim(&mut self, at: usize) {
        let lease = [HOUR_MS, 3 * HOUR_MS].choose(&mut self.random).copied().unwrap();
        let claim_id = ["x", "y", "z"].choose(&mut self.random).copied().unwrap();
        let fingerprint = [None, None, Some("p"), Some("q")].choose(&mut self.random).copied().unwrap();
        let on_expired = if self.random.random_ratio(1, 5) { OnExpired::Hold } else { OnExpired::Retake };
        self.note(format!("claim {} {claim_id} {lease} {fingerprint:?} {on_expired:?}", KEYS[at]));
        let said = self
            .ledger
            .claim_with(KEYS[at], Some(claim_id), lease, fingerprint, on_expired.as_str())
            .unwrap();
        let said = said.expect("a claim returns a row");
        let model = &mut self.models[at];
        // The core is told what a new row starts with; that it is above all before is checked here.
        let first_fence = said.fence.unwrap_or(1);
        if model.entry.is_none() {
            assert!(model.fences.iter().all(|known| *known < first_fence), "a fence came again");
        }
        let claim = Claim {
            lease: DurationMs(lease.unsigned_abs()),
            fingerprint: fingerprint.map(|text| text.as_bytes().into()),
            claim_id: Some(claim_id.into()),
            on_expired,
            first_fence: first_fence.unsigned_abs(),
        };
        let admission = ledger::admit(model.entry.as_ref(), &claim, self.now);
        assert!(says(&said, &admission), "{said:?} is not {admission:?}: {:#?}", self.trace);
        if let Admission::Granted(entry) = admission {
            model.fences.push(i64::try_from(entry.fence).unwrap());
            model.entry = Some(entry);
        }
    }

    fn complete(&mut self, at: usize) {
        let fence = self.some_fence(at);
        let outcome = [Outcome::Committed, Outcome::Cancelled].choose(&mut self.random).copied().unwrap();
        self.note(format!("complete {} {fence} {outcome:?}", KEYS[at]));
        let said = self.ledger.complete(KEYS[at], fence, outcome.as_str(), b"answer").unwrap();
        let report = ledger::complete(self.models[at].entry.as_ref(), fence.unsigned_abs(), outcome);
        self.reported(at, said, report);
    }

    fn fail(&mut self, at: usize) {
        let fence = self.some_fence(at);
        self.note(format!("fail {} {fence}", KEYS[at]));
        let said = self.ledger.fail(KEYS[at], fence).unwrap();
        let report = ledger::fail(self.models[at].entry.as_ref(), fence.unsigned_abs());
        self.reported(at, said, report);
    }

    fn extend(&mut self, at: usize) {
        let (fence, lease) = (self.some_fence(at), 3 * HOUR_MS);
        self.note(format!("extend {} {fence}", KEYS[at]));
        let said = self.ledger.extend(KEYS[at], fence, lease).unwrap();
        let entry = self.models[at].entry.as_ref();
        let report = ledger::extend(entry, fence.unsigned_abs(), DurationMs(lease.unsigned_abs()), self.now);
        self.reported(at, said, report);
    }

    fn reset(&mut self, at: usize) {
        let fence = self.some_fence(at);
        let status =
            [Status::InProgress, Status::Failed, Status::Done].choose(&mut self.random).copied().unwrap();
        self.note(format!("reset {} {fence} {status:?}", KEYS[at]));
        let said = self.ledger.reset(KEYS[at], fence, status.as_str(), "asked").unwrap();
        let seen = Seen { fence: fence.unsigned_abs(), status };
        let report = ledger::reset(self.models[at].entry.as_ref(), seen);
        self.reported(at, said, report);
        let fence = self.models[at].entry.as_ref().map(|entry| i64::try_from(entry.fence).unwrap());
        self.models[at].fences.extend(fence);
    }

    /// Rows grow older instead of the clock going on; so do their fences, which began at the clock.
    fn pass(&mut self) {
        self.note("time passes".to_owned());
        self.ledger.pass(STEP_MS);
        self.now = Timestamp(self.now.0 + STEP_MS);
        for model in &mut self.models {
            model.fences.iter_mut().for_each(|fence| *fence -= STEP_MS * 1000);
            if let Some(entry) = &mut model.entry {
                entry.fence -= STEP_MS.unsigned_abs() * 1000;
            }
        }
    }

    fn purge(&mut self) {
        let purged = self.ledger.purge(0);
        self.note(format!("purge took {purged:?}"));
        for key in purged {
            let model = &mut self.models[KEYS.iter().position(|known| *known == key).unwrap()];
            let status = model.entry.take().unwrap().status;
            assert_ne!(status, Status::InProgress, "what became of it is not known yet");
        }
    }

    fn reported(&mut self, at: usize, said: bool, report: Report) {
        assert_eq!(said, report != Report::Stale, "{report:?}: {:#?}", self.trace);
        if let Report::Write(entry) = report {
            self.models[at].entry = Some(entry);
        }
    }

    /// Mostly the one in force, else an older or a made-up one.
    fn some_fence(&mut self, at: usize) -> i64 {
        let model = &self.models[at];
        match (self.random.random_range(0..10), &model.entry) {
            (0..7, Some(entry)) => i64::try_from(entry.fence).unwrap(),
            (7, Some(entry)) => i64::try_from(entry.fence).unwrap() + 1,
            _ => model.fences.choose(&mut self.random).copied().unwrap_or(7),
        }
    }

    fn note(&mut self, what: String) {
        self.trace.push(what);
    }
}

fn says(said: &Claimed, admission: &Admission) -> bool {
    let fence = said.fence.map(i64::unsigned_abs);
    let previous = said.row.text("previous");
    match admission {
        Admission::Granted(entry) | Admission::Repeated(entry) => {
            said.path == entry.path.as_str()
                && fence == Some(entry.fence)
                && said.row.int("attempts") == Some(i64::from(entry.attempts))
                && previous.as_deref() == Some(entry.previous.as_str())
        }
        Admission::DuplicateDone(outcome) => {
            said.path == "duplicate_done"
                && said.row.text("outcome").as_deref() == Some(outcome.as_str())
                && said.row.bytes("result_bytes").as_deref() == Some(b"answer")
        }
        Admission::InProgressElsewhere { locked_until } => {
            said.path == "in_progress_elsewhere"
                && fence.is_none()
                && said.row.int("retry_after_ms").is_some() == locked_until.is_some()
        }
        Admission::KeyReused => said.path == "key_reused" && fence.is_none(),
    }
}

fn alike(row: &Row, entry: &Entry, now: Timestamp) -> bool {
    let left = entry.locked_until.0 - now.0;
    let lease = row.int("retry_after_ms");
    row.text("status").as_deref() == Some(entry.status.as_str())
        && row.int("fence") == Some(i64::try_from(entry.fence).unwrap())
        && row.int("attempts") == Some(i64::from(entry.attempts))
        && row.text("fingerprint").as_deref().map(str::as_bytes) == entry.fingerprint.as_deref()
        && row.text("claim_id").as_deref() == entry.claim_id.as_deref()
        && row.text("previous").as_deref() == Some(entry.previous.as_str())
        && row.text("on_expired").as_deref() == Some(entry.on_expired.as_str())
        && row.text("outcome").as_deref() == entry.outcome.map(Outcome::as_str)
        && lease.is_none_or(|lease| (left - SLACK_MS..=left + 1).contains(&lease))
        && lease.is_some() == (entry.status == Status::InProgress)
}
