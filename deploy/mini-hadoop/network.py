"""The small cluster's network: a namespace for each node, bridges as switches, cables with limited rates.

One bridge for each rack and one above them, all in a namespace of their own; a node's cable and a rack's uplink are veth
pairs with a token bucket (tbf) at both ends, so that each direction has the rate. The masters and everything else of this
machine are on the upper bridge by a cable without a limit, whose end `mini-hadoop` has the masters' address. Names of
namespaces begin with `mini-hadoop-`; whoever removes those has removed everything. Linux, root, iproute2.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

PREFIX = "mini-hadoop-"
SWITCHES = f"{PREFIX}switches"
CABLE = "mini-hadoop"  # this machine's end of the masters' cable
MASTER = "198.18.0.254"  # 198.18.0.0/15 is set aside for measuring networks (RFC 2544)
MOST_NODES = 200
MULTIPLES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


class Trouble(Exception):
    """Why there is no network; for people."""


def bits(rate: str) -> int:
    """Bits per second of a rate as tc writes it, `10mbit`."""
    found = re.fullmatch(r"(\d+)([kmg]?)bit", rate)
    value = int(found[1]) * MULTIPLES[found[2]] if found else 0
    if not 64_000 <= value <= 100 * 10**9:
        raise Trouble(f"rate {rate!r}: expected something like 500kbit, 25mbit or 1gbit, from 64kbit to 100gbit")
    return value


def plan(racks: int, nodes_per_rack: int, node_rate: str, uplink_rate: str) -> dict:
    """Who is where, and which cables there are."""
    for what, value in (("--racks", racks), ("--nodes-per-rack", nodes_per_rack)):
        if value < 1:
            raise Trouble(f"{what} {value}: expected 1 or more")
    if racks * nodes_per_rack > MOST_NODES:
        raise Trouble(f"{racks} racks of {nodes_per_rack} are {racks * nodes_per_rack} nodes: expected at most {MOST_NODES}")
    bits(node_rate), bits(uplink_rate)  # or what is wrong with them
    nodes = {f"w{i + 1}": {"address": f"198.18.0.{i + 1}", "rack": f"/rack{i // nodes_per_rack + 1}"}
             for i in range(racks * nodes_per_rack)}
    return {"master": MASTER, "racks": [f"/rack{i + 1}" for i in range(racks)], "nodes": nodes,
            "node_rate": node_rate, "uplink_rate": uplink_rate}


def document(planned: dict) -> dict:
    """The same as a network file of hintd's (docs/formats.md)."""
    racks = [rack[1:] for rack in planned["racks"]]
    links = [{"id": name, "a": name, "b": node["rack"][1:], "bits_per_s": bits(planned["node_rate"])}
             for name, node in planned["nodes"].items()]
    links += [{"id": f"up-{rack}", "a": rack, "b": "core", "bits_per_s": bits(planned["uplink_rate"])} for rack in racks]
    return {"format": "hintd.network/1",
            "switches": [{"name": rack, "tier": "edge"} for rack in racks] + [{"name": "core", "tier": "core"}],
            "hosts": [{"name": name} for name in planned["nodes"]], "links": links}


