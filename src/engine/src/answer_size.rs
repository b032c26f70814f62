//! How large an answer is: its bytes on the wire, by a count that is never too low.

use super::compared::CostLink;
use super::decision::{Blocked, ChainPath, Decision, ExclusionNamed, Hint, HintRoute};
use super::group_names::GroupNames;
use super::placer::Proposal;
use hintd_model::cluster::{Ask, NamedResource};

/// Tag and length of a text or a message, and a number beside it.
const FIELD: usize = 12;
/// Numbers of one message.
const NUMBERS: usize = 48;
/// A lease's id.
const LEASE: usize = 10;

impl Decision {
    /// Groups of its hints.
    #[must_use]
    pub fn group_names(&self) -> GroupNames<'_> {
        GroupNames::of(&self.hints)
    }

    /// Bytes that it takes on the wire, or some more; without leases that it has not been granted yet.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        let texts = |texts: &[String]| texts.iter().map(|text| text.len() + FIELD).sum::<usize>();
        let parts = self.baseline.iter().chain([&self.terms]).flat_map(|terms| terms.parts.keys());
        let terms: usize = parts.map(|name| name.len() + FIELD + NUMBERS).sum();
        let links =
            self.baseline.iter().chain([&self.terms]).flat_map(|terms| [&terms.links.busiest, &terms.links.worst]);
        let links: usize = links.flatten().map(link).sum();
        let groups: usize = self.group_names().names().map(|name| name.len() + FIELD).sum();
        let learnt = self.learnt.as_ref().map_or(0, |learnt| learnt.key.len() + 256);
        1_024
            + self.request.as_str().len()
            + self.policy.len()
            + self.hints.iter().map(hint).sum::<usize>()
            + self.routes.iter().map(route).sum::<usize>()
            + self.asks.iter().map(ask).sum::<usize>()
            + self.exclusions.iter().map(exclusion).sum::<usize>()
            + self.blocked.iter().map(blocked).sum::<usize>()
            + self.pending.iter().map(|of| of.group.len() + of.reason.len() + NUMBERS).sum::<usize>()
            + texts(&self.degraded)
            + terms
            + links
            + groups
            + learnt
    }
}

impl Proposal {
    /// Bytes that its answer will take on the wire, or some more.
    #[must_use]
    pub fn answer_bytes(&self) -> usize {
        let leases = usize::try_from(self.wanted()).unwrap_or(usize::MAX);
        self.draft.wire_bytes().saturating_add(leases.saturating_mul(LEASE))
    }
}

fn named<'t>(texts: impl Iterator<Item = &'t str>) -> usize {
    texts.map(|text| text.len() + FIELD).sum()
}

fn hint(hint: &Hint) -> usize {
    let hosts = hint.fallbacks.iter().chain([&hint.host]).map(|host| host.as_str());
    let racks = hint.racks.iter().map(|rack| rack.as_str());
    NUMBERS + hint.group.len() + FIELD + named(hosts) + named(racks) + hint.leases.len() * LEASE
}

fn link(link: &CostLink) -> usize {
    NUMBERS + link.from.len() + link.to.len() + 4 * FIELD + named(link.links.iter().map(|link| link.as_str()))
}

fn route(route: &HintRoute) -> usize {
    let ends = [route.src.as_str(), route.dst.as_str()].into_iter();
    let vertices = route.vertices.iter().chain(&route.cut).map(|name| &**name);
    let links = route.links.iter().map(|link| link.as_str());
    NUMBERS + named(ends) + named(vertices) + named(links) + route.chain.as_ref().map_or(0, chain)
}

fn chain(chain: &ChainPath) -> usize {
    let stops: usize =
        chain.stops.iter().map(|stop| stop.name.len() + stop.kind.len() + stop.at.len() + 4 * FIELD).sum();
    NUMBERS + chain.name.len() + stops + named(chain.left_out.iter().map(|name| &**name))
}

fn size(size: &NamedResource) -> usize {
    // Memory and cores stand there twice, as YARN's own clients write them.
    4 * NUMBERS + size.named.iter().map(|(name, _)| name.len() + NUMBERS).sum::<usize>()
}

fn ask(ask: &Ask) -> usize {
    NUMBERS + ask.resource_name.len() + ask.label.len() + 2 * FIELD + size(&ask.size)
}

fn exclusion(exclusion: &ExclusionNamed) -> usize {
    let examples = named(exclusion.examples.iter().map(|host| host.as_str()));
    NUMBERS + exclusion.group.len() + exclusion.reason.as_str().len() + 2 * FIELD + examples
}

fn blocked(blocked: &Blocked) -> usize {
    let lacks = |near: &super::decision::NearMiss| {
        near.lacks.iter().map(|lack| lack.constraint.len() + lack.resource.len() + NUMBERS).sum::<usize>()
    };
    let nearest: usize = blocked.nearest.iter().map(|near| near.host.as_str().len() + FIELD + lacks(near)).sum();
    NUMBERS + blocked.group.len() + blocked.constraint.len() + 2 * FIELD + nearest
}
