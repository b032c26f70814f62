"""Paths to entries, their order, what is refused, and comparing with what switches show."""

from __future__ import annotations

import unittest

from hintd_client._generated.hintd.v1 import routes_pb2 as wire
from hintd_osken.forwarding import base
from hintd_osken.install import Installer, Offered, Pair, View
from hintd_osken.model import PortAt, PortSeen, Rule, match, outputs
from hintd_osken.openflow import Away, Unanswered
from hintd_osken.options import Options
from hintd_osken.table import Command, Layer, Marks, Table, Untranslatable, translate

from .small import graph, inventory

PAIR = wire.HostPair(src="node-1", dst="node-2")
ENDS = match(eth_src="02:00:00:00:00:01", eth_dst="02:00:00:00:00:02")
KEY: Pair = ("node-1", "node-2", "")


class Switches:
    """Switches that do what they are told, unless they are away or refuse."""

    def __init__(self) -> None:
        self.tables: dict[int, dict[object, Rule]] = {dpid: {} for dpid in (1, 2, 17, 18)}
        self.away: set[int] = set()
        self.refuses: set[int] = set()
        # Whether those that are away come back when they are waited for.
        self.returns = False
        self.batches: list[list[tuple[int, bool]]] = []

    def apply(self, commands: list[Command], timeout: float) -> list[str | None]:
        if commands:
            self.batches.append([(command.dpid, command.add) for command in commands])
        return [self._take(command) for command in commands]

    def _take(self, command: Command) -> str | None:
        if command.dpid in self.away:
            return Away("away")
        if command.dpid in self.refuses and command.add:
            return "table full"
        if command.add:
            self.tables[command.dpid][command.rule.key] = command.rule
        else:
            self.tables[command.dpid].pop(command.rule.key, None)
        return None

    def rules(self, dpid: int, cookie: int, timeout: float) -> list[Rule]:
        if dpid in self.away:
            raise Unanswered("away")
        return list(self.tables[dpid].values())

    def connected(self) -> set[int]:
        return set(self.tables) - self.away

    def wait_for(self, dpids: set[int], timeout: float) -> None:
        if self.returns:
            self.away.clear()

    def routes(self) -> dict[int, object]:
        return {dpid: rule.actions[0][1] for dpid, table in self.tables.items() for rule in table.values()
                if rule.cookie & 0xFF == Layer.ROUTE}


def install(switch: str, link: str, pair: wire.HostPair = PAIR) -> wire.RuleChange:
    return wire.RuleChange(switch=switch, pair=pair, install=wire.InstallRule(link=link, next=""))


def remove(switch: str) -> wire.RuleChange:
    return wire.RuleChange(switch=switch, pair=PAIR, remove=wire.RemoveRule())


# From the egress to the ingress, as hintd sends them.
BY_SPINE1 = [install("leaf2", "leaf2:3-node-2"), install("spine1", "leaf2:1-spine1:2"),
             install("leaf1", "leaf1:1-spine1:1")]
BY_SPINE2 = [install("spine2", "leaf2:2-spine2:2"), install("leaf1", "leaf1:2-spine2:1")]


class World:
    """An installer with its switches and a clock that is set by hand."""

    def __init__(self, **options: object) -> None:
        self.now = 0.0
        self.switches = Switches()
        self.installer = Installer(Options(**options), self.switches, clock=lambda: self.now)  # type: ignore[arg-type]
        self.acknowledged: list[tuple[int, dict[Pair, str]]] = []
        self.inventory = inventory()
        self.life = self.installer.new_life()
        self.show()

    def show(self) -> None:
        found = graph(self.inventory)
        self.installer.show(View(found, *base(found, self.inventory, 30.0)))

    def update(self, number: int, phase: str, rules: list[wire.RuleChange], **more: object) -> None:
        update = wire.RouteUpdate(number=number, phase=f"ROUTE_PHASE_{phase}", rules=rules, **more)  # type: ignore[arg-type]
        self.installer.offer(Offered(self.life, update, lambda number, refused: self.acknowledged.append((number, refused))))
        self.installer.turn()


