//! How an attempt can fail, what that says about the effect, and what follows: the classification.
//!
//! The table is data ([`STATUS_RULES`], [`CLASS_RULES`]); a golden test prints it. Source of the statuses: row B4.

use crate::words::words;

words! {
    /// Why an attempt failed.
    Class {
        /// Nothing came back in time.
        Timeout = "timeout",
        /// No connection: refused or unreachable.
        Connect = "connect",
        /// The connection broke after the request had left.
        Reset = "reset",
        /// The name did not resolve.
        Dns = "dns",
        /// No trusted TLS channel.
        Tls = "tls",
        /// Our own guard refused the address.
        Blocked = "blocked",
        /// The receiver asked us to slow down.
        Throttled = "throttled",
        /// Somebody else is doing this very work.
        InProgress = "in_progress",
        /// The receiver failed.
        ServerError = "server_error",
        /// The receiver refused the request.
        ClientError = "client_error",
        /// The receiver pointed elsewhere; redirects are not followed.
        Redirect = "redirect",
        /// The answer was no HTTP, or no final status.
        Protocol = "protocol",
        /// A worker said that it failed.
        Worker = "worker",
        /// The lease ran out.
        LeaseLost = "lease_lost",
        /// None of the others.
        Other = "other",
    }
}

words! {
    /// What is known about the effect of an attempt. Ordered: a later value is the stronger claim.
    Effect {
        /// It can't have happened.
        None = "none",
        /// It may have happened, or may still happen.
        Possible = "possible",
        /// The receiver or worker said that it happened.
        Reported = "reported",
        /// The receiver's ledger says that it happened.
        Confirmed = "confirmed",
    }
}

words! {
    /// What a failure means for the job.
    Disposition {
        /// Try again after a backoff; charged.
        Retry = "retry",
        /// Ask again later; not charged.
        InProgress = "in_progress",
        /// This message will never be accepted.
        PermanentMessage = "permanent_message",
        /// This destination refuses us, whatever the message.
        PermanentDestination = "permanent_destination",
        /// This destination is gone for good.
        Gone = "gone",
    }
}

words! {
    /// Whether a failed attempt should be followed by another, in the reporter's words.
    RetryWish {
        /// Another attempt is wanted.
        Yes = "yes",
        /// No other attempt makes sense.
        No = "no",
        /// The classification decides.
        ByTable = "auto",
    }
}

/// What broke while a request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransportFault {
    /// The name did not resolve.
    Dns,
    /// Refused, unreachable, or no connection in time.
    Connect,
    /// The handshake failed or took too long.
    Tls,
    /// The request left and no answer came in time.
    Timeout,
    /// The connection broke.
    Reset,
    /// What came back was no valid HTTP answer.
    Protocol,
}

/// A failure, classified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classified {
    /// Why.
    pub class: Class,
    /// What is known about the effect.
    pub effect: Effect,
    /// What follows for the job.
    pub disposition: Disposition,
}

/// What an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// 2xx: taken.
    Accepted,
    /// Anything else.
    Failed(Classified),
}

/// One line of the classification of HTTP answers. The first line that fits decides.
#[derive(Clone, Copy, Debug)]
pub struct StatusRule {
    /// First and last status that the line is about.
    pub statuses: (u16, u16),
    /// The line fits only if `Retry-After` was given.
    pub with_retry_after: bool,
    /// What it means.
    pub reading: Reading,
}

const fn rule(from: u16, to: u16, class: Class, effect: Effect, disposition: Disposition) -> StatusRule {
    StatusRule {
        statuses: (from, to),
        with_retry_after: false,
        reading: Reading::Failed(Classified { class, effect, disposition }),
    }
}

const fn client(status: u16, disposition: Disposition) -> StatusRule {
    rule(status, status, Class::ClientError, Effect::None, disposition)
}

