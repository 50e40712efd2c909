//! One connection as the rest of the sender sees it: who is at the other end, and how writing to it goes.
//!
//! The HTTP client writes from a task of its own that our deadlines do not reach. So the deadline travels with the
//! connection: a receiver that stops reading cannot keep socket and buffers longer than the request that met it.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

/// What a blocked write gets at least, so that a request on a reused connection, whose deadline is set a moment after
/// it was handed over, is not judged by the deadline of the one before.
const WRITE_GRACE: Duration = Duration::from_secs(1);

/// An instant that several tasks read and move forward, to the microsecond.
#[derive(Debug)]
pub(super) struct Mark {
    origin: Instant,
    micros: AtomicU64,
}

impl Mark {
    pub(super) fn at(origin: Instant) -> Self {
        Self { origin, micros: AtomicU64::new(0) }
    }

    pub(super) fn read(&self) -> Instant {
        self.origin + Duration::from_micros(self.micros.load(Ordering::Acquire))
    }

    /// Moves the mark to `instant` unless it is already past it.
    pub(super) fn advance(&self, instant: Instant) {
        let since = instant.saturating_duration_since(self.origin).as_micros();
        self.micros.fetch_max(u64::try_from(since).unwrap_or(u64::MAX), Ordering::AcqRel);
    }
}

/// The version of HTTP spoken on a connection, which decides whether requests share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    Http2,
}

/// What is known about an open connection. Shared by the connection's task and the requests on it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) peer: SocketAddr,
    pub(super) version: Version,
    pub(super) opened_at: Instant,
    /// The last time a byte was accepted by the transport.
    written_at: Mark,
    /// When a blocked write ends the connection.
    write_by: Mark,
}

impl Link {
    pub(super) fn new(peer: SocketAddr, version: Version, write_by: Instant) -> Self {
        let opened_at = Instant::now();
        let link =
            Self { peer, version, opened_at, written_at: Mark::at(opened_at), write_by: Mark::at(opened_at) };
        link.write_by.advance(write_by);
        link
    }

    /// Lets writes take until `instant`.
    pub(super) fn extend_writes_to(&self, instant: Instant) {
        self.write_by.advance(instant);
    }

    /// When sending last moved. Always the opening for HTTP/2: its pings and other streams say nothing.
    pub(super) fn progressed_at(&self) -> Instant {
        match self.version {
            Version::Http1 => self.written_at.read(),
            Version::Http2 => self.opened_at,
        }
    }

    /// The link of a connection that [`LinkIo`] announced.
    pub(super) fn of(connected: &Connected) -> Option<Arc<Self>> {
        let mut extensions = http::Extensions::new();
        connected.get_extras(&mut extensions);
        extensions.remove::<Arc<Self>>()
    }
}

/// Counts open connections: one more while it lives.
#[derive(Debug)]
pub(super) struct OpenCount(Arc<AtomicUsize>);

impl OpenCount {
    pub(super) fn enter(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(count))
    }
}

impl Drop for OpenCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A byte stream, encrypted or not.
pub(super) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// A transport that reports to its [`Link`] and ends when a write outlives the deadline.
pub(super) struct LinkIo {
    transport: Box<dyn Transport>,
    link: Arc<Link>,
    stall: Option<Stall>,
    _open: OpenCount,
}

/// The limit of blocked writes under one deadline.
struct Stall {
    /// The deadline it was computed for; a new one gets a new limit.
    write_by: Instant,
    limit: Pin<Box<Sleep>>,
}

impl LinkIo {
    pub(super) fn new(transport: Box<dyn Transport>, link: Arc<Link>, open: OpenCount) -> Self {
        Self { transport, link, stall: None, _open: open }
    }

