"""One side of a conversation, with the Python client of whichever version PYTHONPATH names.

    talk.py nodes ADDRESS                 four nodes that report until standard input ends; a line "gone HOST" takes one away
    talk.py client ADDRESS APPLICATION    asks, asks again, follows, gives back; each step as a line of JSON
"""

from __future__ import annotations

import json
import sys
import threading
from types import SimpleNamespace

from hintd_client import Attempt, Client, Group, Refused, Request


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def nodes(address: str) -> None:
    from tests.daemon import Nodes

    reporting = Nodes(SimpleNamespace(address=address), 4)  # type: ignore[arg-type]
    lock, over = threading.Lock(), threading.Event()

    def beat() -> None:
        while not over.wait(0.5):
            with lock:
                reporting.beat()

    threading.Thread(target=beat, daemon=True).start()
    say(step="ready", hosts=reporting.hosts)
    for line in sys.stdin:
        with lock:
            reporting.gone(line.split()[1])
    over.set()


def client(address: str, application: str) -> None:
    attempt = Attempt(application)
    request = Request(application, [Group("map", 3, memory_mb=1024)])
    with Client(address) as asking:
        first = asking.request_hints(request, patience=60)
        again = asking.request_hints(request, patience=60)
        same = (again.decision_id, again.leases) == (first.decision_id, first.leases)
        say(step="asked", leases=len(first.leases), same=same, decision=first.decision_id, token=bool(first.token))
        stranger = Client(address)
        try:
            stranger.release(attempt, "guess")
            say(step="stranger", refused="")
        except Refused as error:
            say(step="stranger", refused=error.code.name)
        stranger.close()
        with asking.follow(attempt, first.token) as following:
            say(step="following", host=first.hints[0].host)
            for message in following:
                if message.cause:
                    say(step="told", cause=message.cause)
                    break
        say(step="released", count=asking.release(attempt, first.token))


if __name__ == "__main__":
    {"nodes": nodes, "client": client}[sys.argv[1]](*sys.argv[2:])
