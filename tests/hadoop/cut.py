"""A link that is cut while a shuffle crosses it, for tests/hadoop/worth: bytes of each pair of nodes by Open vSwitch's own counters,
ten times a second, the cut, and who makes a way around it."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from small import BASE, MINI, REPOSITORY, Daemon, aim, mini, promise, say, until

sys.path.append(str(REPOSITORY / "deploy/mini-hadoop"))
import network
import ovs

# Nobody makes another way; the controller's application does, by its default forwarding; the same, with the job hinted; hintd does, by routes of
# pairs that it was told of; the same, but hintd is killed before the cut.
ARMS = ("fixed", "forwarding", "hinted", "routes", "killed")
EVERY = 0.1
MENDED_AFTER = 20.0  # seconds
PART = 0.25  # of the shuffle's bytes between racks that are over when the link is cut
RECENT = 1.0  # seconds before the cut in which a pair's bytes went by the link ...
RECENT_BYTES = 20_000  # ... at least so many: an answer's acknowledgements are less
PROGRESS = 1_000  # bytes
USUAL_SECONDS = 5.0
SHORT = 1.0  # seconds without progress that are not to be exceeded
APPLICATION = "application_1_0001"
LOOK_SECONDS = 120

Pair = tuple[str, str]


def flows() -> str:
    """Flows of the switches' datapath, with their counters, as ovs-vswitchd says them."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(10)
        asked.connect(str(ovs.RUN / "ovs-vswitchd.ctl"))
        asked.sendall(json.dumps({"method": "dpctl/dump-flows", "params": ["--names"], "id": 0}).encode())
        text = b""
        while True:
            text += asked.recv(1 << 20)
            with contextlib.suppress(ValueError):
                return json.loads(text)["result"]


ROW = re.compile(r"in_port\((\S+?)\),.*?eth\(src=([0-9a-f:]+),dst=([0-9a-f:]+)\),.*packets:\d+, bytes:(\d+),")


def crossing(text: str, names: dict[str, str]) -> dict[tuple[str, Pair, str], int]:
    """Bytes by flow: the port that they came in at, sender and receiver. Only ports between leaf and spine, and nodes."""
    found = {}
    for row in text.splitlines():
        at = ROW.search(row)
        if at and at[1].startswith(("up", "down")) and at[2] in names and at[3] in names:
            key = at[1], (names[at[2]], names[at[3]]), row.partition(" packets:")[0]
            found[key] = found.get(key, 0) + int(at[4])
    return found


@dataclass
class Sample:
    """What moved since the sample before: bytes that came in at a port, by port and pair."""

    at: float
    moved: dict[tuple[str, Pair], int] = field(default_factory=dict)

    def arrived(self) -> dict[Pair, int]:
        """At the receiver's leaf, over whichever spine."""
        found: dict[Pair, int] = {}
        for (port, pair), count in self.moved.items():
            if port.startswith("up"):
                found[pair] = found.get(pair, 0) + count
        return found


class Progress(threading.Thread):
    """Samples until `end`."""

    def __init__(self, planned: dict) -> None:
        super().__init__(daemon=True)
        self.names = {mac: name for mac, name in ovs.hosts(planned).items() if name in planned["nodes"]}
        self.over, self.samples = threading.Event(), []
        self.before = crossing(flows(), self.names)
        self.start()

    def run(self) -> None:
        due = time.monotonic()
        while not self.over.is_set():
            with contextlib.suppress(OSError):
                self.look()
            due = max(due + EVERY, time.monotonic())
            self.over.wait(due - time.monotonic())

    def look(self) -> None:
        at, now = time.monotonic(), crossing(flows(), self.names)
        sample = Sample(at)
        for key, count in now.items():
            had = self.before.get(key, 0)
            moved = count - had if count >= had else count  # an entry that was made anew counts from nothing
            if moved:
                sample.moved[key[:2]] = sample.moved.get(key[:2], 0) + moved
        self.before = now
        self.samples.append(sample)

    def total(self) -> int:
        return sum(sum(sample.arrived().values()) for sample in list(self.samples))

    def busiest(self) -> tuple[str, int]:
        """Rack's port of the link that carried most in the last second, both ways, and how much."""
        since, carried = time.monotonic() - RECENT, {}
        for sample in list(self.samples):
            if sample.at >= since:
                for (port, _), count in sample.moved.items():
                    link = port.replace("down", "up")
                    carried[link] = carried.get(link, 0) + count
        return max(carried.items(), key=lambda row: row[1], default=("up1-1", 0))

    def end(self) -> list[Sample]:
        self.over.set()
        self.join()
        return self.samples


