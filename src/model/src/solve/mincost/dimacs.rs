//! Minimum-cost flow in DIMACS's format: `p min NODES ARCS`, `n NODE SUPPLY`, `a FROM TO LOWER CAPACITY COST`, `c` for comments;
//! the answer as `s COST` and `f FROM TO FLOW`. A capacity below 0 is unlimited.

use super::problem::{ArcId, ArcRow, MinCostProblem, NodeId, UNLIMITED};
use super::{MinCostFlow, ProblemError};
use std::io::{self, BufRead, Write};

/// A file's problem.
#[derive(Debug, Clone)]
pub struct DimacsProblem {
    /// Without lower bounds: what has to flow is moved to supplies.
    pub problem: MinCostProblem,
    /// By arc: what flows besides.
    pub lower: Vec<i64>,
}

/// A line that is not of the format.
#[derive(Debug, thiserror::Error)]
pub enum DimacsError {
    /// What is wrong with it.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// In words.
        what: String,
    },
    /// It could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The longest line that is read, bytes.
const LONGEST_LINE: u64 = 4096;

/// The most nodes: they take memory before any line names them.
pub const MOST_NODES: usize = 1 << 24;

/// Reads a problem.
///
/// # Errors
/// [`DimacsError`]: the first line that is wrong.
pub fn read(mut from: impl BufRead) -> Result<DimacsProblem, DimacsError> {
    let mut reader = Reader::default();
    let mut text = Vec::new();
    for line in 1_usize.. {
        text.clear();
        let read = io::Read::take(&mut from, LONGEST_LINE).read_until(b'\n', &mut text)?;
        let wrong = |what: String| DimacsError::Line { line, what };
        if read == 0 {
            return reader.finish().map_err(wrong);
        }
        if read as u64 == LONGEST_LINE && text.last() != Some(&b'\n') {
            return Err(wrong(format!("it is longer than {LONGEST_LINE} bytes")));
        }
        let text = std::str::from_utf8(&text).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
        reader.take(text).map_err(wrong)?;
    }
    unreachable!("lines end before their numbers do")
}

#[derive(Default)]
struct Reader {
    /// Nodes and arcs that were announced.
    announced: Option<(usize, usize)>,
    problem: MinCostProblem,
    named: Vec<bool>,
    lower: Vec<i64>,
    moved: Vec<i64>,
}

