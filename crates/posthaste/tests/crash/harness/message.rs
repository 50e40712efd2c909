//! Messages, and the requests that offer them.

use std::fmt::Write as _;

use aws_lc_rs::{digest, hmac};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use posthaste_testkit::history::record::{JobLine, Publish, PublishAnswer, Record, ServerAt, Way};
use serde_json::{Value, json};

use super::{
    chance::Chance,
    client::{Answer, Call, Client},
    configuration::{FAN_TYPE, GITHUB_SECRET, QUEUES, SOURCE, STEADY, fan, steady},
    log::Log,
};

/// A hash of bytes, short enough to be read.
pub(crate) fn hash(bytes: &[u8]) -> String {
    hex(&digest::digest(&digest::SHA256, bytes).as_ref()[..10])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// An instant of the server's.
pub(crate) fn instant(text: &str) -> ServerAt {
    let instant: jiff::Timestamp = text.parse().unwrap_or_else(|_| panic!("no instant: {text}"));
    ServerAt(instant.as_millisecond())
}

/// The same of a JSON value, if there is one.
pub(crate) fn instant_of(value: &Value) -> Option<ServerAt> {
    value.as_str().map(instant)
}

/// A message that somebody wants to have delivered.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Intake puts the source's name before it.
    pub(crate) key: String,
    pub(crate) way: Way,
    destinations: Vec<String>,
    body: Vec<u8>,
    is_json: bool,
    delay_ms: Option<i64>,
    due_at: Option<ServerAt>,
}

impl Message {
    /// One to a queue or to some of the steady endpoints.
    pub(crate) fn new(key: String, way: Way, chance: &mut Chance) -> Self {
        let is_json = chance.permille(800);
        let body = if is_json {
            json_body(&key, chance)
        } else {
            (0..chance.within(0..300)).map(|_| chance.byte()).collect()
        };
        let destinations = if chance.permille(550) {
            vec![QUEUES[usize::from(chance.permille(300))].0.to_owned()]
        } else {
            let first = chance.within(0..STEADY);
            let second = (first + 1) % STEADY;
            if chance.permille(300) { vec![steady(first), steady(second)] } else { vec![steady(first)] }
        };
        let (delay_ms, due_at) = match chance.within(0..100) {
            0..6 => (Some(i64::try_from(chance.within(300..2_000)).unwrap()), None),
            6..10 => {
                let later = i64::try_from(chance.within(300..2_000)).unwrap();
                (None, Some(ServerAt(jiff::Timestamp::now().as_millisecond() + later)))
            }
            _ => (None, None),
        };
        Self { key, way, destinations, body, is_json, delay_ms, due_at }
    }

    /// One that GitHub delivers.
    pub(crate) fn intake(delivery: &str, chance: &mut Chance) -> Self {
        Self {
            key: delivery.to_owned(),
            way: Way::Intake,
            destinations: vec![QUEUES[0].0.to_owned()],
            body: json_body(delivery, chance),
            is_json: true,
            delay_ms: None,
            due_at: None,
        }
    }

    /// One to every endpoint of the fleet.
    pub(crate) fn fan_out(key: String, subscribers: u64, chance: &mut Chance) -> Self {
        Self {
            way: Way::Publish,
            destinations: (0..subscribers).map(fan).collect(),
            body: json_body(&key, chance),
            key,
            is_json: true,
            delay_ms: None,
            due_at: None,
        }
    }

    /// The same key for something else.
    pub(crate) fn with_other_body(&self) -> Self {
        Self { body: [&self.body[..], b" "].concat(), is_json: false, ..self.clone() }
    }

    fn is_fan_out(&self) -> bool {
        self.destinations.len() > 2
    }

    /// The message's key on the server.
    fn full_key(&self) -> String {
        if self.way == Way::Intake { format!("{SOURCE}:{}", self.key) } else { self.key.clone() }
    }

    /// The request to publish it, its JSON byte for byte as it is.
    pub(crate) fn request(&self) -> String {
        let mut fields = vec![format!("\"key\":\"{}\"", self.key)];
        if self.is_fan_out() {
            fields.push(format!("\"type\":\"{FAN_TYPE}\""));
        } else if QUEUES.iter().any(|(queue, _)| *queue == self.destinations[0]) {
            fields.push(format!("\"to\":{}", json!({"queue": self.destinations[0]})));
        } else {
            fields.push(format!("\"to\":{}", json!({"endpoints": self.destinations})));
        }
        if self.is_json {
            fields.push(format!("\"payload\":{}", std::str::from_utf8(&self.body).unwrap()));
        } else {
            fields.push(format!("\"payload_base64\":\"{}\"", BASE64_STANDARD.encode(&self.body)));
        }
        if let Some(delay_ms) = self.delay_ms {
            fields.push(format!("\"delay\":\"{delay_ms}ms\""));
        }
        if let Some(due_at) = self.due_at {
            fields.push(format!("\"due_at\":\"{}\"", jiff::Timestamp::from_millisecond(due_at.0).unwrap()));
        }
        format!("{{{}}}", fields.join(","))
    }

