"""The inventory as threads share it: what happens goes in, and whoever must know is told of what came out."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from .counters import Counters, PortCount
from .forwarding import base
from .graph import Graph, graph_of
from .install import View
from .inventory import Inventory
from .options import Options

log = logging.getLogger("hintd_osken.network")

# The state is written at most so often.
SAVE_S = 1.0
# Without any event everything is looked at anew after this.
LOOK_S = 1.0


class Network(threading.Thread):
    """Publishes graphs and views as the inventory changes."""

    def __init__(self, options: Options, publish: Callable[[View], None]) -> None:
        super().__init__(name="network", daemon=True)
        self._options, self._names, self._publish = options, options.names(), publish
        self._changed = threading.Condition()
        self._inventory = Inventory(options.settings)
        self._counters = Counters()
        self._dirty = self._stopping = False
        self._view: View | None = None
        self._first_after: float | None = None
        self._told_twice: list[str] = []
        self._hosts_refused = 0
        self._saved: str = ""
        self._saved_at = float("-inf")
        self._load()

    def note(self, change: Callable[[Inventory, float], bool | None]) -> None:
        """Something happened: `change` gets the inventory and the time, must be quick, and returns False where nothing is
        new: packets come faster than the network could be looked at."""
        with self._changed:
            if change(self._inventory, time.monotonic()) is not False:
                self._dirty = True
                self._changed.notify_all()

    def ask(self, question: Callable[[Inventory], object]) -> object:
        """Reads the inventory."""
        with self._changed:
            return question(self._inventory)

    def counted(self, dpid: int, counts: list[PortCount]) -> dict[str, tuple[int, int]]:
        """Takes in port counters; loads of links as known then."""
        with self._changed:
            self._counters.take(dpid, counts)
            return self._counters.loads(self._view.graph) if self._view is not None else {}

    def forget_counters(self, dpid: int) -> None:
        """A switch that is away has no loads."""
        with self._changed:
            self._counters.forget(dpid)

    def stop(self) -> None:
        """Ends the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def run(self) -> None:
        """Publishes for ever."""
        while True:
            with self._changed:
                due = self._inventory.due(time.monotonic())
                wait = min(LOOK_S, LOOK_S if due is None else due + 0.001)
                self._changed.wait_for(lambda: self._dirty or self._stopping, timeout=wait)
                if self._stopping:
                    return
                self._dirty = False
                view, warnings = self._look()
            if view is not None:
                self._publish(view)
            for warning in warnings:
                log.warning("%s", warning)
            self._save()

    def _look(self) -> tuple[View | None, list[str]]:
        """The network now, if it is known and not as it was; what an operator should know of it."""
        now = time.monotonic()
        inventory = self._inventory
        inventory.tick(now)
        if self._first_after is None:
            if not any(inventory.connected(dpid) for dpid, _ in inventory.switches()):
                return None, []
            # Until then half of the network is not heard of yet, and would be taken for gone.
            self._first_after = now + self._options.settle
        if now < self._first_after:
            return None, []
        graph, twice = graph_of(inventory, self._names, self._options.link_bits_per_s, self._options.host_bits_per_s)
        rules, far = base(graph, inventory, now) if self._options.forward else ({}, {})
        view = View(graph, rules, far)
        fresh = [f"{name} is the name of two things; the first keeps it" for name in twice if name not in self._told_twice]
        self._told_twice = twice
        if inventory.hosts_refused > self._hosts_refused:
            fresh.append(f"hosts beyond hosts_most = {self._options.hosts_most} are not taken up")
            self._hosts_refused = inventory.hosts_refused
        if view == self._view:
            return None, fresh
        self._log(graph)
        self._view = view
        return view, fresh

    def _log(self, graph: Graph) -> None:
        was = self._view.graph if self._view is not None else None
        for name, link in graph.links.items():
            before = was.links.get(name) if was is not None else None
            if before is None or before.up != link.up:
                log.info("link %s is %s", name, "up" if link.up else "down")
        for name, switch in graph.switches.items():
            known = was.switches.get(name) if was is not None else None
            if known is None or known.up != switch.up:
                log.info("switch %s is %s", name, "up" if switch.up else "down")

    # --- kept over restarts ----------------------------------------------------------------------------------------

    def _load(self) -> None:
        path = self._options.state_file
        if not path or not os.path.exists(path):
            return
        try:
            self._inventory.from_state(json.loads(Path(path).read_text()), time.monotonic())
        except (OSError, ValueError) as error:
            log.warning("%s can't be read, so the network is learnt anew: %s", path, error)

    def _save(self) -> None:
        path = self._options.state_file
        if not path or time.monotonic() < self._saved_at + SAVE_S:
            return
        with self._changed:
            text = json.dumps(self._inventory.to_state())
        if text == self._saved:
            return
        self._saved_at = time.monotonic()
        try:
            # Whole or not at all: a reader after a crash finds the old one or the new one.
            with open(f"{path}.new", "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(f"{path}.new", path)
            self._saved = text
        except OSError as error:
            log.warning("the state can't be kept in %s: %s", path, error)
