//! A raw TCP receiver that follows a script, and reports what it saw.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use super::within_bound;

/// One thing a receiver does with a connection.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Reads one request, head and body by `content-length`, and reports it.
    ReadRequest,
    /// Reads the first byte of a request and no more.
    ReadOneByte,
    /// Does nothing for this long.
    Pause(Duration),
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Writes these bytes one at a time, forever, with a pause after each.
    Drip(Vec<u8>),
    /// Writes these bytes again and again, as fast as they are taken.
    Flood(Vec<u8>),
    /// Reads until the sender is gone, and reports that.
    AwaitEnd,
    /// Neither reads nor writes, and keeps the connection.
    Freeze,
    /// Closes with a reset.
    Reset,
}

/// The pause of [`Act::Drip`]: short, since what matters is that it never stops.
const DRIP_PAUSE: Duration = Duration::from_millis(20);

/// A running receiver.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    requests: mpsc::UnboundedReceiver<Vec<u8>>,
    ends: mpsc::UnboundedReceiver<()>,
}

#[derive(Clone)]
struct Reports {
    requests: mpsc::UnboundedSender<Vec<u8>>,
    ends: mpsc::UnboundedSender<()>,
}

impl Receiver {
    /// Listens on 127.0.0.1 and plays `scripts[n]` on the nth connection; the last one is for all later ones.
    pub(crate) async fn start(scripts: Vec<Vec<Act>>) -> Self {
        Self::start_at("127.0.0.1:0", scripts).await
    }

    pub(crate) async fn start_at(address: &str, scripts: Vec<Vec<Act>>) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let (receiver, reports) = Self::listening(&listener);
        let accepted = Arc::clone(&receiver.accepted);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let index = accepted.fetch_add(1, Ordering::SeqCst);
                let script = scripts[index.min(scripts.len() - 1)].clone();
                let reports = reports.clone();
                tokio::spawn(async move {
                    match script.last() {
                        Some(Act::Reset) => play_and_reset(stream, script, reports).await,
                        _ => play(stream, script, reports).await,
                    }
                });
            }
        });
        receiver
    }

    /// As [`Receiver::start`], with TLS before the script.
    pub(crate) async fn start_tls(tls: tokio_rustls::TlsAcceptor, script: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (receiver, reports) = Self::listening(&listener);
        let accepted = Arc::clone(&receiver.accepted);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                accepted.fetch_add(1, Ordering::SeqCst);
                let (tls, script, reports) = (tls.clone(), script.clone(), reports.clone());
                tokio::spawn(async move {
                    if let Ok(stream) = tls.accept(stream).await {
                        play(stream, script, reports).await;
                    }
                });
            }
        });
        receiver
    }

    fn listening(listener: &TcpListener) -> (Self, Reports) {
        let (requests, requests_seen) = mpsc::unbounded_channel();
        let (ends, ends_seen) = mpsc::unbounded_channel();
        let receiver = Self {
            address: listener.local_addr().unwrap(),
            accepted: Arc::new(AtomicUsize::new(0)),
            requests: requests_seen,
            ends: ends_seen,
        };
        (receiver, Reports { requests, ends })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Connections accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// The next request read, as text.
    pub(crate) async fn request(&mut self) -> String {
        let bytes = within_bound(self.requests.recv()).await.unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Waits until the sender has closed a connection on which the script awaits that.
    pub(crate) async fn ended(&mut self) {
        within_bound(self.ends.recv()).await.unwrap();
    }
}

/// A script that answers every request of a connection with `answer`.
pub(crate) fn answering(answer: &str, times: usize) -> Vec<Act> {
    let round = [Act::ReadRequest, Act::Write(answer.into())];
    round.into_iter().cycle().take(times * 2).chain([Act::AwaitEnd]).collect()
}

async fn play_and_reset(mut stream: TcpStream, script: Vec<Act>, reports: Reports) {
    for act in script {
        perform(&mut stream, act, &reports).await;
    }
    stream.set_zero_linger().unwrap();
}

async fn play<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, script: Vec<Act>, reports: Reports) {
    for act in script {
        perform(&mut stream, act, &reports).await;
    }
    let _ = stream.shutdown().await;
}

async fn perform<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, act: Act, reports: &Reports) {
    match act {
        Act::ReadRequest => {
            if let Some(request) = read_request(stream).await {
                let _ = reports.requests.send(request);
            }
        }
        Act::ReadOneByte => drop(stream.read_u8().await),
        Act::Pause(duration) => tokio::time::sleep(duration).await,
        Act::Write(bytes) => drop(stream.write_all(&bytes).await),
        Act::Drip(bytes) => {
            for byte in bytes.iter().cycle() {
                if stream.write_all(&[*byte]).await.is_err() {
                    break;
                }
                tokio::time::sleep(DRIP_PAUSE).await;
            }
            let _ = reports.ends.send(());
        }
        Act::Flood(bytes) => {
            while stream.write_all(&bytes).await.is_ok() {}
            let _ = reports.ends.send(());
        }
        Act::AwaitEnd => {
            let mut buffer = vec![0; 64 * 1024];
            while matches!(stream.read(&mut buffer).await, Ok(1..)) {}
            let _ = reports.ends.send(());
        }
        Act::Freeze => std::future::pending().await,
        Act::Reset => {}
    }
}

async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> Option<Vec<u8>> {
    let mut request = Vec::new();
    loop {
        let missing = missing_bytes(&request);
        if missing == 0 {
            return Some(request);
        }
        let mut buffer = vec![0; missing];
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        request.extend_from_slice(&buffer[..count]);
    }
}

/// How many bytes to read next: one at a time until the head is there.
fn missing_bytes(request: &[u8]) -> usize {
    let Some(head) = request.windows(4).position(|four| four == b"\r\n\r\n") else { return 1 };
    let text = String::from_utf8_lossy(&request[..head]).to_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.parse().unwrap());
    (head + 4 + length).saturating_sub(request.len())
}
