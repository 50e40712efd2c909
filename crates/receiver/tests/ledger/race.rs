//! Many claimers, many keys, crashes, lost leases, late and stale reports: each effect once.

use std::{
    collections::BTreeMap,
    sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    },
};

use posthaste_receiver::ledger::sql::Dialect;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

use crate::support::{self, Answer, Database, Ledger, Refusal, Statements};

/// Short enough to run out now and then while somebody is at it.
const LEASE_MS: i64 = 20;

struct Size {
    claimers: usize,
    keys: usize,
    seeds: u64,
}

const SIZE: Size = if cfg!(feature = "long-tests") {
    Size { claimers: 100, keys: 1_000, seeds: 10 }
} else {
    Size { claimers: 12, keys: 60, seeds: 1 }
};

/// Counts what happened, so that a test that races nothing is noticed.
#[derive(Default)]
struct Tally {
    crashes: AtomicUsize,
    takeovers: AtomicUsize,
    superseded: AtomicUsize,
    stale: AtomicUsize,
    duplicates: AtomicUsize,
    elsewhere: AtomicUsize,
}

#[test]
fn r_c1_c2_of_many_claimers_with_crashes_each_effect_happens_once() {
    let first = support::seed();
    support::each(|database| {
        for seed in (0..SIZE.seeds).map(|more| first.wrapping_add(more)) {
            support::prepare(&mut *database.session(), database.dialect());
            let ours = Statements::ours(database.dialect());
            race(database, &ours, seed);
            assert_eq!(judge(database, &ours), Ok(()), "{}, seed {seed}", database.name());
        }
    });
}

#[test]
fn r_c3_the_race_notices_a_complete_without_a_fence() {
    let seed = support::seed();
    let sqlite = support::Sqlite::new();
    let faulty = Statements::ours(Dialect::Sqlite).with("complete.sql", "complete_by_key.sql");
    // Whether a report comes late is chance; in one of so many races it does.
    let noticed = (0..20).any(|more| {
        support::prepare(&mut *sqlite.session(), Dialect::Sqlite);
        race(&sqlite, &faulty, seed.wrapping_add(more));
        let verdict = judge(&sqlite, &faulty);
        println!("{verdict:?}");
        verdict.is_err()
    });
    assert!(noticed, "seed {seed}");
}

/// Of claimers who come at the same moment exactly one is granted the key, round after round.
#[test]
fn r_c1_of_claimers_at_the_same_moment_one_wins() {
    let rounds = if cfg!(feature = "long-tests") { 1_000 } else { 30 };
    support::each(|database| {
        let statements = Statements::ours(database.dialect());
        let barrier = Barrier::new(SIZE.claimers);
        let grants: Vec<AtomicUsize> = (0..rounds).map(|_| AtomicUsize::new(0)).collect();
        std::thread::scope(|scope| {
            for number in 0..SIZE.claimers {
                let (statements, barrier, grants) = (&statements, &barrier, &grants);
                scope.spawn(move || {
                    let mut ledger = statements.on(database);
                    for (round, grants) in grants.iter().enumerate() {
                        barrier.wait();
                        let won = claim_until_told(&mut ledger, &format!("round {round}"), number);
                        grants.fetch_add(usize::from(won), Ordering::Relaxed);
                    }
                });
            }
        });
        let wrong = grants.iter().enumerate().find(|(_, grants)| grants.load(Ordering::Relaxed) != 1);
        assert!(wrong.is_none(), "{}: {wrong:?}", database.name());
    });
}

