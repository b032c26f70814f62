"""Entries for what has no route of its own: broadcasts along one tree, unicasts along shortest paths. Pure.

A bare OpenFlow network forwards nothing by itself. These entries carry ARP, answers, and pairs that are too small for a
route. They stand below routes, and are the same that hintd's adapter for Ryu installs.
"""

from __future__ import annotations

from collections import deque

from .graph import Graph
from .inventory import Inventory
from .model import BROADCAST, CONTROLLER, PortAt

# Ports by switch and destination address.
Base = dict[tuple[int, str], set[int]]
# Far from every destination: what can't reach it comes last.
FAR = 1 << 30

Live = dict[int, set[tuple[PortAt, PortAt]]]


def base(graph: Graph, inventory: Inventory, now: float) -> tuple[Base, dict[tuple[int, str], int]]:
    """Entries of a network as it is now, and how many switches each is from its destination: nearest first is their order
    of change, so that a packet never meets an entry that leads it back."""
    live = graph.live()
    # The controller learns from broadcasts where hosts are.
    tree: dict[int, set[int]] = {dpid: {CONTROLLER} for dpid in live}
    for at in inventory.open_ports(now):
        if at.dpid in tree:
            tree[at.dpid].add(at.port)
    for source, target in spanning_tree(live):
        tree[source.dpid].add(source.port)
        tree[target.dpid].add(target.port)
    rules: Base = {(dpid, BROADCAST): ports for dpid, ports in tree.items()}
    far: dict[tuple[int, str], int] = {}
    for host, links in graph.hosts.items():
        mac = graph.address(host)
        home = next((graph.links[link].a for link, own in sorted(links.items()) if own == mac), None)
        if mac is None or home is None:
            continue
        for dpid, (port, distance) in towards(live, home, mac).items():
            rules[(dpid, mac)] = {port}
            far[(dpid, mac)] = distance
    return rules, far


def towards(live: Live, at: PortAt, mac: str) -> dict[int, tuple[int, int]]:
    """By switch that reaches `at`: the port to take, and how many switches away it is. Of equally short ways each
    destination takes its own, so that destinations spread."""
    if at.dpid not in live:
        return {}
    distance = {at.dpid: 0}
    waiting = deque([at.dpid])
    while waiting:
        dpid = waiting.popleft()
        for _, far_end in live[dpid]:
            if far_end.dpid not in distance:
                distance[far_end.dpid] = distance[dpid] + 1
                waiting.append(far_end.dpid)
    turn = 0
    for byte in bytes.fromhex(mac.replace(":", "")):
        turn = (turn * 31 + byte) & 0xFFFFFFFFFFFFFFFF
    found = {at.dpid: (at.port, 0)}
    for dpid, hops in distance.items():
        nearer = sorted(here.port for here, there in live[dpid] if distance.get(there.dpid) == hops - 1)
        if hops and nearer:
            found[dpid] = (nearer[turn % len(nearer)], hops)
    return found


def spanning_tree(live: Live) -> list[tuple[PortAt, PortAt]]:
    """Links of a tree over every island, breadth first from its least switch."""
    seen: set[int] = set()
    tree = []
    for root in sorted(live):
        if root in seen:
            continue
        seen.add(root)
        waiting = deque([root])
        while waiting:
            for here, there in sorted(live[waiting.popleft()]):
                if there.dpid not in seen:
                    seen.add(there.dpid)
                    tree.append((here, there))
                    waiting.append(there.dpid)
    return tree