def gaps(times: list[float], since: float) -> float:
    """The longest time between two of them, from `since` on."""
    ordered = [at for at in times if at >= since]
    return max((after - before for before, after in zip(ordered, ordered[1:])), default=0.0)


def hit(samples: list[Sample], link: str, cut: float) -> list[Pair]:
    """Pairs whose bytes went by the link just before it was cut."""
    ports, recent = {link, link.replace("up", "down")}, {}
    for sample in samples:
        if cut - RECENT <= sample.at <= cut:
            for (port, pair), count in sample.moved.items():
                if port in ports:
                    recent[pair] = recent.get(pair, 0) + count
    return sorted(pair for pair, count in recent.items() if count >= RECENT_BYTES)


def anew(sample: Sample, pair: Pair, spine: str, mended: float) -> bool:
    """Whether bytes of the pair came by another spine, or by any once the link is mended: what was in queues behind the cut still
    comes, and is no sign of life."""
    return any(of == pair and port.startswith("up") and (not port.endswith(f"-{spine}") or sample.at > mended)
               and count >= PROGRESS for (port, of), count in sample.moved.items())


def figures(samples: list[Sample], link: str, cut: float, mended: float) -> dict:
    """What a cut did. How long a pair stood still is from the cut until bytes of it came another way. One that sends nothing any
    more was over, or gave up. `usual`: the longest silence of each such pair in as many seconds before the cut."""
    pairs, spine = hit(samples, link, cut), link.rpartition("-")[2]
    later = [sample for sample in samples if sample.at > cut]
    still = {pair: next((sample.at - cut for sample in later if anew(sample, pair, spine, mended)), None) for pair in pairs}
    before = [sample for sample in samples if cut - USUAL_SECONDS <= sample.at <= cut]
    usual = [gaps([sample.at for sample in before if sample.arrived().get(pair, 0) >= PROGRESS], 0.0) for pair in pairs]
    rack = link.partition("-")[0]
    at = {"all": [sample.at for sample in later if sum(sample.arrived().values()) >= PROGRESS],
          "rack": [sample.at for sample in later if sum(count for (port, _), count in sample.moved.items()
                                                       if port.partition("-")[0].replace("down", "up") == rack) >= PROGRESS]}
    return {
        "pairs": [f"{source} to {target}" for source, target in pairs],
        "still_seconds": sorted(seconds for seconds in still.values() if seconds is not None),
        "around": sum(seconds is not None and cut + seconds <= mended for seconds in still.values()),
        "over": sum(seconds is None for seconds in still.values()), "usual_seconds": sorted(usual),
        **{f"longest_{name}": gaps([cut, *(time for time in times if time <= mended)], cut) for name, times in at.items()},
        "longest_sample": max((after.at - before.at for before, after in zip(samples, samples[1:])), default=0.0),
        "mended_after": mended - cut,
    }


def reducing() -> bool:
    """Whether a reduce of the cluster's runs."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            text = (process / "cmdline").read_text()
            if str(BASE) in text and re.search(r"attempt_\d+_\d+_r_\d+_\d+", text):
                return True
    return False


class Cutter(threading.Thread):
    """Waits for a shuffle, cuts the link that carries most of it, and mends it."""

    def __init__(self, planned: dict, megabytes: int) -> None:
        super().__init__(daemon=True)
        self.planned, self.over = planned, threading.Event()
        racks = len(planned["racks"])
        self.enough = megabytes * 1e6 * (1 - 1 / racks) * PART
        self.progress, self.link, self.at, self.took, self.mended = Progress(planned), "", 0.0, 0.0, 0.0
        self.routes = 0
        self.start()

    def run(self) -> None:
        if not self.wait(reducing):
            return
        had = self.progress.total()
        if not self.wait(lambda: self.progress.total() - had >= self.enough):
            return
        self.routes = installed(self.planned)
        self.link, _ = self.progress.busiest()
        self.at = time.monotonic()
        self.turn("down")
        self.took = time.monotonic() - self.at
        self.over.wait(MENDED_AFTER)
        self.mended = time.monotonic()
        self.turn("up")

    def wait(self, holds) -> bool:
        while not holds():
            if self.over.wait(EVERY):
                return False
        return True

    def turn(self, state: str) -> None:
        rack, spine = re.fullmatch(r"up(\d+)-(\d+)", self.link).groups()  # type: ignore[union-attr]
        network.carry(self.planned, f"/rack{rack}", f"spine{spine}", state)

    def end(self) -> dict:
        self.over.set()
        self.join()
        samples = self.progress.end()
        if not self.link:
            return {"link": None}
        return {"link": self.link, "command_seconds": self.took, "routes": self.routes, **figures(samples, self.link, self.at, self.mended)}


# --- who makes another way -------------------------------------------------------------------------------------------------------


def links_up(daemon: Daemon, planned: dict) -> bool:
    """Whether hintd has all links between leaves and spines, and all nodes' cables, and all are up."""
    rows = (daemon.ctl("links") or {}).get("links", [])
    wanted = (len(planned["racks"]) + 1) * len(planned["spines"]) + len(planned["nodes"])
    return len(rows) >= wanted and all(row["up"] for row in rows)


