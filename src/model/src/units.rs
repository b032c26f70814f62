//! Newtypes for ids and quantities, so that a rack is never taken for a node nor bits for bytes.
//!
//! Dense indexes (`NodeIdx`, `RackIdx`, …) address columns of one process and never leave it;
//! names ([`HostName`], [`AttemptId`], …) are YARN's and HDFS's own and are what the wire carries.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// Nothing of it.
            pub const ZERO: Self = Self(0);

            /// The value as a float, for scores and rates.
            #[must_use]
            #[allow(clippy::cast_precision_loss)] // scores need 52 bits, not 64
            pub fn as_f64(self) -> f64 {
                self.0 as f64
            }

            /// Sum that stops at the largest value.
            #[must_use]
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }

            /// Difference that stops at zero.
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }
    };
}

quantity!(
    /// Bytes.
    Bytes
);
quantity!(
    /// Link capacity or load, bits per second.
    BitsPerSec
);
quantity!(
    /// A span of time, microseconds.
    Micros
);
quantity!(
    /// A moment, microseconds since 1970-01-01 UTC. The core gets it as an argument, never from a clock.
    Timestamp
);

impl Micros {
    /// From whole milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000))
    }

    /// From whole seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000))
    }

    /// Whole milliseconds, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// Seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.as_f64() / 1e6
    }

    /// For people: milliseconds below a second, else seconds, three figures at most (`0.25 ms`, `400 ms`, `9.12 s`).
    #[must_use]
    pub fn in_words(self) -> String {
        // Half a millisecond less than a second is rounded to a second.
        let (value, unit) = if self.0 < 999_500 { (self.as_f64() / 1e3, "ms") } else { (self.as_secs_f64(), "s") };
        let decimals = match value {
            0.0..9.995 => 2,
            9.995..99.95 => 1,
            _ => 0,
        };
        let text = format!("{value:.decimals$}");
        let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        format!("{text} {unit}")
    }
}

impl Timestamp {
    /// Time passed since `earlier`; zero if it lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Micros {
        Micros(self.0.saturating_sub(earlier.0))
    }

    /// This moment and `span` later.
    #[must_use]
    pub const fn plus(self, span: Micros) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// Milliseconds since 1970, as Hadoop writes times.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// Date and time of day by a clock that is so many seconds ahead of UTC; 1970 at the earliest.
    #[must_use]
    pub const fn calendar(self, zone_offset_s: i64) -> Calendar {
        let seconds = (self.0 / 1_000_000).saturating_add_signed(zone_offset_s);
        let (year, month, day) = date(seconds / 86_400);
        Calendar { year, month, day, hour: seconds / 3_600 % 24, minute: seconds / 60 % 60, second: seconds % 60 }
    }
}

/// A moment by some clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // what each field is everybody knows
pub struct Calendar {
    pub year: u64,
    pub month: u64,
    pub day: u64,
    pub hour: u64,
    pub minute: u64,
    pub second: u64,
}

/// Year, month and day of a day since 1970: years are counted from March, so that the leap day is their last.
const fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + if month <= 2 { 1 } else { 0 }, month, day)
}

macro_rules! dense {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// Position in a column.
            #[must_use]
            pub const fn at(self) -> usize {
                self.0 as usize
            }

            /// The index for a column position.
            ///
            /// # Panics
            /// Beyond 2^32 rows, which every column's limit excludes.
            #[must_use]
            pub fn new(position: usize) -> Self {
                Self(u32::try_from(position).expect("columns are bounded far below 2^32 rows"))
            }
        }
    };
}

dense!(
    /// A node's row in the snapshot's columns; given once to a host name and never reused.
    NodeIdx
);
dense!(
    /// A rack's row.
    RackIdx
);
dense!(
    /// A machine class's row.
    ClassIdx
);
dense!(
    /// A vertex of the network graph (host or switch).
    VertexIdx
);
dense!(
    /// An undirected link of the network graph.
    LinkIdx
);
dense!(
    /// One direction of a link, which is what a flow loads.
    DirectedLinkIdx
);
dense!(
    /// A running flow; given again once the flow has ended.
    FlowIdx
);
dense!(
    /// A task group of one request.
    GroupIdx
);
dense!(
    /// A declared middlebox.
    BoxIdx
);
dense!(
    /// A declared chain of middleboxes, in the order in which chains are matched.
    ChainIdx
);

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Arc<str>);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name!(
    /// A host as YARN's `NodeId.host` spells it.
    HostName
);
name!(
    /// A rack as YARN prints it: `/rack1`, `/dc1/rack1`.
    RackPath
);
name!(
    /// A link's id from the topology feed.
    LinkName
);
name!(
    /// A request's id, chosen by the caller.
    RequestId
);
name!(
    /// A queue.
    QueueName
);

