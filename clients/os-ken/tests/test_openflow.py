"""Entries as OpenFlow's bytes and back, and what threads wait for: with os-ken's own messages and no switch."""

from __future__ import annotations

import threading
import unittest
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from hintd_osken.chains import hops
from hintd_osken.model import CONTROLLER, Rule, match, outputs
from hintd_osken.openflow import Away, Switchboard, Unanswered, flow_mod, found
from hintd_osken.table import Command, Layer, Marks
from os_ken.ofproto import ofproto_parser, ofproto_v1_3, ofproto_v1_3_parser

from .small import graph, inventory
from .test_chains import CHAINS, route

Answer = Callable[["Datapath", list[Any]], None]


class Datapath:
    """A connection that hands what is sent, read back from bytes, to a function of the test."""

    ofproto, ofproto_parser = ofproto_v1_3, ofproto_v1_3_parser

    def __init__(self, dpid: int, answer: Answer) -> None:
        self.id, self._answer = dpid, answer
        self.sent: list[Any] = []

    def send_msg(self, message: Any) -> None:
        if message.xid is None:
            message.set_xid(0)
        message.serialize()
        self.send(bytes(message.buf))

    def send(self, data: bytes) -> None:
        messages = []
        while data:
            version, kind, length, xid = ofproto_parser.header(data)
            if kind == ofproto_v1_3.OFPT_FLOW_MOD:
                message = ofproto_v1_3_parser.OFPFlowMod.parser(self, version, kind, length, xid, data[:length])
            else:
                message = SimpleNamespace(datapath=self, msg_type=kind, xid=xid)
            messages.append(message)
            data = data[length:]
        self.sent += messages
        threading.Thread(target=self._answer, args=(self, messages)).start()


def barriers(messages: list[Any]) -> list[Any]:
    return [message for message in messages if message.msg_type == ofproto_v1_3.OFPT_BARRIER_REQUEST]


class RoundTripTest(unittest.TestCase):
    def test_what_is_sent_reads_back_as_the_same_entry(self) -> None:
        marks = Marks()
        rules = [
            marks.probe(),
            marks.rule(Layer.ROUTE, match(eth_src="02:00:00:00:00:01", eth_dst="02:00:00:00:00:02"), outputs({7})),
            marks.rule(Layer.BASE, match(eth_dst="ff:ff:ff:ff:ff:ff"), outputs({1, 2, CONTROLLER})),
            marks.rule(Layer.CHAIN, match(eth_dst="02:00:00:00:00:02", eth_type=0x0800, vlan_vid=0), ()),
        ]
        for hop in hops(route([("fw", 2), ("ips", 2)]), graph(inventory()), CHAINS):
            rules.append(marks.rule(Layer.CHAIN, hop.match, hop.actions, hop.above))
        datapath = Datapath(1, lambda *_: None)
        for rule in rules:
            message = flow_mod(datapath, Command(1, rule))
            datapath.send_msg(message)
            self.assertEqual(found(datapath.sent[-1]), rule)

    def test_only_our_own_entries_are_removed(self) -> None:
        datapath = Datapath(1, lambda *_: None)
        rule = Marks().rule(Layer.ROUTE, match(eth_dst="02:00:00:00:00:02"), ())
        message = flow_mod(datapath, Command(1, rule, add=False))
        self.assertEqual(message.command, ofproto_v1_3.OFPFC_DELETE_STRICT)
        self.assertEqual((message.cookie & 0xFF, message.cookie_mask), (0, 0xFFFFFFFFFFFFFF00))


