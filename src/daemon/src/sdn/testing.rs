//! A small leaf-spine network for this room's tests: leaves 1 and 2, spines 17 and 18, a host on each leaf.

use super::graph::{Capacities, Graph};
use super::inventory::{Inventory, Poll, Settings};
use super::model::{Dpid, HostSeen, Mac, PortAt, PortSeen};
use super::names::Names;
use std::time::Duration;

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) const fn at(switch: u64, port: u32) -> PortAt {
    PortAt { switch: Dpid(switch), port }
}

pub(super) const fn mac(last: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, last])
}

/// Everything up. Leaf ports 1 and 2 lead to the spines, 3 to its host, 4 to nobody; host `n` hangs on leaf `n`.
pub(super) fn poll() -> Poll {
    let mut poll = Poll::default();
    for leaf in [1, 2] {
        for (port, spine) in [(1, 17), (2, 18)] {
            let (a, b) = (at(leaf, port), at(spine, leaf as u32));
            poll.links.extend([(a, b), (b, a)]);
        }
        poll.hosts.push(HostSeen {
            mac: mac(leaf as u8),
            addresses: vec![[10, 0, 0, leaf as u8].into()],
            at: at(leaf, 3),
        });
    }
    for switch in [1, 2, 17, 18] {
        poll.switches.insert(Dpid(switch));
        let ports =
            (1..=if switch < 17 { 4 } else { 2 }).map(|port| PortSeen { port, up: true, kbit_per_s: 10_000_000 });
        poll.ports.insert(Dpid(switch), ports.collect());
    }
    poll
}

pub(super) fn inventory() -> Inventory {
    let mut inventory = Inventory::new(Settings { debounce: ms(5), settle: ms(3_000) });
    inventory.poll(&poll(), ms(0), ms(1)).unwrap();
    inventory
}

pub(super) fn graph(inventory: &Inventory) -> Graph {
    Graph::new(inventory, &Names::default(), Capacities::default()).0
}
