"""The file of options, and packets' heads."""

from __future__ import annotations

import re
import unittest
from dataclasses import fields
from pathlib import Path

from hintd_osken.options import BadOptions, Options, hosts_file, parse
from hintd_osken.packets import ARP, LLDP, Packet, read

SAMPLE = Path(__file__).resolve().parent.parent / "os-ken.toml"


class OptionsTest(unittest.TestCase):
    def test_the_sample_has_every_option_with_its_default(self) -> None:
        text = SAMPLE.read_text()
        self.assertEqual(parse(text), Options())
        named = set(re.findall(r"^\[?(\w+)", text, re.MULTILINE))
        self.assertEqual(named, {option.name for option in fields(Options)})

    def test_what_is_wrong_is_named(self) -> None:
        wrong = {
            "no such option": "porbe = '1s'",
            "probe: 1 is no time": "probe = 1",
            "confirm: .* too short": "confirm = '1ms'",
            "install: 1 is no bool": "install = 1",
            "probes_lost: 0 is less": "probes_lost = 0",
            "hosts_most: True is no int": "hosts_most = true",
            "priority 10: the first": "priority = 10",
            "cookie": "cookie = -1",
            "'node-1' is neither": "[hosts]\n'node-1' = 'x'",
            "'1' is no datapath id": "[switches]\n1 = 'x'",
            "a table of names": "[hosts]\n'10.0.0.1' = 7",
            "listen": "listen = 'here'",
            "log": "log = 'loud'",
            "at line 1": "= 1",
        }
        for message, text in wrong.items():
            with self.subTest(message), self.assertRaisesRegex(BadOptions, message):
                parse(text)

    def test_names_given_go_before_those_of_the_hosts_file(self) -> None:
        found = hosts_file("127.0.0.1 localhost\n10.0.0.1 node-1 alias # comment\n\n::1 six\n10.0.0.1 later\nnonsense\n")
        self.assertEqual(found, {"127.0.0.1": "localhost", "10.0.0.1": "node-1"})
        options = parse("listen = '[::1]:6653'\n[hosts]\n'02:00:00:00:00:0A' = 'a'\n'10.0.0.1' = 'b'\n[switches]\n"
                        "'0000000000000011' = 'spine-1'")
        names = options.names()
        self.assertEqual((names.by_mac, names.by_address), ({"02:00:00:00:00:0a": "a"}, {"10.0.0.1": "b"}))
        self.assertEqual((names.switch(17), options.listen_at()), ("spine-1", ("::1", 6653)))


class PacketTest(unittest.TestCase):
    def test_senders_are_read_and_half_packets_are_not(self) -> None:
        head = bytes.fromhex("ffffffffffff020000000001")
        arp = head + bytes.fromhex("080600010800060400010200000000010a090001")
        self.assertEqual(read(arp + bytes(20)), Packet("02:00:00:00:00:01", ARP, "10.9.0.1"))
        probe = arp[:-4] + bytes(24)
        self.assertEqual(read(probe), Packet("02:00:00:00:00:01", ARP, None), "an ARP probe has no address yet")
        self.assertEqual(read(head + bytes.fromhex("88cc")), Packet("02:00:00:00:00:01", LLDP, None))
        for end in range(14):
            self.assertIsNone(read(arp[:end]))
        self.assertIsNone((read(arp[:20]) or Packet("", 0, "x")).address)
