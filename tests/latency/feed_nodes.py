"""Tells hintd of the nodes of a planned network, and that they are there, each second: feed_nodes.py HOST:PORT PLAN. Needs grpcio."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY / "clients/python/src"))
import grpc
from hintd_client._generated.hadoop.yarn import yarn_protos_pb2
from hintd_client._generated.hintd.v1 import feed_pb2, feed_pb2_grpc

EVERY = 1.0
MEMORY_MB, CORES = 8192, 8


def items(nodes: dict[str, dict]) -> Iterator[feed_pb2.HeartbeatItem]:
    def item(**what: object) -> feed_pb2.HeartbeatItem:
        nonlocal number
        number += 1
        return feed_pb2.HeartbeatItem(number=number, **what)  # type: ignore[arg-type]

    number = 0
    yield item(hello=feed_pb2.FeedHello(source="namespaces", used_means=feed_pb2.USED_MEANS_ALLOCATED))
    total, used = (yarn_protos_pb2.ResourceProto(memory=memory, virtual_cores=cores) for memory, cores in ((MEMORY_MB, CORES), (0, 0)))
    for name, node in nodes.items():
        yield item(register=feed_pb2.RegisterNode(host=name, port=45454, rack=node["rack"], total=total))
    beat = 0
    while True:
        beat += 1
        for name in nodes:
            yield item(heartbeat=feed_pb2.NodeHeartbeat(host=name, response_id=beat, used=used))
        time.sleep(EVERY)


def main(address: str, plan: Path) -> None:
    with grpc.insecure_channel(address) as channel:
        for ack in feed_pb2_grpc.FeedStub(channel).Heartbeats(items(json.loads(plan.read_text())["nodes"])):
            for refused in ack.refused:
                sys.exit(f"refused: {refused.reason}: {refused.message}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
