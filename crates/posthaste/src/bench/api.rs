//! The bench as operator and worker: one kept-alive connection to its own server, a call at a time.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{requests::api_request, wire};

/// An answer that takes longer has not come.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A connection to a server on this machine.
pub(super) struct Api {
    stream: TcpStream,
    api_key: SecretString,
    input: Vec<u8>,
}

impl Api {
    pub(super) fn connect(address: SocketAddr, api_key: &SecretString) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).context("the server can't be reached")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { stream, api_key: api_key.clone(), input: Vec::new() })
    }

    /// A `POST` that must succeed.
    pub(super) fn post(&mut self, path: &str, body: &str) -> anyhow::Result<Value> {
        self.send(path, body)?;
        self.receive()
    }

    /// A `POST` that must succeed, its answer as text: cheaper than reading a long one.
    pub(super) fn post_for_text(&mut self, path: &str, body: &str) -> anyhow::Result<String> {
        self.send(path, body)?;
        Ok(String::from_utf8(self.answer()?)?)
    }

    /// Sends a `POST`, without waiting for its answer.
    pub(super) fn send(&mut self, path: &str, body: &str) -> anyhow::Result<()> {
        let request = api_request(path, self.api_key.expose_secret(), None, body);
        Ok(self.stream.write_all(request.as_bytes())?)
    }

    /// Waits for the answer to what was sent; it must be good and JSON.
    pub(super) fn receive(&mut self) -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(&self.answer()?)?)
    }

    /// A `GET` that must succeed, as text.
    pub(super) fn get(&mut self, path: &str) -> anyhow::Result<String> {
        let key = self.api_key.expose_secret();
        let request = format!("GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n\r\n");
        self.stream.write_all(request.as_bytes())?;
        Ok(String::from_utf8(self.answer()?)?)
    }

    fn answer(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut scratch = [0_u8; 16 * 1024];
        loop {
            if let Some(answer) = wire::answer(&self.input)? {
                ensure!(answer.len == self.input.len(), "more came than was asked for");
                let (status, good, body) = (answer.status, answer.is_good(), answer.body.to_vec());
                self.input.clear();
                if !good {
                    bail!("the server answered {status}: {}", String::from_utf8_lossy(&body));
                }
                return Ok(body);
            }
            let count = self.stream.read(&mut scratch).context("no answer came")?;
            ensure!(count > 0, "the server closed the connection");
            self.input.extend_from_slice(&scratch[..count]);
        }
    }
}
