"""Port counters to loads of links, bits a second. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from .graph import Graph
from .model import PortAt

# Switches read their counters at their own pace: a shorter time between two says nothing.
LEAST_S = 0.1


@dataclass(frozen=True)
class PortCount:
    """A port's counters; `counted` is the switch's own clock, seconds since the port came up."""

    port: int
    rx_bytes: int
    tx_bytes: int
    counted: float


class Counters:
    """The last counters of every port."""

    def __init__(self) -> None:
        self._last: dict[PortAt, PortCount] = {}
        # Received and sent, bits a second.
        self._rates: dict[PortAt, tuple[int, int]] = {}

    def take(self, dpid: int, counts: list[PortCount]) -> None:
        """Takes in a switch's counters, all of them. A counter that fell was set back, and waits for the next."""
        for count in counts:
            at = PortAt(dpid, count.port)
            last = self._last.get(at)
            if last is not None:
                span = count.counted - last.counted
                received, sent = count.rx_bytes - last.rx_bytes, count.tx_bytes - last.tx_bytes
                if span <= 0 or received < 0 or sent < 0:
                    self._rates.pop(at, None)
                elif span < LEAST_S:
                    continue
                else:
                    self._rates[at] = int(received * 8 / span), int(sent * 8 / span)
            self._last[at] = count

    def forget(self, dpid: int) -> None:
        """A switch that is away has no rates."""
        self._last = {at: count for at, count in self._last.items() if at.dpid != dpid}
        self._rates = {at: rate for at, rate in self._rates.items() if at.dpid != dpid}

    def loads(self, graph: Graph) -> dict[str, tuple[int, int]]:
        """From a to b and back, of all links of which an end was counted twice."""
        found = {}
        for name, link in graph.links.items():
            a = self._rates.get(link.a)
            b = self._rates.get(link.b) if isinstance(link.b, PortAt) else None
            if a is not None or b is not None:
                # What a switch sends is the load towards the other end.
                forth = a[1] if a is not None else b[0] if b is not None else 0
                back = b[1] if b is not None else a[0] if a is not None else 0
                found[name] = forth, back
        return found
