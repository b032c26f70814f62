"""Tells hintd each second what the kernel counted on each cable of the small cluster: link_stats.py HOST:PORT PLAN. Needs grpcio."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path += [str(REPOSITORY / "deploy/mini-hadoop"), str(REPOSITORY / "clients/python/src")]
import grpc
import network
from hintd_client._generated.hintd.v1 import feed_pb2, feed_pb2_grpc

EVERY = 1.0


def loads(planned: dict) -> Iterator[feed_pb2.LinkStatsItem]:
    """An item a cable and second; of a cable `a` is the node or the rack, as in the network file."""
    yield feed_pb2.LinkStatsItem(number=1, hello=feed_pb2.FeedHello(source="mini-hadoop"))
    number, before, then = 1, network.counters(planned), time.monotonic()
    while True:
        time.sleep(EVERY)
        after, now = network.counters(planned), time.monotonic()
        for name, row in after.items():
            number += 1
            out, into = (max(int((row[way] - before[name][way]) * 8 / (now - then)), 0) for way in ("out", "in"))
            link = f"up-{name[1:]}" if name.startswith("/") else name
            yield feed_pb2.LinkStatsItem(number=number, load=feed_pb2.LinkLoad(id=link, a_to_b_bits_per_s=out, b_to_a_bits_per_s=into))
        before, then = after, now


def main(address: str, plan: Path) -> None:
    taken = False
    with grpc.insecure_channel(address) as channel:
        for ack in feed_pb2_grpc.FeedStub(channel).LinkStats(loads(json.loads(plan.read_text()))):
            for refused in ack.refused:
                sys.exit(f"refused: {refused.reason}: {refused.message}")
            if ack.through > 1 and not taken:
                taken = True
                print("taken", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
