//! What can be read of a racks file that has unknown keys or values of a wrong kind: all of these are named, not only the first.

use super::document::{HostRow, LinkRow, RACKS_FORMAT, RackRow, RacksDocument, SwitchRow};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Keys that lead to a mistake, and what it is.
pub(super) type Mistake = (Vec<String>, String);

/// The document without what is wrong, and every mistake in it. Links are left out where one of them is wrong: they are told by
/// their place in the list.
pub(super) fn salvage(mut value: Value) -> (Option<RacksDocument>, Vec<Mistake>) {
    let mut mistakes = Vec::new();
    table::<RackRow>(&mut value, "racks", &mut mistakes);
    table::<SwitchRow>(&mut value, "switches", &mut mistakes);
    table::<HostRow>(&mut value, "hosts", &mut mistakes);
    links(&mut value, &mut mistakes);
    row::<RacksDocument>(&mut value, &json!({ "format": RACKS_FORMAT }), &[], &mut mistakes);
    (serde_json::from_value(value).ok(), mistakes)
}

fn table<T: DeserializeOwned>(value: &mut Value, name: &str, mistakes: &mut Vec<Mistake>) {
    if let Some(rows) = value.get_mut(name).and_then(Value::as_object_mut) {
        rows.retain(|key, entry| row::<T>(entry, &json!({}), &[name, key], mistakes));
    }
}

fn links(value: &mut Value, mistakes: &mut Vec<Mistake>) {
    let Some(rows) = value.get_mut("links").and_then(Value::as_array_mut) else { return };
    let before = mistakes.len();
    let sound = json!({ "a": "", "b": "", "rate": "1Gbit" });
    for (at, entry) in rows.iter_mut().enumerate() {
        row::<LinkRow>(entry, &sound, &["links", &at.to_string()], mistakes);
    }
    if mistakes.len() > before {
        rows.clear();
    }
}

/// Takes the keys away that are wrong; `sound` is a row that has what must not be missing. False: nothing is left of it.
fn row<T: DeserializeOwned>(entry: &mut Value, sound: &Value, path: &[&str], mistakes: &mut Vec<Mistake>) -> bool {
    let before = mistakes.len();
    let mut add = |key: Option<&str>, error: serde_json::Error| {
        mistakes.push((path.iter().copied().chain(key).map(str::to_owned).collect(), error.to_string()));
    };
    if let Some(fields) = entry.as_object_mut() {
        fields.retain(|key, value| {
            let mut alone = sound.clone();
            alone[key] = value.clone();
            T::deserialize(alone).map_err(|error| add(Some(key), error)).is_ok()
        });
    }
    // A key that is missing may be one of those that are misspelled.
    let whole = T::deserialize(&*entry);
    match whole {
        Err(error) if mistakes.len() == before => {
            mistakes.push((path.iter().map(|&key| key.to_owned()).collect(), error.to_string()));
            false
        }
        whole => whole.is_ok(),
    }
}
