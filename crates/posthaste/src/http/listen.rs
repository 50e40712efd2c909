//! The accept loop: connections under limits of number, size and time, and their graceful end. Rows A3, B15.
//!
//! Ours, because `axum::serve` sets no time limit on a request's head.

use std::{
    convert::Infallible,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use axum::{
    Router,
    response::{IntoResponse as _, Response},
};
use http::Request;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::Service as _;

use super::{Code, Problem};

/// Limits of connections and requests.
#[derive(Clone, Debug)]
pub struct HttpLimits {
    /// Connections at once; more wait in the listen queue.
    pub connections_max: usize,
    /// From a connection's begin to the end of its first request's head. Against clients that say nothing.
    pub header_read_timeout: Duration,
    /// How long a connection may be idle between requests. Above what load balancers wait (60 s), so that they never
    /// send into a connection that we are closing.
    pub idle_timeout: Duration,
    /// Bytes of a request's head; at least 8,192. Beyond: 431.
    pub header_bytes_max: usize,
    /// Headers of a request. Beyond: 431.
    pub headers_max: usize,
    /// From a request's head to the last byte of its body. Beyond: 408.
    pub body_read_timeout: Duration,
    /// Bytes of bodies that are being read, over all connections. Beyond: 503.
    pub bodies_bytes_max: usize,
    /// Requests at once on one HTTP/2 connection.
    pub streams_max: u32,
    /// How long requests that are running may take to end after a shutdown has begun.
    pub shutdown_grace: Duration,
}

impl HttpLimits {
    /// The limits in force unless configured.
    pub const fn standard() -> Self {
        Self {
            connections_max: 10_000,
            header_read_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            header_bytes_max: 32 * 1024,
            headers_max: 100,
            body_read_timeout: Duration::from_secs(10),
            bodies_bytes_max: posthaste_core::limits::BODIES_BYTES_MAX,
            streams_max: 200,
            shutdown_grace: Duration::from_secs(20),
        }
    }
}

/// How long to wait after an accept that failed for want of file descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How often an HTTP/2 peer is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// Serves `router` on `listener` until `shutdown` is cancelled and what runs has ended.
///
/// After the cancel no connection is accepted, idle ones are closed, and requests that run have
/// [`HttpLimits::shutdown_grace`] to end; the rest is cut off. Cancel: dropping it stops accepting, and leaves
/// connections to end by themselves.
pub async fn serve(listener: TcpListener, router: Router, limits: HttpLimits, shutdown: CancellationToken) {
    let server = Arc::new(Server {
        router,
        builder: builder(&limits),
        limits,
        shutdown,
        cut: CancellationToken::new(),
    });
    let slots = Arc::new(Semaphore::new(server.limits.connections_max));
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = server.shutdown.cancelled() => break,
            accepted = async {
                let slot = Arc::clone(&slots).acquire_owned().await.expect("it is never closed");
                (listener.accept().await, slot)
            } => accepted,
        };
        match accepted {
            (Ok((stream, _)), slot) => {
                let server = Arc::clone(&server);
                connections.spawn(async move {
                    server.serve_tcp(stream).await;
                    drop(slot);
                });
            }
            // The peer's doing: it has gone again.
            (Err(error), _) if is_of_one_connection(&error) => {}
            (Err(error), _) => {
                tracing::error!(event = "accept_failed", error = %error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(server.limits.shutdown_grace, connections.wait()).await.is_err() {
        tracing::warn!(event = "connections_cut", connections = connections.len());
        server.cut.cancel();
        connections.wait().await;
    }
}

struct Server {
    router: Router,
    builder: auto::Builder<TokioExecutor>,
    limits: HttpLimits,
    shutdown: CancellationToken,
    /// Ends connections that outlive the grace.
    cut: CancellationToken,
}

fn builder(limits: &HttpLimits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle_timeout)
        .max_buf_size(limits.header_bytes_max.max(8 * 1024))
        .max_headers(limits.headers_max);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL)
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX));
    builder
}

impl Server {
    async fn serve_tcp(&self, stream: TcpStream) {
        if stream.set_nodelay(true).is_ok() {
            self.serve_connection(stream).await;
        }
    }

    /// Serves one connection to its end.
    async fn serve_connection(&self, io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let activity = Arc::new(Activity::default());
        let service = {
            let (activity, router) = (Arc::clone(&activity), self.router.clone());
            service_fn(move |request| {
                let running = Running::begin(&activity);
                answered(router.clone(), request, running)
            })
        };
        let mut connection = pin!(self.builder.serve_connection(TokioIo::new(io), service));
        let mut silent = pin!(activity.silent(&self.limits));
        let mut stopping = false;
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(event = "connection_ended", error = %error);
                    }
                    return;
                }
                () = self.shutdown.cancelled(), if !stopping => {
                    stopping = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = &mut silent => return,
                () = self.cut.cancelled() => return,
            }
        }
    }
}

/// What happens on one connection, for the time limits that hyper does not have: before it knows the protocol, and
/// between requests of HTTP/2.
#[derive(Debug, Default)]
struct Activity {
    begun: AtomicUsize,
    running: AtomicUsize,
}

impl Activity {
    /// Resolves when the connection should be closed because nothing happens on it.
    async fn silent(&self, limits: &HttpLimits) {
        tokio::time::sleep(limits.header_read_timeout).await;
        let mut seen = 0;
        loop {
            let begun = self.begun.load(Ordering::Relaxed);
            if begun == seen && self.running.load(Ordering::Relaxed) == 0 {
                return;
            }
            seen = begun;
            tokio::time::sleep(limits.idle_timeout).await;
        }
    }
}

/// One running request.
struct Running(Arc<Activity>);

impl Running {
    fn begin(activity: &Arc<Activity>) -> Self {
        activity.begun.fetch_add(1, Ordering::Relaxed);
        activity.running.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers one request. A panic becomes a 500 that says nothing of it.
async fn answered(
    mut router: Router,
    request: Request<Incoming>,
    running: Running,
) -> Result<Response, Infallible> {
    let mut answering = pin!(async move { router.call(request).await });
    let response = std::future::poll_fn(|context| {
        match std::panic::catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(Ok(response))) => Poll::Ready(response),
            Err(_) => {
                tracing::error!(event = "request_panicked", "a request's handler panicked; this is a bug");
                Poll::Ready(Problem::new(Code::Internal, Code::Internal.title()).into_response())
            }
        }
    });
    let response = response.await;
    drop(running);
    Ok(response)
}

fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}
