//! Several hundred messages from the real sender, through the proxy, to two processes of one receiver.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    net::SocketAddr,
    path::Path,
    time::Duration,
};

use posthaste_receiver::Signer;
use serde_json::{Value, json};

use crate::{
    chance,
    cli_support::{self, KEY, posthaste},
    database::Database,
    process::{Language, Process, SECRET},
    proxy::{Fate, Proxy, Seen, deliver},
    server::Connection,
    wire::Message,
};

/// Messages, one effect each.
const MESSAGES: usize = 300;
/// Endpoints that they are spread over; a `Retry-After` holds back one of them alone.
const ENDPOINTS: usize = 6;
/// How long all of them may take on a machine under load.
const PATIENCE: Duration = Duration::from_secs(150);

/// Sends the messages and checks every promise.
pub(crate) async fn one_effect_each(language: Language) {
    let seed = chance::seed();
    eprintln!("{}={seed}", chance::SEED);
    let database = match language {
        Language::PythonSqlite => Database::sqlite(),
        Language::Node | Language::PythonPostgres | Language::Go => Database::postgres(seed),
    };
    database.let_first_attempts_fail();
    // What the second process has claimed is up for taking at once; who comes upon a claim of the first is told to come
    // again when its lease ends.
    let mut processes = [5_000, 0].map(|lease_ms| Process::start(language, &database, lease_ms));
    let receivers = [processes[0].address, processes[1].address];
    let proxy = Proxy::start(seed, receivers).await;
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), proxy.address);
    publish(&server).await;
    let accepted = tokio::time::timeout(PATIENCE, proxy.accepted(MESSAGES)).await;
    assert!(accepted.is_ok(), "some were not accepted in time, such as {:#?}", proxy.seen(not_accepted));
    all_are_committed(&server).await;

    let charged = one_effect_of_each(&database, &proxy);
    let stored = answers_are_the_stored_ones(&proxy, &charged);
    faults_were_met(&proxy);
    redeliveries_get_the_stored_answer(&proxy, receivers, &stored).await;
    strangers_are_refused(&proxy, receivers[0], &stored).await;
    assert_eq!(charged, one_effect_of_each(&database, &proxy), "nothing of this had an effect");
    processes.iter_mut().for_each(Process::assert_alive);
}

fn serve(folder: &Path, receiver: SocketAddr) -> cli_support::Server {
    std::fs::write(folder.join("secret"), SECRET).unwrap();
    let mut text = String::from("[outbound]\nprivate_networks = [\"127.0.0.0/8\"]\n");
    for number in 0..ENDPOINTS {
        write!(
            text,
            "[[endpoint]]\nid = \"shop_{number}\"\nurl = \"http://{receiver}/\"\nsecrets = [\"file:secret\"]\n\
             timeout = \"20s\"\nconcurrency = 8\nidempotent = true\n[endpoint.retry]\nbase = \"100ms\"\ncap = \"1s\"\n\
             failures_max = 1000\nhorizon = \"1d\"\n"
        )
        .unwrap();
    }
    std::fs::write(folder.join("posthaste.toml"), text).unwrap();
    let arguments = ["serve", "--config", "posthaste.toml", "--listen", "127.0.0.1:0"];
    cli_support::Server::start_as(folder, &mut posthaste(folder, &arguments))
}

async fn publish(server: &cli_support::Server) {
    let address = server.url.strip_prefix("http://").unwrap().parse().unwrap();
    let message = |number: usize| {
        let endpoint = format!("shop_{}", number % ENDPOINTS);
        json!({ "key": format!("order:{number}"), "payload": { "amount": number }, "to": { "endpoints": [endpoint] } })
    };
    let messages: Vec<Value> = (0..MESSAGES).map(message).collect();
    let mut connection = Connection::to(address, KEY).await;
    let answer = connection.call("POST", "/v1/messages/batch", &json!({ "messages": messages })).await;
    assert_eq!(200, answer.status, "{answer:?}");
}

/// The last answer to a few.
fn not_accepted(seen: &Seen) -> Vec<(String, Option<Message>)> {
    let waiting = seen.requests.keys().filter(|event_id| !seen.accepted.contains(*event_id));
    let last = |event_id: &String| seen.answers.get(event_id)?.last().cloned();
    waiting.take(3).map(|event_id| (event_id.clone(), last(event_id))).collect()
}