class TranslateTest(unittest.TestCase):
    def test_a_rule_becomes_the_entry_that_the_adapter_for_ryu_makes(self) -> None:
        found = translate(BY_SPINE1[1], graph(inventory()))
        self.assertEqual((found.dpid, found.match, found.port), (17, ENDS, 2))
        rule = Table(Marks()).want(found.dpid, Layer.ROUTE, found.match, outputs({2})).rule
        self.assertEqual((rule.cookie, rule.priority), (0x0068696E74640001, 1000))
        self.assertEqual(rule.match, (("eth_dst", "02:00:00:00:00:02"), ("eth_src", "02:00:00:00:00:01")))
        self.assertEqual(rule.actions, (("output", 2),))

    def test_what_cannot_be_an_entry_says_why(self) -> None:
        found = inventory()
        found.switch_gone(17, 20.0)
        found.tick(21.0)
        net = graph(found)
        wrong = {
            '"moon" is not one': install("moon", "x"),
            "not connected": BY_SPINE1[1],
            "no port on link": install("leaf1", "leaf2:1-spine1:2"),
            'no address of host "node-9"': install("leaf1", "x", wire.HostPair(src="node-9", dst="node-2")),
            'traffic class "web"': install("leaf1", "x", wire.HostPair(src="node-1", dst="node-2", **{"class": "web"})),
        }
        for text, rule in wrong.items():
            with self.assertRaisesRegex(Untranslatable, text):
                translate(rule, net)


