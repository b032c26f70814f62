"""What is believed of the network, event by event."""

from __future__ import annotations

import unittest

from hintd_osken.inventory import Inventory, Settings
from hintd_osken.model import Cable, HostSeen, PortAt, PortSeen

from .small import CABLES, ports
from .small import inventory as small


def down(inventory: Inventory) -> list[Cable]:
    return [cable for cable in inventory.cables() if not cable.up]


class InventoryTest(unittest.TestCase):
    def test_a_link_needs_both_directions(self) -> None:
        found = Inventory(Settings())
        for dpid in (1, 17):
            found.switch_up(dpid, ports(dpid), 0.0)
        found.probe_heard(PortAt(1, 1), PortAt(17, 1))
        self.assertEqual(list(found.cables()), [])
        found.probe_heard(PortAt(17, 1), PortAt(1, 1))
        self.assertEqual(list(found.cables()), [Cable(PortAt(1, 1), PortAt(17, 1), True)])

    def test_a_port_without_carrier_takes_its_link_down_at_once_and_a_probe_brings_it_back(self) -> None:
        found = small()
        found.port(PortAt(1, 1), PortSeen(1, False, 0), 20.0)
        self.assertEqual([cable.a for cable in down(found)], [PortAt(1, 1)])
        found.probe_heard(PortAt(1, 1), PortAt(17, 1))
        self.assertEqual(len(down(found)), 1, "a probe that was under way does not bring a dead port back")
        found.port(PortAt(1, 1), PortSeen(1, True, 0), 21.0)
        self.assertEqual(len(down(found)), 1, "carrier alone is no link")
        for ends in (CABLES[0], CABLES[0][::-1]):
            found.probe_heard(*ends)
        self.assertEqual(down(found), [])

    def test_a_link_that_only_loses_probes_goes_after_so_many(self) -> None:
        found = small()
        for _ in range(Settings().probes_lost):
            found.probes_sent([PortAt(1, 1)])
        self.assertEqual(down(found), [])
        self.assertTrue(found.probes_sent([PortAt(1, 1)]))
        self.assertEqual(len(down(found)), 1)

    def test_probes_to_a_switch_that_is_away_do_not_count(self) -> None:
        found = small()
        found.switch_gone(17, 20.0)
        for _ in range(20):
            found.probes_sent([PortAt(1, 1), PortAt(1, 2)])
            found.probe_heard(PortAt(1, 2), PortAt(18, 1))
        self.assertEqual(down(found), [])

    def test_a_switch_is_down_after_its_time_and_up_at_once(self) -> None:
        found = small()
        found.switch_gone(17, 20.0)
        found.tick(20.05)
        self.assertTrue(dict(found.switches())[17])
        self.assertAlmostEqual(found.due(20.05) or 0, 0.05)
        found.tick(20.2)
        self.assertFalse(dict(found.switches())[17])
        found.switch_up(17, ports(17), 21.0)
        self.assertTrue(dict(found.switches())[17])

    def test_all_switches_gone_at_once_is_our_own_trouble(self) -> None:
        found = small()
        for dpid in (1, 2, 17, 18):
            found.switch_gone(dpid, 20.0)
        found.tick(100.0)
        self.assertTrue(all(up for _, up in found.switches()))
        found.switch_up(1, ports(1), 101.0)
        found.tick(102.0)
        self.assertTrue(all(up for _, up in found.switches()), "the others have their time to return")
        found.tick(105.0)
        self.assertEqual([dpid for dpid, up in found.switches() if up], [1])

    def test_a_switch_that_returns_without_a_port_has_lost_the_link(self) -> None:
        found = small()
        found.switch_gone(17, 20.0)
        found.switch_up(17, ports(17)[:1], 21.0)
        self.assertEqual([cable.b for cable in down(found)], [PortAt(17, 2)])

    def test_a_port_with_another_peer_loses_its_old_link(self) -> None:
        found = small(hosts=False)
        a, b = PortAt(1, 3), PortAt(17, 1)
        found.probe_heard(a, b)
        found.probe_heard(b, a)
        self.assertIn(Cable(a, b, True), list(found.cables()))
        self.assertNotIn(CABLES[0][0], [cable.a for cable in found.cables()])

    def test_hosts_are_learnt_where_no_link_can_be(self) -> None:
        found = small(hosts=False)
        found.packet("02:00:00:00:00:01", None, PortAt(1, 3), 1.0)
        self.assertEqual(list(found.hosts()), [], "the port is too new: a link may be found there")
        found.packet("02:00:00:00:00:01", "10.9.0.1", PortAt(17, 1), 10.0)
        self.assertEqual(list(found.hosts()), [], "seen on its way through a spine")
        found.packet("03:00:00:00:00:01", "10.9.0.1", PortAt(1, 3), 10.0)
        self.assertEqual(list(found.hosts()), [], "a group's address")
        found.packet("02:00:00:00:00:01", "10.9.0.1", PortAt(1, 3), 10.0)
        found.packet("02:00:00:00:00:01", None, PortAt(1, 3), 11.0)
        self.assertEqual(list(found.hosts()), [HostSeen("02:00:00:00:00:01", ("10.9.0.1",), PortAt(1, 3))])
        self.assertFalse(found.packet("02:00:00:00:00:01", "10.9.0.1", PortAt(1, 3), 12.0), "nothing new")
        self.assertTrue(found.packet("02:00:00:00:00:01", "10.9.0.1", PortAt(2, 3), 12.0), "it moved")

    def test_hosts_and_addresses_are_bounded(self) -> None:
        found = Inventory(Settings(hosts_most=3))
        found.switch_up(1, ports(1), 0.0)
        for last in range(10):
            found.packet(f"02:00:00:00:00:{last:02x}", None, PortAt(1, 3), 10.0)
            found.packet("02:00:00:00:00:00", f"10.9.0.{last}", PortAt(1, 3), 10.0)
        self.assertEqual((len(list(found.hosts())), found.hosts_refused), (3, 7))
        self.assertEqual(max(len(host.addresses) for host in found.hosts()), 8)

    def test_what_was_known_is_known_in_a_later_life(self) -> None:
        later = Inventory(Settings())
        later.from_state(small().to_state(), 0.0)
        self.assertEqual(list(later.cables()), list(small().cables()))
        self.assertEqual(list(later.hosts()), list(small().hosts()))
        later.switch_up(1, ports(1), 1.0)
        later.tick(2.0)
        self.assertTrue(all(up for _, up in later.switches()))
        later.tick(5.0)
        self.assertEqual([dpid for dpid, up in later.switches() if up], [1], "what did not return is down")

    def test_a_state_that_is_none_changes_nothing(self) -> None:
        found = small()
        for state in ({}, {"switches": [1], "links": [[1, 2, 3]], "hosts": []}, {"switches": 7}):
            with self.assertRaises(ValueError):
                found.from_state(state, 0.0)
        self.assertEqual(len(list(found.cables())), 4)
