//! HDFS's replicas: where the blocks of a path lie.
//!
//! # The model
//! - A path names one dataset; jobs of equal path read its first blocks, whatever their order. A job without a path
//!   has a dataset of its own.
//! - HDFS's default rule, for a writer outside the cluster: the first replica on a node drawn from all, the second in
//!   another rack (drawn from all nodes outside the first's), the third in the second's rack on another node, further
//!   ones anywhere, never two of a block on one node. Where racks or nodes are too few for that, on as many different
//!   nodes as there are.
//! - Under advice replica i goes where the policy's i-th entry says, if that node has none of the block yet; else, and
//!   where it says `Default`, as above.
//!
//! # Invariants
//! - What is drawn for a block is a function of (seed, path or job, block): neither the order of calls nor what else
//!   was placed matters. So nothing is kept: a dataset's blocks are found again when they are asked for again.

use super::fabric::draw::draw;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{Bytes, NodeIdx, RackIdx};
use hintd_policy::PlaceError;
use hintd_policy::advise::{DataProblem, PlaceData, ReplicaAdvice};
use hintd_policy::dispatch::TaskInput;
use hintd_policy::plan::Plan;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// Whose blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dataset<'a> {
    /// All that read this path.
    Path(&'a str),
    /// One job's own, by its number in the trace.
    Job(u64),
}

/// Tells draws of advice from those of replicas.
const ADVICE_STREAM: u64 = u64::MAX;

/// A policy that advises where data goes, and what it reads.
#[derive(Clone, Copy)]
pub struct Advisor<'a> {
    /// The policy.
    pub policy: &'a dyn PlaceData,
    /// The cluster.
    pub snapshot: &'a Snapshot,
    /// The recurring job that will read the data, where known.
    pub reader: Option<&'a Arc<str>>,
    /// The plan in force.
    pub plan: Option<&'a Plan>,
    /// Racks that the policy chose for the reader's input.
    pub homes: &'a [RackIdx],
}

/// The rule by which replicas are placed.
#[derive(Debug, Clone)]
pub struct Replicas {
    seed: u64,
    replicas: u8,
    /// Nodes that keep blocks, those of one rack side by side, ascending in it.
    nodes: Vec<NodeIdx>,
    /// By rack: its part of `nodes`.
    racks: Vec<Range<usize>>,
    /// Rack by position in `nodes`.
    rack_at: Vec<RackIdx>,
}

impl Replicas {
    /// Placement on the cluster's usable nodes, or on all of them if none is usable.
    #[must_use]
    pub fn new(cluster: &Snapshot, replicas: u8, seed: u64) -> Self {
        let any = cluster.state.iter().any(|state| state.usable());
        let (mut nodes, mut racks, mut rack_at) = (Vec::new(), Vec::new(), Vec::new());
        for members in &cluster.statics.members {
            let first = nodes.len();
            nodes.extend(members.iter().filter(|node| !any || cluster.state[node.at()].usable()));
            rack_at.resize(nodes.len(), RackIdx::new(racks.len()));
            racks.push(first..nodes.len());
        }
        Self { seed, replicas, nodes, racks, rack_at }
    }

    /// Where the dataset's first blocks lie, `blocks` being how much of each is read. A block of which nothing is read
    /// needs no replica.
    ///
    /// # Errors
    /// The policy's, where it is asked and can't advise.
    pub fn place(
        &self,
        of: Dataset<'_>,
        blocks: impl IntoIterator<Item = Bytes>,
        advisor: Option<Advisor<'_>>,
    ) -> Result<Vec<TaskInput>, PlaceError> {
        let seed = match of {
            Dataset::Path(path) => path.as_bytes().chunks(8).fold(draw(self.seed, &[0]), |state, chunk| {
                let mut part = [0; 8];
                part[..chunk.len()].copy_from_slice(chunk);
                draw(state, &[u64::from_le_bytes(part), chunk.len() as u64])
            }),
            Dataset::Job(job) => draw(self.seed, &[1, job]),
        };
        let blocks: Vec<Bytes> = blocks.into_iter().collect();
        let ask = |advisor| self.ask(of, blocks.len() as u64, advisor, draw(seed, &[ADVICE_STREAM]));
        let advice = advisor.map(ask).transpose()?.unwrap_or_default();
        let input = |(block, bytes): (usize, Bytes)| {
            if bytes == Bytes::ZERO {
                return TaskInput { bytes, nodes: SmallVec::new() };
            }
            let advice = advice.get(block).map_or(&[][..], Vec::as_slice);
            TaskInput { bytes, nodes: self.block(seed, block as u64, advice) }
        };
        Ok(blocks.iter().copied().enumerate().map(input).collect())
    }