class InstallerTest(unittest.TestCase):
    def test_a_planned_change_goes_hop_by_hop_from_the_egress_and_then_is_acknowledged(self) -> None:
        world = World()
        world.update(1, "MAKE", BY_SPINE1)
        self.assertEqual(world.switches.batches, [[(2, True)], [(17, True)], [(1, True)]])
        self.assertEqual(world.switches.routes(), {2: 3, 17: 2, 1: 1})
        self.assertEqual(world.acknowledged, [(1, {})])

    def test_after_a_failure_all_hops_go_at_once_in_order(self) -> None:
        world = World()
        world.update(1, "MAKE", BY_SPINE1)
        world.switches.batches.clear()
        world.update(2, "FAILOVER", [*BY_SPINE2, remove("spine1")])
        self.assertEqual(world.switches.batches, [[(18, True), (1, True), (17, False)]])
        self.assertEqual(world.switches.routes(), {2: 3, 18: 2, 1: 2})

    def cut(self, world: World) -> None:
        """The link between leaf1 and spine1 is down at both ends."""
        for dpid, port in ((1, 1), (17, 1)):
            world.inventory.port(PortAt(dpid, port), PortSeen(port, False, 10**10), 30.0)
        world.show()

    def turns(self, world: World) -> None:
        """Whatever is due now."""
        for _ in range(5):
            world.installer.suspect(1)  # there is always something to do, so that no turn waits
            world.installer.turn()

    def test_without_hintd_a_route_over_a_dead_link_goes_at_once(self) -> None:
        world = World(forward=True)
        world.update(1, "INITIAL", BY_SPINE1, snapshot=True)
        world.installer.unheard()
        self.cut(world)
        self.turns(world)
        self.assertEqual(world.switches.routes(), {})
        carried = [rule.actions for rule in world.switches.tables[1].values() if rule.match == match(eth_dst="02:00:00:00:00:02")]
        self.assertEqual(carried, [outputs({2})], "default forwarding goes around")

    def test_a_route_over_a_dead_link_goes_when_hintd_says_no_other_in_time(self) -> None:
        world, anew = World(), []
        world.installer.watch_anew = lambda: anew.append(1)
        world.update(1, "INITIAL", BY_SPINE1, snapshot=True)
        self.cut(world)
        self.turns(world)
        self.assertEqual(world.switches.routes(), {2: 3, 17: 2, 1: 1}, "hintd has its time")
        world.now = 1.1
        self.turns(world)
        self.assertEqual((world.switches.routes(), anew), ({}, []))
        # What it says after that names changes of routes that are gone: all of them are wanted anew.
        world.update(2, "FAILOVER", BY_SPINE2)
        self.assertEqual(anew, [1])
        world.update(3, "INITIAL", [BY_SPINE1[0], *BY_SPINE2], snapshot=True)
        self.assertEqual((world.switches.routes(), anew), ({2: 3, 18: 2, 1: 2}, [1]))

    def test_a_route_of_an_earlier_life_over_a_dead_link_goes_whole(self) -> None:
        earlier = World()
        other = wire.HostPair(src="node-2", dst="node-1")
        earlier.update(1, "INITIAL", [*BY_SPINE1, install("spine2", "leaf1:2-spine2:1", other)], snapshot=True)
        world = World()
        world.switches.tables = earlier.switches.tables
        self.turns(world)
        self.assertEqual(world.switches.routes(), {2: 3, 17: 2, 1: 1, 18: 1}, "nobody said yet that it is not wanted")
        self.cut(world)
        self.turns(world)
        self.assertEqual(world.switches.routes(), {18: 1}, "the other pair's way is whole")

    def test_a_route_that_hintd_moved_in_time_stays(self) -> None:
        world = World()
        world.update(1, "INITIAL", BY_SPINE1, snapshot=True)
        self.cut(world)
        world.update(2, "FAILOVER", [*BY_SPINE2, remove("spine1")])
        world.now = 1.1
        self.turns(world)
        self.assertEqual(world.switches.routes(), {2: 3, 18: 2, 1: 2})

    def test_a_refused_entry_refuses_its_pair_and_takes_the_others_away(self) -> None:
        for trouble in ("away", "refuses"):
            world = World()
            getattr(world.switches, trouble).add(17)
            world.update(1, "MAKE", BY_SPINE1)
            self.assertEqual(world.switches.routes(), {})
            ((number, refused),) = world.acknowledged
            self.assertEqual((number, list(refused)), (1, [KEY]))
            self.assertNotIn([(1, True)], world.switches.batches, "the ingress is not sent into nothing")

    def test_a_switch_that_comes_back_meanwhile_gets_its_entry_and_the_pair_is_not_refused(self) -> None:
        world = World()
        world.switches.away, world.switches.returns = {2, 17}, True
        world.update(1, "FAILOVER", BY_SPINE1)
        self.assertEqual(world.switches.batches, [[(2, True), (17, True), (1, True)], [(2, True), (17, True)]])
        self.assertEqual(world.switches.routes(), {2: 3, 17: 2, 1: 1})
        self.assertEqual(world.acknowledged, [(1, {})])

    def test_routes_are_watched_anew_when_a_switch_that_refused_one_is_back(self) -> None:
        world, asked = World(), []
        world.installer.watch_anew = lambda: asked.append(world.now)
        world.switches.away.add(17)
        world.update(1, "FAILOVER", BY_SPINE1)
        world.now = 11.0
        world.installer.turn()
        self.assertEqual(asked, [], "nothing is new")
        world.installer.joined(17)
        for _ in range(3):
            world.installer.turn()
        self.assertEqual(asked, [11.0])

    def test_removing_what_is_not_there_is_done(self) -> None:
        world = World()
        world.switches.away.add(17)
        world.update(1, "BREAK", [remove("spine1"), remove("moon")])
        self.assertEqual(world.acknowledged, [(1, {})])

    def test_an_entry_goes_by_the_address_it_was_made_with(self) -> None:
        world = World()
        world.update(1, "MAKE", BY_SPINE1)
        # node-1 gets a second link, whose name comes first, and with it another address.
        world.inventory.packet("02:00:00:00:00:0a", None, PortAt(1, 3), 10.0)
        world.inventory.port(PortAt(1, 3), PortSeen(3, True, 0), 10.0)
        world.show()
        world.update(2, "BREAK", [remove("spine1"), remove("leaf1"), remove("leaf2")])
        self.assertEqual(world.switches.routes(), {})

    def test_a_chains_route_is_refused_and_not_taken_for_installed(self) -> None:
        world = World()
        pair = wire.HostPair(src="node-1", dst="node-2", **{"class": "web"})
        route = wire.Route(pair=pair, vertices=["node-1", "leaf1", "node-2"], links=["a", "b"])
        world.update(1, "MAKE", [], routes=[route])
        self.assertEqual([list(refused) for _, refused in world.acknowledged], [[("node-1", "node-2", "web")]])

    def test_updates_of_an_earlier_watch_are_dropped(self) -> None:
        world = World()
        old, world.life = world.life, world.installer.new_life()
        update = wire.RouteUpdate(number=9, rules=BY_SPINE1)
        world.installer.offer(Offered(old, update, lambda *_: self.fail("acknowledged")))
        world.update(1, "INITIAL", BY_SPINE2, snapshot=True)
        self.assertEqual(world.switches.routes(), {18: 2, 1: 2})


