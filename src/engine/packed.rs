//! Values in few bytes, for what is kept by the hundred thousand and seldom read: what serde makes of them as JSON,
//! with names of fields as one byte each and every other text once.
//!
//! Not written to disk: the words may be others in the next version.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Texts that take one byte: names of fields of answers, and words that most of them have. At most 256 − [`WORD`].
const WORDS: &str = "\
    decision token digest id request attempt queue recurring_key at snapshot policy mode hints routes asks \
    terms baseline expected_gain ended gap steps seed exclusions ages degraded pending blocked without_room \
    next_wave conflicts elapsed group first_index count host fallbacks racks leases expires expected_wait \
    confidence reason src dst vertices links task_pairs bytes installed cut remote_bytes cross_rack_bytes \
    core_hops worst_link_s balance objective parts examples constraint nodes nearest lacks resource short \
    source age stale key resource_name size relax_locality label priority allocation_request_id memory_mb \
    vcores named application cluster_timestamp sequence on shadow off complete optimal budget deadline \
    default * container spread capacity worker";

/// [`WORDS`] by number, and numbers by word.
static KNOWN: LazyLock<(Vec<&str>, HashMap<&str, u8>)> = LazyLock::new(|| {
    let words: Vec<&str> = WORDS.split(' ').collect();
    let numbers = words.iter().copied().zip(0..).collect();
    (words, numbers)
});

// What a value begins with. From 16 to 31: the number that is left; from `WORD` on: a word.
const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const NATURAL: u8 = 3;
const NEGATIVE: u8 = 4;
const REAL: u8 = 5;
const TEXT: u8 = 6;
const AGAIN: u8 = 7;
const LIST: u8 = 8;
const TABLE: u8 = 9;
const SMALL: u8 = 16;
const WORD: u8 = 32;

/// Packs a value.
///
/// # Panics
/// Where serde can't make JSON of it: maps whose keys are no texts.
pub(crate) fn pack<T: Serialize>(value: &T) -> Box<[u8]> {
    let value = serde_json::to_value(value).expect("what is kept has only texts, numbers, lists and string-keyed maps");
    let mut writer = Writer { bytes: Vec::with_capacity(512), texts: HashMap::new() };
    writer.value(&value);
    writer.bytes.into_boxed_slice()
}

/// The value again; `None`: these are not the bytes of one.
pub(crate) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let mut reader = Reader { bytes, texts: Vec::new() };
    let value = reader.value()?;
    serde_json::from_value(value).ok().filter(|_| reader.bytes.is_empty())
}

struct Writer<'a> {
    bytes: Vec<u8>,
    /// Texts that were written, and their numbers.
    texts: HashMap<&'a str, u64>,
}

impl<'a> Writer<'a> {
    fn value(&mut self, value: &'a Value) {
        match value {
            Value::Null => self.bytes.push(NULL),
            Value::Bool(is) => self.bytes.push(if *is { TRUE } else { FALSE }),
            Value::Number(number) => self.number(number),
            Value::String(text) => self.text(text),
            Value::Array(values) => {
                self.tagged(LIST, values.len() as u64);
                values.iter().for_each(|value| self.value(value));
            }
            Value::Object(fields) => {
                self.tagged(TABLE, fields.len() as u64);
                for (name, value) in fields {
                    self.text(name);
                    self.value(value);
                }
            }
        }
    }

    fn number(&mut self, number: &Number) {
        match (number.as_u64(), number.as_i64()) {
            (Some(small @ 0..16), _) => self.bytes.push(SMALL + small as u8),
            (Some(natural), _) => self.tagged(NATURAL, natural),
            (None, Some(negative)) => self.tagged(NEGATIVE, negative.unsigned_abs()),
            (None, None) => {
                self.bytes.push(REAL);
                let real = number.as_f64().expect("a number that is not whole is a float");
                self.bytes.extend(real.to_le_bytes());
            }
        }
    }

    fn text(&mut self, text: &'a str) {
        if let Some(word) = KNOWN.1.get(text) {
            return self.bytes.push(WORD + word);
        }
        let next = self.texts.len() as u64;
        match *self.texts.entry(text).or_insert(next) {
            known if known < next => self.tagged(AGAIN, known),
            _ => {
                self.tagged(TEXT, text.len() as u64);
                self.bytes.extend(text.as_bytes());
            }
        }
    }

