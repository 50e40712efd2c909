//! The bench's processes: all are this very program, told apart by their arguments, and end with the bench.

use std::{
    collections::VecDeque,
    fs::File,
    io::{BufRead, BufReader, Read, Write as _},
    net::SocketAddr,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{ChildStderr, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use anyhow::{Context, bail};

use super::plan::{Outcome, Plan};

/// What a listening child says on standard error, before its address.
const LISTENING: &str = "listening on http://";

/// How long a child may take until it listens; a large store is checked first.
const START_TIMEOUT: Duration = Duration::from_mins(10);

/// Lines kept of what a child said on standard error.
const LINES_KEPT: usize = 20;

/// Tells the parent where a child listens.
pub(super) fn announce(address: SocketAddr) {
    // A parent that has gone needs no telling.
    let _ = writeln!(std::io::stderr().lock(), "{LISTENING}{address}");
}

/// Ends this process when its parent does, which holds the other end of standard input.
pub(crate) fn end_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
}

/// A child that listens. Killed when dropped.
pub(super) struct Listening {
    process: std::process::Child,
    pub(super) address: SocketAddr,
}

impl Listening {
    /// Starts this program with `arguments`, and waits until it listens. Standard output goes to `output`.
    pub(super) fn start(
        arguments: &[&str],
        variables: &[(&str, &str)],
        folder: &Path,
        output: Stdio,
    ) -> anyhow::Result<Self> {
        let mut command = program(folder)?;
        command.args(arguments).envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(output).stderr(Stdio::piped());
        let mut process = command.spawn().context("a process can't be started")?;
        let said = Said::of(process.stderr.take());
        let address = match said.address() {
            Ok(address) => address,
            Err(error) => {
                let _ = process.kill();
                let _ = process.wait();
                return Err(error.context(format!("`{}` did not start", arguments.join(" "))));
            }
        };
        Ok(Self { process, address })
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Errors: it has ended by itself.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        match self.process.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("a process of the bench ended by itself ({status})"),
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a child says on standard error.
struct Said {
    addresses: Receiver<SocketAddr>,
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl Said {
    fn of(stream: Option<ChildStderr>) -> Self {
        let (sender, addresses) = channel();
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&lines);
        if let Some(stream) = stream {
            std::thread::spawn(move || listen(stream, &sender, &kept));
        }
        Self { addresses, lines }
    }

    fn address(&self) -> anyhow::Result<SocketAddr> {
        self.addresses.recv_timeout(START_TIMEOUT).map_err(|_| {
            let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            anyhow::anyhow!("{}", lines.iter().cloned().collect::<Vec<_>>().join("\n"))
        })
    }
}

fn listen(stream: ChildStderr, addresses: &Sender<SocketAddr>, kept: &Mutex<VecDeque<String>>) {
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if let Some(address) = line.strip_prefix(LISTENING).and_then(|address| address.parse().ok()) {
            // It is asked for once.
            let _ = addresses.send(address);
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == LINES_KEPT {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}

/// A load process. Killed when dropped before its end.
pub(super) struct Loading {
    process: Option<std::process::Child>,
}

impl Loading {
    /// Starts to do what `plan` says.
    pub(super) fn start(plan: &Plan, folder: &Path) -> anyhow::Result<Self> {
        let mut command = program(folder)?;
        command.args(["bench-child", "load"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().context("a load process can't be started")?;
        let mut input = process.stdin.take().context("a load process has no standard input")?;
        let loading = Self { process: Some(process) };
        serde_json::to_writer(&mut input, plan)?;
        drop(input);
        Ok(loading)
    }

    /// What came of it.
    pub(super) fn finish(mut self) -> anyhow::Result<Outcome> {
        let process = self.process.take().context("it has been finished")?;
        let output = process.wait_with_output()?;
        if !output.status.success() {
            bail!("the load process failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        serde_json::from_slice(&output.stdout).context("the load process gave no outcome")
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// This program in `folder`, with nothing of the environment that would configure it.
fn program(folder: &Path) -> anyhow::Result<Command> {
    // Linux's name for it holds even when the file is replaced meanwhile.
    let running = Path::new("/proc/self/exe");
    let file = if running.exists() {
        running.to_owned()
    } else {
        std::env::current_exe().context("this program's file is not known")?
    };
    let mut command = Command::new(file);
    command.arg0("posthaste").current_dir(folder);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("POSTHASTE_"))
    {
        command.env_remove(name);
    }
    Ok(command)
}

/// A file for what a child says on standard output.
pub(super) fn log_file(path: &Path) -> anyhow::Result<Stdio> {
    Ok(File::create(path).with_context(|| format!("{} can't be written", path.display()))?.into())
}
