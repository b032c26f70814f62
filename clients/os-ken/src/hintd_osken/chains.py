"""Entries of chained routes: traffic of a class that passes middleboxes, and may pass a switch twice. Pure.

A way is cut at its boxes into segments, none of which passes a switch twice. Up to the first box packets go untagged; each
later segment has a VLAN tag of its own, so that a switch tells where on its way a packet is. Boxes get packets without a tag,
and what comes back from a box is known by the port. Tags count from `vlan` + 1 and are taken off before the last host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hintd_client._generated.hintd.v1 import routes_pb2

from .graph import Graph
from .model import Action, Match, PortAt, match
from .table import Untranslatable, address

IPV4 = 0x0800
PROTOCOLS = {"tcp": 6, "udp": 17}
# OpenFlow 1.3: a tag is there; without it and with value 0, none is.
TAGGED = 0x1000
# Above plain routes: what comes back from a box, then all else of the class.
ABOVE_BACK, ABOVE_CLASS = 2, 1


@dataclass(frozen=True)
class TrafficClass:
    """How packets of a class are known: by IP protocol and the receiver's ports; empty: all IPv4 of the pair."""

    protocol: str = ""
    ports: tuple[int, ...] = ()

    def matches(self) -> list[dict[str, int | str]]:
        """One for each entry that it takes."""
        whole: dict[str, int | str] = {"eth_type": IPV4}
        if self.protocol:
            whole["ip_proto"] = PROTOCOLS[self.protocol]
        return [{**whole, f"{self.protocol}_dst": port} for port in self.ports] or [whole]


@dataclass(frozen=True)
class BoxPorts:
    """Ports of a box's switch: to the box, and from where packets come back; one port may be both."""

    switch: str
    to: int
    back: int


@dataclass(frozen=True)
class Chains:
    """What an operator says of classes and boxes, by name; `vlan` is the tag below the first that is used."""

    classes: Mapping[str, TrafficClass] = field(default_factory=dict)
    boxes: Mapping[str, BoxPorts] = field(default_factory=dict)
    vlan: int = 3000


@dataclass(frozen=True)
class Hop:
    """An entry of a chained route; `above` is added to the priority of routes."""

    dpid: int
    above: int
    match: Match
    actions: tuple[Action, ...]


def hops(route: routes_pb2.Route, graph: Graph, chains: Chains) -> list[Hop]:
    """Entries of a chained route, from its egress on. Raises `Untranslatable`."""
    name = getattr(route.pair, "class")
    known = chains.classes.get(name)
    if known is None:
        raise Untranslatable(f'how traffic of class "{name}" is known was not told ([classes])')
    ends: dict[str, int | str] = {"eth_src": address(route.pair.src, graph), "eth_dst": address(route.pair.dst, graph)}
    found: list[Hop] = []
    for part in known.matches():
        found += _drop(route, graph, {**ends, **part}) if not route.vertices else _way(route, graph, chains, {**ends, **part})
    return found


def _drop(route: routes_pb2.Route, graph: Graph, of: dict[str, int | str]) -> list[Hop]:
    """No way is left: the traffic must not flow, not by default forwarding either."""
    return [
        Hop(graph.links[link].a.dpid, ABOVE_CLASS, match(vlan_vid=0, **of), ())
        for link in sorted(graph.hosts.get(route.pair.src, {}))
    ]


def _way(route: routes_pb2.Route, graph: Graph, chains: Chains, of: dict[str, int | str]) -> list[Hop]:
    forth: list[Hop] = []
    segment = 0
    for place in range(1, len(route.vertices) - 1):
        name = route.vertices[place]
        switch = graph.switches.get(name)
        if switch is None:
            raise Untranslatable(f'switch "{name}" is not one of this controller\'s')
        if not switch.up:
            raise Untranslatable(f'switch "{name}" is not connected to its controller')
        at = graph.port(name, route.links[place])
        if at is None:
            raise Untranslatable(f'switch "{name}" has no port on link "{route.links[place]}"')
        last = place == len(route.vertices) - 2
        boxes = [_box(stop.box, name, chains) for stop in route.stops if stop.after == place]
        where, above, tagged = match(vlan_vid=_tag(chains, segment), **of), ABOVE_CLASS, segment > 0
        for box in boxes:
            actions: tuple[Action, ...] = (("pop_vlan",),) if tagged else ()
            forth.append(Hop(switch.dpid, above, where, (*actions, ("output", box.to))))
            where, above, tagged = match(in_port=box.back, vlan_vid=0, **of), ABOVE_BACK, False
            segment += 1
        forth.append(Hop(switch.dpid, above, where, (*_tagging(chains, segment, tagged, last), ("output", at.port))))
    return forth[::-1]


def _tagging(chains: Chains, segment: int, tagged: bool, last: bool) -> tuple[Action, ...]:
    if last:
        return (("pop_vlan",),) if tagged else ()
    return (("push_vlan",), ("set_vlan", chains.vlan + segment)) if segment and not tagged else ()


def _tag(chains: Chains, segment: int) -> int:
    return TAGGED | chains.vlan + segment if segment else 0


def _box(name: str, switch: str, chains: Chains) -> BoxPorts:
    box = chains.boxes.get(name)
    if box is None:
        raise Untranslatable(f'at which ports box "{name}" hangs was not told ([boxes])')
    if box.switch != switch:
        raise Untranslatable(f'box "{name}" hangs on switch "{switch}" for hintd and on "{box.switch}" here')
    return box


def closed_ports(chains: Chains, switches: Mapping[str, int]) -> frozenset[PortAt]:
    """Ports of boxes: no link and no host is behind them, and broadcasts would come back by them. `switches` has datapath
    ids by name."""
    return frozenset(
        PortAt(switches[box.switch], port)
        for box in chains.boxes.values()
        if box.switch in switches
        for port in (box.to, box.back)
    )
