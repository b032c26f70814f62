"""The switches that are connected: entries sent and confirmed by a barrier, tables read back.

A switch works off what came before a barrier before it answers it, and an entry that it can't take it answers with an
error that names the message. So a barrier's answer without an error before it means that the entries are in force.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .model import COOKIE_MASK, Rule
from .table import Command

log = logging.getLogger("hintd_osken.openflow")

# Entries sent together before their barrier.
TOGETHER = 256
VLAN_TAG = 0x8100


@dataclass
class _Waiting:
    """What a thread waits for from one switch."""

    datapath: Any
    # The commands' places, by the message's number.
    places: dict[int, int] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    done: bool = False


class Unanswered(Exception):
    """A switch is away, or did not answer in time."""


class Away(str):
    """Why a command is not in force where its switch was not there for it: it may be tried again."""


class Switchboard:
    """Connected switches by datapath id. May be used by several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._datapaths: dict[int, Any] = {}
        # Ours, not the connection's: that is counted by os-ken's threads without a lock, and a number given twice would
        # lay one entry's error at another's door.
        self._number = 0
        # By switch and number of the message whose answer ends the waiting.
        self._waiting: dict[tuple[int, int], _Waiting] = {}

    # --- connections -----------------------------------------------------------------------------------------------

    def join(self, datapath: Any) -> None:
        """A switch connected; an older connection of it counts no more."""
        with self._changed:
            self._datapaths[datapath.id] = datapath
            self._changed.notify_all()

    def leave(self, datapath: Any) -> bool:
        """A connection ended; whether it was the switch's newest."""
        with self._changed:
            if datapath.id not in self._datapaths or self._datapaths[datapath.id] is not datapath:
                return False
            del self._datapaths[datapath.id]
            self._changed.notify_all()
            return True

    def get(self, dpid: int) -> Any:
        """A switch's connection, or None."""
        with self._changed:
            return self._datapaths.get(dpid)

    def connected(self) -> set[int]:
        """Switches that have one."""
        with self._changed:
            return set(self._datapaths)

    def wait_for(self, dpids: set[int], timeout: float) -> None:
        """Waits until all of them are connected, or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: dpids <= self._datapaths.keys(), timeout=timeout)

    # --- what threads ask ------------------------------------------------------------------------------------------

    def apply(self, commands: Sequence[Command], timeout: float) -> list[str | None]:
        """Sends commands, all switches at once and in the order given on each, and waits for their barriers. For each
        command None, or why it is not in force."""
        results: list[str | None] = [None] * len(commands)
        by_switch: dict[int, list[int]] = {}
        for place, command in enumerate(commands):
            by_switch.setdefault(command.dpid, []).append(place)
        barriers: list[tuple[int, list[int], tuple[int, int], _Waiting]] = []
        for dpid, places in by_switch.items():
            datapath = self.get(dpid)
            if datapath is None:
                for place in places:
                    results[place] = Away(f"switch {dpid:016x} is not connected")
                continue
            for start in range(0, len(places), TOGETHER):
                part = places[start : start + TOGETHER]
                barriers.append((dpid, part, *self._send(datapath, commands, part)))
        end = time.monotonic() + timeout
        for dpid, places, key, waiting in barriers:
            answered = self._wait(key, waiting, end)
            there = self.get(dpid) is waiting.datapath
            for place in places:
                if place in waiting.errors:
                    results[place] = waiting.errors[place]
                elif not answered and not there:
                    results[place] = Away(f"the connection of switch {dpid:016x} ended before the barrier's answer")
                elif not answered:
                    results[place] = f"switch {dpid:016x} did not answer the barrier within {timeout} s"
        return results

    def rules(self, dpid: int, cookie: int, timeout: float) -> list[Rule]:
        """Entries of table 0 with our cookie. Raises `Unanswered`."""
        datapath = self.get(dpid)
        if datapath is None:
            raise Unanswered(f"switch {dpid:016x} is not connected")
        parser, ofproto = datapath.ofproto_parser, datapath.ofproto
        request = parser.OFPFlowStatsRequest(
            datapath, 0, 0, ofproto.OFPP_ANY, ofproto.OFPG_ANY, cookie & COOKIE_MASK, COOKIE_MASK, parser.OFPMatch()
        )
        waiting = _Waiting(datapath)
        key = self._expect(datapath, request, waiting)
        datapath.send_msg(request)
        if not self._wait(key, waiting, time.monotonic() + timeout) or waiting.errors:
            why = next(iter(waiting.errors.values()), f"did not show its table within {timeout} s")
            raise Unanswered(f"switch {dpid:016x}: {why}")
        return waiting.rules

    def _send(self, datapath: Any, commands: Sequence[Command], places: list[int]) -> tuple[tuple[int, int], _Waiting]:
        waiting = _Waiting(datapath)
        barrier = datapath.ofproto_parser.OFPBarrierRequest(datapath)
        messages = [flow_mod(datapath, commands[place]) for place in places]
        with self._changed:
            for place, message in zip(places, messages):
                waiting.places[self._next(message)] = place
            key = datapath.id, self._next(barrier)
            self._waiting[key] = waiting
            self._waiting.update({(datapath.id, xid): waiting for xid in waiting.places})
        for message in (*messages, barrier):
            message.serialize()
        datapath.send(b"".join(bytes(message.buf) for message in (*messages, barrier)))
        return key, waiting

    def _expect(self, datapath: Any, message: Any, waiting: _Waiting) -> tuple[int, int]:
        with self._changed:
            key = datapath.id, self._next(message)
            self._waiting[key] = waiting
        return key

    def _next(self, message: Any) -> int:
        """Numbers a message; under the lock."""
        self._number = self._number % 0xFFFFFFFF + 1
        message.set_xid(self._number)
        return self._number

    def _wait(self, key: tuple[int, int], waiting: _Waiting, end: float) -> bool:
        dpid = key[0]

        def over() -> bool:
            return waiting.done or self._datapaths.get(dpid) is not waiting.datapath

        with self._changed:
            self._changed.wait_for(over, timeout=max(0.0, end - time.monotonic()))
            self._waiting.pop(key, None)
            for xid in waiting.places:
                self._waiting.pop((dpid, xid), None)
            return waiting.done

    # --- what switches say -----------------------------------------------------------------------------------------

    def barrier(self, message: Any) -> None:
        """A barrier's answer."""
        with self._changed:
            waiting = self._waiting.get((message.datapath.id, message.xid))
            # A switch that connected anew meanwhile may have lost what it answers for.
            newest = message.datapath.id in self._datapaths and self._datapaths[message.datapath.id] is message.datapath
            if waiting is not None and waiting.datapath is message.datapath and newest:
                waiting.done = True
                self._changed.notify_all()

    def error(self, message: Any) -> bool:
        """An error; whether anybody waited for what it is about."""
        with self._changed:
            waiting = self._waiting.get((message.datapath.id, message.xid))
            if waiting is None:
                return False
            text = f"the switch answers with error type {message.type}, code {message.code}"
            place = waiting.places.get(message.xid)
            if place is None:
                # The question itself was refused: nothing else will come.
                waiting.done = True
                waiting.errors[-1] = text
                self._changed.notify_all()
            else:
                waiting.errors[place] = text
            return True

    def flow_stats(self, message: Any) -> None:
        """A part of a table."""
        rules = [found(stats) for stats in message.body]
        with self._changed:
            waiting = self._waiting.get((message.datapath.id, message.xid))
            if waiting is None:
                return
            waiting.rules += rules
            if not message.flags & message.datapath.ofproto.OFPMPF_REPLY_MORE:
                waiting.done = True
                self._changed.notify_all()


