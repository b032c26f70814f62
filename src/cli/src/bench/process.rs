//! The peer: a process of its own that ends with the one that measures.

use super::super::failure::Failure;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

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
