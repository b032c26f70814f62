"""The entries that switches are to have, and what a switch lacks or has too many of. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from hintd_client._generated.hintd.v1 import routes_pb2

from .graph import Graph
from .model import COOKIE_MASK, CONTROLLER, Action, Match, Rule, match, outputs


class Layer(IntEnum):
    """What entries are for: the lowest 8 bits of their cookies."""

    ROUTE = 1
    BASE = 2
    # Probes of links come to the controller.
    PROBE = 3
    # Chained routes.
    CHAIN = 4


@dataclass(frozen=True)
class Marks:
    """How own entries are told: the upper 56 bits of the cookie, and priorities."""

    cookie: int = 0x0068696E74640000
    priority: int = 1000
    base_priority: int = 10

    def rule(self, layer: Layer, matches: Match, actions: tuple[Action, ...], above: int = 0) -> Rule:
        """An entry of a layer; `above` is added to its priority."""
        priority = {
            Layer.ROUTE: self.priority, Layer.BASE: self.base_priority, Layer.PROBE: 0xFFFF, Layer.CHAIN: self.priority
        }[layer]
        return Rule(self.cookie & COOKIE_MASK | layer, priority + above, matches, actions)

    def own(self, rule: Rule) -> bool:
        """Whether an entry is ours."""
        return rule.cookie & COOKIE_MASK == self.cookie & COOKIE_MASK

    def probe(self) -> Rule:
        """The entry that every switch has while it is ours: probes go to the controller."""
        return self.rule(Layer.PROBE, match(eth_type=0x88CC, eth_dst="01:80:c2:00:00:0e"), outputs({CONTROLLER}))


@dataclass(frozen=True)
class Command:
    """Adds an entry (in place of one with the same match and priority), or removes it."""

    dpid: int
    rule: Rule
    add: bool = True


class Table:
    """What switches are to have."""

    def __init__(self, marks: Marks) -> None:
        self.marks = marks
        self._wanted: dict[int, dict[tuple[int, Match], Rule]] = {}

    def want(self, dpid: int, layer: Layer, matches: Match, actions: tuple[Action, ...], above: int = 0) -> Command:
        """Wants an entry from now on."""
        rule = self.marks.rule(layer, matches, actions, above)
        self._wanted.setdefault(dpid, {})[rule.key] = rule
        return Command(dpid, rule)

    def drop(self, dpid: int, layer: Layer, matches: Match, above: int = 0) -> Command:
        """Wants an entry no more."""
        rule = self.marks.rule(layer, matches, (), above)
        self._wanted.get(dpid, {}).pop(rule.key, None)
        return Command(dpid, rule, add=False)

    def of_layer(self, layer: Layer) -> dict[tuple[int, Match], tuple[Action, ...]]:
        """Actions of a layer's entries, by where they are wanted."""
        return {
            (dpid, rule.match): rule.actions
            for dpid, rules in self._wanted.items()
            for rule in rules.values()
            if rule.cookie & 0xFF == layer
        }

    def forget_routes(self) -> None:
        """Wants no route, chained or not."""
        for rules in self._wanted.values():
            for key in [key for key, rule in rules.items() if rule.cookie & 0xFF in (Layer.ROUTE, Layer.CHAIN)]:
                del rules[key]

    def differences(self, dpid: int, found: list[Rule]) -> tuple[list[Command], list[Command]]:
        """What a switch lacks, and what it has of ours that nobody wants."""
        wanted = {**self._wanted.get(dpid, {}), self.marks.probe().key: self.marks.probe()}
        own = {rule.key: rule for rule in found if self.marks.own(rule)}
        lacking = [Command(dpid, rule) for key, rule in wanted.items() if own.get(key) != rule]
        surplus = [Command(dpid, rule, add=False) for key, rule in own.items() if key not in wanted]
        return lacking, surplus


class Untranslatable(Exception):
    """Why a rule can't be an entry."""


@dataclass(frozen=True)
class Translated:
    """A rule in OpenFlow's terms; without a port it is to be removed."""

    dpid: int
    match: Match
    port: int | None


def translate(rule: routes_pb2.RuleChange, graph: Graph) -> Translated:
    """A rule in OpenFlow's terms. Raises `Untranslatable`."""
    switch = graph.switches.get(rule.switch)
    if switch is None:
        raise Untranslatable(f'switch "{rule.switch}" is not one of this controller\'s')
    matches = ends(rule.pair, graph)
    if rule.WhichOneof("action") != "install":
        return Translated(switch.dpid, matches, None)
    if not switch.up:
        raise Untranslatable(f'switch "{rule.switch}" is not connected to its controller')
    at = graph.port(rule.switch, rule.install.link)
    if at is None:
        raise Untranslatable(f'switch "{rule.switch}" has no port on link "{rule.install.link}"')
    return Translated(switch.dpid, matches, at.port)


def ends(pair: routes_pb2.HostPair, graph: Graph) -> Match:
    """The match of a pair's packets. Raises `Untranslatable`."""
    if getattr(pair, "class"):
        raise Untranslatable(f'traffic class "{getattr(pair, "class")}" can\'t be told apart by addresses')
    return match(eth_src=address(pair.src, graph), eth_dst=address(pair.dst, graph))


def address(host: str, graph: Graph) -> str:
    """The hardware address of a host's packets. Raises `Untranslatable`."""
    found = graph.address(host)
    if found is None:
        raise Untranslatable(f'no address of host "{host}" was heard')
    return found
