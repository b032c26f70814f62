//! Values in few bytes, for what is kept by the hundred thousand and seldom read: their JSON, compressed with LZ4
//! against the text that most of them share.
//!
//! Not written to disk: the shared text may be another in the next version.

use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Names of fields in the order in which answers have them, and words that are usual there. What a value shares with it
/// takes three bytes; what it lacks costs room and nothing else.
const SHARED: &str = concat!(
    r#""group":"","nodes":[],"resource":"memory-mb","lacks":0,"short":0,"constraint":null,"examples":["#,
    r#"{"source":"heartbeats","age":null,"stale":false},{"source":"topology","age":0,"stale":false},{"source":"blocks","#,
    r#"{"decision":{"id":0,"request":"application_","attempt":"appattempt_0000000000000_0001_000001","queue":"root.default","#,
    r#""recurring_key":null,"at":0,"snapshot":0,"policy":"container","mode":"on","hints":{"groups":["worker"],"rows":["#,
    r#"{"group":0,"first_index":0,"count":1,"host":"node-0000","fallbacks":["","",""],"racks":["/default-rack","",""],"#,
    r#""leases":[0],"expires":0,"expected_wait":null,"confidence":1.0}]},"routes":[],"#,
    r#""asks":[{"key":{"priority":1,"allocation_request_id":-1},"resource_name":"*","size":{"memory_mb":1024,"vcores":1},"#,
    r#""count":1,"relax_locality":true,"label":""}],"#,
    r#""terms":{"remote_bytes":0,"cross_rack_bytes":0,"core_hops":0,"worst_link_s":0.0,"balance":null,"objective":null,"parts":{"network":0.0}},"#,
    r#""baseline":{"remote_bytes":0,"cross_rack_bytes":0,"#,
    r#""expected_gain":{"remote_bytes":null,"cross_rack_bytes":null,"core_hops":null,"worst_link_s":null,"#,
    r#""ended":"complete","gap":null,"steps":0,"seed":0,"exclusions":[],"ages":[],"degraded":[],"#,
    r#""without_room":0,"next_wave":0,"conflicts":0,"elapsed":0},"token":"","digest":0}"#,
);

/// Packs a value.
///
/// # Panics
/// Where serde can't make JSON of it: maps whose keys are no texts.
pub(crate) fn pack<T: Serialize>(value: &T) -> Box<[u8]> {
    let text = serde_json::to_vec(value).expect("what is kept has only texts, numbers, lists and string-keyed maps");
    pack_text(&text).into_boxed_slice()
}

/// The same of its JSON, for who copies it to where it is kept.
pub(crate) fn pack_text(text: &[u8]) -> Vec<u8> {
    compress_prepend_size_with_dict(text, SHARED.as_bytes())
}

/// The value again; `None`: these are not the bytes of one.
pub(crate) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let text = decompress_size_prepended_with_dict(bytes, SHARED.as_bytes()).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Answer;
    use crate::testing::{answer, ask, hint};
    use hintd_model::units::{LeaseId, SchedulerKey};
    use proptest::prelude::*;

    fn whole() -> Answer {
        let mut whole = (*answer("application_1_1", 7)).clone();
        let key = SchedulerKey { priority: -3, allocation_request_id: -1 };
        whole.decision.terms.worst_link_s = Some(0.1 + 0.2);
        whole.decision.terms.parts.insert("network".to_owned(), 1e300);
        whole.decision.asks = vec![ask(key, "*", 4), ask(key, "node-7", 2)];
        whole.decision.hints = vec![hint("g", "node-7", 2, &["node-8", "node-9"], &["/a", "/a", "/b"]); 3];
        whole.decision.hints[1].leases = vec![LeaseId(1 << 40), LeaseId(u64::MAX)];
        whole
    }

    #[test]
    fn an_answer_comes_back_to_the_bit_in_a_third_of_its_text() {
        let whole = whole();
        let packed = pack(&whole);
        assert_eq!(unpack::<Answer>(&packed), Some(whole.clone()));
        let text = serde_json::to_vec(&whole).unwrap().len();
        assert!(packed.len() * 3 < text, "{} of {text} bytes", packed.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_numbers_and_texts_come_back(value in any::<Vec<(u64, i64, f64, String)>>()) {
            let value: Vec<_> = value.into_iter().filter(|row| row.2.is_finite()).collect();
            prop_assert_eq!(unpack(&pack(&value)), Some(value));
        }

        #[test]
        fn half_of_the_bytes_is_no_value(at in any::<prop::sample::Index>()) {
            let packed = pack(&whole());
            prop_assert_eq!(unpack::<Answer>(&packed[..at.index(packed.len())]), None);
        }
    }
}