/// `application_<cluster timestamp>_<sequence>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplicationId {
    /// Start of the ResourceManager, milliseconds since 1970.
    pub cluster_timestamp: u64,
    /// Sequence number.
    pub sequence: u32,
}

/// One attempt of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId {
    /// Its application.
    pub application: ApplicationId,
    /// Counts from 1.
    pub attempt: u32,
}

/// `container_[e<epoch>_]<cluster timestamp>_<application>_<attempt>_<sequence>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerId {
    /// Its attempt.
    pub attempt: AttemptId,
    /// ResourceManager epoch and sequence: `epoch << 40 | sequence`.
    pub id: u64,
}

/// A text that is no id of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not {kind}, as in \"{example}\"")]
pub struct IdError {
    /// What stood there.
    pub text: String,
    /// What should stand there.
    pub kind: &'static str,
    /// A well-formed one.
    pub example: &'static str,
}

impl fmt::Display for ApplicationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "application_{}_{:04}", self.cluster_timestamp, self.sequence)
    }
}

impl std::str::FromStr for ApplicationId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let parse = || {
            let (timestamp, sequence) = text.strip_prefix("application_")?.split_once('_')?;
            Some(Self { cluster_timestamp: number(timestamp)?, sequence: number(sequence)? })
        };
        parse().ok_or_else(|| IdError {
            text: text.to_owned(),
            kind: "an application id",
            example: "application_1700000000000_0001",
        })
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let app = self.application;
        write!(f, "appattempt_{}_{:04}_{:06}", app.cluster_timestamp, app.sequence, self.attempt)
    }
}

impl std::str::FromStr for AttemptId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let parse = || {
            let mut parts = text.strip_prefix("appattempt_")?.split('_');
            let application =
                ApplicationId { cluster_timestamp: number(parts.next()?)?, sequence: number(parts.next()?)? };
            let attempt = number(parts.next()?)?;
            parts.next().is_none().then_some(Self { application, attempt })
        };
        parse().ok_or_else(|| IdError {
            text: text.to_owned(),
            kind: "an application attempt id",
            example: "appattempt_1700000000000_0001_000001",
        })
    }
}

/// Bits of [`ContainerId::id`] below the ResourceManager's epoch.
const CONTAINER_SEQUENCE_BITS: u32 = 40;

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("container_")?;
        let epoch = self.id >> CONTAINER_SEQUENCE_BITS;
        if epoch > 0 {
            write!(f, "e{epoch:02}_")?;
        }
        let app = self.attempt.application;
        let sequence = self.id & ((1 << CONTAINER_SEQUENCE_BITS) - 1);
        write!(f, "{}_{:04}_{:02}_{sequence:06}", app.cluster_timestamp, app.sequence, self.attempt.attempt)
    }
}

impl std::str::FromStr for ContainerId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let parse = || {
            let rest = text.strip_prefix("container_")?;
            let (epoch, rest) = match rest.strip_prefix('e') {
                Some(with_epoch) => {
                    let (epoch, rest) = with_epoch.split_once('_')?;
                    (number::<u32>(epoch)?, rest)
                }
                None => (0, rest),
            };
            let mut parts = rest.split('_');
            let application =
                ApplicationId { cluster_timestamp: number(parts.next()?)?, sequence: number(parts.next()?)? };
            let attempt = AttemptId { application, attempt: number(parts.next()?)? };
            let sequence: u64 = number(parts.next()?)?;
            let epoch = u64::from(epoch).checked_mul(1 << CONTAINER_SEQUENCE_BITS)?;
            let fits = parts.next().is_none() && sequence < 1 << CONTAINER_SEQUENCE_BITS;
            fits.then_some(Self { attempt, id: epoch | sequence })
        };
        parse().ok_or_else(|| IdError {
            text: text.to_owned(),
            kind: "a container id",
            example: "container_1700000000000_0001_01_000002",
        })
    }
}

/// Digits only: `parse` alone would take "+1".
fn number<T: std::str::FromStr>(digits: &str) -> Option<T> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

macro_rules! serde_as_text {
    ($($name:ident),*) => {$(
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

serde_as_text!(ApplicationId, AttemptId, ContainerId);

macro_rules! counter_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:016x}", self.0)
            }
        }
    };
}

/// One decision; printed as 32 hexadecimal digits, or 16 where it has no salt, as those of version 0.1.0. Older ones are
/// smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DecisionId {
    /// Counts.
    pub number: u64,
    /// What nobody can guess who was not told the id; 0: none.
    pub salt: u64,
}

impl DecisionId {
    /// A decision without a salt.
    #[must_use]
    pub const fn of(number: u64) -> Self {
        Self { number, salt: 0 }
    }
}

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.salt {
            0 => write!(f, "{:016x}", self.number),
            salt => write!(f, "{:016x}{salt:016x}", self.number),
        }
    }
}

