//! What Linux knows of a process: processor time and memory. Elsewhere nothing is known.

/// Ticks of a processor second in `/proc`: fixed by Linux for what it shows to programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// Memory of a process, in KiB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// Resident now.
    pub(super) resident: u64,
    /// Resident at most so far.
    pub(super) peak: u64,
}

/// Processor seconds that a process has used, its own and the kernel's for it. `None` where that is not known.
pub(super) fn cpu_seconds(pid: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the fields after it are counted from the state, field 3.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(super::float(ticks(14)? + ticks(15)?) / TICKS_PER_SECOND)
}

/// Memory of a process. `None` where that is not known.
pub(super) fn memory(pid: u32) -> Option<Memory> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name))?;
        value.split_whitespace().next()?.parse().ok()
    };
    Some(Memory { resident: line("VmRSS:")?, peak: line("VmHWM:")? })
}

/// Threads of a process. `None` where that is not known.
pub(super) fn threads(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Threads:"))?.trim().parse().ok()
}

/// Files and connections that a process has open. `None` where that is not known.
pub(super) fn open_files(pid: u32) -> Option<u64> {
    u64::try_from(std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_where_linux_tells() {
        if let Some(memory) = memory(std::process::id()) {
            assert!(memory.resident > 0 && memory.peak >= memory.resident);
            assert!(cpu_seconds(std::process::id()).is_some());
            assert!(threads(std::process::id()) > Some(0) && open_files(std::process::id()) > Some(0));
        }
        assert!(cpu_seconds(u32::MAX).is_none());
    }
}
