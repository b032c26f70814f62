"""Packets walked through the entries of chained routes."""

from __future__ import annotations

import unittest

from hintd_client._generated.hintd.v1 import common_pb2 as common
from hintd_client._generated.hintd.v1 import routes_pb2 as wire
from hintd_osken.chains import BoxPorts, Chains, TrafficClass, closed_ports, hops
from hintd_osken.model import PortAt
from hintd_osken.options import BadOptions, parse
from hintd_osken.table import Untranslatable

from .small import CABLES, graph, inventory
from .test_install import BY_SPINE1, World

CHAINS = Chains(
    {"web": TrafficClass("udp", (9000, 9001)), "all": TrafficClass()},
    {"fw": BoxPorts("spine1", 5, 5), "ips": BoxPorts("spine1", 6, 7), "lb": BoxPorts("leaf1", 8, 8)},
)
OPTIONS = {
    "switches": {"0000000000000001": "leaf1", "0000000000000011": "spine1"},
    "boxes": {"fw": {"switch": "spine1", "to": 5}, "ips": {"switch": "spine1", "to": 6, "back": 7},
              "lb": {"switch": "leaf1", "to": 8}},
    "classes": {"web": {"protocol": "udp", "ports": [9000, 9001]}},
}
FAR = {a: b for a, b in [*CABLES, *(cable[::-1] for cable in CABLES)]}
BACK = {PortAt(17, 5): PortAt(17, 5), PortAt(17, 6): PortAt(17, 7), PortAt(1, 8): PortAt(1, 8)}


def route(boxes: list[tuple[str, int]], vertices: list[str] | None = None, links: list[str] | None = None) -> wire.Route:
    """From node-1 by leaf 1 and spine 1, back over leaf 1 and spine 2 to node-2: leaf 1 is passed twice."""
    pair = wire.HostPair(src="node-1", dst="node-2", **{"class": "web"})
    vertices = ["node-1", "leaf1", "spine1", "leaf1", "spine2", "leaf2", "node-2"] if vertices is None else vertices
    links = ["leaf1:3-node-1", "leaf1:1-spine1:1", "leaf1:1-spine1:1", "leaf1:2-spine2:1", "leaf2:2-spine2:2",
             "leaf2:3-node-2"] if links is None else links
    stops = [common.BoxStop(box=box, type=box, after=after) for box, after in boxes]
    return wire.Route(pair=pair, vertices=vertices, links=links, stops=stops)


def walk(world: World, port: int = 9000) -> list[str]:
    """What a packet of node-1 to node-2 passes, up to the host's port and its tag there; ends where no entry matches."""
    at, passed = PortAt(1, 3), []
    packet: dict[str, int | str] = {"eth_src": "02:00:00:00:00:01", "eth_dst": "02:00:00:00:00:02", "eth_type": 0x0800,
                                    "ip_proto": 17, "udp_dst": port, "vlan_vid": 0}
    for _ in range(20):
        seen = {**packet, "in_port": at.port}
        fitting = [rule for rule in world.switches.tables[at.dpid].values()
                   if all(seen.get(name) == value for name, value in rule.match)]
        if not fitting:
            return [*passed, "lost"]
        best = max(fitting, key=lambda rule: rule.priority)
        if not best.actions:
            return [*passed, "dropped"]
        out = None
        for action in best.actions:
            if action[0] == "set_vlan":
                packet["vlan_vid"] = 0x1000 | int(action[1])
            elif action[0] == "pop_vlan":
                packet["vlan_vid"] = 0
            elif action[0] == "output":
                out = PortAt(at.dpid, int(action[1]))
        assert out is not None
        if out in BACK:
            assert packet["vlan_vid"] == 0, "boxes get packets without a tag"
            passed.append(f"box{out.port}")
            at = BACK[out]
        elif out in FAR:
            assert out != at, "a switch sends nothing back where it came from"
            passed.append(f"s{at.dpid}")
            at = FAR[out]
        else:
            return [*passed, f"s{at.dpid}", f"{out.dpid}:{out.port} {packet['vlan_vid']}"]
    return [*passed, "goes round"]