def tool(name: str) -> str:
    """iproute2 is not on every PATH."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise Trouble(f"--network needs {name}, which is not here: install iproute2")
    return found


def possible() -> None:
    """Or says what is missing."""
    if sys.platform != "linux":
        raise Trouble(f"--network needs Linux, this is {sys.platform}")
    if os.geteuid() != 0:
        raise Trouble("--network needs root, for namespaces, bridges and rates: sudo, or start without --network")
    tool("ip"), tool("tc")


def told(program: str, *words: str) -> str:
    done = subprocess.run([tool(program), *words], capture_output=True, text=True)
    if done.returncode:
        raise Trouble(f"{program} {' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def limited(space: str, device: str, rate: str, way: str = "add") -> None:
    """What leaves the device has the rate. A bucket of 4 ms, at least 32 KB: less, and the kernel's timer is what limits."""
    burst = max(32_000, bits(rate) // 8 // 250)
    told("tc", "-n", space, "qdisc", way, "dev", device, "root", "tbf", "rate", rate, "burst", f"{burst}b", "latency", "60ms")


def rate(planned: dict, what: str, part: float) -> None:
    """A rack's uplink, or a node's cable, has a part of its planned rate from now on, both ways."""
    if what in planned["racks"]:
        ends, of = [(SWITCHES, device) for device in uplink(what)], planned["uplink_rate"]
    else:
        ends, of = [(SWITCHES, what), (f"{PREFIX}{what}", "eth0")], planned["node_rate"]
    for space, device in ends:
        limited(space, device, f"{int(bits(of) * part)}bit", "change")


def bridge(name: str) -> None:
    told("ip", "-n", SWITCHES, "link", "add", "name", name, "type", "bridge")
    told("ip", "-n", SWITCHES, "link", "set", "dev", name, "up")


def plugged(device: str, into: str) -> None:
    told("ip", "-n", SWITCHES, "link", "set", "dev", device, "master", into, "up")


def uplink(rack: str) -> tuple[str, str]:
    """Devices of a rack's uplink: on the rack's bridge, on the upper one."""
    number = rack.removeprefix("/rack")
    return f"up{number}", f"down{number}"


def build(planned: dict, owner: Path) -> None:
    """Makes it, or nothing of it."""
    possible()
    taken = [line for line in told("ip", "-o", "-4", "addr").splitlines() if " 198.18." in line]
    if taken:
        raise Trouble(f"addresses 198.18.0.0/24 are used here already: {taken[0].split()[1]}")
    try:
        told("ip", "netns", "add", SWITCHES)
        bridge("core")
        told("ip", "-n", SWITCHES, "link", "set", "dev", "core", "alias", str(owner)[-250:])
        told("ip", "link", "add", "name", CABLE, "type", "veth", "peer", "name", "master", "netns", SWITCHES)
        plugged("master", "core")
        told("ip", "addr", "add", f"{planned['master']}/24", "dev", CABLE)
        told("ip", "link", "set", "dev", CABLE, "up")
        for rack in planned["racks"]:
            lower, upper = uplink(rack)
            bridge(rack[1:])
            told("ip", "-n", SWITCHES, "link", "add", "name", lower, "type", "veth", "peer", "name", upper)
            plugged(lower, rack[1:]), plugged(upper, "core")
            limited(SWITCHES, lower, planned["uplink_rate"]), limited(SWITCHES, upper, planned["uplink_rate"])
        for name, node in planned["nodes"].items():
            space = f"{PREFIX}{name}"
            told("ip", "netns", "add", space)
            told("ip", "-n", SWITCHES, "link", "add", "name", name, "type", "veth", "peer", "name", "eth0", "netns", space)
            plugged(name, node["rack"][1:])
            told("ip", "-n", space, "addr", "add", f"{node['address']}/24", "dev", "eth0")
            told("ip", "-n", space, "link", "set", "dev", "lo", "up")
            told("ip", "-n", space, "link", "set", "dev", "eth0", "up")
            limited(SWITCHES, name, planned["node_rate"]), limited(space, "eth0", planned["node_rate"])
    except (Trouble, KeyboardInterrupt) as trouble:
        remove()
        if any(words in str(trouble) for words in ("not supported", "Unknown device type")):
            raise Trouble(f"this kernel lacks bridges, veth or tbf (CONFIG_BRIDGE, CONFIG_VETH, CONFIG_NET_SCH_TBF): {trouble}") from None
        raise


def spaces() -> list[str]:
    """Our namespaces that are there, whoever made them."""
    folder = Path("/run/netns")
    return sorted(path.name for path in folder.glob(f"{PREFIX}*")) if folder.exists() else []


def inside() -> list[int]:
    """Processes in them, containers that were left behind included."""
    return [int(pid) for space in spaces() for pid in told("ip", "netns", "pids", space).split()]


def owner() -> str:
    """The folder whose network it is; nothing where that is not known."""
    try:
        return json.loads(told("ip", "-n", SWITCHES, "-j", "link", "show", "dev", "core"))[0].get("ifalias", "")
    except (Trouble, ValueError, IndexError):
        return ""


def remove() -> int:
    """All of it, with every process in it; how many namespaces there were. Without root there is nothing to remove."""
    found = spaces()
    if not found and not Path(f"/sys/class/net/{CABLE}").exists():
        return 0
    possible()
    for space in found:
        for _ in range(100):  # a process may be making another
            left = [int(pid) for pid in told("ip", "netns", "pids", space).split()]
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if not left:
                break
            time.sleep(0.05)
        told("ip", "netns", "del", space)
    if Path(f"/sys/class/net/{CABLE}").exists():  # its peer may have gone with its namespace already
        subprocess.run([tool("ip"), "link", "del", "dev", CABLE], capture_output=True)
    return len(found)


def alone() -> socket.socket:
    """Held as long as the returned one is: one network of ours is made or removed at a time. It ends with the process."""
    held = socket.socket(socket.AF_UNIX)
    try:
        held.bind("\0mini-hadoop-network")
    except OSError:
        raise Trouble("another mini-hadoop is just starting or stopping a network on this machine") from None
    return held


def command(node: str) -> list[str]:
    """What a program is started by, to run on the node."""
    return [tool("ip"), "netns", "exec", f"{PREFIX}{node}"]


def counters(planned: dict) -> dict[str, dict[str, int]]:
    """Bytes since the start that each cable carried, by the kernel's own counters: uplinks by rack (`out`: to the others),
    nodes by name (`out`: what the node sent), and packets that found a bucket's queue full."""
    rows = {row["ifname"]: row for row in json.loads(told("ip", "-n", SWITCHES, "-s", "-j", "link", "show"))}
    queues = {row["dev"]: row for row in json.loads(told("tc", "-n", SWITCHES, "-s", "-j", "qdisc", "show")) if row["kind"] == "tbf"}
    found = {}
    for rack in planned["racks"]:
        lower, upper = uplink(rack)
        found[rack] = {"out": rows[lower]["stats64"]["tx"]["bytes"], "in": rows[upper]["stats64"]["tx"]["bytes"],
                       "dropped": queues[lower]["drops"] + queues[upper]["drops"]}
    for name in planned["nodes"]:
        found[name] = {"out": rows[name]["stats64"]["rx"]["bytes"], "in": rows[name]["stats64"]["tx"]["bytes"],
                       "dropped": queues[name]["drops"]}
    return found
