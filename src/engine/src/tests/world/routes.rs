//! Routes of running flows: up, without loops, through no host but their ends, and what was told of them.

use super::state::World;
use hintd_model::network::host_paths;
use hintd_model::units::LinkIdx;
use std::collections::BTreeSet;
use std::sync::Arc;

impl World {
    pub(super) fn check_routes(&mut self) {
        let snapshot = Arc::clone(self.engine.current_snapshot());
        let settings = self.settings.routes.clone();
        self.engine.flows_mut().check((&snapshot, &settings));
        let (topology, waits) = (&snapshot.topology, self.engine.flows().waits());
        let Some(network) = topology.network.as_deref() else { return };
        for (pair, route) in self.engine.flows().routes().iter() {
            let [Some(from), Some(to)] = [pair.from, pair.to].map(|node| topology.vertex[node.at()]) else {
                assert!(waits || route.links.is_empty(), "{pair:?} has a route, and an end that hangs nowhere");
                continue;
            };
            let ends = [from, to];
            if route.links.is_empty() {
                let live = topology.paths().and_then(|paths| host_paths(network, paths, ends[0], ends[1]).next());
                assert!(waits || live.is_none(), "{pair:?} has no route, but there is {live:?}");
                continue;
            }
            let mut here = ends[0];
            let mut passed = BTreeSet::from([here]);
            for link in route.links.iter() {
                let known = network.link_at(LinkIdx(link.0 / 2));
                let (tail, head) = if link.0 % 2 == 0 { (known.a, known.b) } else { (known.b, known.a) };
                assert_eq!(tail, here);
                assert!(passed.insert(head), "{pair:?} loops");
                assert!(head == ends[1] || !network.vertex_at(head).is_host(), "{pair:?} passes a host");
                assert!(waits || network.is_usable(LinkIdx(link.0 / 2)), "{pair:?} uses a dead link");
                here = head;
            }
            assert_eq!(here, ends[1]);
        }
    }
}
