//! A subscriber that costs next to nothing: one thread, the least parsing, and an answer at once, late or never.
//!
//! Paths: `/ok/{group}` answers at once, `/slow-{milliseconds}/{group}` later, `/hang/{group}` never,
//! `/fail/{group}` with 500; `GET /stats` says what came, by group.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashSet},
    hash::{BuildHasher, RandomState},
    io::{ErrorKind, Read, Write},
    time::{Duration, Instant},
};

use mio::{
    Events, Interest, Poll, Token,
    net::{TcpListener, TcpStream},
};
use serde::{Deserialize, Serialize};

use super::{
    plan::Quantiles,
    times::{Times, now_us},
    token, wire,
};

const LISTENER: Token = Token(usize::MAX);
const READ_BYTES: usize = 64 * 1024;
const FAILED: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// What came to one group of paths.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Group {
    /// Requests.
    pub(super) requests: u64,
    /// Webhook ids that differ.
    pub(super) distinct: u64,
    /// From sending, as the key's token says, to arrival; microseconds.
    pub(super) latency: Quantiles,
    /// When the last new id came, in microseconds of the Unix epoch.
    pub(super) last_us: u64,
}

/// What came in all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Stats {
    /// Connections that were opened.
    pub(super) connections: u64,
    /// By group.
    pub(super) groups: BTreeMap<String, Group>,
}

/// Receives until standard input ends.
pub(super) fn run() -> anyhow::Result<()> {
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    super::child::end_with_parent();
    let mut listener = TcpListener::bind(([127, 0, 0, 1], 0).into())?;
    super::child::announce(listener.local_addr()?);
    let poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut receiver = Receiver {
        poll,
        listener,
        connections: Vec::new(),
        free: Vec::new(),
        late: BinaryHeap::new(),
        groups: BTreeMap::new(),
        opened: 0,
        hasher: RandomState::new(),
    };
    receiver.run()
}

struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Told apart from a later one in the same place.
    number: u64,
}

struct Counting {
    times: Times,
    ids: HashSet<u64>,
    requests: u64,
    last_us: u64,
}

struct Receiver {
    poll: Poll,
    listener: TcpListener,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Answers that are due later: when, where, to which connection.
    late: BinaryHeap<Reverse<(Instant, usize, u64)>>,
    groups: BTreeMap<Box<[u8]>, Counting>,
    opened: u64,
    hasher: RandomState,
}

/// What a request is answered.
enum Reply {
    AtOnce,
    After(Duration),
    Never,
    Failed,
    Stats,
}

