"""The small cluster's network: a namespace for each node, switches, cables with limited rates.

A switch for each rack, all in a namespace of their own, and above them what bridges.py or ovs.py says; a node's cable and a
rack's uplinks are veth pairs with a token bucket (tbf) at both ends, so that each direction has the rate. The masters and
everything else of this machine are on a switch by a cable without a limit, whose end `mini-hadoop` has the masters' address.
Names of namespaces begin with `mini-hadoop-`; `remove` takes those and all else away. Linux, root, iproute2.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import bridges
import machines
import ovs
from cables import PREFIX, SWITCHES, Trouble, bits, limited, tcp, told, tool

KINDS: dict[str, ModuleType] = {"bridges": bridges, "ovs": ovs}
CABLE = "mini-hadoop"  # this machine's end of the masters' cable
MASTER = "198.18.0.254"  # 198.18.0.0/15 is set aside for measuring networks (RFC 2544)
MOST_NODES = 200


def plan(racks: int, nodes_per_rack: int, node_rate: str, uplink_rate: str, switches: str = "bridges", big_nodes: int = 0) -> dict:
    """Who is where, and which cables there are."""
    for what, value in (("--racks", racks), ("--nodes-per-rack", nodes_per_rack)):
        if value < 1:
            raise Trouble(f"{what} {value}: expected 1 or more")
    if racks * nodes_per_rack > MOST_NODES:
        raise Trouble(f"{racks} racks of {nodes_per_rack} are {racks * nodes_per_rack} nodes: expected at most {MOST_NODES}")
    bits(node_rate), bits(uplink_rate)  # or what is wrong with them
    of = KINDS[switches].plan()
    if bits(uplink_rate) < 64_000 * max(len(of.get("spines", [])), 1):
        raise Trouble(f"--uplink-rate {uplink_rate}: expected 64kbit or more for each of {len(of['spines'])} links")
    nodes = {f"w{i + 1}": {"address": f"198.18.0.{i + 1}", "rack": f"/rack{i // nodes_per_rack + 1}"}
             for i in range(racks * nodes_per_rack)}
    if big_nodes and switches == "ovs":
        raise Trouble("--big-nodes: not with --switches ovs, whose controller knows one rate for all hosts")
    machines.mark(nodes, big_nodes, node_rate)
    return {"master": MASTER, "racks": [f"/rack{i + 1}" for i in range(racks)], "nodes": nodes,
            "node_rate": node_rate, "uplink_rate": uplink_rate, "switches": switches, **of}


def planned_bits(planned: dict, what: str) -> int:
    """Bits per second, as planned, of all of a rack's uplinks together, or of a node's cable."""
    return bits(planned["uplink_rate"] if what in planned["racks"] else planned["nodes"][what].get("rate", planned["node_rate"]))


def document(planned: dict) -> dict:
    """The same as a network file of hintd's (docs/formats.md); without the masters."""
    racks = [rack[1:] for rack in planned["racks"]]
    above = planned.get("spines") or [bridges.TOP]
    ends = {switch: "" if len(above) == 1 else f"-{switch}" for switch in above}
    links = [{"id": name, "a": name, "b": node["rack"][1:], "bits_per_s": planned_bits(planned, name)}
             for name, node in planned["nodes"].items()]
    links += [{"id": f"up-{rack}{end}", "a": rack, "b": switch, "bits_per_s": bits(planned["uplink_rate"]) // len(above)}
              for rack in racks for switch, end in ends.items()]
    return {"format": "hintd.network/1",
            "switches": [{"name": rack, "tier": "edge"} for rack in racks] + [{"name": switch, "tier": "core"} for switch in above],
            "hosts": [{"name": name} for name in planned["nodes"]], "links": links}


def of(planned: dict) -> ModuleType:
    """The kind of its switches."""
    return KINDS[planned.get("switches", "bridges")]


def possible(switches: str = "bridges") -> None:
    """Or says what is missing."""
    if sys.platform != "linux":
        raise Trouble(f"--network needs Linux, this is {sys.platform}")
    if os.geteuid() != 0:
        raise Trouble("--network needs root, for namespaces, switches and rates: sudo, or start without --network")
    tool("ip"), tool("tc")
    KINDS[switches].possible()


def links(planned: dict, rack: str) -> tuple[list[tuple[str, str, str]], int]:
    """A rack's uplinks, as its switches have them, and the rate of each."""
    found = of(planned).uplinks(planned, rack)
    return found, bits(planned["uplink_rate"]) // len(found)


def rate(planned: dict, what: str, part: float) -> None:
    """A rack's uplinks, or a node's cable, have a part of their planned rate from now on, both ways."""
    if what in planned["racks"]:
        found, full = links(planned, what)
        ends = [(SWITCHES, device) for link in found for device in link[:2]]
    else:
        ends, full = [(SWITCHES, what), (f"{PREFIX}{what}", "eth0")], planned_bits(planned, what)
    for space, device in ends:
        limited(space, device, f"{int(full * part)}bit", "change")


def carry(planned: dict, rack: str, above: str, state: str) -> None:
    """One of a rack's uplinks is `up` or `down`: both of its ends lose their carrier."""
    found = {link[2]: link[0] for link in links(planned, rack)[0]}
    if rack not in planned["racks"] or above not in found:
        raise Trouble(f"link between {rack!r} and {above!r}: expected one of {', '.join(planned['racks'])} and {' or '.join(found)}")
    told("ip", "-n", SWITCHES, "link", "set", "dev", found[above], state)


def build(planned: dict, owner: Path) -> None:
    """Makes it, or nothing of it."""
    kind = of(planned)
    possible(planned["switches"])
    taken = [line for line in told("ip", "-o", "-4", "addr").splitlines() if " 198.18." in line]
    if taken:
        raise Trouble(f"addresses 198.18.0.0/23 are used here already: {taken[0].split()[1]}")
    try:
        told("ip", "netns", "add", SWITCHES)
        told("ip", "link", "add", "name", CABLE, "type", "veth", "peer", "name", "master", "netns", SWITCHES)
        told("ip", "-n", SWITCHES, "link", "set", "dev", "master", "alias", str(owner)[-250:])
        kind.make(planned)
        lay_cables(planned, kind)
    except (Trouble, KeyboardInterrupt) as trouble:
        remove()
        if any(words in str(trouble) for words in ("not supported", "Unknown device type")):
            raise Trouble(f"this kernel lacks bridges, veth or tbf (CONFIG_BRIDGE, CONFIG_VETH, CONFIG_NET_SCH_TBF): {trouble}") from None
        raise


def lay_cables(planned: dict, kind: ModuleType) -> None:
    """The masters' cable, uplinks, and nodes with theirs."""
    kind.plug("master", kind.TOP)
    told("ip", "addr", "add", f"{planned['master']}/24", "dev", CABLE)
    above = [f"/{kind.TOP}"] if planned.get("spines") else []  # the masters' leaf has links without a limit
    for rack in [*above, *planned["racks"]]:
        found, each = links(planned, rack)
        for lower, upper, switch in found:
            told("ip", "-n", SWITCHES, "link", "add", "name", lower, "type", "veth", "peer", "name", upper)
            kind.plug(lower, rack[1:]), kind.plug(upper, switch)
            for device in (lower, upper) if rack in planned["racks"] else ():
                limited(SWITCHES, device, f"{each}bit")
    for name, node in planned["nodes"].items():
        space = f"{PREFIX}{name}"
        told("ip", "netns", "add", space)
        planned["tcp"] = tcp(space)
        told("ip", "-n", SWITCHES, "link", "add", "name", name, "type", "veth", "peer", "name", "eth0", "netns", space)
        kind.plug(name, node["rack"][1:])
        kind.host(space, "eth0", node["address"])
        told("ip", "-n", space, "addr", "add", f"{node['address']}/24", "dev", "eth0")
        told("ip", "-n", space, "link", "set", "dev", "lo", "up")
        told("ip", "-n", space, "link", "set", "dev", "eth0", "up")
        for at, device in ((SWITCHES, name), (space, "eth0")):
            limited(at, device, f"{planned_bits(planned, name)}bit")
    kind.host(None, CABLE, planned["master"])
    told("ip", "link", "set", "dev", CABLE, "up")


def spaces() -> list[str]:
    """Our namespaces that are there, whoever made them."""
    folder = Path("/run/netns")
    return sorted(path.name for path in folder.glob(f"{PREFIX}*")) if folder.exists() else []


def inside() -> list[int]:
    """Processes on nodes, containers that were left behind included; switches may be processes as well, and are not counted."""
    return [int(pid) for space in spaces() if space != SWITCHES for pid in told("ip", "netns", "pids", space).split()]


def owner() -> str:
    """The folder whose network it is; nothing where that is not known."""
    try:
        return json.loads(told("ip", "-n", SWITCHES, "-j", "link", "show", "dev", "master"))[0].get("ifalias", "")
    except (Trouble, ValueError, IndexError):
        return ""


def remove() -> int:
    """All of it, with every process in it; how many namespaces there were. Without root there is nothing to remove."""
    found = spaces()
    traces = [Path(f"/sys/class/net/{CABLE}"), Path(f"/sys/class/net/{ovs.CONTROL}"), ovs.RUN]
    if not found and not any(path.exists() for path in traces) and machines.group() is None:
        return 0
    possible()
    for kind in KINDS.values():
        kind.remove()
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
    machines.no_shares()
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
    return [*machines.command(node), tool("ip"), "netns", "exec", f"{PREFIX}{node}"]


def counters(planned: dict) -> dict[str, dict[str, int]]:
    """Bytes since the start that each cable carried, by the kernel's own counters: racks by all of their uplinks (`out`: to the others),
    nodes by name (`out`: what the node sent), and packets that found a bucket's queue full."""
    rows = {row["ifname"]: row["stats64"] for row in json.loads(told("ip", "-n", SWITCHES, "-s", "-j", "link", "show"))}
    queues = {row["dev"]: row["drops"] for row in json.loads(told("tc", "-n", SWITCHES, "-s", "-j", "qdisc", "show")) if row["kind"] == "tbf"}
    found = {}
    for rack in planned["racks"]:
        ends, _ = links(planned, rack)
        found[rack] = {"out": sum(rows[lower]["tx"]["bytes"] for lower, _, _ in ends), "in": sum(rows[upper]["tx"]["bytes"] for _, upper, _ in ends),
                       "dropped": sum(queues[device] for end in ends for device in end[:2])}
    for name in planned["nodes"]:
        found[name] = {"out": rows[name]["rx"]["bytes"], "in": rows[name]["tx"]["bytes"], "dropped": queues[name]}
    return found
