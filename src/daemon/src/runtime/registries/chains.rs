//! Middleboxes and chains as declared: known here as well, so that what is wrong with another declaration, or with a
//! change of a box, is said at once.

use super::refusal::{ItemRefusal, Reason};
use hintd_model::cluster::{ChainedFlows, Change};
use hintd_model::network::Network;
use hintd_model::network::chains::{ChainProblem, Chains, ChainsDocument};
use hintd_model::units::BitsPerSec;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// Problems named in one refusal.
const PROBLEMS_NAMED: usize = 100;

/// What is declared, and what the engine has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Declared {
    /// The configuration declares them.
    owned: bool,
    chains: Option<Chains>,
    /// Flows by chain, as of the last publish.
    in_use: BTreeMap<Arc<str>, u64>,
    document: Option<Arc<ChainsDocument>>,
    /// Changes of boxes, of which the last ones hold.
    boxes: BTreeMap<Arc<str>, (Option<bool>, Option<BitsPerSec>)>,
}

impl Declared {
    pub(super) fn take(&mut self) -> Vec<Change> {
        let whole = self.document.take().map(|document| Change::Chains { document, in_use: BTreeMap::new() });
        let boxes = std::mem::take(&mut self.boxes).into_iter();
        whole.into_iter().chain(boxes.map(|(name, (up, capacity))| Change::Middlebox { name, up, capacity })).collect()
    }

    pub(super) fn observe(&mut self, owned: bool, chains: Option<&Arc<Chains>>, flows: &ChainedFlows) {
        self.owned = owned;
        self.in_use = flows.in_use();
        if self.document.is_none() && self.boxes.is_empty() {
            self.chains = chains.map(|chains| Chains::clone(chains));
        }
    }

    pub(super) fn declare(&mut self, document: ChainsDocument, network: Option<&Network>) -> Result<(), ItemRefusal> {
        if self.owned {
            let message = "the configuration declares middleboxes and chains: a feed tells of the state of boxes only";
            return Err(ItemRefusal::new(Reason::NotOwner, message));
        }
        let none = Chains::default();
        let known = self.chains.as_ref().unwrap_or(&none);
        let next = known.replace(&document, network, &self.in_use).map_err(|problems| refuse(&problems))?;
        // What was said of boxes and has not reached the engine is said after the declaration: of what is still true.
        self.boxes.retain(|name, (up, capacity)| {
            let Ok(index) = next.find_box(name) else { return false };
            let known = &next.boxes()[index.at()];
            (*up, *capacity) = (up.map(|_| known.up), capacity.map(|_| known.capacity));
            true
        });
        self.chains = (!document.is_empty()).then_some(next);
        self.document = Some(Arc::new(document));
        Ok(())
    }

    /// Says whether anything changed.
    pub(super) fn set_box(
        &mut self,
        name: &str,
        up: Option<bool>,
        capacity: Option<BitsPerSec>,
    ) -> Result<bool, ItemRefusal> {
        let unknown = |problem: &ChainProblem| ItemRefusal::new(Reason::UnknownBox, problem);
        let none = || unknown(&ChainProblem::UnknownBox { name: name.into(), near: None });
        let chains = self.chains.as_mut().ok_or_else(none)?;
        let index = chains.find_box(name).map_err(|problem| unknown(&problem))?;
        if capacity == Some(BitsPerSec::ZERO) {
            let problem = ChainProblem::NoCapacity { name: name.into(), bits_per_s: 0 };
            return Err(ItemRefusal::new(Reason::Zero, problem));
        }
        if !chains.set_box(index, up, capacity) {
            return Ok(false);
        }
        let waiting = self.boxes.entry(name.into()).or_default();
        *waiting = (up.or(waiting.0), capacity.or(waiting.1));
        Ok(true)
    }
}

fn refuse(problems: &[ChainProblem]) -> ItemRefusal {
    let named: Vec<String> = problems.iter().take(PROBLEMS_NAMED).map(ToString::to_string).collect();
    let mut message = named.join("; ");
    if problems.len() > PROBLEMS_NAMED {
        // Writing to a string can not fail.
        _ = write!(message, "; and {} more", problems.len() - PROBLEMS_NAMED);
    }
    ItemRefusal::new(Reason::BadChains, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::network::chains::BoxEntry;

    fn document(names: &[&str]) -> ChainsDocument {
        let entry = |name: &&str| BoxEntry {
            name: (*name).into(),
            kind: "FW".into(),
            at: "edge-1".into(),
            bits_per_s: 1_000,
            up: true,
        };
        ChainsDocument { boxes: names.iter().map(entry).collect(), ..ChainsDocument::default() }
    }

    #[test]
    fn what_was_said_of_boxes_is_not_lost_when_chains_are_declared_before_the_engine_has_heard_it() {
        let mut declared = Declared::default();
        declared.declare(document(&["a", "b", "c"]), None).unwrap();
        declared.take();
        assert!(declared.set_box("a", Some(false), Some(BitsPerSec(5))).unwrap());
        assert!(declared.set_box("b", Some(false), None).unwrap());
        assert!(declared.set_box("c", None, Some(BitsPerSec(5))).unwrap());
        declared.declare(document(&["a", "c"]), None).unwrap();
        let changes = declared.take();
        let told = |change: &Change| match change {
            Change::Middlebox { name, up, capacity } => (name.to_string(), *up, *capacity),
            _ => (String::new(), None, None),
        };
        let five = Some(BitsPerSec(5));
        let expected = [(String::new(), None, None), ("a".into(), Some(false), five), ("c".into(), None, five)];
        assert_eq!(changes.iter().map(told).collect::<Vec<_>>(), expected, "the declaration, then boxes that it has");
    }
}
