"""Attacks on memory: claimed lengths, uploads without an end, unread answers, answers larger than questions."""

import gzip
import os
import struct
import time

import messages as m
from arena import attack
from daemon import MIB
from http2 import DATA, OK, RST_STREAM, WINDOW_UPDATE, Closed, Late, frame, grpc_frame, reason
from protobuf import first, message, parse

CLAIM = 16 * MIB - 64  # just below limits.message_bytes
HIDDEN = "application_1600000000000_"
REMEMBERED = 32 * MIB  # limits.requests_kept_bytes where it is known


@attack("D1", "message prefixes that claim 16 MiB, 12 connections of 250 streams")
def claimed_lengths(arena):
    for _ in range(12):
        connection = arena.connect(greedy=False, window=65535)
        connection.settle()
        for _ in range(min(250, connection.most_streams or 250)):
            if arena.overrun.is_set():
                return
            number = connection.open(m.REQUEST)
            connection.write(number, grpc_frame(b"", CLAIM))
    arena.hold(4, turn=arena.drain)


@attack("D1u", "uploads that stop half-way, up to 1 GiB of them")
def half_uploads(arena):
    piece, wanted, streams = bytes(1 << 16), 8 * MIB, []
    for _ in range(8):
        connection = arena.connect(window=65535)
        connection.settle()
        for _ in range(16):
            number = connection.open(m.REQUEST)
            connection.write(number, grpc_frame(b"", CLAIM))
            streams.append([connection, number, 0])
    until = time.monotonic() + 6
    going = list(streams)
    while going and time.monotonic() < until and not arena.overrun.is_set():
        moved = []
        for entry in going:
            connection, number, written = entry
            stream = connection.streams[number]
            if written >= wanted or stream.ended:
                continue
            try:
                while connection.pump(0):
                    pass
                room = min(stream.window, connection.send_window, len(piece))
                if room > 0:
                    connection.write(number, piece[:room])
                    entry[2] += room
                moved.append(entry)
            except (Closed, Late):
                pass
        if all(min(c.streams[n].window, c.send_window) <= 0 for c, n, _ in moved):
            time.sleep(0.05)
        going = moved
    arena.note(f"{sum(entry[2] for entry in streams) / MIB:.0f} MiB taken")

    def drip():
        """A byte here and there, so that nobody calls them silent."""
        arena.drain()
        for connection, number, _ in streams:
            stream = connection.streams[number]
            if not stream.ended and min(stream.window, connection.send_window) > 0:
                try:
                    connection.write(number, b"x", timeout=0)
                except (Closed, Late):
                    pass

    arena.hold(8, every=0.5, turn=drip)
    standing = 0
    for connection, number, _ in streams:
        try:
            while connection.pump(0):
                pass
            standing += not connection.streams[number].ended
        except (Closed, OSError):
            pass
    arena.note(f"{standing} of {len(streams)} uploads still open")
    if standing > len(streams) // 2:
        arena.broke(f"{standing} of {len(streams)} uploads stand 8 s after they stopped, but for a byte here and there")


def large_request(arena, serial, hosts, groups, name_bytes, connection):
    """A request whose answer repeats what it brought: status, its Hints, its body, or None."""
    names = [(f"g{n:03}-" + "x" * name_bytes)[:name_bytes] for n in range(groups)]
    rows = [m.group(name, hosts, priority=n + 1) for n, name in enumerate(names)]
    constraints = message({1: 1, 3: 1})
    application = f"{HIDDEN}{serial}"
    body = m.request(f"large-{serial}", application, rows, policy="spread", constraints=constraints, deadline_ms=20000)
    status, answer, headers = connection.unary(m.REQUEST, body, 30)
    if status != OK:
        return status, reason(status, headers), body
    return status, m.Hints(answer), body


def largest(arena, connection, serial):
    """The largest answer that the daemon gives, of some tried, or None."""
    # ask for less until it is taken
    for groups, name_bytes in ((60, 4000), (60, 1000), (60, 250), (200, 120), (60, 120), (12, 120)):
        status, hints, body = large_request(arena, serial, 400, groups, name_bytes, connection)
        serial += 1
        if status == OK:
            arena.note(f"an answer of {hints.size / MIB:.1f} MiB to {len(body) / 1024:.0f} KiB")
            return hints, body, f"{HIDDEN}{serial - 1}", (groups, name_bytes)
        arena.note(f"{groups} groups of {name_bytes} bytes: {hints[:80]}")
    return None


