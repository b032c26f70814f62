"""A small network: two leaves, two spines, a host on each leaf, as its switches would tell it."""

from __future__ import annotations

from hintd_osken.graph import Graph, Names, graph_of
from hintd_osken.inventory import Inventory, Settings
from hintd_osken.model import PortAt, PortSeen

LEAVES, SPINES = (1, 2), (17, 18)
NAMES = Names(
    by_mac={"02:00:00:00:00:01": "node-1", "02:00:00:00:00:02": "node-2"},
    switches={1: "leaf1", 2: "leaf2", 17: "spine1", 18: "spine2"},
)
# Each leaf has spines at ports 1 and 2 and a host at 3; each spine has leaves at 1 and 2.
CABLES = [(PortAt(leaf, spine - 16), PortAt(spine, leaf)) for leaf in LEAVES for spine in SPINES]


def ports(dpid: int, down: tuple[int, ...] = ()) -> list[PortSeen]:
    numbers = (1, 2, 3) if dpid in LEAVES else (1, 2)
    return [PortSeen(number, number not in down, 10**10) for number in numbers]


def inventory(hosts: bool = True) -> Inventory:
    """All up and heard at second 0; hosts at second 10."""
    found = Inventory(Settings())
    for dpid in LEAVES + SPINES:
        found.switch_up(dpid, ports(dpid), 0.0)
    for a, b in CABLES:
        found.probe_heard(a, b)
        found.probe_heard(b, a)
    if hosts:
        found.packet("02:00:00:00:00:01", "10.9.0.1", PortAt(1, 3), 10.0)
        found.packet("02:00:00:00:00:02", "10.9.0.2", PortAt(2, 3), 10.0)
    return found


def graph(found: Inventory) -> Graph:
    return graph_of(found, NAMES, 0, 0)[0]