impl Receiver {
    fn run(&mut self) -> anyhow::Result<()> {
        let mut events = Events::with_capacity(1_024);
        let mut scratch = vec![0_u8; READ_BYTES];
        loop {
            let now = Instant::now();
            let wait = self.late.peek().map(|Reverse((at, ..))| at.saturating_duration_since(now));
            match self.poll.poll(&mut events, wait) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept()?,
                    Token(index) => {
                        if !self.ready(index, &mut scratch) {
                            self.connections[index] = None;
                            self.free.push(index);
                        }
                    }
                }
            }
            self.answer_late();
        }
    }

    fn accept(&mut self) -> anyhow::Result<()> {
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            let index = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut stream, Token(index), interest)?;
            stream.set_nodelay(true)?;
            self.opened += 1;
            let (input, output) = (Vec::new(), Vec::new());
            self.connections[index] = Some(Connection { stream, input, output, number: self.opened });
        }
    }

    /// Reads what is there. False if the connection has ended.
    fn ready(&mut self, index: usize, scratch: &mut [u8]) -> bool {
        let Some(mut connection) = self.connections.get_mut(index).and_then(Option::take) else {
            return true;
        };
        let alive = flush(&mut connection) && self.read(index, &mut connection, scratch);
        self.connections[index] = Some(connection);
        alive
    }

    fn read(&mut self, index: usize, connection: &mut Connection, scratch: &mut [u8]) -> bool {
        loop {
            let count = match connection.stream.read(scratch) {
                Ok(0) => return false,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return false,
            };
            connection.input.extend_from_slice(&scratch[..count]);
            if !self.take_requests(index, connection) {
                return false;
            }
            if count < scratch.len() {
                return true;
            }
        }
    }

    fn take_requests(&mut self, index: usize, connection: &mut Connection) -> bool {
        let input = std::mem::take(&mut connection.input);
        let mut rest = &input[..];
        while !rest.is_empty() {
            let asked = match wire::request(rest) {
                Ok(Some(asked)) => asked,
                Ok(None) => break,
                Err(_) => return false,
            };
            rest = &rest[asked.len..];
            match self.count(&asked) {
                Reply::AtOnce => connection.output.extend_from_slice(OK),
                Reply::After(delay) => {
                    self.late.push(Reverse((Instant::now() + delay, index, connection.number)));
                }
                Reply::Never => {}
                Reply::Failed => connection.output.extend_from_slice(FAILED),
                Reply::Stats => connection.output.extend_from_slice(&self.stats()),
            }
        }
        connection.input = if rest.is_empty() { reuse(input) } else { rest.to_vec() };
        flush(connection)
    }

    fn count(&mut self, asked: &wire::Asked<'_>) -> Reply {
        let mut parts = asked.path.splitn(3, |byte| *byte == b'/').skip(1);
        let (how, group) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if how == b"stats" {
            return Reply::Stats;
        }
        if !self.groups.contains_key(group) {
            let counting = Counting { times: Times::new(), ids: HashSet::new(), requests: 0, last_us: 0 };
            self.groups.insert(group.into(), counting);
        }
        if let Some(counting) = self.groups.get_mut(group) {
            counting.requests += 1;
            if counting.ids.insert(self.hasher.hash_one(asked.webhook_id)) {
                counting.last_us = now_us();
                if let Some(sent_us) = token::sent_us(asked.event_id) {
                    counting.times.record_us(counting.last_us.saturating_sub(sent_us));
                }
            }
        }
        match how {
            b"hang" => Reply::Never,
            b"fail" => Reply::Failed,
            _ => match how.strip_prefix(b"slow-").and_then(|digits| std::str::from_utf8(digits).ok()) {
                Some(digits) => Reply::After(Duration::from_millis(digits.parse().unwrap_or(0))),
                None => Reply::AtOnce,
            },
        }
    }

    fn stats(&self) -> Vec<u8> {
        let groups = self.groups.iter().map(|(name, counting)| {
            let group = Group {
                requests: counting.requests,
                distinct: u64::try_from(counting.ids.len()).unwrap_or(u64::MAX),
                latency: counting.times.quantiles(),
                last_us: counting.last_us,
            };
            (String::from_utf8_lossy(name).into_owned(), group)
        });
        let stats = Stats { connections: self.opened, groups: groups.collect() };
        let body = serde_json::to_vec(&stats).expect("numbers can be written");
        let mut answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
        answer.extend_from_slice(&body);
        answer
    }

    fn answer_late(&mut self) {
        let now = Instant::now();
        while let Some(Reverse((at, index, number))) = self.late.peek().copied() {
            if at > now {
                return;
            }
            self.late.pop();
            let connection = self.connections.get_mut(index).and_then(Option::as_mut);
            if let Some(connection) = connection.filter(|connection| connection.number == number) {
                connection.output.extend_from_slice(OK);
                // One that is broken is found so by its next event.
                flush(connection);
            }
        }
    }
}

/// Writes what can be written now. False if the connection has ended.
fn flush(connection: &mut Connection) -> bool {
    while !connection.output.is_empty() {
        match connection.stream.write(&connection.output) {
            Ok(0) => return false,
            Ok(count) => drop(connection.output.drain(..count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
    true
}

fn reuse(mut buffer: Vec<u8>) -> Vec<u8> {
    buffer.clear();
    buffer
}
