//! Dialling: from a canonical authority to a connection, through the guard.
//!
//! The order is fixed: look the name up, judge every address, connect to a judged one, check who answered, then TLS.
//! Each step has its deadline; all of them are the deadlines of the request that caused the dial.

use std::{
    error::Error,
    future::{Future, ready},
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{Arc, atomic::AtomicUsize},
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper_util::{
    client::legacy::connect::{HttpConnector, dns},
    rt::TokioIo,
};
use rustls::pki_types::ServerName;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};
use tokio_rustls::TlsConnector;
use tower::{Service, ServiceExt as _, service_fn};
use url::Host;

use super::{
    fault::causes,
    later,
    link::{Link, LinkIo, OpenCount, Transport, Version},
    names::{NameError, Names},
    tls::ALPN_H2,
};
use crate::guard::{AddressRefusal, Guard, LOOPBACK, Scheme, is_loopback_name};

/// How many addresses of one name are tried. All of them are judged.
const ADDRESSES_DIALLED_MAX: usize = 8;

tokio::task_local! {
    /// The deadlines of the request that is being sent. The client's connector takes a URI and nothing else, so they
    /// reach it beside the call; a dial that outlives its request keeps the copy it started with.
    pub(super) static DIAL_LIMITS: DialLimits;
}

/// The deadlines of one dial.
#[derive(Clone, Copy, Debug)]
pub(super) struct DialLimits {
    /// End of name look-up and TCP connect.
    pub(super) connect_by: Instant,
    /// Time for the TLS handshake, from the TCP connect.
    pub(super) tls_timeout: Duration,
    /// End of everything.
    pub(super) total_by: Instant,
}

/// The step a dial was in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Lookup,
    Connect,
    Handshake,
}

/// Why there is no connection. In no case did a byte of a request leave.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error(transparent)]
    Refused(#[from] AddressRefusal),
    #[error(transparent)]
    Names(#[from] NameError),
    #[error("connect failed: {0}")]
    Connect(io::Error),
    #[error("tls handshake failed: {0}")]
    Handshake(io::Error),
    #[error("{} took too long", .0.name())]
    Timeout(Step),
    #[error("internal: {0}")]
    Internal(&'static str),
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Lookup => "name look-up",
            Self::Connect => "connect",
            Self::Handshake => "tls handshake",
        }
    }
}

/// The HTTP client's connector. Cheap to clone.
#[derive(Clone)]
pub(super) struct Dialler(Arc<Parts>);

struct Parts {
    guard: Arc<Guard>,
    names: Arc<dyn Names>,
    tls: TlsConnector,
    open: Arc<AtomicUsize>,
}

/// Where to: the authority of a canonical URL, taken apart.
struct Target {
    scheme: Scheme,
    host: Host,
    port: u16,
}

impl Dialler {
    pub(super) fn new(
        guard: Arc<Guard>,
        names: Arc<dyn Names>,
        tls: rustls::ClientConfig,
        open: Arc<AtomicUsize>,
    ) -> Self {
        Self(Arc::new(Parts { guard, names, tls: TlsConnector::from(Arc::new(tls)), open }))
    }
}

impl Service<Uri> for Dialler {
    type Response = TokioIo<LinkIo>;
    type Error = DialError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, DialError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let limits = DIAL_LIMITS.try_with(|limits| *limits);
        let parts = Arc::clone(&self.0);
        Box::pin(async move {
            let limits = limits.map_err(|_| DialError::Internal("dialled outside of a send"))?;
            parts.dial(&Target::of(&uri)?, limits).await.map(TokioIo::new)
        })
    }
}

impl Target {
    fn of(uri: &Uri) -> Result<Self, DialError> {
        let (scheme, default_port) = match uri.scheme_str() {
            Some("http") => (Scheme::Http, 80),
            Some("https") => (Scheme::Https, 443),
            Some(_) | None => return Err(DialError::Internal("scheme of a checked url")),
        };
        let host = uri.host().and_then(|host| Host::parse(host).ok());
        let host = host.ok_or(DialError::Internal("host of a checked url"))?;
        Ok(Self { scheme, host, port: uri.port_u16().unwrap_or(default_port) })
    }
}

