//! The real server as a child process, started again and again on the same port and store.

use std::{
    fs::{File, OpenOptions},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use posthaste_testkit::history::record::{Change, Record, ServerChange};

use super::{
    chance::Chance,
    client::{Client, KEY},
    log::Log,
};

/// How long a start may take on a machine under load.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// How long between two looks at a process.
const LOOK: Duration = Duration::from_millis(3);

/// A port below those that the system gives to outgoing connections, so that nobody takes it between two lives.
pub(crate) fn free_port(seed: u64) -> u16 {
    let mut chance = Chance::of(seed ^ u64::from(std::process::id()), "port");
    let port = |_| u16::try_from(chance.within(20_000..32_000)).unwrap();
    (0..1_000).map(port).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a port is free")
}

/// The server of a run, whether it lives or not.
pub(crate) struct Server {
    folder: PathBuf,
    address: SocketAddr,
    log: Arc<Log>,
    child: Option<Child>,
}

impl Server {
    pub(crate) fn new(folder: &Path, address: SocketAddr, log: Arc<Log>) -> Self {
        Self { folder: folder.to_owned(), address, log, child: None }
    }

    /// Starts it with these faults; true once it answers, false if it ended before.
    pub(crate) async fn start(&mut self, faults: &str) -> bool {
        let mut command = Command::new(env!("CARGO_BIN_EXE_posthaste"));
        command.arg("serve").current_dir(&self.folder).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("POSTHASTE_BOOTSTRAP_KEY", KEY);
        if !faults.is_empty() {
            command.env("POSTHASTE_FAULTS", faults);
        }
        command.stdin(Stdio::null()).stdout(self.output("out")).stderr(self.output("err"));
        self.child = Some(command.spawn().unwrap());
        let deadline = Instant::now() + START_PATIENCE;
        let mut client = Client::new(self.address, Arc::clone(&self.log));
        while self.ended().is_none() {
            let call = client.api("GET", "/readyz", "").await;
            if call.and_then(|call| call.answer).is_some_and(|answer| answer.status == 200) {
                self.note(Change::Started);
                return true;
            }
            assert!(Instant::now() < deadline, "the server does not start:\n{}", self.printed());
            tokio::time::sleep(LOOK).await;
        }
        false
    }

    fn output(&self, name: &str) -> File {
        OpenOptions::new().create(true).append(true).open(self.folder.join(name)).unwrap()
    }

    /// What it printed, in all its lives.
    pub(crate) fn printed(&self) -> String {
        let read = |name| std::fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        format!("{}\n{}", read("out"), read("err"))
    }

    fn note(&self, change: Change) {
        self.log.add(Record::Server(ServerChange { change, at: self.log.now() }));
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.as_mut().expect("it was started").try_wait().unwrap()
    }

    /// Kills it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        let child = self.child.as_mut().expect("it was started");
        child.kill().unwrap();
        child.wait().unwrap();
        self.note(Change::Killed);
    }

    /// It must still live.
    pub(crate) fn assert_alive(&mut self) {
        if let Some(status) = self.ended() {
            panic!("the server ended by itself ({status}):\n{}", self.printed());
        }
    }

    /// Waits for its end at `point`; false if it did not come there in time.
    pub(crate) async fn died_at(&mut self, point: &str, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.ended() {
                // An abort is a signal; an exit code would be an error that it told of.
                assert_eq!(None, status.code(), "it ended otherwise:\n{}", self.printed());
                self.note(Change::Died(point.to_owned()));
                return true;
            }
            if Instant::now() > deadline {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
