"""Streams to a hintd that ends them, refuses, and comes back: a gRPC server of the test."""

from __future__ import annotations

import queue
import unittest
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from hintd_client._generated.hintd.v1 import feed_pb2, feed_pb2_grpc, routes_pb2, routes_pb2_grpc
from hintd_osken.feed import LoadFeed, TopologyFeed
from hintd_osken.model import PortAt, PortSeen
from hintd_osken.watch import Watch

from .small import graph, inventory
from .test_install import BY_SPINE1, World

# Far above what anything here takes.
PATIENCE_S = 20


class Daemon(feed_pb2_grpc.FeedServicer, routes_pb2_grpc.RoutesServicer):
    """Keeps what it is told; ends a topology stream after so many items."""

    def __init__(self) -> None:
        self.items: queue.Queue[Any] = queue.Queue(100)
        self.loads: queue.Queue[Any] = queue.Queue(100)
        self.watches: queue.Queue[Any] = queue.Queue(100)
        self.acknowledged: queue.Queue[Any] = queue.Queue(100)
        self.end_after = 1000

    def Topology(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        for number, item in enumerate(requests, start=1):
            self.items.put(item)
            yield feed_pb2.FeedAck(instance_id="a", through=item.number)
            if number >= self.end_after:
                return

    def LinkStats(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        for item in requests:
            self.loads.put(item)
            yield feed_pb2.FeedAck(instance_id="a", through=item.number)

    def Watch(self, request: Any, context: Any) -> Iterator[Any]:
        self.watches.put(request)
        yield routes_pb2.RouteUpdate(number=1, snapshot=True, instance_id="a", phase="ROUTE_PHASE_INITIAL", rules=BY_SPINE1)
        ended: queue.Queue[None] = queue.Queue()
        context.add_callback(lambda: ended.put(None))
        ended.get(timeout=PATIENCE_S)

    def Acknowledge(self, request: Any, context: Any) -> Any:
        self.acknowledged.put(request)
        return routes_pb2.AcknowledgeResponse()


class StreamTest(unittest.TestCase):
    def setUp(self) -> None:
        self.daemon = Daemon()
        self.server = grpc.server(ThreadPoolExecutor(8))
        feed_pb2_grpc.add_FeedServicer_to_server(self.daemon, self.server)
        routes_pb2_grpc.add_RoutesServicer_to_server(self.daemon, self.server)
        port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")

    def tearDown(self) -> None:
        self.channel.close()
        self.server.stop(None).wait()

    def told(self) -> str:
        item = self.daemon.items.get(timeout=PATIENCE_S)
        return f"{item.number} {item.WhichOneof('item')}"

    def test_a_stream_that_ends_is_opened_again_and_told_everything(self) -> None:
        self.daemon.end_after = 3
        feed, found = TopologyFeed(self.channel, backoff=0.1), inventory()
        feed.tell(graph(found))
        feed.start()
        self.assertEqual([self.told(), self.told()], ["1 hello", "2 full"])
        found.port(PortAt(1, 1), PortSeen(1, False, 0), 20.0)
        feed.tell(graph(found))
        self.assertEqual(self.told(), "3 link")
        self.assertEqual([self.told(), self.told()], ["1 hello", "2 full"])
        feed.stop()
        feed.join(PATIENCE_S)
        self.assertFalse(feed.is_alive())

    def test_only_the_newest_loads_are_told(self) -> None:
        feed = LoadFeed(self.channel, backoff=0.1)
        for rate in range(100):
            feed.tell({"a": (rate, 2 * rate)})
        feed.start()
        self.assertEqual(self.daemon.loads.get(timeout=PATIENCE_S).hello.source, "os-ken")
        load = self.daemon.loads.get(timeout=PATIENCE_S).load
        self.assertEqual((load.id, load.a_to_b_bits_per_s, load.b_to_a_bits_per_s), ("a", 99, 198))
        feed.stop()
        feed.join(PATIENCE_S)

    def test_updates_are_acknowledged_and_a_new_watch_shows_the_same_nonce(self) -> None:
        world = World()
        watch = Watch(self.channel, "os-ken", b"0123456789abcdef", world.installer, 0.1)
        watch.start()
        for _ in range(2):
            request = self.daemon.watches.get(timeout=PATIENCE_S)
            self.assertEqual((request.watcher, request.installs, request.nonce), ("os-ken", True, b"0123456789abcdef"))
            # Updates go before all else, but the view may be looked at first.
            while self.daemon.acknowledged.empty():
                world.installer.suspect(1)
                world.installer.turn()
            done = self.daemon.acknowledged.get(timeout=PATIENCE_S)
            self.assertEqual((done.number, len(done.refused), done.nonce), (1, 0, b"0123456789abcdef"))
            watch.anew()
        self.assertEqual(world.switches.routes(), {2: 3, 17: 2, 1: 1})
        watch.stop()
        watch.anew()
        watch.join(PATIENCE_S)