/// The sender has it from the receiver's ledger that each is done.
async fn all_are_committed(server: &cli_support::Server) {
    let address = server.url.strip_prefix("http://").unwrap().parse().unwrap();
    let mut connection = Connection::to(address, KEY).await;
    let committed = async {
        loop {
            let page =
                connection.call("GET", "/v1/jobs?state=committed&limit=500", &Value::Null).await.json();
            let jobs = page["data"].as_array().unwrap().clone();
            if jobs.len() == MESSAGES {
                return jobs;
            }
            tokio::task::yield_now().await;
        }
    };
    let jobs = tokio::time::timeout(PATIENCE, committed).await.expect("every job is committed");
    for job in &jobs {
        assert_eq!("ledger", job["evidence"], "{job}");
    }
}

/// The charge of each event id. A charge is kept under a `webhook-id`, of which each event id has one.
fn one_effect_of_each(database: &Database, proxy: &Proxy) -> BTreeMap<String, String> {
    let rows = database.run("SELECT event_key, id FROM charges");
    let charges: BTreeMap<&str, &str> = rows.iter().filter_map(|row| row.split_once('|')).collect();
    let webhook_ids = proxy.seen(|seen| seen.webhook_ids.clone());
    let expected: BTreeSet<String> =
        (0..MESSAGES).map(|number| format!("order:{number}:shop_{}", number % ENDPOINTS)).collect();
    assert_eq!(expected, webhook_ids.keys().cloned().collect(), "each was sent");
    let mut charged = BTreeMap::new();
    for (event_id, webhook_ids) in webhook_ids {
        let webhook_ids: Vec<&str> = webhook_ids.iter().map(String::as_str).collect();
        let [webhook_id] = webhook_ids[..] else { panic!("{event_id} came as {webhook_ids:?}") };
        let charge = charges.get(webhook_id).unwrap_or_else(|| panic!("no effect of {event_id}"));
        charged.insert(event_id, (*charge).to_owned());
    }
    let distinct: BTreeSet<&String> = charged.values().collect();
    assert_eq!(MESSAGES, distinct.len(), "an effect of each");
    assert_eq!(MESSAGES, rows.len(), "and of none a second one");
    let entries = database.run("SELECT status, count(*) FROM webhook_events GROUP BY status");
    assert_eq!(vec![format!("done|{MESSAGES}")], entries);
    charged
}

/// What a duplicate must get again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stored {
    status: u16,
    content_type: String,
    body: Vec<u8>,
}

impl Stored {
    fn of(answer: &Message) -> Self {
        Self {
            status: answer.status(),
            content_type: answer.needs("content-type").to_owned(),
            body: answer.body.clone(),
        }
    }
}

/// Every 2xx to one event id is the same, names its charge, and at most one of them is no duplicate.
fn answers_are_the_stored_ones(
    proxy: &Proxy,
    charged: &BTreeMap<String, String>,
) -> BTreeMap<String, Stored> {
    let mut stored = BTreeMap::new();
    for (event_id, answers) in proxy.seen(|seen| seen.answers.clone()) {
        let mut runs = 0;
        for answer in &answers {
            let path = answer.ledger("path").unwrap_or_else(|| panic!("{answer:?}"));
            match (answer.status(), path) {
                (200, "first_run" | "retry_after_failure" | "duplicate_done") => {
                    let first = stored.entry(event_id.clone()).or_insert_with(|| Stored::of(answer));
                    assert_eq!(*first, Stored::of(answer), "{event_id}");
                    assert_eq!(Some("committed"), answer.ledger("outcome"), "{answer:?}");
                    runs += u32::from(path != "duplicate_done");
                }
                // With the path of a grant: it was taken over.
                (409, "in_progress_elsewhere" | "first_run" | "retry_after_failure")
                | (503, "first_run" | "retry_after_failure") => {
                    assert!(answer.header("retry-after").is_some(), "{answer:?}");
                }
                _ => panic!("{event_id}: {answer:?}"),
            }
        }
        assert!(runs <= 1, "{event_id}: {answers:?}");
        let charge: Value = serde_json::from_slice(&stored[&event_id].body).unwrap();
        assert_eq!(charged[&event_id], charge["charge"].to_string(), "{event_id}");
    }
    assert_eq!(MESSAGES, stored.len());
    stored
}

