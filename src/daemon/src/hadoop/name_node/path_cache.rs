//! What a NameNode said of the paths that requests named, for how long it holds, and what is to be asked; no I/O, no
//! clock.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// How much is kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathCacheSettings {
    /// Paths that were named.
    pub paths: usize,
    /// Blocks of all of them.
    pub blocks: usize,
    /// After so long a path is asked for again when it is named.
    pub fresh: Duration,
    /// The same where the answer was that it can't be had, or holds nothing.
    pub refused_fresh: Duration,
    /// A path that nobody named for so long is forgotten.
    pub kept: Duration,
}

/// What a path came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Its files are registered.
    Found {
        /// All of them: itself, or what lies below it.
        files: Vec<Arc<str>>,
        /// Their blocks.
        blocks: usize,
        /// Something below it could not be read.
        in_part: bool,
    },
    /// There is no such path.
    Missing,
    /// The daemon's user may not read it.
    Unreadable,
    /// It has more files or blocks than are taken.
    TooLarge,
}

/// What is known of a path now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStatus {
    /// Nothing yet.
    NotYet,
    /// Where its blocks lie; as of so long ago, where that is longer than answers stay fresh.
    Found {
        /// Age of the answer, if it is old.
        old: Option<Duration>,
        /// It has no block.
        empty: bool,
        /// Of a part of it only.
        in_part: bool,
    },
    /// There is no such path.
    Missing,
    /// The daemon's user may not read it.
    Unreadable,
    /// It has more files or blocks than are taken.
    TooLarge,
}

/// Paths and answers.
#[derive(Debug)]
pub struct PathCache {
    settings: PathCacheSettings,
    entries: BTreeMap<Arc<str>, Entry>,
    /// Entries that hold a file.
    owners: HashMap<Arc<str>, u32>,
    blocks: usize,
}

#[derive(Debug)]
struct Entry {
    answer: Option<Answer>,
    /// When it was answered.
    at: Duration,
    /// When it was last named.
    named: Duration,
    asking: bool,
}

impl PathCache {
    /// An empty one.
    #[must_use]
    pub fn new(settings: PathCacheSettings) -> Self {
        Self { settings, entries: BTreeMap::new(), owners: HashMap::new(), blocks: 0 }
    }

    /// A request names a path; whether it is to be asked for, which then counts as begun. Makes room where the shelf is
    /// full, and where every place is being asked for, the path is not.
    pub fn name(&mut self, path: &Arc<str>, now: Duration, gone: &mut Vec<Arc<str>>) -> bool {
        if !self.entries.contains_key(path) {
            if self.entries.len() >= self.settings.paths && !self.evict(gone) {
                return false;
            }
            let entry = Entry { answer: None, at: now, named: now, asking: true };
            self.entries.insert(Arc::clone(path), entry);
            return true;
        }
        let fresh = |answer: &Answer| match answer {
            Answer::Found { blocks, .. } if *blocks > 0 => self.settings.fresh,
            // Somebody may be writing what is not there, or holds nothing yet.
            _ => self.settings.refused_fresh,
        };
        let Some(entry) = self.entries.get_mut(path) else { return false };
        entry.named = now;
        let due = entry.answer.as_ref().is_none_or(|answer| now.saturating_sub(entry.at) >= fresh(answer));
        let ask = due && !entry.asking;
        entry.asking |= ask;
        ask
    }

    /// Paths that were named within `within` and have no answer: to be asked for now, which counts as begun.
    pub fn ask_again(&mut self, now: Duration, within: Duration) -> Vec<Arc<str>> {
        let waits =
            |entry: &Entry| entry.answer.is_none() && !entry.asking && now.saturating_sub(entry.named) <= within;
        let found = self.entries.iter_mut().filter(|(_, entry)| waits(entry)).map(|(path, entry)| {
            entry.asking = true;
            Arc::clone(path)
        });
        found.collect()
    }

    /// A path was asked for, and this is what came of it; `None`: no answer, and an older one holds. Files that no path
    /// holds any more are `gone`.
    pub fn answered(&mut self, path: &str, answer: Option<Answer>, now: Duration, gone: &mut Vec<Arc<str>>) {
        let Some(entry) = self.entries.get_mut(path) else {
            // It was forgotten while it was asked for: so are its files.
            if let Some(Answer::Found { files, .. }) = answer {
                gone.extend(files.into_iter().filter(|file| !self.owners.contains_key(file)));
            }
            return;
        };
        entry.asking = false;
        let Some(answer) = answer else { return };
        entry.at = now;
        let before = entry.answer.replace(answer.clone());
        self.hold(&answer);
        self.let_go(before, gone);
        while self.blocks > self.settings.blocks && self.evict(gone) {}
    }

