//! One exchange: hand the request over, await the head, read as much of the body as is kept. Each under its deadline.

use std::{
    pin::{Pin, pin},
    sync::Arc,
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, Response, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper_util::client::legacy::{
    Client, Error,
    connect::{CaptureConnection, capture_connection},
};
use posthaste_core::TransportFault;
use posthaste_engine::ports::{Answered, SendLimits, SendOutcome};
use tokio::{
    select,
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    KeepRules,
    dial::{DIAL_LIMITS, DialLimits, Dialler},
    fault::{self, Handed},
    later,
    link::{Link, Mark},
    payload::Payload,
};

/// Longest values of the headers that are passed on, in bytes; a longer one counts as absent. Set by the port.
const RETRY_AFTER_BYTES_MAX: usize = 128;
const LOCATION_BYTES_MAX: usize = 2_048;
const LEDGER_BYTES_MAX: usize = 256;
const DELIVERY_CONTROL_BYTES_MAX: usize = 64;

/// The deadlines of one request, as instants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadlines {
    started_at: Instant,
    limits: SendLimits,
}

impl Deadlines {
    pub(super) fn starting_now(limits: SendLimits) -> Self {
        Self { started_at: Instant::now(), limits }
    }

    fn total_by(&self) -> Instant {
        later(self.started_at, self.limits.total_timeout)
    }

    /// When a connection must be at hand. A dial has tighter deadlines of its own; this one also bounds the wait for
    /// another request's dial.
    fn handed_by(&self) -> Instant {
        let dial = self.limits.connect_timeout.saturating_add(self.limits.tls_timeout);
        later(self.started_at, self.limits.total_timeout.min(dial))
    }

    fn dial(&self) -> DialLimits {
        DialLimits {
            connect_by: later(self.started_at, self.limits.total_timeout.min(self.limits.connect_timeout)),
            tls_timeout: self.limits.tls_timeout,
            total_by: self.total_by(),
        }
    }

    fn head_by(&self, progressed_at: Instant) -> Instant {
        self.total_by().min(later(progressed_at, self.limits.first_byte_timeout))
    }
}

/// The hold of a request on its connection. Let go without a verdict, the connection is not used again.
///
/// That covers every early return and the caller's dropping the send. An HTTP/1.1 connection then closes by itself,
/// for its exchange is unfinished; on HTTP/2 the other requests run on.
struct Hold {
    captured: CaptureConnection,
    release: bool,
}

impl Hold {
    fn link(&self) -> Option<Arc<Link>> {
        self.captured.connection_metadata().as_ref().and_then(Link::of)
    }

    fn handed(&self) -> Handed {
        if self.captured.connection_metadata().is_some() { Handed::ToConnection } else { Handed::Never }
    }

    /// The exchange ended as it should: the connection may serve the next, unless `rules` retire it.
    fn release(mut self, rules: &KeepRules) {
        self.release = self.link().is_some_and(|link| rules.keep(&link));
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let (false, Some(connected)) = (self.release, self.captured.connection_metadata().as_ref()) {
            connected.poison();
        }
    }
}

/// Sends `request` and reads the answer. Resolves by the total deadline.
pub(super) async fn run(
    client: &Client<Dialler, Payload>,
    rules: &KeepRules,
    deadlines: Deadlines,
    mut request: Request<Bytes>,
) -> SendOutcome {
    let taken_at = Arc::new(Mark::at(deadlines.started_at));
    let body = Payload::new(std::mem::take(request.body_mut()), Arc::clone(&taken_at));
    let mut request = request.map(|_| body);
    let hold = Hold { captured: capture_connection(&mut request), release: false };
    let mut response = pin!(DIAL_LIMITS.scope(deadlines.dial(), client.request(request)));

    let head = match hand_over(response.as_mut(), &hold, deadlines).await {
        Ok(Some(head)) => Ok(head),
        Ok(None) => await_head(response.as_mut(), &hold, deadlines, &taken_at).await,
        Err(missing) => Err(missing),
    };
    match head {
        Ok(head) => read_answer(head, hold, rules, deadlines).await,
        Err(NoHead::Failed(error)) => fault::read(&error, hold.handed()),
        Err(NoHead::TimedOut(wait)) => fault::unanswered(TransportFault::Timeout, hold.handed(), wait),
    }
}

