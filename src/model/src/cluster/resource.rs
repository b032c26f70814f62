//! Resources as YARN counts them: memory, vcores and a few named kinds, in one fixed row.

use crate::units::NodeIdx;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Kinds of resource a cluster may have, memory and vcores included: one cache line a node.
pub const KINDS_MAX: usize = 8;
/// Row position of memory, MB.
pub const MEMORY: usize = 0;
/// Row position of vcores.
pub const VCORES: usize = 1;
/// The largest amount of a kind that is believed, off the wire or out of a file: sums over a cluster stay far from
/// overflow.
pub const AMOUNT_MAX: u64 = 1 << 48;
/// YARN's own name of memory.
pub const MEMORY_NAME: &str = "memory-mb";
/// YARN's own name of virtual cores.
pub const VCORES_NAME: &str = "vcores";

/// An amount of every kind: `[memory MB, vcores, named kinds…]`, named as in [`ResourceKinds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Resource(pub [u64; KINDS_MAX]);

impl Resource {
    /// Nothing.
    pub const ZERO: Self = Self([0; KINDS_MAX]);

    /// Memory in MB and vcores, no named kinds.
    #[must_use]
    pub const fn new(memory_mb: u64, vcores: u64) -> Self {
        let mut row = [0; KINDS_MAX];
        row[MEMORY] = memory_mb;
        row[VCORES] = vcores;
        Self(row)
    }

    /// Memory, MB.
    #[must_use]
    pub const fn memory_mb(&self) -> u64 {
        self.0[MEMORY]
    }

    /// Virtual cores.
    #[must_use]
    pub const fn vcores(&self) -> u64 {
        self.0[VCORES]
    }

    /// Whether nothing of any kind.
    #[inline]
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|&amount| amount == 0)
    }

    /// Kind by kind, stopping at the largest value.
    #[inline]
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
        self
    }

    /// Kind by kind, stopping at zero.
    #[inline]
    #[must_use]
    pub fn minus(mut self, other: &Self) -> Self {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_sub(theirs);
        }
        self
    }

    /// Kind by kind, the larger of both.
    #[inline]
    #[must_use]
    pub fn max(mut self, other: &Self) -> Self {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = (*mine).max(theirs);
        }
        self
    }

    /// `count` times as much, stopping at the largest value.
    #[inline]
    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        for mine in &mut self.0 {
            *mine = mine.saturating_mul(count);
        }
        self
    }

    /// Whether every kind of `self` is at most that of `room`.
    #[inline]
    #[must_use]
    pub fn within(&self, room: &Self) -> bool {
        self.0.iter().zip(room.0).all(|(&mine, theirs)| mine <= theirs)
    }
}

/// Ones in a unit as YARN's `ResourceInformation.units` spells it; fractions of one have no place in a count.
#[must_use]
pub fn unit(units: &str) -> Option<u64> {
    Some(match units {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "P" => 1_000_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "Pi" => 1 << 50,
        _ => return None,
    })
}

/// Names of the kinds in a [`Resource`] row; grows, never shrinks, while a process lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceKinds(Vec<Arc<str>>);

/// There is no row position left for one more kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("resource kind \"{name}\" is one too many: at most {KINDS_MAX} kinds, and there are {known}")]
pub struct TooManyKinds {
    /// The kind that found no place.
    pub name: String,
    /// The kinds known, comma-separated.
    pub known: String,
}

impl Default for ResourceKinds {
    fn default() -> Self {
        Self(vec![MEMORY_NAME.into(), VCORES_NAME.into()])
    }
}

impl ResourceKinds {
    /// Row position of a kind.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|known| &**known == name)
    }

    /// Row position of a kind, which becomes known if it was not.
    ///
    /// # Errors
    /// [`TooManyKinds`] beyond [`KINDS_MAX`].
    pub fn intern(&mut self, name: &str) -> Result<usize, TooManyKinds> {
        if let Some(position) = self.position(name) {
            return Ok(position);
        }
        if self.0.len() == KINDS_MAX {
            return Err(TooManyKinds { name: name.to_owned(), known: self.0.join(", ") });
        }
        self.0.push(name.into());
        Ok(self.0.len() - 1)
    }

    /// Names by row position.
    #[must_use]
    pub fn names(&self) -> &[Arc<str>] {
        &self.0
    }
}

