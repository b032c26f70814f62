"""A cluster's nodes and one application, over hintd's gRPC interface; ends when its standard input does.

Usage: client.py STUBS ADDRESS HOST...
Prints one line of JSON for each step: {"registered": n}, then {"hosts": [...]}.
"""

import json
import queue
import sys
import threading
import time

sys.path.insert(0, sys.argv[1])

import grpc
from hadoop.yarn import yarn_protos_pb2 as yarn
from hintd.v1 import feed_pb2, feed_pb2_grpc, placement_pb2, placement_pb2_grpc

HOSTS = sys.argv[3:]
MEMORY = 8192


def resource(memory):
    return yarn.ResourceProto(memory=memory, virtual_cores=1 if memory < MEMORY else 8)


def items(out):
    """Hello, registrations, then a heartbeat of every node each second."""
    number = 0

    def item(**what):
        nonlocal number
        number += 1
        return feed_pb2.HeartbeatItem(number=number, **what)

    yield item(hello=feed_pb2.FeedHello(source="test", used_means=feed_pb2.USED_MEANS_ALLOCATED))
    for host in HOSTS:
        rack = f"/rack{(HOSTS.index(host)) // 2 + 1}"
        yield item(register=feed_pb2.RegisterNode(host=host, port=45454, rack=rack, total=resource(MEMORY)))
    beat = 0
    while out.empty():
        beat += 1
        for host in HOSTS:
            yield item(heartbeat=feed_pb2.NodeHeartbeat(host=host, response_id=beat, used=yarn.ResourceProto(memory=0)))
        time.sleep(1)


def feed(channel, out):
    for ack in feed_pb2_grpc.FeedStub(channel).Heartbeats(items(out)):
        for refused in ack.refused:
            print(f"refused: {refused}", file=sys.stderr, flush=True)


def main():
    channel = grpc.insecure_channel(sys.argv[2])
    out = queue.Queue()
    threading.Thread(target=feed, args=(channel, out), daemon=True).start()
    print(json.dumps({"registered": len(HOSTS)}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        group = placement_pb2.TaskGroup(name="worker", count=len(HOSTS), resource=resource(1024), priority=1)
        edge = placement_pb2.GroupEdge(
            **{"from": "worker"}, to="worker", pattern=placement_pb2.EDGE_PATTERN_ALL_TO_ALL, bytes=1 << 34
        )
        answer = placement_pb2_grpc.PlacementStub(channel).RequestHints(
            placement_pb2.RequestHintsRequest(
                request_id=request["id"], application_id=f"application_1_{request.get('application', 1):04d}", attempt=1,
                groups=[group], edges=[edge],
                constraints=placement_pb2.Constraints(spread=True, max_per_node=1), policy=request.get("policy", ""),
            ),
            timeout=10,
        )
        hosts = [hint.host for hint in answer.hints.hints]
        print(json.dumps({"hosts": hosts, "routes": len(answer.hints.routes)}), flush=True)
    out.put(None)


main()