def flow_mod(datapath: Any, command: Command) -> Any:
    """A command as a message."""
    parser, ofproto, rule = datapath.ofproto_parser, datapath.ofproto, command.rule
    fields = {
        "datapath": datapath, "table_id": 0, "priority": rule.priority, "match": parser.OFPMatch(**dict(rule.match)),
        "buffer_id": ofproto.OFP_NO_BUFFER, "out_port": ofproto.OFPP_ANY, "out_group": ofproto.OFPG_ANY,
    }
    if not command.add:
        # Only if it is ours: somebody may have put another entry there.
        mask = {"cookie": rule.cookie & COOKIE_MASK, "cookie_mask": COOKIE_MASK}
        return parser.OFPFlowMod(**fields, **mask, command=ofproto.OFPFC_DELETE_STRICT)
    actions = [_action(datapath, action) for action in rule.actions]
    # Without any, packets are dropped.
    apply = [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)] if actions else []
    return parser.OFPFlowMod(**fields, cookie=rule.cookie, command=ofproto.OFPFC_ADD, instructions=apply)


def _action(datapath: Any, action: tuple[Any, ...]) -> Any:
    parser, ofproto = datapath.ofproto_parser, datapath.ofproto
    kind = action[0]
    if kind == "output":
        return parser.OFPActionOutput(action[1], ofproto.OFPCML_NO_BUFFER)
    if kind == "push_vlan":
        return parser.OFPActionPushVlan(VLAN_TAG)
    if kind == "pop_vlan":
        return parser.OFPActionPopVlan()
    if kind == "set_vlan":
        return parser.OFPActionSetField(vlan_vid=ofproto.OFPVID_PRESENT | action[1])
    raise ValueError(f"no such action: {action}")


def found(stats: Any) -> Rule:
    """An entry as a switch shows it. What we would never send stands as "other", so that it equals nothing wanted."""
    actions: list[tuple[Any, ...]] = []
    for instruction in stats.instructions:
        for action in getattr(instruction, "actions", [instruction]):
            kind = type(action).__name__
            if kind == "OFPActionOutput":
                actions.append(("output", action.port))
            elif kind == "OFPActionPushVlan":
                actions.append(("push_vlan",))
            elif kind == "OFPActionPopVlan":
                actions.append(("pop_vlan",))
            elif kind == "OFPActionSetField" and action.key == "vlan_vid":
                actions.append(("set_vlan", action.value & 0xFFF))
            else:
                actions.append(("other", repr(action)))
    return Rule(stats.cookie, stats.priority, tuple(sorted(stats.match.items())), tuple(actions))
