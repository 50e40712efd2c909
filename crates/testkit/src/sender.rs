//! A sender that answers by script and remembers what it was asked to send.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;
use posthaste_engine::ports::{Answered, BoxFuture, HttpSender, OutboundRequest, SendOutcome};
use tokio::sync::Notify;

/// Answers 200 unless told otherwise.
#[derive(Debug, Default)]
pub struct ScriptedSender {
    script: Mutex<VecDeque<Scripted>>,
    sent: Mutex<Vec<OutboundRequest>>,
    changed: Notify,
}

/// One answer.
#[derive(Clone, Debug)]
pub enum Scripted {
    /// This outcome.
    Outcome(SendOutcome),
    /// No answer until the sender is dropped or the request is cut off.
    Hang,
}

impl ScriptedSender {
    /// Adds an answer with this status.
    pub fn then_status(&self, status: u16) {
        self.then(Scripted::Outcome(answer(status, None)));
    }

    /// Adds an answer with this status and `Retry-After`.
    pub fn then_retry_after(&self, status: u16, retry_after: &str) {
        self.then(Scripted::Outcome(answer(status, Some(retry_after))));
    }

    /// Adds an answer.
    pub fn then(&self, scripted: Scripted) {
        self.script.lock().push_back(scripted);
    }

    /// What was sent so far.
    pub fn sent(&self) -> Vec<OutboundRequest> {
        self.sent.lock().clone()
    }

    /// Resolves when `count` requests were sent in all.
    pub async fn wait_for(&self, count: usize) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.sent.lock().len() >= count {
                return;
            }
            changed.await;
        }
    }
}

/// An answer with this status.
pub fn answer(status: u16, retry_after: Option<&str>) -> SendOutcome {
    SendOutcome::Answered(Answered {
        status,
        retry_after: retry_after.map(|text| text.as_bytes().to_vec()),
        location: None,
        ledger: None,
        delivery_control: None,
        excerpt: Bytes::from_static(b"scripted"),
        excerpt_truncated: false,
        peer: None,
    })
}

/// The value of a header of a request, if it has it.
pub fn header(request: &OutboundRequest, name: &str) -> Option<String> {
    let (_, value) = request.headers.iter().find(|(known, _)| known == name)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

impl HttpSender for ScriptedSender {
    fn send(&self, request: OutboundRequest) -> BoxFuture<'_, SendOutcome> {
        Box::pin(async move {
            let scripted = self.script.lock().pop_front();
            self.sent.lock().push(request);
            self.changed.notify_waiters();
            match scripted {
                Some(Scripted::Outcome(outcome)) => outcome,
                Some(Scripted::Hang) => std::future::pending().await,
                None => answer(200, None),
            }
        })
    }
}
