"""What hintd is told: the network and the loads of its links, over streams that are opened again for ever.

Each stream keeps only the newest of what it has to tell, so that nothing queues up while hintd is away.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
from hintd_client import retry
from hintd_client._generated.hintd.v1 import feed_pb2, feed_pb2_grpc

from .graph import Graph

log = logging.getLogger("hintd_osken.feed")

SOURCE = "os-ken"
# After a refusal everything is told anew, but not at once: it may be refused again.
AFTER_REFUSAL_S = 5.0
# A network that does not change is named so often, or hintd would come to think that nobody looks after it.
REFRESH_S = 5.0


class Ended:
    """One life of a stream: set when it is over, so that its generator ends."""

    def __init__(self) -> None:
        self.over = False
        self.refused_at: float | None = None


class Telling(threading.Thread):
    """A stream of items, opened again whenever it ends."""

    def __init__(self, name: str, backoff: float) -> None:
        super().__init__(name=name, daemon=True)
        self._backoff = backoff
        self._changed = threading.Condition()
        self._stopping = False

    def stop(self) -> None:
        """Ends the stream."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def run(self) -> None:
        """Tells for ever."""
        pause, away = retry.FIRST_PAUSE, False
        while not self._stopping:
            life = Ended()
            try:
                for ack in self.open(self._numbered(life)):
                    if away:
                        log.info("%s: hintd listens again", self.name)
                    pause, away = retry.FIRST_PAUSE, False
                    for refused in ack.refused:
                        life.refused_at = time.monotonic()
                        log.warning("%s: item %d is refused: %s: %s", self.name, refused.number, refused.reason,
                                    refused.message)
                why = "the daemon ended it"
            except grpc.RpcError as error:
                why = f"{error.code().name}: {error.details()}"
            with self._changed:
                life.over = True
                self._changed.notify_all()
            if self._stopping:
                return
            # Once for each time that it is away: it may be for long.
            log.log(logging.DEBUG if away else logging.WARNING, "%s: the stream to hintd ended (%s); it is opened again",
                    self.name, why)
            away = True
            time.sleep(retry.jittered(pause))
            pause = min(pause * 2, self._backoff)

    def open(self, items: Iterator[Any]) -> Any:
        """Opens the stream."""
        raise NotImplementedError

    def items(self, life: Ended) -> Iterator[Any]:
        """Items of one life, without numbers."""
        raise NotImplementedError

    def _numbered(self, life: Ended) -> Iterator[Any]:
        number = 0
        for item in self.items(life):
            number += 1
            item.number = number
            yield item


class TopologyFeed(Telling):
    """Tells the network: whole at first and when something is there that was not, else what changed."""

    def __init__(self, channel: grpc.Channel, backoff: float) -> None:
        super().__init__("topology", backoff)
        self._stub = feed_pb2_grpc.FeedStub(channel)
        self._graph: Graph | None = None

    def tell(self, graph: Graph) -> None:
        """The network is this now."""
        with self._changed:
            self._graph = graph
            self._changed.notify_all()

    def open(self, items: Iterator[Any]) -> Any:
        return self._stub.Topology(items)

    def items(self, life: Ended) -> Iterator[Any]:
        yield feed_pb2.TopologyItem(hello=feed_pb2.FeedHello(source=SOURCE))
        told: Graph | None = None
        told_at = 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: life.over or self._stopping or self._graph is not told, timeout=1.0)
                if life.over or self._stopping:
                    return
                graph = self._graph
            if life.refused_at is not None and time.monotonic() >= life.refused_at + AFTER_REFUSAL_S:
                told, life.refused_at = None, None
            if graph is None:
                continue
            items = graph.changes_since(told) if graph is not told else []
            if not items and graph.links and time.monotonic() >= told_at + REFRESH_S:
                name, link = next(iter(graph.links.items()))
                items = [feed_pb2.TopologyItem(link=feed_pb2.LinkChange(id=name, up=link.up))]
            if items:
                yield from items
                told_at = time.monotonic()
            told = graph


class LoadFeed(Telling):
    """Tells loads of links, each time that counters were read."""

    def __init__(self, channel: grpc.Channel, backoff: float) -> None:
        super().__init__("link loads", backoff)
        self._stub = feed_pb2_grpc.FeedStub(channel)
        self._loads: dict[str, tuple[int, int]] | None = None

    def tell(self, loads: dict[str, tuple[int, int]]) -> None:
        """Loads are these now; what was not sent yet is dropped."""
        with self._changed:
            self._loads = loads
            self._changed.notify_all()

    def open(self, items: Iterator[Any]) -> Any:
        return self._stub.LinkStats(items)

    def items(self, life: Ended) -> Iterator[Any]:
        yield feed_pb2.LinkStatsItem(hello=feed_pb2.FeedHello(source=SOURCE))
        while True:
            with self._changed:
                self._changed.wait_for(lambda: life.over or self._stopping or self._loads is not None)
                if life.over or self._stopping:
                    return
                loads, self._loads = self._loads or {}, None
            for name, (forth, back) in loads.items():
                load = feed_pb2.LinkLoad(id=name, a_to_b_bits_per_s=forth, b_to_a_bits_per_s=back)
                yield feed_pb2.LinkStatsItem(load=load)
