#!/usr/bin/env python3
"""Tells a running hintd of a network, by Feed.Topology, as an SDN controller would.

  tests/hadoop/tell_network.py NETWORK.json [HOST:PORT]

NETWORK.json is a network file (docs/formats.md), such as target/mini-hadoop/network.json; left out, hintd is at
127.0.0.1:8470. hintd keeps it until it is told of another one or started anew.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[1] / "attack"))
import messages
from http2 import Closed, Connection, Late, grpc_frame, reason
from protobuf import first, message, parse, text


def tell(network: dict, address: str, source: str = "mini-hadoop") -> None:
    """Raises ValueError with hintd's reason where it does not take it, and OSError where it is not there."""
    graph = messages.network([(row["name"], row["tier"]) for row in network["switches"]],
                             [row["name"] for row in network["hosts"]],
                             [(row["id"], row["a"], row["b"], row["bits_per_s"]) for row in network["links"]])
    try:
        with Connection(address) as connection:
            number = connection.open(messages.TOPOLOGY)
            items = (message({1: 1, 2: messages.hello(source)}), message({1: 2, 3: graph}))
            connection.write(number, b"".join(grpc_frame(item) for item in items))
            through = 0
            while through < 2:
                stream = connection.wait(number, 10, for_message=True)
                for answer in stream.messages():
                    acknowledged = parse(answer)
                    for refusal in map(parse, acknowledged.get(3, [])):
                        raise ValueError(f"hintd refuses the network: {text(refusal, 2)}: {text(refusal, 3)}")
                    through = first(acknowledged, 2, 0)
                if through < 2 and stream.ended:
                    raise ValueError(f"hintd at {address} ended the stream: {reason(stream.status(), stream.headers)}")
    except (Closed, Late) as trouble:
        raise OSError(f"hintd at {address}: {trouble}") from trouble


def main() -> None:
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        print(__doc__)
        sys.exit(2)
    try:
        network = json.loads(Path(sys.argv[1]).read_text())
        tell(network, sys.argv[2] if len(sys.argv) == 3 else "127.0.0.1:8470")
    except (OSError, ValueError, KeyError) as trouble:
        sys.exit(f"tell_network: {trouble!r}" if isinstance(trouble, KeyError) else f"tell_network: {trouble}")
    print(f"told of {len(network['hosts'])} hosts, {len(network['switches'])} switches, {len(network['links'])} links")


if __name__ == "__main__":
    main()
