//! One process of a receiver.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::mpsc::channel,
    thread,
    time::Duration,
};

use crate::{database::Database, tools};

/// How long a start may take on a machine under load.
const START_PATIENCE: Duration = Duration::from_mins(1);

/// The secret that the sender signs with.
pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The receivers in `examples/receivers`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Language {
    Node,
    PythonPostgres,
    PythonSqlite,
    Go,
}

impl Language {
    fn command(self) -> Command {
        let python = |script: &str| {
            let mut command = Command::new(tools::prepared_file("python/bin/python"));
            command.arg(tools::root().join("examples/receivers/python").join(script));
            command
        };
        match self {
            Self::Node => {
                let mut command = Command::new("node");
                command.arg(tools::prepared_file("node/receiver.mjs"));
                command
            }
            Self::PythonPostgres => python("receiver_pg.py"),
            Self::PythonSqlite => python("receiver_sqlite.py"),
            Self::Go => Command::new(tools::prepared_file("go/receiver")),
        }
    }
}

/// A running receiver; killed when dropped.
pub(crate) struct Process {
    pub(crate) address: SocketAddr,
    child: Child,
}

impl Process {
    /// Starts one on a free port, whose leases are so long, and waits until it says that it listens.
    pub(crate) fn start(language: Language, database: &Database, lease_ms: u32) -> Self {
        let mut command = language.command();
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("PORT", "0")
            .env("DATABASE_URL", database.url())
            .env("LEDGER_SQL", database.statements())
            .env("LEASE_MS", lease_ms.to_string())
            .env("WEBHOOK_SECRET", SECRET)
            // The driver of Go asks for TLS unless told.
            .env("PGSSLMODE", "disable")
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| tools::missing(&command, &error));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, receiver) = channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(address) = line.strip_prefix("listening on ") {
                    let _ = sender.send(address.parse());
                }
            }
        });
        let address = receiver.recv_timeout(START_PATIENCE);
        let address =
            address.unwrap_or_else(|_| panic!("{language:?} does not listen: {:?}", child.try_wait()));
        Self { address: address.unwrap(), child }
    }

    /// It must still live.
    pub(crate) fn assert_alive(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "the receiver ended by itself: {ended:?}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
