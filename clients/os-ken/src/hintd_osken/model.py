"""What switches, ports, hosts and flow entries are to this application. Pure: no clock, socket or file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# A field of a match and its value, sorted by name: ("eth_dst", "02:00:00:00:00:01"), ("vlan_vid", 0x1064).
Match = tuple[tuple[str, int | str], ...]
# ("output", 3), ("push_vlan",), ("set_vlan", 100), ("pop_vlan",)
Action = tuple[str | int, ...]

BROADCAST = "ff:ff:ff:ff:ff:ff"
# OpenFlow 1.3: the reserved port of the controller.
CONTROLLER = 0xFFFFFFFD
# Ports above are reserved ones: LOCAL, CONTROLLER, ...
LAST_PORT = 0xFFFFFF00
# The lowest 8 bits of a cookie say what an entry is for.
COOKIE_MASK = 0xFFFFFFFFFFFFFF00


class PortAt(NamedTuple):
    """A port of a switch."""

    dpid: int
    port: int


@dataclass(frozen=True)
class PortSeen:
    """A port as its switch describes it; `bits_per_s` is 0 where it does not say."""

    port: int
    up: bool
    bits_per_s: int
    mac: str = "00:00:00:00:00:00"


@dataclass(frozen=True)
class HostSeen:
    """A host by what its packets say; the last address heard comes last."""

    mac: str
    addresses: tuple[str, ...]
    at: PortAt


@dataclass(frozen=True)
class Cable:
    """A link between two switches that was seen in both directions; `a` is the lesser port."""

    a: PortAt
    b: PortAt
    up: bool


@dataclass(frozen=True)
class Rule:
    """A flow entry of table 0."""

    cookie: int
    priority: int
    match: Match
    actions: tuple[Action, ...]

    @property
    def key(self) -> tuple[int, Match]:
        """What tells it from other entries of its switch."""
        return self.priority, self.match


def match(**fields: int | str) -> Match:
    """A match on these fields."""
    return tuple(sorted(fields.items()))


def outputs(ports: set[int]) -> tuple[Action, ...]:
    """Actions that send to these ports, in their order."""
    return tuple(("output", port) for port in sorted(ports))
