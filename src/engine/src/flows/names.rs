//! Routes by the names of their links: through another network, or a restart.

use super::Flows;
use super::choose::RoutingContext;
use super::pairs::Links;
use hintd_model::cluster::NodePair;
use hintd_model::network::maxmin::directions;
use hintd_model::units::LinkName;

/// The directed links of these names, from the sender on. `None`: the network does not have them in a row.
pub(super) fn links(ways: &RoutingContext<'_>, pair: NodePair, names: &[LinkName]) -> Option<Links> {
    let mut here = ways.snapshot.topology.vertex.get(pair.from.at()).copied().flatten()?;
    let mut links = Vec::with_capacity(names.len());
    for name in names {
        let index = ways.network.link(name.as_str())?;
        let link = ways.network.link_at(index);
        if link.a != here && link.b != here {
            return None;
        }
        links.push(directions(index)[usize::from(link.a != here)]);
        here = link.other(here);
    }
    Some(links.into())
}

impl Flows {
    /// A route that a pair had before a restart: taken up as soon as the network is known.
    pub(crate) fn had(&mut self, pair: NodePair, links: Vec<LinkName>) {
        if self.pairs.all.contains_key(&pair) && !links.is_empty() {
            self.remembered.insert(pair, links);
        }
    }
}