/// A resource by names, as requests and files spell it, before the kinds are known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedResource {
    /// MB.
    pub memory_mb: u64,
    /// Virtual cores.
    #[serde(default)]
    pub vcores: u64,
    /// Further kinds by YARN's name, for example `yarn.io/gpu`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<(Arc<str>, u64)>,
}

impl NamedResource {
    /// The row for kinds that are all known; the first unknown name otherwise.
    ///
    /// # Errors
    /// The unknown kind's name.
    pub fn to_row(&self, kinds: &ResourceKinds) -> Result<Resource, Arc<str>> {
        let mut row = Resource::new(self.memory_mb, self.vcores);
        for (name, amount) in &self.named {
            let position = kinds.position(name).ok_or_else(|| Arc::clone(name))?;
            row.0[position] = *amount;
        }
        Ok(row)
    }

    /// The row, with unknown kinds made known.
    ///
    /// # Errors
    /// [`TooManyKinds`] beyond [`KINDS_MAX`].
    pub fn intern(&self, kinds: &mut ResourceKinds) -> Result<Resource, TooManyKinds> {
        let mut row = Resource::new(self.memory_mb, self.vcores);
        for (name, amount) in &self.named {
            row.0[kinds.intern(name)?] = *amount;
        }
        Ok(row)
    }

    /// The names of a row.
    #[must_use]
    pub fn from_row(row: &Resource, kinds: &ResourceKinds) -> Self {
        let named = kinds.names().iter().zip(row.0).skip(2).filter(|(_, amount)| *amount > 0);
        Self {
            memory_mb: row.memory_mb(),
            vcores: row.vcores(),
            named: named.map(|(name, amount)| (Arc::clone(name), amount)).collect(),
        }
    }
}

/// Which kinds YARN's scheduler looks at (`yarn.scheduler.capacity.resource-calculator`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Calculator {
    /// `DefaultResourceCalculator`: memory only.
    #[default]
    Default,
    /// `DominantResourceCalculator`: every kind.
    Dominant,
}

/// The sizes YARN really allocates: `yarn.scheduler.{minimum,increment,maximum}-allocation-*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeRules {
    /// What the scheduler looks at.
    pub calculator: Calculator,
    /// Smaller asks grow to this.
    pub minimum: Resource,
    /// Asks grow to a multiple of this; 0 in a kind: no rounding.
    pub increment: Resource,
    /// Larger asks are refused; 0 in a kind: no bound.
    pub maximum: Resource,
}

impl Default for SizeRules {
    /// YARN's own defaults: 1024 MB and 1 vcore steps, at most 8192 MB and 4 vcores, memory only.
    fn default() -> Self {
        Self {
            calculator: Calculator::Default,
            minimum: Resource::new(1024, 1),
            increment: Resource::new(1024, 1),
            maximum: Resource::new(8192, 4),
        }
    }
}

/// Why an ask can't be a container anywhere under the size rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// No memory asked for.
    #[error("a container needs memory, and 0 MB are asked for")]
    Zero,
    /// Above the scheduler's maximum allocation.
    #[error("{amount} of resource kind {kind} is more than the scheduler's maximum allocation of {maximum}")]
    AboveMaximum {
        /// Row position.
        kind: usize,
        /// Asked for.
        amount: u64,
        /// Allowed.
        maximum: u64,
    },
}

