"""Names, capacities, what of a change is told, loads, and default forwarding."""

from __future__ import annotations

import itertools
import unittest

from hintd_osken.counters import Counters, PortCount
from hintd_osken.forwarding import base, towards
from hintd_osken.graph import Names, graph_of
from hintd_osken.model import BROADCAST, CONTROLLER, HostSeen, PortAt, PortSeen

from .small import CABLES, graph, inventory, ports


class GraphTest(unittest.TestCase):
    def test_names_are_those_of_the_adapter_for_ryu(self) -> None:
        found = graph(inventory())
        self.assertEqual(sorted(found.hosts), ["node-1", "node-2"])
        self.assertIn("leaf1:1-spine1:1", found.links)
        self.assertIn("leaf1:3-node-1", found.links)
        self.assertEqual((found.switches["leaf1"].edge, found.switches["spine1"].edge), (True, False))
        host = HostSeen("02:00:00:00:00:09", ("10.0.0.9", "10.0.0.1"), PortAt(1, 3))
        self.assertEqual(Names().host(host), "10.0.0.9")
        self.assertEqual(Names(by_address={"10.0.0.1": "n"}).host(host), "n")
        self.assertEqual(Names().switch(17), "s0000000000000011")

    def test_capacities_are_the_lesser_of_both_ports_or_configured(self) -> None:
        found = inventory()
        found.port(PortAt(1, 1), PortSeen(1, True, 5), 11.0)
        self.assertEqual(graph(found).links["leaf1:1-spine1:1"].bits_per_s, 5)
        configured, _ = graph_of(found, Names(), 7, 8)
        self.assertEqual({link.bits_per_s for link in configured.links.values()}, {7, 8})

    def test_what_has_the_name_of_another_is_told(self) -> None:
        names = Names(by_mac={"02:00:00:00:00:01": "s0000000000000001"}, switches={17: "x", 18: "x"})
        found, twice = graph_of(inventory(), names, 0, 0)
        self.assertEqual(twice, ['switch "x"', 'host "s0000000000000001"'])
        self.assertEqual(sorted(found.hosts), ["10.9.0.2"])

    def test_only_what_changed_is_told(self) -> None:
        found = inventory()
        before = graph(found)
        whole = before.changes_since(None)
        self.assertEqual([item.WhichOneof("item") for item in whole], ["full"])
        self.assertEqual(len(whole[0].full.links), 6)
        self.assertEqual(graph(found).changes_since(before), [])
        found.port(PortAt(1, 1), PortSeen(1, False, 0), 20.0)
        found.switch_gone(18, 20.0)
        found.tick(21.0)
        items = graph(found).changes_since(before)
        self.assertEqual([item.WhichOneof("item") for item in items], ["link", "switch"])
        self.assertEqual((items[0].link.id, items[0].link.up), ("leaf1:1-spine1:1", False))
        self.assertEqual((items[1].switch.name, items[1].switch.up), ("spine2", False))
        again = graph(found).changes_since(None)
        self.assertEqual([item.WhichOneof("item") for item in again], ["full", "switch"], "a full one has no switch down")

    def test_loads_are_by_the_switchs_clock_and_survive_a_reset(self) -> None:
        counters, found = Counters(), graph(inventory())

        def take(seconds: float, received: int, sent: int) -> tuple[int, int] | None:
            counters.take(1, [PortCount(1, received, sent, seconds)])
            return counters.loads(found).get("leaf1:1-spine1:1")

        self.assertIsNone(take(10.0, 1_000, 5_000))
        self.assertEqual(take(12.0, 2_000, 5_500), (2_000, 4_000), "what leaf1 sends goes from a to b")
        self.assertEqual(take(12.05, 2_000, 5_500), (2_000, 4_000), "too soon to say anything")
        self.assertIsNone(take(1.0, 10, 10), "a switch that started anew has no load yet")


def walk(rules: dict[tuple[int, str], set[int]], start: PortAt, mac: str) -> list[PortAt]:
    """Ports without a link at which a packet comes out; fails where it meets a switch twice."""
    far = {a: b for a, b in [*CABLES, *(cable[::-1] for cable in CABLES)]}
    open_, out, seen = [start], [], set()
    while open_:
        entered = open_.pop()
        if entered.dpid in seen:
            raise AssertionError(f"{mac} passes switch {entered.dpid} twice")
        seen.add(entered.dpid)
        for port in rules.get((entered.dpid, mac), set()) - {CONTROLLER, entered.port}:
            leaving = PortAt(entered.dpid, port)
            if leaving in far:
                open_.append(far[leaving])
            else:
                out.append(leaving)
    return out


class ForwardingTest(unittest.TestCase):
    def test_packets_arrive_once_wherever_a_way_is_left(self) -> None:
        for cut in itertools.product((False, True), repeat=4):
            found = inventory()
            for (a, _), dead in zip(CABLES, cut):
                if dead:
                    found.port(a, PortSeen(a.port, False, 0), 20.0)
            rules, far = base(graph(found), found, 30.0)
            # Leaf 1 reaches spines by cables 0 and 1, leaf 2 by 2 and 3.
            connected = not (cut[0] or cut[2]) or not (cut[1] or cut[3])
            for mac in (BROADCAST, "02:00:00:00:00:02"):
                wanted = [PortAt(2, 3)] if connected else []
                self.assertEqual(walk(rules, PortAt(1, 3), mac), wanted, f"{mac} with {cut} cut")
            self.assertEqual(far[(2, "02:00:00:00:00:02")], 0)

    def test_the_controller_hears_broadcasts_and_new_ports_do_not(self) -> None:
        found = inventory(hosts=False)
        rules, _ = base(graph(found), found, 1.0)
        self.assertIn(CONTROLLER, rules[(1, BROADCAST)])
        self.assertNotIn(3, rules[(1, BROADCAST)], "a link may be found there yet")
        rules, _ = base(graph(found), found, 4.0)
        self.assertIn(3, rules[(1, BROADCAST)])

    def test_equally_short_ways_are_shared_by_destinations(self) -> None:
        live = graph(inventory()).live()
        taken = {towards(live, PortAt(2, 3), f"02:00:00:00:00:{last:02x}")[1][0] for last in range(8)}
        self.assertEqual(taken, {1, 2})

    def test_a_switch_that_is_down_carries_nothing(self) -> None:
        found = inventory()
        found.switch_gone(17, 20.0)
        found.tick(21.0)
        rules, _ = base(graph(found), found, 21.0)
        self.assertEqual({dpid for dpid, _ in rules}, {1, 2, 18})
        self.assertEqual(rules[(1, "02:00:00:00:00:02")], {2})
        self.assertEqual(len(ports(1)), 3)
