//! CPU time of processes of this machine, and child processes that end with their parent.

use super::super::failure::Failure;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

/// Ticks a second of the times in `/proc/<pid>/stat`: fixed for user space on Linux.
const USER_HZ: f64 = 100.0;

/// CPU seconds (user and system) that a process has used; `None` where that can't be told.
#[must_use]
pub fn cpu_seconds(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in brackets, which may hold blanks.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11);
    let ticks: f64 = fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?;
    Some(ticks / USER_HZ)
}

/// A do-nothing server in a process of its own, so that its CPU time can be told from the client's.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    /// Where it listens.
    pub address: String,
}

impl Peer {
    /// Starts it; every answer to a request for hints will be `answer`, an encoded message.
    ///
    /// # Errors
    /// [`Failure`] if it does not start.
    pub fn start(answer: &[u8]) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::work(format!("the no-op server does not start: {error}"));
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program)
            .args(["bench", "serve-noop"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut stdin = child.stdin.take().expect("piped above");
        stdin.write_all(answer).map_err(failed)?;
        drop(stdin); // the end of the answer
        let mut address = String::new();
        let stdout = child.stdout.take().expect("piped above");
        BufReader::new(stdout).read_line(&mut address).map_err(failed)?;
        let peer = Self { child, address: address.trim().to_owned() };
        if peer.address.is_empty() {
            return Err(Failure::work("the no-op server ended before it listened"));
        }
        Ok(peer)
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill(); // gone already is as good
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_process_has_used_some_cpu_and_an_unknown_one_is_not_told() {
        assert!(super::cpu_seconds(std::process::id()).is_some_and(|seconds| seconds >= 0.0));
        assert_eq!(super::cpu_seconds(u32::MAX), None);
    }
}