class AuditTest(unittest.TestCase):
    def audit(self, world: World) -> None:
        for dpid in world.switches.connected():
            world.installer.suspect(dpid)
            world.installer.turn()

    def test_a_switch_that_lost_its_table_gets_it_back(self) -> None:
        world = World()
        world.update(1, "MAKE", BY_SPINE1)
        world.switches.tables[17].clear()
        self.audit(world)
        self.assertEqual(world.switches.routes(), {2: 3, 17: 2, 1: 1})
        self.assertIn(Marks().probe(), world.switches.tables[17].values())

    def test_entries_of_nobody_go_after_their_time_and_others_stay(self) -> None:
        world = World(orphans=60.0)
        marks = Marks()
        odd = marks.rule(Layer.ROUTE, match(eth_dst="02:00:00:00:00:77"), outputs({3}))
        foreign = Rule(77, 5, match(eth_dst="02:00:00:00:00:78"), outputs({3}))
        for rule in (odd, foreign):
            world.switches.tables[1][rule.key] = rule
        world.now = 61.0
        self.audit(world)
        self.assertIn(odd.key, world.switches.tables[1], "hintd has not told its routes yet")
        world.update(1, "INITIAL", BY_SPINE1, snapshot=True, instance_id="a")
        self.audit(world)
        self.assertIn(odd.key, world.switches.tables[1], "hintd is new: it may still come to want it")
        world.now = 122.0
        self.audit(world)
        self.assertNotIn(odd.key, world.switches.tables[1])
        self.assertIn(foreign.key, world.switches.tables[1])

    def test_a_snapshot_leaves_what_it_names_alone(self) -> None:
        world = World(orphans=0.0)
        world.update(1, "MAKE", BY_SPINE1)
        world.update(2, "RESYNC", BY_SPINE1[:1], snapshot=True)
        self.audit(world)
        self.assertEqual(world.switches.routes(), {2: 3})

    def test_a_switch_that_does_not_answer_is_asked_again(self) -> None:
        world = World()
        world.update(1, "MAKE", BY_SPINE1)
        world.switches.away.add(17)
        world.switches.tables[17].clear()
        world.installer.suspect(17)
        world.installer.turn()
        world.switches.away.clear()
        world.now = 11.0
        for _ in range(4):
            world.installer.turn()
        self.assertEqual(world.switches.routes()[17], 2)

    def test_default_forwarding_follows_the_network(self) -> None:
        world = World(forward=True)
        world.installer.turn()
        towards = match(eth_dst="02:00:00:00:00:02")
        tables = world.switches.tables
        (before,) = tables[1][(10, towards)].actions
        world.inventory.port(PortAt(1, before[1]), PortSeen(before[1], False, 0), 20.0)  # type: ignore[arg-type]
        world.show()
        world.installer.turn()
        (after,) = tables[1][(10, towards)].actions
        self.assertEqual({before[1], after[1]}, {1, 2})
        world.update(1, "INITIAL", [], snapshot=True, instance_id="a")
        self.assertIn((10, towards), tables[1])