    /// Offers it once, alone. Nothing if it could not be sent; else the status, if there was an answer.
    pub(crate) async fn offer(&self, client: &mut Client, log: &Log) -> Option<Option<u16>> {
        let call = match self.way {
            Way::Intake => self.deliver(client).await?,
            Way::Publish | Way::Batch => client.api("POST", "/v1/messages", &self.request()).await?,
        };
        let answer = call.answer.as_ref().map(|answer| said(answer, &answer.json(), answer.status));
        let status = answer.as_ref().map(|answer| answer.status);
        log.add(Record::Publish(self.record(&call, answer)));
        Some(status)
    }

    async fn deliver(&self, client: &mut Client) -> Option<Call> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, GITHUB_SECRET.as_bytes());
        let signature = format!("sha256={}", hex(hmac::sign(&key, &self.body).as_ref()));
        let headers = [
            ("content-type", "application/json"),
            ("x-github-event", "push"),
            ("x-github-delivery", self.key.as_str()),
            ("x-hub-signature-256", signature.as_str()),
        ];
        client.call("POST", &format!("/in/{SOURCE}"), &headers, &self.body).await
    }

    fn record(&self, call: &Call, answer: Option<PublishAnswer>) -> Publish {
        Publish {
            way: self.way,
            key: self.full_key(),
            destinations: self.destinations.clone(),
            body_hash: hash(&self.body),
            terms: format!(
                "{} {:?} {:?} {:?}",
                self.is_json,
                self.destinations.first(),
                self.delay_ms,
                self.due_at
            ),
            delay_ms: self.delay_ms,
            due_at: self.due_at,
            invoked_at: call.invoked_at,
            answer,
        }
    }
}

/// Offers many in one commit. Nothing if it could not be sent; false if there is no answer that holds for all.
pub(crate) async fn offer_batch(messages: &[Message], client: &mut Client, log: &Log) -> Option<bool> {
    let requests: Vec<_> = messages.iter().map(Message::request).collect();
    let call = client
        .api("POST", "/v1/messages/batch", &format!("{{\"messages\":[{}]}}", requests.join(",")))
        .await?;
    let whole = call.answer.as_ref().map(|answer| (answer, answer.json()));
    let done = call.answer.as_ref().is_some_and(|answer| answer.status == 200);
    for (at, message) in messages.iter().enumerate() {
        let answer = whole.as_ref().map(|(answer, whole)| {
            let item = &whole["results"][at];
            match item["status"].as_u64() {
                Some(status) => said(answer, item, u16::try_from(status).unwrap()),
                None => said(answer, whole, answer.status),
            }
        });
        log.add(Record::Publish(message.record(&call, answer)));
    }
    Some(done)
}

fn said(answer: &Answer, json: &Value, status: u16) -> PublishAnswer {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let lines = json["jobs"].as_array().into_iter().flatten();
    PublishAnswer {
        answered_at: answer.answered_at,
        status,
        code: text(&json["code"]),
        path: text(&json["path"]),
        message_id: if status < 300 {
            text(&json["message_id"]).or(text(&json["message"]["id"]))
        } else {
            None
        },
        jobs_total: json["jobs_total"].as_u64(),
        jobs: lines
            .map(|line| JobLine {
                job: line["id"].as_str().unwrap().to_owned(),
                event_id: line["event_id"].as_str().unwrap().to_owned(),
                state: line["state"].as_str().unwrap().to_owned(),
            })
            .collect(),
    }
}

/// JSON as no library would write it.
fn json_body(key: &str, chance: &mut Chance) -> Vec<u8> {
    let (n, filler) =
        (chance.within(0..1_000_000), "x".repeat(usize::try_from(chance.within(0..400)).unwrap()));
    format!("{{\"n\" : {n}.50,  \"of\":\"{key}\",\"\\u0066iller\":\"{filler}\"}}").into_bytes()
}