impl SizeRules {
    /// The size YARN would allocate for `ask`: at least the minimum, rounded up to increments.
    ///
    /// # Errors
    /// [`SizeError`] for an empty ask or one above the maximum.
    pub fn normalize(&self, ask: &Resource) -> Result<Resource, SizeError> {
        if ask.memory_mb() == 0 {
            return Err(SizeError::Zero);
        }
        let mut size = *ask;
        for kind in 0..KINDS_MAX {
            let wanted = ask.0[kind].max(self.minimum.0[kind]);
            let step = self.increment.0[kind];
            let rounded = if step == 0 { wanted } else { wanted.div_ceil(step).saturating_mul(step) };
            let maximum = self.maximum.0[kind];
            if maximum > 0 && rounded > maximum {
                // YARN caps a rounded-up ask at the maximum and refuses one that was above it.
                if ask.0[kind] > maximum {
                    return Err(SizeError::AboveMaximum { kind, amount: ask.0[kind], maximum });
                }
                size.0[kind] = maximum;
            } else {
                size.0[kind] = rounded;
            }
        }
        Ok(size)
    }

    /// The one feasibility test of search, commit and explain: does a container of `size` fit in `room`?
    #[inline]
    #[must_use]
    pub fn feasible(&self, size: &Resource, room: &Resource) -> bool {
        match self.calculator {
            Calculator::Default => size.memory_mb() <= room.memory_mb(),
            Calculator::Dominant => size.within(room),
        }
    }

    /// The first kind of which `room` has too little, by the calculator.
    #[inline]
    #[must_use]
    pub fn lacking(&self, size: &Resource, room: &Resource) -> Option<usize> {
        let kinds = match self.calculator {
            Calculator::Default => 1,
            Calculator::Dominant => KINDS_MAX,
        };
        (0..kinds).find(|&kind| size.0[kind] > room.0[kind])
    }

    /// How many containers of `size` fit in `room`.
    #[inline]
    #[must_use]
    pub fn how_many(&self, size: &Resource, room: &Resource) -> u32 {
        let kinds = match self.calculator {
            Calculator::Default => 1,
            Calculator::Dominant => KINDS_MAX,
        };
        let fits = (0..kinds).filter(|&kind| size.0[kind] > 0).map(|kind| room.0[kind] / size.0[kind]).min();
        fits.map_or(0, |count| u32::try_from(count).unwrap_or(u32::MAX))
    }
}

/// Room that is taken by leases, by node: a column in chunks shared between generations, so that a
/// commit copies one chunk and not the cluster.
#[derive(Debug, Clone, Default)]
pub struct Overlay {
    chunks: Vec<Arc<[Resource; CHUNK]>>,
    /// By chunk: a bit for each node on which something is leased.
    taken: Vec<u64>,
}

/// Nodes in a chunk: 4 KiB, which a commit copies in well under a microsecond, and as many as a word has bits.
const CHUNK: usize = u64::BITS as usize;

impl Overlay {
    /// Leased on `node`.
    #[inline]
    #[must_use]
    pub fn leased(&self, node: NodeIdx) -> Resource {
        self.chunks.get(node.at() / CHUNK).map_or(Resource::ZERO, |chunk| chunk[node.at() % CHUNK])
    }

    /// Whether anything is leased on `node`.
    #[inline]
    #[must_use]
    pub fn takes(&self, node: NodeIdx) -> bool {
        self.taken.get(node.at() / CHUNK).is_some_and(|bits| bits >> (node.at() % CHUNK) & 1 == 1)
    }

