//! Many connections on one thread: each sends a request, waits for the answer, and asks its driver what comes next.

use std::{
    io::{ErrorKind, Read, Write},
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::Context;
use mio::{Events, Interest, Poll, Token, net::TcpStream};

use super::super::{
    plan::Outcome,
    wire::{self, Answer},
};

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;

/// How long to wait at most for something to happen.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// Decides what connections send, and counts what comes back.
pub(super) trait Driver {
    /// What `connection` does next; a request is written over `request`, which holds its last one.
    fn next(&mut self, connection: usize, turn: Turn, request: &mut Vec<u8>) -> Next;
    /// `connection` was answered.
    fn answered(&mut self, connection: usize, answer: &Answer<'_>, begun: Instant, now: Instant);
    /// `connection` broke with a request on its way.
    fn broken(&mut self, connection: usize);
    /// When to give up waiting for answers.
    fn patient_until(&self) -> Instant;
    /// The sum, once nothing is on its way; `unanswered` requests were given up.
    fn finish(&mut self, unanswered: usize) -> Outcome;
}

/// When a driver is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) now: Instant,
    /// Whether the connection had nothing to do until now.
    pub(super) rested: bool,
}

/// What a connection does next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// It sends; its time counts from `begun`.
    Send { begun: Instant },
    /// It is asked again then.
    Rest { until: Instant },
    /// It has nothing more to do.
    Done,
}

/// Runs until no connection has anything to do.
pub(super) fn drive(
    address: SocketAddr,
    connections: usize,
    driver: &mut impl Driver,
) -> anyhow::Result<Outcome> {
    let mut running = Running {
        poll: Poll::new()?,
        address,
        connections: Vec::with_capacity(connections),
        resting: Vec::new(),
        again: (0..connections).collect(),
        rest_until: None,
        on_the_way: 0,
        opened: 0,
        driver,
    };
    for index in 0..connections {
        let stream = running.open(index)?;
        running.connections.push(Connection::new(stream));
    }
    running.run()
}

struct Connection {
    stream: TcpStream,
    output: Vec<u8>,
    written: usize,
    input: Vec<u8>,
    begun: Instant,
    busy: bool,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        let (output, input) = (Vec::new(), Vec::new());
        Self { stream, output, written: 0, input, begun: Instant::now(), busy: false }
    }

    /// Writes what can be written now.
    fn write(&mut self) -> std::io::Result<()> {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

struct Running<'d, D> {
    poll: Poll,
    address: SocketAddr,
    connections: Vec<Connection>,
    /// Connections that wait for their time.
    resting: Vec<usize>,
    /// Connections whose driver is to be asked.
    again: Vec<usize>,
    rest_until: Option<Instant>,
    on_the_way: usize,
    opened: u64,
    driver: &'d mut D,
}

impl<D: Driver> Running<'_, D> {
    fn run(mut self) -> anyhow::Result<Outcome> {
        let mut events = Events::with_capacity(1_024);
        let mut scratch = vec![0_u8; READ_BYTES];
        let patient_until = self.driver.patient_until();
        loop {
            let now = Instant::now();
            self.take_turns(now);
            if self.on_the_way == 0 && self.resting.is_empty() && self.again.is_empty() {
                break;
            }
            if now > patient_until {
                break;
            }
            let wait = self.rest_until.map_or(WAIT_MAX, |until| until.saturating_duration_since(now));
            let wait = if self.again.is_empty() { wait.min(WAIT_MAX) } else { Duration::ZERO };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                self.ready(event.token().0, &mut scratch);
            }
        }
        let mut outcome = self.driver.finish(self.on_the_way);
        outcome.connections = self.opened;
        Ok(outcome)
    }

    fn open(&mut self, index: usize) -> anyhow::Result<TcpStream> {
        let stream = std::net::TcpStream::connect(self.address).context("can't connect")?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut stream, Token(index), interest)?;
        self.opened += 1;
        Ok(stream)
    }

    /// Asks the drivers of connections that wait for a turn.
    fn take_turns(&mut self, now: Instant) {
        for index in std::mem::take(&mut self.again) {
            self.step(index, Turn { now: Instant::now(), rested: false });
        }
        if self.rest_until.is_some_and(|until| until <= now) {
            self.rest_until = None;
            for index in std::mem::take(&mut self.resting) {
                self.step(index, Turn { now: Instant::now(), rested: true });
            }
        }
    }

    fn step(&mut self, index: usize, turn: Turn) {
        let connection = &mut self.connections[index];
        match self.driver.next(index, turn, &mut connection.output) {
            Next::Send { begun } => {
                connection.begun = begun;
                connection.written = 0;
                connection.busy = true;
                self.on_the_way += 1;
                if connection.write().is_err() {
                    self.broken(index);
                }
            }
            Next::Rest { until } => {
                self.resting.push(index);
                self.rest_until = Some(self.rest_until.map_or(until, |known| known.min(until)));
            }
            Next::Done => {}
        }
    }

    /// Something happened on a connection.
    fn ready(&mut self, index: usize, scratch: &mut [u8]) {
        loop {
            let connection = &mut self.connections[index];
            if connection.write().is_err() {
                return self.broken(index);
            }
            match connection.stream.read(scratch) {
                Ok(0) => return self.broken(index),
                Ok(count) => {
                    if !self.received(index, &scratch[..count]) {
                        return self.broken(index);
                    }
                    if count < scratch.len() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.broken(index),
            }
        }
    }

    /// Takes bytes in. False if the connection is of no use any more.
    fn received(&mut self, index: usize, bytes: &[u8]) -> bool {
        let connection = &mut self.connections[index];
        let mut input = std::mem::take(&mut connection.input);
        if !input.is_empty() {
            input.extend_from_slice(bytes);
        }
        let whole = if input.is_empty() { bytes } else { &input };
        let answer = match wire::answer(whole) {
            Ok(Some(answer)) => answer,
            Ok(None) => {
                if input.is_empty() {
                    input.extend_from_slice(bytes);
                }
                connection.input = input;
                return true;
            }
            Err(_) => return false,
        };
        if !connection.busy || answer.len != whole.len() {
            return false;
        }
        let now = Instant::now();
        connection.busy = false;
        self.on_the_way -= 1;
        self.driver.answered(index, &answer, connection.begun, now);
        if answer.closes {
            return false;
        }
        input.clear();
        self.connections[index].input = input;
        // Not before all that came has been read: requests that leave together cost the server fewer wake-ups.
        self.again.push(index);
        true
    }

    /// Opens a connection again; what was on its way is lost. If it can't be opened, it has ended.
    fn broken(&mut self, index: usize) {
        let was_busy = std::mem::take(&mut self.connections[index].busy);
        if was_busy {
            self.on_the_way -= 1;
            self.driver.broken(index);
        }
        if let Ok(stream) = self.open(index) {
            let connection = &mut self.connections[index];
            connection.stream = stream;
            connection.input.clear();
            // One that rests is asked when its time comes.
            if !self.resting.contains(&index) {
                self.again.push(index);
            }
        }
    }
}
