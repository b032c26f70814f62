//! Request ids that were answered, as far as a request's own thread can tell without asking the engine's.

use dashmap::DashSet;
use hintd_model::units::RequestId;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Hashes of answered ids. Most requests are new, and asking the engine's thread only to hear that costs two
/// changes of threads. Whatever this says, the commit looks the id up itself: a wrong "new" costs a placement in
/// vain, a wrong "known" a question.
#[derive(Debug, Default)]
pub(super) struct AnsweredRequests(DashSet<u64>);

impl AnsweredRequests {
    /// The id is answered. To be called before the answer leaves.
    pub(super) fn note(&self, id: &RequestId) {
        self.0.insert(hash(id));
    }

    /// The id's answer is forgotten.
    pub(super) fn forget(&self, id: &RequestId) {
        self.0.remove(&hash(id));
    }

    /// Whether the id may have an answer.
    pub(super) fn may_have(&self, id: &RequestId) -> bool {
        self.0.contains(&hash(id))
    }
}

fn hash(id: &RequestId) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_known_from_its_answer_until_that_is_forgotten() {
        let known = AnsweredRequests::default();
        let [one, other] = ["a", "b"].map(RequestId::from);
        known.note(&one);
        assert!(known.may_have(&one) && !known.may_have(&other));
        known.forget(&other);
        known.forget(&one);
        assert!(!known.may_have(&one));
    }
}
