//! Which nodes are worth searching: all of a small cluster; of a large one those with the input, and whole
//! neighbourhoods of the racks that could hold the application.

use crate::load::load;
use crate::problem::PlaceProblem;
use hintd_model::units::NodeIdx;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Racks that a search may be centred on.
const CENTRES: usize = 8;

/// The nodes to search, ascending: every candidate if there are at most `limit`, else about so many. And
/// whether these are all.
pub(super) fn shortlist(problem: &PlaceProblem<'_>, limit: usize) -> (Vec<NodeIdx>, bool) {
    let candidates = candidates(problem);
    if candidates.len() <= limit {
        return (candidates, true);
    }
    let bytes = replica_bytes(problem);
    let areas = Areas::of(problem, &candidates, &bytes);
    let mut chosen = richest(&candidates, &bytes, limit / 4);
    let wanted = problem.containers().min(u64::from(u32::MAX)) as u32;
    let centres = areas.centres(problem, wanted);
    let share = (limit - chosen.len()) / centres.len().max(1);
    for centre in centres {
        areas.gather(problem, centre, wanted, share, &bytes, &mut chosen);
    }
    chosen.sort_unstable();
    chosen.dedup();
    (chosen, false)
}

/// Distinct candidates of all groups, ascending.
fn candidates(problem: &PlaceProblem<'_>) -> Vec<NodeIdx> {
    let Some(first) = problem.groups.first() else { return Vec::new() };
    let mut all = first.candidates.to_vec();
    for group in &problem.groups[1..] {
        if group.candidates != first.candidates {
            all.extend_from_slice(&group.candidates);
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Input bytes with a replica, by node.
fn replica_bytes(problem: &PlaceProblem<'_>) -> BTreeMap<NodeIdx, u64> {
    let mut bytes = BTreeMap::new();
    for group in &problem.groups {
        for (node, blocks) in &group.input.by_node {
            let here: u64 = blocks.iter().map(|&block| group.input.blocks[block as usize].bytes.0).sum();
            *bytes.entry(*node).or_default() += here;
        }
    }
    bytes
}

/// The candidates with most input.
fn richest(candidates: &[NodeIdx], bytes: &BTreeMap<NodeIdx, u64>, most: usize) -> Vec<NodeIdx> {
    let mut rich: Vec<(Reverse<u64>, NodeIdx)> = bytes.iter().map(|(&node, &bytes)| (Reverse(bytes), node)).collect();
    rich.sort_unstable();
    let nodes = rich.into_iter().map(|(_, node)| node).filter(|node| candidates.binary_search(node).is_ok());
    nodes.take(most).collect()
}

/// Candidates by attachment switch (or, hanging nowhere, alone).
struct Areas {
    areas: Vec<Area>,
}

struct Area {
    nodes: Vec<NodeIdx>,
    /// Containers that fit, up to all that are asked for.
    fits: u32,
    bytes: u64,
}

impl Areas {
    fn of(problem: &PlaceProblem<'_>, candidates: &[NodeIdx], bytes: &BTreeMap<NodeIdx, u64>) -> Self {
        let edges = &problem.snapshot.topology.edge;
        let size = &problem.groups.iter().max_by_key(|group| group.count).expect("a problem with candidates").size;
        let mut of_edge: Vec<u32> = vec![u32::MAX; problem.snapshot.topology.distances.edges()];
        let mut areas: Vec<Area> = Vec::new();
        for &node in candidates {
            let edge = edges.get(node.at()).copied().flatten();
            let known = edge.map(|edge| &mut of_edge[edge.at()]);
            let fresh = areas.len() as u32;
            let at = match known {
                Some(position) if *position != u32::MAX => *position,
                Some(position) => {
                    *position = fresh;
                    fresh
                }
                None => fresh,
            };
            if at == fresh {
                areas.push(Area { nodes: Vec::new(), fits: 0, bytes: 0 });
            }
            let area = &mut areas[at as usize];
            area.nodes.push(node);
            area.fits = area.fits.saturating_add(problem.snapshot.rules.how_many(size, &problem.room(node)));
        }
        if !bytes.is_empty() {
            for area in &mut areas {
                area.bytes = area.nodes.iter().filter_map(|node| bytes.get(node)).sum();
            }
        }
        Self { areas }
    }

    /// Areas to search around: best by room for the whole, input, and nearness to what runs already.
    fn centres(&self, problem: &PlaceProblem<'_>, wanted: u32) -> Vec<usize> {
        let most_bytes = self.areas.iter().map(|area| area.bytes).max().unwrap_or(0).max(1) as f64;
        let diameter = f64::from(problem.snapshot.topology.distances.diameter().max(1));
        let score = |area: &Area| {
            let room = f64::from(area.fits.min(wanted)) / f64::from(wanted.max(1));
            let input = area.bytes as f64 / most_bytes;
            let far = problem.anchors.iter().take(CENTRES).map(|anchor| {
                let hops = problem.snapshot.topology.core_hops(anchor.node, area.nodes[0]);
                hops.map_or(1.0, |hops| f64::from(hops) / diameter)
            });
            room + input - far.sum::<f64>() / problem.anchors.len().clamp(1, CENTRES) as f64
        };
        let mut order: Vec<(f64, usize)> = self.areas.iter().enumerate().map(|(at, area)| (score(area), at)).collect();
        let best_first = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if order.len() > CENTRES {
            order.select_nth_unstable_by(CENTRES, best_first);
            order.truncate(CENTRES);
        }
        order.sort_by(best_first);
        order.into_iter().map(|(_, at)| at).collect()
    }

    /// Adds nodes of the centre and the areas nearest to it until half as many containers again as wanted fit,
    /// at most `share` nodes.
    fn gather(
        &self,
        problem: &PlaceProblem<'_>,
        centre: usize,
        wanted: u32,
        share: usize,
        bytes: &BTreeMap<NodeIdx, u64>,
        chosen: &mut Vec<NodeIdx>,
    ) {
        let enough = wanted.saturating_add(wanted / 2);
        let (mut fits, mut left) = (0_u32, share);
        let mut near = vec![centre];
        if self.areas[centre].fits < enough {
            near = self.by_distance(problem, centre);
        }
        for at in near {
            if fits >= enough || left == 0 {
                break;
            }
            let area = &self.areas[at];
            let picked = best_nodes(problem, area, left, bytes);
            left -= picked.len();
            fits = fits.saturating_add(area.fits);
            chosen.extend(picked);
        }
    }

    fn by_distance(&self, problem: &PlaceProblem<'_>, centre: usize) -> Vec<usize> {
        let here = self.areas[centre].nodes[0];
        let key = |at: usize| {
            let there = self.areas[at].nodes[0];
            let hops = problem.snapshot.topology.core_hops(here, there).unwrap_or(u8::MAX);
            (at != centre, hops, Reverse(self.areas[at].fits), Reverse(self.areas[at].bytes), at)
        };
        let mut order: Vec<usize> = (0..self.areas.len()).collect();
        order.sort_by_cached_key(|&at| key(at));
        order
    }
}

/// Nodes of an area: those with input first, then the emptiest.
fn best_nodes(problem: &PlaceProblem<'_>, area: &Area, most: usize, bytes: &BTreeMap<NodeIdx, u64>) -> Vec<NodeIdx> {
    if area.nodes.len() <= most {
        return area.nodes.clone();
    }
    let key = |&node: &NodeIdx| {
        let used = load(problem.snapshot, node, &problem.room(node));
        (Reverse(bytes.get(&node).copied().unwrap_or(0)), (used * 1e6) as u32, node)
    };
    let mut nodes = area.nodes.clone();
    nodes.sort_by_cached_key(key);
    nodes.truncate(most);
    nodes
}