/// The run has met what it is for.
fn faults_were_met(proxy: &Proxy) {
    let fates = proxy.seen(|seen| seen.fates.clone());
    let kinds = [Fate::Passed, Fate::Twice, Fate::AnswerLost, Fate::TwiceAndAnswerLost, Fate::Cut];
    assert!(kinds.iter().all(|kind| fates.get(kind).is_some_and(|count| *count > 5)), "{fates:?}");
    let answers: Vec<Message> = proxy.seen(|seen| seen.answers.values().flatten().cloned().collect());
    let count = |status: u16, path: &str| {
        answers.iter().filter(|a| a.status() == status && a.ledger("path") == Some(path)).count()
    };
    eprintln!("{fates:?}");
    for (status, path) in [
        (200, "first_run"),
        (200, "retry_after_failure"),
        (200, "duplicate_done"),
        (409, "in_progress_elsewhere"),
        (409, "first_run"),
        (503, "first_run"),
    ] {
        eprintln!("{status} {path}: {}", count(status, path));
        // Whether two requests meet while the first is at work is up to the machine.
        assert!(status == 409 || count(status, path) > 5, "{status} {path}");
    }
}

async fn redeliveries_get_the_stored_answer(
    proxy: &Proxy,
    receivers: [SocketAddr; 2],
    stored: &BTreeMap<String, Stored>,
) {
    for (event_id, request) in proxy.seen(|seen| seen.requests.clone()) {
        for receiver in receivers {
            let answer = deliver(receiver, &request).await;
            assert_eq!(stored[&event_id], Stored::of(&answer), "{event_id}");
            assert_eq!(Some("duplicate_done"), answer.ledger("path"), "{answer:?}");
            assert_eq!(Some("committed"), answer.ledger("outcome"), "{answer:?}");
        }
    }
}

/// A captured request under other keys, forged ones, another payload under a known key, and ones that are malformed.
async fn strangers_are_refused(proxy: &Proxy, receiver: SocketAddr, stored: &BTreeMap<String, Stored>) {
    let (event_id, known) = proxy
        .seen(|seen| seen.requests.iter().next().map(|(id, request)| (id.clone(), request.clone())))
        .unwrap();
    // The header that is not signed chooses nothing.
    let mut replayed = known.clone();
    replayed.set("idempotency-key", "another:shop_0");
    let answer = deliver(receiver, &replayed).await;
    assert_eq!(stored[&event_id], Stored::of(&answer));
    assert_eq!(Some("duplicate_done"), answer.ledger("path"), "{answer:?}");

    let mut renamed = known.clone();
    renamed.set("webhook-id", "another");
    assert_eq!(401, deliver(receiver, &renamed).await.status());
    let forged = with_body(&known, b"{\"amount\":1000000}");
    assert_eq!(401, deliver(receiver, &forged).await.status());

    let other = signed(&forged, known.needs("webhook-id"));
    assert_eq!(422, deliver(receiver, &other).await.status());

    let mut nameless = known.clone();
    nameless.remove("webhook-id");
    assert_eq!(400, deliver(receiver, &nameless).await.status());
    let long = signed(&known, &"x".repeat(322));
    assert_eq!(400, deliver(receiver, &long).await.status(), "longer than the table allows");
    for body in ["{}", "[]", "null", "{\"amount\":\"1\"}", "{\"amount\":1.5}", "{\"am"] {
        let malformed = signed(&with_body(&known, body.as_bytes()), "malformed");
        assert_eq!(400, deliver(receiver, &malformed).await.status(), "{body}");
    }
}

fn with_body(request: &Message, body: &[u8]) -> Message {
    let mut request = Message { body: body.to_vec(), ..request.clone() };
    request.set("content-length", &body.len().to_string());
    request
}

/// As the sender would send it under this id.
fn signed(request: &Message, webhook_id: &str) -> Message {
    let mut request = request.clone();
    let timestamp = request.needs("webhook-timestamp").parse().unwrap();
    let signature = Signer::new(&[SECRET]).unwrap().sign(webhook_id, timestamp, &request.body);
    request.set("webhook-id", webhook_id);
    request.set("webhook-signature", &signature);
    request
}