    /// Whether a path is being asked for.
    #[must_use]
    pub fn is_asked(&self, path: &str) -> bool {
        self.entries.get(path).is_some_and(|entry| entry.asking)
    }

    /// What is known of a path.
    #[must_use]
    pub fn said(&self, path: &str, now: Duration) -> PathStatus {
        let Some(entry) = self.entries.get(path) else { return PathStatus::NotYet };
        match &entry.answer {
            None => PathStatus::NotYet,
            Some(Answer::Found { blocks, in_part, .. }) => {
                let age = now.saturating_sub(entry.at);
                let old = (age > self.settings.fresh).then_some(age);
                PathStatus::Found { old, empty: *blocks == 0, in_part: *in_part }
            }
            Some(Answer::Missing) => PathStatus::Missing,
            Some(Answer::Unreadable) => PathStatus::Unreadable,
            Some(Answer::TooLarge) => PathStatus::TooLarge,
        }
    }

    /// The files of a path.
    #[must_use]
    pub fn files(&self, path: &str) -> &[Arc<str>] {
        match self.entries.get(path).and_then(|entry| entry.answer.as_ref()) {
            Some(Answer::Found { files, .. }) => files,
            _ => &[],
        }
    }

    /// Whether some path holds this file.
    #[must_use]
    pub fn holds(&self, file: &str) -> bool {
        self.owners.contains_key(file)
    }

    /// Whether the path was named and is not forgotten.
    #[must_use]
    pub fn knows(&self, path: &str) -> bool {
        self.entries.contains_key(path)
    }

    /// Forgets paths that nobody named for long.
    pub fn expire(&mut self, now: Duration, gone: &mut Vec<Arc<str>>) {
        let kept = self.settings.kept;
        let over = |entry: &Entry| !entry.asking && now.saturating_sub(entry.named) > kept;
        let over: Vec<Arc<str>> =
            self.entries.iter().filter(|(_, entry)| over(entry)).map(|(path, _)| Arc::clone(path)).collect();
        for path in over {
            self.forget(&path, gone);
        }
    }

    /// Paths whose blocks are known, those that wait for an answer, and those that can't be had.
    #[must_use]
    pub fn counts(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for entry in self.entries.values() {
            counts[match entry.answer {
                Some(Answer::Found { .. }) => 0,
                None => 1,
                Some(_) => 2,
            }] += 1;
        }
        counts
    }

    /// Forgets the path that was named longest ago and is not being asked for; whether there was one.
    fn evict(&mut self, gone: &mut Vec<Arc<str>>) -> bool {
        let idle = self.entries.iter().filter(|(_, entry)| !entry.asking);
        let Some(path) = idle.min_by_key(|(_, entry)| entry.named).map(|(path, _)| Arc::clone(path)) else {
            return false;
        };
        self.forget(&path, gone);
        true
    }

    fn forget(&mut self, path: &str, gone: &mut Vec<Arc<str>>) {
        let answer = self.entries.remove(path).and_then(|entry| entry.answer);
        self.let_go(answer, gone);
    }

    fn hold(&mut self, answer: &Answer) {
        let Answer::Found { files, blocks, .. } = answer else { return };
        self.blocks += blocks;
        for file in files {
            *self.owners.entry(Arc::clone(file)).or_default() += 1;
        }
    }