/// Whether it was granted.
fn claim_until_told(ledger: &mut Ledger<'_>, key: &str, number: usize) -> bool {
    loop {
        match ledger.claim(key, &number.to_string(), 3_600_000) {
            Ok(claimed) => return claimed.granted().is_some(),
            Err(Refusal::Conflict | Refusal::Locked) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

fn race(database: &dyn Database, statements: &Statements, seed: u64) {
    let tally = Tally::default();
    std::thread::scope(|scope| {
        for number in 0..SIZE.claimers {
            let random = StdRng::seed_from_u64(seed.wrapping_mul(1_000).wrapping_add(number as u64));
            let tally = &tally;
            scope.spawn(move || Claimer::new(number, statements, database, tally, random).work());
        }
    });
    let said = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    println!(
        "{}, seed {seed}: {} crashes, {} takeovers, {} superseded, {} stale reports, {} duplicates, {} elsewhere",
        database.name(),
        said(&tally.crashes),
        said(&tally.takeovers),
        said(&tally.superseded),
        said(&tally.stale),
        said(&tally.duplicates),
        said(&tally.elsewhere),
    );
    let late = said(&tally.superseded) + said(&tally.stale);
    for count in [said(&tally.crashes), said(&tally.takeovers), said(&tally.duplicates)] {
        assert!(count > 0, "seed {seed}: it was no race");
    }
    // In a short race no report may be late.
    assert!(late > 0 || !cfg!(feature = "long-tests"), "seed {seed}: no report was late");
}

/// Whether each key is done, by one effect, whose grant the stored answer names.
fn judge(database: &dyn Database, statements: &Statements) -> Result<(), String> {
    let mut ledger = statements.on(database);
    let count = "SELECT event_key, count(*) AS n FROM effects GROUP BY event_key";
    let rows = ledger.session.query(count, &[]).unwrap();
    let effects: BTreeMap<_, _> =
        rows.iter().map(|row| (row.text("event_key").unwrap(), row.int("n").unwrap())).collect();
    for key in (0..SIZE.keys).map(name_of) {
        let effects = effects.get(&key).copied().unwrap_or(0);
        let entry = ledger.get(&key).unwrap();
        let status = entry.text("status").unwrap();
        let named = entry.bytes("result_bytes").unwrap_or_default();
        let fence = entry.int("fence").unwrap().to_string();
        if effects != 1 || status != "done" || named != fence.as_bytes() {
            return Err(format!("{key} is {status} by {fence} with {effects} effects, answer of {named:?}"));
        }
    }
    Ok(())
}

fn name_of(key: usize) -> String {
    format!("key {key}")
}

struct Claimer<'a> {
    number: usize,
    claims: usize,
    statements: &'a Statements,
    database: &'a dyn Database,
    tally: &'a Tally,
    random: StdRng,
    ledger: Ledger<'a>,
    /// Grants that this claimer sat on, to report on them late.
    late: Vec<(String, i64)>,
}

impl<'a> Claimer<'a> {
    fn new(
        number: usize,
        statements: &'a Statements,
        database: &'a dyn Database,
        tally: &'a Tally,
        random: StdRng,
    ) -> Self {
        let ledger = statements.on(database);
        Self { number, claims: 0, statements, database, tally, random, ledger, late: Vec::new() }
    }

    /// Goes over the keys until each was seen done.
    fn work(mut self) {
        let mut open: Vec<usize> = (0..SIZE.keys).collect();
        while !open.is_empty() {
            open.shuffle(&mut self.random);
            open.retain(|key| !self.visit(&name_of(*key)));
            for (key, fence) in std::mem::take(&mut self.late) {
                self.come_late(&key, fence);
            }
        }
    }

    /// Whether it was seen done.
    fn visit(&mut self, key: &str) -> bool {
        self.claims += 1;
        let claim_id = format!("{}.{}", self.number, self.claims);
        let one_tx = self.random.random_ratio(1, 3);
        match if one_tx { self.one_tx(key, &claim_id) } else { self.two_tx(key, &claim_id) } {
            Ok(done) => done,
            Err(Refusal::Conflict | Refusal::Locked) => {
                // The connection is fine, its transaction is not.
                let _ = self.ledger.session.batch("ROLLBACK");
                false
            }
            Err(other) => panic!("{key}: {other}"),
        }
    }

    fn two_tx(&mut self, key: &str, claim_id: &str) -> Answer<bool> {
        let claimed = self.ledger.claim(key, claim_id, LEASE_MS)?;
        let Some(fence) = claimed.granted() else {
            return Ok(self.refused(&claimed.path));
        };
        self.note_takeover(claimed.row.text("previous").as_deref());
        match self.random.random_range(0..10) {
            0 | 1 => {
                self.crash();
                Ok(false)
            }
            2..5 => {
                self.late.push((key.to_owned(), fence));
                Ok(false)
            }
            5 => {
                // Surely no effect; said twice.
                self.ledger.fail(key, fence)?;
                self.ledger.fail(key, fence)?;
                Ok(false)
            }
            6 => {
                self.ledger.session.begin()?;
                self.ledger.effect(key, fence)?;
                self.crash();
                Ok(false)
            }
            _ => {
                self.ledger.session.begin()?;
                self.finish(key, fence)
            }
        }
    }

    fn one_tx(&mut self, key: &str, claim_id: &str) -> Answer<bool> {
        self.ledger.session.begin()?;
        let claimed = self.ledger.claim(key, claim_id, LEASE_MS)?;
        let Some(fence) = claimed.granted() else {
            self.ledger.session.batch("ROLLBACK")?;
            return Ok(self.refused(&claimed.path));
        };
        if self.random.random_ratio(1, 5) {
            self.ledger.effect(key, fence)?;
            self.crash();
            return Ok(false);
        }
        self.finish(key, fence)
    }

    /// In the effect's transaction.
    fn finish(&mut self, key: &str, fence: i64) -> Answer<bool> {
        self.ledger.effect(key, fence)?;
        if !self.ledger.complete(key, fence, "committed", fence.to_string().as_bytes())? {
            self.tally.superseded.fetch_add(1, Ordering::Relaxed);
            self.ledger.session.batch("ROLLBACK")?;
            return Ok(false);
        }
        if self.random.random_ratio(1, 10) {
            self.crash();
            return Ok(false);
        }
        self.ledger.session.batch("COMMIT")?;
        if self.random.random_ratio(1, 4) {
            // As if the answer to COMMIT was lost.
            assert!(self.ledger.complete(key, fence, "committed", b"another").unwrap_or(true));
            assert!(!self.ledger.fail(key, fence).unwrap_or(false), "{key}: done was failed");
        }
        Ok(false)
    }

    /// Reports on a grant that may be over.
    fn come_late(&mut self, key: &str, fence: i64) {
        let mut report = || -> Answer<()> {
            // It may believe to have failed, and yet go on: that counts only if nobody began anew.
            if self.random.random_ratio(1, 2) && !self.ledger.fail(key, fence)? {
                self.tally.stale.fetch_add(1, Ordering::Relaxed);
            }
            self.ledger.session.begin()?;
            self.finish(key, fence).map(drop)
        };
        if report().is_err() {
            let _ = self.ledger.session.batch("ROLLBACK");
        }
    }

    fn refused(&self, path: &str) -> bool {
        match path {
            "duplicate_done" => self.tally.duplicates.fetch_add(1, Ordering::Relaxed),
            "in_progress_elsewhere" => self.tally.elsewhere.fetch_add(1, Ordering::Relaxed),
            other => panic!("{other}"),
        };
        path == "duplicate_done"
    }

    fn note_takeover(&self, previous: Option<&str>) {
        if previous == Some("expired") {
            self.tally.takeovers.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The connection goes, with whatever it had begun.
    fn crash(&mut self) {
        self.tally.crashes.fetch_add(1, Ordering::Relaxed);
        self.ledger = self.statements.on(self.database);
    }
}
