//! The steps of the story. Each shows something and checks it.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::{
    Sabotage,
    client::Answer,
    narrator::Narrator,
    provider,
    stage::Stage,
    subscriber::{Seen, Subscriber},
};

/// How late a delayed job may be picked up on a busy machine.
const LATE_MS_MAX: i64 = 3_000;

/// The delivery id that the provider gives the push.
const DELIVERY: &str = "72d3162e-cc78-11e3-81ab-4c9367dc0958";

/// Tells the whole story; ends at the first step that does not hold.
pub(super) async fn tell(
    narrator: &mut Narrator,
    stage: &Stage,
    broken: Option<Sabotage>,
) -> anyhow::Result<()> {
    let subscriber = subscribe(narrator, stage, broken).await?;
    accept(narrator, stage, broken).await?;
    deduplicate(narrator, stage, broken).await?;
    tamper(narrator, stage, broken).await?;
    delay(narrator, stage, broken).await?;
    retry(narrator, stage, &subscriber).await?;
    fence(narrator, stage, broken).await?;
    narrator.step("Each key as one timeline: every arrow of custody has its time");
    for key in [format!("github:{DELIVERY}"), "cart:8f31:expire".to_owned(), "invoice:17:send".to_owned()] {
        narrator.timeline(&timeline(stage, &key).await?);
    }
    Ok(())
}

async fn subscribe(n: &mut Narrator, stage: &Stage, broken: Option<Sabotage>) -> anyhow::Result<Subscriber> {
    n.step("A subscriber registers: pushes of a GitHub repository are to be sent on to it, signed");
    let secret = posthaste_receiver::generate_secret()?;
    let subscriber = Subscriber::start(&secret, broken != Some(Sabotage::Retry)).await?;
    let endpoint = json!({
        "id": "warehouse",
        "url": format!("http://{}/hooks", subscriber.address),
        "types": ["push"],
        "secrets": [secret],
        "retry": { "delays": ["1s", "1s", "1s", "1s"], "jitter": 0.0 },
        "owner": "team-warehouse",
    });
    let made = stage.client().post("/v1/endpoints", &endpoint).await?;
    ensure!(made.status == 201, "registering the endpoint was answered {}: {}", made.status, made.body);
    n.held("endpoint `warehouse` takes every event of type `push`; its secret is sealed in the store");
    Ok(subscriber)
}

async fn accept(n: &mut Narrator, stage: &Stage, broken: Option<Sabotage>) -> anyhow::Result<()> {
    n.step("GitHub delivers a push: the raw bytes are verified, the delivery is claimed durably, then acknowledged");
    let body = provider::push();
    let secret = if broken == Some(Sabotage::Accept) { "another secret" } else { provider::SECRET };
    let answer =
        stage.client().signed("/in/github", &provider::headers(secret, DELIVERY, &body), body).await?;
    expect(&answer, 202, "path", "first_run")?;
    n.held(&format!("202  path first_run  key {}", text(&answer.body["key"])));
    n.aside("the answer left after the fsync that covers its row; a crash from here on loses nothing");
    Ok(())
}

async fn deduplicate(n: &mut Narrator, stage: &Stage, broken: Option<Sabotage>) -> anyhow::Result<()> {
    n.step("GitHub delivers the same push twice more, at the same moment");
    let delivery = if broken == Some(Sabotage::Duplicate) { "another-delivery" } else { DELIVERY };
    let body = provider::push();
    let headers = provider::headers(provider::SECRET, delivery, &body);
    let (one, two) = tokio::join!(
        stage.client().signed("/in/github", &headers, body.clone()),
        stage.client().signed("/in/github", &headers, body.clone()),
    );
    for answer in [one?, two?] {
        expect(&answer, 200, "path", "duplicate_done")?;
        n.held("200  path duplicate_done");
    }
    let jobs = jobs_of(stage, &format!("github:{DELIVERY}")).await?;
    ensure!(jobs.len() == 1, "one claim should have made one job, not {}", jobs.len());
    n.held("three deliveries, one claim, one job");
    Ok(())
}

