//! The secret of a user's `hintctl`, kept so that later calls are the same client to the daemon.

use super::failure::Failure;
use hintd_client::Secret;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// More is no secret.
const MOST_BYTES: u64 = 4_096;

/// The secret in `file`, which the named setting says, or the user's own, which is made when it is first wanted. A user without
/// a home directory gets one for this call.
///
/// # Errors
/// [`Failure::Input`] for a file that can't be read or holds too little.
pub(super) fn secret(file: Option<(&Path, &str)>) -> Result<Secret, Failure> {
    if let Some((file, setting)) = file {
        return read(file).and_then(|bytes| checked(&bytes)).map_err(|error| unusable(file, setting, &error));
    }
    let Some(own) = own_file() else { return Ok(Secret::random()) };
    match read(&own).or_else(|error| if error.kind() == io::ErrorKind::NotFound { make(&own) } else { Err(error) }) {
        Ok(bytes) => checked(&bytes).map_err(|error| unusable(&own, OWN, &error)),
        // A home that can't be written to: what is asked now can't be asked again by the same client.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(Secret::random()),
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(Secret::random()),
        Err(error) => Err(unusable(&own, OWN, &error)),
    }
}

/// Where the user's own file comes from.
const OWN: &str = "the default of --secret-file";

fn unusable(file: &Path, setting: &str, error: &io::Error) -> Failure {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "there is no such file; hintctl makes one only where none is named".to_owned(),
        _ => error.to_string(),
    };
    Failure::Input(format!("the secret file {} ({setting}) can't be used: {why}", file.display()))
}

fn own_file() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("hintctl").join("secret"))
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(file)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn checked(bytes: &[u8]) -> io::Result<Secret> {
    Secret::of(bytes.trim_ascii()).ok_or_else(|| {
        let message = format!("a secret has {} bytes or more, this has {}", Secret::LEAST_BYTES, bytes.len());
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

/// Makes a secret for its owner only. Of two calls at once the first to finish wins.
fn make(file: &Path) -> io::Result<Vec<u8>> {
    if let Some(folder) = file.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let text = format!("{:032x}{:032x}\n", rand::random::<u128>(), rand::random::<u128>());
    let draft = file.with_extension(std::process::id().to_string());
    let mut made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    made.write_all(text.as_bytes())?;
    let linked = fs::hard_link(&draft, file);
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => read(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_secret_is_made_once_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state/hintctl/secret");
        let first = make(&file).unwrap();
        assert_eq!(make(&file).unwrap(), first, "another was faster");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(secret(Some((&file, "--secret-file"))).unwrap(), Secret::of(first.trim_ascii()).unwrap());
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_holds_too_little_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("short");
        fs::write(&file, "guess me\n").unwrap();
        let failure = secret(Some((&file, "HINTD_SECRET_FILE"))).unwrap_err().to_string();
        assert!(failure.contains("short") && failure.contains("16 bytes or more"), "{failure}");
        assert!(failure.contains("short (HINTD_SECRET_FILE) can't be used: a secret has"), "{failure}");
        let failure = secret(Some((&folder.path().join("none"), "--secret-file"))).unwrap_err().to_string();
        assert!(
            failure.ends_with(
                "none (--secret-file) can't be used: there is no such file; hintctl makes one only where none is named"
            ),
            "{failure}"
        );
    }
}
