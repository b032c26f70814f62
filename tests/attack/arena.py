"""One attack's place: the daemon, who must not notice, what is counted, and the judgment."""

import os
import threading
import time

import messages as m
from daemon import MIB, Daemon, rss_of
from honest import Application, Health, Memory, Nodes
from http2 import OK, Closed, Connection, Late
from protobuf import first, parse

ATTACKS = []


def attack(name, title, **needs):
    """Registers an attack: a function of the arena, which may return what is to be done after the judgment."""

    def add(function):
        ATTACKS.append(Attack(name, title, function, **needs))
        return function

    return add


class Attack:
    """`own`: needs a daemon that was started for it; `how`: how that is started (Daemon's arguments), or a function of
    the arena that says so; `plain`: starts what it needs by itself, and nobody honest is watched; `long`: not in the
    short form."""

    def __init__(self, name, title, function, own=False, how=None, plain=False, root=False, long=False):
        self.name, self.title, self.function = name, title, function
        self.own, self.how, self.plain, self.root = own or how is not None, how or {}, plain, root
        self.long = long


class Result:
    """What is printed of an attack. `verdict`: held, broke, skipped, not run, error."""

    def __init__(self, attack):
        self.name, self.title, self.verdict = attack.name, attack.title, "held"
        self.connections = self.sent = 0
        self.rss_before = self.rss_peak = self.rss_after = None
        self.asked = self.in_time = None
        self.slowest = self.health_slowest = None
        self.health_missed = 0
        self.seconds, self.why, self.notes = 0.0, [], []

    def broke(self, why):
        self.verdict = "broke"
        self.why.append(why)


class Skip(Exception):
    """It can't be done here, and why."""


