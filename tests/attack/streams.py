"""Long streams that nobody reads, and single messages with very many rows."""

import time

import messages as m
from arena import Skip, attack
from daemon import MIB
from http2 import OK, Closed, Connection, Late, grpc_frame, reason
from protobuf import field, message
from search import GIGABIT, tell


def leaves_and_spines(hosts, leaves=20, spines=4):
    switches = [(f"leaf{n}", "edge") for n in range(leaves)] + [(f"spine{n}", "core") for n in range(spines)]
    links = [(f"up{a}-{b}", f"leaf{a}", f"spine{b}", 10 * GIGABIT) for a in range(leaves) for b in range(spines)]
    links += [(f"h{n}", host, f"leaf{n * leaves // len(hosts)}", GIGABIT) for n, host in enumerate(hosts)]
    return m.network(switches, hosts, links)


def talkers(arena, count, start):
    """Requests whose tasks talk, so that there are routes to tell of."""
    connection, found = arena.connect(), []
    for n in range(count):
        name = f"application_1600000000000_{start + n}"
        groups = [m.group("a", 6), m.group("b", 6, priority=2)]
        edges = [m.edge("a", "b", 1 << 34)]
        body = m.request(f"talk-{start + n}", name, groups, edges=edges, policy="cross_layer", deadline_ms=5000)
        status, answer, headers = connection.unary(m.REQUEST, body, 10)
        if status == OK:
            found.append((name, m.Hints(answer)))
    return found


@attack("N1", "60 Watch streams that nobody reads, while links go up and down", long=True)
def slow_watchers(arena):
    tell(arena, leaves_and_spines(arena.nodes.hosts))
    talking = talkers(arena, 30, 50000)
    for n in range(6):
        connection = arena.connect(window=0, greedy=False)
        for k in range(10):
            number = connection.open(m.WATCH)
            pairs = [(arena.nodes.hosts[i], arena.nodes.hosts[(i * 7 + k + 1) % 400]) for i in range(300)]
            connection.write(number, grpc_frame(m.watch(f"slow-{n}-{k}", pairs=pairs, flows=True)), end=True)
    feed = arena.connect()
    number = feed.open(m.TOPOLOGY)
    feed.write(number, grpc_frame(message({1: 1, 2: m.hello("attack-sdn")})))
    serial, until = 2, time.monotonic() + 6
    while time.monotonic() < until and not arena.overrun.is_set():
        items = b""
        for up in (0, 1):
            for link in range(20):
                items += grpc_frame(message({1: serial, 4: message({1: f"up{link}-{serial % 4}", 2: up})}))
                serial += 1
        feed.write(number, items)
        while feed.pump(0.02):
            pass
        feed.streams[number].data.clear()
        arena.drain()
    arena.note(f"{len(talking)} applications talk, 60 streams, {serial} changes of links")
    arena.hold(1)


@attack("N2", "100 Follow streams that nobody reads, 1,000 events on each")
def slow_followers(arena):
    connection, followed = arena.connect(), 0
    for n in range(100):
        name = f"application_1600000000000_{60000 + n}"
        body = m.request(f"follow-{n}", name, [m.group("map", 4)], follows=1)
        status, answer, _ = connection.unary(m.REQUEST, body, 10)
        if status != OK:
            continue
        follower = arena.connect(window=0, greedy=False)
        number = follower.open(m.FOLLOW)
        start = message({1: name, 2: 1, 3: m.Hints(answer).token})
        events = [m.event(name, 5, message({1: f"/in/{k}", 2: 1 << 20}), task=f"t{k}") for k in range(1000)]
        try:
            follower.write(number, grpc_frame(message({1: start})), timeout=1)
            for at in range(0, 1000, 100):
                follower.write(number, grpc_frame(message({2: events[at : at + 100]})), timeout=1)
            followed += 1
        except (Closed, Late):
            pass
        if arena.overrun.is_set():
            return
    arena.note(f"{followed} of 100 streams took all events")
    arena.hold(2)


@attack("N3", "a Watch of 1,000,000 pairs, and two of 199,990", long=True)
def watched_pairs(arena):
    def ask(name, pairs):
        connection = arena.connect()
        number = connection.open(m.WATCH)
        row = b"".join(pairs)
        body = message({1: name}) + row
        try:
            connection.write(number, grpc_frame(body), end=True, timeout=10)
            stream = connection.wait(number, 10, for_message=True)
            said = f"{stream.bytes / MIB:.1f} MiB of snapshot"
            if stream.ended:
                said = reason(stream.status(), stream.headers)
        except (Closed, Late) as error:
            said = str(error)
        arena.note(f"{name}, {len(body) / MIB:.1f} MiB: {said[:160]}")

    rows = [field(2, message({1: f"{n // 1000:x}", 2: f"y{n % 1000:x}"})) for n in range(1_000_000)]
    ask("a million", rows)
    for n in range(2):
        if not arena.overrun.is_set():
            ask(f"199,990 ({n})", rows[n * 150_000 : n * 150_000 + 199_990])
    connection = arena.connect()
    number = connection.open(m.WATCH)
    pairs = [(arena.nodes.hosts[n], arena.nodes.hosts[n + 1]) for n in range(50)]
    connection.write(number, grpc_frame(m.watch("somebody else's", pairs=pairs)), end=True)
    connection.wait(number, 10, for_message=True)
    stream = connection.streams[number]
    if stream.ended:
        arena.note(f"50 pairs of somebody else's: {reason(stream.status(), stream.headers)}")
    arena.hold(1)


def plan_rows(count):
    """A plan of `count` jobs of one map each, in pieces of text."""
    yield (
        '{"format":"hintd.plan/1","policy":"jobpacker","objective":"batch","made":0,"from":0,"until":86400000000,'
        '"assumptions":{"uplink":30000000000,"elephant":1125000000,"over_provisioning":0.0,"sub_batches":5,'
        '"shuffle_term":"by_width","seed":1},"racks":[{"rack":"/rack00","containers":600,"sequence":[]}],"jobs":['
    )
    row = (
        '{"job":{"key":"k%d","run":0},"arrival":0,"heavy":false,"shuffle":0,"shuffle_time":0,"start":0,"end":5000000,'
        '"maps":{"tasks":1,"task_time":5000000,"slices":[{"rack":"/rack00","start":0,"end":5000000,"tasks":1,'
        '"containers":1}]},"reduces":{"tasks":0,"task_time":0,"slices":[]}}'
    )
    for first in range(0, count, 2000):
        rows = ",".join(row % n for n in range(first, min(count, first + 2000)))
        yield rows + ("," if first + 2000 < count else "")
    yield "]}"


@attack("N4", "a plan of 1,000,000 rows through the admin socket")
def large_plan(arena):
    if not arena.admin:
        raise Skip("needs --admin")
    connection = Connection(arena.admin, timeout=10)
    arena.keep(connection)
    number, said, written = connection.open(m.SUBMIT_PLAN), None, 0
    try:
        head = {1: f"attack-{int(time.time())}"}
        for piece in plan_rows(1_000_000):
            connection.write(number, grpc_frame(message({**head, 3: piece})), timeout=10)
            head, written = {}, written + len(piece)
            while connection.pump(0):
                pass
            if connection.streams[number].ended or arena.overrun.is_set():
                break
        if not connection.streams[number].ended:
            connection.write(number, b"", end=True)
        stream = connection.wait(number, 20)
        said = reason(stream.status(), stream.headers)
    except (Closed, Late) as error:
        said = str(error)
    arena.note(f"after {written / MIB:.0f} MiB: {said[:200]}")
