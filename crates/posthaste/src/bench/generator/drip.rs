//! Slow clients: connections that send a byte a second and never come to an end. One that is cut comes again.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::mpsc::channel,
    time::{Duration, Instant},
};

use anyhow::Context;

use super::{Tally, Window, tally::Until};
use crate::bench::plan::{Outcome, Part};

/// Between two bytes of one connection.
const BYTE_EVERY: Duration = Duration::from_secs(1);

struct Slow {
    stream: TcpStream,
    next: usize,
}

/// Keeps `count` slow connections open for as long as `window` says.
pub(super) fn run(
    address: SocketAddr,
    count: usize,
    part: Part,
    request: &str,
    window: Window,
) -> anyhow::Result<Outcome> {
    let bytes = request.as_bytes();
    let at_once = match part {
        Part::Head => 0,
        Part::Body => request.find("\r\n\r\n").context("a request without an end of its head")? + 4,
    };
    let open = || -> anyhow::Result<Slow> {
        let mut stream = TcpStream::connect(address).context("can't connect")?;
        stream.set_nodelay(true)?;
        stream.write_all(&bytes[..at_once])?;
        stream.set_nonblocking(true)?;
        Ok(Slow { stream, next: at_once })
    };
    let mut slow = (0..count).map(|_| open()).collect::<Result<Vec<_>, _>>()?;
    let mut opened = u64::try_from(count).unwrap_or(u64::MAX);
    let mut tally = Tally::begin(window);
    // A wait with a deadline: nobody sends.
    let (_silent, wait) = channel::<()>();
    while Instant::now() < tally.end {
        for one in &mut slow {
            if !drip(one, bytes) {
                *one = open()?;
                opened += 1;
            }
        }
        let _ = wait.recv_timeout(BYTE_EVERY);
    }
    let mut outcome = tally.take(Until::WindowEnds);
    outcome.connections = opened;
    Ok(outcome)
}

/// Sends one byte more. False if the other side had enough.
fn drip(slow: &mut Slow, bytes: &[u8]) -> bool {
    let mut answer = [0_u8; 512];
    match slow.stream.read(&mut answer) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        // An answer to what is not a whole request says no.
        Ok(_) | Err(_) => return false,
    }
    // The last byte never comes.
    if slow.next + 1 >= bytes.len() {
        return true;
    }
    let sent = slow.stream.write(&bytes[slow.next..=slow.next]);
    slow.next += sent.as_ref().copied().unwrap_or(0);
    sent.is_ok() || sent.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}
