//! Runs kept in a folder, one small file each, so that a series goes on after an interruption and parts can be merged.
//!
//! A file is named by what the run hangs on: program, trace, cluster, settings, policy, seed. So files of several
//! machines lie beside one another, and what another build made is not found.

use super::super::failure::Failure;
use hintd::regular_file::{self, Readers};
use hintd_simulator::worth::RunFigures;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::io;
use std::path::{Path, PathBuf};

const FORMAT: &str = "hintd.worth-run/1";

/// A folder of runs.
#[derive(Debug)]
pub(super) struct KeptRuns {
    folder: PathBuf,
    program: String,
}

/// A file as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    format: String,
    /// All that the run hangs on.
    of: Value,
    /// Of the figures, so that a damaged file is known.
    sha256: String,
    figures: RunFigures,
}

impl KeptRuns {
    /// The folder, made if there is none.
    ///
    /// # Errors
    /// [`Failure::Input`] if it can't be made or written to, or the program's own file can't be read.
    pub(super) fn open(folder: &Path) -> Result<Self, Failure> {
        let in_folder = |error: io::Error| Failure::in_file(folder, error).of_option("--keep");
        std::fs::create_dir_all(folder).map_err(in_folder)?;
        // Better said now than when the first run has ended.
        let probe = folder.join(format!(".{}.begun", std::process::id()));
        std::fs::write(&probe, "").and_then(|()| std::fs::remove_file(&probe)).map_err(in_folder)?;
        let program = std::env::current_exe().map_err(in_folder)?;
        let bytes = std::fs::read(&program).map_err(|error| Failure::in_file(&program, error))?;
        let program = format!("{} {}", env!("CARGO_PKG_VERSION"), &digest(&bytes)[..16]);
        Ok(Self { folder: folder.to_owned(), program })
    }

    /// What the run of `of` gave, if it was kept.
    ///
    /// # Errors
    /// In words, file and all, what is wrong with a file that is there.
    pub(super) fn get(&self, of: &Value) -> Result<Option<RunFigures>, String> {
        let path = self.path(of);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        read(&text, &self.of(of)).map(Some).map_err(|problem| format!("{}: {problem}", path.display()))
    }

    /// Keeps a run, whole or not at all.
    ///
    /// # Errors
    /// [`Failure::Work`] if the file can't be written.
    pub(super) fn put(&self, of: &Value, figures: &RunFigures) -> Result<(), Failure> {
        let path = self.path(of);
        let kept = Kept { format: FORMAT.to_owned(), of: self.of(of), sha256: sum(figures), figures: figures.clone() };
        let text = serde_json::to_vec(&kept).map_err(|error| Failure::Work(error.into()))?;
        let written = regular_file::replace(&path, &text, Readers::Of(&path));
        written.map_err(|error| Failure::work(format!("{}: {error}", path.display())).of_option("--keep"))
    }

    /// With the program.
    fn of(&self, of: &Value) -> Value {
        serde_json::json!({ "program": self.program, "run": of })
    }

    fn path(&self, of: &Value) -> PathBuf {
        let key = digest(self.of(of).to_string().as_bytes());
        self.folder.join(format!("{}.json", &key[..32]))
    }
}

/// The figures in a file, if it is whole and of that run.
fn read(text: &[u8], of: &Value) -> Result<RunFigures, String> {
    let kept: Kept = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if kept.format != FORMAT {
        return Err(format!("format: is \"{}\", not \"{FORMAT}\"", kept.format));
    }
    if kept.of != *of {
        return Err("it is of another run than its name says".to_owned());
    }
    if kept.sha256 != sum(&kept.figures) {
        return Err("its figures are not those of its check sum".to_owned());
    }
    Ok(kept.figures)
}

/// Numbers are written so that they are read back as they were.
fn sum(figures: &RunFigures) -> String {
    digest(serde_json::to_string(figures).unwrap_or_default().as_bytes())
}

/// Hexadecimal.
pub(super) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn figures() -> RunFigures {
        RunFigures {
            mean_s: 1.0 / 3.0,
            median_s: 0.1,
            p95_s: 2.0,
            makespan_s: 7.0,
            cross_rack_bytes: 5,
            never_fit: 0,
            hints: None,
            wall_s: 0.25,
            jobs_s: vec![0.1, 0.2, 1e-9],
        }
    }

    #[test]
    fn a_run_is_found_again_by_all_that_it_hangs_on() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptRuns::open(folder.path()).unwrap();
        let of = json!({ "seed": 1, "load": 0.3 });
        assert_eq!(kept.get(&of), Ok(None));
        kept.put(&of, &figures()).unwrap();
        assert_eq!(KeptRuns::open(folder.path()).unwrap().get(&of), Ok(Some(figures())));
        assert_eq!(kept.get(&json!({ "seed": 2, "load": 0.3 })), Ok(None));
        let other = KeptRuns { program: "another".to_owned(), ..kept };
        assert_eq!(other.get(&of), Ok(None));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else lies there");
    }

    #[test]
    fn a_run_is_kept_through_no_link_that_lies_where_it_is_begun() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptRuns::open(&folder.path().join("runs")).unwrap();
        let (of, elsewhere) = (json!({ "seed": 1 }), folder.path().join("elsewhere"));
        std::fs::write(&elsewhere, "mine").unwrap();
        let (path, process) = (kept.path(&of), std::process::id());
        let name = path.file_name().unwrap().to_str().unwrap();
        let drafts =
            [path.with_extension(format!("{process}.begun")), path.with_file_name(format!(".{name}.{process}"))];
        for draft in &drafts {
            std::os::unix::fs::symlink(&elsewhere, draft).unwrap();
        }
        kept.put(&of, &figures()).unwrap();
        assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "mine");
        assert_eq!(kept.get(&of), Ok(Some(figures())));
        assert!(!drafts[1].exists() && std::fs::symlink_metadata(&path).unwrap().is_file());
    }

    #[test]
    fn a_damaged_file_is_named_with_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptRuns::open(folder.path()).unwrap();
        let of = json!({ "seed": 1 });
        kept.put(&of, &figures()).unwrap();
        let path = kept.path(&of);
        let whole = std::fs::read_to_string(&path).unwrap();
        let cases = [
            (whole[..whole.len() / 2].to_owned(), "EOF"),
            (whole.replace("0.1,0.2", "0.1,0.3"), "check sum"),
            (whole.replace("worth-run/1", "worth-run/9"), "hintd.worth-run/9"),
            (whole.replace("\"seed\":1", "\"seed\":2"), "another run"),
        ];
        for (text, words) in cases {
            std::fs::write(&path, text).unwrap();
            let problem = kept.get(&of).unwrap_err();
            assert!(problem.contains(words) && problem.contains(path.to_str().unwrap()), "{problem}");
        }
    }
}