async fn tamper(n: &mut Narrator, stage: &Stage, broken: Option<Sabotage>) -> anyhow::Result<()> {
    n.step("Somebody sends the push with one byte changed");
    let headers = provider::headers(provider::SECRET, "forged-delivery", &provider::push());
    let mut body = provider::push().to_vec();
    if broken != Some(Sabotage::Tamper) {
        body[10] ^= 1;
    }
    let answer = stage.client().signed("/in/github", &headers, body.into()).await?;
    expect(&answer, 401, "code", "signature_invalid")?;
    let found = stage.client().get("/v1/messages?key=github:forged-delivery").await?;
    ensure!(found.status == 404, "a forged request was stored");
    n.held("401  signature_invalid: nothing was stored, and the rejection is counted");
    Ok(())
}

async fn delay(n: &mut Narrator, stage: &Stage, broken: Option<Sabotage>) -> anyhow::Result<()> {
    n.step("A cart is to expire in two seconds, unless it is bought: a delayed job for the queue `carts`");
    let delay = if broken == Some(Sabotage::Delay) { "0s" } else { "2s" };
    let message = json!({
        "queue": "carts", "key": "cart:8f31:expire", "payload": { "cart": "8f31" }, "delay": delay,
    });
    let answer = stage.client().post("/v1/queue/publish", &message).await?;
    expect(&answer, 202, "path", "first_run")?;
    let due_at = instant(&answer.body["jobs"][0]["due_at"])?;
    n.held(&format!("202  scheduled, due at {}", text(&answer.body["jobs"][0]["due_at"])));
    let early = consume(stage, "w-1", "0s", "30s").await?;
    ensure!(early.is_none(), "the job was handed out before its time");
    n.held("a worker that asks now gets nothing");
    let job = consume(stage, "w-1", "10s", "30s").await?.context("no job came in 10 s")?;
    let late_ms = instant(&job["leased_at"])? - due_at;
    ensure!((0..=LATE_MS_MAX).contains(&late_ms), "the job came {late_ms} ms after it was due");
    n.held(&format!("a worker that waits gets it {late_ms} ms after it is due, with a lease and a fence"));
    let answer = report(stage, "ack", &job, json!({ "outcome": "committed" })).await?;
    expect(&answer, 200, "state", "committed")?;
    n.held("the worker acknowledges: committed");
    Ok(())
}

