"""The daemon at its limits: one budget after the other is filled and kept, and memory is held against what they come to."""

import os
import time

import messages as m
from arena import attack
from daemon import MIB
from http2 import OK, Closed, Late, grpc_frame, reason
from memory import CLAIM, HIDDEN, largest
from protobuf import message

PART = 32  # of the defaults, or --part: what the machine has to have, and Python to send
# Of docs/operations.md (Size): each limit's default, and bytes of memory of one.
LIMITS = {
    "containers": (1_000_000, 670),
    "blocks": (4_000_000, 230),
    "replicas": (16_000_000, 65),
    "feed_names_bytes": (128 * MIB, 1),
    "leases": (500_000, 440),
    "answers_kept_bytes": (512 * MIB, 2 / 3),
    "requests_kept_bytes": (256 * MIB, 1),
    "inbound_bytes": (256 * MIB, 1),
    "outbound_bytes": (256 * MIB, 1),
    "connections": (10_000, 252 * 1024),
}
FIXED = 300 * MIB  # what no limit here scales: records, pages, path tables, queues, threads, what the allocator keeps


def inbound_part():
    """Part of inbound_bytes: not below what one message of the longest takes twice over, from as many as there are."""
    return min(8, PART)


def small(_arena):
    lines = [f"{name} = {default // PART}" for name, (default, _) in LIMITS.items() if name != "inbound_bytes"]
    lines += [f"inbound_bytes = {256 * MIB // inbound_part()}", f"message_bytes = {2 * MIB}", f"answer_bytes = {2 * MIB}"]
    # What is not read is kept until all of it is there: a busy machine opens eight connections a second.
    lines += [f'unread = "{max(60, 1900 // PART)}s"']
    return {"limits": [*lines, 'upload = "60s"', "requests_per_s = 0"]}


def bound():
    scaled = {name: default * each / PART for name, (default, each) in LIMITS.items()}
    scaled["inbound_bytes"] = 256 * MIB / inbound_part()
    return scaled


def pour(arena, path, items):
    """Sends items of a feed and reads its acknowledgements; how many items."""
    connection, count = arena.connect(), 0
    number = connection.open(path)
    for count, item in enumerate(items, 1):
        connection.write(number, grpc_frame(item), timeout=600)  # Python and the daemon share what the machine has left
        while connection.pump(0):
            pass
        connection.streams[number].data.clear()
    arena.hold(1.5, turn=arena.drain)
    return count


def containers(arena):
    """Beside the cluster's own nodes, which go on reporting."""
    nodes, each = 125, LIMITS["containers"][0] // PART // 125
    yield message({1: 1, 2: m.hello("attack-rm", names_containers=True)})
    for n in range(nodes):
        yield message({1: 2 + 2 * n, 3: m.register(f"full-n{n}", "/rack00")})
        listed = [message({1: f"container_1600000000000_{n:04}_01_{k:06}", 2: m.resource(1)}) for k in range(each)]
        yield message({1: 3 + 2 * n, 4: message({1: f"full-n{n}", 2: 1, 3: m.resource(each), 4: listed, 5: "RUNNING"})})


def blocks(arena):
    count, hosts = LIMITS["blocks"][0] // PART, arena.nodes.hosts
    yield message({1: 1, 2: m.hello("attack-hdfs")})
    for n in range(0, count, 5000):
        rows = [message({1: 1 + k, 2: 1 << 27, 3: [hosts[(k + r * 37) % len(hosts)] for r in range(4)]})
                for k in range(n, n + 5000)]
        yield message({1: 2 + n, 3: message({1: f"/full/{n}", 2: rows})})


