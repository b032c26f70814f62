//! What the operating system counts of a process: CPU time and resident memory (Linux's /proc).

use std::fs;

/// Ticks a second of the times in `/proc/<pid>/stat`: fixed for user space on Linux.
const USER_HZ: f64 = 100.0;

/// CPU seconds (user and system) that a process has used; `None` where that can't be told.
#[must_use]
pub fn cpu_seconds(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in brackets, which may hold blanks.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11);
    let ticks: f64 = fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?;
    Some(ticks / USER_HZ)
}

/// Resident memory of a process; `None` where that can't be told.
#[must_use]
pub fn resident_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_cpu_and_an_unknown_one_is_not_told() {
        assert!(resident_bytes(std::process::id()).is_some_and(|bytes| bytes > 100_000));
        assert!(cpu_seconds(std::process::id()).is_some_and(|seconds| seconds >= 0.0));
        assert_eq!((cpu_seconds(u32::MAX), resident_bytes(u32::MAX)), (None, None));
    }
}