/// The classification of HTTP answers in force unless a destination overrides it.
pub const STATUS_RULES: &[StatusRule] = &[
    StatusRule { statuses: (200, 299), with_retry_after: false, reading: Reading::Accepted },
    rule(300, 399, Class::Redirect, Effect::None, Disposition::Retry),
    client(400, Disposition::PermanentMessage),
    client(401, Disposition::PermanentDestination),
    client(403, Disposition::PermanentDestination),
    client(406, Disposition::PermanentMessage),
    rule(408, 408, Class::Timeout, Effect::None, Disposition::Retry),
    rule(409, 409, Class::InProgress, Effect::None, Disposition::InProgress),
    client(410, Disposition::Gone),
    client(411, Disposition::PermanentMessage),
    client(413, Disposition::PermanentMessage),
    client(414, Disposition::PermanentMessage),
    client(415, Disposition::PermanentMessage),
    client(416, Disposition::PermanentMessage),
    client(417, Disposition::PermanentMessage),
    client(422, Disposition::PermanentMessage),
    rule(429, 429, Class::Throttled, Effect::None, Disposition::Retry),
    client(431, Disposition::PermanentMessage),
    // 402 404 405 407 421 423 424 425 426 428 451 499, and those that nobody has defined: a guess of
    // "permanent" would drop events, a guess of "retry" only costs attempts.
    rule(400, 499, Class::ClientError, Effect::None, Disposition::Retry),
    StatusRule {
        statuses: (503, 503),
        with_retry_after: true,
        reading: Reading::Failed(Classified {
            class: Class::Throttled,
            effect: Effect::None,
            disposition: Disposition::Retry,
        }),
    },
    // A proxy's bare 5xx may hide an upstream that did the work.
    rule(500, 599, Class::ServerError, Effect::Possible, Disposition::Retry),
    rule(0, u16::MAX, Class::Protocol, Effect::Possible, Disposition::Retry),
];

/// The classification of failures that carry no status: class, effect unless the reporter says otherwise, and
/// what follows.
pub const CLASS_RULES: &[(Class, Effect, Disposition)] = &[
    (Class::Timeout, Effect::Possible, Disposition::Retry),
    (Class::Connect, Effect::None, Disposition::Retry),
    (Class::Reset, Effect::Possible, Disposition::Retry),
    (Class::Dns, Effect::None, Disposition::Retry),
    (Class::Tls, Effect::None, Disposition::Retry),
    (Class::Blocked, Effect::None, Disposition::Retry),
    (Class::Throttled, Effect::None, Disposition::Retry),
    (Class::InProgress, Effect::None, Disposition::InProgress),
    (Class::ServerError, Effect::Possible, Disposition::Retry),
    (Class::ClientError, Effect::None, Disposition::PermanentMessage),
    (Class::Redirect, Effect::None, Disposition::Retry),
    (Class::Protocol, Effect::Possible, Disposition::Retry),
    (Class::Worker, Effect::Possible, Disposition::Retry),
    (Class::LeaseLost, Effect::Possible, Disposition::Retry),
    (Class::Other, Effect::Possible, Disposition::Retry),
];

/// Reads an HTTP answer. `retry_after`: whether the header was there.
pub fn read_status(status: u16, retry_after: bool) -> Reading {
    STATUS_RULES
        .iter()
        .find(|rule| {
            let (from, to) = rule.statuses;
            (from..=to).contains(&status) && (retry_after || !rule.with_retry_after)
        })
        .map(|rule| rule.reading)
        .expect("the last rule fits every status")
}

/// Classifies a failure by its class alone: a worker's report.
pub fn read_class(class: Class) -> Classified {
    let (class, effect, disposition) = CLASS_RULES
        .iter()
        .copied()
        .find(|(known, ..)| *known == class)
        .expect("every class has a rule; a test looks them all up");
    Classified { class, effect, disposition }
}

/// Classifies a request without an answer. `sent`: whether a byte of it may have reached the receiver.
pub fn read_fault(fault: TransportFault, sent: bool) -> Classified {
    let class = match fault {
        TransportFault::Dns => Class::Dns,
        TransportFault::Connect => Class::Connect,
        TransportFault::Tls => Class::Tls,
        TransportFault::Timeout => Class::Timeout,
        TransportFault::Reset => Class::Reset,
        TransportFault::Protocol => Class::Protocol,
    };
    let effect = if sent { Effect::Possible } else { Effect::None };
    Classified { class, effect, disposition: Disposition::Retry }
}
