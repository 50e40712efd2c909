//! The other programs. One that is missing fails the test and says how to get it.

use std::{
    ffi::OsStr,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
};

use crate::chance::Chance;

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Where `scripts/services/receivers/prepare.sh` has put the receivers with all that they need.
pub(crate) fn prepared() -> PathBuf {
    let folder = std::env::var("POSTHASTE_TEST_RECEIVERS");
    folder
        .expect("scripts/test prepares the receivers and names their folder in POSTHASTE_TEST_RECEIVERS")
        .into()
}

/// A file of the prepared folder.
pub(crate) fn prepared_file(name: &str) -> PathBuf {
    let file = prepared().join(name);
    assert!(file.exists(), "{} is missing: run scripts/services/receivers/prepare.sh", file.display());
    file
}

/// Runs a program to its end, which must be a good one, and gives what it printed.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| missing(command, &error));
    printed(command, output)
}

/// What a program printed that ended well.
pub(crate) fn printed(command: &Command, output: Output) -> String {
    assert!(
        output.status.success(),
        "{command:?} ended with {}:\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Lets a tool read `script`.
pub(crate) fn play(tool: &mut Command, script: &str) -> Output {
    tool.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = tool.spawn().unwrap_or_else(|error| missing(tool, &error));
    let mut stdin = child.stdin.take().unwrap();
    let script = script.to_owned();
    // One that dies reads no further.
    let writer = thread::spawn(move || drop(stdin.write_all(script.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// Says which program is missing.
pub(crate) fn missing(command: &Command, error: &std::io::Error) -> ! {
    let program = command.get_program().display();
    panic!("{program} does not run ({error}): scripts/test installs it as root on Debian")
}

/// A command of a service script.
pub(crate) fn script(name: &str, arguments: &[&OsStr]) -> Command {
    let mut command = Command::new(root().join("scripts/services").join(name));
    command.args(arguments);
    command
}

/// A port below those that the system gives to outgoing connections; each test, which has a thread of its own, looks in
/// its own order.
pub(crate) fn free_port(seed: u64) -> u16 {
    let test = thread::current().name().unwrap_or_default().to_owned();
    let mut chance = Chance::of(seed ^ u64::from(std::process::id()), &test);
    let port = |_| u16::try_from(chance.within(20_000..32_000)).unwrap();
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (0..1_000).map(port).find(is_free).expect("a port is free")
}
