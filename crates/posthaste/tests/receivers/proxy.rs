//! Stands between the sender and two processes of one receiver, and does what networks do: it sends a request twice, to
//! both, and it loses answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    sync::Notify,
};

use crate::{chance::Chance, wire::Message};

/// From which attempt on nothing goes wrong, so that the end comes.
const ATTEMPTS_UNTIL_CALM: u64 = 5;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    /// One process gets it, and its answer comes back.
    Passed,
    /// Both get it at once, and the answer of one comes back.
    Twice,
    /// One gets it and answers; the connection to the sender is cut before the answer.
    AnswerLost,
    /// Both get it and answer; the connection to the sender is cut before the answer.
    TwiceAndAnswerLost,
    /// One gets it, and both connections are cut while it is at work.
    Cut,
}

impl Fate {
    fn of(chance: &mut Chance, attempt: u64) -> Self {
        if attempt >= ATTEMPTS_UNTIL_CALM {
            return Self::Passed;
        }
        match chance.within(0..1_000) {
            0..400 => Self::Passed,
            400..700 => Self::Twice,
            700..800 => Self::AnswerLost,
            800..900 => Self::TwiceAndAnswerLost,
            _ => Self::Cut,
        }
    }

    fn is_twice(self) -> bool {
        matches!(self, Self::Twice | Self::TwiceAndAnswerLost)
    }

    fn loses_the_answer(self) -> bool {
        matches!(self, Self::AnswerLost | Self::TwiceAndAnswerLost)
    }
}

/// What has gone through.
#[derive(Default)]
pub(crate) struct Seen {
    /// How often each fate befell a request.
    pub(crate) fates: BTreeMap<Fate, u64>,
    /// The last request of each event id.
    pub(crate) requests: BTreeMap<String, Message>,
    /// The `webhook-id`s that each event id came with.
    pub(crate) webhook_ids: BTreeMap<String, BTreeSet<String>>,
    /// Every answer to each event id, whether the sender got it or not.
    pub(crate) answers: BTreeMap<String, Vec<Message>>,
    /// The event ids whose sender was told 2xx.
    pub(crate) accepted: BTreeSet<String>,
}

/// The proxy. It serves until the runtime ends.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    seed: u64,
    receivers: [SocketAddr; 2],
    seen: Mutex<Seen>,
    changed: Notify,
}

impl Proxy {
    /// Listens, and passes on to `receivers` what comes.
    pub(crate) async fn start(seed: u64, receivers: [SocketAddr; 2]) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Mutex::default();
        let proxy = Arc::new(Self { address, seed, receivers, seen, changed: Notify::new() });
        let shared = Arc::clone(&proxy);
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                tokio::spawn(Arc::clone(&shared).serve(stream));
            }
        });
        proxy
    }

    /// What has gone through so far.
    pub(crate) fn seen<T>(&self, read: impl FnOnce(&Seen) -> T) -> T {
        read(&self.seen.lock().unwrap())
    }

    /// Waits until the senders of so many event ids were told 2xx.
    pub(crate) async fn accepted(&self, count: usize) {
        while self.seen(|seen| seen.accepted.len()) < count {
            self.changed.notified().await;
        }
    }

    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        let mut received = Vec::new();
        let Some(request) = Message::read(&mut stream, &mut received).await else { return };
        let Some(answer) = self.pass(&request).await else { return };
        // It says `connection: close`, so that this was the only request.
        if stream.write_all(&answer.to_bytes()).await.is_ok() && (200..300).contains(&answer.status()) {
            let event_id = request.needs("idempotency-key").to_owned();
            self.seen.lock().unwrap().accepted.insert(event_id);
            self.changed.notify_one();
        }
    }

    /// Nothing where the sender gets no answer.
    async fn pass(&self, request: &Message) -> Option<Message> {
        let event_id = request.needs("idempotency-key").to_owned();
        let attempt = request.needs("posthaste-attempt");
        let mut chance = Chance::of(self.seed, &format!("{event_id} {attempt}"));
        let fate = Fate::of(&mut chance, attempt.parse().unwrap());
        let first = usize::from(chance.permille(500));
        {
            let mut seen = self.seen.lock().unwrap();
            *seen.fates.entry(fate).or_default() += 1;
            seen.requests.insert(event_id.clone(), request.clone());
            let webhook_ids = seen.webhook_ids.entry(event_id.clone()).or_default();
            webhook_ids.insert(request.needs("webhook-id").to_owned());
        }
        if fate == Fate::Cut {
            let mut stream = TcpStream::connect(self.receivers[first]).await.unwrap();
            stream.write_all(&request.to_bytes()).await.unwrap();
            return None;
        }
        let answers = if fate.is_twice() {
            let (one, other) = tokio::join!(
                deliver(self.receivers[first], request),
                deliver(self.receivers[1 - first], request)
            );
            vec![one, other]
        } else {
            vec![deliver(self.receivers[first], request).await]
        };
        self.seen.lock().unwrap().answers.entry(event_id).or_default().extend(answers.iter().cloned());
        answers.into_iter().next().filter(|_| !fate.loses_the_answer())
    }
}

/// Sends a request over a connection of its own. The receiver must answer.
pub(crate) async fn deliver(receiver: SocketAddr, request: &Message) -> Message {
    let mut stream = TcpStream::connect(receiver).await.unwrap();
    stream.write_all(&request.to_bytes()).await.unwrap();
    let answer = Message::read(&mut stream, &mut Vec::new()).await;
    answer.unwrap_or_else(|| panic!("no answer to {request:?}"))
}
