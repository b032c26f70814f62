//! Files that are read by name: regular ones of a bounded size, and nothing that could hold a reader up. And files that are
//! replaced: whole or not at all.
//!
//! A FIFO blocks whoever opens it until somebody writes, a device may never end. The file is opened without waiting and
//! looked at afterwards, so that nothing can be put in its place in between.

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
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

/// Who may read a file that is replaced.
#[derive(Debug, Clone, Copy)]
pub enum Readers<'a> {
    /// Its owner alone.
    Owner,
    /// Those of that file, which gives its owner and group as well; all, where it is not there.
    Of(&'a Path),
}

/// Puts bytes in the place of a file, whole or not at all, also where the machine stops meanwhile. What is begun beside it
/// follows no link, and does not stay behind where it can't be finished. A link in the file's own place is replaced.
///
/// # Errors
/// The system's.
pub fn replace(path: &Path, bytes: &[u8], readers: Readers<'_>) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let file = match begin(&draft) {
        // Of a process of the same number that was stopped while it wrote: in a container that is every one.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            std::fs::remove_file(&draft).and_then(|()| begin(&draft))
        }
        begun => begun,
    }?;
    fill(file, bytes, readers).and_then(|()| std::fs::rename(&draft, path)).inspect_err(|_| {
        let _ = std::fs::remove_file(&draft); // what went wrong first is said
    })
}

/// For its owner alone, until it is known for whom it is.
fn begin(draft: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)
}

fn fill(mut file: File, bytes: &[u8], readers: Readers<'_>) -> io::Result<()> {
    if let Readers::Of(like) = readers {
        let known = std::fs::metadata(like).ok();
        let made = file.metadata()?;
        // Who replaces it may be root, and who reads it another user.
        if let Some(known) = known.as_ref().filter(|known| (known.uid(), known.gid()) != (made.uid(), made.gid())) {
            std::os::unix::fs::fchown(&file, Some(known.uid()), Some(known.gid()))?;
        }
        // Whatever the umask is.
        let mode = known.map_or(0o644, |known| known.permissions().mode() & 0o777);
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    }
    file.write_all(bytes)?;
    file.sync_all()
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
    fn a_file_is_replaced_whole_for_the_readers_that_are_meant() {
        let folder = tempfile::tempdir().unwrap();
        let [file, like] = ["file.toml", "like.toml"].map(|name| folder.path().join(name));
        let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        replace(&file, b"a", Readers::Of(&like)).unwrap();
        assert_eq!((read_text(&file, 9).unwrap().as_str(), mode()), ("a", 0o644), "there is none like it");
        std::fs::write(&like, "").unwrap();
        std::fs::set_permissions(&like, std::fs::Permissions::from_mode(0o640)).unwrap();
        replace(&file, b"b", Readers::Of(&like)).unwrap();
        assert_eq!((read_text(&file, 9).unwrap().as_str(), mode()), ("b", 0o640));
        replace(&file, b"c", Readers::Owner).unwrap();
        assert_eq!((read_text(&file, 9).unwrap().as_str(), mode()), ("c", 0o600));
        // Only root may give a file away.
        if std::os::unix::fs::chown(&like, Some(65_534), Some(65_534)).is_ok() {
            replace(&file, b"d", Readers::Of(&like)).unwrap();
            let owner = std::fs::metadata(&file).unwrap();
            assert_eq!((owner.uid(), owner.gid(), mode()), (65_534, 65_534, 0o640));
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside them");
    }

    #[test]
    fn what_is_begun_follows_no_link_and_does_not_stay_behind() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other] = ["file", "other"].map(|name| folder.path().join(name));
        let draft = folder.path().join(format!(".file.{}", std::process::id()));
        std::fs::write(&other, "its own").unwrap();
        std::os::unix::fs::symlink(&other, &draft).unwrap();
        replace(&file, b"a", Readers::Owner).unwrap();
        assert_eq!(
            (read_text(&file, 9).unwrap(), read_text(&other, 9).unwrap()),
            ("a".to_owned(), "its own".to_owned())
        );
        assert!(std::fs::symlink_metadata(&draft).is_err());
        std::fs::write(&draft, "half of").unwrap();
        replace(&file, b"b", Readers::Owner).unwrap();
        assert_eq!(read_text(&file, 9).unwrap(), "b", "one that was left by a process that was stopped");
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(replace(&file, b"c", Readers::Owner).is_err() && std::fs::symlink_metadata(&draft).is_err());
        assert!(replace(&folder.path().join("none/file"), b"c", Readers::Owner).is_err());
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
