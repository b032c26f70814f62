"""Asks hintd where the containers of a small job should go: `python examples/ask.py --address 127.0.0.1:8470`.

What an ApplicationMaster does, without YARN: ask, use the hosts, give the leases back.
"""

from __future__ import annotations

import argparse
import time

from hintd_client import Attempt, Client, Edge, Group, Request


def main() -> None:
    parser = argparse.ArgumentParser(description="Hints for four maps and two reduces")
    parser.add_argument("--address", default="127.0.0.1:8470")
    parser.add_argument("--policy", default="", help="the daemon's choice if left out")
    parser.add_argument("--patience", type=float, default=1.0, help="seconds to wait for hints")
    arguments = parser.parse_args()

    attempt = Attempt(f"application_{int(time.time() * 1000)}_0001")
    request = Request(
        attempt.application_id,
        [Group("map", 4, memory_mb=1024, role="map"), Group("reduce", 2, memory_mb=2048, role="reduce")],
        framework="mapreduce",
        edges=[Edge("map", "reduce", bytes=256 << 20)],
        policy=arguments.policy,
    )
    with Client(arguments.address) as client:
        answer = client.hints_or_none(request, arguments.patience)
        if not answer.hints:
            print(f"ask YARN as without hintd: {answer.why_none}")
            return
        for hint in answer.hints:
            others = f", else {', '.join(hint.fallbacks)}" if hint.fallbacks else ""
            print(f"{hint.group}: {hint.count} containers on {hint.host}{others}")
        print(f"decision {answer.decision_id} of policy {answer.policy}; `hintctl explain` says why")
        print(f"{client.release(attempt, answer.token)} leases given back")


if __name__ == "__main__":
    main()
