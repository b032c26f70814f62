//! Whose routes went over links, asked as they go down, and which paths these applications have now.

use super::pairs::is_whole;
use crate::routes::view::undirected;
use hintd_model::cluster::{NodePair, RunningFlows};
use hintd_model::network::{Network, bridges};
use hintd_model::units::{ApplicationId, DirectedLinkIdx, LinkIdx, LinkName};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// Applications named of what a link carried.
pub const APPLICATIONS_NAMED: usize = 8;

/// What a link, or several that went together, carried at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CarriedRoutes {
    /// Routes that went over it for certain: they are installed, or it was the only way between their ends. A route is of an
    /// ordered pair of hosts.
    pub routes: u64,
    /// Pairs of hosts that may have used it: the network chose among several paths by itself.
    pub uncertain: u64,
    /// Routes through middleboxes; whose they are is not kept.
    pub chained: u64,
    /// Applications of [`Self::routes`].
    pub applications_total: usize,
    /// Those with the most routes first, at most [`APPLICATIONS_NAMED`].
    pub applications: Vec<(ApplicationId, u64)>,
}

/// Routes of one application at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ApplicationPaths {
    /// With a path that carries traffic.
    pub whole: u64,
    /// Without one: there is none, or the pair still has the route that failed.
    pub cut: u64,
}

/// What each group of links carried, by flows and network of before they went; `None`: that network has no such link that carried
/// traffic. `installed`: somebody installs routes. Routes are looked at once, whatever the number of groups.
#[must_use]
pub fn carried_routes(
    network: &Network,
    flows: &RunningFlows,
    groups: &[Vec<LinkName>],
    installed: bool,
) -> Vec<Option<CarriedRoutes>> {
    let lost = Lost::new(network, groups);
    let mut found: Vec<Option<CarriedRoutes>> = lost.known.iter().map(|known| known.then(Default::default)).collect();
    if lost.groups_of.is_empty() {
        return found;
    }
    let mut certain: BTreeMap<NodePair, Vec<usize>> = BTreeMap::new();
    for (pair, route) in flows.routes.iter() {
        for (group, is_certain) in lost.groups(&route.links, installed && route.installed) {
            let Some(of) = &mut found[group] else { continue };
            if is_certain {
                of.routes += 1;
                certain.entry(*pair).or_default().push(group);
            } else {
                of.uncertain += 1;
            }
        }
    }
    for way in flows.chained.routes.iter().filter_map(|(_, route)| route.way.as_ref()) {
        for (group, _) in lost.groups(&way.links, true) {
            found[group].iter_mut().for_each(|of| of.chained += 1);
        }
    }
    name_applications(flows, &certain, &mut found);
    found
}

/// Links that are looked for.
struct Lost<'n> {
    network: &'n Network,
    /// By group: whether one of its links is known.
    known: Vec<bool>,
    groups_of: BTreeMap<LinkIdx, Vec<usize>>,
    bridges: OnceCell<BTreeSet<LinkIdx>>,
}

impl<'n> Lost<'n> {
    fn new(network: &'n Network, groups: &[Vec<LinkName>]) -> Self {
        let (mut known, mut groups_of) = (vec![false; groups.len()], BTreeMap::<_, Vec<usize>>::new());
        for (group, links) in groups.iter().enumerate() {
            let links = links.iter().filter_map(|link| network.link(link.as_str()));
            for link in links.filter(|&link| network.is_usable(link)) {
                known[group] = true;
                groups_of.entry(link).or_default().push(group);
            }
        }
        Self { network, known, groups_of, bridges: OnceCell::new() }
    }

    /// Groups with a link of the route, each once, and whether the route is certain to go over it.
    fn groups(&self, route: &[DirectedLinkIdx], certain: bool) -> BTreeMap<usize, bool> {
        let mut found: BTreeMap<usize, bool> = BTreeMap::new();
        for link in route.iter().map(|link| undirected(*link).0) {
            let Some(groups) = self.groups_of.get(&link) else { continue };
            let certain = certain || self.bridges.get_or_init(|| bridges(self.network)).contains(&link);
            for &group in groups {
                *found.entry(group).or_default() |= certain;
            }
        }
        found
    }
}

/// Who sends over these pairs.
fn name_applications(
    flows: &RunningFlows,
    certain: &BTreeMap<NodePair, Vec<usize>>,
    found: &mut [Option<CarriedRoutes>],
) {
    let mut senders: BTreeSet<(usize, ApplicationId, NodePair)> = BTreeSet::new();
    for job in flows.jobs.iter().filter(|_| !certain.is_empty()) {
        for flow in &job.traffic.flows {
            let groups = certain.get(&flow.pair).into_iter().flatten();
            senders.extend(groups.map(|&group| (group, job.attempt.application, flow.pair)));
        }
    }
    let mut routes: BTreeMap<(usize, ApplicationId), u64> = BTreeMap::new();
    for (group, application, _) in senders {
        *routes.entry((group, application)).or_default() += 1;
    }
    for ((group, application), routes) in routes {
        found[group].iter_mut().for_each(|of| of.applications.push((application, routes)));
    }
    for of in found.iter_mut().flatten() {
        of.applications.sort_by_key(|&(application, routes)| (std::cmp::Reverse(routes), application));
        of.applications_total = of.applications.len();
        of.applications.truncate(APPLICATIONS_NAMED);
    }
}

/// How many of their routes these applications have a path for; those without routes are left out.
#[must_use]
pub fn application_paths(
    network: &Network,
    flows: &RunningFlows,
    applications: &BTreeSet<ApplicationId>,
) -> BTreeMap<ApplicationId, ApplicationPaths> {
    let mut pairs: BTreeMap<ApplicationId, BTreeSet<NodePair>> = BTreeMap::new();
    for job in flows.jobs.iter().filter(|job| applications.contains(&job.attempt.application)) {
        let of = pairs.entry(job.attempt.application).or_default();
        of.extend(job.traffic.flows.iter().map(|flow| flow.pair));
    }
    let count = |pairs: BTreeSet<NodePair>| {
        let is_there = |pair| flows.routes.get(pair).is_some_and(|route| is_whole(network, &route.links));
        let whole = pairs.iter().filter(|pair| is_there(pair)).count();
        ApplicationPaths { whole: whole as u64, cut: (pairs.len() - whole) as u64 }
    };
    let counted = pairs.into_iter().map(|(application, pairs)| (application, count(pairs)));
    counted.filter(|(_, paths)| *paths != ApplicationPaths::default()).collect()
}
