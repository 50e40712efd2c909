//! The end of a run: waits until nothing is left to do, then reads what became of everything.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use posthaste_testkit::history::record::{End, FinalMessage, Record, ShownAttempt, ShownJob};
use serde_json::Value;

use super::{
    client::{Answer, Call, Client},
    message::{instant, instant_of},
    stage::Stage,
};

/// How long between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// How many ask at once.
const READERS: usize = 4;

/// Waits until no job lives and no fan-out runs; false if that never came.
pub(crate) async fn settle(stage: &Stage, patience: Duration) -> bool {
    let mut client = stage.client();
    let deadline = Instant::now() + patience;
    let fans = stage.log.with(|records| {
        let publishes = records.iter().filter_map(Record::publish);
        let publishes = publishes.filter(|one| one.destinations.len() > 2).map(|publish| publish.key.clone());
        publishes.collect::<BTreeSet<_>>()
    });
    while Instant::now() < deadline {
        let mut fanned_out = true;
        for key in &fans {
            let message = get(&mut client, &format!("/v1/messages?key={key}")).await;
            fanned_out &= message.status == 404 || message.json()["fanout"] == "done";
        }
        let overview = get(&mut client, "/v1/overview").await.json();
        let live =
            ["scheduled", "leased", "retryable"].map(|state| overview["jobs"][state].as_u64().unwrap());
        if fanned_out && live.iter().sum::<u64>() == 0 {
            return true;
        }
        tokio::time::sleep(LOOK).await;
    }
    false
}

async fn get(client: &mut Client, path: &str) -> Answer {
    let call = client.api("GET", path, "").await;
    call.and_then(|call| call.answer).unwrap_or_else(|| panic!("no answer to {path}"))
}

/// Reads every job, and every message that anybody offered.
pub(crate) async fn read_all(stage: &Arc<Stage>, quiescence: bool) {
    let jobs = all_jobs(stage).await;
    let keys: BTreeSet<String> = stage.log.with(|records| {
        records.iter().filter_map(Record::publish).map(|publish| publish.key.clone()).collect()
    });
    let keys: Vec<_> = keys.into_iter().collect();
    let readers = (0..READERS).map(|reader| {
        let stage = Arc::clone(stage);
        let mine = |all: &[String]| all.iter().skip(reader).step_by(READERS).cloned().collect::<Vec<_>>();
        let (jobs, keys) = (mine(&jobs), mine(&keys));
        tokio::spawn(async move {
            let mut client = stage.client();
            for job in jobs {
                let shown = show(&mut client, &job).await.expect("the server is up");
                stage.log.add(Record::FinalJob(shown));
            }
            for key in keys {
                stage.log.add(Record::FinalMessage(message(&mut client, key).await));
            }
        })
    });
    for reader in readers.collect::<Vec<_>>() {
        reader.await.unwrap();
    }
    stage.log.add(Record::End(End { quiescence }));
}

async fn all_jobs(stage: &Stage) -> Vec<String> {
    let mut client = stage.client();
    let (mut jobs, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(&mut client, &format!("/v1/jobs?order=oldest&limit=500{cursor}")).await.json();
        let ids = page["data"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned());
        jobs.extend(ids);
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return jobs,
        }
    }
}

async fn message(client: &mut Client, key: String) -> FinalMessage {
    let answer = get(client, &format!("/v1/messages?key={key}")).await;
    assert!([200, 404].contains(&answer.status), "{}", String::from_utf8_lossy(&answer.body));
    let said = answer.json();
    FinalMessage {
        key,
        message_id: said["id"].as_str().map(str::to_owned),
        jobs_total: said["jobs_total"].as_u64().unwrap_or_default(),
        fanout: said["fanout"].as_str().unwrap_or_default().to_owned(),
    }
}

/// A job as the API shows it; nothing if it could not be asked, or did not answer with a job.
pub(crate) async fn show(client: &mut Client, job: &str) -> Option<ShownJob> {
    let Call { invoked_at, answer } = client.api("GET", &format!("/v1/jobs/{job}"), "").await?;
    let answer = answer.filter(|answer| answer.status == 200)?;
    let said = answer.json();
    let text = |field: &str| said[field].as_str().unwrap().to_owned();
    Some(ShownJob {
        invoked_at,
        answered_at: answer.answered_at,
        job: text("id"),
        event_id: text("event_id"),
        key: text("key"),
        message_id: text("message_id"),
        destination: text("destination"),
        kind: text("kind"),
        state: text("state"),
        scheduled_at: instant(&text("scheduled_at")),
        attempts: said["attempts"].as_array().unwrap().iter().map(attempt).collect(),
    })
}

fn attempt(said: &Value) -> ShownAttempt {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let late = &said["late"];
    ShownAttempt {
        attempt: said["attempt"].as_u64().unwrap(),
        outcome: text(&said["outcome"]),
        status: said["status"].as_u64().map(|status| u16::try_from(status).unwrap()),
        effect: text(&said["effect"]),
        due_at: instant_of(&said["due_at"]).unwrap(),
        leased_at: instant_of(&said["leased_at"]).unwrap(),
        finished_at: instant_of(&said["finished_at"]),
        next_at: instant_of(&said["next_at"]),
        commit_heard: !said["commit_heard_at"].is_null(),
        late_outcome: if late["accepted"] == true { text(&late["outcome"]) } else { None },
    }
}
