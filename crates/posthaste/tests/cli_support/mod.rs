//! Runs the real binary: a command to its end, or a server until it is stopped.

#![allow(dead_code, unreachable_pub, missing_docs)] // each test file uses a part
#![allow(clippy::unwrap_used)]

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

/// A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// The binary in `folder`, with an environment of its own.
pub fn posthaste(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_posthaste"));
    command.args(arguments).current_dir(folder).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command
}

/// How a command ended.
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Ended {
    command.stdin(Stdio::null()).output().unwrap().into()
}

/// Runs a command that reads `input`.
pub fn run_with_input(command: &mut Command, input: String) -> Ended {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Both pipes are finite: whoever writes must not wait for whoever reads.
    let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let ended = child.wait_with_output().unwrap().into();
    writer.join().unwrap().unwrap();
    ended
}

/// Lines of a stream as they come, and all of them so far.
pub struct Lines {
    receiver: Receiver<String>,
    pub seen: Vec<String>,
}

impl Lines {
    fn of(stream: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { receiver, seen: Vec::new() }
    }

    /// The next line that holds `text`.
    pub fn wait_for(&mut self, text: &str) -> String {
        loop {
            let line = self.receiver.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no line with {text:?} came; came: {:#?}", self.seen));
            self.seen.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Everything until the stream ends.
    pub fn rest(&mut self) -> String {
        self.seen.extend(self.receiver.iter());
        self.seen.join("\n")
    }
}

/// A running server. Killed when dropped.
pub struct Server {
    child: Child,
    pub out: Lines,
    pub err: Lines,
    pub url: String,
    pub key: String,
    folder: std::path::PathBuf,
}

/// An admin key that tests give.
pub const KEY: &str = "phk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

impl Server {
    /// Starts one on a free port and waits until it listens.
    pub fn start(folder: &Path) -> Self {
        Self::start_as(folder, &mut posthaste(folder, &["serve", "--listen", "127.0.0.1:0"]))
    }

    /// Starts one by `command`, with [`KEY`] as its admin key unless it has another.
    pub fn start_as(folder: &Path, command: &mut Command) -> Self {
        let mut server = Self::spawn(folder, command.env("POSTHASTE_BOOTSTRAP_KEY", KEY));
        KEY.clone_into(&mut server.key);
        server
    }

    /// Starts one that makes its own admin key.
    pub fn start_new(folder: &Path) -> Self {
        let mut server = Self::spawn(folder, &mut posthaste(folder, &["serve", "--listen", "127.0.0.1:0"]));
        let line = server.err.wait_for("POSTHASTE_API_KEY=");
        line.split_once('=').unwrap().1.clone_into(&mut server.key);
        server
    }

    fn spawn(folder: &Path, command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = Lines::of(child.stdout.take().unwrap());
        let mut err = Lines::of(child.stderr.take().unwrap());
        let line = err.wait_for("listening on ");
        let url = line.strip_prefix("listening on ").unwrap().to_owned();
        Self { child, out, err, url, key: String::new(), folder: folder.to_owned() }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, by its name.
    pub fn signal(&self, name: &str) {
        let status =
            Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// A command that talks to this server.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = posthaste(&self.folder, arguments);
        command.env("POSTHASTE_URL", &self.url).env("POSTHASTE_API_KEY", &self.key);
        command
    }

    /// Runs a command that must succeed, and gives what it printed.
    pub fn cli(&self, arguments: &[&str]) -> String {
        let ended = run(&mut self.command(arguments));
        assert_eq!(Some(0), ended.code, "{arguments:?}: {}", ended.err);
        ended.out
    }

    /// Runs a command that must succeed, and gives its JSON.
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.cli(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// Waits for its end, a signal having been sent.
    pub fn stop_after_signal(mut self) -> Ended {
        let code = self.child.wait().unwrap().code();
        Ended { code, out: self.out.rest(), err: self.err.rest() }
    }

    /// Stops it, and gives its exit code and all that it printed.
    pub fn stop(self) -> Ended {
        self.signal("TERM");
        self.stop_after_signal()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
