//! Values of fields that differ from what the wire has; build.rs says which fields.

use crate::wire::{v1, yarn};
use serde::ser::{Error as _, Serialize, Serializer};
use std::collections::BTreeMap;

/// An empty name is none.
pub(crate) fn null_if_empty<S: Serializer>(name: &str, serializer: S) -> Result<S::Ok, S::Error> {
    (!name.is_empty()).then_some(name).serialize(serializer)
}

/// An id of 64 bits, as a text.
pub(crate) fn id<S: Serializer>(id: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

/// What the sender left out is as if it had sent the message empty.
pub(crate) fn or_default<T, S>(message: &Option<T>, serializer: S) -> Result<S::Ok, S::Error>
where
    T: Serialize + Default,
    S: Serializer,
{
    match message {
        Some(message) => message.serialize(serializer),
        None => T::default().serialize(serializer),
    }
}

/// A part of an answer whose keys are sorted, though the answer's own are not.
pub(crate) fn in_order<S: Serializer>(part: &impl Serialize, serializer: S) -> Result<S::Ok, S::Error> {
    super::sorted(part).map_err(S::Error::custom)?.serialize(serializer)
}

/// Amounts by resource.
pub(crate) fn size<S: Serializer>(size: &Option<yarn::ResourceProto>, serializer: S) -> Result<S::Ok, S::Error> {
    let none = yarn::ResourceProto::default();
    let size = size.as_ref().unwrap_or(&none);
    let mut amounts = BTreeMap::from([("memory_mb", size.memory()), ("vcores", size.virtual_cores().into())]);
    amounts.extend(size.resource_value_map.iter().map(|kind| (kind.key.as_str(), kind.value())));
    amounts.serialize(serializer)
}

/// Takes what prost has an enumeration's field as.
pub(crate) fn load_source_token<S: Serializer>(number: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    super::load_source(v1::LoadSource::try_from(*number).unwrap_or_default()).serialize(serializer)
}

/// Takes what prost has an enumeration's field as.
pub(crate) fn phase_token<S: Serializer>(number: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    super::phase(v1::RoutePhase::try_from(*number).unwrap_or_default()).serialize(serializer)
}

/// What stands under the name of a cost term.
pub(crate) trait OfTerm {
    fn term(&self) -> &str;
}

impl OfTerm for v1::TermOutcome {
    fn term(&self) -> &str {
        &self.term
    }
}

impl OfTerm for v1::TermAdherence {
    fn term(&self) -> &str {
        &self.term
    }
}

/// An object by the terms' names.
pub(crate) fn by_term<T: OfTerm + Serialize, S: Serializer>(terms: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    let named: BTreeMap<&str, &T> = terms.iter().map(|term| (term.term(), term)).collect();
    named.serialize(serializer)
}