    /// Passes the result of a write on, or ends a write that is blocked beyond its limit.
    fn bounded<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            return poll;
        }
        loop {
            let write_by = self.link.write_by.read();
            let stall = match &mut self.stall {
                Some(stall) if stall.write_by == write_by => stall,
                stale => {
                    let limit = write_by.max(Instant::now() + WRITE_GRACE);
                    stale.insert(Stall { write_by, limit: Box::pin(tokio::time::sleep_until(limit)) })
                }
            };
            ready!(stall.limit.as_mut().poll(cx));
            if self.link.write_by.read() == write_by {
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the receiver stopped reading",
                )));
            }
        }
    }

    fn wrote(&self, poll: &Poll<io::Result<usize>>) {
        if matches!(poll, Poll::Ready(Ok(1..))) {
            self.link.written_at.advance(Instant::now());
        }
    }
}

impl AsyncRead for LinkIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_read(cx, buffer)
    }
}

impl AsyncWrite for LinkIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.transport).poll_write(cx, bytes);
        self.wrote(&poll);
        self.bounded(cx, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.transport).poll_write_vectored(cx, slices);
        self.wrote(&poll);
        self.bounded(cx, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.transport).poll_flush(cx);
        self.bounded(cx, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.transport).poll_shutdown(cx);
        self.bounded(cx, poll)
    }
}

impl Connection for LinkIo {
    fn connected(&self) -> Connected {
        let connected = Connected::new().extra(Arc::clone(&self.link));
        match self.link.version {
            Version::Http1 => connected,
            Version::Http2 => connected.negotiated_h2(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(15);

    /// A connection whose receiver reads nothing beyond eight bytes, and the receiver's end.
    fn stalled() -> (LinkIo, Arc<Link>, tokio::io::DuplexStream, Arc<AtomicUsize>) {
        let (ours, theirs) = tokio::io::duplex(8);
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let link = Arc::new(Link::new(peer, Version::Http1, Instant::now() + LIMIT));
        let open = Arc::new(AtomicUsize::new(0));
        let io = LinkIo::new(Box::new(ours), Arc::clone(&link), OpenCount::enter(&open));
        (io, link, theirs, open)
    }

    #[tokio::test(start_paused = true)]
    async fn r_d3_a_write_nobody_reads_ends_at_the_deadline() {
        let (mut io, link, theirs, open) = stalled();
        let started_at = Instant::now();
        let error = io.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started_at.elapsed().as_secs(), LIMIT.as_secs());
        assert_eq!(link.progressed_at(), started_at, "eight bytes went out at once");
        assert_eq!(open.load(Ordering::Acquire), 1);
        drop(io);
        assert_eq!(open.load(Ordering::Acquire), 0);
        drop(theirs);
    }

    #[tokio::test(start_paused = true)]
    async fn r_d3_a_reader_that_trickles_gains_no_time() {
        let (mut io, _link, mut theirs, _open) = stalled();
        let started_at = Instant::now();
        let reader = async {
            let mut byte = [0; 1];
            loop {
                tokio::time::sleep(Duration::from_millis(700)).await;
                if tokio::io::AsyncReadExt::read(&mut theirs, &mut byte).await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::select! {
            result = io.write_all(&[0; 4_096]) => assert!(result.is_err()),
            () = reader => unreachable!("the reader never ends"),
        }
        assert!(started_at.elapsed() <= LIMIT + WRITE_GRACE * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn r_d3_the_next_request_brings_its_own_deadline() {
        let (mut io, link, theirs, _open) = stalled();
        tokio::time::advance(LIMIT * 2).await;
        let started_at = Instant::now();
        // The deadline is set a moment after the write began, as for a request on a reused connection.
        let extend = async {
            tokio::time::sleep(WRITE_GRACE / 2).await;
            link.extend_writes_to(started_at + LIMIT);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            result = io.write_all(&[0; 64]) => assert!(result.is_err()),
            () = extend => unreachable!("never ends"),
        }
        assert_eq!(started_at.elapsed().as_secs(), LIMIT.as_secs());
        drop(theirs);
    }
}