class SwitchboardTest(unittest.TestCase):
    def setUp(self) -> None:
        self.board = Switchboard()
        self.commands = [
            Command(dpid, Marks().rule(Layer.ROUTE, match(eth_dst=f"02:00:00:00:00:0{last}"), outputs({1})))
            for dpid in (1, 2) for last in (1, 2)
        ]

    def join(self, dpid: int, answer: Answer) -> Datapath:
        datapath = Datapath(dpid, answer)
        self.board.join(datapath)
        return datapath

    def confirm(self, _: Datapath, messages: list[Any]) -> None:
        for message in barriers(messages):
            self.board.barrier(message)

    def test_a_barriers_answer_confirms_all_before_it(self) -> None:
        joined = [self.join(dpid, self.confirm) for dpid in (1, 2)]
        self.assertEqual(self.board.apply(self.commands, 5.0), [None] * 4)
        self.assertEqual([len(datapath.sent) for datapath in joined], [3, 3])

    def test_an_error_is_of_its_own_entry(self) -> None:
        def refuse_second(datapath: Datapath, messages: list[Any]) -> None:
            error = ofproto_v1_3_parser.OFPErrorMsg(datapath, type_=5, code=1)
            error.set_xid(messages[1].xid)
            self.assertTrue(self.board.error(error))
            self.confirm(datapath, messages)
        self.join(1, refuse_second)
        self.join(2, self.confirm)
        results = self.board.apply(self.commands, 5.0)
        self.assertEqual([results[0], results[2], results[3]], [None] * 3)
        self.assertIn("error type 5, code 1", str(results[1]))

    def test_a_switch_that_is_away_or_goes_may_be_tried_again_and_a_silent_one_not(self) -> None:
        self.join(1, lambda datapath, _: self.assertTrue(self.board.leave(datapath)))
        results = self.board.apply(self.commands, 5.0)
        self.assertTrue(all(isinstance(error, Away) for error in results), results)
        self.join(1, lambda *_: None)
        results = self.board.apply(self.commands[:2], 0.05)
        self.assertIn("did not answer the barrier", str(results[0]))
        self.assertFalse(isinstance(results[0], Away))

    def test_answers_of_an_earlier_connection_do_not_count(self) -> None:
        def replace(datapath: Datapath, messages: list[Any]) -> None:
            self.join(1, self.confirm)
            self.assertFalse(self.board.leave(datapath), "it is the newer one's switch")
            self.confirm(datapath, messages)
        self.join(1, replace)
        results = self.board.apply(self.commands[:1], 5.0)
        self.assertTrue(isinstance(results[0], Away))
        self.assertEqual(self.board.apply(self.commands[:1], 5.0), [None])

    def test_many_entries_go_with_barriers_between(self) -> None:
        datapath = self.join(1, self.confirm)
        rules = [Marks().rule(Layer.ROUTE, match(eth_dst=f"02:00:00:00:{n >> 8:02x}:{n & 255:02x}"), outputs({1}))
                 for n in range(600)]
        self.assertEqual(self.board.apply([Command(1, rule) for rule in rules], 10.0), [None] * 600)
        self.assertEqual(len(barriers(datapath.sent)), 3)

    def test_a_table_comes_in_parts(self) -> None:
        rule = self.commands[0].rule

        def show(datapath: Datapath, messages: list[Any]) -> None:
            stats = flow_mod(datapath, self.commands[0])
            for flags in (ofproto_v1_3.OFPMPF_REPLY_MORE, 0):
                reply = ofproto_v1_3_parser.OFPFlowStatsReply(datapath, body=[stats], flags=flags)
                reply.set_xid(messages[0].xid)
                self.board.flow_stats(reply)
        self.join(1, show)
        self.assertEqual(self.board.rules(1, Marks().cookie, 5.0), [rule, rule])
        self.join(1, lambda *_: None)
        for dpid in (1, 9):
            with self.assertRaises(Unanswered):
                self.board.rules(dpid, Marks().cookie, 0.05)


class RuleTest(unittest.TestCase):
    def test_what_we_would_never_send_equals_nothing_wanted(self) -> None:
        datapath = Datapath(1, lambda *_: None)
        parser = ofproto_v1_3_parser
        stats = parser.OFPFlowMod(datapath, cookie=Marks().cookie | 1, priority=1000, match=parser.OFPMatch(),
                                  instructions=[parser.OFPInstructionGotoTable(1)])
        shown = found(stats)
        self.assertEqual(shown.actions[0][0], "other")
        self.assertNotEqual(shown, Rule(shown.cookie, 1000, (), ()))
