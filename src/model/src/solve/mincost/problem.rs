//! The problem: nodes with supplies, arcs with capacities and costs, changed between two solves.

/// Capacity of an arc that takes whatever comes.
pub const UNLIMITED: i64 = i64::MAX >> 2;

/// The largest capacity, supply and sum of supplies, and the largest absolute cost.
pub const MAX_VALUE: i64 = 1 << 52;

/// A node. Numbers of removed nodes are given out again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// An arc. Numbers of removed arcs are given out again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArcId(pub u32);

impl NodeId {
    /// As an index.
    #[must_use]
    pub const fn at(self) -> usize {
        self.0 as usize
    }
}

impl ArcId {
    /// As an index.
    #[must_use]
    pub const fn at(self) -> usize {
        self.0 as usize
    }
}

/// What is asked for that no problem can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProblemError {
    /// There is no such node.
    #[error("there is no node {0}")]
    UnknownNode(u32),
    /// There is no such arc.
    #[error("there is no arc {0}")]
    UnknownArc(u32),
    /// Below 0.
    #[error("a capacity of {0} is below 0")]
    NegativeCapacity(i64),
    /// Too large to add up.
    #[error("{what} of {value} is beyond ±{MAX_VALUE}")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// What was given.
        value: i64,
    },
    /// More nodes or arcs than have numbers.
    #[error("more than 4294967294 {0}")]
    TooMany(&'static str),
}

/// An arc as it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArcRow {
    /// Where it begins.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// The most that it carries; [`UNLIMITED`].
    pub capacity: i64,
    /// For each unit.
    pub cost: i64,
}

/// Nodes and arcs.
#[derive(Debug, Clone, Default)]
pub struct MinCostProblem {
    supplies: Vec<i64>,
    is_node: Vec<bool>,
    free_nodes: Vec<u32>,
    arcs: Vec<ArcRow>,
    is_arc: Vec<bool>,
    free_arcs: Vec<u32>,
}

impl MinCostProblem {
    /// Without nodes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A new node.
    ///
    /// # Errors
    /// [`ProblemError::TooLarge`], [`ProblemError::TooMany`].
    pub fn add_node(&mut self, supply: i64) -> Result<NodeId, ProblemError> {
        within("a supply", supply)?;
        if let Some(node) = self.free_nodes.pop() {
            (self.supplies[node as usize], self.is_node[node as usize]) = (supply, true);
            return Ok(NodeId(node));
        }
        // The last number is the solvers' root.
        let node = u32::try_from(self.supplies.len()).ok().filter(|node| *node < u32::MAX - 1);
        let node = node.ok_or(ProblemError::TooMany("nodes"))?;
        self.supplies.push(supply);
        self.is_node.push(true);
        Ok(NodeId(node))
    }

    /// The node and its arcs go.
    ///
    /// # Errors
    /// [`ProblemError::UnknownNode`].
    pub fn remove_node(&mut self, node: NodeId) -> Result<(), ProblemError> {
        self.known(node)?;
        for at in 0..self.arcs.len() {
            if self.is_arc[at] && (self.arcs[at].from == node || self.arcs[at].to == node) {
                self.take_arc(at);
            }
        }
        (self.supplies[node.at()], self.is_node[node.at()]) = (0, false);
        self.free_nodes.push(node.0);
        Ok(())
    }

    /// A new arc.
    ///
    /// # Errors
    /// [`ProblemError`]: unknown ends, a capacity below 0, or what is too large to add up.
    pub fn add_arc(&mut self, row: ArcRow) -> Result<ArcId, ProblemError> {
        self.known(row.from)?;
        self.known(row.to)?;
        capacity_within(row.capacity)?;
        within("a cost", row.cost)?;
        if let Some(arc) = self.free_arcs.pop() {
            (self.arcs[arc as usize], self.is_arc[arc as usize]) = (row, true);
            return Ok(ArcId(arc));
        }
        let arc = u32::try_from(self.arcs.len()).ok().filter(|arc| *arc < u32::MAX - 1);
        let arc = arc.ok_or(ProblemError::TooMany("arcs"))?;
        self.arcs.push(row);
        self.is_arc.push(true);
        Ok(ArcId(arc))
    }

