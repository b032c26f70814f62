#![allow(missing_docs, clippy::all)]
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};
static K: OnceLock<Mutex<BTreeMap<&'static str, f64>>> = OnceLock::new();
pub fn knob(name: &'static str, default: f64) -> f64 {
    let mut map = K.get_or_init(Default::default).lock().unwrap();
    *map.entry(name).or_insert_with(|| std::env::var(name).ok().map_or(default, |v| v.parse().unwrap()))
}
