//! Many claimers of the same keys over HTTP and the durable store, with crashes, lost answers, grants that run out and
//! reports that come late: every effect once.
//!
//! An effect here is what a receiver commits once its `complete` is answered yes. `POSTHASTE_TEST_SEED` repeats a run.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use posthaste_core::DurationMs;
use posthaste_store::sqlite::{SqliteOptions, SqliteStore};
use serde_json::{Value, json};

use crate::{harness::Server, server::Connection};

/// How large a race is.
struct Size {
    claimers: usize,
    keys: usize,
}

const SIZE: Size = if cfg!(feature = "long-tests") {
    Size { claimers: 100, keys: 1_000 }
} else {
    Size { claimers: 24, keys: 60 }
};

const SEEDS: u64 = if cfg!(feature = "long-tests") { 10 } else { 2 };

/// SplitMix64: <https://prng.di.unimi.it/splitmix64.c>.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// What all claimers did: for each key, by fence, how often an effect was committed under it.
#[derive(Default)]
struct Effects(Mutex<BTreeMap<String, BTreeMap<String, usize>>>);

impl Effects {
    fn commit(&self, key: &str, fence: &str) {
        let mut effects = self.0.lock().unwrap();
        *effects.entry(key.to_owned()).or_default().entry(fence.to_owned()).or_default() += 1;
    }
}

struct Claimer {
    address: SocketAddr,
    api_key: String,
    connection: Connection,
    rng: Rng,
    effects: Arc<Effects>,
    server: Arc<Server>,
    /// Grants that were held back: reported late.
    late: Vec<(String, String)>,
}

impl Claimer {
    async fn call(&mut self, verb: &str, body: &Value) -> Value {
        let path = format!("/v1/ledger/{verb}");
        if self.rng.percent(5) {
            // The request arrives; its answer is lost, and it is sent again.
            let mut lost = Connection::to(self.address, &self.api_key).await;
            let (_, answered) = (lost.local_port(), lost.call("POST", &path, body).await);
            drop(answered);
        }
        let answer = self.connection.call("POST", &path, body).await;
        let mut said = answer.json();
        said["http"] = answer.status.into();
        said
    }

    async fn complete(&mut self, key: &str, fence: &str) {
        let body = json!({"key": key, "fence": fence, "result": {"fence": fence}});
        let said = self.call("complete", &body).await;
        match said["http"].as_u64() {
            Some(200) => self.effects.commit(key, fence),
            Some(409) => assert_eq!("stale_fence", said["code"], "{said}"),
            _ => panic!("{said}"),
        }
    }

    /// One try at a key; true once it is done.
    async fn try_once(&mut self, key: &str, number: u64) -> bool {
        let claim_id = format!("{number}-{}", self.rng.next());
        let body = json!({"key": key, "lease": "5s", "claim_id": claim_id, "fingerprint": "f"});
        let said = self.call("claim", &body).await;
        assert_eq!(200, said["http"], "{said}");
        match said["path"].as_str().unwrap() {
            "duplicate_done" => {
                let fence = said["result"]["fence"].as_str().unwrap();
                let known = self.effects.0.lock().unwrap().get(key).map(BTreeMap::len);
                assert!(known.is_none_or(|fences| fences == 1), "{key}: {fence}");
                true
            }
            "in_progress_elsewhere" => false,
            "first_run" | "retry_after_failure" => {
                let fence = said["fence"].as_str().unwrap().to_owned();
                match self.rng.next() % 10 {
                    // A crash: nobody says anything, ever.
                    0 => {}
                    1 => self.late.push((key.to_owned(), fence)),
                    2 => {
                        let body = json!({"key": key, "fence": fence, "class": "worker"});
                        self.call("fail", &body).await;
                    }
                    3 => {
                        let body = json!({"key": key, "fence": fence, "lease": "9s"});
                        self.call("extend", &body).await;
                        self.complete(key, &fence).await;
                    }
                    _ => self.complete(key, &fence).await,
                }
                false
            }
            other => panic!("{other}"),
        }
    }

    async fn race(mut self, keys: usize) {
        let mut open: Vec<String> = (0..keys).map(|key| format!("charge:{key}")).collect();
        let mut number = 0;
        while !open.is_empty() {
            number += 1;
            let at = usize::try_from(self.rng.next()).unwrap() % open.len();
            let key = open[at].clone();
            if self.try_once(&key, number).await {
                open.swap_remove(at);
            } else if self.rng.percent(30) {
                // Time passes for everybody, so that grants run out in the middle of anything.
                self.server.clock.advance(DurationMs(700));
            }
            if self.rng.percent(20)
                && let Some((key, fence)) = self.late.pop()
            {
                self.complete(&key, &fence).await;
            }
        }
        for (key, fence) in std::mem::take(&mut self.late) {
            self.complete(&key, &fence).await;
        }
    }
}

async fn race(seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let open = |clock| SqliteStore::open(SqliteOptions::new(&path, clock)).unwrap();
    let server = Arc::new(Server::with_store(|clock| Arc::new(open(clock))).await);
    let effects = Arc::new(Effects::default());
    let mut claimers = Vec::new();
    for number in 0..SIZE.claimers {
        let claimer = Claimer {
            address: server.address,
            api_key: server.admin.clone(),
            connection: Connection::to(server.address, &server.admin).await,
            rng: Rng(seed.wrapping_mul(1_000_003).wrapping_add(number as u64)),
            effects: Arc::clone(&effects),
            server: Arc::clone(&server),
            late: Vec::new(),
        };
        claimers.push(tokio::spawn(claimer.race(SIZE.keys)));
    }
    for claimer in claimers {
        claimer.await.unwrap();
    }
    let effects = effects.0.lock().unwrap();
    let doubled: Vec<_> = effects.iter().filter(|(_, fences)| fences.len() != 1).collect();
    assert!(doubled.is_empty(), "seed {seed}: more than one grant was completed: {doubled:?}");
    assert_eq!(SIZE.keys, effects.len(), "seed {seed}: every effect happened");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_c1_c3_many_claimers_over_http_have_every_effect_once() {
    let given = std::env::var("POSTHASTE_TEST_SEED").ok();
    let first: u64 = given.map_or(1, |text| text.parse().expect("POSTHASTE_TEST_SEED is a number"));
    for seed in first..first + SEEDS {
        println!("POSTHASTE_TEST_SEED={seed}");
        race(seed).await;
    }
}
