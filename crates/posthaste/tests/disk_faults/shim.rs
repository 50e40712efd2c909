//! The real binary over a file system that fails on request: `failing_fs.c`, preloaded.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use tempfile::TempDir;

use crate::cli_support::{Server, posthaste};

/// A folder with a store and the switch of its faults.
pub(crate) struct Disk {
    folder: TempDir,
}

impl Disk {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        crate::server::write_config(folder.path(), "");
        Self { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a server whose disk can fail.
    pub(crate) fn serve(&self) -> Server {
        let mut command = posthaste(self.folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
        command
            .env("LD_PRELOAD", library())
            .env("FAILING_FS_FAULT", self.at("fault"))
            .env("FAILING_FS_LOG", self.at("log"));
        Server::start_as(self.folder.path(), &mut command)
    }

    /// From now on the disk fails like this; see `failing_fs.c`.
    pub(crate) fn fail(&self, how: &str) {
        // Whole or not at all, so that no call sees half of it.
        std::fs::write(self.at("fault.new"), how).unwrap();
        std::fs::rename(self.at("fault.new"), self.at("fault")).unwrap();
    }

    /// The disk works again.
    pub(crate) fn heal(&self) {
        match std::fs::remove_file(self.at("fault")) {
            Ok(()) => {}
            Err(error) => assert_eq!(std::io::ErrorKind::NotFound, error.kind(), "{error}"),
        }
    }

    /// What was done to the store's files since the first start.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let text = std::fs::read_to_string(self.at("log")).unwrap();
        text.lines().map(Call::parse).collect()
    }

    pub(crate) fn log_bytes(&self) -> u64 {
        std::fs::metadata(self.at("posthaste.db-wal")).map_or(0, |found| found.len())
    }
}

/// One line of the shim's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) what: String,
    pub(crate) descriptor: i32,
    pub(crate) file: String,
    pub(crate) failed: bool,
}

impl Call {
    fn parse(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, descriptor, file, how] = words[..] else { panic!("{line:?}") };
        Self {
            what: what.to_owned(),
            descriptor: descriptor.parse().unwrap(),
            file: file.to_owned(),
            failed: how == "failed",
        }
    }
}

/// Descriptors of the log on which something went on after a sync had failed on them: none may.
pub(crate) fn used_after_a_failed_sync(calls: &[Call]) -> Vec<&Call> {
    let log: Vec<&Call> = calls.iter().filter(|call| call.file == "log").collect();
    let failed = log.iter().enumerate().filter(|(_, call)| call.what == "sync" && call.failed);
    let next = failed.filter_map(|(index, failed)| {
        log[index + 1..].iter().find(|call| call.descriptor == failed.descriptor)
    });
    // One that is opened was closed before, if only by the end of its process.
    next.filter(|call| !["close", "open"].contains(&call.what.as_str())).copied().collect()
}

/// The shim, compiled once.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = LIBRARY.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("failing_fs.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/disk_faults/failing_fs.c");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&path).arg(source);
        let output = cc.output().expect("a C compiler is there");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (folder, path)
    });
    path
}

#[test]
fn going_on_after_a_failed_sync_is_noticed() {
    let calls = |lines: &[&str]| -> Vec<Call> { lines.iter().map(|line| Call::parse(line)).collect() };
    let closed =
        ["sync 9 log failed", "sync 8 database ok", "close 9 log ok", "open 9 log ok", "sync 9 log ok"];
    assert!(used_after_a_failed_sync(&calls(&closed)).is_empty());
    let again = calls(&["sync 9 log failed", "sync 9 log ok", "close 9 log ok"]);
    assert_eq!([&again[1]], *used_after_a_failed_sync(&again));
}
