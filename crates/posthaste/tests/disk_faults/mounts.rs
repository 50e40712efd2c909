//! Real file systems, small enough to be filled, in a mount namespace of their own: needs root.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, ErrorKind, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::{
    cli_support::{KEY, Server, posthaste, run},
    client::{Client, REFUSED_BYTES},
    nothing_is_acknowledged, some_acknowledged, works_again,
};

/// A tmpfs of 24 MiB at `disk` within a folder. It goes with the process that holds its namespace, which ends when
/// its input does: nothing is left behind, whatever becomes of the test.
struct SmallDisk {
    folder: TempDir,
    holder: Child,
}

impl SmallDisk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        crate::server::write_config(folder.path(), "");
        let disk = folder.path().join("disk");
        std::fs::create_dir(&disk).unwrap();
        let script = "mount -t tmpfs -o size=24m tmpfs \"$1\" && echo mounted && exec cat";
        let mut holder = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"])
            .arg(&disk)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!("mounted\n", line, "a tmpfs needs root");
        Self { folder, holder }
    }

    /// A command within the namespace.
    fn within(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.holder.id().to_string(), "--"]);
        command
    }

    fn serving(&self) -> Command {
        let inner = posthaste(self.folder.path(), &[]);
        let mut command = self.within();
        let store = format!("sqlite:{}", self.folder.path().join("disk/posthaste.db").display());
        command.arg(inner.get_program()).args(["serve", "--listen", "127.0.0.1:0", "--store", &store]);
        // nsenter goes to the root of the namespace.
        command.arg("--config").arg(self.folder.path().join("posthaste.toml"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    fn serve(&self) -> Server {
        Server::start_as(self.folder.path(), &mut self.serving())
    }

    fn filler(&self) -> PathBuf {
        let within = self.folder.path().join("disk/filler");
        let root = format!("/proc/{}/root", self.holder.id());
        PathBuf::from(root).join(within.strip_prefix("/").unwrap())
    }

    /// Takes all space that is left, and says how much that was.
    fn fill(&self) -> usize {
        let mut filler: File = OpenOptions::new().create(true).append(true).open(self.filler()).unwrap();
        let mut filled = 0;
        loop {
            match filler.write(&[0; 4096]) {
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::StorageFull => return filled,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn remount(&self, how: &str) {
        let disk = self.folder.path().join("disk");
        let status =
            self.within().args(["mount", "-o", &format!("remount,{how}")]).arg(disk).status().unwrap();
        assert!(status.success(), "remount,{how}");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// Until nothing goes any more: what a refused commit gave back is taken too.
async fn fill_up(disk: &SmallDisk, client: &mut Client) {
    let mut rounds_without_space = 0;
    for _ in 0..1_000 {
        let filled = disk.fill();
        let published = client.publish(REFUSED_BYTES).await;
        rounds_without_space = if filled == 0 && !published { rounds_without_space + 1 } else { 0 };
        if rounds_without_space == 50 {
            return;
        }
    }
    panic!("the disk is never full");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_on_a_full_disk_nothing_is_acknowledged_and_it_recovers_when_there_is_space() {
    let disk = SmallDisk::new();
    let (server, mut client, job) = some_acknowledged(disk.serve()).await;
    fill_up(&disk, &mut client).await;
    client.wait_until_ready_is(503).await;
    nothing_is_acknowledged(&mut client, &job).await;
    std::fs::remove_file(disk.filler()).unwrap();
    let server = works_again(server, client, &job, || disk.serve()).await;
    assert_eq!(Some(0), server.stop().code);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_a_crash_on_a_full_disk_loses_nothing_that_was_acknowledged() {
    let disk = SmallDisk::new();
    let (server, mut client, job) = some_acknowledged(disk.serve()).await;
    fill_up(&disk, &mut client).await;
    server.signal("KILL");
    server.stop_after_signal();
    disk.fill();
    let ended = run(disk.serving().env("POSTHASTE_BOOTSTRAP_KEY", KEY));
    assert_eq!(Some(1), ended.code, "{}", ended.err);
    assert!(ended.err.contains("the disk is full: make some space"), "{}", ended.err);
    std::fs::remove_file(disk.filler()).unwrap();
    let server = disk.serve();
    let client = client.moved_to(&server).await;
    let server = works_again(server, client, &job, || disk.serve()).await;
    assert_eq!(Some(0), server.stop().code);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_on_a_read_only_disk_nothing_starts() {
    let disk = SmallDisk::new();
    let (server, client, _job) = some_acknowledged(disk.serve()).await;
    assert_eq!(Some(0), server.stop().code);
    disk.remount("ro");
    let ended = run(disk.serving().env("POSTHASTE_BOOTSTRAP_KEY", KEY));
    assert_eq!(Some(1), ended.code, "{}", ended.err);
    assert!(ended.err.contains("disk/posthaste.db"), "the file is named: {}", ended.err);
    disk.remount("rw");
    let server = disk.serve();
    client.moved_to(&server).await.find_all().await;
}