    /// The arc goes.
    ///
    /// # Errors
    /// [`ProblemError::UnknownArc`].
    pub fn remove_arc(&mut self, arc: ArcId) -> Result<(), ProblemError> {
        self.row(arc)?;
        self.take_arc(arc.at());
        Ok(())
    }

    fn take_arc(&mut self, at: usize) {
        (self.arcs[at].capacity, self.is_arc[at]) = (0, false);
        self.free_arcs.push(at as u32);
    }

    /// Another supply.
    ///
    /// # Errors
    /// [`ProblemError::UnknownNode`], [`ProblemError::TooLarge`].
    pub fn set_supply(&mut self, node: NodeId, supply: i64) -> Result<(), ProblemError> {
        self.known(node)?;
        self.supplies[node.at()] = within("a supply", supply)?;
        Ok(())
    }

    /// Another cost.
    ///
    /// # Errors
    /// [`ProblemError::UnknownArc`], [`ProblemError::TooLarge`].
    pub fn set_cost(&mut self, arc: ArcId, cost: i64) -> Result<(), ProblemError> {
        self.row(arc)?;
        self.arcs[arc.at()].cost = within("a cost", cost)?;
        Ok(())
    }

    /// Another capacity.
    ///
    /// # Errors
    /// [`ProblemError::UnknownArc`], [`ProblemError::NegativeCapacity`], [`ProblemError::TooLarge`].
    pub fn set_capacity(&mut self, arc: ArcId, capacity: i64) -> Result<(), ProblemError> {
        self.row(arc)?;
        self.arcs[arc.at()].capacity = capacity_within(capacity)?;
        Ok(())
    }

    /// By node, removed ones too (0).
    #[must_use]
    pub fn supplies(&self) -> &[i64] {
        &self.supplies
    }

    /// An arc as it is now.
    ///
    /// # Errors
    /// [`ProblemError::UnknownArc`].
    pub fn row(&self, arc: ArcId) -> Result<&ArcRow, ProblemError> {
        let known = self.is_arc.get(arc.at()).copied().unwrap_or(false);
        if known { Ok(&self.arcs[arc.at()]) } else { Err(ProblemError::UnknownArc(arc.0)) }
    }

    /// Arcs that there are, in the order of their numbers.
    pub fn arcs(&self) -> impl Iterator<Item = (ArcId, &ArcRow)> {
        let known = (0_u32..).zip(&self.arcs).zip(&self.is_arc);
        known.filter(|(_, is_arc)| **is_arc).map(|((at, row), _)| (ArcId(at), row))
    }

    /// All arcs by number; removed ones have capacity 0.
    pub(super) fn rows(&self) -> &[ArcRow] {
        &self.arcs
    }

    /// Whether the arc of that number was not removed.
    pub(super) fn has(&self, arc: usize) -> bool {
        self.is_arc[arc]
    }

    fn known(&self, node: NodeId) -> Result<(), ProblemError> {
        let known = self.is_node.get(node.at()).copied().unwrap_or(false);
        if known { Ok(()) } else { Err(ProblemError::UnknownNode(node.0)) }
    }
}

const fn within(what: &'static str, value: i64) -> Result<i64, ProblemError> {
    if value.unsigned_abs() > MAX_VALUE.unsigned_abs() {
        Err(ProblemError::TooLarge { what, value })
    } else {
        Ok(value)
    }
}

const fn capacity_within(capacity: i64) -> Result<i64, ProblemError> {
    if capacity < 0 {
        Err(ProblemError::NegativeCapacity(capacity))
    } else if capacity == UNLIMITED {
        Ok(capacity)
    } else {
        within("a capacity", capacity)
    }
}