    fn let_go(&mut self, answer: Option<Answer>, gone: &mut Vec<Arc<str>>) {
        let Some(Answer::Found { files, blocks, .. }) = answer else { return };
        self.blocks -= blocks;
        for file in files {
            let Some(count) = self.owners.get_mut(&file) else { continue };
            *count -= 1;
            if *count == 0 {
                self.owners.remove(&file);
                gone.push(file);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn path_cache(paths: usize, blocks: usize) -> PathCache {
        PathCache::new(PathCacheSettings { paths, blocks, fresh: s(60), refused_fresh: s(10), kept: s(600) })
    }

    fn found(files: &[&str], blocks: usize) -> Option<Answer> {
        Some(Answer::Found { files: files.iter().map(|file| Arc::from(*file)).collect(), blocks, in_part: false })
    }

    fn name(path_cache: &mut PathCache, path: &str, at: u64) -> (bool, Vec<String>) {
        let mut gone = Vec::new();
        let ask = path_cache.name(&path.into(), s(at), &mut gone);
        (ask, gone.iter().map(ToString::to_string).collect())
    }

    fn answer(path_cache: &mut PathCache, path: &str, answer: Option<Answer>, at: u64) -> Vec<String> {
        let mut gone = Vec::new();
        path_cache.answered(path, answer, s(at), &mut gone);
        gone.iter().map(ToString::to_string).collect()
    }

    const FOUND: PathStatus = PathStatus::Found { old: None, empty: false, in_part: false };

    #[test]
    fn a_path_is_asked_for_once_and_again_when_its_answer_is_old() {
        let mut path_cache = path_cache(10, 100);
        assert!(name(&mut path_cache, "/in", 0).0);
        assert!(!name(&mut path_cache, "/in", 1).0, "it is being asked for");
        assert_eq!((path_cache.said("/in", s(1)), path_cache.is_asked("/in")), (PathStatus::NotYet, true));
        answer(&mut path_cache, "/in", found(&["/in/a", "/in/b"], 3), 2);
        assert_eq!((path_cache.said("/in", s(30)), path_cache.is_asked("/in")), (FOUND, false));
        assert!(!name(&mut path_cache, "/in", 61).0);
        assert!(name(&mut path_cache, "/in", 62).0);
        let old = PathStatus::Found { old: Some(s(61)), empty: false, in_part: false };
        assert_eq!(path_cache.said("/in", s(63)), old, "the old answer holds until another comes");
        assert_eq!(answer(&mut path_cache, "/in", None, 64), [""; 0]);
        assert_eq!(path_cache.files("/in").len(), 2, "no answer is none, and changes nothing");
        assert!(name(&mut path_cache, "/in", 65).0);
        assert_eq!(answer(&mut path_cache, "/in", found(&["/in/b", "/in/c"], 2), 66), ["/in/a"]);
        assert!(path_cache.holds("/in/c") && !path_cache.holds("/in/a"));
    }

    #[test]
    fn what_can_not_be_had_is_asked_for_again_sooner() {
        let mut path_cache = path_cache(10, 100);
        name(&mut path_cache, "/in", 0);
        answer(&mut path_cache, "/in", Some(Answer::Missing), 0);
        assert!(!name(&mut path_cache, "/in", 9).0);
        assert!(name(&mut path_cache, "/in", 10).0, "somebody may have written it");
        name(&mut path_cache, "/empty", 0);
        answer(&mut path_cache, "/empty", found(&[], 0), 0);
        assert!(name(&mut path_cache, "/empty", 10).0, "and may be writing to this");
        assert_eq!(path_cache.said("/in", s(10)), PathStatus::Missing);
        assert_eq!(path_cache.counts(), [1, 0, 1]);
    }

    #[test]
    fn paths_and_blocks_are_bounded_and_the_longest_unnamed_go_first() {
        let mut path_cache = path_cache(2, 10);
        for (at, path) in ["/a", "/b"].into_iter().enumerate() {
            name(&mut path_cache, path, at as u64);
            answer(&mut path_cache, path, found(&[path], 4), at as u64);
        }
        name(&mut path_cache, "/a", 2);
        assert_eq!(name(&mut path_cache, "/c", 3), (true, vec!["/b".to_owned()]));
        assert_eq!(answer(&mut path_cache, "/c", found(&["/c"], 7), 4), ["/a"], "11 blocks are more than 10");
        name(&mut path_cache, "/d", 5);
        name(&mut path_cache, "/e", 6);
        assert!(!name(&mut path_cache, "/f", 7).0, "every place is being asked for");
        assert!(!path_cache.knows("/f"));
        assert_eq!(answer(&mut path_cache, "/gone", found(&["/gone/x", "/c"], 1), 8), ["/gone/x", "/c"]);
    }

    #[test]
    fn a_file_goes_with_the_last_path_that_holds_it() {
        let mut path_cache = path_cache(10, 100);
        for path in ["/in", "/in/a"] {
            name(&mut path_cache, path, 0);
            answer(&mut path_cache, path, found(&["/in/a"], 1), 0);
        }
        name(&mut path_cache, "/in", 500);
        let mut gone = Vec::new();
        path_cache.expire(s(601), &mut gone);
        assert_eq!((gone.len(), path_cache.knows("/in/a"), path_cache.holds("/in/a")), (0, false, true));
        answer(&mut path_cache, "/in", None, 601);
        path_cache.expire(s(1_101), &mut gone);
        assert_eq!(gone, ["/in/a".into()]);
    }

    #[test]
    fn what_had_no_answer_is_asked_for_again_while_somebody_may_wait() {
        let mut path_cache = path_cache(10, 100);
        name(&mut path_cache, "/a", 0);
        name(&mut path_cache, "/b", 50);
        assert_eq!(path_cache.ask_again(s(60), s(60)).len(), 0, "they are being asked for");
        answer(&mut path_cache, "/a", None, 51);
        answer(&mut path_cache, "/b", None, 51);
        assert_eq!(path_cache.ask_again(s(70), s(60)), ["/b".into()]);
        assert!(path_cache.is_asked("/b"));
    }
}
