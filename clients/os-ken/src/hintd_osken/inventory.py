"""What is known of the network: the last good state, from switches' words and from probes.

- What was seen once stays known: a link or switch that is gone is down, not forgotten, so that jobs on it get new routes
  and old ones when it returns. A port that gets another peer loses its old link.
- A link carries while both directions do. It is down at once when a port of it is, and when `probes_lost` probes in a row
  were sent and not heard; probes count only while both switches are connected.
- A switch without a connection is down after `debounce`. Where all leave at once it is taken for our own trouble, and for
  `settle` after it nothing is taken down for not being there yet.

Pure: `now` is an argument, seconds of any clock that does not go back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .model import Cable, HostSeen, PortAt, PortSeen


@dataclass(frozen=True)
class Settings:
    """Seconds, and counts."""

    debounce: float = 0.1
    settle: float = 3.0
    probes_lost: int = 5
    hosts_most: int = 10_000
    # Ports of middleboxes: no probes, no hosts, no broadcasts.
    closed: frozenset[PortAt] = frozenset()


@dataclass
class _Switch:
    connected: bool
    up: bool
    leaving: float | None = None


@dataclass
class Port:
    """A port; `since` is when it was first seen up without having been down since."""

    up: bool
    bits_per_s: int
    mac: str
    since: float


@dataclass
class _Direction:
    alive: bool
    missed: int = 0


class Inventory:
    """The last good state."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._switches: dict[int, _Switch] = {}
        self._ports: dict[PortAt, Port] = {}
        self._directions: dict[tuple[PortAt, PortAt], _Direction] = {}
        self._hosts: dict[str, HostSeen] = {}
        self._lenient_until = float("-inf")
        self.hosts_refused = 0

    # --- what happens ----------------------------------------------------------------------------------------------

    def switch_up(self, dpid: int, ports: list[PortSeen], now: float) -> None:
        """A switch connected, with these ports and no others."""
        if not any(switch.connected for switch in self._switches.values()):
            self._lenient_until = now + self._settings.settle
        self._switches[dpid] = _Switch(connected=True, up=True)
        for seen in ports:
            self.port(PortAt(dpid, seen.port), seen, now)
        named = {seen.port for seen in ports}
        for at in [at for at in self._ports if at.dpid == dpid and at.port not in named]:
            self.port_removed(at)
        for (source, target), direction in self._directions.items():
            if source.dpid == dpid and source.port not in named or target.dpid == dpid and target.port not in named:
                direction.alive = False

    def switch_gone(self, dpid: int, now: float) -> None:
        """A switch's connection ended."""
        switch = self._switches.get(dpid)
        if switch is None:
            return
        switch.connected = False
        if switch.up and switch.leaving is None:
            switch.leaving = now

    def port(self, at: PortAt, seen: PortSeen, now: float) -> None:
        """A port is there, or changed."""
        known = self._ports.get(at)
        since = known.since if known is not None and known.up and seen.up else now
        self._ports[at] = Port(seen.up, seen.bits_per_s, seen.mac, since)
        if not seen.up:
            self._cut(at)

    def port_removed(self, at: PortAt) -> None:
        """A port is no more."""
        self._ports.pop(at, None)
        self._cut(at)

    def probes_sent(self, ports: list[PortAt]) -> bool:
        """A probe left each of these ports; one that is not heard in time counts against the link behind it. Whether a link
        went by it."""
        left, cut = set(ports), False
        for (source, target), direction in self._directions.items():
            if source in left and direction.alive and self.connected(target.dpid):
                direction.missed += 1
                direction.alive = direction.missed <= self._settings.probes_lost
                cut |= not direction.alive
        return cut

    def probe_heard(self, source: PortAt, target: PortAt) -> bool:
        """A probe that left `source` came in at `target`; whether that is new."""
        if source.dpid == target.dpid or target in self._settings.closed or not self._up(source) or not self._up(target):
            return False
        known = self._directions.get((source, target))
        if known is None:
            same = {(source, target), (target, source)}
            ends = {source, target}
            for old in [old for old in self._directions if old not in same and ends.intersection(old)]:
                del self._directions[old]
        self._directions[(source, target)] = _Direction(alive=True)
        return known is None or not known.alive

    def packet(self, mac: str, address: str | None, at: PortAt, now: float) -> bool:
        """A packet of a host came in; whether that is new. Ports of links, and ports so new that a link may be found there,
        teach nothing."""
        if int(mac[1], 16) & 1 or mac == "00:00:00:00:00:00":
            return False  # a group's address sends nothing
        port = self._ports.get(at)
        if port is None or not port.up or now < port.since + self._settings.settle:
            return False
        if at in self._settings.closed or at in self.link_ports():
            return False
        known = self._hosts.get(mac)
        if known is None and len(self._hosts) >= self._settings.hosts_most:
            self.hosts_refused += 1
            return False
        addresses = known.addresses if known is not None else ()
        if address is not None and address not in addresses:
            addresses = (*addresses, address)[-8:]
        self._hosts[mac] = HostSeen(mac, addresses, at)
        return self._hosts[mac] != known

    def tick(self, now: float) -> None:
        """Takes down switches that have been gone for long enough."""
        if len(self._switches) > 1 and not any(switch.connected for switch in self._switches.values()):
            return
        for switch in self._switches.values():
            if switch.leaving is not None and now >= max(switch.leaving + self._settings.debounce, self._lenient_until):
                switch.up, switch.leaving = False, None

    def due(self, now: float) -> float | None:
        """Seconds until `tick`, or a port that settles, changes something; none: nothing is waited for."""
        waits = [
            max(switch.leaving + self._settings.debounce, self._lenient_until)
            for switch in self._switches.values()
            if switch.leaving is not None
        ]
        waits += [port.since + self._settings.settle for port in self._ports.values() if port.up]
        later = [at - now for at in waits if at > now]
        return min(later, default=None)

    # --- what is known ---------------------------------------------------------------------------------------------

    def connected(self, dpid: int) -> bool:
        """Whether a switch has a connection."""
        switch = self._switches.get(dpid)
        return switch is not None and switch.connected

    def switches(self) -> Iterator[tuple[int, bool]]:
        """Switches ever seen, and whether they are up."""
        return ((dpid, switch.up) for dpid, switch in sorted(self._switches.items()))

    def cables(self) -> Iterator[Cable]:
        """Links between switches, seen in both directions at some time."""
        for (source, target), there in sorted(self._directions.items(), key=lambda item: item[0]):
            back = self._directions.get((target, source))
            if source < target and back is not None:
                yield Cable(source, target, there.alive and back.alive)

    def link_ports(self) -> set[PortAt]:
        """Ports that a link was seen at."""
        return {end for direction in self._directions for end in direction}

    def hosts(self) -> Iterator[HostSeen]:
        """Hosts, at ports that no link ends at, by hardware address."""
        ends = self.link_ports()
        return (host for _, host in sorted(self._hosts.items()) if host.at not in ends)

    def port_known(self, at: PortAt) -> Port | None:
        """A port, if its switch described it."""
        return self._ports.get(at)

    def up_ports(self, dpid: int) -> list[tuple[PortAt, Port]]:
        """Ports of a switch that are up and may have a link."""
        closed = self._settings.closed
        return [(at, port) for at, port in self._ports.items() if at.dpid == dpid and port.up and at not in closed]

    def open_ports(self, now: float) -> set[PortAt]:
        """Ports of hosts or of nobody yet: up for long enough that a link behind them would have been found."""
        settle = self._settings.settle
        found = {at for at, port in self._ports.items() if port.up and now >= port.since + settle}
        found.update(host.at for host in self._hosts.values())
        return found - self.link_ports() - self._settings.closed

    # --- kept over restarts ----------------------------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """What a later life needs to know, as JSON has it."""
        return {
            "switches": sorted(self._switches),
            "links": [[*source, *target] for source, target in sorted(self._directions)],
            "hosts": [[host.mac, list(host.addresses), *host.at] for host in self.hosts()],
        }

    def from_state(self, state: dict[str, Any], now: float) -> None:
        """Takes in what an earlier life knew. Raises ValueError where it is not that, and changes nothing."""
        try:
            switches = [int(dpid) for dpid in state["switches"]]
            links = [(PortAt(int(a), int(p)), PortAt(int(b), int(q))) for a, p, b, q in state["links"]]
            hosts = [HostSeen(str(mac), tuple(map(str, ips)), PortAt(int(d), int(p))) for mac, ips, d, p in state["hosts"]]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a state of this program: {error!r}") from error
        self._switches = {dpid: _Switch(connected=False, up=True, leaving=now) for dpid in switches}
        self._directions = {link: _Direction(alive=True) for link in links}
        self._hosts = {host.mac: replace(host) for host in hosts[: self._settings.hosts_most]}
        self._lenient_until = now + self._settings.settle

    def _up(self, at: PortAt) -> bool:
        port = self._ports.get(at)
        return port is not None and port.up

    def _cut(self, at: PortAt) -> None:
        for ends, direction in self._directions.items():
            if at in ends:
                direction.alive = False
