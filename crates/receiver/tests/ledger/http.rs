//! Paths as HTTP answers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::State,
    http::{HeaderMap, Request, StatusCode, header},
    middleware::from_fn_with_state,
    response::{IntoResponse as _, Response},
    routing::post,
};
use posthaste_receiver::ledger::{
    Answer, Claim, CommitError, Completion, Grant, LedgerError, Ran, RunError, Status,
    axum::{EventKey, Guard, guard},
    rusqlite as ledger,
};
use rusqlite::Connection;
use tower::ServiceExt as _;

use crate::support::Sqlite;

type Shared = Arc<Mutex<Connection>>;

struct Receiver {
    router: Router,
    connection: Shared,
    _sqlite: Sqlite,
}

/// Does what the delivery's body says.
async fn handler(State(connection): State<Shared>, grant: Grant, body: Bytes) -> Response {
    let answer = match &*body {
        b"empty" => Answer::none(),
        _ => Answer::new(201, "image/png", [0, 0xff, b'\n']),
    };
    let completion = match &*body {
        b"fail" => return StatusCode::BAD_GATEWAY.into_response(),
        b"refuse" => return StatusCode::UNPROCESSABLE_ENTITY.into_response(),
        b"forget" => return StatusCode::OK.into_response(),
        b"panic" => panic!("a fault in the handler"),
        b"keep" => {
            std::mem::forget(grant);
            return StatusCode::ACCEPTED.into_response();
        }
        b"cancel" => Completion::cancelled(answer),
        _ => Completion::committed(answer),
    };
    let mut connection = connection.lock().unwrap();
    let transaction = connection.transaction().unwrap();
    transaction.execute("INSERT INTO effects VALUES ('k')", []).unwrap();
    ledger::commit(transaction, grant, &completion).unwrap();
    if *body == *b"unknown" { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK }.into_response()
}

fn receiver() -> Receiver {
    let sqlite = Sqlite::new();
    let connection = sqlite.connect();
    ledger::create(&connection).unwrap();
    connection.execute_batch("CREATE TABLE effects (event_key TEXT)").unwrap();
    let connection: Shared = Arc::new(Mutex::new(connection));
    let guarded = Guard::new(Arc::clone(&connection), Duration::from_mins(1));
    let router = Router::new()
        .route("/hooks", post(handler))
        .layer(from_fn_with_state(guarded, guard::<Mutex<Connection>>))
        .with_state(Arc::clone(&connection));
    Receiver { router, connection, _sqlite: sqlite }
}

/// What the sender gets: status, headers, bytes.
type Told = (u16, HeaderMap, Vec<u8>);

impl Receiver {
    async fn send(&self, headers: &[(&str, &str)], body: &'static str) -> Told {
        let mut request = Request::post("/hooks");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
        told(response).await
    }

    async fn deliver(&self, body: &'static str) -> Told {
        self.send(&[("webhook-id", "k"), ("idempotency-key", "unsigned")], body).await
    }

    fn effects(&self) -> i64 {
        let connection = self.connection.lock().unwrap();
        connection.query_row("SELECT count(*) FROM effects", [], |row| row.get(0)).unwrap()
    }

    fn status(&self) -> Option<Status> {
        ledger::get(&self.connection.lock().unwrap(), "k").unwrap().map(|entry| entry.status)
    }
}

async fn told(response: Response) -> Told {
    let (parts, body) = response.into_parts();
    (parts.status.as_u16(), parts.headers, to_bytes(body, usize::MAX).await.unwrap().to_vec())
}

