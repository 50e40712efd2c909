//! Where the figures come from: cores, kernel, file system, and what one durable write costs there.

use std::{
    fs::{self, File},
    io::{Seek, Write},
    path::Path,
    time::Instant,
};

use anyhow::Context;

use super::{plan::Quantiles, times::Times};

/// Writes that are timed.
const WRITES: usize = 200;

/// A load average above this one is somebody else's.
const BUSY: f64 = 0.7;

/// Facts of the machine. `None` where the system does not tell.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Cores that this process may use.
    pub(crate) cores: usize,
    /// The processor's name.
    pub(crate) processor: Option<String>,
    /// The kernel's release.
    pub(crate) kernel: Option<String>,
    /// Type and device of the file system that holds the stores.
    pub(crate) file_system: Option<String>,
    /// Processes that wanted a core in the last minute before the bench began, on average.
    pub(crate) load_average: Option<f64>,
    /// A write of 4 KiB and its `fdatasync`: median, in milliseconds.
    pub(crate) sync_p50_ms: f64,
    /// The same: 99th percentile.
    pub(crate) sync_p99_ms: f64,
}

impl Machine {
    /// Looks at the machine, and times durable writes in `folder`.
    pub(super) fn look(folder: &Path) -> anyhow::Result<Self> {
        let sync = time_syncs(folder).context("durable writes can't be timed")?;
        Ok(Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: processor(),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|text| text.trim().to_owned()),
            file_system: file_system(folder),
            load_average: load_average(),
            sync_p50_ms: super::milliseconds(sync.p50),
            sync_p99_ms: super::milliseconds(sync.p99),
        })
    }

    /// Whether something else wants these cores too: then it is in every figure.
    pub(crate) fn is_busy(&self) -> bool {
        self.load_average.is_some_and(|average| average > BUSY)
    }

    /// Whether a sync writes to nothing that outlives a loss of power.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.file_system.as_ref().is_some_and(|name| name.starts_with("tmpfs"))
    }
}

fn time_syncs(folder: &Path) -> anyhow::Result<Quantiles> {
    let path = folder.join("sync");
    let mut file = File::create(&path)?;
    let block = [0x5A_u8; 4096];
    // As in a log that is used again: the file is not extended.
    file.write_all(&block)?;
    file.sync_all()?;
    let mut times = Times::new();
    for _ in 0..WRITES {
        file.rewind()?;
        let begun = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        times.record(begun.elapsed());
    }
    fs::remove_file(path)?;
    Ok(times.quantiles())
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn load_average() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// The mount with the longest path that holds `folder`.
fn file_system(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let text = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mounts = text.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let point = left.split(' ').nth(4)?;
        let mut right = right.split(' ');
        let (kind, device) = (right.next()?, right.next()?);
        folder.starts_with(point).then(|| (point.len(), format!("{kind} on {device}")))
    });
    mounts.max_by_key(|(length, _)| *length).map(|(_, name)| name)
}
