//! What a won claim yields, and what may be done with it.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use super::{Completion, Path, Previous};

/// What is known of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The key.
    pub key: Box<str>,
    /// Proof of the grant.
    pub fence: i64,
    /// Grants of the key so far, this one counted.
    pub attempts: u32,
    /// What it follows.
    pub previous: Previous,
}

impl Granted {
    /// The path: a first run, or a retry.
    pub fn path(&self) -> Path {
        match self.previous {
            Previous::None => Path::FirstRun,
            Previous::Failed | Previous::Expired => Path::RetryAfterFailure,
        }
    }
}

/// The leave to do the effect of one key. Only a won claim yields one.
///
/// Completing consumes it. So does failing, by [`Grant::give_up`]: so nothing can be failed whose complete was sent.
/// Dropped before that, it is over when its lease ends, unless [`Grant::when_dropped`] says what to do sooner.
#[must_use = "do the effect and complete the grant in one transaction, or give it up; dropped, it holds the key until \
              its lease ends"]
pub struct Grant {
    shared: Arc<Shared>,
    dropped: Option<Dropped>,
}

type Dropped = Box<dyn FnOnce(Unreported) + Send + Sync>;

#[derive(Debug)]
struct Shared {
    granted: Granted,
    /// What was reported, set before the report is sent: from then on nobody knows whether it was heard.
    sent: OnceLock<Completion>,
}

/// A grant whose effect surely did not happen: its transaction was never committed. What a fail reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreported {
    granted: Granted,
}

impl Unreported {
    /// The grant.
    pub fn granted(&self) -> &Granted {
        &self.granted
    }
}

/// Sees what became of a grant that somebody else holds.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
}

impl Watch {
    /// The grant.
    pub fn granted(&self) -> &Granted {
        &self.shared.granted
    }

    /// What was reported; whether it was heard, only the commit tells. `None`: nothing was.
    pub fn sent(&self) -> Option<&Completion> {
        self.shared.sent.get()
    }

    /// The grant, to be failed, if nobody holds it and nothing was reported.
    pub fn unreported(&self) -> Option<Unreported> {
        let held = Arc::strong_count(&self.shared) > 1;
        (!held && self.sent().is_none()).then(|| Unreported { granted: self.granted().clone() })
    }
}

impl Grant {
    #[allow(dead_code, reason = "used by the drivers")]
    pub(crate) fn new(granted: Granted) -> Self {
        Self { shared: Arc::new(Shared { granted, sent: OnceLock::new() }), dropped: None }
    }

    /// What is known of it: key, fence, attempts, previous.
    pub fn granted(&self) -> &Granted {
        &self.shared.granted
    }

    /// Lets another part of the program see what becomes of it.
    pub fn watch(&self) -> Watch {
        Watch { shared: Arc::clone(&self.shared) }
    }

    /// Says that the effect surely did not happen, or that its transaction was surely rolled back.
    pub fn give_up(mut self) -> Unreported {
        self.dropped = None;
        Unreported { granted: self.granted().clone() }
    }

    /// Calls `hook` if the grant is dropped before it was completed or given up, such as when the future that holds it
    /// is dropped: for a task that reports the fail. An effect that is still being written then must not be committed;
    /// dropping its transaction sees to that.
    pub fn when_dropped(mut self, hook: impl FnOnce(Unreported) + Send + Sync + 'static) -> Self {
        self.dropped = Some(Box::new(hook));
        self
    }

    /// Must be called before a complete is sent.
    #[allow(dead_code, reason = "used by the drivers")]
    pub(crate) fn sending(&self, completion: &Completion) {
        // A transaction that is run again may report another answer; the first tells enough: something was sent.
        let _ = self.shared.sent.set(completion.clone());
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("granted", self.granted()).finish_non_exhaustive()
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if let Some(hook) = self.dropped.take()
            && self.shared.sent.get().is_none()
        {
            hook(Unreported { granted: self.granted().clone() });
        }
    }
}
