"""Attacks on the search: networks that no data center has, and questions that are cheap to ask."""

import time

import messages as m
from arena import attack
from http2 import Closed, Late, grpc_frame, reason
from protobuf import message

GIGABIT = 10**9


def ring(size, hosts):
    """A ring of switches, `hosts` spread around it."""
    switches = [(f"s{n}", "edge") for n in range(size)]
    links = [(f"r{n}", f"s{n}", f"s{(n + 1) % size}", GIGABIT) for n in range(size)]
    links += [(f"h{n}", host, f"s{n * size // len(hosts)}", GIGABIT) for n, host in enumerate(hosts)]
    return m.network(switches, hosts, links)


def clique(size, hosts):
    switches = [(f"s{n}", "edge") for n in range(size)]
    links = [(f"c{a}-{b}", f"s{a}", f"s{b}", GIGABIT) for a in range(size) for b in range(a)]
    links += [(f"h{n}", host, f"s{n * size // len(hosts)}", GIGABIT) for n, host in enumerate(hosts)]
    return m.network(switches, hosts, links)


def ladder(size, hosts):
    """Two rails with a rung at every step: paths between its ends grow as powers of two."""
    switches = [(f"{rail}{n}", "edge") for rail in "ab" for n in range(size)]
    links = [(f"{rail}{n}", f"{rail}{n}", f"{rail}{n + 1}", GIGABIT) for rail in "ab" for n in range(size - 1)]
    links += [(f"rung{n}", f"a{n}", f"b{n}", GIGABIT) for n in range(size)]
    links += [(f"h{n}", host, f"a{n * size // len(hosts)}", GIGABIT) for n, host in enumerate(hosts)]
    return m.network(switches, hosts, links)


def tell(arena, network):
    """Feeds the network; what the daemon says of it, or None."""
    connection = arena.connect()
    number = connection.open(m.TOPOLOGY)
    body = grpc_frame(message({1: 1, 2: m.hello("attack-sdn")})) + grpc_frame(message({1: 2, 3: network}))
    connection.write(number, body)
    connection.wait(number, 10, for_message=True)
    time.sleep(0.3)
    return connection.streams[number]


def two_requests(arena, deadline_ms, count=2):
    """Requests whose groups talk, each on a connection of its own; nobody waits for their answers here."""
    asked = []
    for n in range(count):
        body = m.request(
            f"ring-{deadline_ms}-{n}", f"application_1600000000000_{70000 + deadline_ms + n}",
            [m.group("a", 2), m.group("b", 2, priority=2)], edges=[m.edge("a", "b", 1 << 30)],
            policy="cross_layer", deadline_ms=deadline_ms,
        )
        connection = arena.connect()
        number = connection.open(m.REQUEST)
        connection.write(number, grpc_frame(body), end=True)
        asked.append((connection, number, len(body)))
    return asked


def answers(arena, asked, timeout):
    for connection, number, _ in asked:
        try:
            stream = connection.wait(number, timeout)
            found = stream.messages()
            said = f"{m.Hints(found[0]).degraded}" if found else reason(stream.status(), stream.headers)
            arena.note(f"answered: {said}")
        except (Late, Closed) as error:
            arena.note(f"not answered within {timeout} s: {error}")


def ugly(arena, network, deadline_ms=2000, hold=8, count=2):
    tell(arena, network)
    asked = two_requests(arena, deadline_ms, count)
    arena.note(f"a network of {len(network) / 1024:.0f} KiB, {count} requests of {asked[0][2]} bytes")
    arena.hold(hold)
    answers(arena, asked, 0.5)


@attack("D2", "two requests on a ring of 300 switches, deadlines of 2 s")
def ring_of_300(arena):
    ugly(arena, ring(300, arena.nodes.hosts))


@attack("D2a", "two requests on a ring of 3,000 switches", long=True)
def ring_of_3000(arena):
    ugly(arena, ring(3000, arena.nodes.hosts))


@attack("D2b", "two requests on a clique of 140 switches, then on a ladder of 300 rungs", long=True)
def other_networks(arena):
    ugly(arena, clique(140, arena.nodes.hosts), hold=4)
    if not arena.overrun.is_set():
        ugly(arena, ladder(300, arena.nodes.hosts), deadline_ms=2001, hold=4)


@attack("D2c", "eight requests with deadlines of 30 s on a ring of 1,000 switches")
def long_deadlines(arena):
    ugly(arena, ring(1000, arena.nodes.hosts), deadline_ms=30000, hold=8, count=8)