@attack("D5", "answers that nobody reads: a window of no bytes, repeats and Explain")
def unread_answers(arena):
    with_window = arena.connect()
    found = largest(arena, with_window, 1)
    if not found:
        return
    hints, body, _, _ = found
    wanted = max(24, min(400, 900 * MIB // max(1, hints.size)))
    explain = message({1: hints.decision})
    asked = 0
    connections = [arena.connect(window=0, greedy=False) for _ in range(max(2, min(24, wanted // 24)))]
    while asked < wanted and not arena.overrun.is_set():
        for connection in connections:
            path, question = (m.EXPLAIN, explain) if asked % 2 else (m.REQUEST, body)
            try:
                number = connection.open(path)
                connection.write(number, grpc_frame(question), end=True, timeout=1)
            except (Closed, Late):
                pass
            asked += 1
        time.sleep(0.02)
    arena.note(f"{asked} answers asked for and not read")
    arena.hold(6, turn=arena.drain)
    base = arena.memory.base
    arena.close_all()
    for _ in range(20):
        time.sleep(0.25)
        if arena.rss() - base < 0.5 * (arena.memory.peak - base):
            break
    arena.note(f"{(arena.rss() - base) / MIB:+.0f} MiB once they were closed")


@attack("D5s", "answers that are read a byte at a time", long=True)
def dripped_answers(arena):
    found = largest(arena, arena.connect(), 51)
    if not found:
        return
    _, body, _, _ = found
    connections = [arena.connect(window=0, greedy=False) for _ in range(24)]
    for connection in connections:
        for _ in range(4):
            try:
                number = connection.open(m.REQUEST)
                connection.write(number, grpc_frame(body), end=True, timeout=1)
            except (Closed, Late):
                pass

    def drip():
        arena.drain()
        for connection in connections:
            try:
                for number in connection.streams:
                    connection.send(frame(WINDOW_UPDATE, 0, number, struct.pack(">I", 1)))
            except Closed:
                pass

    arena.hold(8, every=0.5, turn=drip)
    read = sum(stream.bytes for connection in connections for stream in connection.streams.values())
    standing = sum(not stream.ended for connection in connections for stream in connection.streams.values())
    arena.note(f"{read} bytes read, {standing} of 96 answers still wait")


@attack("D5r", "answers that are read slowly: 64 KiB of each every half second", long=True)
def slow_answers(arena):
    found = largest(arena, arena.connect(), 31)
    if not found:
        return
    hints, body, _, _ = found
    connections = [arena.connect(window=0, greedy=False, keep=False) for _ in range(4)]
    for connection in connections:
        connection.write(connection.open(m.REQUEST), grpc_frame(body), end=True, timeout=1)
    lost = set()

    def read():
        """Something of every answer, so that something always moves."""
        arena.drain()
        for connection in connections:
            try:
                for number in connection.streams:
                    connection.send(frame(WINDOW_UPDATE, 0, number, struct.pack(">I", 1 << 16)))
                    connection.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 16)))
            except Closed:
                lost.add(connection)

    needs = hints.size / (1 << 17)
    lasts = 6 + hints.size / (1 << 21)
    until = time.monotonic() + 60
    while not all(stream.bytes for connection in connections for stream in connection.streams.values()):
        if time.monotonic() > until or not arena.hold(0.5, every=0.5, turn=read):
            break  # a busy machine answers late
    arena.hold(lasts, every=0.5, turn=read)
    standing = sum(not stream.ended for connection in connections if connection not in lost
                   for stream in connection.streams.values())
    read_so_far = sum(stream.bytes for connection in connections for stream in connection.streams.values())
    arena.note(f"an answer would take {needs:.0f} s; {read_so_far / MIB:.1f} MiB read, {standing} of 4 answers still wait "
               f"after {lasts:.0f} s, {len(lost)} of 4 connections were closed")
    if needs > 2 * lasts and standing > 1:
        arena.broke(f"{standing} of 4 answers wait after {lasts:.0f} s, of each of which 128 KiB a second are read")


@attack("D6", "answers and a journal that outgrow what was asked")
def large_answers(arena):
    connection = arena.connect()
    found = largest(arena, connection, 101)
    if not found:
        return
    hints, body, _, (groups, name_bytes) = found
    if hints.size > 16 * MIB:
        arena.broke(f"{len(body) / 1024:.0f} KiB gave an answer of {hints.size / MIB:.0f} MiB")
    sent = 0
    until = time.monotonic() + 8
    for n in range(24):
        if arena.overrun.is_set() or time.monotonic() > until:
            break
        status, _, body = large_request(arena, 200 + n, 400, groups, name_bytes, connection)
        sent += len(body)
    if arena.daemon:
        journal = os.path.getsize(arena.daemon.journal)
        arena.note(f"a journal of {journal / MIB:.0f} MiB after {sent / MIB:.1f} MiB of requests")
        if journal > 512 * MIB:
            arena.broke(f"the journal takes {journal / MIB:.0f} MiB")


@attack("D6r", "requests that are remembered: 3,500 paths of 1,000 bytes, of ever other applications", long=True,
        how={"limits": [f"requests_kept_bytes = {REMEMBERED}"]})
def remembered_requests(arena):
    connection, paths, taken = arena.connect(), [f"/{n}/" + "p" * 990 for n in range(3500)], 0
    started = time.monotonic()
    while taken < 400 and time.monotonic() - started < 45 and not arena.overrun.is_set():
        body = m.request(f"long-{taken}", f"{HIDDEN}{70000 + taken}", [m.group("map", 1, memory_mb=1)], paths=paths,
                         deadline_ms=20000, fields=m.proof(os.urandom(16)))
        status, _, headers = connection.unary(m.REQUEST, body, 30)
        if status != OK:
            arena.note(f"after {taken}: {reason(status, headers)}")
            break
        taken += 1
    arena.note(f"{taken} requests of {len(body) / MIB:.1f} MiB were taken")
    if arena.daemon:
        journal = os.path.getsize(arena.daemon.journal)
        arena.note(f"a journal of {journal / MIB:.0f} MiB")
        if journal > 6 * REMEMBERED:
            arena.broke(f"the journal takes {journal / MIB:.0f} MiB for {REMEMBERED / MIB:.0f} MiB of remembered requests")


@attack("H6", "a length prefix of 4 GiB, nested groups, gzip bombs")
def odd_messages(arena):
    connection = arena.connect()
    bomb = gzip.compress(bytes(64 * MIB), 9)
    nested = b"\x0b" * 5000
    deep = b"\x0b" * 2_000_000
    for _ in range(20):
        for body, more in (
            (grpc_frame(b"x", 0xFFFFFFFF), ()),
            (grpc_frame(bomb, flag=1), (("grpc-encoding", "gzip"),)),
            (grpc_frame(nested), ()),
            (grpc_frame(deep), ()),
            (grpc_frame(b"\xff" * 4096), ()),
        ):
            try:
                number = connection.open(m.REQUEST, more=more)
                connection.write(number, body, end=True, timeout=3)
                if connection.wait(number, 3).status() == OK:
                    arena.broke("a message that is none was taken")
            except (Closed, Late):
                connection = arena.connect()


@attack("N6", "1,000 calls begun and cancelled at once")
def cancelled(arena):
    connection, lost = arena.connect(greedy=False), 0
    for n in range(1000):
        body = m.request(f"gone-{n}", f"{HIDDEN}{9000 + n % 7}", [m.group("map", 50)])
        try:
            number = connection.open(m.REQUEST)
            connection.send(frame(DATA, 1, number, grpc_frame(body)))
            connection.send(frame(RST_STREAM, 0, number, struct.pack(">I", 8)))
        except Closed:
            connection, lost = arena.connect(greedy=False), lost + 1
        if n % 50 == 0:
            arena.drain()
    arena.note(f"the daemon closed {lost} connections over it")
    arena.hold(1, turn=arena.drain)


@attack("E1", "evidence of others: 3,000 requests of one application after somebody's decision", long=True)
def evidence(arena):
    nonce, name = os.urandom(16), f"{HIDDEN}4711"
    connection = arena.connect()
    body = m.request("evidence", name, [m.group("map", 4)], fields=m.proof(nonce))
    status, answer, headers = connection.unary(m.REQUEST, body, 10)
    if status != OK:
        raise RuntimeError(f"the victim got no hints: {reason(status, headers)}")
    hints = m.Hints(answer)

    def recorded():
        question = message({1: hints.decision, 2: hints.token, 3: nonce})
        status, answer, headers = connection.unary(m.EXPLAIN, question, 10)
        if status != OK:
            return reason(status, headers)
        return bool(first(parse(answer), 21, 0)) or "explained, and can't be made again"

    if recorded() is not True:
        arena.note(f"not recorded from the start: {recorded()}")
        return
    flood, sent, refused = arena.connect(), 0, 0
    until = time.monotonic() + 15
    proof = m.proof(os.urandom(16))
    token = None
    while sent < 3000 and time.monotonic() < until and not arena.overrun.is_set():
        numbers = []
        for _ in range(1 if token is None else 40):
            fields = {**proof, 20: token} if token else proof
            groups = [m.group(f"g{k}-" + "y" * 80, 40, priority=k + 1) for k in range(12)]
            body = m.request(f"flood-{sent}", f"{HIDDEN}4712", groups, policy="spread", fields=fields)
            number = flood.open(m.REQUEST)
            flood.write(number, grpc_frame(body), end=True)
            numbers.append(number)
            sent += 1
        for number in numbers:
            stream = flood.wait(number, 20)
            refused += stream.status() != OK
            if token is None and stream.status() == OK:
                token = m.Hints(stream.messages()[0]).token
            del flood.streams[number]
    arena.note(f"{sent} requests, {refused} refused")
    left = recorded()
    if left is not True:
        arena.broke(f"the victim's decision is {left}")
