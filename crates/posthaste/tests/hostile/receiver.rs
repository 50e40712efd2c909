//! A raw TCP receiver: what it does is chosen by the path of the request, so that one listener is every receiver.

use std::{
    collections::HashMap,
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

/// One thing a receiver does, after it read a request's head.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Writes these bytes one at a time, with a pause after each, until nobody takes them.
    Drip(&'static [u8]),
    /// Writes these bytes again and again, until nobody takes them.
    Flood(Vec<u8>),
    /// Keeps the connection until the sender closes it.
    Hang,
    /// Lets the sender read what was written: a reset takes back what is still on its way.
    Pause,
    /// Closes with a reset.
    Reset,
    /// Closes.
    Close,
}

/// Between two bytes of [`Act::Drip`].
const DRIP_PAUSE: Duration = Duration::from_millis(50);

/// Of [`Act::Pause`].
const READ_PAUSE: Duration = Duration::from_millis(500);

/// A running receiver, and how often each path was asked for.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    hits: Arc<Mutex<HashMap<String, usize>>>,
}

impl Receiver {
    /// Listens; `scripts`: by path, without the slash.
    pub(crate) fn start(scripts: HashMap<String, Vec<Act>>) -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let address = listener.local_addr().unwrap();
        let hits: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
        let (scripts, counted) = (Arc::new(scripts), Arc::clone(&hits));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (scripts, counted) = (Arc::clone(&scripts), Arc::clone(&counted));
                thread::spawn(move || play(stream, &scripts, &counted));
            }
        });
        Self { address, hits }
    }

    /// How often `path` was asked for.
    pub(crate) fn hits(&self, path: &str) -> usize {
        self.hits.lock().unwrap().get(path).copied().unwrap_or(0)
    }
}

fn play(mut stream: TcpStream, scripts: &HashMap<String, Vec<Act>>, hits: &Mutex<HashMap<String, usize>>) {
    let Some(path) = read_head(&mut stream) else { return };
    *hits.lock().unwrap().entry(path.clone()).or_default() += 1;
    let unknown = vec![Act::Write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()), Act::Hang];
    for act in scripts.get(&path).unwrap_or(&unknown) {
        if perform(&mut stream, act).is_none() {
            return;
        }
    }
}

/// Reads the head of a request: the path, without the slash.
fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > 64 * 1024 || stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&head);
    Some(text.split(' ').nth(1)?.trim_start_matches('/').to_owned())
}

#[allow(clippy::disallowed_methods)] // its slowness is what is tested
fn perform(stream: &mut TcpStream, act: &Act) -> Option<()> {
    match act {
        Act::Write(bytes) => stream.write_all(bytes).ok(),
        Act::Drip(bytes) => {
            for byte in bytes.iter().cycle() {
                stream.write_all(&[*byte]).ok()?;
                thread::sleep(DRIP_PAUSE);
            }
            None
        }
        Act::Flood(bytes) => {
            while stream.write_all(bytes).is_ok() {}
            None
        }
        Act::Hang => {
            let mut buffer = [0; 4 * 1024];
            while matches!(stream.read(&mut buffer), Ok(1..)) {}
            None
        }
        Act::Pause => {
            thread::sleep(READ_PAUSE);
            Some(())
        }
        Act::Reset => {
            // A close while bytes of the request are unread is a reset: its body is never read here.
            stream.peek(&mut [0]).ok()?;
            None
        }
        Act::Close => stream.shutdown(Shutdown::Both).ok(),
    }
}
