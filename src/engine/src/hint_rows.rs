//! Hints as the journal keeps them: groups by their place in a list that has each name once.
//!
//! Up to 0.1.0 every hint repeated its group's name; such rows are read as well.

use super::hint::Hint;
use hintd_model::units::{HostName, LeaseId, Micros, RackPath, Timestamp};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor, value};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

#[derive(Serialize)]
struct Written<'h> {
    groups: Vec<&'h str>,
    rows: Vec<WrittenRow<'h>>,
}

#[derive(Serialize)]
struct WrittenRow<'h> {
    group: usize,
    first_index: u32,
    count: u32,
    host: &'h HostName,
    fallbacks: &'h [HostName],
    racks: &'h [RackPath],
    leases: &'h [LeaseId],
    expires: Option<Timestamp>,
    expected_wait: Option<Micros>,
    confidence: f64,
}

#[derive(Deserialize)]
struct Read {
    groups: Vec<Arc<str>>,
    rows: Vec<ReadRow>,
}

#[derive(Deserialize)]
struct ReadRow {
    group: usize,
    first_index: u32,
    count: u32,
    host: HostName,
    fallbacks: Vec<HostName>,
    racks: Vec<RackPath>,
    leases: Vec<LeaseId>,
    expires: Option<Timestamp>,
    expected_wait: Option<Micros>,
    confidence: f64,
}

pub(crate) fn serialize<S: Serializer>(hints: &[Hint], serializer: S) -> Result<S::Ok, S::Error> {
    let names = super::group_names::GroupNames::of(hints);
    let rows = hints.iter().map(|hint| WrittenRow {
        group: names.index(&hint.group) as usize,
        first_index: hint.first_index,
        count: hint.count,
        host: &hint.host,
        fallbacks: &hint.fallbacks,
        racks: &hint.racks,
        leases: &hint.leases,
        expires: hint.expires,
        expected_wait: hint.expected_wait,
        confidence: hint.confidence,
    });
    Written { rows: rows.collect(), groups: names.names().map(|name| &**name).collect() }.serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Hint>, D::Error> {
    deserializer.deserialize_any(Either)
}

/// A list of hints with their groups' names, or rows beside the names.
struct Either;

impl<'de> Visitor<'de> for Either {
    type Value = Vec<Hint>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hints, as a list or as rows beside their groups")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<Hint>, A::Error> {
        Vec::deserialize(value::SeqAccessDeserializer::new(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<Hint>, A::Error> {
        let Read { groups, rows } = Read::deserialize(value::MapAccessDeserializer::new(map))?;
        let hint = |row: ReadRow| {
            let group = groups.get(row.group).map(Arc::clone);
            let group = group.ok_or_else(|| de::Error::custom(format!("group {} of {}", row.group, groups.len())))?;
            Ok(Hint {
                group,
                first_index: row.first_index,
                count: row.count,
                host: row.host,
                fallbacks: row.fallbacks,
                racks: row.racks,
                leases: row.leases,
                expires: row.expires,
                expected_wait: row.expected_wait,
                confidence: row.confidence,
            })
        };
        rows.into_iter().map(hint).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::Answer;
    use crate::testing::long_answer;

    /// The row of an answer as 0.1.0 wrote it.
    const OLD: &str = r#"{"decision":{"id":7,"request":"r1","attempt":"appattempt_1_0001_000001","queue":"default","recurring_key":null,"at":5,"snapshot":1,"policy":"spread","mode":"on","hints":[{"group":"map","first_index":0,"count":2,"host":"h0","fallbacks":["h1"],"racks":["/r0","/r0"],"leases":[3,4],"expires":9,"expected_wait":null,"confidence":1.0},{"group":"reduce","first_index":0,"count":1,"host":"h1","fallbacks":[],"racks":["/r0"],"leases":[],"expires":null,"expected_wait":5,"confidence":0.5}],"routes":[],"asks":[],"terms":{"remote_bytes":null,"cross_rack_bytes":null,"core_hops":null,"worst_link_s":null,"balance":null,"objective":null,"parts":{}},"baseline":null,"expected_gain":null,"ended":"complete","gap":null,"steps":0,"seed":0,"exclusions":[],"ages":[],"degraded":[],"without_room":0,"next_wave":0,"conflicts":0,"elapsed":0},"token":"t","digest":7}"#;

    #[test]
    fn rows_of_the_version_before_are_read_and_say_the_same_when_written_anew() {
        let old: Answer = serde_json::from_str(OLD).unwrap();
        let groups: Vec<&str> = old.decision.hints.iter().map(|hint| &*hint.group).collect();
        assert_eq!((groups, old.leases().count()), (vec!["map", "reduce"], 2));
        let new = serde_json::to_string(&old).unwrap();
        assert!(new.contains(r#""hints":{"groups":["map","reduce"],"rows":[{"group":0,"first_index":0"#), "{new}");
        assert_eq!(serde_json::from_str::<Answer>(&new).unwrap(), old);
    }

    #[test]
    fn a_groups_name_stands_once_in_a_row_however_many_hints_are_of_it() {
        let name = "g".repeat(4_096);
        let row = serde_json::to_string(&*long_answer("r", &name, 1_000)).unwrap();
        assert_eq!(row.matches(&name).count(), 1);
        assert!(row.len() < 1_000 * 250, "{} bytes", row.len());
        let back: Answer = serde_json::from_str(&row).unwrap();
        assert!(back.decision.hints.iter().all(|hint| *hint.group == *name) && back.decision.hints.len() == 1_000);
    }

    #[test]
    fn a_group_that_is_not_in_the_list_is_no_row() {
        let new = serde_json::to_string(&serde_json::from_str::<Answer>(OLD).unwrap()).unwrap();
        let error = serde_json::from_str::<Answer>(&new.replace("\"group\":1", "\"group\":2")).unwrap_err();
        assert!(error.to_string().contains("group 2 of 2"), "{error}");
    }
}
