//! Golden lists of everything a caller can see, recorded by running the programs as black boxes, so that the lists
//! survive any move of source files. First recorded from commit 660a7fd (the lists of commit 51505a67 are these); each line that was taken away or changed
//! since then was so on purpose, and CHANGELOG.md tells users of it.
//!
//! `HINTD_GOLDEN_RECORD=1` records the `*.txt` lists again instead of comparing them. `HINTD_GOLDEN_PROGRAMS` names a
//! folder with the programs to test instead of those built with this test. A recorded line that ends in ` ?` is
//! optional.

#![allow(clippy::unwrap_used)] // a test that panics is a test that fails

mod cli;
mod codec;
mod exit_codes;
mod files;
mod grpc;
mod journal;
mod lists;
mod metrics;
mod notes;
mod programs;
mod proto;
mod shape;
mod source;
mod stories;
mod wire;
mod world;

use lists::hold;

#[test]
fn commands_and_options() {
    hold("cli.txt", cli::lines());
}

#[test]
fn the_wire() {
    hold("wire.txt", wire::lines());
}

#[test]
fn the_keys_of_json() {
    let lines = stories::notes().seen().json.lines();
    hold("json-keys.txt", lines);
}

#[test]
fn what_is_refused_and_how() {
    let mut lines: Vec<String> = {
        let seen = stories::notes().seen();
        seen.refusals.iter().chain(&seen.words).cloned().collect()
    };
    lines.extend(source::lines(&lists::recorded("refusals.txt")));
    hold("refusals.txt", lines);
}

#[test]
fn what_messages_are_filled_with() {
    let lines = stories::notes().seen().messages.clone();
    hold("messages.txt", lines);
}

#[test]
fn metrics_and_their_labels() {
    let mut lines = metrics::lines(&stories::notes().seen().metrics);
    lines.extend(metrics::pages());
    hold("metrics.txt", lines);
}

#[test]
fn exit_codes_and_streams() {
    hold("exit-codes.txt", exit_codes::lines());
}

#[test]
fn files_and_their_fields() {
    let mut lines = files::lines();
    lines.extend(stories::notes().seen().rows.lines());
    hold("files.txt", lines);
}