async fn retry(n: &mut Narrator, stage: &Stage, subscriber: &Subscriber) -> anyhow::Result<()> {
    n.step(
        "Meanwhile the subscriber failed on the push, then asked for patience (Retry-After), then took it",
    );
    let key = format!("github:{DELIVERY}");
    let waiting = async {
        loop {
            let jobs = jobs_of(stage, &key).await?;
            match jobs.first().and_then(|job| job["state"].as_str()) {
                Some("committed") => return anyhow::Ok(()),
                Some("dead_lettered") => anyhow::bail!("the delivery was dead-lettered: {}", jobs[0]),
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(12), waiting)
        .await
        .context("the push was not delivered in 12 s")??;
    let seen = subscriber.seen();
    let answers: Vec<u16> = seen.iter().map(|seen| seen.answered).collect();
    ensure!(answers == [500, 429, 204], "the subscriber answered {answers:?}");
    ensure!(seen.iter().all(|seen| seen.genuine), "a signature did not fit");
    let same = |of: fn(&Seen) -> &str| seen.iter().all(|one| of(one) == of(&seen[0]));
    ensure!(same(|seen| &seen.webhook_id) && same(|seen| &seen.idempotency_key), "the identity changed");
    ensure!(seen.iter().all(|seen| seen.body == provider::push()), "the bytes changed");
    n.held("500, then 429 with Retry-After, then 204: three attempts, each signed anew, each time the same webhook-id");
    n.held(&format!("idempotency-key {}: what the receiver guards its effect by", seen[0].idempotency_key));
    Ok(())
}

async fn fence(n: &mut Narrator, stage: &Stage, broken: Option<Sabotage>) -> anyhow::Result<()> {
    n.step("A worker takes an invoice, stalls, and loses its lease; another takes over; then the first one comes back");
    let message = json!({ "queue": "carts", "key": "invoice:17:send", "payload": { "invoice": 17 } });
    expect(&stage.client().post("/v1/queue/publish", &message).await?, 202, "path", "first_run")?;
    let first = consume(stage, "w-1", "5s", "1s").await?.context("no job for w-1")?;
    n.held(&format!("w-1 has attempt {} for one second, and stalls", first["attempt"]));
    if broken == Some(Sabotage::Fence) {
        report(stage, "ack", &first, json!({ "outcome": "committed" })).await?;
    }
    let second = consume(stage, "w-2", "10s", "30s").await?.context("w-2 got nothing in 10 s")?;
    ensure!(second["id"] == first["id"] && second["attempt"] == 2, "w-2 got another job: {second}");
    ensure!(second["path"] == "retry_after_failure", "the path is {}", second["path"]);
    n.held("w-2 gets attempt 2, path retry_after_failure: it knows that somebody tried before");
    let stale =
        report(stage, "reject", &first, json!({ "class": "worker", "message": "I was asleep" })).await?;
    expect(&stale, 409, "code", "stale_fence")?;
    n.held("w-1 reports a failure: 409 stale_fence, and nothing changes");
    let done = report(stage, "ack", &second, json!({ "outcome": "committed" })).await?;
    expect(&done, 200, "state", "committed")?;
    n.held("w-2 acknowledges: committed");
    Ok(())
}

async fn consume(stage: &Stage, worker: &str, wait: &str, lease: &str) -> anyhow::Result<Option<Value>> {
    let ask = json!({ "queue": "carts", "max": 1, "wait": wait, "lease": lease, "worker": worker });
    let answer = stage.client().post("/v1/queue/consume", &ask).await?;
    ensure!(answer.status == 200, "consume was answered {}: {}", answer.status, answer.body);
    Ok(answer.body["jobs"].get(0).cloned())
}

async fn report(stage: &Stage, verb: &str, job: &Value, mut body: Value) -> anyhow::Result<Answer> {
    body["job"] = job["id"].clone();
    body["fence"] = job["fence"].clone();
    stage.client().post(&format!("/v1/queue/{verb}"), &body).await
}

async fn timeline(stage: &Stage, key: &str) -> anyhow::Result<Value> {
    let answer = stage.client().get(&format!("/v1/timeline?key={key}")).await?;
    ensure!(answer.status == 200, "the timeline of {key} was answered {}: {}", answer.status, answer.body);
    let complete = ["accepted", "scheduled", "leased", "committed"].iter().all(|stage| {
        answer.body["entries"].as_array().is_some_and(|all| all.iter().any(|entry| entry["stage"] == *stage))
    });
    ensure!(complete, "the timeline of {key} lacks an arrow of custody");
    Ok(answer.body)
}

async fn jobs_of(stage: &Stage, key: &str) -> anyhow::Result<Vec<Value>> {
    let answer = stage.client().get(&format!("/v1/timeline?key={key}")).await?;
    Ok(answer.body["jobs"].as_array().cloned().unwrap_or_default())
}

fn expect(answer: &Answer, status: u16, field: &str, value: &str) -> anyhow::Result<()> {
    ensure!(
        answer.status == status && answer.body[field] == value,
        "expected {status} with {field} {value}, got {} {}",
        answer.status,
        answer.body
    );
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

fn instant(value: &Value) -> anyhow::Result<i64> {
    let instant: jiff::Timestamp = text(value).parse().with_context(|| format!("{value} is no time"))?;
    Ok(instant.as_millisecond())
}
