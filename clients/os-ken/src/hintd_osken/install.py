"""Installs routes: rules of the daemon become entries of switches, are confirmed by barriers, and then acknowledged.

One thread does all of it, updates of routes first, then default forwarding, then comparing switches with what they
should hold. Planned changes are confirmed hop by hop, from the egress; after a failure all hops are sent at once, egress
first, and confirmed together.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol

from hintd_client._generated.hintd.v1 import routes_pb2

from .chains import hops
from .forwarding import FAR, Base
from .graph import Graph
from .model import Action, Match, PortAt, Rule, match, outputs
from .openflow import Away, Unanswered
from .options import Options
from .table import Command, Layer, Table, Untranslatable, translate

log = logging.getLogger("hintd_osken.install")

# Changes of default forwarding sent before routes get their turn.
CHUNK = 256
# Tries of commands whose switch went away meanwhile: all switches may be starting anew, and a refused route stays refused.
TRIES = 3
# Pair: sender, receiver, class.
Pair = tuple[str, str, str]


class Board(Protocol):
    """The switches, as far as an installer needs them."""

    def apply(self, commands: list[Command], timeout: float) -> list[str | None]: ...

    def rules(self, dpid: int, cookie: int, timeout: float) -> list[Rule]: ...

    def connected(self) -> set[int]: ...

    def wait_for(self, dpids: set[int], timeout: float) -> None: ...


@dataclass(frozen=True)
class View:
    """The network as it is installed on: in names, and default forwarding with how far it is from destinations."""

    graph: Graph
    base: Base
    far: dict[tuple[int, str], int]


@dataclass(frozen=True)
class Offered:
    """An update, the life of the watch that it came from, and how it is acknowledged."""

    life: int
    update: routes_pb2.RouteUpdate
    acknowledge: Callable[[int, dict[Pair, str]], None]


def pair_of(pair: routes_pb2.HostPair) -> Pair:
    """A pair as a key."""
    return pair.src, pair.dst, getattr(pair, "class")


def dead_ports(graph: Graph) -> set[PortAt]:
    """Ports of links between switches that carry nothing now."""
    live = {end for ends in graph.live().values() for pair in ends for end in pair}
    ends = {end for link in graph.links.values() if isinstance(link.b, PortAt) for end in (link.a, link.b)}
    return ends - live


def leads_to(dpid: int, actions: tuple[Action, ...], dead: set[PortAt]) -> bool:
    """Whether an entry sends to one of these ports."""
    return any(kind == "output" and PortAt(dpid, int(port)) in dead for kind, port in actions)


class Installer(threading.Thread):
    """Owns what switches are to have."""

    def __init__(self, options: Options, board: Board, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(name="install", daemon=True)
        self._options, self._board, self._clock = options, board, clock
        self.table = Table(options.marks)
        self._changed = threading.Condition()
        self._updates: deque[Offered] = deque()
        self._life = 0
        self._view: View | None = None
        self._view_seen: View | None = None
        self._suspects: set[int] = set()
        self._stopping = False
        # Entries of routes as they were made, by switch's name and pair: a host's address may be another when they go.
        self._laid: dict[tuple[str, Pair], tuple[int, Match]] = {}
        # Entries of chained routes: switch, match, and how far above routes.
        self._chained: dict[Pair, list[tuple[int, Match, int]]] = {}
        self._base: deque[Command] = deque()
        self._audited = clock()
        self._instance = ""
        # Entries that nobody wants yet stay until then: an earlier life, of ours or of hintd, made them.
        self._orphans_until = clock() + options.orphans
        # What may make a refused route possible: switches that connect, hosts that are heard. Routes are watched anew then,
        # which makes hintd try again; but not again before this time.
        self.watch_anew: Callable[[], None] = lambda: None
        self._news = 0
        self._refused_at: int | None = None
        self._not_anew_before = float("-inf")
        # Whether hintd is heard; when routes over links that are down are given up, if it says no others; whether any were.
        self._heard = False
        self._give_up_at: float | None = None
        self._gave_up = False
        # Whether hintd has told all routes; without that no route's entry is nobody's.
        self._routes_known = not options.install

    # --- from other threads ----------------------------------------------------------------------------------------

    def new_life(self) -> int:
        """A new watch begins: what came from earlier ones counts no more."""
        with self._changed:
            self._life += 1
            self._updates.clear()
            self._changed.notify_all()
            return self._life

    def offer(self, offered: Offered) -> None:
        """Queues an update; waits while `updates_most` wait, so that hintd is not read on meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or len(self._updates) < self._options.updates_most)
            if offered.life == self._life:
                self._heard = True
                self._updates.append(offered)
                self._changed.notify_all()

    def unheard(self) -> None:
        """hintd is away: who waits for other routes of it waits no more."""
        with self._changed:
            self._heard = False
            if self._give_up_at is not None:
                self._give_up_at = self._clock()
            self._changed.notify_all()

    def show(self, view: View) -> None:
        """The network is this now."""
        with self._changed:
            if self._view is not None and self._view.graph.hosts != view.graph.hosts:
                self._news += 1
            if dead_ports(view.graph) - (dead_ports(self._view.graph) if self._view is not None else set()):
                self._give_up_at = self._clock() + (self._options.confirm if self._heard else 0.0)
            self._view = view
            self._changed.notify_all()

    def joined(self, dpid: int) -> None:
        """A switch connected."""
        with self._changed:
            self._news += 1
        self.suspect(dpid)

    def suspect(self, dpid: int) -> None:
        """A switch may not hold what it should: it is compared soon."""
        with self._changed:
            self._suspects.add(dpid)
            self._changed.notify_all()

    def stop(self) -> None:
        """Ends the thread; entries stay."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    # --- the thread ------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Installs for ever."""
        while not self._stopping:
            try:
                self.turn()
            except Exception:  # what is wrong with one update must not end all later ones
                log.exception("installing failed; all switches are compared")
                with self._changed:
                    self._suspects |= self._board.connected()
                time.sleep(1.0)

    def turn(self) -> None:
        """Waits for one thing to do, and does it."""
        with self._changed:
            due = min(self._audited + self._options.audit, self._give_up_at if self._give_up_at is not None else float("inf"))
            self._changed.wait_for(self._busy, timeout=max(0.0, due - self._clock()))
            if self._stopping:
                return
            offered = self._updates.popleft() if self._updates and self._view is not None else None
            view = self._view
            if offered is not None:
                self._changed.notify_all()  # there is room again
        if view is not None and view is not self._view_seen:
            self._view_seen = view
            if self._options.forward:
                self._look_at(view)
        if offered is not None and view is not None:
            self._update(offered, view.graph)
        elif self._base:
            self._send_base()
        elif self._late() and view is not None:
            self._give_up(view.graph)
        else:
            self._audit_one()
            self._retry_refused()

    def _retry_refused(self) -> None:
        with self._changed:
            if self._refused_at is None or self._news == self._refused_at or self._clock() < self._not_anew_before:
                return
            self._refused_at = None
            self._not_anew_before = self._clock() + self._options.backoff
        log.info("routes that were refused may be possible now: routes are watched anew")
        self.watch_anew()

    def _busy(self) -> bool:
        updates = bool(self._updates) and self._view is not None
        return self._stopping or updates or bool(self._base or self._suspects) or self._view is not self._view_seen

    # --- default forwarding ----------------------------------------------------------------------------------------

    def _look_at(self, view: View) -> None:
        """Notes what the network's change means for default forwarding."""
        old = self.table.of_layer(Layer.BASE)
        wanted = {(dpid, match(eth_dst=mac)): ((dpid, mac), outputs(ports)) for (dpid, mac), ports in view.base.items()}
        ordered = sorted(wanted.items(), key=lambda item: (view.far.get(item[1][0], FAR), item[0][0]))
        for (dpid, matches), (_, actions) in ordered:
            if old.get((dpid, matches)) != actions:
                self._base.append(self.table.want(dpid, Layer.BASE, matches, actions))
        for dpid, matches in old:
            if (dpid, matches) not in wanted:
                self._base.append(self.table.drop(dpid, Layer.BASE, matches))

    def _send_base(self) -> None:
        part = [self._base.popleft() for _ in range(min(CHUNK, len(self._base)))]
        for command, error in zip(part, self._board.apply(part, self._options.confirm)):
            if error is not None:
                log.debug("default forwarding: %s; it follows when the switch is compared", error)
                if command.dpid in self._board.connected():
                    self.suspect(command.dpid)

    # --- routes ----------------------------------------------------------------------------------------------------

    def _update(self, offered: Offered, graph: Graph) -> None:
        """Applies an update and acknowledges it, with what could not be installed."""
        update, began, news = offered.update, self._clock(), self._news
        if update.snapshot:
            self._begin_anew(update.instance_id)
        waves, refused = self._plan(update, graph)
        for wave in waves:
            self._wave(wave, refused)
        for pair, reason in refused.items():
            log.warning("the route from %s to %s can't be installed: %s", pair[0], pair[1], reason)
            self._refused_at = news
        self._forget(refused)
        took = (self._clock() - began) * 1000
        phase = routes_pb2.RoutePhase.Name(update.phase).removeprefix("ROUTE_PHASE_").lower()
        log.info("routes are installed: update %d (%s, %s), %d rules in %d waves, %d routes refused, confirmed in %.1f ms",
                 update.number, phase, update.cause, len(update.rules), len(waves), len(refused), took)
        offered.acknowledge(update.number, refused)
        # Later updates name what changes, and of routes that were given up nothing is left to be changed.
        again, self._gave_up = self._gave_up and not update.snapshot, False
        if again:
            self.watch_anew()

    def _begin_anew(self, instance: str) -> None:
        self.table.forget_routes()
        self._laid.clear()
        self._chained.clear()
        self._routes_known = True
        if instance != self._instance:
            self._instance = instance
            self._orphans_until = self._clock() + self._options.orphans
        with self._changed:
            self._suspects |= self._board.connected()

    def _plan(self, update: routes_pb2.RouteUpdate, graph: Graph) -> tuple[list[list[tuple[Pair, Command]]], dict[Pair, str]]:
        """Rules as commands, in waves that are confirmed one after another."""
        waves: list[list[tuple[Pair, Command]]] = []
        refused: dict[Pair, str] = {}
        hops: dict[Pair, int] = {}
        for rule in update.rules:
            pair = pair_of(rule.pair)
            try:
                commands = self._commands(rule, pair, graph)
            except Untranslatable as error:
                refused[pair] = str(error)
                continue
            if not commands:
                continue
            hop = hops.get(pair, 0)
            hops[pair] = hop + 1
            wave = hop if update.phase == routes_pb2.ROUTE_PHASE_MAKE else 0
            while len(waves) <= wave:
                waves.append([])
            waves[wave] += [(pair, command) for command in commands]
        self._plan_chains(update, graph, waves, refused)
        return waves, refused

    def _plan_chains(
        self, update: routes_pb2.RouteUpdate, graph: Graph, waves: list[list[tuple[Pair, Command]]], refused: dict[Pair, str]
    ) -> None:
        """hintd sends no rules for what passes boxes: they are made of the route. Each hop is a wave, from the egress; what is
        left of the old way goes last."""
        late: list[tuple[Pair, Command]] = []
        routes = [(pair_of(route.pair), route) for route in update.routes]
        changed: list[tuple[Pair, routes_pb2.Route | None]] = [(pair, route) for pair, route in routes if pair[2]]
        changed += [(pair_of(pair), None) for pair in update.removed if pair_of(pair)[2]]
        for pair, route in changed:
            try:
                way = hops(route, graph, self._options.chains) if route is not None else []
            except Untranslatable as error:
                refused[pair], way = str(error), []
            old = self._chained.pop(pair, [])
            new = [(hop.dpid, hop.match, hop.above) for hop in way]
            if new:
                self._chained[pair] = new
            for number, hop in enumerate(way):
                while len(waves) <= number:
                    waves.append([])
                waves[number].append((pair, self.table.want(hop.dpid, Layer.CHAIN, hop.match, hop.actions, hop.above)))
            for dpid, matches, above in old:
                if (dpid, matches, above) not in new:
                    late.append((pair, self.table.drop(dpid, Layer.CHAIN, matches, above)))
        if late:
            waves.append(late)

    def _commands(self, rule: routes_pb2.RuleChange, pair: Pair, graph: Graph) -> list[Command]:
        key = rule.switch, pair
        old = self._laid.get(key)
        if rule.WhichOneof("action") == "install":
            new = translate(rule, graph)
            assert new.port is not None  # an install has a port
            at = new.dpid, new.match
            commands = [self.table.want(new.dpid, Layer.ROUTE, new.match, outputs({new.port}))]
            self._laid[key] = at
            if old is not None and old != at:
                commands.append(self.table.drop(old[0], Layer.ROUTE, old[1]))
            return commands
        self._laid.pop(key, None)
        if old is None:
            try:
                found = translate(rule, graph)
            except Untranslatable:
                return []  # what is not there need not go
            old = found.dpid, found.match
        return [self.table.drop(old[0], Layer.ROUTE, old[1])]

    def _wave(self, steps: list[tuple[Pair, Command]], refused: dict[Pair, str]) -> None:
        """Sends a wave and waits until switches confirm it; what they do not is noted for its pairs."""
        send = [(pair, command) for pair, command in steps if pair not in refused or not command.add]
        for tried in range(1, TRIES + 1):
            again, failed = [], []
            results = self._board.apply([command for _, command in send], self._options.confirm)
            for (pair, command), error in zip(send, results):
                if isinstance(error, Away) and command.add and tried < TRIES:
                    again.append((pair, command))
                elif error is not None:
                    failed.append((pair, command, error))
            self._failed(failed, refused)
            if not again:
                return
            send = again
            self._board.wait_for({command.dpid for _, command in send}, self._options.confirm)

    def _failed(self, failed: list[tuple[Pair, Command, str]], refused: dict[Pair, str]) -> None:
        for pair, command, error in failed:
            if command.add:
                refused.setdefault(pair, error)
            elif command.dpid in self._board.connected():
                # The pair's route is none the worse for it.
                self.suspect(command.dpid)

    def _late(self) -> bool:
        """Whether routes over links that are down have waited for long enough; told once."""
        with self._changed:
            late = self._give_up_at is not None and self._clock() >= self._give_up_at
            if late:
                self._give_up_at = None
            return late

    def _give_up(self, graph: Graph) -> None:
        """Routes over links that are down go, for hintd said no others in time: default forwarding has a way around."""
        dead, actions = dead_ports(graph), self.table.of_layer(Layer.ROUTE)
        pairs = {pair for (_, pair), (dpid, matches) in self._laid.items()
                 if leads_to(dpid, actions.get((dpid, matches), ()), dead)}
        if pairs:
            log.warning("routes of %d pairs over links that are down are given up, for hintd %s; default forwarding carries them",
                        len(pairs), "says no others" if self._heard else "is away")
            self._gave_up = True
            self._forget(pairs)
        if self._orphans_kept():
            self._give_up_orphans(dead)

    def _orphans_kept(self) -> bool:
        """Whether entries that nobody wants stay for now."""
        return not (self._routes_known and self._clock() >= self._orphans_until)

    def _give_up_orphans(self, dead: set[PortAt]) -> None:
        """The same of routes from an earlier life, which are known by what switches show."""
        found: list[Command] = []
        for dpid in sorted(self._board.connected()):
            try:
                shown = self._board.rules(dpid, self._options.cookie, self._options.confirm)
            except Unanswered as error:
                log.warning("%s; its routes over links that are down stay until it is compared", error)
                continue
            found += [command for command in self.table.differences(dpid, shown)[1] if command.rule.cookie & 0xFF == Layer.ROUTE]
        ends = {command.rule.match for command in found if leads_to(command.dpid, command.rule.actions, dead)}
        commands = [command for command in found if command.rule.match in ends]
        if commands:
            log.warning("routes of %d pairs from an earlier life over links that are down are given up", len(ends))
            self._board.apply(commands, self._options.confirm)

    def _forget(self, pairs: Collection[Pair]) -> None:
        """Pairs that are refused or given up have no entries: half a path is none. What can't be removed now is left to the audit."""
        gone = [key for key in self._laid if key[1] in pairs] if pairs else []
        commands = [self.table.drop(at[0], Layer.ROUTE, at[1]) for at in map(self._laid.pop, gone)]
        for pair in pairs:
            for dpid, matches, above in self._chained.pop(pair, []):
                commands.append(self.table.drop(dpid, Layer.CHAIN, matches, above))
        for command, error in zip(commands, self._board.apply(commands, self._options.confirm)):
            if error is not None and command.dpid in self._board.connected():
                self.suspect(command.dpid)

    # --- comparing -------------------------------------------------------------------------------------------------

    def _audit_one(self) -> None:
        """Compares a switch with what it should hold."""
        with self._changed:
            if self._clock() >= self._audited + self._options.audit:
                self._audited = self._clock()
                self._suspects |= self._board.connected()
            if not self._suspects:
                return
            dpid = self._suspects.pop()
        try:
            shown = self._board.rules(dpid, self._options.cookie, self._options.confirm)
        except Unanswered as error:
            log.warning("%s; it is asked again with the next audit, or when it connects", error)
            return
        lacking, surplus = self.table.differences(dpid, shown)
        if self._orphans_kept():
            surplus = []
        errors = [error for error in self._board.apply(lacking + surplus, self._options.confirm) if error is not None]
        if lacking or surplus:
            log.info("switch %016x: %d entries put back, %d of nobody removed, %d not taken%s", dpid, len(lacking),
                     len(surplus), len(errors), f": {errors[0]}" if errors else "")


def as_refusals(refused: dict[Pair, str]) -> list[Any]:
    """Refused pairs as hintd wants them."""
    return [
        routes_pb2.RouteRefusal(pair=routes_pb2.HostPair(src=src, dst=dst, **{"class": name}), reason=reason)
        for (src, dst, name), reason in refused.items()
    ]
