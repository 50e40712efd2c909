//! A real server in this process on a free port, and a plain HTTP/1.1 client that keeps its connection.
#![allow(dead_code, reason = "each test program uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

use std::{
    fmt::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use posthaste::{
    config::{self, Sources},
    serve::{self, Running},
};
use secrecy::ExposeSecret;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The secret of the source `github`.
pub(crate) const GITHUB_SECRET: &str = "it's a secret to everybody";

/// How long any one answer may take before the test says where it hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server whose store lives in a folder that is removed at the end.
pub(crate) struct Server {
    pub(crate) running: Running,
    pub(crate) key: String,
    pub(crate) folder: tempfile::TempDir,
}

impl Server {
    /// A server with a source `github`, a queue `carts`, and `more` configuration.
    pub(crate) async fn start(more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = config::load(&sources(folder.path(), more)).unwrap_or_else(|faults| panic!("{faults}"));
        let running = serve::start(&config).await.unwrap();
        let key = running.admin_key.as_ref().unwrap().expose_secret().to_owned();
        Self { running, key, folder }
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection::to(self.running.address, &self.key).await
    }
}

fn sources(folder: &Path, more: &str) -> Sources {
    Sources { file: Some(write_config(folder, more)), flags: Vec::new(), variables: Vec::new() }
}

/// Writes `posthaste.toml` with a source `github`, a queue `carts`, and `more`.
pub(crate) fn write_config(folder: &Path, more: &str) -> PathBuf {
    let secret = folder.join("github.secret");
    std::fs::write(&secret, GITHUB_SECRET).unwrap();
    let text = format!(
        "store = \"sqlite:{}\"\nlisten = \"127.0.0.1:0\"\n{more}\n\
         [[source]]\nname = \"github\"\nscheme = \"github\"\nsecrets = [\"file:{}\"]\nto = {{ queue = \"carts\" }}\n\
         [[queue]]\nname = \"carts\"\n",
        folder.join("posthaste.db").display(),
        secret.display(),
    );
    let file = folder.join("posthaste.toml");
    std::fs::write(&file, text).unwrap();
    file
}

/// One kept-alive connection.
pub(crate) struct Connection {
    stream: TcpStream,
    key: Option<String>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?} is no JSON"))
    }
}

impl Connection {
    pub(crate) async fn to(address: SocketAddr, key: &str) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap(), key: Some(key.to_owned()) }
    }

    pub(crate) fn local_port(&self) -> u16 {
        self.stream.local_addr().unwrap().port()
    }

    /// A call of the API.
    pub(crate) async fn call(&mut self, method: &str, path: &str, body: &Value) -> Answer {
        let bearer = self.key.as_ref().map(|key| format!("Bearer {key}"));
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        headers.extend(bearer.map(|bearer| ("authorization".to_owned(), bearer)));
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.send(method, path, &headers, &body).await
    }

    /// Any request.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Answer {
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        head.push_str("\r\n");
        let mut request = head.into_bytes();
        request.extend_from_slice(body);
        self.stream.write_all(&request).await.unwrap();
        let answered = tokio::time::timeout(PATIENCE, self.answer()).await;
        answered.unwrap_or_else(|_| panic!("no answer to {method} {path}"))
    }

    async fn answer(&mut self) -> Answer {
        let mut received = Vec::new();
        let head_end = loop {
            if let Some(at) = received.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            let count = self.stream.read_buf(&mut received).await.unwrap();
            assert!(count > 0, "the server closed the connection");
        };
        let head = String::from_utf8(received[..head_end].to_vec()).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
        while received.len() < head_end + length {
            let count = self.stream.read_buf(&mut received).await.unwrap();
            assert!(count > 0, "the server closed the connection");
        }
        Answer { status, headers, body: received[head_end..head_end + length].to_vec() }
    }
}

/// The headers of a delivery that GitHub signed.
pub(crate) fn github_headers(delivery: &str, body: &[u8]) -> Vec<(String, String)> {
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, GITHUB_SECRET.as_bytes());
    let digits = aws_lc_rs::hmac::sign(&key, body).as_ref().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    });
    [
        ("content-type", "application/json"),
        ("x-github-event", "push"),
        ("x-github-delivery", delivery),
        ("x-hub-signature-256", &format!("sha256={digits}")),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}
