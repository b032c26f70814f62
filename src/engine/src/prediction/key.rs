//! Keys of recurring jobs that nobody named: what stays the same from run to run of name and input paths.

use hintd_model::cluster::dataset::normal;
use std::sync::Arc;

/// Numbers of so many digits are dates or counters; shorter ones tell jobs apart (`tpch-q3`).
const COUNTER_DIGITS: usize = 4;
/// Hexadecimal words of so many figures, with a digit among them, are ids.
const ID_FIGURES: usize = 8;
/// Paths that go into a key: enough to tell jobs apart.
const PATHS_MAX: usize = 8;
/// Stands for what changes.
const CHANGES: &str = "#";

/// The key of a job of that name that reads those paths: dates, times, counters and ids left out, paths sorted, each
/// once. `None`: nothing is left that would tell it from others.
///
/// `etl-2026-11-21` reading `/logs/2026/11/21` → `etl-# </logs/#`.
#[must_use]
pub fn derived_key<S: AsRef<str>>(name: &str, paths: &[S]) -> Option<Arc<str>> {
    let name = steady(name);
    let mut paths: Vec<String> = paths.iter().map(|path| steady(&normal(path.as_ref()))).collect();
    paths.sort_unstable();
    paths.dedup();
    paths.truncate(PATHS_MAX);
    let says = |text: &String| text.chars().any(char::is_alphanumeric);
    if !says(&name) && !paths.iter().any(says) {
        return None;
    }
    let key = paths.iter().fold(name, |key, path| format!("{key} <{path}"));
    Some(key.into())
}

/// A path with what changes from day to day left out, and without scheme, authority and a slash at its end: paths of
/// one kind of data are alike.
///
/// `hdfs://nn:8020/logs/2026/11/21/` → `/logs/#`.
#[must_use]
pub fn steady_path(path: &str) -> String {
    let path = &*normal(path);
    let path = match path.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
        None => path,
    };
    steady(path.trim_end_matches('/'))
}

/// Paths that stand in a derived key.
pub fn key_paths(key: &str) -> impl Iterator<Item = &str> {
    key.split(" <").skip(1)
}

/// A word, or what stands between words.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part<'a> {
    Word(&'a str),
    Changes,
    Between(char),
}

/// The text with what changes from run to run replaced.
fn steady(text: &str) -> String {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        let end = if first.is_alphanumeric() {
            rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (word, after) = rest.split_at(end);
        parts.push(if first.is_alphanumeric() { Part::Word(word) } else { Part::Between(first) });
        rest = after;
    }
    mark(&mut parts);
    collapse(&parts)
}

/// Long numbers, ids, timestamps such as `20261121T0530`, values of numeric partitions (`hour=05`) change; so does a
/// number or a piece of an id beside what changes.
fn mark(parts: &mut [Part<'_>]) {
    for at in 0..parts.len() {
        let Part::Word(word) = parts[at] else { continue };
        let partition = at > 0 && parts[at - 1] == Part::Between('=') && digits(word);
        if partition || digits(word) && word.len() >= COUNTER_DIGITS || id(word, ID_FIGURES) || timestamp(word) {
            parts[at] = Part::Changes;
        }
    }
    loop {
        let beside = |at: usize| {
            let changes = |at: Option<usize>| at.and_then(|at| parts.get(at)) == Some(&Part::Changes);
            changes(at.checked_sub(2)) || changes(Some(at + 2))
        };
        let next = (0..parts.len()).find(
            |&at| matches!(parts[at], Part::Word(word) if (digits(word) || id(word, COUNTER_DIGITS)) && beside(at)),
        );
        let Some(at) = next else { return };
        parts[at] = Part::Changes;
    }
}

/// What changes one after another changes as one, however many parts it has.
fn collapse(parts: &[Part<'_>]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while at < parts.len() {
        match parts[at] {
            Part::Word(word) => text.push_str(word),
            Part::Between(c) => text.push(c),
            Part::Changes => {
                text.push_str(CHANGES);
                while parts.get(at + 2) == Some(&Part::Changes) {
                    at += 2;
                }
            }
        }
        at += 1;
    }
    text
}

fn digits(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

fn id(word: &str, figures: usize) -> bool {
    word.len() >= figures
        && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// Digits, a `T`, digits, perhaps a `Z`.
fn timestamp(word: &str) -> bool {
    let word = word.strip_suffix('Z').unwrap_or(word);
    word.split_once('T').is_some_and(|(date, time)| date.len() == 8 && digits(date) && !time.is_empty() && digits(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, paths: &[&str]) -> String {
        derived_key(name, paths).map_or_else(String::new, |key| key.to_string())
    }

    #[test]
    fn runs_of_one_job_have_one_key() {
        for (one, other, wanted) in [
            ("etl-2026-11-21", "etl-2026-11-22", "etl-#"),
            ("etl_20261121T053000Z", "etl_20261122T060000Z", "etl_#"),
            ("etl 1763700000", "etl 1763786400", "etl #"),
            (
                "oozie-W@join 3f2a9c1e-41d4-4a0b-9c1e-0a1b2c3d4e5f",
                "oozie-W@join a0b1c2d3-0000-41d4-8888-ffff0000aaaa",
                "oozie-W@join #",
            ),
            ("report 21.11.2026", "report 1.2.2027", "report #"),
        ] {
            assert_eq!((key(one, &[]), key(other, &[])), (wanted.to_owned(), wanted.to_owned()));
        }
    }

    #[test]
    fn jobs_that_differ_by_a_small_number_or_a_word_stay_apart() {
        assert_eq!(key("tpch-q3", &[]), "tpch-q3");
        assert_ne!(key("step-1", &[]), key("step-2", &[]));
        assert_ne!(key("deadbeef", &[]), key("feedface", &[]), "words of letters are words");
    }

    #[test]
    fn paths_count_without_their_dates_in_any_order_and_each_once() {
        let one = key("etl", &["/logs/2026/11/21/hour=05", "/ref/users"]);
        let other = key("etl", &["/ref/users", "/logs/2026/11/22/hour=17", "/logs/2026/11/22/hour=18"]);
        assert_eq!(one, "etl </logs/#/hour=# </ref/users");
        assert_eq!(one, other);
        assert_ne!(one, key("etl", &["/clicks/2026/11/21/hour=05", "/ref/users"]));
    }

    #[test]
    fn a_name_of_numbers_alone_is_told_by_its_paths_or_not_at_all() {
        assert_eq!(key("20261121", &["/in/a"]), "# </in/a");
        assert_eq!(derived_key("20261121", &["/2026/11"]), None);
        assert_eq!(
            derived_key("", &["/in/", "//in"]),
            derived_key("", &["/in"]),
            "one path is one however it is written"
        );
        assert_eq!(steady_path("hdfs://nn//logs//2026/"), steady_path("/logs/2026"));
        assert_eq!(derived_key("  ", &[] as &[&str]), None);
    }
}