    /// Nodes on which something is leased, ascending; costs as much as there are such nodes, and a word for each
    /// 64 others.
    pub fn nodes(&self) -> impl Iterator<Item = NodeIdx> + '_ {
        self.taken.iter().enumerate().flat_map(|(at, &bits)| {
            let rest = std::iter::successors(Some(bits), |bits| Some(bits & bits.wrapping_sub(1)));
            let bits = rest.take_while(|&bits| bits != 0);
            bits.map(move |bits| NodeIdx::new(at * CHUNK + bits.trailing_zeros() as usize))
        })
    }

    /// Whether the rows of `node` and its neighbours are the same memory in both, and so certainly the same.
    #[must_use]
    pub fn shares(&self, other: &Self, node: NodeIdx) -> bool {
        let position = node.at() / CHUNK;
        match (self.chunks.get(position), other.chunks.get(position)) {
            (Some(mine), Some(theirs)) => Arc::ptr_eq(mine, theirs),
            (None, None) => true,
            _ => false,
        }
    }

    /// Sets what is leased on `node`.
    pub fn set(&mut self, node: NodeIdx, leased: Resource) {
        let position = node.at() / CHUNK;
        while self.chunks.len() <= position {
            self.chunks.push(Arc::new([Resource::ZERO; CHUNK]));
            self.taken.push(0);
        }
        let bit = 1 << (node.at() % CHUNK);
        self.taken[position] = self.taken[position] & !bit | if leased.is_zero() { 0 } else { bit };
        Arc::make_mut(&mut self.chunks[position])[node.at() % CHUNK] = leased;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_as_yarn_rounds_them() {
        let rules = SizeRules::default();
        assert_eq!(rules.normalize(&Resource::new(1, 0)), Ok(Resource::new(1024, 1)));
        assert_eq!(rules.normalize(&Resource::new(1025, 2)), Ok(Resource::new(2048, 2)));
        assert_eq!(rules.normalize(&Resource::new(8192, 4)), Ok(Resource::new(8192, 4)));
        assert_eq!(rules.normalize(&Resource::new(0, 4)), Err(SizeError::Zero));
        let error = rules.normalize(&Resource::new(9000, 1)).expect_err("above the maximum");
        assert_eq!(error, SizeError::AboveMaximum { kind: MEMORY, amount: 9000, maximum: 8192 });
        let odd = SizeRules { increment: Resource::new(3000, 1), ..rules };
        assert_eq!(odd.normalize(&Resource::new(7000, 1)), Ok(Resource::new(8192, 1)), "capped, not refused");
    }

    #[test]
    fn the_default_calculator_ignores_vcores_and_the_dominant_one_does_not() {
        let mut rules = SizeRules::default();
        let (size, room) = (Resource::new(1024, 4), Resource::new(4096, 2));
        assert!(rules.feasible(&size, &room));
        assert_eq!(rules.how_many(&size, &room), 4);
        rules.calculator = Calculator::Dominant;
        assert!(!rules.feasible(&size, &room));
        assert_eq!(rules.lacking(&size, &room), Some(VCORES));
        assert_eq!(rules.how_many(&size, &room), 0);
    }

    #[test]
    fn an_older_overlay_does_not_see_what_a_newer_one_changed() {
        let mut old = Overlay::default();
        old.set(NodeIdx(70), Resource::new(1, 1));
        let mut new = old.clone();
        new.set(NodeIdx(70), Resource::new(5, 1));
        new.set(NodeIdx(200), Resource::new(7, 1));
        assert_eq!(old.leased(NodeIdx(70)), Resource::new(1, 1));
        assert_eq!(new.leased(NodeIdx(70)), Resource::new(5, 1));
        assert_eq!((old.leased(NodeIdx(200)), new.leased(NodeIdx(200)).memory_mb()), (Resource::ZERO, 7));
    }

    #[test]
    fn leased_nodes_are_those_with_something_leased() {
        let mut overlay = Overlay::default();
        for node in [0, 63, 64, 300, 301] {
            overlay.set(NodeIdx(node), Resource::new(1024, 1));
        }
        overlay.set(NodeIdx(300), Resource::ZERO);
        overlay.set(NodeIdx(500), Resource::ZERO);
        assert_eq!(overlay.nodes().map(|node| node.0).collect::<Vec<_>>(), [0, 63, 64, 301]);
        assert_eq!([63, 300, 301, 9_999].map(|node| overlay.takes(NodeIdx(node))), [true, false, true, false]);
    }

    #[test]
    fn a_ninth_kind_is_refused_by_name() {
        let mut kinds = ResourceKinds::default();
        for n in 2..KINDS_MAX {
            kinds.intern(&format!("k{n}")).expect("room");
        }
        assert_eq!(kinds.intern("k2"), Ok(2));
        assert!(kinds.intern("gpu").expect_err("full").to_string().contains("\"gpu\""));
    }
}
