//! The admin socket: for its owner only, in the place of a dead daemon's, and of nothing else.

use crate::runtime::StartError;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use tokio::net::{UnixListener, UnixStream};

/// Binds the admin socket. A socket that a dead daemon left is replaced; one that answers is another daemon's; any
/// other file stays as it is. The directory is made if it is not there.
///
/// # Errors
/// [`StartError::AlreadyRunning`], [`StartError::Bind`].
pub(super) async fn bind(path: &Path) -> Result<UnixListener, StartError> {
    let failed = |source| StartError::Bind { what: "admin", address: path.display().to_string(), source };
    if UnixStream::connect(path).await.is_ok() {
        return Err(StartError::AlreadyRunning(path.to_path_buf()));
    }
    check_place(path).map_err(failed)?;
    // Bound beside its place and moved there: nobody finds it under its name before the mode is set.
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    remove(&draft);
    let bound = || -> io::Result<UnixListener> {
        let listener = UnixListener::bind(&draft)?;
        std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o600))?;
        std::fs::rename(&draft, path)?;
        Ok(listener)
    };
    bound().map_err(failed)
}

/// Makes the directory, and refuses a place that something else than a socket has.
fn check_place(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => Ok(()),
        Ok(_) => {
            Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file that is no socket is there; it is left alone"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
            std::fs::create_dir_all(folder).map_err(|error| {
                let message = format!("directory {} is missing and cannot be created: {error}", folder.display());
                io::Error::new(error.kind(), message)
            })
        }
        Err(error) => Err(error),
    }
}

/// Takes the socket's file away; what can't be is left behind and said.
pub(super) fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "a socket's file is left behind");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("precious.txt");
        std::fs::write(&path, "precious").unwrap();
        let error = format!("{:#}", anyhow::Error::from(bind(&path).await.unwrap_err()));
        assert!(error.contains("no socket") && error.contains("precious.txt"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }

    #[tokio::test]
    async fn the_directory_is_made_and_a_dead_daemons_socket_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/hintd/admin.sock");
        drop(bind(&path).await.unwrap());
        assert!(path.exists(), "a dropped listener leaves its file");
        let _listener = bind(&path).await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(bind(&path).await, Err(StartError::AlreadyRunning(_))));
    }
}
