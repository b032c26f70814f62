//! Text from outside as it may be printed: what a terminal would obey is written out, and a value stays in its line.
//!
//! Every word of a command goes through [`printable`] ([`output::Output`](super::output::Output) does it), every string of a
//! daemon's message through [`one_line`] as well before it becomes part of a text.

use hintd_client::wire::DESCRIPTORS;
use prost::{Message, Name};
use prost_reflect::{self as reflect, DescriptorPool, DynamicMessage};
use std::borrow::Cow;
use std::sync::LazyLock;

/// What a terminal obeys instead of showing it: control characters, what turns the direction of text around it, and what
/// ends a line without being `\n`.
fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(letter, '\u{2028}' | '\u{2029}')
}

/// `text` with each letter of a kind written as `escape` has it.
fn escaped(text: &str, is_meant: impl Fn(char) -> bool, escape: impl Fn(char) -> String) -> Cow<'_, str> {
    if !text.contains(&is_meant) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|letter| if is_meant(letter) { escape(letter) } else { letter.into() }).collect())
}

/// As Rust writes it: `\r`, `\u{1b}`.
fn as_rust(letter: char) -> String {
    if letter.is_control() { letter.escape_debug().to_string() } else { letter.escape_unicode().to_string() }
}

/// The text with what a terminal would obey written out: names come from files and from others. Ends of lines and tabs
/// stay; in a value they do not ([`one_line`]).
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| is_obeyed(letter) && !matches!(letter, '\n' | '\t'), as_rust)
}

/// A value from outside as it may stand in a line: what ends the line is written out as well.
#[must_use]
pub fn one_line(value: &str) -> Cow<'_, str> {
    escaped(value, is_obeyed, as_rust)
}

/// The same for a JSON document, which stays one: such letters stand only in its strings.
#[must_use]
pub fn printable_json(document: &str) -> Cow<'_, str> {
    let in_utf16 =
        |letter: char| letter.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect();
    escaped(document, |letter| is_obeyed(letter) && !matches!(letter, '\n' | '\t'), in_utf16)
}

/// A message whose strings, however deep, are each [`one_line`].
#[must_use]
pub fn one_line_strings<M: Message + Name + Default>(message: &M) -> M {
    static POOL: LazyLock<DescriptorPool> =
        LazyLock::new(|| DescriptorPool::decode(DESCRIPTORS).expect("the same build made the descriptors"));
    let descriptor = POOL.get_message_by_name(&M::full_name()).expect("the descriptors have every message");
    let mut dynamic = DynamicMessage::new(descriptor);
    dynamic.transcode_from(message).expect("the message is of that descriptor");
    in_one_line(&mut dynamic);
    dynamic.transcode_to().expect("its strings are still strings")
}

fn in_one_line(message: &mut DynamicMessage) {
    message.fields_mut().for_each(|(_, value)| value_in_one_line(value));
}

fn value_in_one_line(value: &mut reflect::Value) {
    match value {
        reflect::Value::String(text) => {
            if let Cow::Owned(written) = one_line(text) {
                *text = written;
            }
        }
        reflect::Value::Message(message) => in_one_line(message),
        reflect::Value::List(list) => list.iter_mut().for_each(value_in_one_line),
        reflect::Value::Map(map) => {
            map.values_mut().for_each(value_in_one_line);
            let keys = std::mem::take(map).into_iter().map(|(key, value)| match key {
                reflect::MapKey::String(key) => (reflect::MapKey::String(one_line(&key).into_owned()), value),
                key => (key, value),
            });
            *map = keys.collect();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn nothing_that_is_printed_speaks_to_the_terminal() {
        assert_eq!(printable("a\u{1b}[2J\r\u{9b}\tb\nc"), "a\\u{1b}[2J\\r\\u{9b}\tb\nc");
        assert!(matches!(printable("größe\tb\n"), Cow::Borrowed("größe\tb\n")));
        // Shown backwards, this would end in "exe".
        assert_eq!(printable("job\u{202e}txt\u{2069}\u{2028}"), "job\\u{202e}txt\\u{2069}\\u{2028}");
        assert_eq!(one_line("a\nNOTICE: b\tc"), "a\\nNOTICE: b\\tc");
    }

    #[test]
    fn a_json_document_stays_one_and_says_the_same() {
        let name = "a\u{202e}b\u{7f}\u{9b}\n\u{1b}";
        let document = serde_json::to_string_pretty(&serde_json::json!({ "name": name })).unwrap();
        let printed = printable_json(&document);
        assert!(!printed.contains(|letter| is_obeyed(letter) && letter != '\n'), "{printed:?}");
        assert_eq!(serde_json::from_str::<Value>(&printed).unwrap()["name"], name);
    }

    #[test]
    fn strings_of_a_message_are_found_however_deep_they_stand() {
        use hintd_client::wire::v1;
        let evil = || "x\nNOTICE: \u{1b}[2J\u{202e}".to_owned();
        let status = v1::StatusResponse {
            version: evil(),
            notices: vec![evil()],
            counters: [(evil(), 7)].into(),
            plan: Some(v1::PlanView { name: evil(), ..Default::default() }),
            watchers: vec![v1::WatcherView {
                refused: vec![v1::WatcherRefusal { reason: evil(), ..Default::default() }],
                ..Default::default()
            }],
            uptime_ms: 5,
            ..Default::default()
        };
        let found = one_line_strings(&status);
        let written = "x\\nNOTICE: \\u{1b}[2J\\u{202e}";
        assert_eq!([&found.version, &found.notices[0], &found.plan.unwrap().name], [written; 3]);
        assert_eq!(found.counters.into_iter().collect::<Vec<_>>(), [(written.to_owned(), 7)]);
        assert_eq!((found.watchers[0].refused[0].reason.as_str(), found.uptime_ms), (written, 5));
    }
}
