//! Files that the daemon reads by name: regular ones of a bounded size, and nothing that could hold it up.
//!
//! A FIFO blocks whoever opens it until somebody writes, a device may never end. The file is opened without waiting and
//! looked at afterwards, so that nothing can be put in its place in between.

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Bytes of a configuration: some hundred times the shipped one.
pub const CONFIG_BYTES: u64 = 1 << 20;
/// Bytes of a network file: some 60,000 links one by one, half of what a message to the daemon may have.
pub const NETWORK_BYTES: u64 = 8 << 20;
/// Bytes of a list of hosts or of certificates: a system's whole bundle is a quarter of a megabyte.
pub const LIST_BYTES: u64 = 16 << 20;

/// Opens a regular file for reading, whatever links lead to it.
///
/// # Errors
/// The system's, and [`ErrorKind::InvalidInput`] for what is no regular file, which says what it is.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::NXIO.raw_os_error() => irregular("a socket or a device without a driver"),
        _ => error,
    })?;
    let found = file.metadata()?.file_type();
    if found.is_file() { Ok(file) } else { Err(irregular(kind(found))) }
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// As [`open`], and [`ErrorKind::FileTooLarge`].
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// The same of text.
///
/// # Errors
/// As [`read`], and [`ErrorKind::InvalidData`] for what is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
}

fn irregular(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("it is {what}, not a regular file"))
}

fn kind(found: FileType) -> &'static str {
    if found.is_fifo() {
        "a FIFO"
    } else if found.is_dir() {
        "a directory"
    } else if found.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn refused(path: &Path) -> String {
        read_text(path, 100).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_regular_file_is_refused_by_what_it_is_and_never_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert_eq!(refused(&fifo), "it is a FIFO, not a regular file");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&fifo, &link).unwrap();
        assert_eq!(refused(&link), "it is a FIFO, not a regular file");
        assert_eq!(refused(folder.path()), "it is a directory, not a regular file");
        assert_eq!(refused(Path::new("/dev/zero")), "it is a device, not a regular file");
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(refused(&socket), "it is a socket or a device without a driver, not a regular file");
        assert!(refused(&folder.path().join("none")).contains("No such file"));
    }

    #[test]
    fn a_file_up_to_the_bound_is_read_and_one_byte_more_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "x".repeat(100)).unwrap();
        assert_eq!(read_text(&file, 100).unwrap().len(), 100);
        std::fs::write(&file, "x".repeat(101)).unwrap();
        assert_eq!(refused(&file), "it has more than 100 bytes");
        std::fs::write(&file, b"\xff").unwrap();
        assert!(refused(&file).contains("utf-8"));
    }
}
