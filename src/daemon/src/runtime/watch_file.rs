//! Notices that a file changed, however it was written: in place, by rename, or through a link.

use crate::regular_file;
use notify::{Event, RecursiveMode, Watcher as _};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;
use tokio::sync::watch;

/// An editor's or a roll-out's several steps count as one change when they end within this time.
const SETTLE: Duration = Duration::from_millis(200);
/// A file that is not there for so long is gone, and not about to be replaced.
const GONE: Duration = Duration::from_secs(2);

/// A count that grows whenever the contents of a file of at most `most` bytes changed, or the file is gone. To be called within a tokio runtime;
/// watching ends when the receiver is dropped.
///
/// # Errors
/// Where the system can't watch the file's folder.
pub fn watch_file(file: &Path, most: u64) -> notify::Result<watch::Receiver<u64>> {
    let (steps, mut stepped) = watch::channel(());
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        if event.is_ok_and(|event| !event.kind.is_access()) {
            steps.send_replace(());
        }
    })?;
    // The folder, not the file: a rename replaces the file, and the watch would stay with the old one.
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    watcher.watch(folder, RecursiveMode::NonRecursive)?;
    let (changes, changed) = watch::channel(0);
    let file = file.to_path_buf();
    tokio::spawn(async move {
        let _watcher = watcher; // its end would end the steps
        let mut last = contents(&file, most).await;
        loop {
            tokio::select! {
                step = stepped.changed() => if step.is_err() { return },
                () = changes.closed() => return,
            }
            tokio::time::sleep(SETTLE).await;
            stepped.mark_unchanged();
            let mut now = contents(&file, most).await;
            if now.is_none() && last.is_some() {
                tokio::time::sleep(GONE).await;
                stepped.mark_unchanged();
                now = contents(&file, most).await;
            }
            // A folder is written to for other reasons too; a file that is gone for a moment comes back. One that can't
            // be read, or is gone, is a change: whoever reads it says why.
            if now != last {
                last = now;
                changes.send_modify(|count| *count += 1);
            }
        }
    });
    Ok(changed)
}

/// What the file holds, or why it can't be read; nothing where there is none.
async fn contents(file: &Path, most: u64) -> Option<Result<Vec<u8>, String>> {
    let file = file.to_path_buf();
    match tokio::task::spawn_blocking(move || regular_file::read(&file, most)).await.ok()? {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        read => Some(read.map_err(|error| error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_by_writing_and_one_by_renaming_are_noticed_and_other_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hintd.toml");
        std::fs::write(&file, "a").unwrap();
        let mut changed = watch_file(&file, 1_000).unwrap();
        let wait = Duration::from_secs(30);
        tokio::time::sleep(Duration::from_millis(50)).await;
        std::fs::write(&file, "b").unwrap();
        tokio::time::timeout(wait, changed.changed()).await.unwrap().unwrap();
        std::fs::write(folder.path().join("new"), "c").unwrap();
        std::fs::rename(folder.path().join("new"), &file).unwrap();
        tokio::time::timeout(wait, changed.changed()).await.unwrap().unwrap();
        std::fs::write(folder.path().join("other"), "d").unwrap();
        let quiet = tokio::time::timeout(SETTLE * 2, changed.changed()).await;
        assert!(quiet.is_err(), "another file of the folder is no change");
        // By renaming: a file that is gone for as long as mkfifo takes to start is a change of its own.
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        std::fs::rename(&fifo, &file).unwrap();
        tokio::time::timeout(wait, changed.changed()).await.unwrap().unwrap();
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, "b").unwrap();
        tokio::time::timeout(wait, changed.changed()).await.expect("what is no file holds nothing up").unwrap();
        std::fs::remove_file(&file).unwrap();
        tokio::time::timeout(wait, changed.changed()).await.expect("a file that is gone is a change").unwrap();
        std::fs::write(&file, "b").unwrap();
        tokio::time::timeout(wait, changed.changed()).await.expect("so is one that is back as it was").unwrap();
    }
}
