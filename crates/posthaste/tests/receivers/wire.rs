//! HTTP/1.1 messages as bytes: read whole, written again as they came.

use std::fmt::Write as _;

use tokio::{io::AsyncReadExt, net::TcpStream};

/// A request or an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The request line or the status line.
    pub(crate) start: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// The next whole message; nothing if the connection ends before. What follows it stays in `received`.
    pub(crate) async fn read(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<Self> {
        let head_end = loop {
            if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            more(stream, received).await?;
        };
        let head = String::from_utf8(received[..head_end].to_vec()).unwrap();
        let mut lines = head.lines();
        let start = lines.next().unwrap().to_owned();
        let header = |line: &str| {
            line.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let mut message = Self { start, headers: lines.filter_map(header).collect(), body: Vec::new() };
        let length: usize = message.needs("content-length").parse().unwrap();
        while received.len() < head_end + length {
            more(stream, received).await?;
        }
        let rest = received.split_off(head_end + length);
        message.body = received.split_off(head_end);
        *received = rest;
        Some(message)
    }

    /// The bytes of the message, for a connection that carries nothing else.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut head = format!("{}\r\n", self.start);
        for (name, value) in self.headers.iter().filter(|(name, _)| name != "connection") {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        head.push_str("connection: close\r\n\r\n");
        [head.as_bytes(), &self.body].concat()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A header that must be there.
    pub(crate) fn needs(&self, name: &str) -> &str {
        self.header(name).unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }

    /// Sets a header that must be there.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        let header = self.headers.iter_mut().find(|(known, _)| known == name);
        value.clone_into(&mut header.unwrap_or_else(|| panic!("no {name}")).1);
    }

    /// Takes away a header that must be there.
    pub(crate) fn remove(&mut self, name: &str) {
        self.needs(name);
        self.headers.retain(|(known, _)| known != name);
    }

    /// Of an answer.
    pub(crate) fn status(&self) -> u16 {
        self.start.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// A part of `posthaste-ledger: path=…, outcome=…, attempt=…`.
    pub(crate) fn ledger(&self, part: &str) -> Option<&str> {
        let parts = self.header("posthaste-ledger")?.split(", ");
        parts.filter_map(|part| part.split_once('=')).find(|(name, _)| *name == part).map(|(_, value)| value)
    }
}

async fn more(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<()> {
    let count = stream.read_buf(received).await.ok()?;
    (count > 0).then_some(())
}