    fn ask(
        &self,
        of: Dataset<'_>,
        blocks: u64,
        advisor: Advisor<'_>,
        seed: u64,
    ) -> Result<Vec<Vec<ReplicaAdvice>>, PlaceError> {
        let path = match of {
            Dataset::Path(path) => path.into(),
            Dataset::Job(job) => format!("/jobs/{job}").into(),
        };
        let Advisor { snapshot, plan, .. } = advisor;
        let (reader, replication) = (advisor.reader.cloned(), self.replicas);
        let problem = DataProblem {
            snapshot,
            path,
            block: 0,
            reader,
            plan,
            homes: advisor.homes,
            now: snapshot.taken_at,
            writer: None,
            replication,
            seed,
        };
        advisor.policy.place_blocks(&problem, blocks)
    }

    /// Nodes of one block, ascending.
    fn block(&self, seed: u64, block: u64, advice: &[ReplicaAdvice]) -> SmallVec<[NodeIdx; 3]> {
        let mut taken: SmallVec<[usize; 3]> = SmallVec::new();
        for replica in 0..usize::from(self.replicas).min(self.nodes.len()) {
            let random = draw(seed, &[block, replica as u64]);
            let advised = advice.get(replica).and_then(|advice| match *advice {
                ReplicaAdvice::Default => None,
                ReplicaAdvice::Rack(rack) => pick(&[self.racks.get(rack.at())?.clone()], &taken, random),
                ReplicaAdvice::Node(node) => {
                    let at = self.nodes.iter().position(|&other| other == node)?;
                    (!taken.contains(&at)).then_some(at)
                }
            });
            let place = advised.or_else(|| self.by_default(&taken, random));
            taken.push(place.expect("there are no more replicas than nodes"));
        }
        let mut nodes: SmallVec<[NodeIdx; 3]> = taken.into_iter().map(|at| self.nodes[at]).collect();
        nodes.sort_unstable();
        nodes
    }

    /// The next replica by HDFS's own rule, given those before.
    fn by_default(&self, taken: &[usize], random: u64) -> Option<usize> {
        let rack = |at: usize| &self.racks[self.rack_at[at].at()];
        let all = 0..self.nodes.len();
        let wish = match *taken {
            [first] => pick(&[0..rack(first).start, rack(first).end..all.end], taken, random),
            // Two in one rack, by advice or for want of another: the third goes out of it.
            [first, second] if rack(first) == rack(second) => {
                pick(&[0..rack(first).start, rack(first).end..all.end], taken, random)
            }
            [_, second] => pick(&[rack(second).clone()], taken, random),
            _ => None,
        };
        wish.or_else(|| pick(&[all], taken, random))
    }
}

