//! Files that a command writes its result to: what is there already is kept, unless the command line says otherwise.

use super::failure::Failure;
use clap::Args;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

/// Whether the file of `--output` may be one that is there already.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ReplaceArg {
    /// Replace the file where it is there already; its owner and mode stay
    #[arg(long, requires = "output")]
    force: bool,
}

impl ReplaceArg {
    /// For a command with several such files.
    pub(crate) const fn of(force: bool) -> Self {
        Self { force }
    }

    /// Before work whose result would have no place.
    ///
    /// # Errors
    /// [`Failure::Input`] where a file is there and is not to be replaced.
    pub(crate) fn check(self, path: &Path) -> Result<(), Failure> {
        if self.replaces(path) || path.symlink_metadata().is_err() { Ok(()) } else { Err(is_there(path)) }
    }

    /// Writes the file anew. Of a file that was not there nothing stays where it can't be written whole: it would be in the way.
    ///
    /// # Errors
    /// As [`Self::check`]; [`Failure::Work`] where it can't be made or written.
    pub(crate) fn write_with(self, path: &Path, write: impl FnOnce(File) -> io::Result<()>) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::work(format!("{}: {error}", path.display()));
        if self.replaces(path) {
            return File::create(path).and_then(write).map_err(failed);
        }
        let made = File::create_new(path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => is_there(path),
            _ => failed(error),
        })?;
        write(made).map_err(|error| {
            _ = std::fs::remove_file(path); // what is told is why it could not be written
            failed(error)
        })
    }

    /// Writes a text file.
    ///
    /// # Errors
    /// As [`Self::write_with`].
    pub(crate) fn write(self, path: &Path, text: &str) -> Result<(), Failure> {
        self.write_with(path, |mut file| file.write_all(text.as_bytes()))
    }

    /// Pipes and devices, as /dev/stdout, have nothing that could be lost.
    fn replaces(self, path: &Path) -> bool {
        self.force || path.metadata().is_ok_and(|found| !found.is_file())
    }
}

fn is_there(path: &Path) -> Failure {
    Failure::in_file(path, "it is there already: --force replaces it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_there_is_replaced_where_that_is_asked_for_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let [keep, force] = [false, true].map(|force| ReplaceArg { force });
        keep.check(&path).unwrap();
        keep.write(&path, "first").unwrap();
        for refused in [keep.check(&path), keep.write(&path, "second")] {
            let failure = refused.unwrap_err();
            assert!(matches!(failure, Failure::Input(_)), "{failure}");
            assert!(failure.to_string().ends_with("a: it is there already: --force replaces it"), "{failure}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
        force.check(&path).unwrap();
        force.write(&path, "2nd").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "2nd", "and nothing of the first is left");
    }

    #[test]
    fn a_link_to_nothing_is_kept_and_a_device_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let keep = ReplaceArg::default();
        assert!(keep.check(&link).is_err() && keep.write(&link, "x").is_err());
        keep.check(Path::new("/dev/null")).unwrap();
        keep.write(Path::new("/dev/null"), "x").unwrap();
        let half = folder.path().join("half");
        let full = keep.write_with(&half, |mut file| file.write_all(b"x").and(Err(ErrorKind::StorageFull.into())));
        assert!(matches!(full, Err(Failure::Work(_))) && !half.exists(), "what is half written is in nobody's way");
        assert!(matches!(keep.write(&folder.path().join("no/where"), "x"), Err(Failure::Work(_))));
    }
}