class ChainTest(unittest.TestCase):
    def world(self) -> World:
        return World(**OPTIONS)

    def test_a_way_may_pass_a_switch_twice(self) -> None:
        world = self.world()
        world.update(1, "MAKE", [], routes=[route([("fw", 2)])])
        self.assertEqual(world.acknowledged, [(1, {})])
        for port in (9000, 9001):
            self.assertEqual(walk(world, port), ["s1", "box5", "s17", "s1", "s18", "s2", "2:3 0"])
        self.assertEqual(walk(world, 80), ["lost"], "another class")

    def test_boxes_are_passed_in_order_wherever_they_hang(self) -> None:
        for boxes, wanted in (
            ([("fw", 2), ("ips", 2)], ["s1", "box5", "box6", "s17", "s1", "s18", "s2", "2:3 0"]),
            ([("ips", 2), ("lb", 3)], ["s1", "box6", "s17", "box8", "s1", "s18", "s2", "2:3 0"]),
            ([("lb", 1), ("fw", 2)], ["box8", "s1", "box5", "s17", "s1", "s18", "s2", "2:3 0"]),
        ):
            world = self.world()
            world.update(1, "MAKE", [], routes=[route(boxes)])
            self.assertEqual(walk(world), wanted)

    def test_a_box_at_the_last_switch_needs_no_tag_after_it(self) -> None:
        world = self.world()
        pair = wire.HostPair(src="node-2", dst="node-1", **{"class": "web"})
        way = wire.Route(pair=pair, vertices=["node-2", "leaf2", "spine1", "leaf1", "node-1"],
                         links=["leaf2:3-node-2", "leaf2:1-spine1:2", "leaf1:1-spine1:1", "leaf1:3-node-1"],
                         stops=[common.BoxStop(box="lb", after=3)])
        found = hops(way, graph(inventory()), CHAINS)
        self.assertFalse([hop for hop in found if ("push_vlan",) in hop.actions])
        world.update(1, "MAKE", [], routes=[way])
        self.assertEqual(world.acknowledged, [(1, {})])

    def test_at_every_step_of_a_change_the_packet_arrives_by_all_boxes(self) -> None:
        world = self.world()
        world.update(1, "MAKE", BY_SPINE1, routes=[route([("fw", 2)])])
        ways = []
        apply = world.switches.apply

        def step(commands: list[object], timeout: float) -> list[str | None]:
            results = apply(commands, timeout)  # type: ignore[arg-type]
            ways.append(walk(world))
            return results

        world.switches.apply = step  # type: ignore[method-assign, assignment]
        shorter = route([("fw", 2)], ["node-1", "leaf1", "spine1", "leaf2", "node-2"],
                        ["leaf1:3-node-1", "leaf1:1-spine1:1", "leaf2:1-spine1:2", "leaf2:3-node-2"])
        world.update(2, "MAKE", [], routes=[shorter])
        self.assertGreater(len(ways), 2)
        for way in ways:
            self.assertEqual(("box5" in way, way[-1]), (True, "2:3 0"))
        self.assertEqual(walk(world), ["s1", "box5", "s17", "s2", "2:3 0"])
        self.assertEqual([rule for rule in world.switches.tables[18].values()], [], "nothing is left of the old way")

    def test_traffic_without_a_way_is_dropped_at_its_first_switch(self) -> None:
        world = self.world()
        world.update(1, "MAKE", BY_SPINE1, routes=[route([("fw", 2)])])
        world.update(2, "FAILOVER", [], routes=[route([], [], [])])
        self.assertEqual(walk(world), ["dropped"])
        self.assertEqual(walk(world, 80)[-1], "2:3 0", "the pair's other traffic goes on")
        world.update(3, "BREAK", [], removed=[route([]).pair])
        self.assertEqual(walk(world)[-1], "2:3 0", "no chain holds any longer")

    def test_what_was_not_told_refuses_the_route_and_leaves_nothing(self) -> None:
        net = graph(inventory())
        for text, chains in (
            (r"\[classes\]", Chains({}, CHAINS.boxes)),
            (r"\[boxes\]", Chains(CHAINS.classes, {})),
            ('on "leaf1" here', Chains(CHAINS.classes, {"fw": BoxPorts("leaf1", 5, 5)})),
        ):
            with self.assertRaisesRegex(Untranslatable, text):
                hops(route([("fw", 2)]), net, chains)
        world = self.world()
        world.update(1, "MAKE", [], routes=[route([("fw", 2)])])
        world.switches.refuses.add(17)
        world.update(2, "MAKE", [], routes=[route([("ips", 2)])])
        self.assertEqual([list(refused) for _, refused in world.acknowledged], [[], [("node-1", "node-2", "web")]])
        left = [rule for table in world.switches.tables.values() for rule in table.values()]
        self.assertEqual(left, [])

    def test_ports_of_boxes_are_nobodys(self) -> None:
        ports = closed_ports(CHAINS, {"spine1": 17, "leaf1": 1})
        self.assertEqual(ports, {PortAt(17, 5), PortAt(17, 6), PortAt(17, 7), PortAt(1, 8)})

    def test_options_of_boxes_and_classes_are_checked(self) -> None:
        named = "[switches]\n0000000000000011 = 'spine-1'\n"
        options = parse(named + "[boxes.fw]\nswitch = 'spine-1'\nto = 5\n[classes.web]\nprotocol = 'tcp'\nports = [80]")
        self.assertEqual(options.chains.boxes["fw"], BoxPorts("spine-1", 5, 5))
        self.assertEqual(options.settings.closed, {PortAt(17, 5)})
        for message, text in {
            "boxes.fw": named + "[boxes.fw]\nswitch = 'spine-1'",
            "has no name": named + "[boxes.fw]\nswitch = 'spine-2'\nto = 5",
            "protocol .tcp or udp": "[classes.web]\nprotocol = 'icmp'",
            "up to 16": "[classes.web]\nports = [80]",
            "table of tables": "[classes]\nweb = 'tcp'",
            "chain_vlan": "chain_vlan = 4095",
        }.items():
            with self.subTest(message), self.assertRaisesRegex(BadOptions, message):
                parse(text)