/// One of the positions in the ranges that are not taken, all alike probable.
fn pick(ranges: &[Range<usize>], taken: &[usize], random: u64) -> Option<usize> {
    let free = |range: &Range<usize>| range.len() - taken.iter().filter(|at| range.contains(at)).count();
    let count: usize = ranges.iter().map(free).sum();
    let mut left = ((u128::from(random) * count as u128) >> 64) as usize;
    for range in ranges {
        if left >= free(range) {
            left -= free(range);
            continue;
        }
        let mut at = range.start + left;
        let mut before: SmallVec<[usize; 3]> = taken.iter().copied().filter(|at| range.contains(at)).collect();
        before.sort_unstable();
        for taken in before {
            at += usize::from(taken <= at);
        }
        return Some(at);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::fabric::testing::snapshot;
    use super::*;
    use std::collections::BTreeSet;

    const MIB: Bytes = Bytes(1 << 20);

    fn nodes(replicas: &Replicas, of: Dataset<'_>, blocks: usize) -> Vec<Vec<usize>> {
        let placed = replicas.place(of, vec![MIB; blocks], None).unwrap();
        placed.into_iter().map(|input| input.nodes.iter().map(|node| node.at()).collect()).collect()
    }

    #[test]
    fn a_block_has_one_replica_in_a_rack_and_two_in_another_on_different_nodes() {
        let cluster = snapshot(5, 4);
        let (mut alone, mut pairs) = ([0_u32; 5], [0_u32; 5]);
        let mut by_node = [0_u32; 20];
        for block in nodes(&Replicas::new(&cluster, 3, 1), Dataset::Job(7), 30_000) {
            assert_eq!(block.iter().collect::<BTreeSet<_>>().len(), 3);
            block.iter().for_each(|&node| by_node[node] += 1);
            let racks = block.iter().map(|node| node / 4).collect::<Vec<_>>();
            let of = |rack: &usize| racks.iter().filter(|other| *other == rack).count();
            assert_eq!(racks.iter().map(of).collect::<BTreeSet<_>>(), BTreeSet::from([1, 2]));
            racks.iter().for_each(|rack| if of(rack) == 1 { alone[*rack] += 1 } else { pairs[*rack] += 1 });
        }
        // Each rack's share is drawn from 30,000: standard deviation 69, and 62 by node for about 4,500.
        assert!(alone.iter().all(|&count| count.abs_diff(6_000) < 350), "{alone:?}");
        assert!(pairs.iter().all(|&count| count.abs_diff(12_000) < 700), "{pairs:?}");
        assert!(by_node.iter().all(|&count| count.abs_diff(4_500) < 310), "{by_node:?}");
    }

    #[test]
    fn where_racks_or_nodes_are_few_replicas_lie_on_as_many_nodes_as_there_are() {
        for (racks, hosts, replicas, most) in [(1, 5, 3, 3), (1, 2, 3, 2), (2, 1, 3, 2), (3, 1, 3, 3), (2, 2, 9, 4)] {
            let cluster = snapshot(racks, hosts);
            for block in nodes(&Replicas::new(&cluster, replicas, 1), Dataset::Job(0), 100) {
                assert_eq!(block.len(), most, "{racks} racks of {hosts}");
                assert!(block.is_sorted_by(|a, b| a < b));
            }
        }
    }

    #[test]
    fn jobs_of_one_path_read_its_first_blocks_and_others_have_their_own() {
        let replicas = Replicas::new(&snapshot(5, 4), 3, 1);
        let whole = nodes(&replicas, Dataset::Path("/logs/2010-03-17"), 50);
        assert_eq!(nodes(&replicas, Dataset::Path("/logs/2010-03-17"), 20), whole[..20]);
        assert_ne!(nodes(&replicas, Dataset::Path("/logs/2010-03-18"), 50), whole);
        assert_ne!(nodes(&replicas, Dataset::Path("/logs/2010-03-17\0"), 50), whole);
        assert_ne!(nodes(&replicas, Dataset::Job(1), 50), nodes(&replicas, Dataset::Job(2), 50));
        let other = Replicas::new(&snapshot(5, 4), 3, 2);
        assert_ne!(nodes(&other, Dataset::Path("/logs/2010-03-17"), 50), whole, "the seed counts");
    }

    #[test]
    fn a_block_of_which_nothing_is_read_needs_no_replica() {
        let replicas = Replicas::new(&snapshot(2, 2), 3, 1);
        let placed = replicas.place(Dataset::Job(0), [MIB, Bytes::ZERO, MIB], None).unwrap();
        assert_eq!(placed.iter().map(|input| input.nodes.len()).collect::<Vec<_>>(), [3, 0, 3]);
        let same = replicas.place(Dataset::Job(0), [MIB; 3], None).unwrap();
        assert_eq!(placed[2], same[2], "a block lies where it lies, whatever is read of others");
    }

    /// First replica in rack 1, second on node 0, third as HDFS would.
    struct Fixed;

    impl PlaceData for Fixed {
        fn place_data(&self, problem: &DataProblem<'_>) -> Result<Vec<ReplicaAdvice>, PlaceError> {
            assert_eq!((&*problem.path, problem.replication), ("/a", 3));
            Ok(vec![ReplicaAdvice::Rack(RackIdx(1)), ReplicaAdvice::Node(NodeIdx(0)), ReplicaAdvice::Default])
        }
    }

    #[test]
    fn replicas_go_where_the_policy_advises() {
        let cluster = snapshot(3, 4);
        let advisor = Advisor { policy: &Fixed, snapshot: &cluster, reader: None, plan: None, homes: &[] };
        let replicas = Replicas::new(&cluster, 3, 1);
        let placed = replicas.place(Dataset::Path("/a"), vec![MIB; 200], Some(advisor)).unwrap();
        let mut first = BTreeSet::new();
        for input in placed {
            let [zero, third, in_rack] = input.nodes[..] else { panic!("{input:?}") };
            assert_eq!((zero.0, in_rack.0 / 4), (0, 1));
            assert_eq!(third.0 / 4, 0, "beside the second, as HDFS would: {input:?}");
            first.insert(in_rack);
        }
        assert_eq!(first.len(), 4, "any node of the advised rack");
    }
}
