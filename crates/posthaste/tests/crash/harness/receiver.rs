//! The receiver of every endpoint: writes down what comes, and answers by chance.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use posthaste_testkit::history::record::{Delivery, Record, Response};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{chance::Chance, log::Log, message::hash};

/// From which attempt on everything is taken, so that the end comes.
const ATTEMPTS_UNTIL_TAKEN: u64 = 4;

/// Listens, and serves until the runtime ends.
pub(crate) async fn start(seed: u64, log: Arc<Log>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            tokio::spawn(serve(stream, seed, Arc::clone(&log)));
        }
    });
    address
}

async fn serve(mut stream: TcpStream, seed: u64, log: Arc<Log>) {
    let mut received = Vec::new();
    while let Some(request) = Request::read(&mut stream, &mut received).await {
        let arrived_at = log.now();
        let chance =
            Chance::of(seed, &format!("{} {}", request.header("idempotency-key"), request.attempt()));
        let answer = decide(chance, &request);
        if let Some(wait) = answer.wait {
            tokio::time::sleep(wait).await;
        }
        let written = match &answer.text {
            Some(text) => stream.write_all(text.as_bytes()).await.is_ok(),
            None => false,
        };
        log.add(Record::Delivery(Delivery {
            endpoint: request.path.trim_start_matches('/').to_owned(),
            webhook_id: request.header("webhook-id").to_owned(),
            event_id: request.header("idempotency-key").to_owned(),
            attempt: request.attempt(),
            body_hash: hash(&request.body),
            arrived_at,
            response: Response {
                status: answer.status,
                written,
                retry_after_ms: answer.retry_after_ms,
                at: log.now(),
            },
        }));
        if !written {
            return;
        }
    }
}

/// How a request is answered.
struct Decision {
    wait: Option<Duration>,
    status: Option<u16>,
    retry_after_ms: Option<i64>,
    /// Nothing: the connection is closed.
    text: Option<String>,
}

fn decide(mut chance: Chance, request: &Request) -> Decision {
    let fate = if request.attempt() >= ATTEMPTS_UNTIL_TAKEN { 999 } else { chance.within(0..1_000) };
    let (status, wait) = match fate {
        0..60 => (Some(500), None),
        60..63 => (Some(503), None),
        63..90 => (None, None),
        // Longer than the endpoint's timeout.
        90..93 => (Some(200), Some(Duration::from_millis(1_500))),
        93..96 => (Some(400), None),
        96..196 => (Some(200), Some(Duration::from_millis(chance.within(1..200)))),
        _ => (Some(200), None),
    };
    let retry_after_ms = (status == Some(503)).then_some(1_000);
    let retry_after = if retry_after_ms.is_some() { "retry-after: 1\r\n" } else { "" };
    let text = status.map(|status| format!("HTTP/1.1 {status} .\r\n{retry_after}content-length: 0\r\n\r\n"));
    Decision { wait, status, retry_after_ms, text }
}

struct Request {
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// The next whole request; nothing if the connection ends before.
    async fn read(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<Self> {
        let head_end = loop {
            if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            more(stream, received).await?;
        };
        let head = String::from_utf8(received[..head_end].to_vec()).unwrap();
        let mut lines = head.lines();
        let path = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
        let header = |line: &str| {
            line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        };
        let headers = lines.filter_map(header).collect();
        let mut request = Self { path, headers, body: Vec::new() };
        let length: usize = request.header("content-length").parse().unwrap();
        while received.len() < head_end + length {
            more(stream, received).await?;
        }
        let rest = received.split_off(head_end + length);
        request.body = received.split_off(head_end);
        *received = rest;
        Some(request)
    }

    /// What the sender always says.
    fn header(&self, name: &str) -> &str {
        let value = self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        value.unwrap_or_else(|| panic!("no {name} in {:?}", self.headers))
    }

    fn attempt(&self) -> u64 {
        self.header("posthaste-attempt").parse().unwrap()
    }
}

async fn more(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<()> {
    let count = stream.read_buf(received).await.ok()?;
    (count > 0).then_some(())
}
