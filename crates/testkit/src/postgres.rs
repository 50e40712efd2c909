//! PostgreSQL of our own, started by the project's script and gone afterwards.

// Helpers of tests, although they stand in a library.
#![allow(clippy::unwrap_used)]

use std::{
    fs::File,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::LazyLock,
};

use tempfile::TempDir;

/// A server of one's own, stopped when dropped; or the one that all test programs share.
pub struct PostgresServer {
    folder: PathBuf,
    port: u16,
    own: Option<TempDir>,
}

impl PostgresServer {
    /// One that may be stopped, killed and set up otherwise.
    pub fn start() -> Self {
        let folder = in_memory().map_or_else(tempfile::tempdir, tempfile::tempdir_in).unwrap();
        let server = Self { folder: folder.path().to_owned(), port: free_port(), own: Some(folder) };
        server.up();
        server
    }

    /// The one that all test programs of this copy of the project share, each in schemas of its own. Whoever uses it last
    /// stops it and throws it away.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<(PostgresServer, Child, File)> = LazyLock::new(share);
        &SHARED.0
    }

    /// Starts it, again if need be.
    pub fn up(&self) {
        run(self.script("start").arg(self.port.to_string()));
    }

    /// Stops it as an administrator does: nobody's transaction is finished.
    pub fn down(&self) {
        run(&mut self.script("stop"));
    }

    /// Kills all of it at once, as a loss of power would.
    pub fn kill(&self) {
        let pidfile = std::fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap();
        let postmaster = pidfile.lines().next().unwrap();
        let children = Command::new("pgrep").args(["-P", postmaster]).output().unwrap();
        let children = String::from_utf8(children.stdout).unwrap();
        // The first one first, so that it starts nothing anew.
        run(Command::new("kill").arg("-9").arg(postmaster).args(children.split_whitespace()));
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// On which port of this machine.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What it logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn script(&self, verb: &str) -> Command {
        let mut command = Command::new("bash");
        command.arg(script()).arg(verb).arg(&self.folder);
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if self.own.is_some() {
            self.down();
        }
    }
}

fn share() -> (PostgresServer, Child, File) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tests-postgres");
    std::fs::create_dir_all(&folder).unwrap();
    let gate = File::create(folder.join("gate")).unwrap();
    let users = File::create(folder.join("users")).unwrap();
    gate.lock().unwrap();
    users.lock_shared().unwrap();
    let known = std::fs::read_to_string(folder.join("place")).ok().and_then(|text| {
        let (port, data) = text.split_once(' ')?;
        Some((port.parse().ok()?, PathBuf::from(data)))
    });
    let up = known.filter(|(port, _)| TcpStream::connect(("127.0.0.1", *port)).is_ok());
    let (port, data) = up.unwrap_or_else(|| {
        let data = in_memory().map_or_else(tempfile::tempdir, tempfile::tempdir_in).unwrap();
        (free_port(), data.keep())
    });
    std::fs::write(folder.join("place"), format!("{port} {}", data.display())).unwrap();
    let server = PostgresServer { folder: data, port, own: None };
    server.up();
    let last = format!(
        "cat; sleep 5; exec 3>>{0}/gate 4>>{0}/users; flock 3; flock --nonblock --exclusive 4 || exit 0; \
         bash {1} stop {2}; rm -r {2}",
        folder.display(),
        script().display(),
        server.folder.display(),
    );
    // It reads until this process is gone, however it went; the next one may come soon.
    let mut stopper = Command::new("bash");
    stopper.args(["-c", &last]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    (server, stopper.spawn().unwrap(), users)
}

/// A folder in memory, if there is one: what the tests look at survives a loss of the server's memory there, and syncs cost
/// nothing.
fn in_memory() -> Option<&'static Path> {
    Some(Path::new("/dev/shm")).filter(|folder| folder.is_dir())
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/services/postgres.sh")
}

/// Free now; a stranger who takes it meanwhile makes a start fail, not a test lie.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