class Arena:
    """What an attack works with."""

    def __init__(self, options, attack):
        self.options, self.attack, self.result = options, attack, Result(attack)
        self.daemon, self.connections, self.overrun = None, [], threading.Event()
        self.nodes = self.application = self.health = self.memory = None
        self.target, self.http, self.admin = options.target, options.http, options.admin
        self.hintctl = options.hintctl
        self.broke, self.notes = self.result.broke, self.result.notes

    def note(self, text):
        self.notes.append(text)

    # Connections

    def connect(self, **how):
        """A connection of the attacker's, closed at the end."""
        connection = Connection(self.target, **how)
        self.keep(connection)
        return connection

    def keep(self, connection):
        self.connections.append(connection)
        self.result.connections += 1

    def ask(self, connection, body, timeout=20, path=m.REQUEST):
        """A call: its status and its answer or None."""
        status, answer, headers = connection.unary(path, body, timeout)
        return status, answer, headers

    def hold(self, seconds, every=0.1, turn=None):
        """Waits, doing `turn` now and then, until memory ran over."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.overrun.is_set():
            if turn:
                turn()
            time.sleep(every)
        return not self.overrun.is_set()

    def drain(self):
        """Takes what came on the attacker's connections."""
        for connection in self.connections:
            if isinstance(connection, Connection):
                try:
                    while connection.pump(0):
                        pass
                except (Closed, OSError, ValueError):
                    pass

    def close_all(self):
        for connection in self.connections:
            self.result.sent += getattr(connection, "sent", 0)
            connection.close()
        self.connections = []

    # What the daemon says of itself

    def status(self):
        """Admin.Status by field number; None without an admin socket."""
        if not self.admin:
            return None
        try:
            with Connection(self.admin, timeout=5) as connection:
                code, answer, _ = connection.unary(m.STATUS, b"", 5)
                return parse(answer) if code == OK else None
        except (Closed, Late):
            return None

    def leases(self):
        found = self.status()
        return None if found is None else first(found, 16, 0)

    def rss(self):
        if self.daemon:
            return self.daemon.rss()
        if self.options.pid:
            return rss_of(self.options.pid)
        found = self.status()
        return first(found, 24, 0) if found else 0

    # A turn

    def run(self):
        """Prepares, attacks, judges; always cleans up."""
        started = time.monotonic()
        try:
            if self.attack.own and not self.options.hintd:
                raise Skip("needs --hintd: a daemon that it starts itself")
            if self.attack.root and os.geteuid() != 0:
                raise Skip("needs root")
            if self.attack.plain:
                self.attack.function(self)
            else:
                self.prepare()
                afterwards = self.attack.function(self)
                self.judge()
                if afterwards:
                    afterwards()
        except Skip as why:
            self.result.verdict, self.result.why = "skipped", [str(why)]
        except (Closed, Late, RuntimeError) as error:
            self.result.verdict, self.result.why = "error", [f"{type(error).__name__}: {error}"]
        finally:
            self.close_all()
            for task in (self.application, self.health, self.memory, self.nodes):
                if task:
                    task.over.set()
            if self.daemon:
                self.daemon.end()
        self.result.seconds = time.monotonic() - started
        return self.result

    def own_daemon(self, **how):
        """Starts a daemon that this attack's end ends."""
        mounts = how.pop("mounts", [])
        self.daemon = Daemon(self.options.hintd, **how)
        self.daemon.mounts += mounts
        if self.options.memory_max:
            self.daemon.bound_memory(int(self.options.memory_max * MIB))
        self.target, self.http, self.admin = self.daemon.grpc, self.daemon.http, self.daemon.admin
        return self.daemon.wait_live()

    def prepare(self):
        if self.options.hintd:
            how = self.attack.how
            self.own_daemon(**(how(self) if callable(how) else how))
        self.bystanders()

    def bystanders(self):
        """Nodes, the honest application, who looks at health, who looks at memory. RuntimeError where even without an
        attack no placement comes."""
        self.nodes = Nodes(self.target)
        self.nodes.connect()
        self.nodes.start()
        self.application = Application(self.target, self.options.deadline)
        until = time.monotonic() + 20
        while True:
            self.application.turn()
            if self.application.in_time:
                break
            if time.monotonic() > until:
                raise RuntimeError(f"no placement even before the attack: {self.application.error}")
            time.sleep(0.2)
        self.application.in_time = self.application.failed = self.application.late = 0
        self.application.slowest, self.application.error = 0.0, ""
        self.memory = Memory(self.rss, self.options.stop_at * MIB, self.alarm)
        if not self.daemon and not self.options.pid:
            self.memory.every = 0.25  # each look is a call
        self.memory.start()
        self.application.start()
        if self.http:
            self.health = Health(self.http)
            self.health.start()

    def alarm(self):
        """Memory passed the mark at which an attack is ended, for the machine's sake."""
        self.overrun.set()
        if self.daemon and self.memory.last > 2 * self.options.stop_at * MIB:
            self.daemon.process.kill()

    def judge(self):
        """Ends the attack and says what held."""
        result, options = self.result, self.options
        application, health, memory = self.application, self.health, self.memory
        # Asked once more while the attack stands: a short attack counts too.
        until = time.monotonic() + options.deadline + 5
        while application.tries() < 5 and time.monotonic() < until:
            time.sleep(0.1)
        application.stop(options.deadline * 3)
        if health:
            health.stop(health.most + 2)
        result.asked, result.in_time, result.slowest = application.tries(), application.in_time, application.slowest
        if result.asked == 0:
            result.broke("no honest placement came to an end")
        elif result.in_time < options.share * result.asked:
            result.broke(
                f"{result.asked - result.in_time} of {result.asked} honest placements had no answer within "
                f"{options.deadline:g} s: {application.error}"
            )
        if health:
            result.health_slowest, result.health_missed = health.slowest, health.missed
            if health.missed:
                result.broke(f"/healthz missed {health.missed} of {health.looks} times")
        result.rss_before, result.rss_peak = memory.base, memory.peak
        if memory.peak - memory.base > options.memory * MIB:
            more = ", ended there" if memory.alarmed else ""
            result.broke(f"memory grew by {(memory.peak - memory.base) / MIB:.0f} MiB{more}")
        if self.daemon and not self.daemon.alive() and not self.ended_on_purpose():
            result.broke(f"the daemon ended with code {self.daemon.process.returncode}")
        if self.nodes.cuts > 1:
            self.note(f"the nodes' stream was cut {self.nodes.cuts} times: {self.nodes.error}")
        self.close_all()
        if self.daemon and self.daemon.alive():
            time.sleep(0.5)
            result.rss_after = self.daemon.rss()

    def ended_on_purpose(self):
        return getattr(self.daemon, "seconds_to_end", None) is not None