/// A number where it has no salt, as version 0.1.0 wrote all of them, else a text.
impl Serialize for DecisionId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.salt == 0 { serializer.serialize_u64(self.number) } else { serializer.collect_str(self) }
    }
}

impl<'de> Deserialize<'de> for DecisionId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(number) => Ok(Self::of(number)),
            Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

counter_id!(
    /// One lease: room on one node for one container.
    LeaseId
);
counter_id!(
    /// Version of a snapshot; grows with every publish of one process.
    SnapshotVersion
);

impl std::str::FromStr for DecisionId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let digits = |part: &str| {
            let plain = part.bytes().all(|digit| digit.is_ascii_hexdigit());
            u64::from_str_radix(part, 16).ok().filter(|_| plain)
        };
        let parse = || match text.len() {
            16 => digits(text).map(Self::of),
            32 => {
                let (number, salt) = text.split_at_checked(16)?;
                Some(Self { number: digits(number)?, salt: digits(salt)? })
            }
            _ => None,
        };
        parse().ok_or_else(|| IdError {
            text: text.to_owned(),
            kind: "a decision id",
            example: "0000019a000000015c0e2f9b7d3a8146",
        })
    }
}

/// What YARN keys its ask table by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SchedulerKey {
    /// Lower number, higher priority.
    pub priority: i32,
    /// YARN's default is -1.
    pub allocation_request_id: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decisions_id_reads_back_with_its_salt_and_as_the_version_before_wrote_it() {
        let old = DecisionId::of(0x19a_0000_0001);
        let new = DecisionId { salt: 0xab, ..old };
        assert_eq!((old.to_string(), new.to_string()), ("0000019a00000001".into(), format!("{old}00000000000000ab")));
        for id in [old, new] {
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(serde_json::from_str::<DecisionId>(&serde_json::to_string(&id).unwrap()).unwrap(), id);
        }
        assert_eq!(serde_json::to_string(&old).unwrap(), old.number.to_string());
        assert!(old < new && new < DecisionId::of(old.number + 1));
        for text in
            ["", "1", "0000019a0000000", "+000019a00000001", "0000019a00000001ß", "0000019a00000001+0000000000000ab"]
        {
            assert!(text.parse::<DecisionId>().is_err(), "{text}");
        }
    }

    #[test]
    fn ids_print_as_yarn_prints_them_and_read_back() {
        for text in ["container_1700000000000_0001_01_000002", "container_e17_1700000000000_12345_02_1000000"] {
            let id: ContainerId = text.parse().expect("well-formed");
            assert_eq!(id.to_string(), text);
        }
        let id: ApplicationId = "application_1_0001".parse().expect("well-formed");
        assert_eq!(id, ApplicationId { cluster_timestamp: 1, sequence: 1 });
        let id: AttemptId = "appattempt_1_0001_000002".parse().expect("well-formed");
        assert_eq!(id.to_string(), "appattempt_1_0001_000002");
    }

    #[test]
    fn spans_are_told_in_three_figures_at_most() {
        let told = [0, 4, 250, 999_499, 999_500, 9_118_673, 95_000, 99_960, 400_000, 9_996, 30_000_000, 61_500_000];
        let words = [
            "0 ms", "0 ms", "0.25 ms", "999 ms", "1 s", "9.12 s", "95 ms", "100 ms", "400 ms", "10 ms", "30 s",
            "61.5 s",
        ];
        assert_eq!(told.map(|span| Micros(span).in_words()), words);
        assert_eq!(Micros::from_secs(3_600).in_words(), "3600 s");
    }

    #[test]
    fn a_moment_has_a_date_and_a_time_of_day_by_each_clock() {
        let of = |seconds: u64, zone_offset_s| {
            let Calendar { year, month, day, hour, minute, second } =
                Timestamp(seconds * 1_000_000).calendar(zone_offset_s);
            format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
        };
        assert_eq!(of(951_868_799, 0), "2000-02-29 23:59:59");
        assert_eq!([of(951_868_799, 1), of(951_868_799, -86_400)], ["2000-03-01 00:00:00", "2000-02-28 23:59:59"]);
        assert_eq!([of(0, -3_600), of(u64::MAX / 1_000_000, 0)], ["1970-01-01 00:00:00", "586524-01-19 08:01:49"]);
    }

    #[test]
    fn what_is_no_id_is_refused_with_an_example() {
        for text in ["", "application_", "application_1", "application_1_x", "application_-1_2", "application_1_+2"] {
            let error = text.parse::<ApplicationId>().expect_err("malformed");
            assert!(error.to_string().contains("application_1700000000000_0001"), "{error}");
        }
        for text in ["container_1_2_3", "container_e_1_2_3_4", "container_1_2_3_4_5", "container_1_2_3_9999999999999"] {
            assert!(text.parse::<ContainerId>().is_err(), "{text}");
        }
    }
}