def talk(daemon: Daemon, planned: dict, megabytes: int) -> None:
    """Tells hintd that each node will send to each other one, as an application that names its edges would: stock MapReduce does not,
    and without that hintd has no pair to make a route for."""
    nodes = len(planned["nodes"])
    file = daemon.folder / "talk.json"
    file.write_text(json.dumps({
        "format": "hintd.request/1", "application_id": APPLICATION, "attempt": 1, "constraints": {"spread": True, "max_per_node": 1},
        "groups": [{"name": "worker", "count": nodes, "size": {"memory_mb": 256, "vcores": 1}}],
        "edges": [{"from": "worker", "to": "worker", "pattern": "all_to_all", "bytes": megabytes * 10**6}]}))
    answer = daemon.ctl("request", "--file", str(file))
    promise(answer is not None, "hintd is told who talks with whom")
    promise(until(lambda: installed(planned) >= nodes * (nodes - 1), 30) is not None, f"switches have routes of {installed(planned)} pairs")


def installed(planned: dict) -> int:
    """Pairs of which a leaf has a route of hintd's, asked of the switches."""
    found = set()
    for rack in planned["racks"]:
        done = subprocess.run([network.tool("ovs-ofctl", ovs.WHY), "-O", "OpenFlow13", "dump-flows", f"unix:{ovs.RUN}/{rack[1:]}.mgmt"],
                              capture_output=True, text=True)
        found |= set(re.findall(r"priority=1000,dl_src=(\S+?),dl_dst=(\S+?) ", done.stdout))
    return len(found)


@contextlib.contextmanager
def cut(arm: str, planned: dict, daemon: Daemon, megabytes: int) -> Iterator[dict]:
    """A cut under an arm, while it is open; what it did is in the answer when it is closed."""
    found: dict = {}
    promise(until(lambda: links_up(daemon, planned), LOOK_SECONDS) is not None, "hintd has all links, and they are up")
    if arm in ("routes", "killed"):
        talk(daemon, planned, megabytes)
    if arm == "killed":
        daemon.kill()
    if arm == "fixed":
        promise(mini("server", "kill", "controller").returncode == 0, "the controller is killed; what it installed stays")
    cutter = Cutter(planned, megabytes)
    try:
        yield found
    finally:
        found.update(cutter.end())
        if arm == "fixed":
            started = subprocess.run([str(MINI), "server", "start", "controller"])
            promise(started.returncode == 0, "the controller is back")
        if arm == "killed":
            daemon.start()
            promise(until(lambda: daemon.nodes() == len(planned["nodes"]), LOOK_SECONDS) is not None, "hintd is back, and knows the nodes")
        if arm in ("routes", "killed"):
            daemon.ctl("end", APPLICATION)
    promise(found["link"] is not None, "a link was cut while a shuffle crossed it")
    if found["link"] is None:
        return
    say("    " + told(found))
    if arm == "fixed":
        promise(found["around"] == 0, f"nobody made another way: {found['around']} of {len(found['pairs'])} pairs by the link went around it")
        return
    promise(found["around"] > 0, f"another way was made: {found['around']} of {len(found['pairs'])} pairs by the link went around it before it was mended")
    aim(found["longest_all"] <= SHORT, f"{found['longest_all']:.2f} s without a byte from rack to rack, at most {SHORT:.0f} s wanted")


def told(found: dict) -> str:
    still = found["still_seconds"]
    each = f"{statistics.median(still):.2f} s in the median, {max(still):.2f} s at most" if still else "good"
    return (f"{found['link']} cut, routes of {found['routes']} pairs: {len(found['pairs'])} pairs of nodes by it stood still for {each}, {found['over']} sent nothing more (before it their longest silence was "
            f"{max(found['usual_seconds'], default=0):.2f} s); no byte from rack to "
            f"rack for {found['longest_all']:.2f} s at most, out of and into the rack of the link {found['longest_rack']:.2f} s; samples at most {found['longest_sample']:.2f} s apart")