/// Why there is no answer.
#[derive(Debug)]
enum NoHead {
    Failed(Error),
    /// The wait that took too long.
    TimedOut(&'static str),
}

/// A future that resolves to the response's head.
type Head<'a, F> = Pin<&'a mut F>;

/// Waits until the request has a connection. `None`: one has, and there is no answer yet.
async fn hand_over<F>(
    mut response: Head<'_, F>,
    hold: &Hold,
    deadlines: Deadlines,
) -> Result<Option<Response<Incoming>>, NoHead>
where
    F: Future<Output = Result<Response<Incoming>, Error>>,
{
    let mut captured = hold.captured.clone();
    let answered = select! {
        // In this order, so that a dial's own error is preferred to our time-out.
        biased;
        head = response.as_mut() => Some(head),
        _ = captured.wait_for_connection_metadata() => None,
        () = sleep_until(deadlines.handed_by()) => {
            return Err(NoHead::TimedOut("no connection within connect and tls time-outs"));
        }
    };
    if let Some(link) = hold.link() {
        link.extend_writes_to(deadlines.total_by());
    }
    answered.transpose().map_err(NoHead::Failed)
}

/// Waits for the head of the answer, for as long as the request still makes its way or the time-out allows.
async fn await_head<F>(
    mut response: Head<'_, F>,
    hold: &Hold,
    deadlines: Deadlines,
    taken_at: &Mark,
) -> Result<Response<Incoming>, NoHead>
where
    F: Future<Output = Result<Response<Incoming>, Error>>,
{
    let (link, handed_at) = (hold.link(), Instant::now());
    let head_by = || {
        let written_at = link.as_ref().map_or(handed_at, |link| link.progressed_at());
        deadlines.head_by(handed_at.max(taken_at.read()).max(written_at))
    };
    loop {
        let deadline = head_by();
        select! {
            biased;
            head = response.as_mut() => return head.map_err(NoHead::Failed),
            () = sleep_until(deadline) => {}
        }
        if head_by() <= deadline {
            return Err(NoHead::TimedOut("no answer within first-byte or total time-out"));
        }
    }
}

/// Takes from the answer what is kept.
async fn read_answer(
    response: Response<Incoming>,
    hold: Hold,
    rules: &KeepRules,
    deadlines: Deadlines,
) -> SendOutcome {
    let (head, body) = response.into_parts();
    let excerpt_bytes_max = deadlines.limits.excerpt_bytes_max;
    let mut excerpt = BytesMut::new();
    let end = timeout_at(deadlines.total_by(), read_body(body, &mut excerpt, excerpt_bytes_max)).await;
    let end = end.unwrap_or(BodyEnd::Failed);
    let link = hold.link();
    match end {
        // The rest of a cut body is at hand and skipped by the connection's task, or that task closes the connection.
        BodyEnd::Complete | BodyEnd::Cut => hold.release(rules),
        BodyEnd::Failed => drop(hold),
    }
    SendOutcome::Answered(Answered {
        status: head.status.as_u16(),
        retry_after: value(&head.headers, header::RETRY_AFTER.as_str(), RETRY_AFTER_BYTES_MAX),
        location: value(&head.headers, header::LOCATION.as_str(), LOCATION_BYTES_MAX),
        ledger: value(&head.headers, "posthaste-ledger", LEDGER_BYTES_MAX),
        delivery_control: value(&head.headers, "webhook-delivery", DELIVERY_CONTROL_BYTES_MAX),
        excerpt: excerpt.freeze(),
        excerpt_truncated: end != BodyEnd::Complete,
        peer: link.map(|link| link.peer),
    })
}

/// How reading the body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyEnd {
    Complete,
    /// More follows than is kept.
    Cut,
    /// It broke off or took too long.
    Failed,
}

/// Reads into `excerpt` until the body ends or `bytes_max` are kept. Cancel safe: what was read stays in `excerpt`.
async fn read_body(mut body: Incoming, excerpt: &mut BytesMut, bytes_max: usize) -> BodyEnd {
    while !body.is_end_stream() {
        if excerpt.len() == bytes_max {
            return BodyEnd::Cut;
        }
        // Frames without data fill nothing; a flood of them must not keep the deadline from being looked at.
        tokio::task::consume_budget().await;
        let data = match body.frame().await {
            None => return BodyEnd::Complete,
            Some(Err(_)) => return BodyEnd::Failed,
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        };
        let room = bytes_max - excerpt.len();
        excerpt.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return BodyEnd::Cut;
        }
    }
    BodyEnd::Complete
}

/// The first value of `name`, unless it is longer than `bytes_max`: half a value could mean something else.
fn value(headers: &HeaderMap, name: &str, bytes_max: usize) -> Option<Vec<u8>> {
    let value = headers.get(name)?.as_bytes();
    (value.len() <= bytes_max).then(|| value.to_vec())
}
