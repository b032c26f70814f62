"""The inventory under its names, and what of it changed: the items that `Feed.Topology` takes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hintd_client._generated.hintd.v1 import feed_pb2

from .inventory import Inventory
from .model import HostSeen, PortAt

# A link that nobody described: what most machines have had for long.
UNTOLD = 1_000_000_000


@dataclass(frozen=True)
class Names:
    """The naming that an operator gave: hosts by hardware and by IPv4 address, switches by datapath id."""

    by_mac: Mapping[str, str] = field(default_factory=dict)
    by_address: Mapping[str, str] = field(default_factory=dict)
    switches: Mapping[int, str] = field(default_factory=dict)

    def switch(self, dpid: int) -> str:
        """A switch's name: given, else `s` and its 16 hexadecimal digits."""
        return self.switches.get(dpid) or f"s{dpid:016x}"

    def host(self, host: HostSeen) -> str:
        """A host's name: given for its hardware address or an IPv4 address, else its first address, else its hardware
        address."""
        given = self.by_mac.get(host.mac)
        given = given or next((self.by_address[ip] for ip in host.addresses if ip in self.by_address), None)
        return given or (host.addresses[0] if host.addresses else host.mac)

    def cable(self, a: PortAt, b: PortAt) -> str:
        """A link's name: both ports, the lesser one first."""
        a, b = min(a, b), max(a, b)
        return f"{self.switch(a.dpid)}:{a.port}-{self.switch(b.dpid)}:{b.port}"

    def access(self, at: PortAt, host: str) -> str:
        """The name of a host's link."""
        return f"{self.switch(at.dpid)}:{at.port}-{host}"


@dataclass(frozen=True)
class SwitchAt:
    """A switch; `edge`: a host hangs on it, else it is taken for core."""

    dpid: int
    edge: bool
    up: bool


@dataclass(frozen=True)
class LinkAt:
    """A link. `b` is a port, or a host's hardware address."""

    a: PortAt
    b: PortAt | str
    names: tuple[str, str]
    bits_per_s: int
    up: bool


@dataclass(frozen=True)
class Graph:
    """The network in names; `hosts` has the hardware addresses by the links they hang on."""

    switches: Mapping[str, SwitchAt]
    hosts: Mapping[str, Mapping[str, str]]
    links: Mapping[str, LinkAt]

    def port(self, switch: str, link: str) -> PortAt | None:
        """The port of a switch at which a link ends."""
        at, found = self.switches.get(switch), self.links.get(link)
        if at is None or found is None:
            return None
        ends = [found.a] + ([found.b] if isinstance(found.b, PortAt) else [])
        return next((end for end in ends if end.dpid == at.dpid), None)

    def address(self, host: str) -> str | None:
        """The address that a host's packets carry: that of its first link that is up."""
        links = self.hosts.get(host)
        if not links:
            return None
        up = (mac for link, mac in sorted(links.items()) if self.links[link].up)
        return next(up, None) or links[min(links)]

    def live(self) -> dict[int, set[tuple[PortAt, PortAt]]]:
        """Ports of usable links between switches that are up, by switch, with the far end."""
        live: dict[int, set[tuple[PortAt, PortAt]]] = {at.dpid: set() for at in self.switches.values() if at.up}
        for link in self.links.values():
            if not link.up or not isinstance(link.b, PortAt) or link.a.dpid not in live or link.b.dpid not in live:
                continue
            live[link.a.dpid].add((link.a, link.b))
            live[link.b.dpid].add((link.b, link.a))
        return live

    def changes_since(self, before: Graph | None) -> list[feed_pb2.TopologyItem]:
        """What the daemon is to be told (without numbers), where it knows `before`: all of it if something is there
        that was not, or is another thing; else only what changed."""
        if before is None or not self._same_things(before):
            down = [name for name, switch in self.switches.items() if not switch.up]
            items = [feed_pb2.TopologyItem(full=self._full())]
            return items + [
                feed_pb2.TopologyItem(switch=feed_pb2.SwitchChange(name=name, up=False)) for name in down
            ]
        items = []
        for name, link in self.links.items():
            was = before.links[name]
            if (was.up, was.bits_per_s) != (link.up, link.bits_per_s):
                change = feed_pb2.LinkChange(id=name)
                if was.up != link.up:
                    change.up = link.up
                if was.bits_per_s != link.bits_per_s:
                    change.bits_per_s = link.bits_per_s
                items.append(feed_pb2.TopologyItem(link=change))
        for name, switch in self.switches.items():
            if before.switches[name].up != switch.up:
                items.append(feed_pb2.TopologyItem(switch=feed_pb2.SwitchChange(name=name, up=switch.up)))
        return items

    def _same_things(self, other: Graph) -> bool:
        def things(graph: Graph) -> object:
            switches = {name: (at.dpid, at.edge) for name, at in graph.switches.items()}
            return switches, graph.hosts, {name: (link.a, link.b, link.names) for name, link in graph.links.items()}

        return things(self) == things(other)

    def _full(self) -> feed_pb2.NetworkGraph:
        tier = {True: "edge", False: "core"}
        return feed_pb2.NetworkGraph(
            switches=[feed_pb2.NetworkSwitch(name=name, tier=tier[at.edge]) for name, at in self.switches.items()],
            hosts=[feed_pb2.NetworkHost(name=name) for name in self.hosts],
            links=[
                feed_pb2.NetworkLink(id=name, a=link.names[0], b=link.names[1], bits_per_s=link.bits_per_s, up=link.up)
                for name, link in self.links.items()
            ],
        )


def graph_of(inventory: Inventory, names: Names, link_bits: int, host_bits: int) -> tuple[Graph, list[str]]:
    """The network as the inventory has it, and names that two things would have: the first keeps them. `link_bits` and
    `host_bits` are bits a second to believe in place of what ports describe; 0: as described."""
    twice: list[str] = []
    switches: dict[str, SwitchAt] = {}
    for dpid, up in inventory.switches():
        name = names.switch(dpid)
        if name in switches:
            twice.append(f'switch "{name}"')
            continue
        switches[name] = SwitchAt(dpid, False, up)
    links: dict[str, LinkAt] = {}
    for cable in inventory.cables():
        ends = names.switch(cable.a.dpid), names.switch(cable.b.dpid)
        if all(end in switches for end in ends):
            bits = _capacity(link_bits, inventory, [cable.a, cable.b])
            links[names.cable(cable.a, cable.b)] = LinkAt(cable.a, cable.b, ends, bits, cable.up)
    hosts: dict[str, dict[str, str]] = {}
    for host in inventory.hosts():
        name, switch = names.host(host), names.switch(host.at.dpid)
        if name in switches:
            twice.append(f'host "{name}"')
            continue
        if switch not in switches:
            continue
        switches[switch] = SwitchAt(switches[switch].dpid, True, switches[switch].up)
        port = inventory.port_known(host.at)
        # A switch that is away describes nothing: its hosts' links stay, and the switch is down.
        up = port.up if port is not None else not inventory.connected(host.at.dpid)
        link_id = names.access(host.at, name)
        if link_id in links:
            twice.append(f'link "{link_id}"')
            continue
        links[link_id] = LinkAt(host.at, host.mac, (switch, name), _capacity(host_bits, inventory, [host.at]), up)
        hosts.setdefault(name, {})[link_id] = host.mac
    return Graph(switches, hosts, links), twice


def _capacity(configured: int, inventory: Inventory, ends: list[PortAt]) -> int:
    told = [port.bits_per_s for port in map(inventory.port_known, ends) if port is not None and port.bits_per_s > 0]
    return configured or min(told, default=UNTOLD)
