//! Reports of single runs kept in a folder, so that hours of runs can be interrupted and gone on with.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder of runs. What another build of the program made is made anew: its runs may differ.
#[derive(Debug)]
pub struct KeptRuns {
    folder: PathBuf,
    program: u32,
}

#[derive(Serialize, Deserialize)]
struct Kept<R> {
    /// Check sum of the program's file.
    program: u32,
    /// All that the run hangs on, in words.
    of: String,
    report: R,
}

impl KeptRuns {
    /// In this folder, which is made if there is none, by the program that runs.
    ///
    /// # Errors
    /// The folder can't be made, or the program's own file can't be read.
    pub fn new(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let program = crc32fast::hash(&fs::read(std::env::current_exe()?)?);
        Ok(Self { folder: folder.to_owned(), program })
    }

    /// The report of the run that `of` describes, if this program kept one whole.
    #[must_use]
    pub fn get<R: DeserializeOwned>(&self, name: &str, of: &str) -> Option<R> {
        let text = fs::read(self.path(name, of)).ok()?;
        let kept: Kept<R> = serde_json::from_slice(&text).ok()?;
        (kept.program == self.program && kept.of == of).then_some(kept.report)
    }

    /// Keeps it, whole or not at all.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn put<R: Serialize>(&self, name: &str, of: &str, report: &R) -> io::Result<()> {
        let path = self.path(name, of);
        let begun = path.with_extension("begun");
        let kept = Kept { program: self.program, of: of.to_owned(), report };
        fs::write(&begun, serde_json::to_vec(&kept)?)?;
        fs::rename(begun, path)
    }

    fn path(&self, name: &str, of: &str) -> PathBuf {
        self.folder.join(format!("{name}-{:08x}.json", crc32fast::hash(of.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_again_by_the_same_program_under_the_same_settings_only() {
        let folder = tempfile::tempdir().unwrap();
        let runs = KeptRuns::new(folder.path()).unwrap();
        runs.put("fair", "seed 1", &[0.1, 1.0 / 3.0]).unwrap();
        assert_eq!(KeptRuns::new(folder.path()).unwrap().get("fair", "seed 1"), Some([0.1, 1.0 / 3.0]));
        assert_eq!(runs.get::<[f64; 2]>("fair", "seed 2"), None);
        let other = KeptRuns { program: !runs.program, ..runs };
        assert_eq!(other.get::<[f64; 2]>("fair", "seed 1"), None);
    }

    #[test]
    fn half_a_file_is_no_run() {
        let folder = tempfile::tempdir().unwrap();
        let runs = KeptRuns::new(folder.path()).unwrap();
        runs.put("fair", "seed 1", &1.0).unwrap();
        let path = runs.path("fair", "seed 1");
        let text = fs::read(&path).unwrap();
        fs::write(&path, &text[..text.len() / 2]).unwrap();
        assert_eq!(runs.get::<f64>("fair", "seed 1"), None);
    }
}
