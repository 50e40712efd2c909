//! Name look-up: from a host name to the addresses the guard will judge.
//!
//! A port of its own, so that a test can answer differently at every call and the guard is seen to hold.

use std::{net::IpAddr, time::Duration};

use hickory_resolver::{
    TokioResolver,
    config::{LookupIpStrategy, ResolveHosts},
    net::NetError,
};
use posthaste_engine::ports::BoxFuture;

/// How long one answer is remembered, whatever its TTL says: an address that moved is found within this time.
const POSITIVE_TTL_MAX: Duration = Duration::from_mins(5);

/// How long a negative answer is remembered: a name that was just created works soon.
const NEGATIVE_TTL_MAX: Duration = Duration::from_secs(10);

/// One question to one name server; with [`QUERY_ATTEMPTS`] it stays below the usual connect time-out.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// Questions after the first one went unanswered.
const QUERY_ATTEMPTS: usize = 1;

/// A look-up that gave no address: the name does not exist, has none, or nobody answered.
#[derive(Debug, thiserror::Error)]
#[error("name look-up failed: {0}")]
pub struct NameError(pub String);

/// Looks names up. Never called with an address or with a `localhost` name.
pub trait Names: Send + Sync {
    /// All addresses of `name`, in the order of preference.
    ///
    /// `name` is fully qualified and without its trailing dot; search domains do not apply. The caller sets the
    /// deadline. Cancel safety: dropping the future abandons the look-up.
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, NameError>>;
}

/// The system's name servers and hosts file, with a cache.
pub struct SystemNames(Source);

enum Source {
    /// Our own resolver: no thread per look-up, answers kept for their TTL.
    NameServers(Box<TokioResolver>),
    /// The C library, where no name server is configured in the usual place.
    Library,
}

impl SystemNames {
    /// Reads `/etc/resolv.conf` and `/etc/hosts` (or the platform's equivalent), once.
    ///
    /// Falls back to the C library's look-up if there is nothing usable to read.
    pub fn from_system() -> Self {
        match name_servers() {
            Ok(resolver) => Self(Source::NameServers(Box::new(resolver))),
            Err(error) => {
                tracing::warn!(%error, "no usable resolver configuration; names are looked up by the C library");
                Self(Source::Library)
            }
        }
    }
}

fn name_servers() -> Result<TokioResolver, NetError> {
    let mut builder = TokioResolver::builder_tokio()?;
    let options = builder.options_mut();
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.use_hosts_file = ResolveHosts::Always;
    options.positive_max_ttl = Some(POSITIVE_TTL_MAX);
    options.negative_max_ttl = Some(NEGATIVE_TTL_MAX);
    options.timeout = QUERY_TIMEOUT;
    options.attempts = QUERY_ATTEMPTS;
    builder.build()
}

impl Names for SystemNames {
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, NameError>> {
        Box::pin(async move {
            match &self.0 {
                Source::NameServers(resolver) => {
                    let answer = resolver.lookup_ip(format!("{name}.")).await;
                    answer.map(|found| found.iter().collect()).map_err(|error| NameError(error.to_string()))
                }
                Source::Library => {
                    let answer = tokio::net::lookup_host((name, 0)).await;
                    answer
                        .map(|found| found.map(|address| address.ip()).collect())
                        .map_err(|error| NameError(error.to_string()))
                }
            }
        })
    }
}
