"""Attacks on what belongs to somebody else: its token, its leases, its decisions, its stream."""

import os
import time

import messages as m
from arena import attack
from http2 import OK, Closed, Late, grpc_frame, reason
from protobuf import message, parse, text

_serial = [int(time.time() * 10) % 10**7]


class Victim:
    """An application with four leases. `strict`: a client of today, which sends a nonce; else one of 0.1.0."""

    def __init__(self, arena, strict=True):
        _serial[0] += 1
        self.name = f"application_1650000000000_{_serial[0]}"
        self.connection = arena.connect()
        self.nonce = os.urandom(16) if strict else None
        self.token = ""
        self.hints = self.ask("first")
        self.token = self.hints.token
        if not self.hints.leases:
            raise RuntimeError("the victim has no leases: set placer.guard = false, or make room")

    def ask(self, name):
        """Hints for four containers, or RuntimeError."""
        status, answer, headers = self.connection.unary(m.REQUEST, self.body(name), 10)
        if status != OK:
            raise RuntimeError(f"the victim got no hints: {reason(status, headers)}")
        return m.Hints(answer)

    def body(self, name):
        fields = {}
        if self.nonce:
            fields.update(m.proof(self.nonce, self.token))
        return m.request(f"{self.name}-{name}", self.name, [m.group("map", 4)], fields=fields)

    def release(self):
        """How many leases it had still."""
        body = m.release(self.name, self.token)
        status, answer, headers = self.connection.unary(m.RELEASE, body, 10)
        if status != OK:
            return 0, reason(status, headers)
        return parse(answer).get(1, [0])[0], "OK"


def stranger_asks(arena, victim, how, attempt=1):
    """A request under the victim's id from another connection: status and Hints."""
    body = m.request(f"stranger-{victim.name}-{attempt}", victim.name, [m.group("map", 1)], attempt=attempt)
    status, answer, headers = arena.connect().unary(m.REQUEST, body, 10)
    arena.note(f"{how}: {reason(status, headers)}")
    return m.Hints(answer) if status == OK else None


def harm(arena, victim, what):
    """A client of today must not come to harm; one of 0.1.0 has nothing to show, and is named only."""
    if victim.nonce:
        arena.broke(what)
    else:
        arena.note(f"of a client of 0.1.0: {what}")


def victims(arena):
    return (Victim(arena, strict) for strict in (True, False))


def leases_stay(arena, victim):
    held, said = victim.release()
    if held < len(victim.hints.leases):
        harm(arena, victim, f"{held} of the victim's {len(victim.hints.leases)} leases are left: {said}")


@attack("D4", "a known application id: its token, its request, its answer again")
def known_id(arena):
    for victim in victims(arena):
        found = stranger_asks(arena, victim, "a request under its id")
        if found and found.token:
            kind = "the victim's token" if found.token == victim.token else "a token of its own"
            harm(arena, victim, f"a stranger gets {kind}")
        # The same request again, as a retry that lost its answer: without what only the victim has, then with a guess.
        for guess in (None, os.urandom(16)):
            fields = m.proof(guess) if guess else {}
            body = m.request(f"{victim.name}-first", victim.name, [m.group("map", 4)], fields=fields)
            status, answer, headers = arena.connect().unary(m.REQUEST, body, 10)
            arena.note(f"a repeat {'with another nonce' if guess else 'without proof'}: {reason(status, headers)}")
            if status == OK and m.Hints(answer).token:
                harm(arena, victim, "a repeat without proof gives the token")
        for token in ("", "x" * 32):
            status, _, _ = arena.connect().unary(m.RELEASE, m.release(victim.name, token), 10)
            if status == OK:
                harm(arena, victim, f"its leases are released with the token {token!r}")
        leases_stay(arena, victim)


@attack("D4a", "attempts 2 and 4294967295 of a known application")
def attempt_jump(arena):
    for jump in (2**32 - 1, 2):
        for victim in victims(arena):
            stranger_asks(arena, victim, f"attempt {jump}", attempt=jump)
            time.sleep(0.3)
            try:
                victim.ask("second")
            except RuntimeError as error:
                harm(arena, victim, f"locked out: {error}")
            leases_stay(arena, victim)


@attack("D4b", "a stranger's `done` on the feed of events")
def done_by_a_stranger(arena):
    for victim in victims(arena):
        connection = arena.connect()
        number = connection.open(m.EVENTS)
        items = [message({1: 1, 2: m.hello("attack-events")})]
        items.append(message({1: 2, 3: m.event(victim.name, 8, message({1: 0}))}))
        connection.write(number, b"".join(grpc_frame(item) for item in items))
        try:
            stream = connection.wait(number, 5, for_message=True)
            arena.note(f"the feed says: {refusals(stream)}")
        except Late:
            arena.note("the feed says nothing")
        time.sleep(0.5)
        leases_stay(arena, victim)


def refusals(stream):
    words = []
    for ack in stream.messages():
        for refused in parse(ack).get(3, []):
            words.append(text(parse(refused), 2))
    return words or ("taken" if not stream.ended else reason(stream.status(), stream.headers))


@attack("D4c", "decisions of others by their ids")
def decisions_of_others(arena):
    victim = Victim(arena)
    status, answer, headers = arena.connect().unary(m.EXPLAIN, message({1: victim.hints.decision}), 10)
    arena.note(f"Explain of {victim.hints.decision} without a token: {reason(status, headers)}")
    if status == OK:
        arena.broke("a stranger explains a decision that is not its own")
    other = victim.ask("second").decision
    tails = [int(digits, 16) for digits in (one[-6:] for one in (victim.hints.decision, other)) if is_hex(digits)]
    if len(tails) == 2 and 0 < tails[1] - tails[0] < 16:
        arena.broke(f"ids of decisions can be guessed: {victim.hints.decision}, {other}")


def is_hex(digits):
    try:
        int(digits, 16)
        return True
    except ValueError:
        return False


@attack("D4d", "a Watch under a controller's name, with its acknowledgements")
def watch_taken(arena):
    name = f"controller-{_serial[0]}"
    holder = arena.connect()
    stream = holder.open(m.WATCH)
    holder.write(stream, grpc_frame(m.watch(name, flows=True, installs=True, nonce=os.urandom(16))), end=True)
    holder.wait(stream, 5, for_message=True)
    thief = arena.connect()
    theirs = thief.open(m.WATCH)
    thief.write(theirs, grpc_frame(m.watch(name, flows=True, installs=True)), end=True)
    try:
        taken = thief.wait(theirs, 2, for_message=True)
        said = reason(taken.status(), taken.headers) if taken.ended else "a snapshot"
        arena.note(f"the second Watch of the name gets {said}")
    except Late:
        arena.note("the second Watch of the name gets nothing")
    try:
        holder.wait(stream, 1)
        ended = holder.streams[stream]
        arena.broke(f"the controller's stream ended: {reason(ended.status(), ended.headers)}")
    except Late:
        pass
    except Closed as error:
        arena.broke(f"the controller's connection ended: {error}")
    status, _, headers = arena.connect().unary("/hintd.v1.Routes/Acknowledge", message({1: name, 2: 1}), 5)
    arena.note(f"an acknowledgement in its name: {reason(status, headers)}")