impl Reader {
    fn take(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            None | Some("c") => Ok(()),
            Some("p") => self.announce(&words.collect::<Vec<_>>()),
            Some("n") => self.node(&numbers::<2>(words, "n NODE SUPPLY")?),
            Some("a") => self.arc(&numbers::<5>(words, "a FROM TO LOWER CAPACITY COST")?),
            Some(other) => Err(format!("\"{other}\" is none of p, n, a and c")),
        }
    }

    fn announce(&mut self, words: &[&str]) -> Result<(), String> {
        let (nodes, arcs) = match words {
            ["min", nodes, arcs] => (count(nodes)?, count(arcs)?),
            _ => return Err("expected: p min NODES ARCS".to_owned()),
        };
        if self.announced.is_some() {
            return Err("a second line p".to_owned());
        }
        if nodes > MOST_NODES {
            return Err(format!("{nodes} nodes: at most {MOST_NODES}"));
        }
        for _ in 0..nodes {
            self.problem.add_node(0).map_err(|error| error.to_string())?;
        }
        (self.named, self.moved) = (vec![false; nodes], vec![0; nodes]);
        self.announced = Some((nodes, arcs));
        Ok(())
    }

    fn node(&mut self, &[number, supply]: &[i64; 2]) -> Result<(), String> {
        let node = self.known(number)?;
        if std::mem::replace(&mut self.named[node.at()], true) {
            return Err(format!("node {number} has a supply already"));
        }
        self.problem.set_supply(node, supply).map_err(|error| error.to_string())
    }

    fn arc(&mut self, &[from, to, lower, capacity, cost]: &[i64; 5]) -> Result<(), String> {
        let (from, to) = (self.known(from)?, self.known(to)?);
        let (_, arcs) = self.announced.unwrap_or_default();
        if self.lower.len() == arcs {
            return Err(format!("more arcs than the {arcs} of line p"));
        }
        let upper = if capacity < 0 { UNLIMITED } else { capacity };
        if lower < 0 || lower > upper {
            return Err(format!("a lower bound of {lower} with a capacity of {capacity}"));
        }
        let capacity = if upper == UNLIMITED { UNLIMITED } else { upper - lower };
        self.problem.add_arc(ArcRow { from, to, capacity, cost }).map_err(|error| error.to_string())?;
        self.lower.push(lower);
        for (node, change) in [(from, -lower), (to, lower)] {
            let moved = self.moved[node.at()].checked_add(change);
            self.moved[node.at()] = moved.ok_or_else(|| format!("lower bounds at node {} overflow", node.0 + 1))?;
        }
        Ok(())
    }

    fn known(&self, number: i64) -> Result<NodeId, String> {
        let Some((nodes, _)) = self.announced else { return Err("line p has to come first".to_owned()) };
        let known = usize::try_from(number).ok().filter(|number| (1..=nodes).contains(number));
        known.map(|number| NodeId(number as u32 - 1)).ok_or_else(|| format!("node {number} is not within 1 to {nodes}"))
    }

    fn finish(mut self) -> Result<DimacsProblem, String> {
        let Some((_, arcs)) = self.announced else { return Err("the file ends without a line p".to_owned()) };
        if self.lower.len() < arcs {
            return Err(format!("the file ends after {} of {arcs} arcs", self.lower.len()));
        }
        for (node, moved) in (0_u32..).map(NodeId).zip(&self.moved) {
            let supply = self.problem.supplies()[node.at()].saturating_add(*moved);
            let named = |error: ProblemError| format!("node {}, lower bounds included: {error}", node.0 + 1);
            self.problem.set_supply(node, supply).map_err(named)?;
        }
        Ok(DimacsProblem { problem: self.problem, lower: self.lower })
    }
}

fn numbers<'a, const N: usize>(words: impl Iterator<Item = &'a str>, expected: &str) -> Result<[i64; N], String> {
    let number = |word: &str| {
        word.parse().map_err(|_| format!("\"{word}\" is no whole number of 64 bits; expected: {expected}"))
    };
    let numbers: Vec<i64> = words.map(number).collect::<Result<_, _>>()?;
    let given = numbers.len();
    numbers.try_into().map_err(|_| format!("{given} numbers; expected: {expected}"))
}

fn count(word: &str) -> Result<usize, String> {
    let count = word.parse::<u32>().ok().filter(|count| *count < u32::MAX - 1);
    count.map(|count| count as usize).ok_or_else(|| format!("\"{word}\" is no number below {}", u32::MAX - 1))
}

impl DimacsProblem {
    /// What an arc carries, its lower bound included.
    #[must_use]
    pub fn flow(&self, found: &MinCostFlow, arc: ArcId) -> i64 {
        found.flows[arc.at()] + self.lower[arc.at()]
    }

    /// What a flow costs, lower bounds included.
    #[must_use]
    pub fn cost(&self, found: &MinCostFlow) -> i128 {
        let fixed = self.problem.arcs().map(|(arc, row)| i128::from(row.cost) * i128::from(self.lower[arc.at()]));
        found.cost + fixed.sum::<i128>()
    }

    /// Writes a flow: its cost, and every arc that carries something.
    ///
    /// # Errors
    /// The writer's.
    pub fn write(&self, found: &MinCostFlow, mut to: impl Write) -> io::Result<()> {
        writeln!(to, "s {}", self.cost(found))?;
        for (arc, row) in self.problem.arcs() {
            let flow = self.flow(found, arc);
            if flow != 0 {
                writeln!(to, "f {} {} {flow}", row.from.0 + 1, row.to.0 + 1)?;
            }
        }
        Ok(())
    }
}
