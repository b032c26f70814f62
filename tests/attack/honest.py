"""Who must not notice the attack: an application that asks for hints, nodes that report, who looks at health."""

import os
import threading
import time

import messages as m
from daemon import http_get
from http2 import OK, Closed, Connection, Late, grpc_frame, reason
from protobuf import message

NODES = 400
NODES_A_RACK = 20
MEMORY_MB = 65536


class Task(threading.Thread):
    """Something that goes on until it is told to stop."""

    every = 0.2

    def __init__(self):
        super().__init__(daemon=True)
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(self.every):
            self.turn()

    def stop(self, timeout=15):
        self.over.set()
        self.join(timeout)


class Nodes(Task):
    """A cluster that reports: nodes register once and send a heartbeat every two seconds. `cuts`: ended streams."""

    every = 2.0

    def __init__(self, target, count=NODES):
        super().__init__()
        self.target, self.count, self.cuts, self.number, self.beat = target, count, -1, 0, 0
        self.connection, self.stream, self.error = None, None, None
        self.hosts = [f"attack-n{n:04}" for n in range(count)]

    def item(self, kind, body):
        self.number += 1
        return grpc_frame(message({1: self.number, kind: body}))

    def connect(self):
        if self.connection:
            self.connection.close()
        self.connection, self.number, self.beat = None, 0, 0
        self.cuts += 1
        connection = Connection(self.target)
        self.stream = connection.open(m.HEARTBEATS)
        data = self.item(2, m.hello())
        for n, host in enumerate(self.hosts):
            data += self.item(3, m.register(host, f"/rack{n // NODES_A_RACK:02}", MEMORY_MB))
        connection.write(self.stream, data)
        self.connection = connection
        self.report()

    def report(self):
        self.beat += 1
        data = b"".join(self.item(4, m.heartbeat(host, self.beat)) for host in self.hosts)
        self.connection.write(self.stream, data, timeout=20)
        while self.connection.pump(0):
            pass
        self.connection.streams[self.stream].data.clear()
        if self.connection.streams[self.stream].ended:
            headers = self.connection.streams[self.stream].headers
            raise Closed(reason(self.connection.streams[self.stream].status(), headers))

    def turn(self):
        try:
            if self.connection is None:
                self.connect()
            else:
                self.report()
        except (Closed, Late) as error:
            self.error = error
            if self.connection:
                self.connection.close()
            self.connection = None


class Application(Task):
    """Asks for one container at a time and gives it back. What did not come within its deadline is `late`, what was
    refused is `failed`."""

    _serial = int(time.time()) % 1_000_000 * 1000

    def __init__(self, target, deadline=5.0):
        super().__init__()
        self.target, self.deadline, self.connection = target, deadline, None
        self.in_time = self.late = self.failed = 0
        self.slowest, self.error = 0.0, ""

    def ask(self):
        """One placement; its seconds, or raises."""
        Application._serial += 1
        name = f"application_1700000000000_{Application._serial}"
        body = m.request(
            f"honest-{Application._serial}", name, [m.group("map", 1)], deadline_ms=int(self.deadline * 1000),
            fields=m.proof(os.urandom(16)),
        )
        started = time.monotonic()
        if self.connection is None:
            self.connection = Connection(self.target, timeout=self.deadline)
        status, answer, headers = self.connection.unary(m.REQUEST, body, self.deadline)
        seconds = time.monotonic() - started
        if status != OK:
            raise Refused(reason(status, headers))
        hints = m.Hints(answer)
        if hints.token and hints.leases:
            self.connection.unary(m.RELEASE, m.release(name, hints.token), self.deadline)
        return seconds

    def turn(self):
        try:
            self.slowest = max(self.slowest, self.ask())
            self.in_time += 1
            return
        except Refused as error:
            self.failed += 1
            self.error = str(error)
        except Late:
            self.late += 1
            self.slowest = max(self.slowest, self.deadline)
            self.error = f"no answer within {self.deadline:g} s"
        except Closed as error:
            self.failed += 1
            self.error = str(error)
        if self.connection:
            self.connection.close()
        self.connection = None

    def tries(self):
        return self.in_time + self.late + self.failed

    def stop(self, timeout=15):
        super().stop(timeout)
        if self.connection:
            self.connection.close()


class Refused(Exception):
    """The daemon said no."""


class Health(Task):
    """Looks at /healthz twice a second."""

    every = 0.5
    most = 10.0

    def __init__(self, address):
        super().__init__()
        self.address, self.looks, self.missed, self.slowest = address, 0, 0, 0.0

    def turn(self):
        started = time.monotonic()
        code, _ = http_get(self.address, "/healthz", self.most)
        self.looks += 1
        self.missed += code != 200
        self.slowest = max(self.slowest, time.monotonic() - started)


class Memory(Task):
    """The greatest resident set seen; `over` the stop mark calls `alarm` once."""

    every = 0.02

    def __init__(self, read, stop_at, alarm):
        super().__init__()
        self.read, self.stop_at, self.alarm = read, stop_at, alarm
        self.base = self.peak = self.last = read()
        self.alarmed = False

    def turn(self):
        self.last = self.read()
        self.peak = max(self.peak, self.last)
        if self.last > self.stop_at and not self.alarmed:
            self.alarmed = True
            self.alarm()