fn ledger_of(told: &Told) -> Option<&str> {
    told.1.get("posthaste-ledger").map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn r_c4_a_redelivery_gets_the_stored_answer_byte_for_byte() {
    let receiver = receiver();
    let first = receiver.deliver("").await;
    assert_eq!((first.0, &first.2[..]), (201, &[0, 0xff, b'\n'][..]));
    assert_eq!(first.1[header::CONTENT_TYPE], "image/png");
    assert_eq!(ledger_of(&first), Some("path=first_run, outcome=committed, attempt=1"));
    let again = receiver.deliver("").await;
    assert_eq!((again.0, &again.2), (first.0, &first.2));
    assert_eq!(again.1[header::CONTENT_TYPE], "image/png");
    assert_eq!(ledger_of(&again), Some("path=duplicate_done, outcome=committed, attempt=1"));
    assert_eq!(receiver.effects(), 1);
}

#[tokio::test]
async fn r_c5_a_cancelled_key_says_so_and_an_answer_may_be_empty() {
    let cancelled = receiver();
    cancelled.deliver("cancel").await;
    let again = cancelled.deliver("").await;
    assert_eq!(ledger_of(&again), Some("path=duplicate_done, outcome=cancelled, attempt=1"));
    let empty = receiver();
    let first = empty.deliver("empty").await;
    assert_eq!((first.0, ledger_of(&first)), (200, Some("path=first_run, outcome=committed, attempt=1")));
    assert_eq!((empty.deliver("").await.0, empty.effects()), (200, 1));
}

#[tokio::test]
async fn r_c3_in_progress_elsewhere_is_never_a_2xx() {
    let receiver = receiver();
    let kept = receiver.deliver("keep").await;
    assert_eq!((kept.0, ledger_of(&kept)), (409, Some("path=in_progress_elsewhere")), "its grant lives on");
    let elsewhere = receiver.deliver("").await;
    assert_eq!(elsewhere.0, 409);
    let wait: u64 = elsewhere.1[header::RETRY_AFTER].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!((receiver.effects(), receiver.status()), (0, Some(Status::InProgress)));
}

#[tokio::test]
async fn a_failed_effect_is_told_to_the_entry_and_answered_503() {
    for body in ["fail", "panic"] {
        let receiver = receiver();
        let failed = receiver.deliver(body).await;
        assert_eq!(failed.0, 503, "{body}");
        assert!(failed.1.contains_key(header::RETRY_AFTER));
        assert_eq!(receiver.status(), Some(Status::Failed));
        let again = receiver.deliver("").await;
        assert_eq!(ledger_of(&again), Some("path=retry_after_failure, outcome=committed, attempt=2"));
        assert_eq!(receiver.effects(), 1);
    }
}

#[tokio::test]
async fn a_refusal_goes_out_as_it_is() {
    let receiver = receiver();
    assert_eq!(receiver.deliver("refuse").await.0, 422);
    assert_eq!(receiver.status(), Some(Status::Failed));
}

#[tokio::test]
async fn a_2xx_without_a_completed_grant_is_not_believed() {
    let receiver = receiver();
    assert_eq!(receiver.deliver("forget").await.0, 500);
    assert_eq!(receiver.status(), Some(Status::InProgress), "nobody knows what the handler did");
}

#[tokio::test]
async fn after_a_complete_was_sent_nobody_fails() {
    let receiver = receiver();
    let unknown = receiver.deliver("unknown").await;
    assert_eq!(unknown.0, 500);
    assert!(!unknown.1.contains_key(header::RETRY_AFTER), "that would say that nothing happened");
    assert_eq!(receiver.status(), Some(Status::Done));
    assert_eq!(receiver.deliver("").await.0, 201, "the next delivery knows");
}

#[tokio::test]
async fn the_key_is_the_signed_webhook_id_or_else_the_idempotency_key() {
    let receiver = receiver();
    let none = receiver.send(&[], "").await;
    assert_eq!(none.0, 422);
    assert!(String::from_utf8(none.2).unwrap().contains("missing_key"));
    assert_eq!(receiver.send(&[("webhook-id", "k")], "").await.0, 201);
    assert_eq!(
        ledger_of(&receiver.deliver("").await),
        Some("path=duplicate_done, outcome=committed, attempt=1")
    );
    let long = "k".repeat(322);
    assert_eq!(receiver.send(&[("idempotency-key", &long)], "").await.0, 422);
    let mut headers = HeaderMap::new();
    assert_eq!(EventKey::of(&headers), None);
    headers.insert("idempotency-key", "a b".parse().unwrap());
    assert_eq!(EventKey::of(&headers), Some(EventKey("a b".to_owned())));
}

#[test]
fn a_key_beside_the_one_that_may_be_signed_is_refused() {
    let key = |lines: &[(&'static str, &str)]| {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        EventKey::of(&headers).map(|key| key.0)
    };
    let k = Some("k".to_owned());
    assert_eq!(key(&[("svix-id", "k")]), k);
    assert_eq!(key(&[("svix-id", "k"), ("webhook-id", "k"), ("idempotency-key", "other")]), k);
    for name in ["webhook-id", "svix-id", "idempotency-key"] {
        assert_eq!(key(&[(name, "k"), (name, "k")]), k);
        assert_eq!(key(&[(name, "k"), (name, "other")]), None, "{name}");
    }
    assert_eq!(key(&[("svix-id", "k"), ("webhook-id", "other")]), None, "which one was signed?");
    assert_eq!(key(&[("webhook-id", ""), ("idempotency-key", "other")]), None);
}

#[tokio::test]
async fn what_a_run_gives_is_an_answer() {
    let sqlite = Sqlite::new();
    let mut connection = sqlite.connect();
    ledger::create(&connection).unwrap();
    let claim = Claim::new("k", Duration::from_mins(1)).unwrap();
    let ran = ledger::two_tx(&mut connection, &claim, |_, _| {
        Ok::<_, String>(Completion::committed(Answer::new(200, "text/plain", "ok")))
    });
    let done = told(ran.into_response()).await;
    assert_eq!(
        (done.0, &*done.2, ledger_of(&done)),
        (200, &b"ok"[..], Some("path=first_run, outcome=committed, attempt=1"))
    );
    let error = || rusqlite::Error::InvalidQuery;
    let held = Ran::InProgressElsewhere { retry_after: None };
    for (response, status, comes_again) in [
        (held.into_response(), 409, true),
        (Ran::KeyReused.into_response(), 422, false),
        (RunError::Claim(LedgerError::Database(error())).into_response(), 503, true),
        (RunError::<rusqlite::Error>::Effect("no".into()).into_response(), 503, true),
        (
            RunError::Commit(CommitError::NotCommitted(LedgerError::Database(error()))).into_response(),
            503,
            true,
        ),
        (RunError::<rusqlite::Error>::Commit(CommitError::Superseded).into_response(), 409, true),
        (RunError::Commit(CommitError::Unknown(error())).into_response(), 500, false),
    ] {
        let told = told(response).await;
        assert_eq!((told.0, told.1.contains_key(header::RETRY_AFTER)), (status, comes_again));
    }
}
