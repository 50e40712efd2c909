//! A plain HTTP/1.1 client that keeps its connection, and that knows the difference between "not sent" and "not answered".

use std::{fmt::Write as _, net::SocketAddr, sync::Arc, time::Duration};

use posthaste_testkit::history::record::HarnessAt;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::log::Log;

/// The admin key of every server here.
pub(crate) const KEY: &str = "phk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// After which a call counts as not answered.
const PATIENCE: Duration = Duration::from_secs(10);

/// An answer that came whole.
pub(crate) struct Answer {
    pub(crate) answered_at: HarnessAt,
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no JSON: {} {}", self.status, String::from_utf8_lossy(&self.body)))
    }
}

/// A call that may have reached the server.
pub(crate) struct Call {
    pub(crate) invoked_at: HarnessAt,
    /// Nothing if no whole answer came.
    pub(crate) answer: Option<Answer>,
}

/// One connection, made anew when it broke.
pub(crate) struct Client {
    address: SocketAddr,
    log: Arc<Log>,
    stream: Option<TcpStream>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, log: Arc<Log>) -> Self {
        Self { address, log, stream: None }
    }

    /// Calls the API with its key. Nothing if nobody accepted the connection.
    pub(crate) async fn api(&mut self, method: &str, path: &str, body: &str) -> Option<Call> {
        let headers = [("content-type", "application/json"), ("authorization", &format!("Bearer {KEY}"))];
        self.call(method, path, &headers, body.as_bytes()).await
    }

    /// Calls with exactly these headers.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Option<Call> {
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        head.push_str("\r\n");
        let request = [head.as_bytes(), body].concat();
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => timeout(PATIENCE, TcpStream::connect(self.address)).await.ok()?.ok()?,
        };
        let invoked_at = self.log.now();
        let answered = timeout(PATIENCE, exchange(&mut stream, &request)).await.ok().flatten();
        let answer = answered.map(|(status, body)| Answer { answered_at: self.log.now(), status, body });
        if answer.is_some() {
            self.stream = Some(stream);
        }
        Some(Call { invoked_at, answer })
    }
}

async fn exchange(stream: &mut TcpStream, request: &[u8]) -> Option<(u16, Vec<u8>)> {
    stream.write_all(request).await.ok()?;
    let mut received = Vec::new();
    let (head_end, status, length) = loop {
        if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            let (status, length) = read_head(&received[..end]);
            break (end + 4, status, length);
        }
        more(stream, &mut received).await?;
    };
    while received.len() < head_end + length {
        more(stream, &mut received).await?;
    }
    assert_eq!(head_end + length, received.len(), "nothing follows an answer");
    Some((status, received.split_off(head_end)))
}

async fn more(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<()> {
    let count = stream.read_buf(received).await.ok()?;
    (count > 0).then_some(())
}

fn read_head(head: &[u8]) -> (u16, usize) {
    let head = std::str::from_utf8(head).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut lines = head.lines();
    let length =
        lines.find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    (status, length.map_or(0, |length| length.parse().unwrap()))
}