def names(arena):
    most, each = LIMITS["feed_names_bytes"][0] // PART * 3 // 4, 7000
    yield message({1: 1, 2: m.hello("attack-names")})
    for n in range(most // (each + 64)):
        yield message({1: 2 + n, 3: message({1: f"/named/{n:06}" + "x" * (each - 13)})})


def leases(arena):
    """Requests of ever other applications until the daemon has no lease left."""
    connection, refused, n = arena.connect(), 0, 0
    while refused < 3 and n < 400 + 2000 // PART and not arena.overrun.is_set():
        body = m.request(f"lease-{n}", f"{HIDDEN}{60000 + n}", [m.group("g" * 60, 400, memory_mb=1)], policy="spread",
                         deadline_ms=20000, fields=m.proof(os.urandom(16)))
        status, answer, headers = connection.unary(m.REQUEST, body, 300)
        refused, n = refused + (status != OK), n + 1
    arena.note(f"{n} requests for leases, the last: {reason(status, headers) or 'OK'}")


def half_sent(arena):
    """Messages of which half is missing."""
    for _ in range(16 * 8 // inbound_part()):
        connection = arena.connect(window=65535)
        connection.settle()
        for _ in range(4):
            number = connection.open(m.REQUEST)
            try:
                connection.write(number, grpc_frame(b"", min(CLAIM, 2 * MIB - 64)) + bytes(MIB), timeout=2)
            except (Closed, Late):
                pass


def unread(arena):
    """Answers that wait, and heartbeats behind acknowledgements that nobody reads, as far as windows go."""
    found = largest(arena, arena.connect(), 71)  # before there is no lease left
    if found:
        for _ in range(24):
            connection = arena.connect(window=0, greedy=False)
            for _ in range(6):
                try:
                    number = connection.open(m.REQUEST)
                    connection.write(number, grpc_frame(found[1]), end=True, timeout=1)
                except (Closed, Late):
                    pass


def windows(arena):
    """As many connections as there may be, each with all that its window lets through unread."""
    beats = b"".join(grpc_frame(message({1: 2 + n, 4: m.heartbeat("nobody", n)})) for n in range(20000))
    opened = sent = 0
    for _ in range(LIMITS["connections"][0] // PART):
        try:
            connection = arena.connect(window=0, greedy=False)
            connection.settle()
            for _ in range(2):
                number = connection.open(m.HEARTBEATS)
                before = connection.sent
                try:
                    connection.write(number, grpc_frame(message({1: 1, 2: m.hello()})) + beats, timeout=0.05)
                except Late:
                    pass
                sent += connection.sent - before
            opened += 1
        except (Closed, Late):
            break
    arena.note(f"{opened} connections with {sent / MIB:.0f} MiB sent behind unread acknowledgements")


@attack("M1", "every budget filled at once, at a part of the defaults (--part)", long=True, how=small)
def budgets(arena):
    if not arena.daemon:
        return
    arena.note(f"limits at 1/{PART} of the defaults")
    group = arena.daemon.group
    base, before = arena.memory.base, arena.rss()
    stages = [
        ("containers", lambda: pour(arena, m.HEARTBEATS, containers(arena))),
        ("blocks and replicas", lambda: pour(arena, m.DATASETS, blocks(arena))),
        ("names", lambda: pour(arena, m.DATASETS, names(arena))),
        ("messages half sent", lambda: half_sent(arena)),
        ("answers unread", lambda: unread(arena)),
        ("leases and answers", lambda: leases(arena)),
        ("connections and windows", lambda: windows(arena)),
    ]
    for name, fill in stages:
        if arena.overrun.is_set():
            break
        began = time.monotonic()
        fill()
        arena.hold(0.5, turn=arena.drain)
        now = arena.rss()
        arena.note(f"{name}: {(now - before) / MIB:+.0f} MiB, {time.monotonic() - began:.0f} s")
        before = now
    scaled = bound()
    most, peak = sum(scaled.values()) + FIXED, arena.memory.peak - base
    arena.note(", ".join(f"{name} {bytes_ / MIB:.0f}" for name, bytes_ in scaled.items()) + f", the rest {FIXED / MIB:.0f} MiB")
    arena.note(f"bound {most / MIB:.0f} MiB beyond the start, peak {peak / MIB:.0f} MiB")
    if group:
        arena.note(f"in a control group of {group.limit / MIB:.0f} MiB: peak {group.peak() / MIB:.0f} MiB with the cache of "
                   f"its journal and log, limit met {group.met()} times")
    if peak > most:
        arena.broke(f"memory grew by {peak / MIB:.0f} MiB where the limits come to {most / MIB:.0f} MiB")