    fn tagged(&mut self, tag: u8, mut number: u64) {
        self.bytes.push(tag);
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    texts: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    fn value(&mut self) -> Option<Value> {
        Some(match self.byte()? {
            NULL => Value::Null,
            FALSE => Value::Bool(false),
            TRUE => Value::Bool(true),
            NATURAL => self.number()?.into(),
            NEGATIVE => 0_i64.checked_sub_unsigned(self.number()?)?.into(),
            REAL => {
                let (real, rest) = self.bytes.split_first_chunk()?;
                self.bytes = rest;
                Number::from_f64(f64::from_le_bytes(*real))?.into()
            }
            LIST => {
                let count = self.number()?;
                (0..count).map(|_| self.value()).collect::<Option<Vec<Value>>>()?.into()
            }
            TABLE => {
                let count = self.number()?;
                let field = |_| {
                    let tag = self.byte()?;
                    Some((self.text(tag)?.to_owned(), self.value()?))
                };
                (0..count).map(field).collect::<Option<Map<String, Value>>>()?.into()
            }
            small @ SMALL..WORD => (small - SMALL).into(),
            text => self.text(text)?.into(),
        })
    }

    fn text(&mut self, tag: u8) -> Option<&'a str> {
        match tag {
            TEXT => {
                let length = usize::try_from(self.number()?).ok()?;
                let (text, rest) = self.bytes.split_at_checked(length)?;
                self.bytes = rest;
                self.texts.push(std::str::from_utf8(text).ok()?);
                self.texts.last().copied()
            }
            AGAIN => {
                let number = usize::try_from(self.number()?).ok()?;
                self.texts.get(number).copied()
            }
            word => KNOWN.0.get(usize::from(word.checked_sub(WORD)?)).copied(),
        }
    }

    fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
            shift += 7;
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Answer;
    use crate::engine::testing::{answer, ask, hint};
    use crate::units::{LeaseId, SchedulerKey};
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (0..40_u64).prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-d]{0,3}".prop_map(Value::from),
            prop::sample::select(KNOWN.0.clone()).prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 40, 6, |inner| {
            let name = prop_oneof!["[a-c]{0,2}", prop::sample::select(KNOWN.0.clone()).prop_map(str::to_owned)];
            let fields = prop::collection::btree_map(name, inner.clone(), 0..6);
            prop_oneof![
                prop::collection::vec(inner, 0..6).prop_map(Value::from),
                fields.prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn any_value_comes_back_as_it_was(value in values()) {
            prop_assert_eq!(unpack::<Value>(&pack(&value)), Some(value));
        }

        #[test]
        fn other_bytes_are_no_value_and_no_panic(value in values(), at in any::<prop::sample::Index>(), to in any::<u8>()) {
            let mut bytes = pack(&value);
            let at = at.index(bytes.len());
            bytes[at] = to;
            let _ = unpack::<Value>(&bytes);
            prop_assert_eq!(unpack::<Value>(&bytes[..at]), None, "an end is missed");
        }
    }

    #[test]
    fn an_answer_comes_back_to_the_bit_in_a_third_of_its_text() {
        let mut whole = (*answer("application_1_1", 7)).clone();
        let key = SchedulerKey { priority: -3, allocation_request_id: -1 };
        whole.decision.terms.worst_link_s = Some(0.1 + 0.2);
        whole.decision.terms.parts.insert("network".to_owned(), 1e300);
        whole.decision.asks = vec![ask(key, "*", 4), ask(key, "node-7", 2)];
        whole.decision.hints = vec![hint("g", "node-7", 2, &["node-8", "node-9"], &["/a", "/a", "/b"]); 3];
        whole.decision.hints[1].leases = vec![LeaseId(1 << 40), LeaseId(u64::MAX)];
        let packed = pack(&whole);
        assert_eq!(unpack::<Answer>(&packed), Some(whole.clone()));
        let text = serde_json::to_vec(&whole).unwrap().len();
        assert!(packed.len() * 3 < text, "{} of {text} bytes", packed.len());
    }

    #[test]
    fn words_are_distinct_and_few_enough() {
        assert_eq!(KNOWN.1.len(), KNOWN.0.len());
        assert!(KNOWN.0.len() <= 256 - usize::from(WORD));
    }
}