impl Parts {
    async fn dial(&self, target: &Target, limits: DialLimits) -> Result<LinkIo, DialError> {
        let addresses = timeout_at(limits.connect_by, self.addresses(&target.host))
            .await
            .map_err(|_| DialError::Timeout(Step::Lookup))??;
        if addresses.is_empty() {
            return Err(DialError::Names(NameError("the name has no address".to_owned())));
        }
        let vetted = self.guard.vet(target.scheme, &target.host, &addresses)?;
        let tcp = timeout_at(limits.connect_by, connect(&vetted, target.port, limits.connect_by))
            .await
            .map_err(|_| DialError::Timeout(Step::Connect))??;
        // Counted from here: what follows holds a socket.
        let open = OpenCount::enter(&self.open);
        let peer = tcp.peer_addr().map_err(DialError::Connect)?;
        if !vetted.contains(&peer.ip()) {
            return Err(DialError::Internal("connected to an address that was not vetted"));
        }
        let tls_by = limits.total_by.min(later(Instant::now(), limits.tls_timeout));
        let (transport, version) = match target.scheme {
            Scheme::Http => (Box::new(tcp) as Box<dyn Transport>, Version::Http1),
            Scheme::Https => timeout_at(tls_by, self.handshake(&target.host, tcp))
                .await
                .map_err(|_| DialError::Timeout(Step::Handshake))??,
        };
        Ok(LinkIo::new(transport, Arc::new(Link::new(peer, version, limits.total_by)), open))
    }

    async fn addresses(&self, host: &Host) -> Result<Vec<IpAddr>, DialError> {
        match host {
            Host::Ipv4(address) => Ok(vec![IpAddr::V4(*address)]),
            Host::Ipv6(address) => Ok(vec![IpAddr::V6(*address)]),
            Host::Domain(name) if is_loopback_name(name) => Ok(LOOPBACK.to_vec()),
            Host::Domain(name) => Ok(self.names.addresses(name).await?),
        }
    }

    async fn handshake(
        &self,
        host: &Host,
        tcp: TcpStream,
    ) -> Result<(Box<dyn Transport>, Version), DialError> {
        let name = match host {
            Host::Domain(name) => ServerName::try_from(name.clone())
                .map_err(|error| DialError::Handshake(io::Error::new(io::ErrorKind::InvalidInput, error)))?,
            Host::Ipv4(address) => ServerName::from(IpAddr::V4(*address)),
            Host::Ipv6(address) => ServerName::from(IpAddr::V6(*address)),
        };
        let stream = self.tls.connect(name, tcp).await.map_err(DialError::Handshake)?;
        let version = match stream.get_ref().1.alpn_protocol() {
            Some(ALPN_H2) => Version::Http2,
            Some(_) | None => Version::Http1,
        };
        Ok((Box::new(stream), version))
    }
}

/// Connects to one of `addresses`, both families racing.
///
/// The client library's connector does the racing. It is given a name of our own that resolves to `addresses`, since
/// it would dial a literal without asking.
async fn connect(addresses: &[IpAddr], port: u16, by: Instant) -> Result<TcpStream, DialError> {
    let addresses: Vec<SocketAddr> =
        addresses.iter().take(ADDRESSES_DIALLED_MAX).map(|address| SocketAddr::new(*address, port)).collect();
    let resolve = move |_: dns::Name| ready(Ok::<_, io::Error>(addresses.clone().into_iter()));
    let mut connector = HttpConnector::new_with_resolver(service_fn(resolve));
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(by.saturating_duration_since(Instant::now())));
    let uri = Uri::builder().scheme("http").authority(format!("vetted.invalid:{port}")).path_and_query("/");
    let uri = uri.build().map_err(|_| DialError::Internal("authority of a vetted address"))?;
    match connector.oneshot(uri).await {
        Ok(stream) => Ok(stream.into_inner()),
        Err(error) => Err(connect_error(&error)),
    }
}

/// The connector's error type is opaque; the operating system's error is somewhere below it.
fn connect_error(error: &(dyn Error + 'static)) -> DialError {
    match causes(error).find_map(|cause| cause.downcast_ref::<io::Error>()) {
        Some(cause) if cause.kind() == io::ErrorKind::TimedOut => DialError::Timeout(Step::Connect),
        Some(cause) => DialError::Connect(io::Error::new(cause.kind(), cause.to_string())),
        None => DialError::Connect(io::Error::other(error.to_string())),
    }
}
